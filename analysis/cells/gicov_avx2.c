#if defined(__x86_64__)
#define OCT_SCORER_TABLE oct_cells_scorer_avx2
#define OCT_SCORER_NAME "avx2"
#define WIDTH 8
#include "analysis/cells/gicov_body.h"
#else
typedef int oct_cells_scorers_need_x86; /* a translation unit may not be empty */
#endif
