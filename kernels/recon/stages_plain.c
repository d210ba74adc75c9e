#define OCT_STAGES_TABLE oct_stages_plain
#define OCT_STAGES_NAME "plain"
#define OCT_STAGES_LANES NULL
#include "kernels/recon/stages_body.h"
