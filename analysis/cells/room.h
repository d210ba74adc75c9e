/* Room for more of something, in arrays that grow together. */
#ifndef OCT_ANALYSIS_CELLS_ROOM_H
#define OCT_ANALYSIS_CELLS_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* The array with room for n elements; without memory as it was, and *is_whole false. */
static inline void *oct_cells_grown(void *array, size_t n, size_t size, bool *is_whole)
{
    void *larger = realloc(array, n * size);
    if (larger)
        return larger;
    *is_whole = false;
    return array;
}

#endif
