#include "analysis/surface/levelset_local.h"

#include <string.h>

#if defined(__x86_64__)
static const struct oct_levelset_passes *avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               ? &oct_levelset_passes_avx2
               : NULL;
}

static const struct oct_levelset_passes *avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("popcnt")
               ? &oct_levelset_passes_avx512
               : NULL;
}
#else
static const struct oct_levelset_passes *avx2(void)
{
    return NULL;
}

static const struct oct_levelset_passes *avx512(void)
{
    return NULL;
}
#endif

const struct oct_levelset_passes *oct_levelset_passes_select(const char *name)
{
    if (strcmp(name, "avx512") == 0)
        return avx512();
    if (strcmp(name, "avx2") == 0)
        return avx2();
    if (strcmp(name, "plain") == 0)
        return &oct_levelset_passes_plain;
    if (strcmp(name, "auto") != 0)
        return NULL;
    return avx512() ? avx512() : avx2() ? avx2() : &oct_levelset_passes_plain;
}
