/* Correlation of a batch of pictures on a stream: what the engines of correlate.h and of
 * registration share.
 *
 *     make -> { put, upload_g, queue_g -> put ..., upload, queue -> d_c2d } -> finish
 *
 * Pictures are normal (normal.h) and lie in padded *planes*: values; with masks the mask, and the
 * squares of the values less the mask (1 is their mean). The spectra of planes are multiplied,
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

#include "analysis/correlate/cuda_transforms.cuh"
#include "analysis/correlate/normal.h"
extern "C" {
#include "analysis/correlate/correlate.h"
}

#define OCT_CORRELATION_THREADS 256u
#define OCT_CORRELATION_LEAST_VARIANCE 1e-9 /* of the whole picture's */
#define OCT_BOX_COLUMNS 32u                 /* of a block that sums columns */
#define OCT_BOX_SEGMENTS 16u                /* into which it cuts them */
#define OCT_BOX_THREADS 128u                /* of a block that sums a row; a power of two */

enum oct_correlation_plane {
    OCT_CORRELATION_VALUES,
    OCT_CORRELATION_MASK,
    OCT_CORRELATION_SQUARES
};
#define OCT_CORRELATION_PRODUCTS 6u

/* The planes of each product, in the order of the table above. */
struct oct_product_planes {
    unsigned char f[OCT_CORRELATION_PRODUCTS], g[OCT_CORRELATION_PRODUCTS];
};

/* A sum and a sum of squares. */
struct oct_moments {
    double sum, squares;
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
    unsigned n_planes, n_products;
    bool alone;                              /* each picture with itself; set by the owner */
    float *h_pictures;                       /* [n][height][width], or g */
    uint8_t *h_masks;                        /* the same; NULL without planes for them */
    float *h_factors;                        /* [n] C = P factor, or P factor / N; not of zncc */
    float *d_planes, *d_g_planes;            /* [n_planes][n][padded], [n_planes][padded] */
    uint8_t *d_masks;                        /* as h_masks */
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

/* The planes of masks and, where there are such, squares; a thread a pixel. */
static __global__ void oct_spread_kernel(const uint8_t *masks, float *planes, uint32_t height,
                                         uint32_t width, uint32_t padded_height,
                                         uint32_t padded_width, unsigned n, bool squares)
{
    const uint32_t x = blockIdx.x * OCT_CORRELATION_THREADS + threadIdx.x, y = blockIdx.y;
    const unsigned i = blockIdx.z;
    if (x >= width)
        return;
    const size_t points = (size_t)padded_height * padded_width;
    float *at = planes + i * points + (size_t)y * padded_width + x;
    const float value = at[0], valid = masks[((size_t)i * height + y) * width + x] ? 1.0f : 0.0f;
    at[n * points] = valid;
    if (squares)
        at[2 * n * points] = fmaf(value, value, -valid);
}

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

/* Sums of each row up to each column: boxes[i][y + 1][x + 1] of row y alone; a block a row. */
static __global__ void oct_box_rows_kernel(const float *planes, struct oct_moments *boxes,
                                           uint32_t height, uint32_t width, size_t points,
                                           uint32_t pitch)
{
    OCT_SHARED(struct oct_moments, part);
    const uint32_t y = blockIdx.x, t = threadIdx.x;
    const uint32_t run = (width + OCT_BOX_THREADS - 1) / OCT_BOX_THREADS;
    const uint32_t first = min(t * run, width), end = min(first + run, width);
    const float *row = planes + blockIdx.y * points + (size_t)y * pitch;
    struct oct_moments *out = boxes + ((size_t)blockIdx.y * (height + 1) + y + 1) * (width + 1) + 1;
    struct oct_moments sum = {0, 0};
    for (uint32_t x = first; x < end; x++) {
        const double v = row[x];
        sum.sum += v;
        sum.squares += v * v;
    }
    part[t] = sum;
    for (uint32_t step = 1; step < OCT_BOX_THREADS; step *= 2) { /* inclusive scan */
        __syncthreads();
        struct oct_moments left = {0, 0};
        if (t >= step)
            left = part[t - step];
        __syncthreads();
        part[t].sum += left.sum;
        part[t].squares += left.squares;
    }
    sum.sum = part[t].sum - sum.sum; /* of the threads before */
    sum.squares = part[t].squares - sum.squares;
    for (uint32_t x = first; x < end; x++) {
        const double v = row[x];
        sum.sum += v;
        sum.squares += v * v;
        out[x] = sum;
    }
    if (t == 0)
        out[-1] = {0, 0};
}

/* Then down the columns. Threads of a block: OCT_BOX_COLUMNS x OCT_BOX_SEGMENTS. */
static __global__ void oct_box_columns_kernel(struct oct_moments *boxes, uint32_t height,
                                              uint32_t width)
{
    OCT_SHARED(struct oct_moments, part);
    const uint32_t column = threadIdx.x % OCT_BOX_COLUMNS, segment = threadIdx.x / OCT_BOX_COLUMNS;
    const uint32_t x = blockIdx.x * OCT_BOX_COLUMNS + column;
    const uint32_t run = (height + OCT_BOX_SEGMENTS - 1) / OCT_BOX_SEGMENTS;
    const uint32_t first = min(segment * run, height), end = min(first + run, height);
    struct oct_moments *at = boxes + (size_t)blockIdx.y * (height + 1) * (width + 1) + x;
    struct oct_moments sum = {0, 0};
    for (uint32_t y = first; y < end && x <= width; y++) {
        const struct oct_moments m = at[(size_t)(y + 1) * (width + 1)];
        sum.sum += m.sum;
        sum.squares += m.squares;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = {0, 0};
    for (uint32_t s = 0; s < segment; s++) {
        sum.sum += part[s * OCT_BOX_COLUMNS + column].sum;
        sum.squares += part[s * OCT_BOX_COLUMNS + column].squares;
    }
    for (uint32_t y = first; y < end && x <= width; y++) {
        struct oct_moments *m = &at[(size_t)(y + 1) * (width + 1)];
        sum.sum += m->sum;
        sum.squares += m->squares;
        *m = sum;
    }
    if (segment == 0 && x <= width)
        at[0] = {0, 0};
}

/* Where two pictures meet along an axis at a shift: in f. */
struct oct_meeting {
    int first, end; /* first >= end: nowhere */
};

static __device__ __forceinline__ struct oct_meeting oct_meet(uint32_t f_side, uint32_t g_side,
                                                              int shift)
{
    const int first = shift < 0 ? -shift : 0, beyond = (int)g_side - shift;
    struct oct_meeting m = {first, (int)f_side < beyond ? (int)f_side : beyond};
    m.end = m.end < m.first ? m.first : m.end;
    return m;
}

static __device__ __forceinline__ struct oct_moments oct_box(const struct oct_moments *boxes,
                                                             uint32_t width,
                                                             struct oct_meeting rows,
                                                             struct oct_meeting columns)
{
    const struct oct_moments *above = boxes + (size_t)rows.first * (width + 1);
    const struct oct_moments *below = boxes + (size_t)rows.end * (width + 1);
    return {below[columns.end].sum - below[columns.first].sum - above[columns.end].sum +
                above[columns.first].sum,
            below[columns.end].squares - below[columns.first].squares - above[columns.end].squares +
                above[columns.first].squares};
}

/* NaN where a sum of squares less its mean is not above f_least, g_least. */
static __device__ __forceinline__ float oct_zncc(double n, double product, struct oct_moments f,
                                                 struct oct_moments g, double f_least,
                                                 double g_least)
{
    const double f_variance = f.squares - f.sum * f.sum / n;
    const double g_variance = g.squares - g.sum * g.sum / n;
    if (!(f_variance > f_least) || !(g_variance > g_least))
        return __int_as_float(0x7fc00000);
    return (float)((product - f.sum * g.sum / n) / sqrt(f_variance * g_variance));
}

static __device__ __forceinline__ struct oct_meeting oct_moved(struct oct_meeting m, int shift)
{
    return {m.first + shift, m.end + shift};
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
    /* The sums come from transforms in f32: a variance that they cannot tell from 0 is none. */
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

static inline enum oct_err oct_correlation_upload_some(struct oct_correlation *c, float *d_planes,
                                                       uint32_t height, uint32_t width, unsigned n,
                                                       unsigned n_of, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    const size_t picture = (size_t)height * width;
    for (unsigned i = 0; i < n; i++)
        TRY_STREAM(c->stream, "upload",
                   cudaMemcpy2DAsync(d_planes + i * oct_correlation_points(s),
                                     s.padded_width * sizeof(float), c->h_pictures + i * picture,
                                     width * sizeof(float), width * sizeof(float), height,
                                     cudaMemcpyHostToDevice, c->stream->stream));
    if (c->n_planes == 1)
        return OCT_OK;
    enum oct_err e = oct_cuda_stream_upload(c->stream, c->d_masks, c->h_masks, n * picture, err);
    if (!e)
        OCT_LAUNCH((oct_spread_kernel), dim3(oct_blocks(width, OCT_CORRELATION_THREADS), height, n),
                   dim3(OCT_CORRELATION_THREADS), 0, c->stream->stream, c->d_masks, d_planes,
                   height, width, s.padded_height, s.padded_width, n_of, c->n_planes > 2);
    return e;
}

/* n pictures of h_pictures, h_masks and h_factors to the device. */
static inline enum oct_err oct_correlation_upload(struct oct_correlation *c, unsigned n,
                                                  struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    enum oct_err e = oct_correlation_upload_some(c, c->d_planes, s.height, s.width, n, s.n, err);
    return e ? e
             : oct_cuda_stream_upload(c->stream, c->d_factors, c->h_factors, n * sizeof(float),
                                      err);
}

static inline enum oct_err oct_correlation_upload_g(struct oct_correlation *c,
                                                    struct oct_error *err)
{
    return oct_correlation_upload_some(c, c->d_g_planes, c->shape.g_height, c->shape.g_width, 1, 1,
                                       err);
}

/* Integral images of the first plane of n pictures; nothing where none are needed. */
static inline void oct_correlation_queue_boxes(struct oct_correlation *c, const float *d_planes,
                                               struct oct_moments *d_boxes, uint32_t height,
                                               uint32_t width, unsigned n)
{
    if (!d_boxes)
        return;
    OCT_LAUNCH((oct_box_rows_kernel), dim3(height, n), dim3(OCT_BOX_THREADS),
               OCT_BOX_THREADS * sizeof(struct oct_moments), c->stream->stream, d_planes, d_boxes,
               height, width, oct_correlation_points(c->shape), c->shape.padded_width);
    OCT_LAUNCH((oct_box_columns_kernel), dim3(oct_blocks(width + 1, OCT_BOX_COLUMNS), n),
               dim3(OCT_BOX_COLUMNS * OCT_BOX_SEGMENTS),
               OCT_BOX_COLUMNS * OCT_BOX_SEGMENTS * sizeof(struct oct_moments), c->stream->stream,
               d_boxes, height, width);
}

static inline enum oct_err oct_correlation_queue_g(struct oct_correlation *c, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->shape;
    oct_correlation_queue_boxes(c, c->d_g_planes, c->d_g_boxes, s.g_height, s.g_width, 1);
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
        oct_correlation_queue_boxes(c, c->d_planes, c->d_boxes, s.height, s.width, s.n);
    if (c->d_most)
        e = oct_cuda_stream_clear(c->stream, c->d_most, s.n * sizeof(uint32_t), err);
    if (!e)
        e = oct_transforms_r2c(&c->transforms, c->forward, c->stream, c->d_planes, c->d_spectra,
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
    const size_t pixels = s.n * f > g ? s.n * f : g, n_planes = c->n_planes;
    const bool boxes = s.norm == OCT_CORRELATION_ZNCC && !s.masked;
    const size_t f_boxes = s.n * (size_t)(s.height + 1) * (s.width + 1);
    const size_t g_boxes = (size_t)(s.g_height + 1) * (s.g_width + 1);
    enum oct_err e = oct_stream_pin(on, &c->h_pictures, pixels, err);
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
    if (!e && n_planes > 1) {
        e = oct_stream_pin(on, &c->h_masks, pixels, err);
        e = e ? e : oct_stream_alloc(on, &c->d_masks, pixels, err);
    }
    if (!e && boxes) {
        e = oct_stream_alloc(on, &c->d_boxes, f_boxes, err);
        e = e ? e : oct_stream_alloc(on, &c->d_g_boxes, g_boxes, err);
    }
    if (!e && s.masked && s.norm == OCT_CORRELATION_ZNCC)
        e = oct_stream_alloc(on, &c->d_most, s.n, err);
    e = e ? e : oct_cuda_stream_clear(on, c->d_planes, n_planes * s.n * points * 4, err);
    e = e ? e : oct_cuda_stream_clear(on, c->d_g_planes, n_planes * points * 4, err);
    e = e ? e : oct_cuda_stream_clear(on, c->d_spectra, (n_planes * s.n * half + 1) * 8, err);
    /* A batch that is not full leaves the last factors as they are. */
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
    if (!e)
        e = oct_transforms_plan(&c->transforms, CUFFT_R2C, height, width, c->n_planes * s.n,
                                c->stream, err);
    if (!e)
        e = oct_transforms_plan(&c->transforms, CUFFT_C2R, height, width, c->n_products * s.n,
                                c->stream, err);
    if (!e)
        e = oct_transforms_plan(&c->transforms, CUFFT_R2C, height, width, c->n_planes, c->stream,
                                err);
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
    c->n_planes = !shape->masked ? 1 : shape->norm == OCT_CORRELATION_ZNCC ? 3 : 2;
    c->n_products = !shape->masked ? 1 : shape->norm == OCT_CORRELATION_ZNCC ? 6 : 2;
    enum oct_err e = oct_correlation_alloc(c, err);
    return e ? e : oct_correlation_plan(c, err);
}

static inline void oct_correlation_finish(struct oct_correlation *c)
{
    oct_transforms_finish(&c->transforms);
}

#endif
