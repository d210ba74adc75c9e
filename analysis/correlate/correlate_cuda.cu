/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are a reference to keep or a
 * batch of pictures. Pictures are measured while they are copied into pinned memory. */
#include "analysis/correlate/cuda_correlation.cuh"
#include "kernels/device/cuda_task.h"

#include <cmath>
#include <cstdlib>

/* Pictures a batch are limited so that a batch takes about this much memory on the device. */
#define BATCH_BYTES ((size_t)2 << 30)

struct oct_correlator {
    struct oct_cuda_tasks *tasks;
    struct oct_correlator_setup setup; /* n_batch: of the device */
    bool has_reference;
    unsigned n_batch; /* of the caller */
};

struct task {
    bool is_reference, alone;
    const struct oct_picture *pictures; /* [n] */
    unsigned n;
    float *c2d;      /* [n][shifts] */
    unsigned *which; /* set to the picture that is refused */
};

struct context {
    struct oct_correlation correlation;
    bool keep_mean;
    double g_squares; /* of g: its sum; overlap: their mean */
    bool is_reference;
    unsigned n;               /* of the task */
    struct oct_error refusal; /* of the task's pictures; the code alone where it is OCT_OK */
    float *h_c2d;
};

/* ---- a task ---- */

static enum oct_err check_normal(const struct oct_normal *normal, const struct oct_picture *p,
                                 struct oct_error *err)
{
    const double part = (double)normal->n_valid / ((double)p->height * p->width);
    if (part < 0.1)
        return oct_fail(err, OCT_E_ARG, "only %.1f %% of the pixels are valid, less than 10 %%",
                        100 * part);
    if (!normal->finite)
        return oct_fail(err, OCT_E_ARG, "pixels that are not finite and not masked");
    return normal->usable ? OCT_OK : oct_fail(err, OCT_E_ARG, "no contrast");
}

/* The sum of squares of a normal picture is its number of valid pixels. */
static double squares_of(const struct context *c, const struct oct_normal *normal)
{
    return c->correlation.shape.norm == OCT_CORRELATION_OVERLAP ? 1 : (double)normal->n_valid;
}

/* Up to the first picture that is refused; begin says so. */
static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    const struct task *task = (const struct task *)from;
    struct oct_correlation *to = &c->correlation;
    c->is_reference = task->is_reference;
    c->n = task->n;
    c->refusal.code = OCT_OK;
    to->alone = task->alone;
    for (unsigned i = 0; i < task->n; i++) {
        const struct oct_picture *p = &task->pictures[i];
        const struct oct_normal *normal = oct_planes_take(&to->planes, i, p, c->keep_mean);
        if (check_normal(normal, p, &c->refusal)) {
            *task->which = i;
            return;
        }
        const double own = squares_of(c, normal);
        if (task->is_reference)
            c->g_squares = own;
        else
            to->h_factors[i] =
                (float)(to->shape.inverse_points / sqrt(own * (task->alone ? own : c->g_squares)));
    }
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    struct oct_correlation *correlation = &c->correlation;
    if (c->refusal.code) {
        *err = c->refusal;
        return c->refusal.code;
    }
    if (c->is_reference) {
        enum oct_err e = oct_correlation_upload_g(correlation, err);
        return e ? e : oct_correlation_queue_g(correlation, err);
    }
    enum oct_err e = oct_correlation_upload(correlation, c->n, err);
    e = e ? e : oct_correlation_queue(correlation, true, err);
    return e ? e
             : oct_cuda_stream_download(
                   correlation->stream, c->h_c2d, correlation->d_c2d,
                   c->n * oct_correlation_shifts(correlation->shape) * sizeof(float), err);
}

static void give(void *argument, void *to)
{
    struct context *c = (struct context *)argument;
    struct task *task = (struct task *)to;
    if (!task->is_reference)
        memcpy(task->c2d, c->h_c2d,
               task->n * oct_correlation_shifts(c->correlation.shape) * sizeof(float));
}

/* Every kernel once: a reference, and pictures with it and with themselves, all zero. */
static enum oct_err rehearse(struct context *c, struct oct_error *err)
{
    struct oct_correlation *to = &c->correlation;
    const struct oct_correlation_shape &s = to->shape;
    oct_correlation_blank(to);
    c->n = 1;
    c->is_reference = true;
    enum oct_err e = begin(c, err);
    c->is_reference = false;
    for (int k = 0; k < 2 && !e; k++) {
        to->alone = k == 1 && s.height == s.g_height && s.width == s.g_width;
        e = begin(c, err);
    }
    return e;
}

static enum oct_err complete(struct context *c, const struct oct_correlator_setup *setup,
                             struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->correlation.shape;
    c->keep_mean = setup->keep_mean && setup->norm != OCT_CORRELATION_ZNCC;
    enum oct_err e =
        oct_stream_pin(c->correlation.stream, &c->h_c2d, s.n * oct_correlation_shifts(s), err);
    return e ? e : rehearse(c, err);
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *from,
                         struct oct_error *err)
{
    const struct oct_correlator_setup *setup = (const struct oct_correlator_setup *)from;
    return oct_correlation_make_context(out, stream, *setup, setup, complete, err);
}

static const struct oct_cuda_task_ops task_ops = {
    "correlation", make, take, begin, give, oct_correlation_unmake<struct context>};

/* ---- the engine ---- */

static unsigned device_batch(const struct oct_correlator_setup *setup)
{
    const struct oct_correlation_shape s = oct_correlation_shape_of(setup);
    const size_t copies = !s.masked ? 6 : s.norm == OCT_CORRELATION_ZNCC ? 25 : 10;
    const size_t fits = BATCH_BYTES / (copies * oct_correlation_points(s) * sizeof(float)) + 1;
    return fits < s.n ? (unsigned)fits : s.n;
}

static void cuda_destroy(struct oct_correlator *c)
{
    if (!c)
        return;
    oct_cuda_tasks_destroy(c->tasks);
    free(c);
}

static enum oct_err cuda_create(struct oct_correlator **out,
                                const struct oct_correlator_setup *setup, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = oct_correlator_check(setup, err);
    if (e)
        return e;
    struct oct_correlator *c = (struct oct_correlator *)calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a correlation");
    c->n_batch = setup->n_batch ? setup->n_batch : 1;
    c->setup = *setup;
    c->setup.n_batch = device_batch(setup);
    e = oct_cuda_tasks_create(&c->tasks, &task_ops, setup->gpus, setup->deadline_ms, &c->setup,
                              sizeof(c->setup), err);
    if (e)
        cuda_destroy(c);
    else
        *out = c;
    return e;
}

static enum oct_err check_picture(const struct oct_correlator *c, const struct oct_picture *picture,
                                  uint32_t height, uint32_t width, struct oct_error *err)
{
    if (picture->height != height || picture->width != width)
        return oct_fail(err, OCT_E_ARG, "the picture has %u x %u pixels, not %u x %u",
                        picture->height, picture->width, height, width);
    if (picture->valid && !c->setup.masked)
        return oct_fail(err, OCT_E_ARG, "the picture has a mask, and none was announced");
    return OCT_OK;
}

static enum oct_err cuda_set_reference(struct oct_correlator *c, const struct oct_picture *g,
                                       struct oct_error *err)
{
    unsigned which;
    if (!g) {
        c->has_reference = false;
        return OCT_OK;
    }
    enum oct_err e = check_picture(c, g, c->setup.g_height, c->setup.g_width, err);
    if (e)
        return e;
    struct task task = {true, false, g, 1, NULL, &which};
    e = oct_cuda_tasks_do(c->tasks, &task, err);
    c->has_reference = c->has_reference || !e;
    return e;
}

static enum oct_err cuda_run(struct oct_correlator *c, const struct oct_picture *f, unsigned n,
                             float *c2d, unsigned *which, struct oct_error *err)
{
    const struct oct_correlator_setup *s = &c->setup;
    const size_t n_shifts = (2 * (size_t)s->max_dy + 1) * (2 * (size_t)s->max_dx + 1);
    *which = 0;
    if (n > c->n_batch)
        return oct_fail(err, OCT_E_ARG, "%u pictures at once, more than %u", n, c->n_batch);
    if (!c->has_reference && (s->height != s->g_height || s->width != s->g_width))
        return oct_fail(err, OCT_E_ARG, "there is no picture to correlate with");
    for (unsigned i = 0; i < n; i++) {
        *which = i;
        enum oct_err e = check_picture(c, &f[i], s->height, s->width, err);
        if (e)
            return e;
    }
    for (unsigned i = 0; i < n; i += s->n_batch) {
        const unsigned count = n - i < s->n_batch ? n - i : s->n_batch;
        unsigned of_batch = 0;
        struct task task = {false, !c->has_reference, f + i, count, c2d + i * n_shifts, &of_batch};
        enum oct_err e = oct_cuda_tasks_do(c->tasks, &task, err);
        *which = i + of_batch;
        if (e)
            return e;
    }
    return OCT_OK;
}

extern "C" const struct oct_correlator_ops oct_correlator_cuda = {
    "cuda", cuda_create, cuda_set_reference, cuda_run, NULL, cuda_destroy};
