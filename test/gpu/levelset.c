/* Level sets on a real GPU (scripts/gpu-check): how long a program waits for a surface of 240 x 240
 * A-lines with local weights, and for 175,000 voxels with full ones, copies included; in a program
 * that needs none of octd's libraries.
 *
 * Exit status: 0, 1 failed or slower than the goal, 3 no GPU. */
#include "analysis/layers/denoise/levelset.h"
#include "kernels/device/cuda_device.h"
#include "test/rig/surface_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS 60000
#define N_D 96u

struct row {
    const char *name;
    enum oct_levelset_profile profile;
    uint32_t n_b, n_j;
    double noise;
    unsigned repeats; /* the best is taken */
    double goal_s;
};

/* Drusen and noise; distances along the depth, as far as they are of the band's size. */
static float *make_box(const struct row *row)
{
    const struct oct_surface_scene scene = {.kind = OCT_SURFACE_DRUSEN,
                                            .n_b = row->n_b,
                                            .n_j = row->n_j,
                                            .height = 12,
                                            .width = 12,
                                            .noise = row->noise,
                                            .seed = 3};
    const size_t n_lines = (size_t)row->n_b * row->n_j;
    float *heights = malloc(n_lines * sizeof(*heights));
    float *phi = malloc(n_lines * N_D * sizeof(*phi));
    if (heights && phi) {
        oct_surface_scene_draw(&scene, NULL, heights);
        for (size_t i = 0; i < n_lines * N_D; i++) {
            const double distance = ((double)heights[i / N_D] - (double)(i % N_D)) / 1.04;
            phi[i] = (float)fmax(-8, fmin(8, distance));
        }
    }
    free(heights);
    return phi;
}

static enum oct_err time_row(const struct row *row, const float *phi, float *result,
                             struct oct_levelset_report *best, struct oct_error *err)
{
    struct oct_levelset_setup setup = {.dims = {row->n_b, row->n_j, N_D},
                                       .deadline_ms = PATIENCE_MS};
    struct oct_levelset_engine *engine;
    oct_levelset_params_default(&setup.params, row->profile);
    enum oct_err e = oct_levelset_cuda.create(&engine, &setup, err);
    for (unsigned i = 0; i < row->repeats && !e; i++) {
        struct oct_levelset_report report;
        e = oct_levelset_cuda.denoise(engine, phi, result, &report, err);
        if (!e && (i == 0 || report.seconds < best->seconds))
            *best = report;
    }
    oct_levelset_cuda.destroy(engine);
    return e;
}

static int run(const struct row *row)
{
    struct oct_levelset_report best = {0};
    struct oct_error err = {.text = "out of memory"};
    float *phi = make_box(row);
    float *result = malloc(sizeof(*result) * row->n_b * row->n_j * N_D);
    const bool failed = !phi || !result || time_row(row, phi, result, &best, &err);
    if (failed)
        printf("%-6s %s\n", row->name, err.text);
    else
        printf("%-6s %4u x %3u x %u %5.1f %9llu %8.1f %9.2f %9.2f %s\n", row->name, row->n_b,
               row->n_j, N_D, row->noise, (unsigned long long)best.n_band, best.c2,
               best.seconds * 1e3, row->goal_s * 1e3,
               best.seconds <= row->goal_s ? "met" : "MISSED");
    fflush(stdout);
    free(phi);
    free(result);
    return failed || !(best.seconds <= row->goal_s);
}

int main(void)
{
    static const struct row rows[] = {
        {"local", OCT_LEVELSET_PROFILE_LOCAL, 240, 240, 0.5, 10, 0.02},
        {"local", OCT_LEVELSET_PROFILE_LOCAL, 240, 240, 1, 10, 0.02},
        {"full", OCT_LEVELSET_PROFILE_FULL, 240, 140, 0.5, 2, 1},
        {"full", OCT_LEVELSET_PROFILE_FULL, 240, 140, 1, 2, 1},
        {"full", OCT_LEVELSET_PROFILE_FULL, 240, 140, 2, 2, 1},
    };
    char why[256];
    int status = 0;
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    printf("level sets, defaults of each profile; ms as a program waits for the result\n");
    printf("%-6s %14s %5s %9s %8s %9s %9s\n", "", "box", "noise", "band", "c2", "ms", "goal");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        status |= run(&rows[i]);
    return status;
}
