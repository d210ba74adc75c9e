#include "kernels/recon/stages.h"

#include <string.h>

#if defined(__x86_64__)
static const struct oct_stages *best(void)
{
    if (oct_stages_select("avx512"))
        return &oct_stages_avx512;
    if (oct_stages_select("avx2"))
        return &oct_stages_avx2;
    return &oct_stages_plain;
}

const struct oct_stages *oct_stages_select(const char *simd)
{
    if (!simd || strcmp(simd, "auto") == 0)
        return best();
    if (strcmp(simd, "plain") == 0)
        return &oct_stages_plain;
    if (strcmp(simd, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &oct_stages_avx2
                                                                               : NULL;
    if (strcmp(simd, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                   ? &oct_stages_avx512
                   : NULL;
    return NULL;
}
#else
const struct oct_stages *oct_stages_select(const char *simd)
{
    return !simd || strcmp(simd, "auto") == 0 || strcmp(simd, "plain") == 0 ? &oct_stages_plain
                                                                            : NULL;
}
#endif
