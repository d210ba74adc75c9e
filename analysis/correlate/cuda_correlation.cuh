/* Correlation of a batch of pictures on a stream: what the engines of correlate.h and of
 * registration share.
 *
 *     make -> { take, upload_g, queue_g -> take ..., upload, queue -> d_c2d } -> finish
 *
 * Pictures are normal and lie in padded planes (cuda_planes.cuh). The spectra of planes are
 * multiplied,
 *
 *     product        f        g             sum over p of
 *     VALUES         values   values        f(p) g(p + d)
 *     MASKS          mask     mask          N
 *     F_SUMS         values   mask          S_f
 *     G_SUMS         mask     values        S_g
 *     F_SQUARES      squares  mask          S_ff - N
 *     G_SQUARES      mask     squares       S_gg - N
 *
 * and transformed back. Without masks there is one product, and S_f .. S_gg are sums over boxes,
 * from integral images in double. A whole batch is one launch of each step. */
#ifndef OCT_ANALYSIS_CORRELATE_CUDA_CORRELATION_CUH
#define OCT_ANALYSIS_CORRELATE_CUDA_CORRELATION_CUH

#include "analysis/correlate/cuda_boxes.cuh"
#include "analysis/correlate/cuda_planes.cuh"
#include "analysis/correlate/cuda_transforms.cuh"
extern "C" {
#include "analysis/correlate/correlate.h"
}

#include <cstring>
#include <new>

#define OCT_CORRELATION_THREADS 256u
#define OCT_CORRELATION_LEAST_VARIANCE 1e-9 /* of the whole picture's */

#define OCT_CORRELATION_PRODUCTS 6u

/* The planes of each product, in the order of the table above. */
struct oct_product_planes {
    unsigned char f[OCT_CORRELATION_PRODUCTS], g[OCT_CORRELATION_PRODUCTS];
};

/* What kernels know of the correlation. */
struct oct_correlation_shape {
    uint32_t height, width, g_height, g_width;
    uint32_t max_dy, max_dx;
    uint32_t padded_height, padded_width;
    unsigned n; /* pictures a batch */
    enum oct_correlation_norm norm;
    bool masked; /* with more than one plane */
    double inverse_points, min_overlap;
};

struct oct_correlation {
    struct oct_correlation_shape shape;
    struct oct_cuda_stream *stream;
    struct oct_transforms transforms;
    unsigned forward, forward_g, inverse; /* plans */
    unsigned n_products;
    bool alone;                              /* each picture with itself; set by the owner */
    struct oct_planes planes;                /* of a batch, or g, on its way */
    float *h_factors;                        /* [n] C = P factor, or P factor / N; not of zncc */
    float *d_planes, *d_g_planes;            /* [n_planes][n][padded], [n_planes][padded] */
    float2 *d_spectra, *d_g_spectra;         /* of the planes */
    float2 *d_products;                      /* [n_products][n]; d_spectra where there is one */
    float *d_sums;                           /* [n_products][n][padded] */
    struct oct_moments *d_boxes, *d_g_boxes; /* [n][height + 1][width + 1] */
    uint32_t *d_most;                        /* [n] largest N in the window */
    float *d_factors;                        /* [n] */
    float *d_c2d;                            /* [n][2 max_dy + 1][2 max_dx + 1] */
};

static __host__ __device__ inline size_t
oct_correlation_points(const struct oct_correlation_shape &s)
{
    return (size_t)s.padded_height * s.padded_width;
}

static __host__ __device__ inline size_t
oct_correlation_half_points(const struct oct_correlation_shape &s)
{
    return (size_t)s.padded_height * (s.padded_width / 2 + 1);
}

static inline size_t oct_correlation_shifts(const struct oct_correlation_shape &s)
{
    return (2 * (size_t)s.max_dy + 1) * (2 * (size_t)s.max_dx + 1);
}

/* ---- kernels ---- */

/* Of a single plane with itself; a thread two points. */
static __global__ void oct_power_kernel(float4 *spectra, size_t n_pairs)
{
    const size_t i = (size_t)blockIdx.x * OCT_CORRELATION_THREADS + threadIdx.x;
    if (i >= n_pairs)
        return;
    const float4 z = spectra[i];
    spectra[i] = make_float4(fmaf(z.x, z.x, z.y * z.y), 0, fmaf(z.z, z.z, z.w * z.w), 0);
}

/* conj(F) G; z: picture, y: product. g_n: 1 where one g is for all pictures, else n. */
static __global__ void oct_product_kernel(const float2 *f, const float2 *g, float2 *products,
                                          struct oct_product_planes planes, size_t points,
                                          unsigned n, unsigned g_n)
{
    const size_t p = (size_t)blockIdx.x * OCT_CORRELATION_THREADS + threadIdx.x;
    const unsigned k = blockIdx.y, i = blockIdx.z;
    if (p >= points)
        return;
    const float2 a = f[((size_t)planes.f[k] * n + i) * points + p];
    const float2 b = g[((size_t)planes.g[k] * g_n + (g_n == 1 ? 0 : i)) * points + p];
    products[((size_t)k * n + i) * points + p] =
        make_float2(fmaf(a.x, b.x, a.y * b.y), fmaf(a.x, b.y, -a.y * b.x));
}

/* Where the sums at a shift lie in a padded plane. */
static __device__ __forceinline__ size_t oct_sums_place(const struct oct_correlation_shape &s,
                                                        int dy, int dx)
{
    const uint32_t y = dy < 0 ? (uint32_t)(dy + (int)s.padded_height) : (uint32_t)dy;
    const uint32_t x = dx < 0 ? (uint32_t)(dx + (int)s.padded_width) : (uint32_t)dx;
    return (size_t)y * s.padded_width + x;
}

/* Numbers of pixels are whole: what is off is the transform's. */
static __device__ __forceinline__ double oct_masked_count(const struct oct_correlation_shape &s,
                                                          const float *sums)
{
    return rint(sums[s.n * oct_correlation_points(s)] * s.inverse_points);
}

/* The largest N of each picture's window; most: zeros. */
static __global__ void oct_most_kernel(struct oct_correlation_shape s, const float *sums,
                                       uint32_t *most, uint32_t n_shifts, uint32_t n_threads)
{
    const uint32_t width = 2 * s.max_dx + 1;
    double largest = 0;
    sums += blockIdx.y * oct_correlation_points(s);
    for (uint32_t k = blockIdx.x * OCT_CORRELATION_THREADS + threadIdx.x; k < n_shifts;
         k += n_threads) {
        const int dy = (int)(k / width) - (int)s.max_dy, dx = (int)(k % width) - (int)s.max_dx;
        largest = fmax(largest, oct_masked_count(s, sums + oct_sums_place(s, dy, dx)));
    }
    atomicMax(&most[blockIdx.y], (uint32_t)largest);
}

static __device__ __forceinline__ float oct_masked_zncc(const struct oct_correlation_shape &s,
                                                        const float *sums, double least_n)
{
    const size_t step = s.n * oct_correlation_points(s);
    const double scale = s.inverse_points, n = oct_masked_count(s, sums);
    if (n < least_n || n < 1)
        return __int_as_float(0x7fc00000);
    const struct oct_moments f = {sums[2 * step] * scale, sums[4 * step] * scale + n};
    const struct oct_moments g = {sums[3 * step] * scale, sums[5 * step] * scale + n};
    /* The sums come from transforms in f32: a variance that rounding hides is none. */
    const double least = 1e-6 * s.height * s.width;
    return oct_zncc(n, sums[0] * scale, f, g, least, least);
}

static __device__ __forceinline__ float
oct_plain_zncc(const struct oct_correlation_shape &s, const float *sums,
               const struct oct_moments *f_boxes, const struct oct_moments *g_boxes, int dy, int dx)
{
    const struct oct_meeting rows = oct_meet(s.height, s.g_height, dy);
    const struct oct_meeting columns = oct_meet(s.width, s.g_width, dx);
    const double n = (double)(rows.end - rows.first) * (columns.end - columns.first);
    const double most = (double)min(s.height, s.g_height) * min(s.width, s.g_width);
    if (n < s.min_overlap * most || n < 1)
        return __int_as_float(0x7fc00000);
    const struct oct_moments f = oct_box(f_boxes, s.width, rows, columns);
    const struct oct_moments g =
        oct_box(g_boxes, s.g_width, oct_moved(rows, dy), oct_moved(columns, dx));
    return oct_zncc(n, sums[0] * s.inverse_points, f, g,
                    OCT_CORRELATION_LEAST_VARIANCE * s.height * s.width,
                    OCT_CORRELATION_LEAST_VARIANCE * s.g_height * s.g_width);
}

/* From sums to C; a thread a shift. g_n: 1 where one g is for all pictures. */
static __global__ void oct_finish_kernel(struct oct_correlation_shape s, const float *sums,
                                         const float *factors, const uint32_t *most,
                                         const struct oct_moments *f_boxes,
                                         const struct oct_moments *g_boxes, unsigned g_n,
                                         float *c2d)
{
    const uint32_t width = 2 * s.max_dx + 1;
    const uint32_t x = blockIdx.x * OCT_CORRELATION_THREADS + threadIdx.x;
    const unsigned i = blockIdx.z;
    if (x >= width)
        return;
    const int dy = (int)blockIdx.y - (int)s.max_dy, dx = (int)x - (int)s.max_dx;
    const float *at = sums + i * oct_correlation_points(s) + oct_sums_place(s, dy, dx);
    float c;
    if (s.norm == OCT_CORRELATION_EQ1) {
        c = at[0] * factors[i];
    } else if (s.norm == OCT_CORRELATION_OVERLAP) {
        const struct oct_meeting rows = oct_meet(s.height, s.g_height, dy);
        const struct oct_meeting columns = oct_meet(s.width, s.g_width, dx);
        const float n =
            s.masked ? (float)oct_masked_count(s, at)
                     : (float)((size_t)(rows.end - rows.first) * (columns.end - columns.first));
        c = n < 1 ? __int_as_float(0x7fc00000) : at[0] * factors[i] / n;
    } else if (s.masked) {
        c = oct_masked_zncc(s, at, s.min_overlap * most[i]);
    } else {
        const size_t g_boxes_of = (size_t)(s.g_height + 1) * (s.g_width + 1);
        c = oct_plain_zncc(s, at, f_boxes + i * (size_t)(s.height + 1) * (s.width + 1),
                           g_boxes + (g_n == 1 ? 0 : i) * g_boxes_of, dy, dx);
    }
    c2d[((size_t)i * (2 * s.max_dy + 1) + blockIdx.y) * width + x] = c;
}

/* ---- queueing ---- */

static inline unsigned oct_blocks(size_t n, unsigned threads)
{
    return (unsigned)((n + threads - 1) / threads);
}

static inline struct oct_padding oct_correlation_padding(const struct oct_correlation_shape &s)
{
    return {s.height, s.width, s.padded_height, s.padded_width};
}

static inline struct oct_padding oct_correlation_padding_of_g(const struct oct_correlation_shape &s)
{
    return {s.g_height, s.g_width, s.padded_height, s.padded_width};
}

/* The n pictures that were taken, and h_factors, to the device. */
static inline enum oct_err oct_correlation_upload(struct oct_correlation *c, unsigned n,
                                                  struct oct_error *err)
{
    const struct oct_padding padding = oct_correlation_padding(c->shape);
    enum oct_err e = oct_planes_upload(&c->planes, &padding, n, c->shape.n, c->d_planes, err);
    return e ? e
             : oct_cuda_stream_upload(c->stream, c->d_factors, c->h_factors, n * sizeof(float),
                                      err);
}

static inline enum oct_err oct_correlation_upload_g(struct oct_correlation *c,
                                                    struct oct_error *err)
{
    const struct oct_padding padding = oct_correlation_padding_of_g(c->shape);
    return oct_planes_upload(&c->planes, &padding, 1, 1, c->d_g_planes, err);
}

/* Integral images of n pictures that were uploaded; nothing where none are needed. */
static inline void oct_correlation_queue_boxes(struct oct_correlation *c, unsigned n)
{
    if (c->d_boxes)
        oct_boxes_queue(c->stream, c->d_planes, oct_correlation_padding(c->shape), n, c->d_boxes);
}

static inline enum oct_err oct_correlation_queue_g(struct oct_correlation *c, struct oct_error *err)
{
    if (c->d_g_boxes)
        oct_boxes_queue(c->stream, c->d_g_planes, oct_correlation_padding_of_g(c->shape), 1,
                        c->d_g_boxes);
    return oct_transforms_r2c(&c->transforms, c->forward_g, c->stream, c->d_g_planes,
                              c->d_g_spectra, err);
}

static inline void oct_correlation_multiply(struct oct_correlation *c)
{
    static const struct oct_product_planes planes = {
        {OCT_CORRELATION_VALUES, OCT_CORRELATION_MASK, OCT_CORRELATION_VALUES, OCT_CORRELATION_MASK,
         OCT_CORRELATION_SQUARES, OCT_CORRELATION_MASK},
        {OCT_CORRELATION_VALUES, OCT_CORRELATION_MASK, OCT_CORRELATION_MASK, OCT_CORRELATION_VALUES,
         OCT_CORRELATION_MASK, OCT_CORRELATION_SQUARES}};
    const struct oct_correlation_shape &s = c->shape;
    const size_t points = oct_correlation_half_points(s);
    const dim3 block(OCT_CORRELATION_THREADS);
    if (c->alone && c->n_products == 1) {
        const size_t n_pairs = (s.n * points + 1) / 2; /* the memory is even */
        OCT_LAUNCH((oct_power_kernel), dim3(oct_blocks(n_pairs, OCT_CORRELATION_THREADS)), block, 0,
                   c->stream->stream, (float4 *)c->d_spectra, n_pairs);
        return;
    }
    OCT_LAUNCH((oct_product_kernel),
               dim3(oct_blocks(points, OCT_CORRELATION_THREADS), c->n_products, s.n), block, 0,
               c->stream->stream, c->d_spectra, c->alone ? c->d_spectra : c->d_g_spectra,
               c->d_products, planes, points, s.n, c->alone ? s.n : 1u);
}

static inline void oct_correlation_queue_finish(struct oct_correlation *c)
{
    const struct oct_correlation_shape &s = c->shape;
    const uint32_t n_shifts = (uint32_t)oct_correlation_shifts(s), n_blocks = 32;
    if (c->d_most)
        OCT_LAUNCH((oct_most_kernel), dim3(n_blocks, s.n), dim3(OCT_CORRELATION_THREADS), 0,
                   c->stream->stream, s, c->d_sums, c->d_most, n_shifts,
                   n_blocks * OCT_CORRELATION_THREADS);
    OCT_LAUNCH((oct_finish_kernel),
               dim3(oct_blocks(2 * s.max_dx + 1, OCT_CORRELATION_THREADS), 2 * s.max_dy + 1, s.n),
               dim3(OCT_CORRELATION_THREADS), 0, c->stream->stream, s, c->d_sums, c->d_factors,
               c->d_most, c->d_boxes, c->alone ? c->d_boxes : c->d_g_boxes, c->alone ? s.n : 1u,
               c->d_c2d);
}

/* All pictures of a batch that were uploaded, to d_c2d. With boxes those of the pictures too. */
static inline enum oct_err oct_correlation_queue(struct oct_correlation *c, bool with_boxes,
                                                 struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    enum oct_err e = OCT_OK;
    if (with_boxes)
        oct_correlation_queue_boxes(c, s.n);
    if (c->d_most)
        e = oct_cuda_stream_clear(c->stream, c->d_most, s.n * sizeof(uint32_t), err);
    e = e ? e
          : oct_transforms_r2c(&c->transforms, c->forward, c->stream, c->d_planes, c->d_spectra,
                               err);
    if (e)
        return e;
    oct_correlation_multiply(c);
    e = oct_transforms_c2r(&c->transforms, c->inverse, c->stream, c->d_products, c->d_sums, err);
    if (!e)
        oct_correlation_queue_finish(c);
    return e;
}

/* ---- life ---- */

static inline enum oct_err oct_correlation_alloc(struct oct_correlation *c, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    struct oct_cuda_stream *on = c->stream;
    const size_t points = oct_correlation_points(s), half = oct_correlation_half_points(s);
    const size_t f = (size_t)s.height * s.width, g = (size_t)s.g_height * s.g_width;
    const size_t pixels = s.n * f > g ? s.n * f : g;
    const size_t n_planes = !s.masked ? 1 : s.norm == OCT_CORRELATION_ZNCC ? 3 : 2;
    const bool boxes = s.norm == OCT_CORRELATION_ZNCC && !s.masked;
    const size_t f_boxes = s.n * (size_t)(s.height + 1) * (s.width + 1);
    const size_t g_boxes = (size_t)(s.g_height + 1) * (s.g_width + 1);
    enum oct_err e = oct_planes_alloc(&c->planes, on, (unsigned)n_planes, s.n, pixels, err);
    e = e ? e : oct_stream_pin(on, &c->h_factors, s.n, err);
    e = e ? e : oct_stream_alloc(on, &c->d_factors, s.n, err);
    e = e ? e : oct_stream_alloc(on, &c->d_planes, n_planes * s.n * points, err);
    e = e ? e : oct_stream_alloc(on, &c->d_g_planes, n_planes * points, err);
    e = e ? e : oct_stream_alloc(on, &c->d_spectra, n_planes * s.n * half + 1, err);
    e = e ? e : oct_stream_alloc(on, &c->d_g_spectra, n_planes * half, err);
    e = e ? e : oct_stream_alloc(on, &c->d_sums, c->n_products * s.n * points, err);
    e = e ? e : oct_stream_alloc(on, &c->d_c2d, s.n * oct_correlation_shifts(s), err);
    c->d_products = c->d_spectra;
    if (!e && c->n_products > 1)
        e = oct_stream_alloc(on, &c->d_products, c->n_products * s.n * half, err);
    if (!e && boxes) {
        e = oct_stream_alloc(on, &c->d_boxes, f_boxes, err);
        e = e ? e : oct_stream_alloc(on, &c->d_g_boxes, g_boxes, err);
    }
    if (!e && s.masked && s.norm == OCT_CORRELATION_ZNCC)
        e = oct_stream_alloc(on, &c->d_most, s.n, err);
    return e;
}

/* Queues zeros: in the padding, in what is read in pairs, and in what a batch that is not full
 * leaves as it was: kernels read all of a batch. */
static inline enum oct_err oct_correlation_clear(struct oct_correlation *c, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    struct oct_cuda_stream *on = c->stream;
    const size_t g_plane = oct_correlation_points(s) * sizeof(float) * c->planes.n_planes;
    const size_t half = oct_correlation_half_points(s) * sizeof(float2) * c->planes.n_planes;
    const size_t boxes = s.n * (size_t)(s.height + 1) * (s.width + 1) * sizeof(struct oct_moments);
    enum oct_err e = oct_cuda_stream_clear(on, c->d_planes, s.n * g_plane, err);
    e = e ? e : oct_cuda_stream_clear(on, c->d_g_planes, g_plane, err);
    e = e ? e : oct_cuda_stream_clear(on, c->d_spectra, s.n * half + sizeof(float2), err);
    if (!e && c->d_boxes)
        e = oct_cuda_stream_clear(on, c->d_boxes, boxes, err);
    return e ? e : oct_cuda_stream_clear(on, c->d_factors, s.n * sizeof(float), err);
}

static inline enum oct_err oct_correlation_plan(struct oct_correlation *c, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    const uint32_t height = s.padded_height, width = s.padded_width;
    enum oct_err e = oct_cufft_open(&c->transforms.fft, err);
    c->forward = 0;
    c->inverse = 1;
    c->forward_g = 2;
    e = e ? e
          : oct_transforms_plan(&c->transforms, CUFFT_R2C, height, width, c->planes.n_planes * s.n,
                                c->stream, err);
    e = e ? e
          : oct_transforms_plan(&c->transforms, CUFFT_C2R, height, width, c->n_products * s.n,
                                c->stream, err);
    e = e ? e
          : oct_transforms_plan(&c->transforms, CUFFT_R2C, height, width, c->planes.n_planes,
                                c->stream, err);
    return e;
}

static inline struct oct_correlation_shape
oct_correlation_shape_of(const struct oct_correlator_setup *setup)
{
    struct oct_correlation_shape s = {};
    s.height = setup->height;
    s.width = setup->width;
    s.g_height = setup->g_height;
    s.g_width = setup->g_width;
    s.max_dy = setup->max_dy;
    s.max_dx = setup->max_dx;
    s.padded_height =
        oct_transforms_size((s.height > s.g_height ? s.height : s.g_height) + s.max_dy, 1);
    s.padded_width = oct_transforms_size((s.width > s.g_width ? s.width : s.g_width) + s.max_dx, 2);
    s.n = setup->n_batch ? setup->n_batch : 1;
    s.norm = setup->norm;
    s.masked = setup->masked && s.norm != OCT_CORRELATION_EQ1;
    s.inverse_points = 1.0 / ((double)s.padded_height * s.padded_width);
    s.min_overlap = setup->min_overlap;
    return s;
}

/* *c is zeroed; finish is legal after an error. Memory is the stream's. */
static inline enum oct_err oct_correlation_make(struct oct_correlation *c,
                                                const struct oct_correlation_shape *shape,
                                                struct oct_cuda_stream *stream,
                                                struct oct_error *err)
{
    c->shape = *shape;
    c->stream = stream;
    c->n_products = !shape->masked ? 1 : shape->norm == OCT_CORRELATION_ZNCC ? 6 : 2;
    enum oct_err e = oct_correlation_alloc(c, err);
    e = e ? e : oct_correlation_clear(c, err);
    return e ? e : oct_correlation_plan(c, err);
}

static inline void oct_correlation_finish(struct oct_correlation *c)
{
    oct_transforms_finish(&c->transforms);
}

/* ---- as the context of a worker's task (kernels/device/cuda_task.h) ---- */

/* A task's unmake: of a CONTEXT that has a member `correlation`. */
template <class CONTEXT> static void oct_correlation_unmake(void *argument)
{
    CONTEXT *c = (CONTEXT *)argument;
    oct_correlation_finish(&c->correlation);
    delete c;
}

/* A task's make: a zeroed CONTEXT, its correlation, and what `complete` adds to it from `setup`:
 * memory of its own, and every kernel once. */
template <class CONTEXT, class SETUP>
static enum oct_err
oct_correlation_make_context(void **out, struct oct_cuda_stream *stream,
                             const struct oct_correlator_setup &correlator, const SETUP *setup,
                             enum oct_err (*complete)(CONTEXT *, const SETUP *, struct oct_error *),
                             struct oct_error *err)
{
    const struct oct_correlation_shape shape = oct_correlation_shape_of(&correlator);
    CONTEXT *c = new (std::nothrow) CONTEXT();
    *out = NULL;
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a correlation on a GPU");
    enum oct_err e = oct_correlation_make(&c->correlation, &shape, stream, err);
    e = e ? e : complete(c, setup, err);
    oct_cuda_stream_drain(stream);
    if (e) {
        oct_correlation_unmake<CONTEXT>(c);
        return e;
    }
    *out = c;
    return OCT_OK;
}

/* A picture that is all zero in the place of the first, or of g: for a rehearsal of all kernels. */
static inline void oct_correlation_blank(struct oct_correlation *c)
{
    const struct oct_correlation_shape &s = c->shape;
    const size_t f = (size_t)s.height * s.width, g = (size_t)s.g_height * s.g_width;
    memset(c->planes.h_pictures, 0, (f > g ? f : g) * sizeof(float));
    memset(c->planes.h_normals, 0, s.n * sizeof(*c->planes.h_normals));
    memset(c->h_factors, 0, s.n * sizeof(float));
}

#endif
