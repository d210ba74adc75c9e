/* The registration of two volumes on a real GPU (scripts/gpu-check): how long a program waits for
 * volumes of 240^3 and 128^3 voxels, copies included; what each level moves, beside a copy within
 * the device; and how far the CPU's displacement is from the GPU's. In a program that needs none of
 * octd's libraries.
 *
 * Exit status: 0, 1 failed, slower than the goal or not the same, 3 no GPU. */
#include "analysis/warp/solver.h"
#include "kernels/device/cuda_device.h"
#include "kernels/device/workers.h"
#include "test/rig/warp_phantom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS 60000
#define REPEATS 3u /* the best is taken */
#define MOST_APART 0.01
#define COPY_BYTES ((size_t)1 << 30)
#define COPY_ROUNDS 20u

/* test/gpu/warp_passes.cu */
enum oct_err oct_gpu_warp_passes(const struct oct_warp_setup *setup, double copy,
                                 struct oct_error *err);

struct row {
    uint32_t side;
    double goal_s;
    double least_share; /* of the copy's bandwidth in the finest level: an H200 gave 0.40 at 240^3;
                           the goal, half of it, is not reached. 0: none */
};

struct pair {
    struct oct_warp_setup setup;
    size_t n;
    struct oct_warp_phantom phantom;
    float *results[2]; /* [3]: GPU, CPU */
};

static void close_pair(struct pair *p)
{
    oct_warp_phantom_finish(&p->phantom);
    free(p->results[0]);
    free(p->results[1]);
}

static enum oct_err open_pair(struct pair *p, uint32_t side, struct oct_error *err)
{
    struct oct_warp_phantom_setup phantom;
    *p = (struct pair){.n = (size_t)side * side * side};
    oct_warp_phantom_default(&phantom, side);
    oct_warp_phantom_make(&phantom, &p->phantom);
    p->setup = (struct oct_warp_setup){.grid = p->phantom.grid, .deadline_ms = PATIENCE_MS};
    oct_warp_params_default(&p->setup.params, OCT_WARP_OCTD, p->phantom.grid.dims);
    p->results[0] = malloc(3 * p->n * sizeof(float));
    p->results[1] = malloc(3 * p->n * sizeof(float));
    return p->results[0] && p->results[1] ? OCT_OK
                                          : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

/* ---- runs ---- */

static enum oct_err solve(const struct pair *p, const struct oct_warp_ops *ops, unsigned repeats,
                          float *result, struct oct_warp_report *best, struct oct_error *err)
{
    struct oct_warp_engine *engine;
    enum oct_err e = ops->create(&engine, &p->setup, err);
    if (e)
        return e;
    for (unsigned i = 0; i < repeats && !e; i++) {
        struct oct_warp_report report;
        e = ops->solve(engine, p->phantom.fixed, p->phantom.moving, NULL, result, &report, NULL,
                       err);
        if (!e && (i == 0 || report.seconds < best->seconds))
            *best = report;
    }
    ops->destroy(engine);
    return e;
}

static void print_levels(const struct oct_warp_report *r, double copy)
{
    for (unsigned i = 0; i < r->n_levels; i++) {
        const struct oct_warp_level *l = &r->level[i];
        printf("  factor %u: %3u steps, %2u halved, %7.2f ms, %6.2f GB, %6.0f GB/s, %3.0f %% of a "
               "copy; E %.5g -> %.5g, min J %.3f\n",
               l->factor, l->iterations, l->halvings, l->seconds * 1e3, l->bytes * 1e-9,
               l->bytes / l->seconds * 1e-9, 100 * l->bytes / l->seconds / copy, l->energy_first,
               l->energy, l->least_jacobian);
    }
}

/* The largest component of the difference, and the mean length of the error. */
static double compare(const struct pair *p, double *error)
{
    double most = 0, sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        double length2 = 0;
        for (size_t k = 0; k < 3; k++) {
            const size_t at = k * p->n + i;
            const double off = (double)p->results[0][at] - (double)p->phantom.displacement[at];
            length2 += off * off;
            most = fmax(most, fabs((double)p->results[0][at] - (double)p->results[1][at]));
        }
        sum += sqrt(length2);
    }
    *error = sum / (double)p->n;
    return most;
}

static int run(const struct row *row, double copy, struct oct_workers *workers)
{
    struct pair p;
    struct oct_warp_report gpu = {0}, cpu = {0};
    struct oct_error err = {.text = ""};
    enum oct_err e = open_pair(&p, row->side, &err);
    e = e ? e : solve(&p, &oct_warp_cuda, REPEATS, p.results[0], &gpu, &err);
    p.setup.workers = workers;
    e = e ? e : solve(&p, &oct_warp_cpu, 1, p.results[1], &cpu, &err);
    if (e) {
        printf("%u^3: %s\n", row->side, err.text);
        close_pair(&p);
        return 1;
    }
    double error, apart = compare(&p, &error);
    const struct oct_warp_level *finest = &gpu.level[gpu.n_levels - 1];
    const double share = finest->bytes / finest->seconds / copy;
    const bool met = gpu.seconds <= row->goal_s && share >= row->least_share;
    printf("%u^3: %.1f ms with copies (goal %.0f), %.2f floats a voxel; CPU, %u threads: %.0f ms; "
           "%.4f voxel apart at most, %.3f from the truth in the mean: %s\n",
           row->side, gpu.seconds * 1e3, row->goal_s * 1e3,
           (double)oct_warp_cuda.bytes(&p.setup) / 4 / (double)p.n, oct_workers_n_threads(workers),
           cpu.seconds * 1e3, apart, error, met && apart <= MOST_APART ? "met" : "MISSED");
    print_levels(&gpu, copy);
    if (oct_gpu_warp_passes(&p.setup, copy, &err))
        printf("  the passes were not timed: %s\n", err.text);
    fflush(stdout);
    close_pair(&p);
    return !(met && apart <= MOST_APART && finest->least_jacobian > 0);
}

int main(void)
{
    static const struct row rows[] = {{128, 1, 0}, {240, 1, 0.3}};
    struct oct_workers *workers;
    struct oct_error err = {.text = ""};
    char why[256];
    double copy = 0;
    int status = 0;
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    if (oct_cuda_time_device_copy(0, COPY_BYTES, COPY_ROUNDS, &copy, &err) ||
        oct_workers_create(&workers, 0, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("two volumes registered, defaults; a copy within the device: %.0f GB/s\n", copy * 1e-9);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        status |= run(&rows[i], copy, workers);
    oct_workers_destroy(workers);
    return status;
}
