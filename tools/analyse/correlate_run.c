#include "tools/analyse/correlate_run.h"

#include "analysis/correlate/exact.h"
#include "analysis/correlate/flatten.h"
#include "kernels/device/workers.h"

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
    float *c2d;
    int64_t *sums;
    double *c1d;
    struct oct_pictures_info info;
    struct oct_ring_peak peak;
    enum oct_err code;
    struct oct_error err;
    bool left_out; /* err says why */
};

struct run {
    const struct oct_correlate_setup *setup;
    struct oct_correlator_setup engine;
    const struct oct_correlator_ops *ops; /* of `gpu` */
    struct oct_correlator *gpu;           /* NULL: the CPU, a correlator a lane */
    bool pairs;                           /* a g for each f */
    struct oct_picture reference;         /* the one g; empty: none */
    struct oct_workers *workers;          /* NULL: this thread alone */
    struct lane *lanes;
    unsigned n_lanes;
    struct slot *slots;
    struct oct_picture *pictures; /* [n_slots] f */
    unsigned n_slots, n_batch;    /* of this batch */
    uint64_t first;               /* picture of slot 0 */
    uint64_t n_taken;             /* pictures that were not left out */
    struct oct_error none;        /* why the first one was left out */
    double *radius;
    uint32_t *shifts;
};

/* ---- one picture ---- */

static enum oct_err read_picture(const struct run *r, struct oct_pictures *pictures, uint64_t frame,
                                 struct oct_picture *picture, struct oct_pictures_info *info,
                                 struct oct_error *err)
{
    enum oct_err e = oct_pictures_read(pictures, frame, picture, info, err);
    if (e == OCT_OK && r->setup->flatten_px > 0)
        e = oct_picture_flatten(picture, r->setup->flatten_px, err);
    if (e)
        oct_picture_finish(picture);
    return e;
}

/* Says of which picture the text in *err speaks. */
static enum oct_err name_picture(const struct run *r, const struct oct_pictures_info *info,
                                 enum oct_err code, struct oct_error *err)
{
    char text[OCT_ERROR_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s", err->text);
    if (oct_pictures_count(r->setup->pictures) == 1)
        return oct_fail(err, code, "%s: %s", info->path, text);
    return oct_fail(err, code, "%s: frame %" PRIu64 ": %s", info->path, info->frame, text);
}

static enum oct_err open_lane(const struct run *r, struct lane *lane, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!lane->pictures)
        e = oct_pictures_share(&lane->pictures, r->setup->pictures, err);
    if (e == OCT_OK && r->pairs && !lane->with)
        e = oct_pictures_share(&lane->with, r->setup->with, err);
    if (e || r->gpu || lane->correlator || lane->exact)
        return e;
    if (r->setup->exact)
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
    if (r->setup->exact) {
        const struct oct_picture *g = r->pairs ? &slot->g : r->reference.pixels ? &r->reference : f;
        return oct_exact_correlation(lane->exact, f, g, slot->sums, slot->c2d, err);
    }
    enum oct_err e =
        r->pairs ? oct_correlator_cpu.set_reference(lane->correlator, &slot->g, err) : OCT_OK;
    return e ? e : oct_correlator_cpu.run(lane->correlator, f, 1, slot->c2d, &which, err);
}

static void find_peak(const struct run *r, struct slot *slot)
{
    oct_profile(slot->c2d, r->setup->max_shift, NULL, NULL, slot->c1d);
    slot->peak =
        oct_profile_first_ring(r->radius, slot->c1d, r->setup->max_shift, OCT_PROFILE_PROMINENCE);
}

/* What a picture without contrast gives. */
static void leave_out(const struct run *r, struct slot *slot)
{
    const size_t side = 2 * (size_t)r->setup->max_shift + 1;
    slot->left_out = true;
    slot->peak =
        (struct oct_ring_peak){.radius_px = NAN, .c = NAN, .trough_px = NAN, .height = NAN};
    for (size_t i = 0; i < side * side; i++)
        slot->c2d[i] = NAN;
    for (uint32_t i = 0; i <= r->setup->max_shift; i++)
        slot->c1d[i] = NAN;
    if (slot->sums)
        memset(slot->sums, 0, side * side * sizeof(*slot->sums));
}

/* `code` is that of a correlation, which slot->err explains. */
static enum oct_err judge(const struct run *r, struct slot *slot, enum oct_err code)
{
    slot->left_out = false;
    if (code == OCT_E_ARG)
        leave_out(r, slot);
    else if (code)
        return name_picture(r, &slot->info, code, &slot->err);
    else
        find_peak(r, slot);
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
        slot->code = read_picture(r, lane->pictures, frame, f, &slot->info, &slot->err);
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
        e = r->ops->run(r->gpu, r->pictures, r->n_batch, r->slots[0].c2d, &which, err);
    const bool one_by_one = e == OCT_E_ARG;
    for (unsigned i = 0; one_by_one && i < r->n_batch && (!e || e == OCT_E_ARG); i++) {
        struct slot *slot = &r->slots[i];
        e = r->pairs ? r->ops->set_reference(r->gpu, &slot->g, &slot->err) : OCT_OK;
        if (!e)
            e = r->ops->run(r->gpu, &r->pictures[i], 1, slot->c2d, &which, &slot->err);
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
        const struct oct_correlate_result result = {
            .info = slot->info,
            .left_out = slot->left_out ? slot->err.text : NULL,
            .peak = slot->peak,
            .c1d = slot->c1d,
            .c2d = slot->c2d,
            .sums = slot->sums,
            .radius = r->radius,
            .shifts = r->shifts,
        };
        r->n_taken += !slot->left_out;
        if (slot->left_out && slot->info.frame == 0) {
            r->none = slot->err;
            name_picture(r, &slot->info, OCT_E_ARG, &r->none);
        }
        e = r->setup->take(r->setup->context, &result, err);
    }
    return e;
}

static enum oct_err run_batches(struct run *r, struct oct_error *err)
{
    const uint64_t n = oct_pictures_count(r->setup->pictures);
    for (r->first = 0; r->first < n; r->first += r->n_batch) {
        r->n_batch = n - r->first < r->n_slots ? (unsigned)(n - r->first) : r->n_slots;
        enum oct_err e = run_batch(r, err);
        if (e)
            return e;
        if (r->setup->cancel && *r->setup->cancel)
            return oct_fail(err, OCT_E_STATE, "interrupted at picture %" PRIu64 " of %" PRIu64,
                            r->first + r->n_batch, n);
    }
    return r->n_taken > 0 ? OCT_OK : oct_fail(err, OCT_E_ARG, "%s", r->none.text);
}

/* ---- setting up ---- */

/* The engine that `backend` names; the CPU's are made by the lanes. */
static enum oct_err choose_engine(struct run *r, char *why, size_t why_bytes, struct oct_error *err)
{
    if (r->setup->exact) {
        snprintf(why, why_bytes, "exact sums on cpu");
        return OCT_OK;
    }
    struct oct_correlator *correlator;
    enum oct_err e = oct_correlator_select(&r->ops, &correlator, r->setup->backend, &r->engine, why,
                                           why_bytes, err);
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
    const struct oct_correlate_setup *s = r->setup;
    if (!s->with || r->pairs)
        return OCT_OK;
    enum oct_err e = read_picture(r, s->with, 0, &r->reference, &info, err);
    if (e || s->exact)
        return e;
    struct oct_correlator *correlator = r->gpu ? r->gpu : r->lanes[r->n_lanes - 1].correlator;
    e = r->ops->set_reference(correlator, &r->reference, err);
    if (e) {
        char text[OCT_ERROR_TEXT_BYTES];
        snprintf(text, sizeof(text), "%s", err ? err->text : "");
        oct_fail(err, e, "%s: %s", info.path, text);
    }
    return e;
}

/* As many lanes as there are cores, pictures, and memory for them. */
static enum oct_err start_workers(struct run *r, struct oct_error *err)
{
    const uint64_t n = oct_pictures_count(r->setup->pictures);
    const uint64_t bytes = (uint64_t)r->engine.height * r->engine.width * LANE_BYTES_A_PIXEL;
    if (n > 1 && 2 * bytes <= MOST_LANE_BYTES) {
        enum oct_err e = oct_workers_create(&r->workers, 0, err);
        if (e)
            return e;
        /* The caller is a lane too. */
        const uint64_t room = MOST_LANE_BYTES / bytes;
        unsigned n_threads = oct_workers_n_threads(r->workers);
        if (n_threads > room || n_threads > n) {
            n_threads = (unsigned)(room < n ? room : n);
            oct_workers_destroy(r->workers);
            r->workers = NULL;
            e = oct_workers_create(&r->workers, n_threads, err);
            if (e)
                return e;
        }
    }
    r->n_lanes = r->workers ? oct_workers_n_threads(r->workers) + 1 : 1;
    r->lanes = calloc(r->n_lanes, sizeof(*r->lanes));
    return r->lanes ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

static enum oct_err make_slots(struct run *r, struct oct_error *err)
{
    const uint64_t n = oct_pictures_count(r->setup->pictures);
    const size_t side = 2 * (size_t)r->setup->max_shift + 1, n_bins = r->setup->max_shift + 1;
    const size_t bytes = side * side * (r->setup->exact ? 12 : 4);
    uint64_t n_slots = MOST_SLOT_BYTES / bytes;
    const uint64_t wanted = r->gpu ? GPU_BATCH : (uint64_t)SLOTS_A_LANE * r->n_lanes;
    n_slots = n_slots < 1 ? 1 : n_slots > wanted ? wanted : n_slots;
    r->n_slots = (unsigned)(n_slots < n ? n_slots : n);
    r->slots = calloc(r->n_slots, sizeof(*r->slots));
    r->pictures = calloc(r->n_slots, sizeof(*r->pictures));
    r->radius = calloc(n_bins, sizeof(*r->radius));
    r->shifts = calloc(n_bins, sizeof(*r->shifts));
    float *c2d = malloc(r->n_slots * side * side * sizeof(*c2d));
    double *c1d = malloc(r->n_slots * n_bins * sizeof(*c1d));
    int64_t *sums = r->setup->exact ? malloc(r->n_slots * side * side * sizeof(*sums)) : NULL;
    if (!r->slots || !r->pictures || !r->radius || !r->shifts || !c2d || !c1d ||
        (r->setup->exact && !sums)) {
        free(c2d);
        free(c1d);
        free(sums);
        free(r->slots);
        r->slots = NULL;
        r->n_slots = 0;
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for shifts to %u",
                        r->setup->max_shift);
    }
    for (unsigned i = 0; i < r->n_slots; i++) {
        r->slots[i].c2d = c2d + i * side * side;
        r->slots[i].c1d = c1d + i * n_bins;
        r->slots[i].sums = sums ? sums + i * side * side : NULL;
    }
    memset(c2d, 0, side * side * sizeof(*c2d)); /* radius and shifts are those of any picture */
    oct_profile(c2d, r->setup->max_shift, r->radius, r->shifts, c1d);
    return OCT_OK;
}

static void finish(struct run *r)
{
    free_pictures(r);
    oct_workers_destroy(r->workers);
    for (unsigned i = 0; r->lanes && i < r->n_lanes; i++) {
        oct_correlator_cpu.destroy(r->lanes[i].correlator);
        oct_exact_destroy(r->lanes[i].exact);
        oct_pictures_close(r->lanes[i].pictures);
        oct_pictures_close(r->lanes[i].with);
    }
    if (r->gpu)
        r->ops->destroy(r->gpu);
    if (r->slots) {
        free(r->slots[0].c2d);
        free(r->slots[0].c1d);
        free(r->slots[0].sums);
    }
    oct_picture_finish(&r->reference);
    free(r->slots);
    free(r->pictures);
    free(r->radius);
    free(r->shifts);
    free(r->lanes);
}

enum oct_err oct_correlate_run(const struct oct_correlate_setup *setup, char *why, size_t why_bytes,
                               struct oct_error *err)
{
    struct run r = {.setup = setup};
    const uint64_t n = oct_pictures_count(setup->pictures);
    r.pairs = setup->with && oct_pictures_count(setup->with) > 1;
    r.engine = (struct oct_correlator_setup){
        .max_dy = setup->max_shift,
        .max_dx = setup->max_shift,
        .norm = setup->norm,
        .keep_mean = setup->keep_mean,
        .masked = true,
        .measure = n >= 100,
        .min_overlap = setup->norm == OCT_CORRELATION_ZNCC ? LEAST_OVERLAP : 0,
        .n_batch = r.pairs         ? 1
                   : n < GPU_BATCH ? (unsigned)n
                                   : GPU_BATCH,
        .gpus = setup->gpus,
    };
    oct_pictures_size(setup->pictures, 0, &r.engine.height, &r.engine.width);
    r.engine.g_height = r.engine.height;
    r.engine.g_width = r.engine.width;
    if (setup->with)
        oct_pictures_size(setup->with, 0, &r.engine.g_height, &r.engine.g_width);
    enum oct_err e = start_workers(&r, err);
    if (e == OCT_OK)
        e = choose_engine(&r, why, why_bytes, err);
    if (e == OCT_OK)
        e = make_slots(&r, err);
    if (e == OCT_OK)
        e = read_reference(&r, err);
    if (e == OCT_OK)
        e = run_batches(&r, err);
    finish(&r);
    return e;
}
