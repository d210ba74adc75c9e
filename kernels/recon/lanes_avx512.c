#if defined(__x86_64__)
#define OCT_LANES_TABLE oct_lanes_avx512
#include "kernels/recon/lanes_body.h"
#else
typedef int oct_lanes_need_x86; /* a translation unit may not be empty */
#endif
