/* The plan's tables as the kernels want them, made in double precision on the host. */
#ifndef OCT_KERNELS_CUDA_TABLES_CUH
#define OCT_KERNELS_CUDA_TABLES_CUH

#include "kernels/cuda_fused.cuh"

#include <cmath>
#include <vector>

/* All passes' twiddles, in the order of the fused kernel. */
static std::vector<float2> oct_make_twiddles(uint32_t p1)
{
    const bool small = p1 == 2048;
    const struct oct_fused_pass *passes = small ? oct_fused_passes_2048 : oct_fused_passes_4096;
    const size_t n_passes = small ? sizeof(oct_fused_passes_2048) / sizeof(*passes)
                                  : sizeof(oct_fused_passes_4096) / sizeof(*passes);
    std::vector<float2> table;
    for (size_t i = 0; i < n_passes; i++)
        for (int r = 1; r < passes[i].radix; r++)
            for (int k = 0; k < passes[i].ns; k++) {
                double angle = -2 * M_PI * r * k / ((double)passes[i].ns * passes[i].radix);
                table.push_back(make_float2((float)std::cos(angle), (float)std::sin(angle)));
            }
    return table;
}

/* The half-sample shift: for the bins of a real transform (plain), or for all P1 of a complex one
 * (fused), the upper half of which mirrors the lower. */
static std::vector<float2> oct_make_shift(const struct oct_plan *plan, bool all_bins)
{
    const uint32_t p1 = plan->geometry.padded;
    std::vector<float2> table;
    for (uint32_t k = 0; k <= p1 / 2; k++)
        table.push_back(make_float2(plan->shift_re[k], plan->shift_im[k]));
    for (uint32_t k = p1 / 2 + 1; all_bins && k < p1; k++)
        table.push_back(make_float2(plan->shift_re[p1 - k], -plan->shift_im[p1 - k]));
    return table;
}

static std::vector<float2> oct_make_phase(const struct oct_plan *plan)
{
    std::vector<float2> table;
    for (uint32_t q = 0; q < plan->geometry.upsampled; q++)
        table.push_back(make_float2(plan->phase_re[q], plan->phase_im[q]));
    return table;
}

/* dc=file: whole and rest of the background, so that sample - whole - rest keeps all digits;
 * dc=none: zeros. */
static std::vector<float2> oct_make_background(const struct oct_plan *plan)
{
    std::vector<float2> table;
    for (uint32_t i = 0; i < plan->geometry.n_samples; i++) {
        double value = plan->dc == OCT_DC_FILE ? plan->calibration.background[i] : 0;
        float whole = (float)(int64_t)value;
        table.push_back(make_float2(whole, (float)(value - (double)whole)));
    }
    return table;
}

#endif
