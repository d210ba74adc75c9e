/* A level set on a stream: its tables and memory, and the work that is queued. Nothing here waits
 * for the device but make.
 *
 *     make -> { queue_band -> reserve -> LOCAL { queue_rows -> queue_ranks | queue_local ... }
 *                                        FULL { queue_sums -> queue_gather -> queue_search ...
 *                                               -> queue_finish -> queue_full ... } } -> finish */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_DEVICE_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_DEVICE_CUH

#include "analysis/surface/cuda_levelset_base.cuh"
#include "analysis/surface/cuda_levelset_full.cuh"
#include "analysis/surface/cuda_levelset_local.cuh"
#include "analysis/surface/cuda_levelset_memory.cuh"
extern "C" {
#include "analysis/surface/levelset.h"
}

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#define OCT_LEVELSET_STAGE_BYTES ((size_t)64 << 20) /* pinned, at most */
#define OCT_LEVELSET_ROWS_BYTES ((size_t)2 << 30) /* of rows at once, unless a segment's are more */
#define OCT_LEVELSET_LEAST_SEGMENTS 512u          /* whose rows must fit */

enum oct_levelset_rooms {
    OCT_LEVELSET_INDEX,
    OCT_LEVELSET_SEGMENTS, /* LOCAL */
    OCT_LEVELSET_RANKS,
    OCT_LEVELSET_NEXT,      /* f32 [n_band] */
    OCT_LEVELSET_NOW,       /* FULL: the same before a step */
    OCT_LEVELSET_BY_NUMBER, /* FULL: sums of patches */
    OCT_LEVELSET_BY_ORDER,
    OCT_LEVELSET_ORDER,
    OCT_LEVELSET_PATCHES,
    OCT_LEVELSET_KEYS,
    OCT_LEVELSET_FOUND,
    OCT_LEVELSET_LIMITS,
    OCT_LEVELSET_ROWS, /* LOCAL */
    OCT_LEVELSET_ROOMS
};

enum { OCT_LEVELSET_BOX_ROOMS = 7 };

struct oct_levelset_device {
    struct oct_cuda_stream *stream;
    struct oct_levelset_params params;
    struct oct_levelset_shape shape;
    struct oct_levelset_layout layout; /* LOCAL */
    size_t n;                          /* voxels of the box */
    size_t stage_bytes, tile_bytes;
    struct oct_levelset_room box[OCT_LEVELSET_BOX_ROOMS];
    float *d_phi, *d_now; /* d_now: LOCAL: the box after the last step */
    uint64_t *d_columns, *d_totals;
    uint32_t *d_bins, n_totals;
    struct oct_levelset_facts *d_facts, *h_facts;
    struct oct_levelset_offset *d_offsets; /* LOCAL */
    uint8_t *h_stage;
    struct oct_levelset_room rooms[OCT_LEVELSET_ROOMS];
    /* Of the band. */
    uint32_t n_band, n_segments;
    uint32_t most_segments;            /* LOCAL: whose rows are kept at once */
    struct oct_levelset_piece piece;   /* of which rows are there; none: n 0 */
    struct oct_levelset_search search; /* FULL */
};

template <class T>
static inline T *oct_levelset_in(const struct oct_levelset_device *d, enum oct_levelset_rooms room)
{
    return (T *)d->rooms[room].d_memory;
}

/* ---- shapes ---- */

static inline struct oct_levelset_shape
oct_levelset_shape_of(const struct oct_levelset_setup *setup)
{
    const uint32_t *dims = setup->dims;
    return {dims[0],
            dims[1],
            dims[2],
            dims[0] * dims[1],
            setup->params.patch,
            setup->params.patch / 2,
            (float)setup->params.delta};
}

/* Units of neighbouring threads lie in neighbouring banks of shared memory, as far as `is_spread`
 * allows it: groups THREE apart, A-lines 3 n_groups, rows of them 3 n_groups width. */
static inline struct oct_levelset_layout oct_levelset_layout_of(const struct oct_levelset_params &p,
                                                                bool is_spread)
{
    const uint32_t reach = p.reach, radius = p.patch / 2;
    struct oct_levelset_layout l = {};
    l.reach = reach;
    l.width = 2 * reach + 1;
    l.n_groups = oct_levelset_groups(l.width, OCT_LEVELSET_THREE);
    l.n_units = l.width * l.width * l.n_groups;
    l.n_row = l.n_units * OCT_LEVELSET_THREE;
    l.side = l.width + 2 * radius;
    l.depth = OCT_LEVELSET_THREE * l.n_groups - 1 + OCT_LEVELSET_SPAN + 2 * radius;
    l.pitch = l.depth;
    l.row_pitch = l.side * l.pitch;
    if (is_spread) {
        const uint32_t line = OCT_LEVELSET_THREE * l.n_groups;
        l.pitch += (line + 32 - l.depth % 32) % 32;
        l.row_pitch = l.side * l.pitch;
        l.row_pitch += (line * l.width % 32 + 32 - l.row_pitch % 32) % 32;
    }
    return l;
}

static inline size_t oct_levelset_tile_bytes(const struct oct_levelset_layout &l, uint32_t patch)
{
    const uint32_t depths = OCT_LEVELSET_SPAN + patch - 1;
    return (patch * patch * ((depths + 3) / 4 * 4) + (size_t)l.side * l.row_pitch) * sizeof(float);
}

/* As oct_levelset_rows_kernel places its units. */
static inline std::vector<struct oct_levelset_offset>
oct_levelset_offsets_of(const struct oct_levelset_shape &s, const struct oct_levelset_layout &l,
                        double c1)
{
    std::vector<struct oct_levelset_offset> offsets(l.n_row);
    for (uint32_t i = 0; i < l.n_row; i++) {
        const uint32_t t = i % l.n_units, line = t / l.n_groups;
        const int32_t reach = (int32_t)l.reach;
        const int32_t db = (int32_t)(line / l.width) - reach;
        const int32_t dj = (int32_t)(line % l.width) - reach;
        const int32_t dd = (int32_t)(OCT_LEVELSET_THREE * (t % l.n_groups) + i / l.n_units) - reach;
        const int64_t step = ((int64_t)db * s.n_j + dj) * s.n_d + dd;
        offsets[i] = {(int32_t)step, (float)((db * db + dj * dj + dd * dd) / c1)};
    }
    return offsets;
}

/* ---- launches ---- */

static inline dim3 oct_levelset_grid(uint64_t n, uint32_t each)
{
    return dim3(oct_levelset_groups(n > 0 ? n : 1, each));
}

typedef void (*oct_levelset_rows_function)(struct oct_levelset_shape, struct oct_levelset_layout,
                                           const float *, const struct oct_levelset_run *,
                                           struct oct_levelset_piece, float *);

static inline oct_levelset_rows_function oct_levelset_rows_of(uint32_t radius)
{
    return radius == 1   ? oct_levelset_rows_kernel<1>
           : radius == 2 ? oct_levelset_rows_kernel<2>
                         : oct_levelset_rows_kernel<3>;
}

/* d_phi is there; facts, h_facts among them, the A-lines' counts and places. */
static inline enum oct_err oct_levelset_queue_band(struct oct_levelset_device *d,
                                                   struct oct_error *err)
{
    const struct oct_levelset_shape &s = d->shape;
    const cudaStream_t on = d->stream->stream;
    const dim3 block(OCT_LEVELSET_THREADS), scan(d->n_totals);
    enum oct_err e = oct_cuda_stream_clear(d->stream, d->d_facts, sizeof(*d->d_facts), err);
    if (e)
        return e;
    OCT_LAUNCH((oct_levelset_count_kernel), oct_levelset_grid(s.n_columns, OCT_LEVELSET_WARPS),
               block, 0, on, s, d->d_phi, d->d_columns, d->d_facts);
    OCT_LAUNCH((oct_levelset_totals_kernel), scan, block, 0, on, d->d_columns, s.n_columns,
               d->d_totals);
    OCT_LAUNCH((oct_levelset_spine_kernel), dim3(1), block, 0, on, d->d_totals, d->n_totals,
               d->d_facts);
    OCT_LAUNCH((oct_levelset_places_kernel), scan, block, 0, on, d->d_columns, s.n_columns,
               d->d_totals);
    return oct_cuda_stream_download(d->stream, d->h_facts, d->d_facts, sizeof(*d->h_facts), err);
}

static inline void oct_levelset_queue_list(struct oct_levelset_device *d)
{
    const dim3 grid = oct_levelset_grid(d->shape.n_columns, OCT_LEVELSET_WARPS);
    OCT_LAUNCH((oct_levelset_list_kernel), grid, dim3(OCT_LEVELSET_THREADS), 0, d->stream->stream,
               d->shape, d->d_phi, d->d_columns, oct_levelset_in<uint32_t>(d, OCT_LEVELSET_INDEX),
               oct_levelset_in<struct oct_levelset_run>(d, OCT_LEVELSET_SEGMENTS));
}

/* base, with c2 0, and c2; facts to h_facts. */
static inline enum oct_err oct_levelset_queue_base(struct oct_levelset_device *d,
                                                   struct oct_error *err)
{
    const cudaStream_t on = d->stream->stream;
    const dim3 block(OCT_LEVELSET_THREADS);
    const float *ranks = oct_levelset_in<float>(d, OCT_LEVELSET_RANKS);
    for (int pass = 0; pass < OCT_LEVELSET_PASSES && !(d->params.c2 > 0); pass++) {
        OCT_LAUNCH((oct_levelset_bins_kernel), dim3(OCT_LEVELSET_BLOCKS), block, 0, on, ranks,
                   d->n_band, pass, d->d_facts, d->d_bins);
        OCT_LAUNCH((oct_levelset_narrow_kernel), dim3(1), block, 0, on, pass, d->d_facts,
                   d->d_bins);
    }
    if (!(d->params.c2 > 0))
        OCT_LAUNCH((oct_levelset_next_kernel), dim3(OCT_LEVELSET_BLOCKS), block, 0, on, ranks,
                   d->n_band, d->d_facts);
    OCT_LAUNCH((oct_levelset_settle_kernel), dim3(1), dim3(1), 0, on, d->params.beta, d->params.c2,
               d->d_facts);
    return oct_cuda_stream_download(d->stream, d->h_facts, d->d_facts, sizeof(*d->h_facts), err);
}

/* ---- LOCAL ---- */

/* The rows of segments `first` to as many as are kept at once, unless they are there. */
static inline void oct_levelset_queue_rows(struct oct_levelset_device *d, uint32_t first)
{
    const struct oct_levelset_piece piece = {
        first, std::min(d->most_segments, d->n_segments - first), d->n_segments, d->n_band};
    if (d->piece.n == piece.n && d->piece.first == first)
        return;
    d->piece = piece;
    OCT_LAUNCH((oct_levelset_rows_of(d->shape.radius)), dim3(piece.n), dim3(OCT_LEVELSET_THREADS),
               d->tile_bytes, d->stream->stream, d->shape, d->layout, d->d_phi,
               oct_levelset_in<struct oct_levelset_run>(d, OCT_LEVELSET_SEGMENTS), piece,
               oct_levelset_in<float>(d, OCT_LEVELSET_ROWS));
}

/* Warps for the voxels of the rows that are there. */
static inline dim3 oct_levelset_piece_grid(const struct oct_levelset_device *d)
{
    const uint64_t most = (uint64_t)d->piece.n * OCT_LEVELSET_SPAN;
    return oct_levelset_grid(std::min(most, (uint64_t)d->n_band), OCT_LEVELSET_WARPS);
}

/* rank 0: candidates are counted, nothing is ranked. */
static inline void oct_levelset_queue_ranks(struct oct_levelset_device *d)
{
    OCT_LAUNCH((oct_levelset_rank_kernel), oct_levelset_piece_grid(d), dim3(OCT_LEVELSET_THREADS),
               0, d->stream->stream, oct_levelset_in<float>(d, OCT_LEVELSET_ROWS), d->layout.n_row,
               oct_levelset_in<struct oct_levelset_run>(d, OCT_LEVELSET_SEGMENTS), d->piece,
               d->params.c2 > 0 ? 0 : d->params.rank, oct_levelset_in<float>(d, OCT_LEVELSET_RANKS),
               d->d_facts);
}

static inline void oct_levelset_queue_local(struct oct_levelset_device *d,
                                            enum oct_levelset_mode mode)
{
    OCT_LAUNCH((oct_levelset_local_kernel), oct_levelset_piece_grid(d), dim3(OCT_LEVELSET_THREADS),
               0, d->stream->stream, oct_levelset_in<float>(d, OCT_LEVELSET_ROWS), d->layout.n_row,
               d->d_offsets, oct_levelset_in<struct oct_levelset_run>(d, OCT_LEVELSET_SEGMENTS),
               d->piece, oct_levelset_in<uint32_t>(d, OCT_LEVELSET_INDEX), d->d_now, mode,
               oct_levelset_in<float>(d, OCT_LEVELSET_NEXT), d->d_facts);
}

/* What the last step has made becomes what the next begins with. */
static inline void oct_levelset_queue_turn(struct oct_levelset_device *d)
{
    if (d->params.weights == OCT_LEVELSET_FULL) {
        std::swap(d->rooms[OCT_LEVELSET_NOW], d->rooms[OCT_LEVELSET_NEXT]);
        return;
    }
    OCT_LAUNCH((oct_levelset_put_kernel), oct_levelset_grid(d->n_band, OCT_LEVELSET_THREADS),
               dim3(OCT_LEVELSET_THREADS), 0, d->stream->stream,
               oct_levelset_in<float>(d, OCT_LEVELSET_NEXT),
               oct_levelset_in<uint32_t>(d, OCT_LEVELSET_INDEX), d->n_band, d->d_now);
}

/* ---- FULL ---- */

/* Sums of patches by number, and phi of the band. */
static inline void oct_levelset_queue_sums(struct oct_levelset_device *d)
{
    const dim3 grid = oct_levelset_grid(d->n_band, OCT_LEVELSET_THREADS);
    const dim3 block(OCT_LEVELSET_THREADS);
    const uint32_t *index = oct_levelset_in<uint32_t>(d, OCT_LEVELSET_INDEX);
    OCT_LAUNCH((oct_levelset_sums_kernel), grid, block, 0, d->stream->stream, d->shape, d->d_phi,
               index, d->n_band, oct_levelset_in<float>(d, OCT_LEVELSET_BY_NUMBER));
    OCT_LAUNCH((oct_levelset_take_kernel), grid, block, 0, d->stream->stream, d->d_phi, index,
               d->n_band, oct_levelset_in<float>(d, OCT_LEVELSET_NOW));
}

/* The order is there. */
static inline void oct_levelset_queue_gather(struct oct_levelset_device *d)
{
    OCT_LAUNCH((oct_levelset_gather_kernel), dim3(d->search.n_tiles), dim3(OCT_LEVELSET_THREADS), 0,
               d->stream->stream, d->shape, d->d_phi,
               oct_levelset_in<uint32_t>(d, OCT_LEVELSET_INDEX),
               oct_levelset_in<float>(d, OCT_LEVELSET_BY_NUMBER), d->search,
               oct_levelset_in<float>(d, OCT_LEVELSET_PATCHES),
               oct_levelset_in<float>(d, OCT_LEVELSET_BY_ORDER));
}

static inline void oct_levelset_queue_search(struct oct_levelset_device *d, uint32_t first_round,
                                             uint32_t end_round)
{
    OCT_LAUNCH((oct_levelset_search_kernel), dim3(d->search.n_tiles), dim3(OCT_LEVELSET_THREADS), 0,
               d->stream->stream, d->search, first_round, end_round);
}

static inline void oct_levelset_queue_finish(struct oct_levelset_device *d)
{
    OCT_LAUNCH((oct_levelset_finish_kernel), oct_levelset_grid(d->n_band, OCT_LEVELSET_SORTERS),
               dim3(OCT_LEVELSET_SORTERS * 32), 0, d->stream->stream, d->search, d->params.rank,
               oct_levelset_in<float>(d, OCT_LEVELSET_RANKS));
}

static inline void oct_levelset_queue_full(struct oct_levelset_device *d,
                                           enum oct_levelset_mode mode)
{
    const float c1 = std::isfinite(d->params.c1) ? (float)d->params.c1 : 0;
    OCT_LAUNCH((oct_levelset_full_kernel), oct_levelset_grid(d->n_band, OCT_LEVELSET_WARPS),
               dim3(OCT_LEVELSET_THREADS), 0, d->stream->stream, d->shape, d->search,
               d->params.most, c1, oct_levelset_in<uint32_t>(d, OCT_LEVELSET_INDEX),
               oct_levelset_in<float>(d, OCT_LEVELSET_NOW), mode,
               oct_levelset_in<float>(d, OCT_LEVELSET_NEXT), d->d_facts);
}

/* ---- memory ---- */

static inline void oct_levelset_search_init(struct oct_levelset_device *d)
{
    struct oct_levelset_search &s = d->search;
    const struct oct_levelset_params &p = d->params;
    s.n = d->n_band;
    s.n_tiles = oct_levelset_groups(d->n_band, OCT_LEVELSET_TILE);
    s.patch_values = p.patch * p.patch * p.patch;
    s.n_values = oct_levelset_groups(s.patch_values, OCT_LEVELSET_VALUES) * OCT_LEVELSET_VALUES;
    s.kept = p.c2 > 0 || p.most >= p.rank ? p.most : p.rank;
    s.n_keys = s.kept + 2 * OCT_LEVELSET_ROOM;
}

/* What lies where, of memory that is there. */
static inline void oct_levelset_place(struct oct_levelset_device *d)
{
    struct oct_levelset_search &s = d->search;
    d->piece = {};
    if (d->params.weights == OCT_LEVELSET_LOCAL) {
        const size_t rows = d->rooms[OCT_LEVELSET_ROWS].bytes / (d->layout.n_row * sizeof(float));
        d->most_segments = rows >= d->n_band ? d->n_segments : (uint32_t)(rows / OCT_LEVELSET_SPAN);
        return;
    }
    s.patches = oct_levelset_in<float>(d, OCT_LEVELSET_PATCHES);
    s.sums = oct_levelset_in<float>(d, OCT_LEVELSET_BY_ORDER);
    s.order = oct_levelset_in<uint32_t>(d, OCT_LEVELSET_ORDER);
    s.keys = oct_levelset_in<uint64_t>(d, OCT_LEVELSET_KEYS);
    s.n_found = oct_levelset_in<uint32_t>(d, OCT_LEVELSET_FOUND);
    s.limits = oct_levelset_in<uint64_t>(d, OCT_LEVELSET_LIMITS);
}

/* Bytes of rows: all, or as many as there is room for beside `others`. */
static inline enum oct_err oct_levelset_rows_bytes(struct oct_levelset_device *d, size_t others,
                                                   size_t *bytes, struct oct_error *err)
{
    const size_t row = d->layout.n_row * sizeof(float), segment = row * OCT_LEVELSET_SPAN;
    const size_t least = std::min(OCT_LEVELSET_LEAST_SEGMENTS, d->n_segments) * segment;
    size_t available = 0;
    *bytes = d->n_band * row;
    if (*bytes <= d->rooms[OCT_LEVELSET_ROWS].bytes)
        return OCT_OK;
    enum oct_err e = oct_levelset_free_bytes(d->stream, &available, err);
    available += d->rooms[OCT_LEVELSET_ROWS].bytes;
    available -= std::min(available, others);
    *bytes = std::min(*bytes, std::min(OCT_LEVELSET_ROWS_BYTES, available / 4 * 3));
    *bytes = std::max(*bytes, std::min(least, d->n_band * row));
    return e;
}

/* For n_band voxels and n_segments segments. */
static inline enum oct_err oct_levelset_reserve(struct oct_levelset_device *d,
                                                struct oct_error *err)
{
    const size_t n = d->n_band;
    size_t bytes[OCT_LEVELSET_ROOMS] = {}, others = 0;
    char what[96];
    enum oct_err e = OCT_OK;
    bytes[OCT_LEVELSET_INDEX] = bytes[OCT_LEVELSET_RANKS] = bytes[OCT_LEVELSET_NEXT] = n * 4;
    if (d->params.weights == OCT_LEVELSET_LOCAL) {
        bytes[OCT_LEVELSET_SEGMENTS] = d->n_segments * sizeof(struct oct_levelset_run);
        for (size_t more : bytes)
            others += more;
        e = oct_levelset_rows_bytes(d, others, &bytes[OCT_LEVELSET_ROWS], err);
    } else {
        oct_levelset_search_init(d);
        const struct oct_levelset_search &s = d->search;
        bytes[OCT_LEVELSET_NOW] = bytes[OCT_LEVELSET_BY_NUMBER] = bytes[OCT_LEVELSET_BY_ORDER] =
            bytes[OCT_LEVELSET_ORDER] = bytes[OCT_LEVELSET_FOUND] = n * 4;
        bytes[OCT_LEVELSET_PATCHES] = (size_t)s.n_tiles * OCT_LEVELSET_TILE * s.n_values * 4;
        bytes[OCT_LEVELSET_KEYS] = n * s.n_keys * 8;
        bytes[OCT_LEVELSET_LIMITS] = n * 8;
    }
    snprintf(what, sizeof(what), "a level set's band of %zu voxels", n);
    if (!e)
        e = oct_levelset_rooms_reserve(d->stream, d->rooms, bytes, OCT_LEVELSET_ROOMS, what, err);
    if (e)
        return e;
    oct_levelset_place(d);
    return OCT_OK;
}

/* ---- life ---- */

static inline void oct_levelset_finish(struct oct_levelset_device *d)
{
    for (struct oct_levelset_room &room : d->rooms)
        oct_levelset_room_free(&room);
    for (struct oct_levelset_room &room : d->box)
        oct_levelset_room_free(&room);
}

/* What the box takes, whatever the band. */
static inline enum oct_err oct_levelset_reserve_box(struct oct_levelset_device *d,
                                                    struct oct_error *err)
{
    const bool is_local = d->params.weights == OCT_LEVELSET_LOCAL;
    d->n_totals = oct_levelset_groups(d->shape.n_columns, OCT_LEVELSET_SCANNED);
    const size_t bytes[OCT_LEVELSET_BOX_ROOMS] = {d->n * sizeof(float),
                                                  is_local ? d->n * sizeof(float) : 0,
                                                  d->shape.n_columns * sizeof(uint64_t),
                                                  d->n_totals * sizeof(uint64_t),
                                                  OCT_LEVELSET_BINS * sizeof(uint32_t),
                                                  sizeof(struct oct_levelset_facts),
                                                  d->layout.n_row *
                                                      sizeof(struct oct_levelset_offset)};
    enum oct_err e = oct_levelset_rooms_reserve(d->stream, d->box, bytes, OCT_LEVELSET_BOX_ROOMS,
                                                "a level set's box", err);
    d->d_phi = (float *)d->box[0].d_memory;
    d->d_now = (float *)d->box[1].d_memory;
    d->d_columns = (uint64_t *)d->box[2].d_memory;
    d->d_totals = (uint64_t *)d->box[3].d_memory;
    d->d_bins = (uint32_t *)d->box[4].d_memory;
    d->d_facts = (struct oct_levelset_facts *)d->box[5].d_memory;
    d->d_offsets = (struct oct_levelset_offset *)d->box[6].d_memory;
    return e;
}

/* A tile in shared memory: spread where that fits, close otherwise. */
static inline enum oct_err oct_levelset_choose(struct oct_levelset_device *d, struct oct_error *err)
{
    const void *kernel = (const void *)oct_levelset_rows_of(d->shape.radius);
    int limit = 0;
    TRY_STREAM(
        d->stream, "shared memory",
        cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->stream->device));
    for (int is_spread = 1; is_spread >= 0; is_spread--) {
        d->layout = oct_levelset_layout_of(d->params, is_spread);
        d->tile_bytes = oct_levelset_tile_bytes(d->layout, d->params.patch);
        if (d->tile_bytes <= (size_t)limit)
            break;
    }
    if (d->tile_bytes > (size_t)limit)
        return oct_fail(err, OCT_E_BACKEND,
                        "GPU %d: a reach of %u voxels takes %zu bytes of shared memory; it has %d",
                        d->stream->device, d->params.reach, d->tile_bytes, limit);
    TRY_STREAM(d->stream, "shared memory",
               cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)d->tile_bytes));
    return OCT_OK;
}

/* d->stream is there. oct_levelset_finish comes after an error too. */
static inline enum oct_err oct_levelset_make(struct oct_levelset_device *d,
                                             const struct oct_levelset_setup *setup,
                                             struct oct_error *err)
{
    const bool is_local = setup->params.weights == OCT_LEVELSET_LOCAL;
    d->params = setup->params;
    d->shape = oct_levelset_shape_of(setup);
    d->n = (size_t)d->shape.n_columns * d->shape.n_d;
    d->stage_bytes = std::min(d->n * sizeof(float), OCT_LEVELSET_STAGE_BYTES);
    enum oct_err e = is_local ? oct_levelset_choose(d, err) : OCT_OK;
    e = e ? e : oct_levelset_reserve_box(d, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_facts, 1, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_stage, d->stage_bytes, err);
    e = e ? e : oct_cuda_stream_clear(d->stream, d->d_bins, d->box[4].bytes, err);
    if (e || !is_local)
        return e;
    const std::vector<struct oct_levelset_offset> offsets =
        oct_levelset_offsets_of(d->shape, d->layout, d->params.c1);
    e = oct_cuda_stream_upload(d->stream, d->d_offsets, offsets.data(), d->box[6].bytes, err);
    oct_cuda_stream_drain(d->stream); /* the offsets are not pinned */
    return e;
}

#endif
