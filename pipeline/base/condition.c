#include "pipeline/base/condition.h"

#include "pipeline/base/clock.h"

#include <errno.h>

void oct_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool oct_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
                              const struct timespec *deadline)
{
    return pthread_cond_timedwait(condition, lock, deadline) != ETIMEDOUT;
}

bool oct_condition_wait_us(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t timeout_us)
{
    struct timespec deadline = oct_clock_deadline(timeout_us);
    return oct_condition_wait_until(condition, lock, &deadline);
}
