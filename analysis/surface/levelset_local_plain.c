#define OCT_PASSES_TABLE oct_levelset_passes_plain
#define OCT_PASSES_NAME "plain"
#include "analysis/surface/levelset_local_body.h"
