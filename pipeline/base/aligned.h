/* Memory that begins at a multiple of a cache line, a vector register or a page. Any thread. */
#ifndef OCT_PIPELINE_BASE_ALIGNED_H
#define OCT_PIPELINE_BASE_ALIGNED_H

#include <stddef.h>

/* n elements of `size` bytes, rounded up to a multiple of `alignment` (a power of two, at least the
 * size of a pointer), so that whole registers and whole pages at the end may be accessed. free()
 * releases it. NULL: out of memory, or n * size exceeds a size_t. */
void *oct_aligned_alloc(size_t alignment, size_t n, size_t size);

/* The same, all bytes zero, those of the rounding too. */
void *oct_aligned_calloc(size_t alignment, size_t n, size_t size);

#endif
