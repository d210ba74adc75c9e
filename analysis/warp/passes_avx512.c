#if defined(__x86_64__)
#define OCT_PASSES_TABLE oct_warp_passes_avx512
#define OCT_PASSES_NAME "avx512"
#include "analysis/warp/passes_body.h"
#else
typedef int oct_warp_passes_need_x86; /* a translation unit may not be empty */
#endif
