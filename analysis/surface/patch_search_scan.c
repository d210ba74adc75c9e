#include "analysis/surface/patch_search_index.h"

#include <string.h>

#if defined(__x86_64__)
static const struct oct_patch_scan *avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &oct_patch_scan_avx2
                                                                           : NULL;
}

static const struct oct_patch_scan *avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? &oct_patch_scan_avx512
               : NULL;
}
#else
static const struct oct_patch_scan *avx2(void)
{
    return NULL;
}

static const struct oct_patch_scan *avx512(void)
{
    return NULL;
}
#endif

const struct oct_patch_scan *oct_patch_scan_select(const char *name)
{
    if (strcmp(name, "avx512") == 0)
        return avx512();
    if (strcmp(name, "avx2") == 0)
        return avx2();
    if (strcmp(name, "plain") == 0)
        return &oct_patch_scan_plain;
    if (strcmp(name, "auto") != 0)
        return NULL;
    return avx512() ? avx512() : avx2() ? avx2() : &oct_patch_scan_plain;
}
