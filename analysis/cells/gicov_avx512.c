#if defined(__x86_64__)
#define OCT_SCORER_TABLE oct_cells_scorer_avx512
#define OCT_SCORER_NAME "avx512"
#define WIDTH 16
#include "analysis/cells/gicov_body.h"
#else
typedef int oct_cells_scorers_need_x86; /* a translation unit may not be empty */
#endif
