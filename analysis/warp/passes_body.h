/* The passes over a level. Included by passes_plain.c, passes_avx2.c and passes_avx512.c, which are
 * compiled for their instruction set and name the table (OCT_PASSES_TABLE, OCT_PASSES_NAME). */
#include "analysis/warp/passes.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define LEAST_LOG 1e-6F /* J below is taken for this in log J */

/* ---- rows ---- */

INLINE float at_most(float a, float b)
{
    return a < b ? a : b;
}

INLINE float at_least(float a, float b)
{
    return a > b ? a : b;
}

/* log x of normal x > 0, to an ulp or two: x = 2^e (1 + r), r of -0.29 to 0.41 (after Cephes). */
INLINE float log_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const int32_t e = (bits - 0x3f3504f3) >> 23;
    bits -= e * (1 << 23);
    memcpy(&x, &bits, sizeof(x));
    const float r = x - 1, r2 = r * r, whole = (float)e;
    float p = 7.0376836292e-2F;
    p = p * r - 1.1514610310e-1F;
    p = p * r + 1.1676998740e-1F;
    p = p * r - 1.2420140846e-1F;
    p = p * r + 1.4249322787e-1F;
    p = p * r - 1.6668057665e-1F;
    p = p * r + 2.0000714765e-1F;
    p = p * r - 2.4999993993e-1F;
    p = p * r + 3.3333331174e-1F;
    return r + (r2 * (r * p - 0.5F) + whole * -2.12194440e-4F) + whole * 0.693359375F;
}

INLINE size_t row_of(const struct oct_warp_pass *p, uint32_t b, uint32_t j)
{
    return ((size_t)b * p->dims[1] + j) * p->dims[2];
}

INLINE size_t n_of(const struct oct_warp_pass *p)
{
    return (size_t)p->dims[0] * p->dims[1] * p->dims[2];
}

/* The two neighbours of i along an axis, and 1 over their distance. */
struct pair {
    uint32_t low, high;
    float per;
};

INLINE struct pair pair_of(uint32_t i, uint32_t n)
{
    const uint32_t low = i > 0 ? i - 1 : 0, high = i + 1 < n ? i + 1 : i;
    return (struct pair){low, high, high - low == 2 ? 0.5F : 1};
}

/* d/d(depth) of a row. */
INLINE void along_depth(const float *from, uint32_t n, float *to)
{
    to[0] = from[1] - from[0];
    for (uint32_t d = 1; d + 1 < n; d++)
        to[d] = 0.5F * (from[d + 1] - from[d - 1]);
    to[n - 1] = from[n - 1] - from[n - 2];
}

struct place {
    int32_t low;
    float part; /* of the voxel above */
};

INLINE struct place place_of(float x, uint32_t n)
{
    const float last = (float)(n - 1);
    const float inside = at_most(at_least(x, 0), last);
    const int32_t low = (int32_t)at_most(inside, last - 1);
    return (struct place){low, inside - (float)low};
}

/* T(h) of a row. */
static void warp_row(const struct oct_warp_pass *p, uint32_t b, uint32_t j, float *restrict to)
{
    const size_t at = row_of(p, b, j), n = n_of(p);
    const float *u = p->u + at, *v = u + n, *w = v + n;
    const int64_t row = p->dims[2], plane = row * p->dims[1];
    const float *moving = p->moving;
    for (uint32_t d = 0; d < p->dims[2]; d++) {
        const struct place x = place_of((float)b - u[d], p->dims[0]);
        const struct place y = place_of((float)j - v[d], p->dims[1]);
        const struct place z = place_of((float)d - w[d], p->dims[2]);
        const float *t = moving + x.low * plane + y.low * row + z.low;
        const float *s = t + plane;
        const float a0 = t[0] + z.part * (t[1] - t[0]);
        const float a1 = t[row] + z.part * (t[row + 1] - t[row]);
        const float a2 = s[0] + z.part * (s[1] - s[0]);
        const float a3 = s[row] + z.part * (s[row + 1] - s[row]);
        const float low = a0 + y.part * (a1 - a0), high = a2 + y.part * (a3 - a2);
        to[d] = low + x.part * (high - low);
    }
}

/* J of a row; rows: 3 [D] of scratch. */
static void jacobian_row(const struct oct_warp_pass *p, uint32_t b, uint32_t j, float *rows,
                         float *restrict to)
{
    const uint32_t n_d = p->dims[2];
    const struct pair pb = pair_of(b, p->dims[0]), pj = pair_of(j, p->dims[1]);
    const size_t n = n_of(p), bl = row_of(p, pb.low, j), bh = row_of(p, pb.high, j);
    const size_t jl = row_of(p, b, pj.low), jh = row_of(p, b, pj.high), at = row_of(p, b, j);
    const float *u = p->u, *v = u + n, *w = v + n;
    float *restrict ud = rows, *restrict vd = rows + n_d, *restrict wd = rows + 2 * (size_t)n_d;
    along_depth(u + at, n_d, ud);
    along_depth(v + at, n_d, vd);
    along_depth(w + at, n_d, wd);
    for (uint32_t d = 0; d < n_d; d++) {
        const float a = 1 - pb.per * (u[bh + d] - u[bl + d]);
        const float e = 1 - pj.per * (v[jh + d] - v[jl + d]), i = 1 - wd[d];
        const float bb = pj.per * (u[jh + d] - u[jl + d]), c = ud[d];
        const float dd = pb.per * (v[bh + d] - v[bl + d]), f = vd[d];
        const float g = pb.per * (w[bh + d] - w[bl + d]), h = pj.per * (w[jh + d] - w[jl + d]);
        /* The signs of the six others: products of two keep theirs, of three turn. */
        to[d] = a * (e * i - f * h) - bb * (dd * i + f * g) - c * (dd * h + e * g);
    }
}

/* P = J + log J in place of J; sums of a row are added. */
static void change_row(const struct oct_warp_pass *p, float *row, struct oct_warp_plane_sums *sums)
{
    float change = 0, least = sums->least;
    for (uint32_t d = 0; d < p->dims[2]; d++) {
        const float jacobian = row[d], log = log_of(at_least(jacobian, LEAST_LOG));
        change += (jacobian - 1) * log;
        least = at_most(least, jacobian);
        row[d] = jacobian + log;
    }
    sums->change += (double)change;
    sums->least = least;
}

/* T(h) - R of a row, 0 where it is not compared. */
INLINE float residual(const struct oct_warp_pass *p, size_t at, float warped)
{
    return p->mask && !p->mask[at] ? 0 : warped - p->fixed[at];
}

static double ssd_row(const struct oct_warp_pass *p, size_t at, const float *warped)
{
    float sum = 0;
    for (uint32_t d = 0; d < p->dims[2]; d++) {
        const float r = residual(p, at + d, warped[d]);
        sum += r * r;
    }
    return (double)sum;
}

/* ---- planes ---- */

/* Planes b - 1 .. b + 1 are at slots b % 3. */
struct ring {
    float *warped, *change, *force, *rows;
    size_t plane;
};

static struct ring ring_of(const struct oct_warp_pass *p, float *scratch)
{
    const size_t plane = (size_t)p->dims[1] * p->dims[2];
    return (struct ring){.warped = scratch,
                         .change = scratch + 3 * plane,
                         .force = scratch + 6 * plane,
                         .rows = scratch + 9 * plane,
                         .plane = plane};
}

static void make_plane(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b,
                       struct oct_warp_plane_sums *sums)
{
    float *warped = ring->warped + b % 3 * ring->plane,
          *change = ring->change + b % 3 * ring->plane;
    *sums = (struct oct_warp_plane_sums){.least = 1e30F};
    for (uint32_t j = 0; j < p->dims[1]; j++, warped += p->dims[2], change += p->dims[2]) {
        warp_row(p, b, j, warped);
        jacobian_row(p, b, j, ring->rows, change);
        change_row(p, change, sums);
        sums->ssd += ssd_row(p, row_of(p, b, j), warped);
    }
}

/* Rows around row j of plane b in a ring of planes. */
struct around {
    const float *b_low, *b_high, *j_low, *j_high, *here;
    float per_b, per_j;
};

static struct around around(const struct oct_warp_pass *p, const float *planes, size_t plane,
                            uint32_t b, uint32_t j)
{
    const struct pair pb = pair_of(b, p->dims[0]), pj = pair_of(j, p->dims[1]);
    const size_t row = p->dims[2];
    const float *here = planes + b % 3 * plane;
    return (struct around){planes + pb.low % 3 * plane + j * row,
                           planes + pb.high % 3 * plane + j * row,
                           here + pj.low * row,
                           here + pj.high * row,
                           here + j * row,
                           pb.per,
                           pj.per};
}

/* f of a row, and with `divided` the raw velocity in voxels; to: 3 [stride]. */
static void force_row(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b,
                      uint32_t j, bool divided, float *to, size_t stride)
{
    const struct around w = around(p, ring->warped, ring->plane, b, j);
    const struct around c = around(p, ring->change, ring->plane, b, j);
    const uint32_t n_d = p->dims[2];
    float *wd = ring->rows, *cd = wd + n_d;
    float *x = to, *y = to + stride, *z = y + stride;
    const size_t at = row_of(p, b, j);
    const float lambda = p->lambda, *a2 = p->per_unit2;
    along_depth(w.here, n_d, wd);
    along_depth(c.here, n_d, cd);
    for (uint32_t d = 0; d < n_d; d++) {
        const float r = residual(p, at + d, w.here[d]);
        const float gx = w.per_b * (w.b_high[d] - w.b_low[d]);
        const float gy = w.per_j * (w.j_high[d] - w.j_low[d]), gz = wd[d];
        const float fx = r * gx - lambda * (c.per_b * (c.b_high[d] - c.b_low[d]));
        const float fy = r * gy - lambda * (c.per_j * (c.j_high[d] - c.j_low[d]));
        const float fz = r * gz - lambda * cd[d];
        const float norm = a2[0] * gx * gx + a2[1] * gy * gy + a2[2] * gz * gz;
        const float per =
            (divided ? OCT_WARP_GAIN : 1) / (norm + p->kappa * r * r + 2 * lambda + 1e-4F);
        x[d] = divided ? fx * a2[0] * per : fx;
        y[d] = divided ? fy * a2[1] * per : fy;
        z[d] = divided ? fz * a2[2] * per : fz;
    }
}

#ifndef BORDER
#define BORDER 1
#endif

/* G along depth; row: [radius + D + radius], of which the middle is set. */
static void gauss_depth(const struct oct_warp_pass *p, float *row, float *restrict to)
{
    const uint32_t n_d = p->dims[2], radius = p->radius[2];
    const float *taps = p->taps[2], *here = row + radius;
    for (uint32_t k = 0; k < radius; k++) {
        row[k] = BORDER ? here[0] : 0;
        row[radius + n_d + k] = BORDER ? here[n_d - 1] : 0;
    }
    for (uint32_t d = 0; d < n_d; d++)
        to[d] = taps[0] * here[d];
    for (uint32_t k = 1; k <= radius; k++) {
        const float *low = here - k, *high = here + k, tap = taps[k];
        for (uint32_t d = 0; d < n_d; d++)
            to[d] += tap * (low[d] + high[d]);
    }
}

/* G of row i among n rows that are `stride` apart. */
static void gauss_rows(const float *rows, uint32_t i, uint32_t n, size_t stride, const float *taps,
                       uint32_t radius, uint32_t n_d, float *restrict to)
{
    const float *here = rows + i * stride;
    for (uint32_t d = 0; d < n_d; d++)
        to[d] = taps[0] * here[d];
    for (uint32_t k = 1; k <= radius; k++) {
        const float *low = rows + (k > i ? 0 : i - k) * stride;
        const float *high = rows + (i + k < n ? i + k : n - 1) * stride;
        const float tl = BORDER || k <= i ? taps[k] : 0, th = BORDER || i + k < n ? taps[k] : 0;
        for (uint32_t d = 0; d < n_d; d++)
            to[d] += tl * low[d] + th * high[d];
    }
}

static void velocity_plane(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b)
{
    const uint32_t n_d = p->dims[2], n_j = p->dims[1], radius = p->radius[2];
    const size_t padded = n_d + 2 * (size_t)radius;
    float *raw = ring->rows + 2 * (size_t)n_d;
    for (uint32_t j = 0; j < n_j; j++) {
        force_row(p, ring, b, j, true, raw + radius, padded);
        for (size_t c = 0; c < 3; c++)
            gauss_depth(p, raw + c * padded, ring->force + c * ring->plane + j * (size_t)n_d);
    }
    for (size_t c = 0; c < 3; c++)
        for (uint32_t j = 0; j < n_j; j++)
            gauss_rows(ring->force + c * ring->plane, j, n_j, n_d, p->taps[1], p->radius[1], n_d,
                       p->v + c * n_of(p) + row_of(p, b, j));
}

static void evaluate(const struct oct_warp_pass *p, uint32_t b_first, uint32_t b_end,
                     float *scratch)
{
    const struct ring ring = ring_of(p, scratch);
    struct oct_warp_plane_sums beyond;
    if (b_first > 0)
        make_plane(p, &ring, b_first - 1, &beyond);
    make_plane(p, &ring, b_first, p->sums + b_first);
    for (uint32_t b = b_first; b < b_end; b++) {
        if (b + 1 < p->dims[0])
            make_plane(p, &ring, b + 1, b + 1 < b_end ? p->sums + b + 1 : &beyond);
        velocity_plane(p, &ring, b);
    }
}

/* f as it is, to v. */
static void force(const struct oct_warp_pass *p, uint32_t b_first, uint32_t b_end, float *scratch)
{
    const struct ring ring = ring_of(p, scratch);
    struct oct_warp_plane_sums beyond;
    if (b_first > 0)
        make_plane(p, &ring, b_first - 1, &beyond);
    make_plane(p, &ring, b_first, p->sums + b_first);
    for (uint32_t b = b_first; b < b_end; b++) {
        if (b + 1 < p->dims[0])
            make_plane(p, &ring, b + 1, b + 1 < b_end ? p->sums + b + 1 : &beyond);
        for (uint32_t j = 0; j < p->dims[1]; j++)
            force_row(p, &ring, b, j, false, p->v + row_of(p, b, j), n_of(p));
    }
}

/* ---- steps ---- */

/* Shares of the voxels below, at and above a place that is moved by -v, |v| <= 1. */
struct hat {
    float low, here, high;
};

INLINE struct hat hat_of(float v)
{
    const float low = at_least(v, 0), high = at_least(-v, 0);
    return (struct hat){low, 1 - low - high, high};
}

/* u' of voxel d of a row; rows[3][3]: u's, of B-scans and A-lines; dl, dh: the neighbours of d. */
INLINE float moved(const float *const rows[9], const struct hat h[3], size_t dl, size_t d,
                   size_t dh)
{
    float sum = 0;
    for (unsigned b = 0; b < 3; b++) {
        float of_b = 0;
        for (unsigned j = 0; j < 3; j++) {
            const float *row = rows[3 * b + j];
            const float t = h[2].low * row[dl] + h[2].here * row[d] + h[2].high * row[dh];
            of_b += (j == 0 ? h[1].low : j == 1 ? h[1].here : h[1].high) * t;
        }
        sum += (b == 0 ? h[0].low : b == 1 ? h[0].here : h[0].high) * of_b;
    }
    return sum;
}

INLINE void move_voxel(const float *const rows[9], const float *const v[3], float v_c, float *to,
                       size_t dl, size_t d, size_t dh)
{
    const struct hat h[3] = {hat_of(v[0][d]), hat_of(v[1][d]), hat_of(v[2][d])};
    to[d] = v_c + moved(rows, h, dl, d, dh);
}

/* v: 3 rows, scaled. */
static void move_row(const struct oct_warp_pass *p, uint32_t b, uint32_t j, const float *const v[3])
{
    const struct pair pb = pair_of(b, p->dims[0]), pj = pair_of(j, p->dims[1]);
    const uint32_t bs[3] = {pb.low, b, pb.high}, js[3] = {pj.low, j, pj.high};
    const uint32_t n_d = p->dims[2];
    for (size_t c = 0; c < 3; c++) {
        const float *rows[9];
        float *to = p->next + c * n_of(p) + row_of(p, b, j);
        for (unsigned i = 0; i < 9; i++)
            rows[i] = p->u + c * n_of(p) + row_of(p, bs[i / 3], js[i % 3]);
        move_voxel(rows, v, v[c][0], to, 0, 0, 1);
        for (size_t d = 1; d + 1 < n_d; d++)
            move_voxel(rows, v, v[c][d], to, d - 1, d, d + 1);
        move_voxel(rows, v, v[c][n_d - 1], to, n_d - 2, n_d - 1, n_d - 1);
    }
}

static float step(const struct oct_warp_pass *p, uint32_t j_first, uint32_t j_end, float *scratch)
{
    const uint32_t n_d = p->dims[2];
    float *v[3] = {scratch, scratch + n_d, scratch + 2 * (size_t)n_d}, largest = 0;
    const float unit2[3] = {1 / p->per_unit2[0], 1 / p->per_unit2[1], 1 / p->per_unit2[2]};
    for (uint32_t b = 0; b < p->dims[0]; b++)
        for (uint32_t j = j_first; j < j_end; j++) {
            for (size_t c = 0; c < 3; c++)
                gauss_rows(p->v + c * n_of(p) + row_of(p, 0, j), b, p->dims[0],
                           (size_t)p->dims[1] * n_d, p->taps[0], p->radius[0], n_d, v[c]);
            for (uint32_t d = 0; d < n_d; d++) {
                const float x = v[0][d], y = v[1][d], z = v[2][d];
                largest = at_least(largest, unit2[0] * x * x + unit2[1] * y * y + unit2[2] * z * z);
                v[0][d] = p->scale * x;
                v[1][d] = p->scale * y;
                v[2][d] = p->scale * z;
            }
            const float *const scaled[3] = {v[0], v[1], v[2]};
            move_row(p, b, j, scaled);
        }
    return __builtin_sqrtf(largest);
}

/* ---- alone ---- */

static void warp(const struct oct_warp_pass *p, uint32_t b, float *warped)
{
    for (uint32_t j = 0; j < p->dims[1]; j++)
        warp_row(p, b, j, warped + (size_t)j * p->dims[2]);
}

static void jacobian(const struct oct_warp_pass *p, uint32_t b, float *scratch, float *jacobians)
{
    for (uint32_t j = 0; j < p->dims[1]; j++)
        jacobian_row(p, b, j, scratch, jacobians + (size_t)j * p->dims[2]);
}

const struct oct_warp_passes OCT_PASSES_TABLE = {.name = OCT_PASSES_NAME,
                                                 .evaluate = evaluate,
                                                 .step = step,
                                                 .warp = warp,
                                                 .jacobian = jacobian,
                                                 .force = force};
