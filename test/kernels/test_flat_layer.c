/* What becomes of flat layers and of the camera's own pattern with the two means, dc=bscan and
 * dc=running, through the CPU engine. */
#include "kernels/engines.h"
#include "pipeline/flow/running_dc.h"
#include "test/rig/engine_scene.h"
#include "test/rig/physics.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = OCT_PHYSICS_N, M = 16, V = 64, DEPTH = 1024 };

static const double pi = 3.14159265358979323846;

/* A layer that is flat over the first three quarters of every B-scan: its fringe has one phase
 * there, and another in each B-scan, as the eye moves. A pattern at another depth is the same in
 * all lines. */
static const double layer_px = 300, pattern_px = 520, amplitude = 200, pattern = 60;

struct lab {
    double lambda_nm[N];
    struct oct_calibration cal;
    uint16_t spectra[V][M * N];
    uint8_t line_valid[M];
    float pixels[M * DEPTH];
};

static double source_at(unsigned i)
{
    double t = (i - 0.5 * N) / (0.2 * N);
    return 300 + 3000 * exp(-t * t);
}

static void make_spectra(struct lab *lab)
{
    uint64_t random = 5;
    const double px = oct_physics_pixel(lab->lambda_nm, 1);
    for (unsigned v = 0; v < V; v++) {
        const double phase = 2 * pi * oct_random_uniform(&random);
        for (unsigned j = 0; j < M; j++)
            for (unsigned i = 0; i < N; i++) {
                double k = 2 * pi / lab->lambda_nm[i], s = source_at(i);
                double counts = s + s / 3300 * pattern * cos(2e3 * k * pattern_px / px);
                if (j < 3 * M / 4)
                    counts += s / 3300 * amplitude * cos(2e3 * k * layer_px / px + phase);
                counts += 6 * oct_random_normal(&random);
                lab->spectra[v][j * N + i] = (uint16_t)(counts + 0.5);
            }
    }
}

static void setup_lab(struct lab *lab)
{
    oct_physics_wavelengths(lab->lambda_nm, 0);
    lab->cal = (struct oct_calibration){.wavelengths_nm = lab->lambda_nm, .n_wavelengths = N};
    memset(lab->line_valid, 1, M);
    make_spectra(lab);
}

/* Mean intensity around a depth over lines from .. to-1. */
static double light_at(const struct lab *lab, double px, unsigned from, unsigned to)
{
    double sum = 0;
    for (unsigned j = from; j < to; j++) {
        double most = 0;
        for (int d = (int)px - 3; d <= (int)px + 3; d++)
            most = fmax(most, (double)lab->pixels[j * DEPTH + (unsigned)d]);
        sum += most;
    }
    return sum / (to - from);
}

/* Mean over the B-scans from the 32nd on, counts^2. */
struct light {
    double layer, ghost, pattern; /* ghost: at the layer's depth, in lines without the layer */
};

static struct light measure(struct lab *lab, enum oct_dc dc)
{
    const struct oct_chain chain = {.dc = dc, .dc_bscans = 32};
    const struct oct_engine_options options = {.n_threads = 1, .simd = "auto"};
    struct oct_running_dc *running = NULL;
    struct oct_geometry g;
    struct oct_plan *plan;
    struct oct_engine *engine;
    struct light sum = {0};
    float line[2 * N];
    assert_int_equal(oct_geometry_init(&g, N, M, V, 0, DEPTH, OCT_SAMPLE_F32, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &lab->cal, &chain, NULL), OCT_OK);
    assert_int_equal(oct_engine_cpu.create(&engine, plan, &options, NULL), OCT_OK);
    assert_int_equal(oct_running_dc_create(&running, plan, NULL), OCT_OK);
    for (unsigned v = 0; v < V; v++) {
        struct oct_raw_frame in = {
            .info = {.number = v}, .spectra = lab->spectra[v], .line_valid = lab->line_valid};
        struct oct_image_frame out = {.pixels = lab->pixels}, *done;
        struct oct_engine_job job = {
            .in = &in, .out = &out, .display = {.range = OCT_RANGE_AUTO}, .dc = line};
        oct_running_dc_push(running, &in, line);
        job.dc = dc == OCT_DC_RUNNING ? line : NULL;
        assert_int_equal(oct_engine_cpu.submit(engine, &job, 1), OCT_OK);
        assert_int_equal(oct_engine_cpu.collect(engine, TEST_PATIENCE_US, &done), OCT_OK);
        assert_int_equal(done->status, OCT_OK);
        if (v < 32)
            continue;
        sum.layer += light_at(lab, layer_px, 0, 3 * M / 4) / (V - 32);
        sum.ghost += light_at(lab, layer_px, 3 * M / 4, M) / (V - 32);
        sum.pattern += light_at(lab, pattern_px, 0, M) / (V - 32);
    }
    oct_running_dc_destroy(running);
    oct_engine_cpu.destroy(engine);
    oct_plan_destroy(plan);
    return sum;
}

static double db(double intensity, double of)
{
    return 10 * log10(intensity / of);
}

static void a_flat_layer_leaves_a_fainter_line_and_the_pattern_goes(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    assert_non_null(lab);
    setup_lab(lab);
    const struct light none = measure(lab, OCT_DC_NONE), own = measure(lab, OCT_DC_BSCAN),
                       running = measure(lab, OCT_DC_RUNNING);
    printf("# of the layer: itself bscan %.2f dB, running %.2f dB; the line that it leaves beside "
           "it bscan %.2f dB, running %.2f dB\n",
           db(own.layer, none.layer), db(running.layer, none.layer), db(own.ghost, none.layer),
           db(running.ghost, none.layer));
    printf("# the camera's pattern: bscan %.2f dB, running %.2f dB\n",
           db(own.pattern, none.pattern), db(running.pattern, none.pattern));
    /* Three quarters of the lines have the layer: 1/4 of its amplitude is left, 3/4 are a line
     * beside it. Over 32 B-scans of any phase the mean of it is 1/32 of that in intensity. */
    assert_true(fabs(db(own.layer, none.layer) - 20 * log10(0.25)) < 0.2);
    assert_true(fabs(db(own.ghost, none.layer) - 20 * log10(0.75)) < 0.2);
    assert_true(fabs(db(running.layer, none.layer)) < 0.5);
    assert_true(db(running.ghost, own.ghost) < -10);
    assert_true(db(own.pattern, none.pattern) < -25 && db(running.pattern, none.pattern) < -25);
    free(lab);
}

/* The first B-scan of a volume has its own mean only: to the byte what dc=bscan makes. */
static void the_first_bscan_of_a_volume_is_as_with_its_own_mean(void **state)
{
    static const enum oct_dc of[2] = {OCT_DC_BSCAN, OCT_DC_RUNNING};
    struct lab *lab = calloc(1, sizeof(*lab));
    float *pixels[2];
    assert_non_null(lab);
    setup_lab(lab);
    lab->line_valid[3] = lab->line_valid[M - 1] = 0;
    for (unsigned k = 0; k < 2; k++) {
        const struct oct_chain chain = {.dc = of[k]};
        const struct oct_engine_options options = {.n_threads = 1, .simd = "auto"};
        struct oct_raw_frame in = {.spectra = lab->spectra[0], .line_valid = lab->line_valid};
        struct oct_geometry g;
        struct oct_plan *plan;
        struct oct_engine *engine;
        float *line;
        pixels[k] = calloc(M * DEPTH, sizeof(float));
        struct oct_image_frame out = {.pixels = pixels[k]}, *done;
        assert_int_equal(oct_geometry_init(&g, N, M, V, 0, DEPTH, OCT_SAMPLE_F32, NULL), OCT_OK);
        assert_int_equal(oct_plan_create(&plan, &g, &lab->cal, &chain, NULL), OCT_OK);
        assert_int_equal(oct_engine_cpu.create(&engine, plan, &options, NULL), OCT_OK);
        assert_int_equal(oct_running_dc_alone(&line, plan, &in, NULL), OCT_OK);
        struct oct_engine_job job = {.in = &in, .out = &out, .dc = line};
        assert_true((line != NULL) == (of[k] == OCT_DC_RUNNING));
        assert_int_equal(oct_engine_cpu.submit(engine, &job, 1), OCT_OK);
        assert_int_equal(oct_engine_cpu.collect(engine, TEST_PATIENCE_US, &done), OCT_OK);
        assert_int_equal(done->status, OCT_OK);
        oct_engine_cpu.destroy(engine);
        oct_plan_destroy(plan);
        free(line);
    }
    assert_memory_equal(pixels[0], pixels[1], M * DEPTH * sizeof(float));
    free(pixels[0]);
    free(pixels[1]);
    free(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_layer_leaves_a_fainter_line_and_the_pattern_goes),
        cmocka_unit_test(the_first_bscan_of_a_volume_is_as_with_its_own_mean),
    };
    return cmocka_run_group_tests_name("flat layers", tests, NULL, NULL);
}
