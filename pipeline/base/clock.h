/* Time: the two clocks that octd uses. */
#ifndef OCT_PIPELINE_BASE_CLOCK_H
#define OCT_PIPELINE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds: for durations; it never steps. */
static inline uint64_t oct_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A CLOCK_MONOTONIC deadline for pthread_cond_timedwait. */
static inline struct timespec oct_clock_deadline(uint64_t timeout_us)
{
    uint64_t at = oct_clock_ns() + timeout_us * 1000u;
    return (struct timespec){.tv_sec = (time_t)(at / 1000000000u),
                             .tv_nsec = (long)(at % 1000000000u)};
}

#endif
