#define OCT_SCAN_TABLE oct_patch_scan_plain
#define OCT_SCAN_NAME "plain"
#define WIDTH 4
#include "analysis/surface/patch_search_scan_body.h"
