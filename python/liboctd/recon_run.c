/* The run of a reconstruction: the caller's thread submits B-scans as far as the engine takes them
 * and collects them in order. On the CPU nothing is copied: frames point into the caller's arrays.
 * With a GPU samples and pixels pass through memory that its driver has pinned; a device that hangs
 * may still write there after the run, and never into the caller's arrays. */
#include "python/liboctd/recon.h"

#include <stdlib.h>
#include <string.h>

#define POLL_US 100000u

/* A call, and how far it is: B-scans below `ended` are done, those below `begun` in flight. */
struct call {
    struct octd_recon *recon;
    const uint16_t *spectra;   /* [n][M][N] */
    const uint8_t *line_valid; /* [n][M], or NULL */
    unsigned char *pictures;   /* [n][M][D], or complex values */
    double *limits;            /* [n][2], or NULL */
    uint64_t n, begun, ended;
    size_t samples, picture_bytes; /* of a B-scan */
};

static struct oct_recon_slot *slot_of(const struct call *call, uint64_t i)
{
    struct oct_engine_room *room = &call->recon->room;
    return &room->slots[i % room->depth];
}

/* ---- in ---- */

/* Fills the slot's mask; returns how many A-lines are missing. */
static uint32_t take_mask(const struct call *call, struct oct_recon_slot *slot, uint64_t i)
{
    const uint32_t n_lines = call->recon->room.plan->geometry.n_lines;
    uint32_t n_missing = 0;
    slot->raw.line_valid = slot->line_valid;
    if (!call->line_valid) {
        memset(slot->line_valid, 1, n_lines);
        return 0;
    }
    const uint8_t *mask = call->line_valid + i * n_lines;
    for (uint32_t j = 0; j < n_lines; j++) {
        slot->line_valid[j] = mask[j] != 0;
        n_missing += mask[j] == 0;
    }
    return n_missing;
}

/* Points the raw frame at the B-scan's samples: the caller's own, or the slot's copy, in which
 * those of missing A-lines are zero. */
static enum oct_err take_samples(const struct call *call, struct oct_recon_slot *slot, uint64_t i,
                                 struct oct_error *err)
{
    const struct oct_geometry *g = &call->recon->room.plan->geometry;
    const uint16_t *samples = call->spectra + i * call->samples;
    const bool must_copy = call->recon->room.ops->memory || slot->raw.info.missing_lines > 0;

    slot->raw.spectra = (uint16_t *)samples; /* which engines only read */
    if (!must_copy)
        return OCT_OK;
    if (!slot->spectra)
        slot->spectra = malloc(call->samples * sizeof(*samples));
    if (!slot->spectra)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a B-scan with missing A-lines");
    memcpy(slot->spectra, samples, call->samples * sizeof(*samples));
    for (uint32_t j = 0; slot->raw.info.missing_lines > 0 && j < g->n_lines; j++)
        if (!slot->line_valid[j])
            memset(slot->spectra + (size_t)j * g->n_samples, 0, g->n_samples * sizeof(*samples));
    slot->raw.spectra = slot->spectra;
    return OCT_OK;
}

/* B-scan i of the call as a job in its slot. */
static enum oct_err take_job(const struct call *call, uint64_t i, struct oct_engine_job *job,
                             struct oct_error *err)
{
    struct octd_recon *recon = call->recon;
    struct oct_engine_room *room = &recon->room;
    struct oct_recon_slot *slot = slot_of(call, i);
    const uint64_t number = recon->next + i;

    slot->raw.info = (struct oct_bscan_info){
        .id = number,
        .acquisition = recon->acquisition,
        .number = number,
        .volume = number / recon->volume_bscans,
        .bscan = (uint32_t)(number % recon->volume_bscans),
    };
    slot->raw.info.missing_lines = take_mask(call, slot, i);
    enum oct_err e = take_samples(call, slot, i, err);
    if (e)
        return e;
    slot->image.info = slot->raw.info;
    slot->image.status = OCT_OK;
    if (!room->ops->memory && room->has_complex)
        slot->image.complex_values = (float *)(void *)(call->pictures + i * call->picture_bytes);
    else if (!room->ops->memory)
        slot->image.pixels = call->pictures + i * call->picture_bytes;
    slot->image.values = room->form.type == OCT_SAMPLE_F32 ? slot->image.pixels : NULL;
    if (room->running_dc)
        oct_running_dc_push(room->running_dc, &slot->raw, slot->dc);
    *job = (struct oct_engine_job){
        .in = &slot->raw, .out = &slot->image, .display = room->display, .dc = slot->dc};
    return OCT_OK;
}

/* Submits whole batches as long as there is room for them. */
static enum oct_err submit(struct call *call, struct oct_error *err)
{
    struct oct_engine_room *room = &call->recon->room;
    struct oct_engine_job jobs[64];
    uint64_t most = sizeof(jobs) / sizeof(jobs[0]);
    enum oct_err e = OCT_OK;

    most = room->max_batch < most ? room->max_batch : most;
    while (call->begun < call->n) {
        uint64_t n = call->n - call->begun < most ? call->n - call->begun : most;
        if (call->begun - call->ended + n > room->depth)
            return OCT_OK;
        for (uint64_t k = 0; k < n; k++)
            if ((e = take_job(call, call->begun + k, &jobs[k], err)))
                return e;
        e = room->ops->submit(room->engine, jobs, (unsigned)n);
        if (e)
            return oct_fail(err, e, "the %s engine has failed (%s)", room->ops->name,
                            room->ops->describe(room->engine));
        call->begun += n;
    }
    return OCT_OK;
}

/* ---- out ---- */

/* Puts the lines of B-scan i of the call onto the even grid. */
static void make_even(const struct call *call, uint64_t i, const struct oct_image_frame *done)
{
    const struct octd_recon *recon = call->recon;
    struct oct_image_frame frame = *done;
    const uint64_t number = recon->scan_first + recon->next + i;
    if (recon->scan_bscans > 0)
        frame.info.bscan = (uint32_t)(number % recon->scan_bscans);
    oct_even_lines_apply(recon->room.even, &frame, slot_of(call, i)->line_valid);
}

static enum oct_err collect(struct call *call, struct oct_error *err)
{
    struct oct_engine_room *room = &call->recon->room;
    struct oct_image_frame *done;
    while (room->ops->collect(room->engine, POLL_US, &done) == OCT_E_AGAIN)
        ;
    const uint64_t i = call->ended++; /* jobs come back in the order of submission */
    if (done->status)
        return oct_fail(err, done->status, "the %s engine lost B-scan %llu (%s)", room->ops->name,
                        (unsigned long long)call->recon->next + i,
                        room->ops->describe(room->engine));
    if (room->even)
        make_even(call, i, done);
    if (room->ops->memory)
        memcpy(call->pictures + i * call->picture_bytes,
               room->has_complex ? (void *)done->complex_values : done->pixels,
               call->picture_bytes);
    if (call->limits) {
        call->limits[2 * i] = done->lo;
        call->limits[2 * i + 1] = done->hi;
    }
    return OCT_OK;
}

/* Until all is done, or until the first error and nothing is in flight any more. */
static enum oct_err run(struct call *call, struct oct_error *err)
{
    enum oct_err first = OCT_OK;
    struct oct_error later;
    while (call->ended < call->n) {
        enum oct_err e = first ? OCT_OK : submit(call, err);
        first = first ? first : e;
        if (call->begun == call->ended)
            break;
        e = collect(call, first ? &later : err);
        first = first ? first : e;
    }
    return first;
}

/* ---- the contract's functions ---- */

int octd_recon_begin(struct octd_recon *recon, uint32_t volume_bscans)
{
    if (!recon->room.plan)
        return octd_result_of(
            oct_fail(&recon->err, OCT_E_STATE, "octd_recon_start comes before octd_recon_begin"));
    if (volume_bscans == 0)
        volume_bscans = oct_config_is_set(&recon->config, "scan.bscans") ? recon->config.scan.bscans
                                                                         : UINT32_MAX;
    recon->volume_bscans = volume_bscans;
    recon->acquisition++;
    recon->next = 0;
    recon->scan_bscans = 0;
    recon->scan_first = 0;
    recon->begun = true;
    return OCTD_OK;
}

int octd_recon_scan(struct octd_recon *recon, uint32_t scan_bscans, uint64_t first_bscan)
{
    if (!recon->room.plan || !recon->begun)
        return octd_result_of(
            oct_fail(&recon->err, OCT_E_STATE, "octd_recon_begin comes before octd_recon_scan"));
    recon->scan_bscans = scan_bscans;
    recon->scan_first = scan_bscans > 0 ? first_bscan % scan_bscans : 0;
    return OCTD_OK;
}

int octd_recon_skip(struct octd_recon *recon, uint64_t n_bscans)
{
    if (!recon->room.plan || !recon->begun)
        return octd_result_of(
            oct_fail(&recon->err, OCT_E_STATE, "octd_recon_begin comes before octd_recon_skip"));
    recon->next += n_bscans;
    return OCTD_OK;
}

static enum oct_err check_call(const struct call *call, size_t pictures_bytes,
                               struct oct_error *err)
{
    const struct oct_geometry *g = &call->recon->room.plan->geometry;
    if (call->n > SIZE_MAX / 8 / call->samples || call->n > SIZE_MAX / 8 / call->picture_bytes)
        return oct_fail(err, OCT_E_ARG, "%llu B-scans at once are too many",
                        (unsigned long long)call->n);
    if (call->n > 0 && (!call->spectra || !call->pictures))
        return oct_fail(err, OCT_E_ARG, "no spectra, or nowhere to put pictures");
    if (pictures_bytes != call->n * call->picture_bytes)
        return oct_fail(err, OCT_E_ARG,
                        "room of %zu bytes for pictures: %llu B-scans of %u lines and %u depths "
                        "are %llu",
                        pictures_bytes, (unsigned long long)call->n, g->n_lines, g->depth,
                        (unsigned long long)call->n * call->picture_bytes);
    if ((uintptr_t)call->spectra % sizeof(uint16_t) || (uintptr_t)call->limits % sizeof(double) ||
        (call->picture_bytes > (size_t)g->n_lines * g->depth &&
         (uintptr_t)call->pictures % sizeof(float)))
        return oct_fail(err, OCT_E_ARG,
                        "spectra, pictures or limits are not aligned as their "
                        "type is");
    return OCT_OK;
}

int octd_recon_run(struct octd_recon *recon, const uint16_t *spectra, const uint8_t *line_valid,
                   uint64_t n_bscans, void *pictures, size_t pictures_bytes, double *limits)
{
    if (oct_recon_check_process(recon))
        return OCTD_E_STATE;
    if (!recon->room.plan || !recon->begun)
        return octd_result_of(oct_fail(&recon->err, OCT_E_STATE,
                                       "octd_recon_start and octd_recon_begin come before "
                                       "octd_recon_run"));
    const struct oct_geometry *g = &recon->room.plan->geometry;
    struct call call = {
        .recon = recon,
        .spectra = spectra,
        .line_valid = line_valid,
        .pictures = pictures,
        .limits = limits,
        .n = n_bscans,
        .samples = (size_t)g->n_lines * g->n_samples,
        .picture_bytes = oct_engine_room_bytes(&recon->room),
    };
    enum oct_err e = check_call(&call, pictures_bytes, &recon->err);
    if (!e && (e = run(&call, &recon->err)))
        recon->begun = false; /* what went before is no longer whole */
    else if (!e)
        recon->next += n_bscans;
    return octd_result_of(e);
}
