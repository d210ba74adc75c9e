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

namespace oct_warp
{
#define OCT_WARP_STAGE_BYTES ((size_t)32 << 20) /* pinned, at most */
#define OCT_WARP_CHECK_BLOCKS 1024u

/* In host memory, as it is uploaded. */
struct tables {
    float gauss[3][OCT_WARP_TAPS];
    float level[OCT_WARP_LEVEL_TAPS(OCT_WARP_MOST_FACTOR)];
};

struct device {
    struct oct_cuda_stream *stream;
    struct oct_warp_grid grid;
    struct oct_warp_params params;
    struct box finest, box; /* box: of the level */
    unsigned factor;        /* of the level; 0: none yet */

    /* On the device: each_room. */
    float *whole_fixed, *whole_moving;
    uint8_t *mask;
    float *u, *v, *trial; /* [3] */
    float *warped, *pressure;
    float *level_fixed, *level_moving; /* of factors above 1 */
    struct sums *parts;
    struct result *d_results;
    struct course *d_course;
    struct tables *d_tables;

    struct result *h_results; /* [OCT_WARP_BATCH] */
    struct tables *h_tables;
    uint8_t *h_stage;
    size_t stage_bytes;

    float *fixed, *moving; /* of the level */
    struct taps taps[3];
    struct tile tiles[2]; /* along B-scans and A-lines */
    struct span span;
};

/* ---- shapes ---- */

static inline struct box box_of(const struct oct_warp_grid &grid, unsigned factor)
{
    const double *s = grid.spacing, least = std::min(s[0], std::min(s[1], s[2]));
    struct box box = {};
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

/* Calls each(pointer, n) for all that is on the device: n of what the pointer points to. */
template <class EACH>
static inline void each_room(struct device *d, const struct oct_warp_setup *setup, EACH each)
{
    const struct box box = box_of(setup->grid, 1);
    size_t level = 1;
    for (unsigned i = 0; i < setup->params.n_levels; i++)
        if (setup->params.factor[i] > 1)
            level = std::max(level, box_of(setup->grid, setup->params.factor[i]).n);
    each(d->whole_fixed, box.n);
    each(d->whole_moving, box.n);
    each(d->mask, box.n);
    each(d->u, 3 * box.n);
    each(d->v, 3 * box.n);
    each(d->trial, 3 * box.n);
    each(d->warped, box.n);
    each(d->pressure, box.n);
    each(d->level_fixed, level);
    each(d->level_moving, level);
    each(d->parts, energy_blocks(box));
    each(d->d_results, OCT_WARP_BATCH);
    each(d->d_course, 1);
    each(d->d_tables, 1);
}

static inline uint64_t device_bytes(const struct oct_warp_setup *setup)
{
    struct device none = {};
    uint64_t sum = 0;
    each_room(&none, setup, [&sum](auto *&room, size_t n) { sum += n * sizeof(*room); });
    return sum;
}

/* ---- launches ---- */

static inline dim3 grid_of(uint64_t n)
{
    return dim3(groups(n, OCT_WARP_THREADS));
}

/* Number `index` of the results. */
static inline void queue_total(struct device *d, uint64_t n_parts, struct course *course,
                               uint32_t index)
{
    OCT_LAUNCH((total_kernel), dim3(1), dim3(OCT_WARP_THREADS), 0, d->stream->stream, d->parts,
               (uint32_t)n_parts, course, d->d_results + index);
}

static inline enum oct_err queue_results(struct device *d, uint32_t n, struct oct_error *err)
{
    return oct_cuda_stream_download(d->stream, d->h_results, d->d_results,
                                    n * sizeof(*d->h_results), err);
}

/* Values of the finest volume that are not finite. */
static inline enum oct_err queue_check(struct device *d, const float *volume, struct oct_error *err)
{
    const uint32_t n =
        (uint32_t)std::min(energy_blocks(d->finest), (uint64_t)OCT_WARP_CHECK_BLOCKS);
    OCT_LAUNCH((check_kernel), dim3(n), dim3(OCT_WARP_THREADS), 0, d->stream->stream, volume,
               d->finest.n, n, d->parts);
    queue_total(d, n, NULL, 0);
    return queue_results(d, 1, err);
}

/* Sums of u, and T(h) and the pressure of it. volume: J, may be NULL. */
static inline void queue_sums(struct device *d, const float *u, struct course *course,
                              uint32_t index, float *volume = NULL)
{
    const uint64_t n = energy_blocks(d->box);
    OCT_LAUNCH((energy_kernel), dim3((uint32_t)n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               d->box, u, d->moving, d->fixed, (float)d->params.lambda, d->warped, d->pressure,
               volume, d->parts, course);
    queue_total(d, n, course, index);
}

/* The same of the displacement, with the result. */
static inline enum oct_err queue_energy(struct device *d, struct oct_error *err)
{
    queue_sums(d, d->u, NULL, 0);
    return queue_results(d, 1, err);
}

static inline struct fields fields_of(const struct device *d)
{
    return {d->warped, d->pressure, d->fixed, (float)d->params.lambda, (float)d->params.kappa};
}

/* Along the A-lines, of three volumes. */
static inline void queue_gauss(struct device *d, const float *from, float *to,
                               const struct course *course)
{
    const struct tile &tile = d->tiles[1];
    OCT_LAUNCH((gauss_kernel), dim3((uint32_t)(3 * tile_blocks(d->box, 1, tile))),
               dim3(OCT_WARP_THREADS), tile_bytes(tile), d->stream->stream, d->box, tile,
               d->taps[1], from, to, course);
}

/* The velocity of the fields that the last energy left, smoothed along the depth. */
static inline void queue_drive(struct device *d, float *v, const struct course *course)
{
    OCT_LAUNCH((drive_kernel), dim3((uint32_t)span_blocks(d->box, d->span)),
               dim3(OCT_WARP_FORCE_THREADS), span_bytes(d->span), d->stream->stream, d->box,
               fields_of(d), d->span, d->taps[2], v, course);
}

/* u moved by `scale` of the velocity. */
static inline void queue_step(struct device *d, double scale, const float *u, float *moved,
                              const struct course *course)
{
    const struct tile &tile = d->tiles[0];
    OCT_LAUNCH((step_kernel), dim3((uint32_t)tile_blocks(d->box, 0, tile)), dim3(OCT_WARP_THREADS),
               tile_bytes(tile), d->stream->stream, d->box, tile, d->taps[0], (float)scale,
               (float)d->params.most_step, d->v, u, moved, course);
}

/* n trials, each from the one before; of the first, with is_fresh, the velocity is there. The
 * displacement is the trial after an odd number of them that are taken. */
static inline enum oct_err queue_steps(struct device *d, const struct course &from, uint32_t n,
                                       double scale, bool is_fresh, struct oct_error *err)
{
    float *const fields[2] = {d->u, d->trial};
    OCT_LAUNCH((course_kernel), dim3(1), dim3(OCT_WARP_LANES), 0, d->stream->stream, from,
               d->d_course);
    for (uint32_t i = 0; i < n; i++) {
        float *u = fields[i % 2], *trial = fields[(i + 1) % 2];
        if (i > 0 || !is_fresh) {
            queue_drive(d, trial, d->d_course);
            queue_gauss(d, trial, d->v, d->d_course);
        }
        queue_step(d, scale, u, trial, d->d_course);
        queue_sums(d, trial, d->d_course, i);
    }
    return queue_results(d, n, err);
}

/* f of the fields that the last energy left, as it is, to v. */
static inline void queue_force(struct device *d)
{
    OCT_LAUNCH((force_kernel), grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               d->box, fields_of(d), d->v);
}

/* ---- levels ---- */

static inline void set_box(struct device *d, unsigned factor)
{
    d->factor = factor;
    d->box = box_of(d->grid, factor);
    for (int i = 0; i < 2; i++)
        d->tiles[i] = tile_of(d->box.side[i], d->taps[i].radius);
    d->span = span_of(d->box.side[2], d->taps[2].radius);
    d->fixed = factor > 1 ? d->level_fixed : d->whole_fixed;
    d->moving = factor > 1 ? d->level_moving : d->whole_moving;
}

/* Axis after axis, by way of two volumes of scratch. */
static inline void queue_shrink(struct device *d, struct source from, unsigned n_taps,
                                int64_t first, float *scratch[2], float *to)
{
    const uint32_t *side = d->finest.side, *level = d->box.side;
    float *const results[3] = {scratch[0], scratch[1], to};
    for (int axis = 0; axis < 3; axis++) {
        struct shrinking s = {1, 1, side[axis], level[axis], d->factor, n_taps, (int32_t)first};
        for (int i = 0; i < 3; i++) {
            s.outer *= i < axis ? level[i] : 1;
            s.inner *= i > axis ? side[i] : 1;
        }
        OCT_LAUNCH((shrink_kernel), grid_of((uint64_t)s.outer * s.level_side * s.inner),
                   dim3(OCT_WARP_THREADS), 0, d->stream->stream, s, d->d_tables->level, from,
                   results[axis]);
        from = {results[axis], NULL};
    }
}

static inline void queue_divide(struct device *d, const float *sums, const float *weights)
{
    OCT_LAUNCH((divide_kernel), grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               sums, weights, d->box.n, d->fixed);
}

/* The level's volumes; those of factor 1 are there. The velocity and the trial are scratch. */
static inline enum oct_err queue_volumes(struct device *d, bool has_mask, struct oct_error *err)
{
    const size_t n = d->finest.n;
    float *scratch[2] = {d->v, d->v + n}, *sums = d->v + 2 * n, *weights = d->trial;
    int64_t first = 0;
    if (d->factor == 1) {
        if (has_mask)
            OCT_LAUNCH((hide_kernel), grid_of(n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
                       d->mask, n, d->fixed);
        return OCT_OK;
    }
    const unsigned n_taps = oct_warp_level_taps(d->factor, d->h_tables->level, &first);
    enum oct_err e = oct_cuda_stream_upload(d->stream, d->d_tables->level, d->h_tables->level,
                                            sizeof(d->h_tables->level), err);
    if (e)
        return e;
    queue_shrink(d, {d->whole_moving, NULL}, n_taps, first, scratch, d->moving);
    if (!has_mask) {
        queue_shrink(d, {d->whole_fixed, NULL}, n_taps, first, scratch, d->fixed);
        return OCT_OK;
    }
    queue_shrink(d, {d->whole_fixed, d->mask}, n_taps, first, scratch, sums);
    queue_shrink(d, {NULL, d->mask}, n_taps, first, scratch, weights);
    queue_divide(d, sums, weights);
    return OCT_OK;
}

/* The displacement in a level of another factor; the trial is scratch. */
static inline void queue_spread(struct device *d, unsigned to)
{
    const struct box from_box = d->box;
    const unsigned from = d->factor;
    set_box(d, to);
    OCT_LAUNCH((spread_kernel), grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               from_box, from, d->box, to, d->u, d->trial);
    std::swap(d->u, d->trial);
}

/* A smoother displacement; the trial is scratch. */
static inline void queue_soften(struct device *d)
{
    OCT_LAUNCH((soften_kernel), grid_of(d->box.n), dim3(OCT_WARP_THREADS), 0, d->stream->stream,
               d->box, d->u, d->trial);
    std::swap(d->u, d->trial);
}

/* The volumes and the displacement of a level; of the first one that is 0. */
static inline enum oct_err queue_level(struct device *d, unsigned factor, bool is_first,
                                       bool has_mask, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (is_first) {
        set_box(d, factor);
        e = oct_cuda_stream_clear(d->stream, d->u, 3 * d->box.n * sizeof(float), err);
    } else {
        queue_spread(d, factor);
    }
    return e ? e : queue_volumes(d, has_mask, err);
}

/* ---- life ---- */

static inline enum oct_err check_room(struct oct_cuda_stream *on,
                                      const struct oct_warp_setup *setup, struct oct_error *err)
{
    const uint32_t *dims = setup->grid.dims;
    const size_t all = device_bytes(setup);
    size_t available = 0, total = 0;
    TRY_STREAM(on, "memory", cudaMemGetInfo(&available, &total));
    if (all <= available)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "GPU %d: volumes of %u x %u x %u voxels take %zu MB, of which %zu MB are free: "
                    "give smaller volumes or another GPU",
                    on->device, dims[0], dims[1], dims[2], (all + 999999) / 1000000,
                    available / 1000000);
}

static inline enum oct_err make_tables(struct device *d, struct oct_error *err)
{
    const struct oct_warp_gauss g = oct_warp_gauss_of(&d->grid, d->params.sigma);
    *d->h_tables = {};
    for (int i = 0; i < 3; i++) {
        const unsigned radius = (g.radius[i] + 3) / 4 * 4;
        float *middle = d->h_tables->gauss[i] + radius;
        for (int k = 0; k <= (int)g.radius[i]; k++)
            middle[-k] = middle[k] = g.taps[i][k];
        d->taps[i] = {d->d_tables->gauss[i], radius};
    }
    return oct_cuda_stream_upload(d->stream, d->d_tables, d->h_tables, sizeof(*d->h_tables), err);
}

/* Every kernel once, on as little as there is of any grid. */
static inline enum oct_err rehearse(struct device *d, struct oct_error *err)
{
    const struct oct_warp_grid grid = d->grid;
    const struct box finest = d->finest;
    float *const fields[] = {d->whole_fixed, d->whole_moving, d->warped, d->pressure};
    float *scratch[2] = {d->v, d->trial};
    for (uint32_t &side : d->grid.dims)
        side = OCT_WARP_LEAST_SIDE;
    d->finest = box_of(d->grid, 1);
    enum oct_err e = oct_cuda_stream_clear(d->stream, d->mask, d->finest.n, err);
    for (float *field : fields)
        e = e ? e : oct_cuda_stream_clear(d->stream, field, d->finest.n * sizeof(float), err);
    e = e ? e : queue_level(d, 1, true, true, err);
    queue_shrink(d, {d->moving, NULL}, 1, 0, scratch, d->moving);
    queue_divide(d, d->moving, d->moving);
    e = e ? e : queue_check(d, d->fixed, err);
    e = e ? e : queue_energy(d, err);
    e = e ? e : queue_steps(d, {}, 1, 1, false, err);
    queue_spread(d, 1);
    queue_soften(d);
    queue_force(d);
    oct_cuda_stream_drain(d->stream);
    d->grid = grid;
    d->finest = finest;
    set_box(d, 1);
    return e ? e : oct_cuda_stream_mark(d->stream, err);
}

/* Tables and memory, which is the stream's; d->stream is there. */
static inline enum oct_err make(struct device *d, const struct oct_warp_setup *setup,
                                struct oct_error *err)
{
    d->grid = setup->grid;
    d->params = setup->params;
    d->finest = box_of(setup->grid, 1);
    d->stage_bytes = std::min(d->finest.n * sizeof(float), OCT_WARP_STAGE_BYTES);
    enum oct_err e = check_room(d->stream, setup, err);
    each_room(d, setup, [&e, d, err](auto *&room, size_t n) {
        e = e ? e : oct_stream_alloc(d->stream, &room, n, err);
    });
    e = e ? e : oct_stream_pin(d->stream, &d->h_results, OCT_WARP_BATCH, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_tables, 1, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_stage, d->stage_bytes, err);
    e = e ? e : make_tables(d, err);
    return e ? e : rehearse(d, err);
}

} // namespace oct_warp

#endif
