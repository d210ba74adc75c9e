#include "tools/bench/cuda.h"
#include "kernels/engines.h"

#include "kernels/device/cuda_memory.h"
#include "kernels/recon/cuda_recon.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS OCT_BENCH_REPEATS
#define COLLECT_US 1000000u
#define WITHIN_BYTES ((size_t)256 << 20) /* no cache holds it */
#define WITHIN_ROUNDS 4
#define MAX_COLLECTS 30 /* no picture for half a minute means a fault */

/* The engine between two rings of pinned memory, as in the pipeline. */
struct runner {
    const struct oct_geometry *geometry;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
    struct oct_display display;
    unsigned depth, batch;
    size_t in_bytes, out_bytes; /* of all slots */
    uint8_t *in_memory, *out_memory, *valid;
    struct oct_raw_frame *in; /* [depth] */
    struct oct_image_frame *out;
    float *const *dc; /* [OCT_BENCH_FRAMES] the scene's */
};

static enum oct_err collect(struct runner *r, struct oct_image_frame **done, struct oct_error *err)
{
    for (int i = 0; i < MAX_COLLECTS; i++)
        if (r->ops->collect(r->engine, COLLECT_US, done) == OCT_OK)
            return (*done)->status
                       ? oct_fail(err, OCT_E_BACKEND, "the CUDA engine failed during the benchmark")
                       : OCT_OK;
    return oct_fail(err, OCT_E_BACKEND, "the CUDA engine gives no pictures");
}

static struct oct_engine_job job_of(const struct runner *r, unsigned slot)
{
    return (struct oct_engine_job){.in = &r->in[slot],
                                   .out = &r->out[slot],
                                   .display = r->display,
                                   .dc = r->dc[slot % OCT_BENCH_FRAMES]};
}

static enum oct_err submit(struct runner *r, uint64_t number, unsigned n, struct oct_error *err)
{
    struct oct_engine_job jobs[OCT_CUDA_MAX_BATCH];
    for (unsigned k = 0; k < n; k++) {
        unsigned slot = (unsigned)((number + k) % r->depth);
        jobs[k] = job_of(r, slot);
    }
    if (r->ops->submit(r->engine, jobs, n))
        return oct_fail(err, OCT_E_BACKEND, "the CUDA engine takes no more B-scans");
    return OCT_OK;
}

/* Seconds for n batches with the engine kept full. */
static enum oct_err run_full(void *context, uint64_t n_batches, double *seconds,
                             struct oct_error *err)
{
    struct runner *r = context;
    uint64_t begin = oct_clock_ns(), n = n_batches * r->batch, submitted = 0;
    struct oct_image_frame *done;
    enum oct_err e = OCT_OK;
    for (uint64_t collected = 0; collected < n && !e; collected++) {
        while (!e && submitted < n && submitted + r->batch - collected <= r->depth) {
            e = submit(r, submitted, r->batch, err);
            submitted += r->batch;
        }
        e = e ? e : collect(r, &done, err);
    }
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    return e;
}

static enum oct_err single_latency(struct runner *r, double *us, struct oct_error *err)
{
    enum { N = 101 };
    double all[N];
    struct oct_image_frame *done;
    for (unsigned i = 0; i < N; i++) {
        uint64_t begin = oct_clock_ns();
        enum oct_err e = submit(r, i, 1, err);
        if (e || (e = collect(r, &done, err)))
            return e;
        all[i] = (double)(oct_clock_ns() - begin) * 1e-3;
    }
    *us = oct_bench_median(all, N);
    return OCT_OK;
}

/* Compares a picture of the 60 dB below its maximum with double precision. */
static enum oct_err verify(struct runner *r, struct oct_bench_scene *scene, double *error,
                           struct oct_error *err)
{
    struct oct_image_frame *done;
    r->display = (struct oct_display){
        .log = true, .range = OCT_RANGE_AUTO, .percentile_lo = 1, .percentile_hi = 99.9};
    enum oct_err e = submit(r, 0, 1, err);
    if (e || (e = collect(r, &done, err)))
        return e;
    r->display.range = OCT_RANGE_MANUAL;
    r->display.hi = done->hi;
    r->display.lo = done->hi - 60;
    if ((e = submit(r, 0, 1, err)) || (e = collect(r, &done, err)))
        return e;
    memcpy(scene->out[0].pixels, done->pixels, oct_geometry_image_bytes(r->geometry));
    scene->out[0].lo = done->lo;
    scene->out[0].hi = done->hi;
    *error = oct_bench_scene_error(scene, 0);
    if (*error > 1)
        return oct_fail(err, OCT_E_BACKEND,
                        "the CUDA engine is off by %.1f grey levels: not timed; run the tests",
                        *error);
    return OCT_OK;
}

static enum oct_err measure_rate(struct runner *r, double seconds, double *lines_per_s,
                                 struct oct_error *err)
{
    const enum oct_err e = oct_bench_fastest(run_full, r, 4, seconds, lines_per_s, err);
    *lines_per_s *= (double)r->batch * r->geometry->n_lines;
    return e;
}

/* ---- the same bytes from and to as much memory, without the engine ---- */

static enum oct_err measure_copies(const struct runner *r, unsigned device, double seconds,
                                   struct oct_bench_cuda_row *row, struct oct_error *err)
{
    const unsigned n_places = row->streams; /* all that the engine has at work */
    const struct oct_cuda_way up = {oct_raw_bytes(&r->in[0], r->geometry) * r->batch, n_places};
    const struct oct_cuda_way down = {oct_geometry_image_bytes(r->geometry) * r->batch, n_places};
    double took = 1, best = 1e30, within = 0;
    row->device_bytes_per_s = 0;
    enum oct_err e = oct_cuda_time_copies(device, up, down, 4, &took, err);
    unsigned n = (unsigned)(4 * seconds / REPEATS / (took > 1e-6 ? took : 1e-6)) + 2;
    for (int i = 0; i < REPEATS && !e; i++) {
        e = oct_cuda_time_copies(device, up, down, n, &took, err);
        best = took < best ? took : best;
        e = e ? e : oct_cuda_time_device_copy(device, WITHIN_BYTES, WITHIN_ROUNDS, &within, err);
        row->device_bytes_per_s = fmax(row->device_bytes_per_s, within);
    }
    row->copy_lines_per_s = (double)n * r->batch * r->geometry->n_lines / best;
    return e;
}

static enum oct_cuda_kernels kernels_of(const struct oct_bench_cuda_row *row)
{
    return strcmp(row->kernels, "plain") == 0 ? OCT_CUDA_PLAIN : OCT_CUDA_FUSED;
}

static enum oct_err wait_for(struct oct_cuda_recon *recon, struct oct_error *err)
{
    uint64_t begin = oct_clock_ns();
    enum oct_err e;
    while ((e = oct_cuda_recon_poll(recon, err)) == OCT_E_AGAIN)
        if (oct_clock_ns() - begin > (uint64_t)COLLECT_US * 1000 * MAX_COLLECTS)
            return oct_fail(err, OCT_E_BACKEND, "a batch does not end");
    return e;
}

static enum oct_err run_batch(struct runner *r, struct oct_cuda_recon *recon, double *seconds,
                              struct oct_error *err)
{
    struct oct_engine_job jobs[OCT_CUDA_MAX_BATCH];
    bool needs_end;
    for (unsigned k = 0; k < r->batch; k++)
        jobs[k] = job_of(r, k);
    oct_cuda_recon_take(recon, jobs, r->batch);
    enum oct_err e = oct_cuda_recon_begin(recon, &needs_end, err);
    e = e ? e : wait_for(recon, err);
    return e ? e : oct_cuda_recon_stages(recon, seconds, err);
}

/* One batch after the other on a single stream, so that nothing overlaps. */
static enum oct_err measure_stages(struct runner *r, const struct oct_plan *plan, unsigned device,
                                   struct oct_bench_cuda_row *row, struct oct_error *err)
{
    struct oct_cuda_recon *recon;
    struct oct_cuda_signs signs = {0};
    enum oct_err e =
        oct_cuda_recon_create(&recon, device, plan, kernels_of(row), r->batch, false, &signs, err);
    for (int s = 0; s < OCT_CUDA_N_STAGES; s++)
        row->stage_us[s] = 1e30;
    for (int i = 0; i < 4 * REPEATS && !e; i++) {
        double seconds[OCT_CUDA_N_STAGES] = {0};
        e = run_batch(r, recon, seconds, err);
        for (int s = 0; s < OCT_CUDA_N_STAGES && !e; s++)
            if (seconds[s] * 1e6 < row->stage_us[s])
                row->stage_us[s] = seconds[s] * 1e6;
    }
    oct_cuda_recon_destroy(recon);
    return e;
}

/* Batch after batch on every stream, from spectra that are on the device to pixels there. */
static enum oct_err run_kernels(struct oct_cuda_recon **streams, unsigned n_streams,
                                unsigned n_batches, double *seconds, struct oct_error *err)
{
    uint64_t begin = oct_clock_ns();
    enum oct_err e = OCT_OK;
    for (unsigned b = 0; b < n_batches && !e; b++)
        for (unsigned i = 0; i < n_streams && !e; i++)
            e = oct_cuda_recon_repeat(streams[i], 1, err);
    for (unsigned i = 0; i < n_streams && !e; i++)
        e = wait_for(streams[i], err);
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    return e;
}

static enum oct_err measure_kernels(struct runner *r, const struct oct_plan *plan, unsigned device,
                                    double seconds, struct oct_bench_cuda_row *row,
                                    struct oct_error *err)
{
    enum { MAX_STREAMS = 16 };
    struct oct_cuda_recon *streams[MAX_STREAMS] = {NULL};
    struct oct_cuda_signs signs = {0};
    const unsigned n = row->streams < MAX_STREAMS ? row->streams : MAX_STREAMS;
    double took, best = 1e30, stages[OCT_CUDA_N_STAGES];
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < n && !e; i++) {
        e = oct_cuda_recon_create(&streams[i], device, plan, kernels_of(row), r->batch, false,
                                  &signs, err);
        if (!e)
            e = run_batch(r, streams[i], stages, err); /* brings the spectra */
    }
    e = e ? e : run_kernels(streams, n, 1, &took, err);
    const unsigned n_batches = e ? 1 : (unsigned)(seconds / REPEATS / took) + 1;
    for (int i = 0; i < REPEATS && !e; i++) {
        e = run_kernels(streams, n, n_batches, &took, err);
        best = took < best ? took : best;
    }
    row->kernel_lines_per_s = (double)n_batches * n * r->batch * r->geometry->n_lines / best;
    for (unsigned i = 0; i < n; i++)
        oct_cuda_recon_destroy(streams[i]);
    return e;
}

/* ---- one row ---- */

static const char *const range_names[] = {[OCT_RANGE_AUTO] = "auto",
                                          [OCT_RANGE_MANUAL] = "manual",
                                          [OCT_RANGE_PERCENTILE] = "percentile"};

static const char *const interpolation_names[] = {[OCT_INTERPOLATION_LINEAR] = "linear",
                                                  [OCT_INTERPOLATION_CUBIC] = "cubic",
                                                  [OCT_INTERPOLATION_NUFFT] = "nufft"};

static void runner_finish(struct runner *r)
{
    r->ops->destroy(r->engine);
    if (r->in_memory)
        oct_cuda_memory.release(r->in_memory, r->in_bytes);
    if (r->out_memory)
        oct_cuda_memory.release(r->out_memory, r->out_bytes);
    free(r->valid);
    free(r->in);
    free(r->out);
}

static enum oct_err runner_init(struct runner *r, const struct oct_bench_scene *scene,
                                const struct oct_engine_options *options, struct oct_error *err)
{
    const struct oct_geometry *g = &scene->plan->geometry;
    *r = (struct runner){.geometry = g, .ops = &oct_engine_cuda, .dc = scene->dc};
    enum oct_err e = r->ops->create(&r->engine, scene->plan, options, err);
    if (e)
        return e;
    const size_t spectra = oct_raw_bytes(&scene->in[0], g), image = oct_geometry_image_bytes(g);
    r->depth = r->ops->depth(r->engine);
    r->batch = r->ops->max_batch(r->engine);
    r->in_bytes = r->depth * spectra;
    r->out_bytes = r->depth * image;
    bool in_pinned = false, out_pinned = false;
    r->in_memory = oct_cuda_memory.alloc(r->in_bytes, &in_pinned);
    r->out_memory = oct_cuda_memory.alloc(r->out_bytes, &out_pinned);
    r->valid = malloc(g->n_lines);
    r->in = calloc(r->depth, sizeof(*r->in));
    r->out = calloc(r->depth, sizeof(*r->out));
    if (!in_pinned || !out_pinned || !r->valid || !r->in || !r->out)
        return oct_fail(err, OCT_E_NO_MEMORY, "no pinned memory for %u B-scans", r->depth);
    memset(r->valid, 1, g->n_lines);
    for (unsigned i = 0; i < r->depth; i++) {
        r->in[i].spectra = (uint16_t *)(void *)(r->in_memory + i * spectra);
        r->in[i].format = scene->in[0].format;
        r->in[i].line_valid = r->valid;
        r->out[i].pixels = r->out_memory + i * image;
        memcpy(r->in[i].spectra, scene->in[i % OCT_BENCH_FRAMES].spectra, spectra);
    }
    return OCT_OK;
}

enum oct_err oct_bench_cuda(struct oct_bench_scene *scene, const struct oct_engine_options *options,
                            enum oct_range range, double seconds, struct oct_bench_cuda_row *row,
                            struct oct_error *err)
{
    struct runner r;
    const unsigned device =
        options->gpus && *options->gpus ? (unsigned)strtoul(options->gpus, NULL, 10) : 0;
    enum oct_err e = runner_init(&r, scene, options, err);
    if (!e) {
        const struct oct_geometry *g = &scene->plan->geometry;
        *row = (struct oct_bench_cuda_row){.samples = g->n_samples,
                                           .lines = g->n_lines,
                                           .depth = g->depth,
                                           .batch = r.batch,
                                           .streams = r.depth / r.batch};
        const char *kernels = strstr(r.ops->describe(r.engine), "; ");
        sscanf(kernels ? kernels : "; unknown", "; %15s", row->kernels);
        row->range = range_names[range];
        row->in = oct_samples_name(scene->in[0].format);
        row->interpolation = interpolation_names[scene->plan->chain.interpolation];
        e = verify(&r, scene, &row->error, err);
        r.display.range = range;
    }
    e = e ? e : measure_rate(&r, seconds / 2, &row->lines_per_s, err);
    e = e ? e : single_latency(&r, &row->latency_us, err);
    r.display.range =
        OCT_RANGE_MANUAL; /* only this range has stages that follow without the host */
    e = e ? e : measure_stages(&r, scene->plan, device, row, err);
    e = e ? e : measure_kernels(&r, scene->plan, device, seconds / 8, row, err);
    e = e ? e : measure_copies(&r, device, seconds / 4, row, err);
    runner_finish(&r);
    return e;
}

void oct_bench_cuda_print_head(void)
{
    printf("%-7s %-6s %-10s %-7s %7s %6s %6s %6s %8s %12s %12s %7s %12s %10s %10s %10s %12s %11s "
           "%7s\n",
           "kernels", "way", "range", "in", "samples", "lines", "depth", "batch", "streams",
           "A-lines/s", "bare copies", "ratio", "kernels only", "upload us", "kernels us",
           "downl. us", "device GB/s", "1 B-scan us", "off by");
}

void oct_bench_cuda_print(const struct oct_bench_cuda_row *row)
{
    printf(
        "%-7s %-6s %-10s %-7s %7u %6u %6u %6u %8u %12.0f %12.0f %7.2f %12.0f %10.1f %10.1f %10.1f "
        "%12.1f %11.0f %7.2f\n",
        row->kernels, row->interpolation, row->range, row->in, row->samples, row->lines, row->depth,
        row->batch, row->streams, row->lines_per_s, row->copy_lines_per_s,
        row->lines_per_s / row->copy_lines_per_s, row->kernel_lines_per_s, row->stage_us[0],
        row->stage_us[1], row->stage_us[2], row->device_bytes_per_s * 1e-9, row->latency_us,
        row->error);
    fflush(stdout);
}

const struct oct_bench_cuda_row *oct_bench_cuda_linear(const struct oct_bench_cuda_row *rows,
                                                       size_t n,
                                                       const struct oct_bench_cuda_row *nufft)
{
    for (size_t i = 0; i < n && strcmp(nufft->interpolation, "nufft") == 0; i++)
        if (strcmp(rows[i].interpolation, "linear") == 0 &&
            strcmp(rows[i].kernels, nufft->kernels) == 0 &&
            strcmp(rows[i].range, nufft->range) == 0 && rows[i].samples == nufft->samples &&
            rows[i].lines == nufft->lines && rows[i].depth == nufft->depth)
            return &rows[i];
    return NULL;
}

void oct_bench_cuda_print_ratios(const struct oct_bench_cuda_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct oct_bench_cuda_row *linear = oct_bench_cuda_linear(rows, n, &rows[i]);
        if (linear)
            printf("nufft, %s kernels, %u x %u, D = %u, %s: %.2f times linear's A-lines/s with "
                   "copies, %.2f without (goal 1)\n",
                   rows[i].kernels, rows[i].samples, rows[i].lines, rows[i].depth, rows[i].range,
                   rows[i].lines_per_s / linear->lines_per_s,
                   rows[i].kernel_lines_per_s / linear->kernel_lines_per_s);
    }
    fflush(stdout);
}
