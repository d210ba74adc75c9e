#define _DEFAULT_SOURCE /* madvise */
#include "pipeline/base/aligned.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

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
    const size_t bytes = whole_bytes(alignment, n, size);
    if (bytes < HUGE_PAGE || alignment > HUGE_PAGE)
        return bytes ? aligned_alloc(alignment, bytes) : NULL;
    const size_t whole = whole_bytes(HUGE_PAGE, bytes, 1);
    void *memory = whole ? aligned_alloc(HUGE_PAGE, whole) : NULL;
    if (memory) /* a hint: many lines far from one another are read faster */
        madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return memory;
}

void *oct_aligned_calloc(size_t alignment, size_t n, size_t size)
{
    void *memory = oct_aligned_alloc(alignment, n, size);
    if (memory)
        memset(memory, 0, whole_bytes(alignment, n, size));
    return memory;
}
