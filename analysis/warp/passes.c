#include "analysis/warp/passes.h"

#include <string.h>

#define STRIP_BYTES ((size_t)400 << 10) /* of v */

#if defined(__x86_64__)
static const struct oct_warp_passes *avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &oct_warp_passes_avx2
                                                                           : NULL;
}

static const struct oct_warp_passes *avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                   avx2()
               ? &oct_warp_passes_avx512
               : NULL;
}
#else
static const struct oct_warp_passes *avx2(void)
{
    return NULL;
}

static const struct oct_warp_passes *avx512(void)
{
    return NULL;
}
#endif

const struct oct_warp_passes *oct_warp_passes_select(const char *name)
{
    if (strcmp(name, "avx512") == 0)
        return avx512();
    if (strcmp(name, "avx2") == 0)
        return avx2();
    if (strcmp(name, "plain") == 0)
        return &oct_warp_passes_plain;
    if (strcmp(name, "auto") != 0)
        return NULL;
    return avx512() ? avx512() : avx2() ? avx2() : &oct_warp_passes_plain;
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
