/* The viewer's clock: CLOCK_MONOTONIC in nanoseconds. The model never reads it itself; it is told
 * the time, so that tests can tell it any time. */
#ifndef OCT_VIEWER_MODEL_CLOCK_H
#define OCT_VIEWER_MODEL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define OCT_NS_PER_MS UINT64_C(1000000)
#define OCT_NS_PER_S UINT64_C(1000000000)

static inline uint64_t oct_view_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * OCT_NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
