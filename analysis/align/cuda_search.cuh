/* A search on a device: at which shifts a window, or a whole picture, is compared with the
 * reference, and where its scores lie. */
#ifndef OCT_ANALYSIS_ALIGN_CUDA_SEARCH_CUH
#define OCT_ANALYSIS_ALIGN_CUDA_SEARCH_CUH

#include <stddef.h>
#include <stdint.h>

struct oct_search {
    unsigned picture; /* of the batch */
    uint32_t y0, n_rows;
    int32_t dy, dx;          /* the first shift */
    uint32_t rows, columns;  /* shifts */
    double least;            /* N */
    size_t first;            /* of its scores */
    uint32_t skip_y, skip_x; /* rows, columns at each side that are not sought */
};

#endif
