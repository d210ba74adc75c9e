/* Sums over boxes of pixels on a device, from integral images in double: what ZNCC without masks
 * takes of the two pictures at a shift, beside the sum of their products. */
#ifndef OCT_ANALYSIS_CORRELATE_CUDA_BOXES_CUH
#define OCT_ANALYSIS_CORRELATE_CUDA_BOXES_CUH

#include "analysis/correlate/cuda_planes.cuh"

#define OCT_BOX_COLUMNS 32u  /* of a block that sums columns */
#define OCT_BOX_SEGMENTS 16u /* into which it cuts them */
#define OCT_BOX_THREADS 128u /* of a block that sums a row; a power of two */

/* A sum and a sum of squares. */
struct oct_moments {
    double sum, squares;
};

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

/* Queues the integral images of the first plane of n pictures, boxes[n][height + 1][width + 1]. */
static inline void oct_boxes_queue(struct oct_cuda_stream *stream, const float *d_planes,
                                   const struct oct_padding &p, unsigned n,
                                   struct oct_moments *d_boxes)
{
    const size_t points = (size_t)p.padded_height * p.padded_width;
    OCT_LAUNCH((oct_box_rows_kernel), dim3(p.height, n), dim3(OCT_BOX_THREADS),
               OCT_BOX_THREADS * sizeof(struct oct_moments), stream->stream, d_planes, d_boxes,
               p.height, p.width, points, p.padded_width);
    OCT_LAUNCH((oct_box_columns_kernel), dim3(p.width / OCT_BOX_COLUMNS + 1, n),
               dim3(OCT_BOX_COLUMNS * OCT_BOX_SEGMENTS),
               OCT_BOX_COLUMNS * OCT_BOX_SEGMENTS * sizeof(struct oct_moments), stream->stream,
               d_boxes, p.height, p.width);
}

#endif
