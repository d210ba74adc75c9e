#include "pipeline/base/simd.h"

#include <string.h>

static enum oct_simd best(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return OCT_SIMD_PLAIN;
    const int has_avx512 = __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return has_avx512 ? OCT_SIMD_AVX512 : OCT_SIMD_AVX2;
#else
    return OCT_SIMD_PLAIN;
#endif
}

enum oct_simd oct_simd_choose(const char *name)
{
    static const char *const names[OCT_N_SIMD] = {"plain", "avx2", "avx512"};
    if (strcmp(name, "auto") == 0)
        return best();
    for (int i = 0; i < OCT_N_SIMD; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum oct_simd)i <= best() ? (enum oct_simd)i : OCT_N_SIMD;
    return OCT_N_SIMD;
}
