/* Time: the two clocks that octd uses. */
#ifndef OCT_PIPELINE_BASE_CLOCK_H
#define OCT_PIPELINE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define OCT_NS_PER_MS UINT64_C(1000000)
#define OCT_NS_PER_S UINT64_C(1000000000)

/* CLOCK_MONOTONIC in nanoseconds: for durations; it never steps. */
static inline uint64_t oct_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A CLOCK_MONOTONIC deadline for pthread_cond_timedwait. A timeout_us of any size is fine. */
static inline struct timespec oct_clock_deadline(uint64_t timeout_us)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + timeout_us % 1000000u * 1000u;
    at.tv_sec += (time_t)(timeout_us / 1000000u + ns / 1000000000u);
    at.tv_nsec = (long)(ns % 1000000000u);
    return at;
}

#endif
