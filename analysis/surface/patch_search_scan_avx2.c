#if defined(__x86_64__)
#define OCT_SCAN_TABLE oct_patch_scan_avx2
#define OCT_SCAN_NAME "avx2"
#define WIDTH 8
#include "analysis/surface/patch_search_scan_body.h"
#else
typedef int oct_patch_scans_need_x86; /* a translation unit may not be empty */
#endif
