#define OCT_SCORER_TABLE oct_cells_scorer_plain
#define OCT_SCORER_NAME "plain"
#define WIDTH 4
#include "analysis/cells/gicov_body.h"
