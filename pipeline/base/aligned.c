#include "pipeline/base/aligned.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* 0: it exceeds a size_t. At least one unit, as aligned_alloc(_, 0) may return NULL. */
static size_t whole_bytes(size_t alignment, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - alignment)
        return 0;
    return bytes ? (bytes + alignment - 1) / alignment * alignment : alignment;
}

void *oct_aligned_alloc(size_t alignment, size_t n, size_t size)
{
    size_t bytes = whole_bytes(alignment, n, size);
    return bytes ? aligned_alloc(alignment, bytes) : NULL;
}

void *oct_aligned_calloc(size_t alignment, size_t n, size_t size)
{
    void *memory = oct_aligned_alloc(alignment, n, size);
    if (memory)
        memset(memory, 0, whole_bytes(alignment, n, size));
    return memory;
}
