/* Cells of a picture on a stream: what the engine and its timing share.
 *
 *     make -> { upload, queue_prepare, [queue_search, queue_refine] -> [queue_follow] } -> finish
 *
 * Nothing waits for the device but make. Memory is the stream's. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_CELLS_CUH
#define OCT_ANALYSIS_CELLS_CUDA_CELLS_CUH

#include "analysis/cells/cuda_follow.cuh"
#include "kernels/device/cuda_stream.cuh"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#define OCT_CELLS_ROOM 512u /* cells that are refined, or followed, at once */
#define OCT_CELLS_WINDOW_BYTES ((size_t)256 << 20) /* of windows at once, unless one is more */
#define OCT_CELLS_STATIC_SHARED 8192u              /* at most, beside the dynamic memory */

/* What comes back of a search in one copy. */
struct oct_cells_list {
    struct oct_cells_facts facts;
    struct oct_cell found[OCT_CELLS_ROOM];
};

struct oct_cells_device {
    struct oct_cuda_stream *stream;
    struct oct_cells_shape shape;
    bool is_tiled, is_window_shared; /* what fits into shared memory */
    bool keeps_fields, is_masked;    /* is_masked: of the picture */
    unsigned n_taps, most_starts;
    size_t n, most; /* pixels of a picture, of a window */
    size_t plane;   /* floats of a plane of a window */
    float *h_picture;
    uint8_t *h_valid, *h_near;
    struct oct_cells_list *h_list;
    struct oct_cells_snake *h_snakes;
    struct oct_cell_end *h_ends;
    float *h_fields;   /* [most_starts][most], with keeps_fields */
    float *h_gradient; /* [2][n], with REFINE_SPLINE */
    struct oct_cells_shape *d_shape;
    struct oct_cells_planes planes;
    struct oct_cells_extent *d_extents;
    uint32_t *d_bins, *d_peaks;
    float *d_taps, *d_scratch, *d_fields;
    struct oct_cells_offset *d_disk;
    struct oct_cells_circle_groups *d_circles; /* of a tile's pitch, or of the width */
    float4 *d_table;
    struct oct_cells_list *d_list;
    struct oct_cells_snake *d_snakes;
    struct oct_cell_end *d_ends;
};

/* Cells that are followed at once, of windows of that many pixels. */
static inline unsigned oct_cells_most_starts(size_t most)
{
    const size_t n = OCT_CELLS_WINDOW_BYTES / (4 * most * sizeof(float));
    return n < 1 ? 1 : n < OCT_CELLS_ROOM ? (unsigned)n : OCT_CELLS_ROOM;
}

/* ---- tables ---- */

static inline float4 oct_cells_pack(const struct oct_cells_group &group)
{
    const int offset = (int)group.offset;
    float bits;
    memcpy(&bits, &offset, sizeof(bits));
    return make_float4(group.a, group.b, bits, group.w);
}

static inline void oct_cells_list_circles(const struct oct_cells_gicov &gicov,
                                          std::vector<struct oct_cells_circle_groups> *rows,
                                          std::vector<float4> *table)
{
    for (unsigned k = 0; k < gicov.n; k++) {
        const struct oct_cells_gicov_circle &c = gicov.circle[k];
        const unsigned n = c.n_single + c.n_joint;
        const uint32_t n_single = c.n_single / OCT_CELLS_SINGLE * OCT_CELLS_SINGLE;
        const uint32_t n_joint =
            (n - n_single + OCT_CELLS_JOINT - 1) / OCT_CELLS_JOINT * OCT_CELLS_JOINT;
        rows->push_back({(uint32_t)table->size(), n_single, n_joint, c.excess});
        for (const struct oct_cells_group &scout : c.scout)
            table->push_back(oct_cells_pack(scout));
        for (unsigned i = 0; i < n; i++) {
            table->push_back(oct_cells_pack(c.group[i]));
            if (i >= n_single)
                table->push_back(make_float4(c.group[i].c, 0, 0, 0));
        }
        table->resize(rows->back().first + OCT_CELLS_SCOUTS + n_single + 2 * n_joint,
                      make_float4(0, 0, 0, 0));
    }
}

/* ---- life ---- */

/* Takes memory of the stream until something fails. */
struct oct_cells_maker {
    struct oct_cuda_stream *on;
    struct oct_error *err;
    enum oct_err e;

    template <class T> void take(T **d_memory, size_t n)
    {
        e = e ? e : oct_stream_alloc(on, d_memory, n, err);
    }
    template <class T> void pin(T **h_memory, size_t n)
    {
        e = e ? e : oct_stream_pin(on, h_memory, n, err);
    }
    template <class T> void clear(T *d_memory, size_t n)
    {
        e = e ? e : oct_cuda_stream_clear(on, d_memory, n * sizeof(T), err);
    }
    /* Waits until it is there: what it is copied from is not pinned, and may go then. */
    template <class T> void put(T **d_memory, const std::vector<T> &from)
    {
        take(d_memory, from.size());
        e = e ? e
              : oct_cuda_stream_upload(on, *d_memory, from.data(), from.size() * sizeof(T), err);
        oct_cuda_stream_drain(on);
    }
};

/* Allows a kernel `bytes` of shared memory. *fits false: it cannot have them. */
static inline enum oct_err oct_cells_allow(struct oct_cells_device *d, const void *kernel,
                                           size_t bytes, bool *fits, struct oct_error *err)
{
    int limit = 0;
    TRY_STREAM(
        d->stream, "shared memory",
        cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->stream->device));
    *fits = bytes + OCT_CELLS_STATIC_SHARED <= (size_t)limit;
    if (*fits)
        TRY_STREAM(
            d->stream, "shared memory",
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return OCT_OK;
}

/* The bins begin empty; of the list, the ends and the fields parts come back that no kernel has
 * written. */
static inline void oct_cells_take_memory(struct oct_cells_device *d, struct oct_cells_maker *m)
{
    struct oct_cells_planes *p = &d->planes;
    m->pin(&d->h_picture, d->n);
    m->pin(&d->h_valid, d->n);
    m->pin(&d->h_near, d->n);
    m->pin(&d->h_list, 1);
    m->pin(&d->h_snakes, d->most_starts);
    m->pin(&d->h_ends, d->most_starts);
    for (float **plane : {&p->raw, &p->along, &p->pixels, &p->score})
        m->take(plane, d->n);
    m->take(&p->gx, 2 * d->n);
    p->gy = p->gx + d->n;
    for (uint8_t **plane : {&p->best, &p->valid, &p->near})
        m->take(plane, d->n);
    m->take(&d->d_extents, OCT_CELLS_EXTENTS);
    m->take(&d->d_bins, OCT_CELLS_BINS);
    m->take(&d->d_peaks, d->n);
    m->take(&d->d_list, 1);
    m->take(&d->d_snakes, d->most_starts);
    m->take(&d->d_ends, d->most_starts);
    m->clear(d->d_bins, OCT_CELLS_BINS);
    m->clear(d->d_list, 1);
    m->clear(d->d_ends, d->most_starts);
    if (d->shape.params.refine == OCT_CELLS_REFINE_SPLINE)
        m->pin(&d->h_gradient, 2 * d->n);
    if (!d->is_window_shared)
        m->take(&d->d_scratch, d->most_starts * 3 * d->plane);
    if (d->keeps_fields) {
        m->pin(&d->h_fields, d->most_starts * d->most);
        m->take(&d->d_fields, d->most_starts * d->most);
        m->clear(d->d_fields, d->most_starts * d->most);
    }
}

static inline dim3 oct_cells_rows(const struct oct_cells_device *d)
{
    return dim3(oct_cells_blocks(d->shape.width, OCT_CELLS_THREADS), d->shape.height);
}

/* All that needs no memory of the device's. */
static inline void oct_cells_set_sizes(struct oct_cells_device *d,
                                       const struct oct_cells_engine_setup *setup)
{
    const struct oct_cells_params &p = setup->params;
    d->shape.height = setup->height;
    d->shape.width = setup->width;
    d->shape.border = oct_cells_border(&p);
    d->shape.n_circles = oct_cells_circles(&p, d->shape.circle_radius);
    d->shape.params = p;
    oct_snake_angles_init(&d->shape.angles);
    oct_cells_refiner_init(&d->shape.refiner, &p);
    d->n = (size_t)setup->height * setup->width;
    d->most = std::min((size_t)oct_cell_window_most(&p), d->n);
    d->most_starts = oct_cells_most_starts(d->most);
    d->plane = std::max(d->most, (size_t)OCT_CELLS_RUN_PLANE);
    d->keeps_fields = setup->keeps_fields;
}

/* The tables of circles, of a tile's pitch or of the width. */
static inline void oct_cells_put_circles(struct oct_cells_device *d, struct oct_cells_maker *m)
{
    std::vector<struct oct_cells_gicov> gicov(1);
    std::vector<struct oct_cells_circle_groups> rows;
    std::vector<float4> table;
    oct_cells_gicov_init(&gicov[0], &d->shape.params,
                         d->is_tiled ? tile_pitch(d->shape) : d->shape.width, 0);
    oct_cells_list_circles(gicov[0], &rows, &table);
    m->put(&d->d_circles, rows);
    m->put(&d->d_table, table);
}

static inline void oct_cells_put_disk(struct oct_cells_device *d, struct oct_cells_maker *m)
{
    size_t n;
    struct oct_cells_offset *disk = oct_cells_disk(&d->shape.params, &n);
    if (!disk)
        throw std::bad_alloc();
    std::vector<struct oct_cells_offset> offsets(disk, disk + n);
    free(disk);
    offsets.resize(std::max(n, (size_t)1)); /* memory of nothing cannot be had */
    d->shape.n_disk = (unsigned)n;
    m->put(&d->d_disk, offsets);
}

/* d: zeroed except for its stream. */
static inline enum oct_err oct_cells_make(struct oct_cells_device *d,
                                          const struct oct_cells_engine_setup *setup,
                                          struct oct_error *err)
{
    const double sigma = setup->params.smooth * setup->params.radius;
    std::vector<float> taps(1 + oct_cells_most_taps(sigma));
    struct oct_cells_maker m = {d->stream, err, OCT_OK};
    oct_cells_set_sizes(d, setup);
    d->n_taps = oct_cells_taps(sigma, taps.data());
    m.e = oct_cells_allow(d, (const void *)score_kernel<true>, tile_bytes(d->shape), &d->is_tiled,
                          err);
    m.e = m.e ? m.e
              : oct_cells_allow(d, (const void *)follow_kernel<true>, 3 * d->plane * sizeof(float),
                                &d->is_window_shared, err);
    m.put(&d->d_taps, taps);
    oct_cells_put_disk(d, &m);
    m.put(&d->d_shape, std::vector<struct oct_cells_shape>(1, d->shape));
    oct_cells_put_circles(d, &m);
    oct_cells_take_memory(d, &m);
    if (!m.e)
        OCT_LAUNCH((no_score_kernel), dim3(oct_cells_blocks(d->n, OCT_CELLS_THREADS)),
                   dim3(OCT_CELLS_THREADS), 0, d->stream->stream, d->planes, (uint32_t)d->n);
    return m.e;
}

/* ---- queueing ---- */

/* h_picture and, with is_masked, h_valid and h_near. */
static inline enum oct_err oct_cells_upload(struct oct_cells_device *d, struct oct_error *err)
{
    enum oct_err e =
        oct_cuda_stream_upload(d->stream, d->planes.raw, d->h_picture, d->n * sizeof(float), err);
    if (!e && d->is_masked)
        e = oct_cuda_stream_upload(d->stream, d->planes.valid, d->h_valid, d->n, err);
    if (!e && d->is_masked)
        e = oct_cuda_stream_upload(d->stream, d->planes.near, d->h_near, d->n, err);
    return e;
}

static inline void oct_cells_queue_floor(struct oct_cells_device *d)
{
    const struct oct_cells_planes &p = d->planes;
    const uint8_t *valid = d->is_masked ? p.valid : NULL;
    const dim3 grid(OCT_CELLS_MEDIAN_BLOCKS), block(OCT_CELLS_THREADS);
    struct oct_cells_facts *facts = &d->d_list->facts;
    if (!(d->shape.params.floor > 0))
        return;
    for (int pass = 0; pass < OCT_CELLS_MEDIAN_PASSES; pass++) {
        OCT_LAUNCH((count_kernel), grid, block, 0, d->stream->stream, p.gx, p.gy, valid,
                   (uint32_t)d->n, pass, facts, d->d_bins);
        OCT_LAUNCH((narrow_kernel), dim3(1), block, 0, d->stream->stream, pass, facts, d->d_bins);
    }
    OCT_LAUNCH((least_kernel), grid, block, 0, d->stream->stream, p.gx, p.gy, valid, (uint32_t)d->n,
               facts);
}

/* The picture smoothed, its gradient and its floor. */
static inline void oct_cells_queue_prepare(struct oct_cells_device *d)
{
    const struct oct_cells_planes &p = d->planes;
    const struct oct_cells_shape &s = d->shape;
    const cudaStream_t on = d->stream->stream;
    const dim3 rows = oct_cells_rows(d), block(OCT_CELLS_THREADS);
    struct oct_cells_facts *facts = &d->d_list->facts;
    const size_t segment = (OCT_CELLS_THREADS + 2 * (size_t)d->n_taps) * sizeof(float);
    const uint8_t *valid = d->is_masked ? p.valid : NULL;
    OCT_LAUNCH((extent_kernel), dim3(OCT_CELLS_EXTENTS), block, 0, on, p.raw, valid, (uint32_t)d->n,
               d->d_extents);
    OCT_LAUNCH((level_kernel), dim3(1), block, 0, on, d->d_extents, facts);
    OCT_LAUNCH((along_kernel), rows, block, segment, on, p.raw, facts, d->d_taps, d->n_taps,
               s.width, p.along);
    OCT_LAUNCH((across_kernel), rows, block, 0, on, p.along, d->d_taps, d->n_taps, s.height,
               s.width, p.pixels);
    OCT_LAUNCH((gradient_kernel), rows, block, 0, on, p.pixels, s.height, s.width, p.gx,
               p.gx + d->n);
    oct_cells_queue_floor(d);
}

static inline void oct_cells_queue_scores(struct oct_cells_device *d)
{
    const struct oct_cells_shape &s = d->shape;
    const dim3 grid(oct_cells_blocks(s.width - 2 * s.border, OCT_CELLS_TILE_COLUMNS),
                    oct_cells_blocks(s.height - 2 * s.border, OCT_CELLS_TILE_ROWS));
    const dim3 block(OCT_CELLS_SCORE_THREADS);
    const struct oct_cells_facts *facts = &d->d_list->facts;
    OCT_LAUNCH((d->is_tiled ? score_kernel<true> : score_kernel<false>), grid, block,
               d->is_tiled ? tile_bytes(s) : 0, d->stream->stream, s, d->d_circles, d->d_table,
               facts, d->planes);
}

static inline void oct_cells_queue_peaks(struct oct_cells_device *d)
{
    const struct oct_cells_shape &s = d->shape;
    const dim3 grid(s.height - 2 * s.border), block(OCT_CELLS_THREADS);
    const uint8_t *near = d->is_masked ? d->planes.near : NULL;
    struct oct_cells_facts *facts = &d->d_list->facts;
    OCT_LAUNCH((peaks_kernel), grid, block, 0, d->stream->stream, s, d->planes.score, near,
               d->d_disk, facts, d->d_peaks);
}

/* Peaks first .. first + OCT_CELLS_ROOM - 1, as far as there are such, in any order, to h_list. */
static inline enum oct_err oct_cells_queue_refine(struct oct_cells_device *d, uint32_t first,
                                                  struct oct_error *err)
{
    OCT_LAUNCH((refine_kernel), dim3(OCT_CELLS_ROOM), dim3(OCT_CELLS_REFINE_THREADS), 0,
               d->stream->stream, d->d_shape, d->planes, d->d_peaks, first, &d->d_list->facts,
               &d->d_list->found[0]);
    return oct_cuda_stream_download(d->stream, d->h_list, d->d_list, sizeof(*d->d_list), err);
}

/* n of h_snakes, to d_ends. */
static inline enum oct_err oct_cells_queue_snakes(struct oct_cells_device *d, unsigned n,
                                                  struct oct_error *err)
{
    const size_t shared = d->is_window_shared ? 3 * d->plane * sizeof(float) : 0;
    enum oct_err e =
        oct_cuda_stream_upload(d->stream, d->d_snakes, d->h_snakes, n * sizeof(*d->h_snakes), err);
    if (!e)
        OCT_LAUNCH((d->is_window_shared ? follow_kernel<true> : follow_kernel<false>), dim3(n),
                   dim3(OCT_CELLS_FOLLOW_THREADS), shared, d->stream->stream, d->d_shape, d->planes,
                   d->d_snakes, d->d_scratch, d->plane, d->most, d->d_fields, d->d_ends);
    return e;
}

/* The same, to h_ends and h_fields. */
static inline enum oct_err oct_cells_queue_follow(struct oct_cells_device *d, unsigned n,
                                                  struct oct_error *err)
{
    enum oct_err e = oct_cells_queue_snakes(d, n, err);
    if (!e)
        e = oct_cuda_stream_download(d->stream, d->h_ends, d->d_ends, n * sizeof(*d->h_ends), err);
    if (!e && d->keeps_fields)
        e = oct_cuda_stream_download(d->stream, d->h_fields, d->d_fields,
                                     n * d->most * sizeof(float), err);
    return e;
}

#endif
