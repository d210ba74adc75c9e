/* The plan's tables as the kernels want them, made in double precision on the host. */
#ifndef OCT_KERNELS_CUDA_TABLES_CUH
#define OCT_KERNELS_CUDA_TABLES_CUH

#include "kernels/recon/cuda_spread.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

/* All passes' twiddles but the first's; cuda_fft.cuh says which. */
template <int... R> static void oct_add_twiddles(oct_radices<R...>, std::vector<float2> *table)
{
    int ns = 1;
    for (int radix : {R...}) {
        for (int j = 0; ns > 1 && j < radix / 2; j++) {
            int s = 2; /* place j belongs to the step that makes transforms of s points */
            while (s / 2 <= j)
                s *= 2;
            const int m = s == 2 ? 0 : j - s / 4;
            for (int k = 0; k < ns; k++) {
                double angle = -2 * M_PI * (k + (double)m * ns) / (ns * (double)s);
                table->push_back(make_float2((float)std::cos(angle), (float)std::sin(angle)));
            }
        }
        ns *= radix;
    }
}

template <int P1> static std::vector<float2> oct_make_twiddles_for()
{
    using shape = oct_fused_shape<P1>;
    std::vector<float2> table;
    oct_add_twiddles(typename shape::forward{}, &table);
    if (!oct_fused_twiddles<P1>::shared)
        oct_add_twiddles(typename shape::inverse{}, &table);
    oct_add_twiddles(typename shape::to_depth{}, &table);
    return table;
}

template <int P1> static std::vector<float2> oct_make_spread_twiddles(bool half)
{
    std::vector<float2> table;
    if (half)
        oct_add_twiddles(typename oct_spread_shape<P1, true>::passes{}, &table);
    else
        oct_add_twiddles(typename oct_spread_shape<P1, false>::passes{}, &table);
    return table;
}

static std::vector<float2> oct_make_twiddles(const struct oct_plan *plan)
{
    const uint32_t p1 = plan->geometry.padded;
    const bool half = oct_spread_is_half(&plan->spread);
    if (plan->n_taps == 0)
        return p1 == 2048 ? oct_make_spread_twiddles<2048>(half)
                          : oct_make_spread_twiddles<4096>(half);
    return p1 == 2048 ? oct_make_twiddles_for<2048>() : oct_make_twiddles_for<4096>();
}

/* First tap, weights and phase of an output side by side, as oct_fused_resample reads them. */
static std::vector<float4> oct_make_resample(const struct oct_plan *plan)
{
    const uint32_t p2 = plan->geometry.upsampled;
    std::vector<float4> table;
    for (uint32_t q = 0; q < p2; q++) {
        float first;
        const int32_t tap_first = (int32_t)plan->tap_first[q];
        memcpy(&first, &tap_first, sizeof(first));
        table.push_back(
            make_float4(first, plan->weight[p2 + q], plan->phase_re[q], plan->phase_im[q]));
        if (plan->n_taps == 4)
            table.push_back(make_float4(plan->weight[q], plan->weight[p2 + q],
                                        plan->weight[2 * p2 + q], plan->weight[3 * p2 + q]));
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

/* The weights of nufft as pipeline/plan/spread.h has them, for the plain kernels. */
static std::vector<float2> oct_make_weights(const struct oct_spread *s)
{
    std::vector<float2> table;
    for (uint32_t t = 0; t < s->at[s->n_grid]; t++)
        table.push_back(make_float2(s->re[t], s->im[t]));
    return table;
}

/* ---- the same in slices, as oct_spread_gather reads them ---- */

/* Where each slice of 32 points begins, in rows of 32 weights: [n_grid/32 + 1]. */
static std::vector<uint32_t> oct_slice_rows(const struct oct_spread *s)
{
    std::vector<uint32_t> row = {0};
    for (uint32_t g = 0; g < s->n_grid; g += 32) {
        uint32_t longest = 0;
        for (uint32_t k = g; k < g + 32; k++)
            longest = std::max(longest, s->at[k + 1] - s->at[k]);
        row.push_back(row.back() +
                      (longest + OCT_SPREAD_STEP - 1) / OCT_SPREAD_STEP * OCT_SPREAD_STEP);
    }
    return row;
}

/* The first sample of each point: as far forward as its slice's taps end within the line. */
static std::vector<uint32_t> oct_slice_first(const struct oct_plan *plan,
                                             const std::vector<uint32_t> &row)
{
    const struct oct_spread *s = &plan->spread;
    const uint32_t end = oct_spread_row(plan->geometry.n_samples, s->n_wrap);
    std::vector<uint32_t> first;
    for (uint32_t g = 0; g < s->n_grid; g++)
        first.push_back(std::min(s->first[g], end - (row[g / 32 + 1] - row[g / 32])));
    return first;
}

static std::vector<float2> oct_slice_weights(const struct oct_plan *plan,
                                             const std::vector<uint32_t> &row,
                                             const std::vector<uint32_t> &first)
{
    const struct oct_spread *s = &plan->spread;
    std::vector<float2> table((size_t)row.back() * 32, make_float2(0, 0));
    for (uint32_t g = 0; g < s->n_grid; g++) {
        size_t to = ((size_t)row[g / 32] + s->first[g] - first[g]) * 32 + g % 32;
        for (uint32_t t = s->at[g]; t < s->at[g + 1]; t++, to += 32)
            table[to] = make_float2(s->re[t], s->im[t]);
    }
    return table;
}

/* Bytes of nufft's tables on the device. */
static size_t oct_spread_table_bytes(const struct oct_plan *plan, enum oct_cuda_kernels kernels)
{
    const struct oct_spread *s = &plan->spread;
    const size_t of_each = sizeof(uint32_t) + sizeof(float) / 2; /* first, gain */
    if (kernels == OCT_CUDA_PLAIN)
        return s->at[s->n_grid] * sizeof(float2) + s->n_grid * (of_each + sizeof(uint32_t)) +
               sizeof(uint32_t);
    const std::vector<uint32_t> row = oct_slice_rows(s);
    const size_t n_complex = (size_t)row.back() * 32 + oct_make_twiddles(plan).size();
    return n_complex * sizeof(float2) + s->n_grid * of_each + row.size() * sizeof(uint32_t);
}

/* dc=file: whole and rest of the background, so that sample - whole - rest keeps all digits;
 * dc=none: zeros. */
static std::vector<float2> oct_make_background(const struct oct_plan *plan)
{
    std::vector<float2> table;
    for (uint32_t i = 0; i < plan->geometry.n_samples; i++) {
        double value = plan->chain.dc == OCT_DC_FILE ? plan->calibration.background[i] : 0;
        float whole = (float)(int64_t)value;
        table.push_back(make_float2(whole, (float)(value - (double)whole)));
    }
    return table;
}

#endif
