#if defined(__x86_64__)
#define OCT_COLUMNS_TABLE oct_distance_columns_avx2
#define OCT_COLUMNS_NAME "avx2"
#include "analysis/surface/distance_heights_body.h"
#else
typedef int oct_distance_columns_need_x86; /* a translation unit may not be empty */
#endif
