#if defined(__x86_64__)
#define OCT_STAGES_TABLE oct_stages_avx512
#define OCT_STAGES_NAME "avx512"
#define OCT_STAGES_LANES &oct_lanes_avx512
#include "kernels/recon/stages_body.h"
#else
typedef int oct_stages_need_x86; /* a translation unit may not be empty */
#endif
