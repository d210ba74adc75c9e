#define OCT_STAGES_TABLE oct_stages_plain
#define OCT_STAGES_NAME "plain"
#include "kernels/stages_body.h"
