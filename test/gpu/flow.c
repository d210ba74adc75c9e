/* Flow on a real GPU (scripts/gpu-check): what it adds to reconstruction, and both beside bare
 * copies in the same run; in a program that needs none of octd's libraries. B-scans of 240 x 1024,
 * four at a place, reconstructed with nufft, as octd ships, or, with "linear" as argument, as the
 * thesis does.
 *
 * Exit status: 0, 1 failed or slower than the goal, 3 no GPU. */
#include "kernels/device/cuda_device.h"
#include "pipeline/flow/frame.h"
#include "test/gpu/flow_timing.h"
#include "test/rig/flow_scene.h"
#include "tools/bench/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 240, DEPTH = 1024, SAMPLES = 832, REPEATS = 4, PLACES = 64, PATIENCE_MS = 60000 };
#define MOST_US 3.0      /* that flow adds to a B-scan on the device */
#define LEAST_SHARE 0.85 /* of bare copies */

static enum oct_err find(const struct oct_flow_engine_ops *ops,
                         const struct oct_flow_engine_setup *setup, const float *values, float *d,
                         struct oct_error *err)
{
    const size_t n = (size_t)LINES * DEPTH;
    struct oct_flow_engine *engine = NULL;
    struct oct_flow_found found;
    enum oct_err e = ops->create(&engine, setup, err);
    for (size_t r = 0; r < REPEATS && !e; r++) {
        float *at = malloc(2 * n * sizeof(*at));
        if (!at)
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
        for (size_t i = 0; i < 2 * n; i++)
            at[i] = values[2 * r * n + i];
        const struct oct_image_frame frame = {.complex_values = at};
        e = ops->put(engine, (unsigned)r, &frame, err);
        free(at);
    }
    e = e ? e : ops->find(engine, 0, NULL, &found, err);
    for (size_t i = 0; i < n && !e; i++)
        d[i] = found.d[i];
    ops->destroy(engine);
    return e;
}

/* The two engines have the same d, or nothing is timed. */
static enum oct_err verify(const struct oct_flow_engine_setup *setup, const float *values,
                           struct oct_error *err)
{
    const size_t n = (size_t)LINES * DEPTH;
    float *wanted = malloc(n * sizeof(*wanted)), *got = malloc(n * sizeof(*got));
    double worst = 0;
    enum oct_err e = wanted && got ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    e = e ? e : find(&oct_flow_engine_cpu, setup, values, wanted, err);
    e = e ? e : find(&oct_flow_engine_cuda, setup, values, got, err);
    for (size_t i = 0; i < n && !e; i++) {
        const double off = fabs((double)(got[i] - wanted[i])) / fmax(1, fabs((double)wanted[i]));
        if (isnan(wanted[i]) != isnan(got[i]) || off > 1e-4)
            e = oct_fail(err, OCT_E_BACKEND, "d of voxel %zu is %g, on the CPU %g", i,
                         (double)got[i], (double)wanted[i]);
        worst = off > worst ? off : worst;
    }
    if (!e)
        printf("d differs from the CPU's by %.2g at most\n", worst);
    free(wanted);
    free(got);
    return e;
}

static bool report(const struct oct_flow_times *t)
{
    static const char *const steps[OCT_FLOW_TIMED_STEPS] = {"put",   "shift", "lines",
                                                            "judge", "bulk",  "score"};
    const double stored = t->complex_us - t->chain_us, added = stored + t->places_us;
    const double share = t->copies_us / t->all_us;
    printf("us a B-scan of %d x %d, %d at a place, %u at once:\n", LINES, DEPTH, REPEATS,
           t->n_bscans);
    for (int i = 0; i < OCT_FLOW_TIMED_STEPS; i++)
        printf("    %-6s %6.3f\n", steps[i], t->step_us[i]);
    printf("    places %6.3f, storing B %.3f (kernels of reconstruction %.3f): flow adds %.2f, at "
           "most %.1f: %s\n",
           t->places_us, stored, t->chain_us, added, MOST_US, added <= MOST_US ? "met" : "MISSED");
    printf("    a place alone: %.1f us\n", t->one_place_us);
    printf("with copies: bare %.2f, reconstruction %.2f, with flow %.2f: %.3f of bare copies, at "
           "least %.2f: %s (without flow %.3f)\n",
           t->copies_us, t->recon_us, t->all_us, share, LEAST_SHARE,
           share >= LEAST_SHARE ? "met" : "MISSED", t->copies_us / t->recon_us);
    printf("complex values on the bus: %zu bytes\n", t->complex_bytes);
    return added <= MOST_US && share >= LEAST_SHARE && t->complex_bytes == 0;
}

static enum oct_err run(enum oct_interpolation interpolation, bool *met, struct oct_error *err)
{
    const struct oct_flow_scene tissue = {.n_lines = LINES,
                                          .depth = DEPTH,
                                          .n_repeats = REPEATS,
                                          .top = 200,
                                          .snr = 20,
                                          .noise = 1,
                                          .depth_shift = 1,
                                          .turns = true,
                                          .box = {60, 60, 400, 80},
                                          .seed = 1};
    struct oct_bench_scene scene = {.plan = NULL};
    struct oct_geometry geometry;
    struct oct_calibration cal = {.n_wavelengths = 0};
    struct oct_chain chain = oct_chain_thesis;
    struct oct_flow_optics optics;
    struct oct_flow_times times;
    struct oct_flow_engine_setup setup = {.place = {.n_lines = LINES,
                                                    .depth = DEPTH,
                                                    .n_repeats = REPEATS,
                                                    .sigma_lines = 1,
                                                    .sigma_depth = 3,
                                                    .max_bulk = 0.3,
                                                    .projection = 0.35,
                                                    .projection_px = 5,
                                                    .optics = &optics},
                                          .n_places = 1,
                                          .deadline_ms = PATIENCE_MS};
    float *values = oct_flow_scene_make(&tissue);
    chain.interpolation = interpolation;
    enum oct_err e =
        oct_geometry_init(&geometry, SAMPLES, LINES, LINES, 0, DEPTH, OCT_SAMPLE_U8, err);
    e = e ? e : oct_bench_calibration(&cal, SAMPLES);
    e = e ? e : oct_plan_create(&scene.plan, &geometry, &cal, &chain, err);
    oct_calibration_finish(&cal);
    e = e ? e : oct_bench_scene_fill(&scene, err);
    e = e ? e : oct_flow_optics_init(&optics, scene.plan, NULL, 1.36, false, err);
    e = e ? e : verify(&setup, values, err);
    setup.n_places = PLACES;
    setup.shows = setup.keeps = true;
    e = e ? e : oct_flow_time_cuda(scene.plan, &scene.in[0], &setup, values, 0, &times, err);
    *met = !e && report(&times);
    oct_bench_scene_finish(&scene);
    free(values);
    return e;
}

int main(int argc, char **argv)
{
    const bool is_linear = argc > 1 && strcmp(argv[1], "linear") == 0;
    struct oct_error err = {.text = ""};
    char why[256];
    bool met = false;
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    if (run(is_linear ? OCT_INTERPOLATION_LINEAR : OCT_INTERPOLATION_NUFFT, &met, &err))
        printf("flow: %s\n", err.text);
    return met ? 0 : 1;
}
