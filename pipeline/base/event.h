/* Waiting without a lock: a count that rises with every change, and a futex on it (event count).
 *
 *     who waits                                   who changes something
 *     n = oct_event_prepare(event)                changes it (an atomic store)
 *     looks whether what it waits for is there    oct_event_notify(event)
 *     no: oct_event_wait_until(event, n, ...)
 *     oct_event_end(event)
 *
 * A change between prepare and wait ends the wait at once, so none is missed. Notifying never
 * waits and takes no lock: a thread that is stopped in here, or that has no processor, holds up
 * nobody. That is what a mutex with a condition variable cannot give between threads of which one
 * yields to others.
 *
 * All members are the event's own; zeroed memory is a new event. Any thread. */
#ifndef OCT_PIPELINE_BASE_EVENT_H
#define OCT_PIPELINE_BASE_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct oct_event {
    atomic_uint n_changes; /* the futex */
    atomic_uint n_waiting; /* between prepare and end: without any no system call is made */
};

/* Wakes all that wait. */
void oct_event_notify(struct oct_event *event);

unsigned oct_event_prepare(struct oct_event *event);

/* Waits until something has changed since prepare returned n; deadline: of CLOCK_MONOTONIC
 * (oct_clock_deadline). False: the time has run out. True may be spurious. */
bool oct_event_wait_until(struct oct_event *event, unsigned n, const struct timespec *deadline);

/* After each prepare, whether it waited or not. */
void oct_event_end(struct oct_event *event);

#endif
