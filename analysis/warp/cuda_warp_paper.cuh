/* OCT_WARP_PAPER: the Lagrangian force with its cofactors, explicit steps of the displacement in
 * place, and compositions. For comparison: what a voxel needs is computed anew rather than kept. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_PAPER_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_PAPER_CUH

#include "analysis/warp/cuda_warp_energy.cuh"
#include "analysis/warp/cuda_warp_gauss.cuh"

/* ---- the moving volume's slope between voxels ---- */

/* Trilinear at x, in voxels, constant beyond the border. */
static __device__ inline float oct_warp_value_at(const float *volume,
                                                 const struct oct_warp_box &box, const float x[3])
{
    struct oct_warp_cell cell = {};
    for (int i = 0; i < 3; i++) {
        const float inside = fminf(fmaxf(x[i], 0), (float)(box.side[i] - 1));
        const uint32_t low = (uint32_t)fminf(inside, (float)(box.side[i] - 2));
        cell.part[i] = inside - (float)low;
        cell.at += low * box.step[i];
    }
    return oct_warp_sample(volume, box, cell);
}

/* d/dx_axis of the trilinear volume at x, on a voxel's centre the mean of both sides. */
static __device__ inline float
oct_warp_slope_at(const float *volume, const struct oct_warp_box &box, const float x[3], int axis)
{
    const float below = floorf(x[axis]), above = ceilf(x[axis]);
    const bool on_voxel = below == above;
    float low[3] = {x[0], x[1], x[2]}, high[3] = {x[0], x[1], x[2]};
    if (!(x[axis] >= 0 && x[axis] <= (float)(box.side[axis] - 1)))
        return 0;
    low[axis] = on_voxel ? below - 1 : below;
    high[axis] = on_voxel ? above + 1 : above;
    return (on_voxel ? 0.5f : 1.0f) *
           (oct_warp_value_at(volume, box, high) - oct_warp_value_at(volume, box, low));
}

/* ---- the force ---- */

/* Dh = I - Du. */
static __device__ inline void oct_warp_derivative(const float *u, const struct oct_warp_box &box,
                                                  const struct oct_warp_place &p,
                                                  struct oct_warp_matrix *dh)
{
    for (int k = 0; k < 3; k++) {
        const struct oct_warp_slope slope = oct_warp_slope_of(box, p, k);
        for (int i = 0; i < 3; i++)
            dh->of[i][k] = (i == k ? 1.0f : 0.0f) - oct_warp_along(u + i * box.n, slope);
    }
}

static __device__ inline float oct_warp_determinant(const struct oct_warp_matrix &m)
{
    return m.of[0][0] * (m.of[1][1] * m.of[2][2] - m.of[1][2] * m.of[2][1]) -
           m.of[0][1] * (m.of[1][0] * m.of[2][2] - m.of[1][2] * m.of[2][0]) +
           m.of[0][2] * (m.of[1][0] * m.of[2][1] - m.of[1][1] * m.of[2][0]);
}

/* by cof_ik L' is added to stress[i], L' = 1 + log J - 1 / J. */
static __device__ inline void oct_warp_add_stress(const float *u, const struct oct_warp_box &box,
                                                  const struct oct_warp_place &p, int k, float by,
                                                  float stress[3])
{
    struct oct_warp_matrix dh;
    oct_warp_derivative(u, box, p, &dh);
    const float j = fmaxf(oct_warp_determinant(dh), 1e-6f);
    const float slope = by * (1 + logf(j) - 1 / j);
    const int m = (k + 1) % 3, n = (k + 2) % 3;
    for (int i = 0; i < 3; i++) {
        const int r = (i + 1) % 3, s = (i + 2) % 3;
        stress[i] += slope * (dh.of[r][m] * dh.of[s][n] - dh.of[r][n] * dh.of[s][m]);
    }
}

/* sum_k d_k (cof_ik L'). */
static __device__ inline void oct_warp_divergence(const float *u, const struct oct_warp_box &box,
                                                  const struct oct_warp_place &p, float stress[3])
{
#pragma unroll
    for (int k = 0; k < 3; k++) {
#pragma unroll 1
        for (int side = 0; side < 2; side++) {
            const bool first = p.x[k] == 0, last = p.x[k] + 1 == box.side[k];
            const float by = first || last ? 1.0f : 0.5f;
            struct oct_warp_place there = p;
            if (side == 0 && !first) {
                there.x[k]--;
                there.at -= box.step[k];
            } else if (side == 1 && !last) {
                there.x[k]++;
                there.at += box.step[k];
            }
            oct_warp_add_stress(u, box, there, k, side ? by : -by, stress);
        }
    }
}

struct oct_warp_axes {
    float of[3];
};

/* Eq. 10, f_i times by.of[i]. fixed: NaN where it is not compared. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_lagrangian_kernel(struct oct_warp_box box, const float *u, const float *moving,
                               const float *fixed, float lambda, struct oct_warp_axes by,
                               float *force)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    const struct oct_warp_place p = oct_warp_place_of(box, i);
    const float r = fixed[i];
    float stress[3] = {0, 0, 0}, h[3];
    for (int k = 0; k < 3; k++)
        h[k] = (float)p.x[k] - u[k * box.n + i];
    const float off = r == r ? oct_warp_value_at(moving, box, h) - r : 0.0f;
    oct_warp_divergence(u, box, p, stress);
    for (int k = 0; k < 3; k++)
        force[k * box.n + i] =
            by.of[k] * (off * oct_warp_slope_at(moving, box, h, k) - lambda * stress[k]);
}

/* ---- steps ---- */

/* v becomes v - v . grad u; parts: [blocks], the largest of each in units of the finest spacing. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_flow_kernel(struct oct_warp_box box, const float *u, float *v, float *parts)
{
    const size_t at = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    float length2 = 0;
    if (at < box.n) {
        const struct oct_warp_place p = oct_warp_place_of(box, at);
        const float here[3] = {v[at], v[box.n + at], v[2 * box.n + at]};
        for (int i = 0; i < 3; i++) {
            float flow = here[i];
            for (int k = 0; k < 3; k++)
                flow -= here[k] * oct_warp_along(u + i * box.n, oct_warp_slope_of(box, p, k));
            v[i * box.n + at] = flow;
            length2 += flow * box.units[i] * (flow * box.units[i]);
        }
    }
    const float longest = oct_warp_largest_of_block(sqrtf(length2));
    if (threadIdx.x == 0)
        parts[blockIdx.x] = longest;
}

/* u goes by `scale` of the step whose longest is `most`. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_go_kernel(size_t n, float scale, float most, const float *longest, const float *v,
                       float *u)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i < n)
        u[i] = fmaf(*longest > 0 ? scale * most / *longest : 0.0f, v[i], u[i]);
}

/* both(x) = u(x) + total(x - u(x)) */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_compose_kernel(struct oct_warp_box box, const float *u, const float *total,
                            float *both)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    const float here[3] = {u[i], u[box.n + i], u[2 * box.n + i]};
    oct_warp_compose_at(box, oct_warp_place_of(box, i), here, total, both);
}

#endif
