/* Cells to fractions of a pixel: what both engines compute for one of them. Plain functions of C
 * and of CUDA, without tables or memory of their own. */
#ifndef OCT_ANALYSIS_CELLS_REFINE_MATH_H
#define OCT_ANALYSIS_CELLS_REFINE_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define OCT_CELLS_MATH static inline __host__ __device__
#else
#define OCT_CELLS_MATH static inline
#endif

#define OCT_CELLS_EDGE_SAMPLES 64
#define OCT_CELLS_EDGE_ROUNDS 3

/* gx and gy, rows so many floats apart; 2 x 2 px at least. */
struct oct_cells_slopes {
    const float *gx, *gy;
    size_t row;
    int32_t height, width;
};

struct oct_cells_slope {
    float x, y;
};

/* The gradient at (x + u, y + v), bilinear, its border repeated. A whole pixel and what is added to
 * it are apart, so that f32 suffices. */
OCT_CELLS_MATH struct oct_cells_slope oct_cells_slope_at(const struct oct_cells_slopes *slopes,
                                                         int32_t x, int32_t y, float u, float v)
{
    const float whole_u = floorf(u), whole_v = floorf(v);
    float fu = u - whole_u, fv = v - whole_v;
    int32_t px = x + (int32_t)whole_u, py = y + (int32_t)whole_v;
    if (px < 0 || px > slopes->width - 2) {
        fu = px < 0 ? 0.0f : 1.0f;
        px = px < 0 ? 0 : slopes->width - 2;
    }
    if (py < 0 || py > slopes->height - 2) {
        fv = py < 0 ? 0.0f : 1.0f;
        py = py < 0 ? 0 : slopes->height - 2;
    }
    const size_t at = (size_t)py * slopes->row + (size_t)px;
    const float *a = slopes->gx + at, *b = slopes->gy + at;
    const float *c = a + slopes->row, *d = b + slopes->row;
    const float a0 = a[0] + fu * (a[1] - a[0]), a1 = c[0] + fu * (c[1] - c[0]);
    const float b0 = b[0] + fu * (b[1] - b[0]), b1 = d[0] + fu * (d[1] - d[0]);
    struct oct_cells_slope g;
    g.x = a0 + fv * (a1 - a0);
    g.y = b0 + fv * (b1 - b0);
    return g;
}

/* Where the least-squares quadratic of 27 values has its top: f[(k * 3 + j) * 3 + i] at
 * (i - 1, j - 1, k - 1). False: it has none (its Hessian is not negative definite). */
OCT_CELLS_MATH bool oct_cells_top_of_27(const float *f, double top[3])
{
    /* On this grid 1, the three u, the three u^2 - 2/3 and the three u v are orthogonal, with sums
     * of squares of 27, 18, 6 and 12. */
    double g[3] = {0, 0, 0}, h[3] = {0, 0, 0}, xy = 0, xz = 0, yz = 0, all = 0;
    for (int n = 0; n < 27; n++) {
        const int u = n % 3 - 1, v = n / 3 % 3 - 1, w = n / 9 - 1;
        const double value = (double)f[n];
        all += value;
        g[0] += u * value;
        g[1] += v * value;
        g[2] += w * value;
        h[0] += u * u * value;
        h[1] += v * v * value;
        h[2] += w * w * value;
        xy += u * v * value;
        xz += u * w * value;
        yz += v * w * value;
    }
    for (int i = 0; i < 3; i++) {
        g[i] *= 1.0 / 18;
        h[i] = (h[i] - 2.0 / 3 * all) * (1.0 / 3);
    }
    xy *= 1.0 / 12;
    xz *= 1.0 / 12;
    yz *= 1.0 / 12;
    /* Cofactors and determinant of the Hessian; its leading minors must be -, +, -. */
    const double xx = h[1] * h[2] - yz * yz, yy = h[0] * h[2] - xz * xz;
    const double zz = h[0] * h[1] - xy * xy;
    const double c_xy = xz * yz - xy * h[2], c_xz = xy * yz - xz * h[1], c_yz = xy * xz - yz * h[0];
    const double det = h[0] * xx + xy * c_xy + xz * c_xz;
    if (!(h[0] < 0 && zz > 0 && det < 0))
        return false;
    const double scale = -1 / det;
    top[0] = (xx * g[0] + c_xy * g[1] + c_xz * g[2]) * scale;
    top[1] = (c_xy * g[0] + yy * g[1] + c_yz * g[2]) * scale;
    top[2] = (c_xz * g[0] + c_yz * g[1] + zz * g[2]) * scale;
    return true;
}

OCT_CELLS_MATH double oct_cells_within(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* Half the sides of the 27 points of a round, in px: 0.1, 0.06 and 0.04 R, but not so small that
 * the kinks of bilinear samples count: of noise-free disks with R 1.5 to 5 px they brought errors
 * of the centre of 0.02 to 0.07 px rms where it is now 0.006 to 0.025 px. */
OCT_CELLS_MATH double oct_cells_edge_side(int round, double radius)
{
    const double share = round == 0 ? 0.1 : round == 1 ? 0.06 : 0.04;
    const double least = round == 0 ? 0.6 : round == 1 ? 0.5 : 0.4;
    return share * radius > least ? share * radius : least;
}

/* The radius of a disk whose |m| is largest at r. A Gaussian of sigma^2 = s draws
 * the steepest place of a round edge inward, to r = radius - s / (2 radius): by 0.2 px of 10 px
 * smoothed by 2 px. To s counts, beside the smoothing, what differences and bilinear samples
 * smooth: 1/3 + 1/6 px^2. */
OCT_CELLS_MATH double oct_cells_edge_radius(double r, double smooth_px)
{
    const double s = smooth_px * smooth_px + 0.5;
    return (r + sqrt(r * r + 2 * s)) / 2;
}

/* The step of a round from its 27 values |m|, in units of the side: to the top of the quadratic,
 * each component within -1.5 .. 1.5, or to the largest value, the first of equals. */
OCT_CELLS_MATH void oct_cells_edge_step(const float *f, double step[3])
{
    int best = 0;
    if (oct_cells_top_of_27(f, step)) {
        for (int i = 0; i < 3; i++)
            step[i] = oct_cells_within(step[i], -1.5, 1.5);
        return;
    }
    for (int n = 1; n < 27; n++)
        best = f[n] > f[best] ? n : best;
    step[0] = best % 3 - 1;
    step[1] = best / 3 % 3 - 1;
    step[2] = best / 9 - 1;
}

#endif
