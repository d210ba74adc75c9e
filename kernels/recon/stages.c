#include "kernels/recon/stages.h"

#include "pipeline/base/simd.h"

const struct oct_stages *oct_stages_select(const char *simd)
{
    static const struct oct_stages *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_stages_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_stages_avx2,
        [OCT_SIMD_AVX512] = &oct_stages_avx512,
#endif
    };
    return sets[oct_simd_choose(simd ? simd : "auto")];
}
