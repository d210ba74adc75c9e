#define OCT_MGVF_TABLE oct_mgvf_plain
#define OCT_MGVF_NAME "plain"
#include "analysis/cells/mgvf_body.h"
