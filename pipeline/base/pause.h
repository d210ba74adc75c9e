/* Times at which the whole program did not run: stopped by a signal or a debugger, suspended with
 * the machine, paused by its hypervisor, or without a processor. What was sent meanwhile arrives at
 * once afterwards; what of it cannot be kept is not counted as slowness of disk or engine.
 *
 *     look . look . look ..................... look . look .         a thread that never waits long
 *                        |<------ length ----->|<-- catching up -->| length + 1 s at most
 *
 * Not thread-safe: its owner has a lock. */
#ifndef OCT_PIPELINE_BASE_PAUSE_H
#define OCT_PIPELINE_BASE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* A thread that looks every 100 ms is this late only if the whole program did not run. */
#define OCT_PAUSE_LEAST_NS UINT64_C(500000000)

struct oct_pause {
    uint64_t looked_ns; /* 0: never */
    uint64_t n;         /* pauses so far */
    uint64_t length_ns; /* of the newest */
    uint64_t until_ns;  /* the program catches up until then */
};

/* This clock runs while the machine is suspended; CLOCK_MONOTONIC does not. */
static inline uint64_t oct_pause_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* True: a pause has just ended. */
static inline bool oct_pause_look(struct oct_pause *pause, uint64_t now_ns)
{
    uint64_t late_ns = pause->looked_ns ? now_ns - pause->looked_ns : 0;
    pause->looked_ns = now_ns;
    if (late_ns < OCT_PAUSE_LEAST_NS)
        return false;
    pause->n++;
    pause->length_ns = late_ns;
    pause->until_ns = now_ns + late_ns + UINT64_C(1000000000);
    return true;
}

static inline bool oct_pause_is_felt(const struct oct_pause *pause, uint64_t now_ns)
{
    return now_ns < pause->until_ns;
}

#endif
