#include "tools/bench/runner.h"

#include "kernels/engines.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 64u

/* ---- the engine ---- */

/* As many pictures as the engine keeps in flight: it may take more short B-scans than there are
 * different ones. */
static bool make_pictures(struct oct_bench_runner *r)
{
    unsigned depth = r->ops->depth(r->engine);
    depth = depth < OCT_BENCH_MOST_IN_FLIGHT ? depth : OCT_BENCH_MOST_IN_FLIGHT;
    memcpy(r->out, r->scene->out, sizeof(r->scene->out));
    for (r->n_out = OCT_BENCH_FRAMES; r->n_out < depth; r->n_out++) {
        r->out[r->n_out].pixels = malloc(oct_geometry_image_bytes(&r->scene->plan->geometry));
        if (!r->out[r->n_out].pixels)
            return false;
    }
    return true;
}

void oct_bench_runner_close(struct oct_bench_runner *r)
{
    r->ops->destroy(r->engine);
    for (unsigned i = OCT_BENCH_FRAMES; i < r->n_out; i++)
        free(r->out[i].pixels);
}

static void submit_one(struct oct_bench_runner *r, uint64_t number,
                       const struct oct_display *display)
{
    const struct oct_engine_job job = {
        .in = &r->scene->in[number % OCT_BENCH_FRAMES],
        .out = &r->out[number % r->n_out],
        .display = *display,
        .dc = r->scene->dc[number % OCT_BENCH_FRAMES],
    };
    r->ops->submit(r->engine, &job, 1);
}

double oct_bench_runner_seconds(struct oct_bench_runner *r, uint64_t n)
{
    unsigned depth = r->ops->depth(r->engine);
    if (depth > r->n_out)
        depth = r->n_out;
    uint64_t begin = oct_clock_ns(), submitted = 0;
    for (uint64_t collected = 0; collected < n;) {
        struct oct_image_frame *done;
        for (; submitted < n && submitted - collected < depth; submitted++)
            submit_one(r, submitted, &r->scene->display);
        if (r->ops->collect(r->engine, 1000000, &done) == OCT_OK)
            collected++;
    }
    return (double)(oct_clock_ns() - begin) * 1e-9;
}

double oct_bench_runner_latency_us(struct oct_bench_runner *r)
{
    enum { N = 101 };
    double us[N];
    for (unsigned i = 0; i < N; i++) {
        struct oct_image_frame *done;
        uint64_t begin = oct_clock_ns();
        submit_one(r, i, &r->scene->display);
        while (r->ops->collect(r->engine, 1000000, &done))
            ;
        us[i] = (double)(oct_clock_ns() - begin) * 1e-3;
    }
    return oct_bench_median(us, N);
}

static void make_picture(struct oct_bench_runner *r, const struct oct_display *display)
{
    struct oct_image_frame *done;
    submit_one(r, 0, display);
    while (r->ops->collect(r->engine, 1000000, &done))
        ;
    r->scene->out[0] = *done; /* where the limits lie that the check reads */
}

/* Of a picture of the 60 dB below its maximum, and of the range that is timed. */
static double worst_error(struct oct_bench_runner *r)
{
    struct oct_display display = r->scene->display;
    display.log = true;
    display.smoothing_bscans = 0;
    make_picture(r, &display);
    const double worst = oct_bench_scene_error(r->scene, 0);
    display.range = OCT_RANGE_AUTO;
    make_picture(r, &display);
    display.range = OCT_RANGE_MANUAL;
    display.hi = r->scene->out[0].hi;
    display.lo = display.hi - 60;
    make_picture(r, &display);
    return fmax(worst, oct_bench_scene_error(r->scene, 0));
}

enum oct_err oct_bench_runner_verify(struct oct_bench_runner *r, double *error,
                                     struct oct_error *err)
{
    *error = worst_error(r);
    if (*error > 1)
        return oct_fail(err, OCT_E_BACKEND,
                        "the %s engine is off by %.1f grey levels with range=%s: not timed; run "
                        "the tests",
                        r->ops->name, *error, oct_bench_range_name(r->scene->display.range));
    return OCT_OK;
}

enum oct_err oct_bench_runner_open(struct oct_bench_runner *r, struct oct_bench_scene *scene,
                                   const char *backend, const struct oct_engine_options *options,
                                   char *why, size_t why_bytes, struct oct_error *err)
{
    *r = (struct oct_bench_runner){.scene = scene};
    enum oct_err e =
        oct_engine_select(backend, scene->plan, options, &r->ops, &r->engine, why, why_bytes, err);
    if (e || make_pictures(r))
        return e;
    oct_bench_runner_close(r);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the benchmark's pictures");
}

/* ---- the limit: bare transforms by FFTW, whoever does the engine's ---- */

struct worker {
    const struct oct_bench_transforms *transforms;
    uint64_t n_lines;
    pthread_t thread;
};

/* Lines in pairs, as the chain does. */
static void run_pair(const struct oct_bench_transforms *t, fftwf_complex *a, fftwf_complex *b)
{
    if (t->is_one) {
        fftwf_execute_dft(t->fft.forward_pair, a, b);
        fftwf_execute_dft(t->fft.forward_pair, a, b);
        return;
    }
    fftwf_execute_dft(t->fft.forward_pair, a, b);
    fftwf_execute_dft(t->fft.inverse_pair, b, a);
    fftwf_execute_dft(t->fft.forward, a, b);
    fftwf_execute_dft(t->fft.forward, a, b);
}

static void *run_transforms(void *argument)
{
    const struct worker *w = argument;
    size_t n = 2 * (size_t)w->transforms->padded;
    fftwf_complex *a = oct_aligned_calloc(64, n, sizeof(*a));
    fftwf_complex *b = oct_aligned_alloc(64, n, sizeof(*b));
    for (uint64_t i = 0; a && b && i < w->n_lines; i += 2)
        run_pair(w->transforms, a, b);
    free(a);
    free(b);
    return NULL;
}

double oct_bench_transforms_seconds(const struct oct_bench_transforms *t, uint64_t *n_lines)
{
    struct worker workers[MOST_THREADS];
    uint64_t begin = oct_clock_ns();
    unsigned started = 0;
    *n_lines = *n_lines / t->n_threads * t->n_threads;
    for (; started < t->n_threads; started++) {
        workers[started] = (struct worker){.transforms = t, .n_lines = *n_lines / t->n_threads};
        if (oct_thread_start(&workers[started].thread, NULL, run_transforms, &workers[started],
                             "transforms", NULL))
            break;
    }
    for (unsigned k = 0; k < started; k++)
        pthread_join(workers[k].thread, NULL);
    return (double)(oct_clock_ns() - begin) * 1e-9;
}

enum oct_err oct_bench_transforms_open(struct oct_bench_transforms *t, const struct oct_plan *plan,
                                       const char *wisdom_dir, unsigned n_threads,
                                       struct oct_error *err)
{
    *t = (struct oct_bench_transforms){
        .is_one = plan->chain.interpolation == OCT_INTERPOLATION_NUFFT,
        .padded = plan->geometry.padded,
        .n_threads = n_threads < MOST_THREADS ? n_threads : MOST_THREADS,
    };
    return oct_fft_init(&t->fft, t->is_one ? OCT_FFT_ONE : OCT_FFT_ALL, t->padded, wisdom_dir, err);
}

void oct_bench_transforms_close(struct oct_bench_transforms *t)
{
    oct_fft_finish(&t->fft);
}
