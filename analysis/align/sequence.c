#include "analysis/align/sequence.h"

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"
#include "analysis/align/prepare.h"
#include "analysis/align/reference.h"
#include "analysis/align/rigid.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Frames whose shifts show the reference's own motion; more frames would add nothing. */
#define MOST_MOTION_FRAMES 1024u

#define BATCH 16u         /* frames registered at once */
#define LEAST_OVERLAP 0.3 /* of whole frames */

const char *oct_frame_fate_text(enum oct_frame_fate fate)
{
    static const char *const texts[] = {
        [OCT_FRAME_USED] = "",
        [OCT_FRAME_SKIPPED] = "skipped",
        [OCT_FRAME_NO_CONTRAST] = "no contrast",
        [OCT_FRAME_LOW_SCORE] = "low score",
        [OCT_FRAME_FEW_STRIPS] = "few strips",
        [OCT_FRAME_NO_SHIFT] = "no shift given",
    };
    return texts[fate];
}

/* ---- life ---- */

void oct_sequence_finish(struct oct_sequence *q)
{
    free(q->frames);
    free(q->strips);
    free(q->motion_y);
    free(q->motion_x);
    free(q->dy);
    free(q->dx);
    free(q->scratch);
    oct_render_finish(&q->render);
    *q = (struct oct_sequence){0};
}

static enum oct_err check(struct oct_sequence_setup *s, uint64_t n_frames, struct oct_error *err)
{
    uint32_t *roi = s->roi;
    if (roi[2] == 0)
        memcpy(roi, (uint32_t[4]){0, 0, s->width, s->height}, sizeof(s->roi));
    if (roi[2] > s->width || roi[0] > s->width - roi[2] || roi[3] > s->height ||
        roi[1] > s->height - roi[3] || roi[2] < OCT_PICTURE_LEAST_SIDE ||
        roi[3] < OCT_PICTURE_LEAST_SIDE)
        return oct_fail(err, OCT_E_ARG,
                        "the region %u:%u:%u:%u does not fit frames of %u x %u pixels, or has a "
                        "side below %u",
                        roi[0], roi[1], roi[2], roi[3], s->width, s->height,
                        OCT_PICTURE_LEAST_SIDE);
    s->max_dy = s->max_dy ? s->max_dy : roi[3] / 3;
    s->max_dx = s->max_dx ? s->max_dx : roi[2] / 3;
    if (s->max_dy >= roi[3] || s->max_dx >= roi[2])
        return oct_fail(err, OCT_E_ARG, "shifts of up to %u px: at most %u here",
                        s->max_dy > s->max_dx ? s->max_dy : s->max_dx,
                        (roi[2] < roi[3] ? roi[2] : roi[3]) - 1);
    if (s->has_number && s->number >= n_frames)
        return oct_fail(err, OCT_E_ARG, "reference frame %llu: there are %llu frames, from 0",
                        (unsigned long long)s->number, (unsigned long long)n_frames);
    return OCT_OK;
}

static void describe_strips(struct oct_sequence *q)
{
    const struct oct_sequence_setup *s = &q->setup;
    bool is_given = s->model == OCT_SEQUENCE_GIVEN;
    bool by_strips = s->model == OCT_SEQUENCE_STRIPS;
    q->rows = is_given ? 1 : by_strips ? s->rows : s->roi[3];
    q->step = is_given ? 1 : by_strips ? s->step : s->roi[3];
    q->first_row = is_given ? 0 : s->roi[1];
    q->n_strips = is_given    ? s->height
                  : by_strips ? oct_strips_count(s->roi[3], s->rows, s->step)
                              : 1;
}

static enum oct_err init(struct oct_sequence *q, struct oct_error *err)
{
    uint64_t n = q->source.n_frames;
    uint32_t height = q->setup.height;
    enum oct_err e = check(&q->setup, n, err);
    if (e)
        return e;
    describe_strips(q);
    if (q->n_strips == 0)
        return oct_fail(err, OCT_E_ARG, "strips of %u lines every %u do not fit %u lines",
                        q->setup.rows, q->setup.step, q->setup.roi[3]);
    q->running = "cpu";
    q->reference = UINT64_MAX;
    q->frames = calloc(n, sizeof(*q->frames));
    q->strips = calloc(n * q->n_strips, sizeof(*q->strips));
    q->dy = calloc(height, sizeof(double));
    q->dx = calloc(height, sizeof(double));
    q->scratch = calloc(height, sizeof(double));
    if (!q->frames || !q->strips || !q->dy || !q->dx || !q->scratch)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the shifts of %llu frames",
                        (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        q->frames[i] = (struct oct_sequence_frame){OCT_FRAME_USED, NAN, NAN, {NAN, NAN}};
        if (q->setup.skip && q->setup.skip[i])
            q->frames[i].fate = OCT_FRAME_SKIPPED;
    }
    return OCT_OK;
}

/* ---- pictures ---- */

/* Copies the region of interest, ready to be matched. */
static enum oct_err cut(const struct oct_sequence *q, const struct oct_picture *from,
                        struct oct_picture *to, struct oct_error *err)
{
    const uint32_t *roi = q->setup.roi;
    enum oct_err e = oct_picture_init(to, roi[3], roi[2], from->valid != NULL, err);
    for (uint32_t y = 0; y < roi[3] && !e; y++) {
        size_t at = (size_t)(roi[1] + y) * from->width + roi[0], put = (size_t)y * roi[2];
        memcpy(to->pixels + put, from->pixels + at, roi[2] * sizeof(float));
        if (from->valid)
            memcpy(to->valid + put, from->valid + at, roi[2]);
    }
    e = e ? e : oct_align_prepare(to, err);
    if (e)
        oct_picture_finish(to);
    return e;
}

static enum oct_err read_cut(const struct oct_sequence *q, uint64_t frame,
                             struct oct_picture *picture, struct oct_error *err)
{
    struct oct_picture whole = {0};
    enum oct_err e = q->source.read(q->source.context, frame, &whole, err);
    if (!e)
        e = cut(q, &whole, picture, err);
    oct_picture_finish(&whole);
    return e;
}

/* Up to 16 evenly spaced frames that are not skipped. */
static enum oct_err choose(struct oct_sequence *q, struct oct_error *err)
{
    struct oct_picture pictures[OCT_REFERENCE_CANDIDATES] = {{0}};
    uint64_t numbers[OCT_REFERENCE_CANDIDATES], n_left = 0, seen = 0;
    unsigned n = 0, chosen = 0;
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; i < q->source.n_frames; i++)
        n_left += q->frames[i].fate == OCT_FRAME_USED;
    uint64_t n_wanted = n_left < OCT_REFERENCE_CANDIDATES ? n_left : OCT_REFERENCE_CANDIDATES;
    for (uint64_t i = 0; i < q->source.n_frames && n < n_wanted && !e; i++) {
        if (q->frames[i].fate != OCT_FRAME_USED || seen++ < n * n_left / n_wanted)
            continue;
        numbers[n] = i;
        e = read_cut(q, i, &pictures[n++], err);
    }
    if (!e && n == 0)
        e = oct_fail(err, OCT_E_ARG, "all frames are skipped");
    if (!e)
        e = oct_reference_choose(pictures, n, &chosen, err);
    if (!e)
        q->reference = numbers[chosen];
    for (unsigned i = 0; i < n; i++)
        oct_picture_finish(&pictures[i]);
    return e;
}

static enum oct_err read_reference(struct oct_sequence *q, struct oct_picture *reference,
                                   struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (q->setup.reference)
        return cut(q, q->setup.reference, reference, err);
    q->reference = q->setup.number;
    if (!q->setup.has_number)
        e = choose(q, err);
    return e ? e : read_cut(q, q->reference, reference, err);
}

/* ---- the two ways of registering frames, rigid or by strips: strips of a batch of frames ----
 *
 * A rigid shift is one strip of all lines. */

/* What a worker needs for itself. */
struct worker {
    struct oct_rigid *rigid; /* NULL with strips */
    struct oct_level level;
    struct oct_zncc_sums overlap;
    enum oct_err code;
    struct oct_error err;
};

struct estimator {
    struct oct_sequence_setup setup;
    struct oct_strips *strips; /* NULL: rigid */
    unsigned n_workers;
    struct worker *workers;
    struct oct_level reference;
    const struct oct_picture *pictures; /* while find runs */
    struct oct_strip *found;
    struct oct_sequence_frame *frames; /* before, sd */
};

static enum oct_err create_strips(struct estimator *e, struct oct_error *err)
{
    const struct oct_sequence_setup *s = &e->setup;
    const struct oct_strips_setup setup = {
        .height = s->height,
        .width = s->width,
        .max_dy = s->max_dy,
        .max_dx = s->max_dx,
        .rows = s->rows,
        .step = s->step,
        .search = s->search,
        .far = s->far,
        .min_score = s->min_score,
        .masked = s->masked,
        .n_batch = BATCH,
        .workers = s->workers,
        .backend = s->backend,
        .gpus = s->gpus,
        .deadline_ms = s->deadline_ms,
    };
    return oct_strips_create(&e->strips, &setup, err);
}

static enum oct_err create_worker(struct estimator *e, struct worker *w, struct oct_error *err)
{
    const struct oct_sequence_setup *s = &e->setup;
    const struct oct_rigid_setup setup = {
        .height = s->height,
        .width = s->width,
        .max_dy = s->max_dy,
        .max_dx = s->max_dx,
        .min_overlap = LEAST_OVERLAP,
        .masked = s->masked,
        .backend = s->backend,
        .gpus = s->gpus,
        .deadline_ms = s->deadline_ms,
    };
    enum oct_err code = oct_level_init(&w->level, s->height, s->width, s->masked, err);
    if (!code)
        code = oct_zncc_sums_init(&w->overlap, s->width, err);
    if (!code && s->model == OCT_SEQUENCE_RIGID)
        code = oct_rigid_create(&w->rigid, &setup, err);
    return code;
}

static void close_estimator(struct estimator *e)
{
    for (unsigned i = 0; e->workers && i < e->n_workers; i++) {
        oct_rigid_destroy(e->workers[i].rigid);
        oct_level_finish(&e->workers[i].level);
        oct_zncc_sums_finish(&e->workers[i].overlap);
    }
    oct_strips_destroy(e->strips);
    oct_level_finish(&e->reference);
    free(e->workers);
}

/* With its reference. */
static enum oct_err open_estimator(struct estimator *e, const struct oct_sequence_setup *setup,
                                   const struct oct_picture *reference, struct oct_error *err)
{
    *e = (struct estimator){.setup = *setup,
                            .n_workers =
                                setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1};
    e->workers = calloc(e->n_workers, sizeof(*e->workers));
    enum oct_err code =
        e->workers ? oct_level_init(&e->reference, setup->height, setup->width, setup->masked, err)
                   : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    for (unsigned i = 0; i < e->n_workers && !code; i++)
        code = create_worker(e, &e->workers[i], err);
    if (!code && setup->model == OCT_SEQUENCE_STRIPS)
        code = create_strips(e, err);
    if (code)
        return code;
    oct_level_set(&e->reference, reference);
    if (e->strips)
        return oct_strips_set_reference(e->strips, reference, err);
    for (unsigned i = 0; i < e->n_workers && !code; i++)
        code = oct_rigid_set_reference(e->workers[i].rigid, reference, err);
    return code;
}

/* The score of the two without a shift; the shift of a rigid frame. */
static void do_one(void *context, unsigned piece, unsigned worker)
{
    struct estimator *e = context;
    struct worker *w = &e->workers[worker];
    struct oct_sequence_frame *frame = &e->frames[piece];
    struct oct_shift shift;
    oct_level_set(&w->level, &e->pictures[piece]);
    *frame = (struct oct_sequence_frame){.before = NAN, .sd = {NAN, NAN}};
    if (w->level.has_contrast) {
        oct_zncc_sums_begin(&w->overlap, &w->level, &e->reference, 0, w->level.height,
                            LEAST_OVERLAP);
        frame->before = oct_zncc_sums_score_at(&w->overlap, 0, 0);
    }
    if (e->strips)
        return;
    enum oct_err code = oct_rigid_find(w->rigid, &e->pictures[piece], &shift, &w->err);
    w->code = code ? code : w->code;
    if (code)
        return;
    frame->sd[0] = shift.sd_dy;
    frame->sd[1] = shift.sd_dx;
    e->found[piece] = (struct oct_strip){(float)shift.dy, (float)shift.dx, (float)shift.score,
                                         shift.is_match && shift.score >= e->setup.min_score};
}

/* n <= BATCH; strips: [n][n_strips]; frames: [n], of which `before` and `sd` are set. */
static enum oct_err find_strips(struct estimator *e, const struct oct_picture *pictures, unsigned n,
                                struct oct_strip *strips, struct oct_sequence_frame *frames,
                                struct oct_error *err)
{
    e->pictures = pictures;
    e->found = strips;
    e->frames = frames;
    for (unsigned i = 0; i < e->n_workers; i++)
        e->workers[i].code = OCT_OK;
    oct_workers_run(e->setup.workers, n, do_one, e);
    for (unsigned i = 0; i < e->n_workers; i++)
        if (e->workers[i].code)
            return oct_fail(err, e->workers[i].code, "%s", e->workers[i].err.text);
    return e->strips ? oct_strips_find(e->strips, pictures, n, strips, err) : OCT_OK;
}

/* ---- registration ---- */

struct pass {
    struct estimator estimator;
    struct oct_sequence_setup setup; /* of the estimator */
    const struct oct_picture *reference;
    struct oct_picture pictures[BATCH];
    uint64_t numbers[BATCH];
    unsigned n;
    struct oct_strip *strips; /* [BATCH][n_strips] */
};

/* Keeps what was found of one frame. */
static void settle(struct oct_sequence *q, uint64_t number, const struct oct_strip *strips,
                   const struct oct_sequence_frame *found)
{
    struct oct_sequence_frame *frame = &q->frames[number];
    bool has_lines = oct_strips_lines(strips, q->n_strips, q->rows, q->step, q->first_row,
                                      q->setup.height, q->dy, q->dx);
    memcpy(q->strips + number * q->n_strips, strips, q->n_strips * sizeof(*strips));
    frame->before = isnan(frame->before) ? found->before : frame->before; /* of the first pass */
    memcpy(frame->sd, found->sd, sizeof(frame->sd));
    frame->score = q->n_strips > 1 ? (float)oct_strips_score(strips, q->n_strips) : strips[0].score;
    frame->fate = has_lines              ? OCT_FRAME_USED
                  : isnan(found->before) ? OCT_FRAME_NO_CONTRAST
                  : q->n_strips > 1      ? OCT_FRAME_FEW_STRIPS
                                         : OCT_FRAME_LOW_SCORE;
}

static enum oct_err register_batch(struct oct_sequence *q, struct pass *pass, struct oct_error *err)
{
    struct oct_sequence_frame found[BATCH];
    bool masked = pass->setup.masked;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < pass->n; i++)
        masked = masked || pass->pictures[i].valid;
    if (masked && !pass->setup.masked) {
        pass->setup.masked = true;
        close_estimator(&pass->estimator);
        e = open_estimator(&pass->estimator, &pass->setup, pass->reference, err);
    }
    if (!e)
        e = find_strips(&pass->estimator, pass->pictures, pass->n, pass->strips, found, err);
    for (unsigned i = 0; i < pass->n; i++) {
        if (!e)
            settle(q, pass->numbers[i], pass->strips + (size_t)i * q->n_strips, &found[i]);
        oct_picture_finish(&pass->pictures[i]);
    }
    pass->n = 0;
    return e;
}

static void show(const struct oct_sequence *q, uint64_t done)
{
    if (q->source.progress)
        q->source.progress(q->source.context, done, q->source.n_frames);
}

static enum oct_err register_frames(struct oct_sequence *q, struct pass *pass,
                                    struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; i < q->source.n_frames && !e; i++) {
        if (q->frames[i].fate == OCT_FRAME_SKIPPED)
            continue;
        e = read_cut(q, i, &pass->pictures[pass->n], err);
        if (e)
            break;
        pass->numbers[pass->n++] = i;
        if (pass->n == BATCH) {
            e = register_batch(q, pass, err);
            show(q, i + 1);
        }
    }
    if (!e && pass->n)
        e = register_batch(q, pass, err);
    for (unsigned i = 0; i < pass->n; i++)
        oct_picture_finish(&pass->pictures[i]);
    return e;
}

static enum oct_err run_pass(struct oct_sequence *q, const struct oct_picture *reference,
                             struct oct_error *err)
{
    struct pass pass = {.setup = q->setup, .reference = reference};
    pass.setup.width = reference->width;
    pass.setup.height = reference->height;
    pass.setup.masked = q->setup.masked || reference->valid;
    const size_t n_strips = q->n_strips > 0 ? q->n_strips : 1;
    pass.strips = calloc(BATCH * n_strips, sizeof(*pass.strips));
    enum oct_err e = pass.strips ? open_estimator(&pass.estimator, &pass.setup, reference, err)
                                 : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for strips");
    if (!e)
        e = register_frames(q, &pass, err);
    if (!e) /* at the end: a GPU may have failed */
        q->running = pass.estimator.strips ? oct_strips_running(pass.estimator.strips)
                                           : oct_rigid_running(pass.estimator.workers[0].rigid);
    close_estimator(&pass.estimator);
    free(pass.strips);
    return e;
}

/* ---- the reference's own motion ---- */

static bool raw_lines(struct oct_sequence *q, uint64_t frame, double *dy, double *dx)
{
    return q->frames[frame].fate == OCT_FRAME_USED &&
           oct_strips_lines(q->strips + frame * q->n_strips, q->n_strips, q->rows, q->step,
                            q->first_row, q->setup.height, dy, dx);
}

static uint64_t count_used(const struct oct_sequence *q)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < q->source.n_frames; i++)
        n += q->frames[i].fate == OCT_FRAME_USED;
    return n;
}

static enum oct_err find_motion(struct oct_sequence *q, struct oct_error *err)
{
    uint32_t height = q->setup.height;
    uint64_t n_used = count_used(q), every = n_used / MOST_MOTION_FRAMES + 1, n = 0, seen = 0;
    uint64_t most = n_used / every + 1;
    double *y = calloc(most * height, sizeof(double)), *x = calloc(most * height, sizeof(double));
    double *scratch = calloc(most, sizeof(double));
    q->motion_y = calloc(height, sizeof(double));
    q->motion_x = calloc(height, sizeof(double));
    enum oct_err e = OCT_OK;
    if (!y || !x || !scratch || !q->motion_y || !q->motion_x)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the reference's motion");
    for (uint64_t i = 0; i < q->source.n_frames && !e; i++) {
        if (q->frames[i].fate != OCT_FRAME_USED || seen++ % every)
            continue;
        n += raw_lines(q, i, y + n * height, x + n * height);
    }
    if (!e) {
        oct_reference_motion(y, n, height, scratch, q->motion_y);
        oct_reference_motion(x, n, height, scratch, q->motion_x);
    }
    free(y);
    free(x);
    free(scratch);
    return e;
}

static void forget_motion(struct oct_sequence *q)
{
    free(q->motion_y);
    free(q->motion_x);
    q->motion_y = q->motion_x = NULL;
}

bool oct_sequence_lines(struct oct_sequence *q, uint64_t frame, double *dy, double *dx)
{
    if (!raw_lines(q, frame, dy, dx))
        return false;
    if (q->motion_y) {
        memcpy(q->scratch, dy, q->setup.height * sizeof(double));
        oct_reference_undo(q->motion_y, q->setup.height, q->scratch, dy);
        oct_reference_undo(q->motion_x, q->setup.height, q->scratch, dx);
    }
    return true;
}

/* ---- the average ---- */

static enum oct_err start_canvas(struct oct_sequence *q, struct oct_error *err)
{
    struct oct_render_box box = {.is_set = false};
    const struct oct_sequence_setup *s = &q->setup;
    for (uint64_t i = 0; i < q->source.n_frames; i++)
        if (oct_sequence_lines(q, i, q->dy, q->dx))
            oct_render_grow(&box, s->height, s->width, q->dy, q->dx);
    oct_render_finish(&q->render);
    if (s->common)
        return oct_render_init(&q->render, box.common_y0, box.common_y1, box.common_x0,
                               box.common_x1, s->interpolation, s->as_power, err);
    return oct_render_init(&q->render, box.y0, box.y1, box.x0, box.x1, s->interpolation,
                           s->as_power, err);
}

/* One frame on a canvas of its own, for those who want it. */
struct moved {
    struct oct_render render;
    float *pixels;
    enum oct_err (*take)(void *context, uint64_t frame, const float *pixels, struct oct_error *err);
    void *context;
};

static enum oct_err init_moved(const struct oct_sequence *q, struct moved *moved,
                               struct oct_error *err)
{
    const struct oct_render *r = &q->render;
    enum oct_err e = oct_render_init(
        &moved->render, -r->origin_y, (int32_t)r->height - 1 - r->origin_y, -r->origin_x,
        (int32_t)r->width - 1 - r->origin_x, r->interpolation, r->as_power, err);
    moved->pixels = e ? NULL : malloc((size_t)r->height * r->width * sizeof(float));
    if (!e && !moved->pixels)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a moved frame");
    return e;
}

static enum oct_err render_frame(struct oct_sequence *q, uint64_t frame, struct moved *moved,
                                 struct oct_error *err)
{
    struct oct_picture picture = {0};
    if (!oct_sequence_lines(q, frame, q->dy, q->dx))
        return OCT_OK;
    enum oct_err e = q->source.read(q->source.context, frame, &picture, err);
    if (!e)
        oct_render_add(&q->render, &picture, q->dy, q->dx);
    if (!e && moved->take) {
        oct_render_clear(&moved->render);
        oct_render_add(&moved->render, &picture, q->dy, q->dx);
        oct_render_average(&moved->render, moved->pixels, NULL);
        e = moved->take(moved->context, frame, moved->pixels, err);
    }
    oct_picture_finish(&picture);
    return e;
}

enum oct_err oct_sequence_render(struct oct_sequence *q,
                                 enum oct_err (*take)(void *context, uint64_t frame,
                                                      const float *pixels, struct oct_error *err),
                                 void *context, struct oct_error *err)
{
    struct moved moved = {.take = take, .context = context};
    enum oct_err e = start_canvas(q, err);
    if (!e && take)
        e = init_moved(q, &moved, err);
    for (uint64_t i = 0; i < q->source.n_frames && !e; i++) {
        e = render_frame(q, i, &moved, err);
        show(q, i + 1);
    }
    oct_render_finish(&moved.render);
    free(moved.pixels);
    return e;
}

/* The average where the unmoved frame lies, as the reference of the second pass. */
static enum oct_err average_as_reference(struct oct_sequence *q, struct oct_picture *reference,
                                         struct oct_error *err)
{
    const struct oct_sequence_setup *s = &q->setup;
    struct oct_picture frame = {0};
    struct moved none = {.take = NULL};
    oct_render_finish(&q->render);
    enum oct_err e = oct_render_init(&q->render, 0, (int32_t)s->height - 1, 0,
                                     (int32_t)s->width - 1, s->interpolation, s->as_power, err);
    for (uint64_t i = 0; i < q->source.n_frames && !e; i++)
        e = render_frame(q, i, &none, err);
    if (!e)
        e = oct_picture_init(&frame, s->height, s->width, false, err);
    if (!e) {
        oct_render_average(&q->render, frame.pixels, NULL);
        e = oct_picture_mask_not_finite(&frame, err);
    }
    if (!e)
        e = cut(q, &frame, reference, err);
    oct_picture_finish(&frame);
    return e;
}

/* ---- the whole ---- */

static enum oct_err register_all(struct oct_sequence *q, struct oct_error *err)
{
    struct oct_picture reference = {0};
    enum oct_err e = read_reference(q, &reference, err);
    for (unsigned pass = 0; pass < q->setup.n_passes && !e; pass++) {
        if (pass > 0) {
            oct_picture_finish(&reference);
            e = average_as_reference(q, &reference, err);
            forget_motion(q);
        }
        if (!e)
            e = run_pass(q, &reference, err);
        if (!e && count_used(q) < 2)
            e = oct_fail(err, OCT_E_ARG,
                         "fewer than 2 of %llu frames registered: look at the frames, or try "
                         "--reference, --min-score or --model rigid",
                         (unsigned long long)q->source.n_frames);
        /* The average of the first pass has no motion left. */
        if (!e && pass == 0 && q->setup.model == OCT_SEQUENCE_STRIPS && !q->setup.reference)
            e = find_motion(q, err);
    }
    oct_picture_finish(&reference);
    return e;
}

/* Models that register nothing. */
static enum oct_err take_given(struct oct_sequence *q, struct oct_error *err)
{
    for (uint64_t i = 0; i < q->source.n_frames; i++) {
        struct oct_strip *strips = q->strips + i * q->n_strips;
        if (q->setup.model == OCT_SEQUENCE_GIVEN)
            memcpy(strips, q->setup.given + i * q->n_strips, q->n_strips * sizeof(*strips));
        else
            *strips = (struct oct_strip){.score = NAN, .ok = true};
        if (q->frames[i].fate == OCT_FRAME_USED && !raw_lines(q, i, q->dy, q->dx))
            q->frames[i].fate = OCT_FRAME_NO_SHIFT;
    }
    return count_used(q) ? OCT_OK : oct_fail(err, OCT_E_ARG, "no frame is left");
}

enum oct_err oct_sequence_register(struct oct_sequence *q, const struct oct_sequence_setup *setup,
                                   const struct oct_sequence_source *source, struct oct_error *err)
{
    *q = (struct oct_sequence){.setup = *setup, .source = *source};
    bool registers = setup->model == OCT_SEQUENCE_RIGID || setup->model == OCT_SEQUENCE_STRIPS;
    enum oct_err e = init(q, err);
    if (!e)
        e = registers ? register_all(q, err) : take_given(q, err);
    if (e) {
        oct_sequence_finish(q);
        return e;
    }
    q->n_used = count_used(q);
    for (uint64_t i = 0; i < source->n_frames; i++)
        for (uint32_t k = 0; k < q->n_strips && q->frames[i].fate == OCT_FRAME_USED; k++)
            q->n_strips_dropped += !q->strips[i * q->n_strips + k].ok;
    return OCT_OK;
}
