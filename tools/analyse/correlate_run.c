#include "tools/analyse/correlate.h"

#include "analysis/correlate/exact.h"
#include "analysis/correlate/flatten.h"
#include "kernels/device/workers.h"
#include "tools/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SLOT_BYTES ((uint64_t)512 << 20) /* results that wait to be handed over */
#define MOST_LANE_BYTES ((uint64_t)4 << 30)   /* pictures and spectra of all lanes, about */
#define LANE_BYTES_A_PIXEL 64u
#define GPU_BATCH 32u
#define SLOTS_A_LANE 4u
#define LEAST_OVERLAP 0.3 /* of zncc: part of the largest; below it chance maxima are high */

/* What one thread works with; made when it first has a picture. */
struct lane {
    struct oct_pictures *pictures, *with;
    struct oct_correlator *correlator; /* of the CPU */
    struct oct_exact *exact;
};

/* One picture under way. */
struct slot {
    struct oct_picture g;
    struct oct_correlate_result result;
    enum oct_err code;
    struct oct_error err;
};

struct run {
    struct oct_correlate_job *c;
    struct oct_correlator_setup engine;
    const struct oct_correlator_ops *ops; /* of `gpu` */
    struct oct_correlator *gpu;           /* NULL: the CPU, a correlator a lane */
    bool pairs;                           /* a g for each f */
    struct oct_picture reference;         /* the one g; empty: none */
    struct oct_workers *workers;          /* the job's; NULL: this thread alone */
    struct lane *lanes;
    unsigned n_lanes;
    struct slot *slots;
    struct oct_picture *pictures; /* [n_slots] f */
    unsigned n_slots, n_batch;    /* of this batch */
    uint64_t first;               /* picture of slot 0 */
    uint64_t n_taken;             /* pictures that were not left out */
    struct oct_error none;        /* why the first one was left out */
};

/* ---- one picture ---- */

static enum oct_err read_picture(const struct run *r, struct oct_pictures *pictures, uint64_t frame,
                                 struct oct_picture *picture, struct oct_pictures_info *info,
                                 struct oct_error *err)
{
    enum oct_err e = oct_pictures_read(pictures, frame, picture, info, err);
    if (e == OCT_OK && r->c->given.flatten > 0)
        e = oct_picture_flatten(picture, r->c->given.flatten, err);
    if (e)
        oct_picture_finish(picture);
    return e;
}

/* Says of which picture the text in *err speaks; r NULL: of which file alone. */
static enum oct_err name_picture(const struct run *r, const struct oct_pictures_info *info,
                                 enum oct_err code, struct oct_error *err)
{
    char text[OCT_ERROR_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s", err->text);
    if (!r || r->c->n == 1)
        return oct_fail(err, code, "%s: %s", info->path, text);
    return oct_fail(err, code, "%s: frame %" PRIu64 ": %s", info->path, info->frame, text);
}

static enum oct_err open_lane(const struct run *r, struct lane *lane, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!lane->pictures)
        e = oct_pictures_share(&lane->pictures, r->c->pictures, err);
    if (e == OCT_OK && r->pairs && !lane->with)
        e = oct_pictures_share(&lane->with, r->c->with, err);
    if (e || r->gpu || lane->correlator || lane->exact)
        return e;
    if (r->c->given.exact)
        return oct_exact_create(&lane->exact, &r->engine, err);
    e = oct_correlator_cpu.create(&lane->correlator, &r->engine, err);
    if (e == OCT_OK && r->reference.pixels)
        e = oct_correlator_cpu.set_reference(lane->correlator, &r->reference, err);
    return e;
}

static enum oct_err correlate(const struct run *r, struct lane *lane, struct slot *slot,
                              const struct oct_picture *f, struct oct_error *err)
{
    unsigned which;
    if (r->c->given.exact) {
        const struct oct_picture *g = r->pairs ? &slot->g : r->reference.pixels ? &r->reference : f;
        return oct_exact_correlation(lane->exact, f, g, slot->result.sums, slot->result.c2d, err);
    }
    enum oct_err e =
        r->pairs ? oct_correlator_cpu.set_reference(lane->correlator, &slot->g, err) : OCT_OK;
    return e ? e : oct_correlator_cpu.run(lane->correlator, f, 1, slot->result.c2d, &which, err);
}

static void find_peak(const struct run *r, struct oct_correlate_result *result)
{
    oct_profile(result->c2d, r->c->max_shift, NULL, NULL, result->c1d);
    result->peak =
        oct_profile_first_ring(r->c->radius, result->c1d, r->c->max_shift, OCT_PROFILE_PROMINENCE);
}

/* What a picture without contrast gives. */
static void leave_out(const struct run *r, struct oct_correlate_result *result)
{
    const size_t side = 2 * (size_t)r->c->max_shift + 1;
    result->peak =
        (struct oct_ring_peak){.radius_px = NAN, .c = NAN, .trough_px = NAN, .height = NAN};
    for (size_t i = 0; i < side * side; i++)
        result->c2d[i] = NAN;
    for (uint32_t i = 0; i <= r->c->max_shift; i++)
        result->c1d[i] = NAN;
    if (result->sums)
        memset(result->sums, 0, side * side * sizeof(*result->sums));
}

/* `code` is that of a correlation, which slot->err explains. */
static enum oct_err judge(const struct run *r, struct slot *slot, enum oct_err code)
{
    slot->result.left_out = code == OCT_E_ARG ? slot->err.text : NULL;
    if (code == OCT_E_ARG)
        leave_out(r, &slot->result);
    else if (code)
        return name_picture(r, &slot->result.info, code, &slot->err);
    else
        find_peak(r, &slot->result);
    return OCT_OK;
}

/* A piece of the pool's work. */
static void work(void *context, unsigned piece, unsigned worker)
{
    struct run *r = context;
    struct lane *lane = &r->lanes[worker];
    struct slot *slot = &r->slots[piece];
    struct oct_picture *f = &r->pictures[piece];
    const uint64_t frame = r->first + piece;

    slot->code = open_lane(r, lane, &slot->err);
    if (slot->code == OCT_OK)
        slot->code = read_picture(r, lane->pictures, frame, f, &slot->result.info, &slot->err);
    if (slot->code == OCT_OK && r->pairs)
        slot->code = read_picture(r, lane->with, frame, &slot->g, NULL, &slot->err);
    if (slot->code || r->gpu)
        return;
    slot->code = judge(r, slot, correlate(r, lane, slot, f, &slot->err));
}

static void work_on_profile(void *context, unsigned piece, unsigned worker)
{
    struct run *r = context;
    struct slot *slot = &r->slots[piece];
    (void)worker;
    slot->code = judge(r, slot, slot->code);
}

/* ---- a batch ---- */

static void free_pictures(struct run *r)
{
    for (unsigned i = 0; i < r->n_slots; i++) {
        oct_picture_finish(&r->pictures[i]);
        oct_picture_finish(&r->slots[i].g);
    }
}

/* The c2d of the slots lie one behind the other. A picture without contrast fails the batch, which
 * is then computed picture by picture. */
static enum oct_err run_on_gpu(struct run *r, struct oct_error *err)
{
    unsigned which;
    enum oct_err e = OCT_E_ARG;
    if (!r->pairs)
        e = r->ops->run(r->gpu, r->pictures, r->n_batch, r->slots[0].result.c2d, &which, err);
    const bool one_by_one = e == OCT_E_ARG;
    for (unsigned i = 0; one_by_one && i < r->n_batch && (!e || e == OCT_E_ARG); i++) {
        struct slot *slot = &r->slots[i];
        e = r->pairs ? r->ops->set_reference(r->gpu, &slot->g, &slot->err) : OCT_OK;
        if (!e)
            e = r->ops->run(r->gpu, &r->pictures[i], 1, slot->result.c2d, &which, &slot->err);
        slot->code = e;
        if (e && e != OCT_E_ARG && err)
            *err = slot->err;
    }
    if (e && e != OCT_E_ARG)
        return e;
    oct_workers_run(r->workers, r->n_batch, work_on_profile, r);
    return OCT_OK;
}

static enum oct_err run_batch(struct run *r, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    oct_workers_run(r->workers, r->n_batch, work, r);
    for (unsigned i = 0; e == OCT_OK && i < r->n_batch; i++)
        if ((e = r->slots[i].code) != OCT_OK && err)
            *err = r->slots[i].err;
    if (e == OCT_OK && r->gpu)
        e = run_on_gpu(r, err);
    free_pictures(r);
    for (unsigned i = 0; e == OCT_OK && i < r->n_batch; i++) {
        struct slot *slot = &r->slots[i];
        r->n_taken += !slot->result.left_out;
        if (slot->result.left_out && slot->result.info.frame == 0) {
            r->none = slot->err;
            name_picture(r, &slot->result.info, OCT_E_ARG, &r->none);
        }
        e = oct_correlate_add(r->c, &slot->result, err);
    }
    return e;
}

static enum oct_err run_batches(struct run *r, struct oct_error *err)
{
    const uint64_t n = r->c->n;
    for (r->first = 0; r->first < n; r->first += r->n_batch) {
        r->n_batch = n - r->first < r->n_slots ? (unsigned)(n - r->first) : r->n_slots;
        enum oct_err e = run_batch(r, err);
        if (e)
            return e;
        if (*r->c->job.cancel)
            return oct_fail(err, OCT_E_STATE, "interrupted at picture %" PRIu64 " of %" PRIu64,
                            r->first + r->n_batch, n);
    }
    return r->n_taken > 0 ? OCT_OK : oct_fail(err, OCT_E_ARG, "%s", r->none.text);
}

/* ---- setting up ---- */

/* The engine that --backend names; the CPU's are made by the lanes. */
static enum oct_err choose_engine(struct run *r, struct oct_error *err)
{
    struct oct_correlate_job *c = r->c;
    if (c->given.exact) {
        snprintf(c->why, sizeof(c->why), "exact sums on cpu");
        return OCT_OK;
    }
    struct oct_correlator *correlator;
    const enum oct_err e = oct_correlator_select(&r->ops, &correlator, c->job.backend, &r->engine,
                                                 c->why, sizeof(c->why), err);
    if (e)
        return e;
    if (r->ops != &oct_correlator_cpu)
        r->gpu = correlator;
    else
        r->lanes[r->n_lanes - 1].correlator = correlator; /* this thread's */
    return OCT_OK;
}

static enum oct_err read_reference(struct run *r, struct oct_error *err)
{
    struct oct_pictures_info info;
    if (!r->c->with || r->pairs)
        return OCT_OK;
    enum oct_err e = read_picture(r, r->c->with, 0, &r->reference, &info, err);
    if (e || r->c->given.exact)
        return e;
    struct oct_correlator *correlator = r->gpu ? r->gpu : r->lanes[r->n_lanes - 1].correlator;
    e = r->ops->set_reference(correlator, &r->reference, err);
    return e ? name_picture(NULL, &info, e, err) : OCT_OK;
}

/* As many lanes as there are cores, pictures, and memory for them; the caller is one, too. */
static enum oct_err choose_lanes(struct run *r, struct oct_error *err)
{
    struct oct_workers **workers = &r->c->job.workers;
    const uint64_t bytes = (uint64_t)r->engine.height * r->engine.width * LANE_BYTES_A_PIXEL;
    const uint64_t n = r->c->n, room = MOST_LANE_BYTES / bytes;
    uint64_t n_threads = oct_workers_n_threads(*workers);
    if (n == 1 || room < 2)
        n_threads = 0;
    else if (n_threads > room || n_threads > n)
        n_threads = room < n ? room : n;
    enum oct_err e = OCT_OK;
    if (n_threads != oct_workers_n_threads(*workers)) {
        oct_workers_destroy(*workers);
        *workers = NULL;
        if (n_threads > 0)
            e = oct_workers_create(workers, (unsigned)n_threads, err);
    }
    r->workers = *workers;
    r->n_lanes = (unsigned)n_threads + 1;
    r->lanes = oct_alloc(r->n_lanes, sizeof(*r->lanes));
    return e;
}

static void make_slots(struct run *r)
{
    const uint64_t n = r->c->n;
    const size_t plane = (2 * (size_t)r->c->max_shift + 1) * (2 * (size_t)r->c->max_shift + 1);
    const size_t n_bins = (size_t)r->c->max_shift + 1;
    uint64_t n_slots = MOST_SLOT_BYTES / (plane * (r->c->given.exact ? 12 : 4));
    const uint64_t wanted = r->gpu ? GPU_BATCH : (uint64_t)SLOTS_A_LANE * r->n_lanes;
    n_slots = n_slots < 1 ? 1 : n_slots > wanted ? wanted : n_slots;
    r->n_slots = (unsigned)(n_slots < n ? n_slots : n);
    r->slots = oct_alloc(r->n_slots, sizeof(*r->slots));
    r->pictures = oct_alloc(r->n_slots, sizeof(*r->pictures));
    float *c2d = oct_alloc(r->n_slots * plane, sizeof(*c2d));
    double *c1d = oct_alloc(r->n_slots * n_bins, sizeof(*c1d));
    int64_t *sums = r->c->given.exact ? oct_alloc(r->n_slots * plane, sizeof(*sums)) : NULL;
    for (unsigned i = 0; i < r->n_slots; i++) {
        r->slots[i].result = (struct oct_correlate_result){
            .c2d = c2d + i * plane,
            .c1d = c1d + i * n_bins,
            .sums = sums ? sums + i * plane : NULL,
        };
    }
}

static void finish_run(struct run *r)
{
    free_pictures(r);
    for (unsigned i = 0; i < r->n_lanes; i++) {
        oct_correlator_cpu.destroy(r->lanes[i].correlator);
        oct_exact_destroy(r->lanes[i].exact);
        oct_pictures_close(r->lanes[i].pictures);
        oct_pictures_close(r->lanes[i].with);
    }
    if (r->gpu)
        r->ops->destroy(r->gpu);
    if (r->slots) {
        free(r->slots[0].result.c2d);
        free(r->slots[0].result.c1d);
        free(r->slots[0].result.sums);
    }
    oct_picture_finish(&r->reference);
    free(r->slots);
    free(r->pictures);
    free(r->lanes);
}

enum oct_err oct_correlate_run(struct oct_correlate_job *c, struct oct_error *err)
{
    struct run r = {.c = c, .pairs = c->with && oct_pictures_count(c->with) > 1};
    r.engine = (struct oct_correlator_setup){
        .height = c->height,
        .width = c->width,
        .g_height = c->height,
        .g_width = c->width,
        .max_dy = c->max_shift,
        .max_dx = c->max_shift,
        .norm = c->choice.norm,
        .keep_mean = c->choice.mean == 1,
        .masked = true,
        .min_overlap = c->choice.norm == OCT_CORRELATION_ZNCC ? LEAST_OVERLAP : 0,
        .n_batch = r.pairs            ? 1
                   : c->n < GPU_BATCH ? (unsigned)c->n
                                      : GPU_BATCH,
        .gpus = c->job.gpus,
    };
    if (c->with)
        oct_pictures_size(c->with, 0, &r.engine.g_height, &r.engine.g_width);
    enum oct_err e = choose_lanes(&r, err);
    if (!e)
        e = choose_engine(&r, err);
    if (!e) {
        make_slots(&r);
        e = read_reference(&r, err);
    }
    if (!e)
        e = run_batches(&r, err);
    finish_run(&r);
    return e;
}
