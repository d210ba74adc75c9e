#define _GNU_SOURCE /* syscall */
#include "pipeline/base/event.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static long futex(struct oct_event *event, int operation, unsigned value,
                  const struct timespec *deadline)
{
    return syscall(SYS_futex, &event->n_changes, operation | FUTEX_PRIVATE_FLAG, value, deadline,
                   NULL, FUTEX_BITSET_MATCH_ANY);
}

void oct_event_notify(struct oct_event *event)
{
    atomic_fetch_add(&event->n_changes, 1);
    if (atomic_load(&event->n_waiting) > 0)
        futex(event, FUTEX_WAKE, INT_MAX, NULL);
}

unsigned oct_event_prepare(struct oct_event *event)
{
    atomic_fetch_add(&event->n_waiting, 1);
    return atomic_load(&event->n_changes);
}

/* FUTEX_WAIT_BITSET: its deadline is absolute and of CLOCK_MONOTONIC. */
bool oct_event_wait_until(struct oct_event *event, unsigned n, const struct timespec *deadline)
{
    return futex(event, FUTEX_WAIT_BITSET, n, deadline) == 0 || errno != ETIMEDOUT;
}

void oct_event_end(struct oct_event *event)
{
    atomic_fetch_sub(&event->n_waiting, 1);
}
