#define OCT_PASSES_TABLE oct_warp_passes_plain
#define OCT_PASSES_NAME "plain"
#include "analysis/warp/passes_body.h"
