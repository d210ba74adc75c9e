#include "analysis/warp/passes.h"

#include "pipeline/base/simd.h"

#define STRIP_BYTES ((size_t)400 << 10) /* of v */

const struct oct_warp_passes *oct_warp_passes_select(const char *name)
{
    static const struct oct_warp_passes *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_warp_passes_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_warp_passes_avx2,
        [OCT_SIMD_AVX512] = &oct_warp_passes_avx512,
#endif
    };
    return sets[oct_simd_choose(name)];
}

uint32_t oct_warp_strip(uint32_t n_d, unsigned radius)
{
    const size_t of_line =
        3 * (2 * (size_t)radius + OCT_WARP_TOGETHER) * oct_warp_pitch(n_d) * sizeof(float);
    const size_t fit = STRIP_BYTES / of_line;
    return fit > 8 ? 8 : fit < 2 ? 2 : (uint32_t)fit;
}

size_t oct_warp_scratch_floats(const uint32_t dims[3], unsigned radius)
{
    const size_t pitch = oct_warp_pitch(dims[2]), n_lines = oct_warp_strip(dims[2], radius);
    const size_t rows = 3 * (pitch + 2 * OCT_WARP_MOST_RADIUS) + 2 * OCT_WARP_PAD;
    const size_t evaluate = 9 * dims[1] * pitch + rows;
    const size_t of_u = 3 * (OCT_WARP_TOGETHER + 2) * (n_lines + 2);
    const size_t of_v = 3 * (2 * (size_t)radius + OCT_WARP_TOGETHER) * n_lines;
    const size_t step = (of_u + of_v + 3 * OCT_WARP_TOGETHER) * pitch;
    const size_t line = dims[0] > dims[1] ? dims[0] : dims[1]; /* OCT_WARP_PAPER */
    const size_t most = evaluate > step ? evaluate : step;
    return ((most > line ? most : line) + 15) / 16 * 16;
}
