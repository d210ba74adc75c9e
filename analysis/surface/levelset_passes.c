#include "analysis/surface/levelset_local.h"

#include "pipeline/base/simd.h"

const struct oct_levelset_passes *oct_levelset_passes_select(const char *name)
{
    static const struct oct_levelset_passes *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_levelset_passes_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_levelset_passes_avx2,
        [OCT_SIMD_AVX512] = &oct_levelset_passes_avx512,
#endif
    };
    return sets[oct_simd_choose(name)];
}
