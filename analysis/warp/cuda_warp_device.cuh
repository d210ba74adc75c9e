/* A registration on a stream: its tables and memory, and the work that is queued. Nothing here
 * waits for the device but make.
 *
 *     make -> { queue_level -> { queue_energy, queue_velocity -> queue_step } ... }
 *
 * All memory is the stream's. There are three fields of three components: the displacement, the
 * velocity, and the trial, which is the scratch of the velocity's smoothing before. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_DEVICE_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_DEVICE_CUH

#include "analysis/warp/cuda_warp_levels.cuh"
#include "analysis/warp/cuda_warp_step.cuh"
#include "kernels/device/cuda_stream.cuh"

#include <algorithm>
#include <cstring>
#include <utility>

#define OCT_WARP_STAGE_BYTES ((size_t)32 << 20) /* pinned, at most */
#define OCT_WARP_CHECK_BLOCKS 1024u
#define OCT_WARP_MOST_FACTOR 64u

enum oct_warp_rooms {
    OCT_WARP_FIXED,
    OCT_WARP_MOVING,
    OCT_WARP_MASK,
    OCT_WARP_FIELD, /* and the next two */
    OCT_WARP_WARPED = OCT_WARP_FIELD + 3,
    OCT_WARP_CHANGE,
    OCT_WARP_LEVEL_FIXED, /* of factors above 1 */
    OCT_WARP_LEVEL_MOVING,
    OCT_WARP_PARTS,
    OCT_WARP_LONGEST, /* |v| */
    OCT_WARP_RESULTS,
    OCT_WARP_COURSE,
    OCT_WARP_ALL_TAPS,
    OCT_WARP_ROOMS
};

/* In host memory, as it is uploaded. */
struct oct_warp_tables {
    float gauss[3][OCT_WARP_TAPS];
    float level[OCT_WARP_LEVEL_TAPS(OCT_WARP_MOST_FACTOR)];
};

struct oct_warp_device {
    struct oct_cuda_stream *stream;
    struct oct_warp_grid grid;
    struct oct_warp_params params;
    struct oct_warp_box finest, box; /* box: of the level */
    unsigned factor;                 /* of the level; 0: none yet */
    void *d_rooms[OCT_WARP_ROOMS];
    float *u, *v, *trial;
    float *fixed, *moving; /* of the level */
    struct oct_warp_taps taps[3];
    struct oct_warp_tile tiles[2]; /* along B-scans and A-lines */
    struct oct_warp_span span;
    struct oct_warp_sums *d_parts;
    struct oct_warp_result *d_results, *h_results; /* [OCT_WARP_BATCH] */
    struct oct_warp_course *d_course;
    struct oct_warp_tables *h_tables, *d_tables;
    uint8_t *h_stage;
    size_t stage_bytes;
};

/* ---- shapes ---- */

static inline struct oct_warp_box oct_warp_box_of(const struct oct_warp_grid &grid, unsigned factor)
{
    const double *s = grid.spacing, least = std::min(s[0], std::min(s[1], s[2]));
    struct oct_warp_box box = {};
    oct_warp_level_dims(grid.dims, factor, box.side);
    box.step[2] = 1;
    box.step[1] = box.side[2];
    box.step[0] = box.side[1] * box.side[2];
    box.n = (size_t)box.side[0] * box.step[0];
    for (int i = 0; i < 3; i++) {
        box.units[i] = (float)(s[i] / least);
        box.per[i] = (float)(least / s[i]);
    }
    return box;
}

static inline void oct_warp_room_bytes(const struct oct_warp_setup *setup,
                                       size_t bytes[OCT_WARP_ROOMS])
{
    const struct oct_warp_box box = oct_warp_box_of(setup->grid, 1);
    const size_t volume = box.n * sizeof(float);
    size_t level = 0;
    for (unsigned i = 0; i < setup->params.n_levels; i++)
        if (setup->params.factor[i] > 1)
            level = std::max(level, oct_warp_box_of(setup->grid, setup->params.factor[i]).n);
    bytes[OCT_WARP_FIXED] = bytes[OCT_WARP_MOVING] = volume;
    bytes[OCT_WARP_WARPED] = bytes[OCT_WARP_CHANGE] = volume;
    bytes[OCT_WARP_MASK] = box.n;
    for (int i = 0; i < 3; i++)
        bytes[OCT_WARP_FIELD + i] = 3 * volume;
    bytes[OCT_WARP_LEVEL_FIXED] = bytes[OCT_WARP_LEVEL_MOVING] =
        std::max(level, (size_t)1) * sizeof(float);
    bytes[OCT_WARP_PARTS] = oct_warp_energy_blocks(box) * sizeof(struct oct_warp_sums);
    bytes[OCT_WARP_LONGEST] = sizeof(float);
    bytes[OCT_WARP_RESULTS] = OCT_WARP_BATCH * sizeof(struct oct_warp_result);
    bytes[OCT_WARP_COURSE] = sizeof(struct oct_warp_course);
    bytes[OCT_WARP_ALL_TAPS] = sizeof(struct oct_warp_tables);
}

static inline float *oct_warp_in(const struct oct_warp_device *d, int room)
{
    return (float *)d->d_rooms[room];
}

/* ---- launches ---- */

static inline dim3 oct_warp_grid_of(uint64_t n)
{
    return dim3(oct_warp_groups(n, OCT_WARP_THREADS));
}

/* Number `index` of the results. */
static inline void oct_warp_queue_total(struct oct_warp_device *d, uint64_t n_parts,
                                        struct oct_warp_course *course, uint32_t index)
{
    OCT_LAUNCH((oct_warp_total_kernel), dim3(1), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               d->d_parts, (uint32_t)n_parts, oct_warp_in(d, OCT_WARP_LONGEST), d->params.lambda,
               course, d->d_results + index);
}

static inline enum oct_err oct_warp_queue_results(struct oct_warp_device *d, uint32_t n,
                                                  struct oct_error *err)
{
    return oct_cuda_stream_download(d->stream, d->h_results, d->d_results,
                                    n * sizeof(*d->h_results), err);
}

/* Values of the finest volume that are not finite. */
static inline enum oct_err oct_warp_queue_check(struct oct_warp_device *d, const float *volume,
                                                struct oct_error *err)
{
    const uint32_t n =
        (uint32_t)std::min(oct_warp_energy_blocks(d->finest), (uint64_t)OCT_WARP_CHECK_BLOCKS);
    OCT_LAUNCH((oct_warp_check_kernel), dim3(n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               volume, d->finest.n, n, d->d_parts);
    oct_warp_queue_total(d, n, NULL, 0);
    return oct_warp_queue_results(d, 1, err);
}

/* Sums of u, and T(h) and J + log J of it. */
static inline void oct_warp_queue_sums(struct oct_warp_device *d, const float *u,
                                       struct oct_warp_course *course, uint32_t index)
{
    const uint64_t n = oct_warp_energy_blocks(d->box);
    OCT_LAUNCH((oct_warp_energy_kernel), dim3((uint32_t)n), dim3(OCT_WARP_THREADS), 0,
               d->stream->stream, d->box, u, d->moving, d->fixed, oct_warp_in(d, OCT_WARP_WARPED),
               oct_warp_in(d, OCT_WARP_CHANGE), d->d_parts, course);
    oct_warp_queue_total(d, n, course, index);
}

/* The same of the displacement, with the result. */
static inline enum oct_err oct_warp_queue_energy(struct oct_warp_device *d, struct oct_error *err)
{
    oct_warp_queue_sums(d, d->u, NULL, 0);
    return oct_warp_queue_results(d, 1, err);
}

static inline struct oct_warp_fields oct_warp_fields_of(const struct oct_warp_device *d)
{
    return {oct_warp_in(d, OCT_WARP_WARPED), oct_warp_in(d, OCT_WARP_CHANGE), d->fixed,
            (float)d->params.lambda, (float)d->params.kappa};
}

static inline void oct_warp_queue_gauss(struct oct_warp_device *d, int axis, unsigned n_volumes,
                                        const float *from, float *to,
                                        const struct oct_warp_course *course)
{
    const struct oct_warp_tile &tile = d->tiles[axis];
    OCT_LAUNCH((axis == 0 ? oct_warp_gauss_kernel<0> : oct_warp_gauss_kernel<1>),
               dim3((uint32_t)(n_volumes * oct_warp_tile_blocks(d->box, axis, tile))),
               dim3(OCT_WARP_THREADS), oct_warp_tile_bytes(tile), d->stream->stream, d->box, tile,
               d->taps[axis], from, to, course);
}

/* The velocity of the fields that the last energy left, smoothed along the depth. */
static inline void oct_warp_queue_drive(struct oct_warp_device *d, float *v,
                                        const struct oct_warp_course *course)
{
    OCT_LAUNCH((oct_warp_drive_kernel), dim3((uint32_t)oct_warp_span_blocks(d->box, d->span)),
               dim3(OCT_WARP_FORCE_THREADS), oct_warp_span_bytes(d->span), d->stream->stream,
               d->box, oct_warp_fields_of(d), d->span, d->taps[2], v, course);
}

/* Along the A-lines too. scratch: [3]. */
static inline void oct_warp_queue_velocity(struct oct_warp_device *d, float *scratch,
                                           const struct oct_warp_course *course)
{
    oct_warp_queue_drive(d, scratch, course);
    oct_warp_queue_gauss(d, 1, 3, scratch, d->v, course);
}

/* u moved by `scale` of the velocity; made again where that is too long. */
static inline void oct_warp_queue_step(struct oct_warp_device *d, double scale, const float *u,
                                       float *moved, const struct oct_warp_course *course)
{
    const struct oct_warp_tile &tile = d->tiles[0];
    struct oct_warp_stride stride = {(float)scale, (float)d->params.most_step,
                                     oct_warp_in(d, OCT_WARP_LONGEST), false};
    for (int again = 0; again < 2; again++) {
        OCT_LAUNCH((oct_warp_step_kernel), dim3((uint32_t)oct_warp_tile_blocks(d->box, 0, tile)),
                   dim3(OCT_WARP_THREADS), oct_warp_tile_bytes(tile), d->stream->stream, d->box,
                   tile, d->taps[0], stride, d->v, u, moved, course);
        stride.is_known = true;
    }
}

/* n trials, each from the one before; of the first, with is_fresh, the velocity is there. The
 * displacement is the trial after an odd number of them that are taken. */
static inline enum oct_err oct_warp_queue_steps(struct oct_warp_device *d,
                                                const struct oct_warp_course &from, uint32_t n,
                                                double scale, bool is_fresh, struct oct_error *err)
{
    float *const fields[2] = {d->u, d->trial};
    OCT_LAUNCH((oct_warp_course_kernel), dim3(1), dim3(OCT_WARP_LANES), 0, d->stream->stream, from,
               d->d_course);
    for (uint32_t i = 0; i < n; i++) {
        float *u = fields[i % 2], *trial = fields[(i + 1) % 2];
        if (i > 0 || !is_fresh)
            oct_warp_queue_velocity(d, trial, d->d_course);
        oct_warp_queue_step(d, scale, u, trial, d->d_course);
        oct_warp_queue_sums(d, trial, d->d_course, i);
    }
    return oct_warp_queue_results(d, n, err);
}

/* ---- alone ---- */

/* f of the fields that the last energy left, as it is, to v. */
static inline void oct_warp_queue_force(struct oct_warp_device *d)
{
    OCT_LAUNCH((oct_warp_force_kernel), oct_warp_grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0,
               d->stream->stream, d->box, oct_warp_fields_of(d), d->v);
}

/* J of u, in place of T(h). */
static inline void oct_warp_queue_volume(struct oct_warp_device *d)
{
    OCT_LAUNCH((oct_warp_volume_kernel), dim3((uint32_t)oct_warp_energy_blocks(d->box)),
               dim3(OCT_WARP_THREADS), 0, d->stream->stream, d->box, d->u,
               oct_warp_in(d, OCT_WARP_WARPED));
}

/* T(h) of u. */
static inline void oct_warp_queue_warp(struct oct_warp_device *d)
{
    OCT_LAUNCH((oct_warp_warp_kernel), oct_warp_grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0,
               d->stream->stream, d->box, d->u, d->moving, oct_warp_in(d, OCT_WARP_WARPED));
}

/* ---- levels ---- */

static inline void oct_warp_set_box(struct oct_warp_device *d, unsigned factor)
{
    d->factor = factor;
    d->box = oct_warp_box_of(d->grid, factor);
    for (int i = 0; i < 2; i++)
        d->tiles[i] = oct_warp_tile_of(d->box.side[i], d->taps[i].radius);
    d->span = oct_warp_span_of(d->box.side[2], d->taps[2].radius);
    d->fixed = oct_warp_in(d, factor > 1 ? OCT_WARP_LEVEL_FIXED : OCT_WARP_FIXED);
    d->moving = oct_warp_in(d, factor > 1 ? OCT_WARP_LEVEL_MOVING : OCT_WARP_MOVING);
}

/* Axis after axis, by way of two volumes of scratch. */
static inline void oct_warp_queue_shrink(struct oct_warp_device *d, struct oct_warp_source from,
                                         unsigned n_taps, int64_t first, float *scratch[2],
                                         float *to)
{
    const uint32_t *side = d->finest.side, *level = d->box.side;
    float *const results[3] = {scratch[0], scratch[1], to};
    for (int axis = 0; axis < 3; axis++) {
        struct oct_warp_shrinking s = {1,         1,      side[axis],    level[axis],
                                       d->factor, n_taps, (int32_t)first};
        for (int i = 0; i < 3; i++) {
            s.outer *= i < axis ? level[i] : 1;
            s.inner *= i > axis ? side[i] : 1;
        }
        OCT_LAUNCH((oct_warp_shrink_kernel),
                   oct_warp_grid_of((uint64_t)s.outer * s.level_side * s.inner),
                   dim3(OCT_WARP_THREADS), 0, d->stream->stream, s, d->d_tables->level, from,
                   results[axis]);
        from = {results[axis], NULL};
    }
}

static inline void oct_warp_queue_divide(struct oct_warp_device *d, const float *sums,
                                         const float *weights)
{
    OCT_LAUNCH((oct_warp_divide_kernel), oct_warp_grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0,
               d->stream->stream, sums, weights, d->box.n, d->fixed);
}

/* The level's volumes; those of factor 1 are there. The velocity and the trial are scratch. */
static inline enum oct_err oct_warp_queue_volumes(struct oct_warp_device *d, bool has_mask,
                                                  struct oct_error *err)
{
    const size_t n = d->finest.n;
    const uint8_t *mask = has_mask ? (const uint8_t *)d->d_rooms[OCT_WARP_MASK] : NULL;
    float *scratch[2] = {d->v, d->v + n}, *sums = d->v + 2 * n, *weights = d->trial;
    const float *fixed = oct_warp_in(d, OCT_WARP_FIXED), *moving = oct_warp_in(d, OCT_WARP_MOVING);
    int64_t first = 0;
    if (d->factor == 1) {
        if (mask)
            OCT_LAUNCH((oct_warp_hide_kernel), oct_warp_grid_of(n), dim3(OCT_WARP_THREADS), 0,
                       d->stream->stream, mask, n, d->fixed);
        return OCT_OK;
    }
    const unsigned n_taps = oct_warp_level_taps(d->factor, 0, d->h_tables->level, &first);
    enum oct_err e = oct_cuda_stream_upload(d->stream, d->d_tables->level, d->h_tables->level,
                                            sizeof(d->h_tables->level), err);
    if (e)
        return e;
    oct_warp_queue_shrink(d, {moving, NULL}, n_taps, first, scratch, d->moving);
    if (!mask) {
        oct_warp_queue_shrink(d, {fixed, NULL}, n_taps, first, scratch, d->fixed);
        return OCT_OK;
    }
    oct_warp_queue_shrink(d, {fixed, mask}, n_taps, first, scratch, sums);
    oct_warp_queue_shrink(d, {NULL, mask}, n_taps, first, scratch, weights);
    oct_warp_queue_divide(d, sums, weights);
    return OCT_OK;
}

/* The displacement in a level of another factor; the trial is scratch. */
static inline void oct_warp_queue_spread(struct oct_warp_device *d, unsigned to)
{
    const struct oct_warp_box from_box = d->box;
    const unsigned from = d->factor;
    oct_warp_set_box(d, to);
    OCT_LAUNCH((oct_warp_spread_kernel), oct_warp_grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0,
               d->stream->stream, from_box, from, d->box, to, d->u, d->trial);
    std::swap(d->u, d->trial);
}

/* A smoother displacement; the trial is scratch. */
static inline void oct_warp_queue_soften(struct oct_warp_device *d)
{
    OCT_LAUNCH((oct_warp_soften_kernel), oct_warp_grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0,
               d->stream->stream, d->box, d->u, d->trial);
    std::swap(d->u, d->trial);
}

/* The volumes and the displacement of a level; of the first one that is 0. */
static inline enum oct_err oct_warp_queue_level(struct oct_warp_device *d, unsigned factor,
                                                bool is_first, bool has_mask, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (is_first)
        oct_warp_set_box(d, factor);
    else
        oct_warp_queue_spread(d, factor);
    if (is_first)
        e = oct_cuda_stream_clear(d->stream, d->u, 3 * d->box.n * sizeof(float), err);
    return e ? e : oct_warp_queue_volumes(d, has_mask, err);
}

/* ---- life ---- */

static inline enum oct_err oct_warp_check_room(struct oct_cuda_stream *on, const size_t *bytes,
                                               const uint32_t dims[3], struct oct_error *err)
{
    size_t all = 0, available = 0, total = 0;
    for (int i = 0; i < OCT_WARP_ROOMS; i++)
        all += bytes[i];
    TRY_STREAM(on, "memory", cudaMemGetInfo(&available, &total));
    if (all <= available)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "GPU %d: volumes of %u x %u x %u voxels take %zu MB, of which %zu MB are free: "
                    "give smaller volumes or another GPU",
                    on->device, dims[0], dims[1], dims[2], (all + 999999) / 1000000,
                    available / 1000000);
}

static inline enum oct_err oct_warp_make_tables(struct oct_warp_device *d, struct oct_error *err)
{
    double sigma[3], per_unit2[3];
    float half[OCT_WARP_MOST_RADIUS + 1];
    *d->h_tables = {};
    oct_warp_units(&d->grid, d->params.sigma, sigma, per_unit2);
    for (int i = 0; i < 3; i++) {
        const unsigned reach = oct_warp_gauss_taps(sigma[i], half), radius = (reach + 3) / 4 * 4;
        for (unsigned k = 0; k <= reach; k++)
            d->h_tables->gauss[i][radius - k] = d->h_tables->gauss[i][radius + k] = half[k];
        d->taps[i] = {d->d_tables->gauss[i], radius};
    }
    return oct_cuda_stream_upload(d->stream, d->d_tables, d->h_tables, sizeof(*d->h_tables), err);
}

/* Every kernel once, on as little as there is of any grid. */
static inline enum oct_err oct_warp_rehearse(struct oct_warp_device *d, struct oct_error *err)
{
    const struct oct_warp_grid grid = d->grid;
    const struct oct_warp_box finest = d->finest;
    float *scratch[2] = {d->v, d->trial};
    enum oct_err e = OCT_OK;
    for (uint32_t &side : d->grid.dims)
        side = OCT_WARP_LEAST_SIDE;
    d->finest = oct_warp_box_of(d->grid, 1);
    for (int i = OCT_WARP_FIXED; i <= OCT_WARP_CHANGE && !e; i++)
        e = oct_cuda_stream_clear(d->stream, d->d_rooms[i],
                                  d->finest.n * (i == OCT_WARP_MASK ? 1 : sizeof(float)), err);
    e = e ? e : oct_warp_queue_level(d, 1, true, true, err);
    oct_warp_queue_shrink(d, {d->moving, NULL}, 1, 0, scratch, d->moving);
    oct_warp_queue_divide(d, d->moving, d->moving);
    e = e ? e : oct_warp_queue_check(d, d->fixed, err);
    e = e ? e : oct_warp_queue_energy(d, err);
    e = e ? e : oct_warp_queue_steps(d, {}, 1, 1, false, err);
    oct_warp_queue_spread(d, 1);
    oct_warp_queue_soften(d);
    oct_warp_queue_volume(d);
    oct_warp_queue_warp(d);
    oct_warp_queue_force(d);
    oct_cuda_stream_drain(d->stream);
    d->grid = grid;
    d->finest = finest;
    oct_warp_set_box(d, 1);
    return e ? e : oct_cuda_stream_mark(d->stream, err);
}

/* Tables and memory, which is the stream's; d->stream is there. */
static inline enum oct_err oct_warp_make(struct oct_warp_device *d,
                                         const struct oct_warp_setup *setup, struct oct_error *err)
{
    size_t bytes[OCT_WARP_ROOMS];
    oct_warp_room_bytes(setup, bytes);
    d->grid = setup->grid;
    d->params = setup->params;
    d->finest = oct_warp_box_of(setup->grid, 1);
    d->stage_bytes = std::min(d->finest.n * sizeof(float), OCT_WARP_STAGE_BYTES);
    enum oct_err e = oct_warp_check_room(d->stream, bytes, d->grid.dims, err);
    for (int i = 0; i < OCT_WARP_ROOMS && !e; i++)
        e = oct_cuda_stream_alloc(d->stream, &d->d_rooms[i], bytes[i], err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_results, OCT_WARP_BATCH, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_tables, 1, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_stage, d->stage_bytes, err);
    if (e)
        return e;
    d->u = oct_warp_in(d, OCT_WARP_FIELD);
    d->v = oct_warp_in(d, OCT_WARP_FIELD + 1);
    d->trial = oct_warp_in(d, OCT_WARP_FIELD + 2);
    d->d_parts = (struct oct_warp_sums *)d->d_rooms[OCT_WARP_PARTS];
    d->d_results = (struct oct_warp_result *)d->d_rooms[OCT_WARP_RESULTS];
    d->d_course = (struct oct_warp_course *)d->d_rooms[OCT_WARP_COURSE];
    d->d_tables = (struct oct_warp_tables *)d->d_rooms[OCT_WARP_ALL_TAPS];
    e = oct_warp_make_tables(d, err);
    e = e ? e : oct_cuda_stream_clear(d->stream, d->d_rooms[OCT_WARP_LONGEST], sizeof(float), err);
    return e ? e : oct_warp_rehearse(d, err);
}

#endif
