#include "analysis/cells/mgvf.h"

#include "pipeline/base/simd.h"

#include <string.h>

#define SUMMED_EVERY 8u
#define NEAR 1.1 /* times the bound: from there on each sweep is summed */

/* NaN: 0 */
static int sign_of(double dot)
{
    return (dot >= OCT_MGVF_LEAST_DOT) - (dot <= -OCT_MGVF_LEAST_DOT);
}

void oct_mgvf_flow_init(struct oct_mgvf_flow *flow, double vx, double vy)
{
    vx = sign_of(vx) ? vx : 0;
    vy = sign_of(vy) ? vy : 0;
    flow->sign[0] = (int8_t)sign_of(vx);
    flow->sign[1] = (int8_t)sign_of(vy);
    flow->sign[2] = (int8_t)sign_of(vx + vy);
    flow->sign[3] = (int8_t)sign_of(vx - vy);
}

const struct oct_mgvf *oct_mgvf_select(const char *simd)
{
    static const struct oct_mgvf *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_mgvf_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_mgvf_avx2,
        [OCT_SIMD_AVX512] = &oct_mgvf_avx512,
#endif
    };
    return sets[oct_simd_choose(simd)];
}

void oct_mgvf_set_border(float *plane, const struct oct_mgvf_grid *grid)
{
    const size_t bytes = ((size_t)grid->columns + 2) * sizeof(*plane);
    for (size_t y = 0; y < grid->rows; y++) {
        float *row = plane + y * grid->stride;
        row[-1] = row[0];
        row[grid->columns] = row[grid->columns - 1];
    }
    float *last = plane + (size_t)(grid->rows - 1) * grid->stride;
    memcpy(plane - grid->stride - 1, plane - 1, bytes);
    memcpy(last + grid->stride - 1, last - 1, bytes);
}

/* The one that is neither. */
static float *third_of(float *const planes[OCT_MGVF_N_PLANES], const float *a, const float *b)
{
    for (unsigned i = 0; i + 1 < OCT_MGVF_N_PLANES; i++)
        if (planes[i] != a && planes[i] != b)
            return planes[i];
    return planes[OCT_MGVF_N_PLANES - 1];
}

const float *oct_mgvf_run(const struct oct_mgvf *mgvf, float *const planes[OCT_MGVF_N_PLANES],
                          const float *edge, const struct oct_mgvf_grid *grid,
                          const struct oct_mgvf_flow *flow, uint32_t *n)
{
    const double least = OCT_MGVF_LEAST_CHANGE * ((double)grid->rows * grid->columns);
    float *from = planes[0], *kept = from; /* kept: of the sweep before those not summed */
    uint32_t n_kept = 0;
    bool is_near = false;
    for (size_t y = 0; y < grid->rows; y++)
        memcpy(from + y * grid->stride, edge + y * grid->stride, grid->columns * sizeof(*edge));
    oct_mgvf_set_border(from, grid);
    for (*n = 1;; ++*n) {
        float *to = third_of(planes, from, kept);
        const bool sums = is_near || *n - n_kept == SUMMED_EVERY || *n == OCT_MGVF_MOST_ITERATIONS;
        const double change = mgvf->sweep(to, from, edge, grid, flow, sums);
        from = to;
        if (!sums)
            continue;
        const bool rests = !(change > least);
        if (rests ? *n - n_kept == 1 : *n == OCT_MGVF_MOST_ITERATIONS)
            return to;
        if (rests) {
            from = kept;
            *n = n_kept;
            is_near = true;
        } else {
            kept = to;
            n_kept = *n;
            is_near = is_near || change <= NEAR * least;
        }
    }
}
