/* The energy of a displacement, in one pass: T(h), J, J + log J, and the sums of both terms. A
 * block's threads go along the B-scans, so that u is read once but for its neighbours in the same
 * B-scan, which lie in the first cache. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_ENERGY_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_ENERGY_CUH

#include "analysis/warp/cuda_warp_course.cuh"

#define OCT_WARP_MARCH 16u /* B-scans of a block */

/* Blocks of the energy; each leaves its sums. */
static inline uint64_t oct_warp_energy_blocks(const struct oct_warp_box &box)
{
    return (uint64_t)oct_warp_groups(box.side[2], OCT_WARP_LANES) *
           oct_warp_groups(box.side[1], OCT_WARP_ROWS) *
           oct_warp_groups(box.side[0], OCT_WARP_MARCH);
}

/* Of this thread: A-line and depth; the B-scans from b to end. */
struct oct_warp_march {
    uint32_t j, d, b, end;
    bool is_in; /* the box */
};

static __device__ inline struct oct_warp_march oct_warp_march_of(const struct oct_warp_box &box)
{
    const uint32_t n_d = oct_warp_groups(box.side[2], OCT_WARP_LANES);
    const uint32_t n_j = oct_warp_groups(box.side[1], OCT_WARP_ROWS);
    const uint32_t plane = blockIdx.x / n_d;
    struct oct_warp_march m;
    m.d = blockIdx.x % n_d * OCT_WARP_LANES + threadIdx.x % OCT_WARP_LANES;
    m.j = plane % n_j * OCT_WARP_ROWS + threadIdx.x / OCT_WARP_LANES;
    m.b = plane / n_j * OCT_WARP_MARCH;
    m.end = min(m.b + OCT_WARP_MARCH, box.side[0]);
    m.is_in = m.d < box.side[2] && m.j < box.side[1];
    return m;
}

/* u at a voxel and at its neighbours along the B-scans. */
struct oct_warp_three {
    float before[3], here[3], after[3];
};

/* Du; the neighbours along the A-lines and the depth are read. */
static __device__ inline struct oct_warp_matrix
oct_warp_matrix_of(const float *u, const struct oct_warp_box &box, const struct oct_warp_place &p,
                   const struct oct_warp_three &three)
{
    const struct oct_warp_slope along_j = oct_warp_slope_of(box, p, 1);
    const struct oct_warp_slope along_d = oct_warp_slope_of(box, p, 2);
    const float by = p.x[0] == 0 || p.x[0] + 1 == box.side[0] ? 1.0f : 0.5f;
    struct oct_warp_matrix du;
    for (int i = 0; i < 3; i++) {
        du.of[i][0] = by * (three.after[i] - three.before[i]);
        du.of[i][1] = oct_warp_along(u + i * box.n, along_j);
        du.of[i][2] = oct_warp_along(u + i * box.n, along_d);
    }
    return du;
}

/* To the next B-scan; p is there already. */
static __device__ inline void oct_warp_three_go_on(struct oct_warp_three *three, const float *u,
                                                   const struct oct_warp_box &box,
                                                   const struct oct_warp_place &p)
{
    for (int i = 0; i < 3; i++) {
        three->before[i] = three->here[i];
        three->here[i] = three->after[i];
        if (p.x[0] + 1 < box.side[0])
            three->after[i] = u[i * box.n + p.at + box.step[0]];
    }
}

/* As if the last call of oct_warp_three_go_on had been for the B-scan before p. */
static __device__ inline struct oct_warp_three oct_warp_three_before(const float *u,
                                                                     const struct oct_warp_box &box,
                                                                     const struct oct_warp_place &p)
{
    struct oct_warp_three three = {};
    for (int i = 0; i < 3; i++) {
        three.after[i] = u[i * box.n + p.at];
        three.here[i] = p.x[0] > 0 ? u[i * box.n + p.at - box.step[0]] : three.after[i];
    }
    return three;
}

/* What is added of a voxel; values beyond folds are those of J = 1e-6, and the step is refused. */
static __device__ inline float oct_warp_log_volume(float j)
{
    return logf(fmaxf(j, 1e-6f));
}

/* fixed: NaN where it is not compared. warped: T(h); change: J + log J; both NULL: the sums alone.
 * sums: [blocks]. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_energy_kernel(struct oct_warp_box box, const float *u, const float *moving,
                           const float *fixed, float *warped, float *change,
                           struct oct_warp_sums *sums, const struct oct_warp_course *course)
{
    if (oct_warp_is_over(course))
        return;
    const struct oct_warp_march m = oct_warp_march_of(box);
    struct oct_warp_sums own = oct_warp_sums_none();
    if (m.is_in) {
        struct oct_warp_place p = {{m.b, m.j, m.d}, oct_warp_at(box, m.b, m.j, m.d)};
        struct oct_warp_three three = oct_warp_three_before(u, box, p);
        for (; p.x[0] < m.end; p.x[0]++, p.at += box.step[0]) {
            oct_warp_three_go_on(&three, u, box, p);
            const float j = oct_warp_volume_of(oct_warp_matrix_of(u, box, p, three));
            const struct oct_warp_cell cell =
                oct_warp_cell_of(box, p.x, three.here[0], three.here[1], three.here[2]);
            const float there = oct_warp_sample(moving, box, cell), r = fixed[p.at];
            const float log_j = oct_warp_log_volume(j), off = r == r ? there - r : 0.0f;
            if (warped) {
                warped[p.at] = there;
                change[p.at] = j + log_j;
            }
            own.ssd += (double)(off * off);
            own.change += (double)((j - 1) * log_j);
            own.least = fminf(own.least, j);
        }
    }
    own = oct_warp_sums_of_block(own);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = own;
}

/* J alone. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_volume_kernel(struct oct_warp_box box, const float *u, float *volume)
{
    const struct oct_warp_march m = oct_warp_march_of(box);
    if (!m.is_in)
        return;
    struct oct_warp_place p = {{m.b, m.j, m.d}, oct_warp_at(box, m.b, m.j, m.d)};
    struct oct_warp_three three = oct_warp_three_before(u, box, p);
    for (; p.x[0] < m.end; p.x[0]++, p.at += box.step[0]) {
        oct_warp_three_go_on(&three, u, box, p);
        volume[p.at] = oct_warp_volume_of(oct_warp_matrix_of(u, box, p, three));
    }
}

/* T(h) alone. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_warp_kernel(struct oct_warp_box box, const float *u, const float *moving,
                         float *warped)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    const struct oct_warp_place p = oct_warp_place_of(box, i);
    warped[i] = oct_warp_sample(moving, box,
                                oct_warp_cell_of(box, p.x, u[i], u[box.n + i], u[2 * box.n + i]));
}

#endif
