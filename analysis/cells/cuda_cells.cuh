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
#include <vector>

#define OCT_CELLS_ROOM 512u /* cells that are refined, or followed, at once */
#define OCT_CELLS_WINDOW_BYTES ((size_t)256 << 20) /* of windows at once, unless one is more */
#define OCT_CELLS_STATIC_SHARED 8192u              /* at most, beside the dynamic memory */

/* What comes back of a search in one copy. */
struct oct_cells_list {
    struct oct_cells_facts facts;
    struct oct_cells_d_found found[OCT_CELLS_ROOM];
};

/* Circles as kernels read them, of one pitch. */
struct oct_cells_circle_table {
    struct oct_cells_circle_groups *d_circles;
    float4 *d_table;
};

struct oct_cells_device {
    struct oct_cuda_stream *stream;
    struct oct_cells_shape shape;
    bool is_tiled, is_window_shared; /* what fits into shared memory */
    bool keeps_fields, is_masked;    /* is_masked: of the picture */
    bool has_map;
    unsigned n_taps, most_starts;
    size_t n, most; /* pixels of a picture, of a window */
    size_t plane;   /* floats of a plane of a window */
    float *h_picture;
    uint8_t *h_valid, *h_near;
    struct oct_cells_list *h_list;
    struct oct_cells_snake_start *h_starts;
    struct oct_cells_snake_end *h_ends;
    float *h_fields;   /* [most_starts][most], with keeps_fields */
    float *h_gradient; /* [2][n], with REFINE_SPLINE */
    struct oct_cells_shape *d_shape;
    struct oct_cells_planes planes;
    struct oct_cells_extent *d_extents;
    uint32_t *d_bins, *d_n_row, *d_peaks;
    float *d_taps, *d_scratch, *d_fields;
    struct oct_cells_offset *d_disk;
    struct oct_cells_circle_table tiled, whole; /* tiled: with is_tiled */
    struct oct_cells_list *d_list;
    struct oct_cells_snake_start *d_starts;
    struct oct_cells_snake_end *d_ends;
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

static inline void oct_cells_list_circles(const struct oct_cells_circles &circles, uint32_t pitch,
                                          std::vector<struct oct_cells_circle_groups> *rows,
                                          std::vector<float4> *table)
{
    struct oct_cells_gradient gradient = {};
    std::vector<struct oct_cells_gicov> gicov(1);
    gradient.row = pitch;
    oct_cells_gicov_init(&gicov[0], &circles, &gradient);
    for (unsigned k = 0; k < gicov[0].n; k++) {
        const struct oct_cells_gicov_circle &c = gicov[0].circle[k];
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

/* As gicov.c: within round(spacing R), the nearest first. */
static inline std::vector<struct oct_cells_offset> oct_cells_disk(const struct oct_cells_params &p)
{
    const int32_t r = (int32_t)lround(p.spacing * p.radius);
    std::vector<struct oct_cells_offset> disk;
    const auto square = [](const struct oct_cells_offset &o) {
        return (int64_t)o.dx * o.dx + (int64_t)o.dy * o.dy;
    };
    for (int32_t dy = -r; dy <= r; dy++)
        for (int32_t dx = -r; dx <= r; dx++)
            if ((int64_t)dx * dx + (int64_t)dy * dy <= (int64_t)r * r && (dx != 0 || dy != 0))
                disk.push_back({dx, dy});
    std::stable_sort(disk.begin(), disk.end(),
                     [&](const struct oct_cells_offset &a, const struct oct_cells_offset &b) {
                         return square(a) < square(b);
                     });
    if (disk.empty())
        disk.push_back({0, 0});
    return disk;
}

/* As prepare.c: exp(-t^2 / 2 sigma^2) up to 4 sigma, of sum 1. */
static inline std::vector<float> oct_cells_taps(double sigma)
{
    const unsigned n = (unsigned)(4 * sigma + 0.5);
    std::vector<float> taps(1 + n);
    double sum = 1;
    for (unsigned t = 1; t <= n; t++)
        sum += 2 * exp(-0.5 * t * t / (sigma * sigma));
    taps[0] = (float)(1 / sum);
    for (unsigned t = 1; t <= n; t++)
        taps[t] = (float)(exp(-0.5 * t * t / (sigma * sigma)) / sum);
    return taps;
}

static inline struct oct_cells_shape oct_cells_shape_of(const struct oct_cells_engine_setup *setup,
                                                        const struct oct_cells_circles *circles)
{
    const struct oct_cells_params &p = setup->params;
    struct oct_cells_shape s = {};
    s.height = setup->height;
    s.width = setup->width;
    s.border = circles->border;
    s.n_circles = circles->n;
    s.polarity = p.polarity;
    s.refine = p.refine;
    s.threshold = p.threshold;
    s.floor = p.floor;
    s.radius = p.radius;
    s.stop = p.stop;
    oct_snake_angles_init(&s.angles);
    oct_cells_refiner_init(&s.refiner, &p, circles);
    for (unsigned k = 0; k < circles->n; k++)
        s.circle_radius[k] = circles->circle[k].radius;
    return s;
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
    void put_circles(struct oct_cells_circle_table *to, const struct oct_cells_circles &circles,
                     uint32_t pitch)
    {
        std::vector<struct oct_cells_circle_groups> rows;
        std::vector<float4> table;
        oct_cells_list_circles(circles, pitch, &rows, &table);
        put(&to->d_circles, rows);
        put(&to->d_table, table);
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

static inline void oct_cells_take_planes(struct oct_cells_device *d, struct oct_cells_maker *m)
{
    struct oct_cells_planes *p = &d->planes;
    for (float **plane : {&p->raw, &p->along, &p->pixels, &p->score})
        m->take(plane, d->n);
    m->take(&p->gx, 2 * d->n);
    p->gy = p->gx + d->n;
    for (uint8_t **plane : {&p->best, &p->valid, &p->near})
        m->take(plane, d->n);
}

/* The bins begin empty; of the list, the ends and the fields parts come back that no kernel has
 * written. */
static inline void oct_cells_take_memory(struct oct_cells_device *d, struct oct_cells_maker *m)
{
    m->pin(&d->h_picture, d->n);
    m->pin(&d->h_valid, d->n);
    m->pin(&d->h_near, d->n);
    m->pin(&d->h_list, 1);
    m->pin(&d->h_starts, d->most_starts);
    m->pin(&d->h_ends, d->most_starts);
    oct_cells_take_planes(d, m);
    m->take(&d->d_extents, OCT_CELLS_EXTENTS);
    m->take(&d->d_bins, OCT_CELLS_BINS);
    m->take(&d->d_n_row, d->shape.height);
    m->take(&d->d_peaks, d->n);
    m->take(&d->d_list, 1);
    m->take(&d->d_starts, d->most_starts);
    m->take(&d->d_ends, d->most_starts);
    m->clear(d->d_bins, OCT_CELLS_BINS);
    m->clear(d->d_list, 1);
    m->clear(d->d_ends, d->most_starts);
    if (d->shape.refine == OCT_CELLS_REFINE_SPLINE)
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

/* d: zeroed but for its stream. */
static inline enum oct_err oct_cells_make(struct oct_cells_device *d,
                                          const struct oct_cells_engine_setup *setup,
                                          struct oct_error *err)
{
    const struct oct_cells_params &p = setup->params;
    std::vector<struct oct_cells_circles> circles(1);
    oct_cells_circles_init(&circles[0], &p);
    const std::vector<float> taps = oct_cells_taps(p.smooth * p.radius);
    const std::vector<struct oct_cells_offset> disk = oct_cells_disk(p);
    d->shape = oct_cells_shape_of(setup, &circles[0]);
    d->shape.n_disk = (unsigned)disk.size();
    d->n_taps = (unsigned)taps.size() - 1;
    d->n = (size_t)setup->height * setup->width;
    d->most = std::min((size_t)oct_cell_window_most(&p), d->n);
    d->most_starts = oct_cells_most_starts(d->most);
    d->plane = std::max(d->most, (size_t)OCT_CELLS_RUN_PLANE);
    d->keeps_fields = setup->keeps_fields;
    struct oct_cells_maker m = {d->stream, err, OCT_OK};
    m.e = oct_cells_allow(d, (const void *)score_kernel<true>, tile_bytes(d->shape), &d->is_tiled,
                          err);
    m.e = m.e ? m.e
              : oct_cells_allow(d, (const void *)follow_kernel<true>, 3 * d->plane * sizeof(float),
                                &d->is_window_shared, err);
    m.put(&d->d_taps, taps);
    m.put(&d->d_disk, disk);
    m.put(&d->d_shape, std::vector<struct oct_cells_shape>(1, d->shape));
    m.put_circles(&d->whole, circles[0], d->shape.width);
    if (d->is_tiled)
        m.put_circles(&d->tiled, circles[0], tile_pitch(d->shape));
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
    if (!(d->shape.floor > 0))
        return;
    for (int pass = 0; pass < OCT_CELLS_MEDIAN_PASSES; pass++) {
        OCT_LAUNCH((count_kernel), grid, block, 0, d->stream->stream, p.gx, p.gy, valid,
                   (uint32_t)d->n, pass, facts, d->d_bins);
        OCT_LAUNCH((narrow_kernel), dim3(1), block, 0, d->stream->stream, pass, facts, d->d_bins);
    }
    OCT_LAUNCH((least_kernel), grid, block, 0, d->stream->stream, p.gx, p.gy, valid, (uint32_t)d->n,
               facts);
    OCT_LAUNCH((floor_kernel), dim3(1), dim3(1), 0, d->stream->stream, d->shape.floor, facts);
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
    if (d->is_tiled)
        OCT_LAUNCH((score_kernel<true>), grid, block, tile_bytes(s), d->stream->stream, s,
                   d->tiled.d_circles, d->tiled.d_table, facts, d->planes);
    else
        OCT_LAUNCH((score_kernel<false>), grid, block, 0, d->stream->stream, s, d->whole.d_circles,
                   d->whole.d_table, facts, d->planes);
}

static inline void oct_cells_queue_peaks(struct oct_cells_device *d)
{
    const struct oct_cells_shape &s = d->shape;
    const dim3 grid(s.height - 2 * s.border), block(OCT_CELLS_THREADS);
    const uint8_t *near = d->is_masked ? d->planes.near : NULL;
    struct oct_cells_facts *facts = &d->d_list->facts;
    OCT_LAUNCH((peaks_kernel), grid, block, 0, d->stream->stream, s, d->planes.score, near,
               d->d_disk, facts, d->d_peaks, d->d_n_row);
}

/* Peaks first .. first + OCT_CELLS_ROOM - 1, as far as there are such, to h_list. */
static inline enum oct_err oct_cells_queue_refine(struct oct_cells_device *d, uint32_t first,
                                                  struct oct_error *err)
{
    OCT_LAUNCH((refine_kernel), dim3(OCT_CELLS_ROOM), dim3(OCT_CELLS_REFINE_THREADS), 0,
               d->stream->stream, d->d_shape, d->planes, d->d_n_row, d->d_peaks, first,
               &d->d_list->facts, &d->d_list->found[0]);
    return oct_cuda_stream_download(d->stream, d->h_list, d->d_list, sizeof(*d->d_list), err);
}

/* n of h_starts, to d_ends. */
static inline enum oct_err oct_cells_queue_snakes(struct oct_cells_device *d, unsigned n,
                                                  struct oct_error *err)
{
    const struct oct_cells_scorer_tables tables = {d->has_map, d->whole.d_circles,
                                                   d->whole.d_table};
    const dim3 grid(n), block(OCT_CELLS_FOLLOW_THREADS);
    const cudaStream_t on = d->stream->stream;
    enum oct_err e =
        oct_cuda_stream_upload(d->stream, d->d_starts, d->h_starts, n * sizeof(*d->h_starts), err);
    if (e)
        return e;
    if (d->is_window_shared)
        OCT_LAUNCH((follow_kernel<true>), grid, block, 3 * d->plane * sizeof(float), on, d->d_shape,
                   d->planes, tables, &d->d_list->facts, d->d_starts, d->d_scratch, d->plane,
                   d->most, d->d_fields, d->d_ends);
    else
        OCT_LAUNCH((follow_kernel<false>), grid, block, 0, on, d->d_shape, d->planes, tables,
                   &d->d_list->facts, d->d_starts, d->d_scratch, d->plane, d->most, d->d_fields,
                   d->d_ends);
    return OCT_OK;
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
