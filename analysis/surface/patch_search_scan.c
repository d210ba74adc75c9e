#include "analysis/surface/patch_search_index.h"

#include "pipeline/base/simd.h"

const struct oct_patch_scan *oct_patch_scan_select(const char *name)
{
    static const struct oct_patch_scan *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_patch_scan_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_patch_scan_avx2,
        [OCT_SIMD_AVX512] = &oct_patch_scan_avx512,
#endif
    };
    return sets[oct_simd_choose(name)];
}
