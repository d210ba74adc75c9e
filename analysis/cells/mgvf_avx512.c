#if defined(__x86_64__)
#define OCT_MGVF_TABLE oct_mgvf_avx512
#define OCT_MGVF_NAME "avx512"
#include "analysis/cells/mgvf_body.h"
#else
typedef int oct_mgvf_needs_x86; /* a translation unit may not be empty */
#endif
