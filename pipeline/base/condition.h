/* Condition variables whose timed waits go by CLOCK_MONOTONIC, which never steps. No state; any
 * thread. */
#ifndef OCT_PIPELINE_BASE_CONDITION_H
#define OCT_PIPELINE_BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Initialises *condition on CLOCK_MONOTONIC; pthread_cond_destroy ends it. */
void oct_condition_init(pthread_cond_t *condition);

/* Each releases the lock while it waits, holds it again on return, and returns false when the time
 * has run out. As with pthread_cond_wait, true may be spurious: the caller checks what it waits
 * for, in a loop. */

/* deadline: of CLOCK_MONOTONIC (oct_clock_deadline). In a loop the time is not begun afresh. */
bool oct_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
                              const struct timespec *deadline);

bool oct_condition_wait_us(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t timeout_us);

#endif
