/* Starting threads. A new thread blocks every signal but those that its own instructions raise
 * (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT): what others send to the process
 * reaches the thread that started the program, and interrupts no system call of any other.
 *
 * No state; any thread. */
#ifndef OCT_PIPELINE_BASE_THREAD_H
#define OCT_PIPELINE_BASE_THREAD_H

#include "pipeline/base/err.h"

#include <pthread.h>

/* Runs run(argument) in a new thread; the caller joins it. name: of at most 15 characters, as ps -L
 * and top -H show it; NULL: its creator's. OCT_E_IO: there is no thread, *thread is not set, and
 * the message begins with `what`. */
enum oct_err oct_thread_start(pthread_t *thread, const char *name, void *(*run)(void *),
                              void *argument, const char *what, struct oct_error *err);

/* The same for a thread that nobody joins. */
enum oct_err oct_thread_start_detached(const char *name, void *(*run)(void *), void *argument,
                                       const char *what, struct oct_error *err);

/* What the scheduler is asked for. A thread inherits its creator's; each of these concerns the
 * calling thread and those that it starts later. */

/* Short slices: when such a thread wakes, it runs before those that have computed for long (Linux
 * 6.12 and later; nothing changes before). Any process may ask for it. */
void oct_threads_ask_short_slices(void);

/* SCHED_RR of that priority (1 .. 99), where the system grants it (RLIMIT_RTPRIO, CAP_SYS_NICE): no
 * other program's threads run before these. OCT_E_CONFIG: it does not, and nothing has changed. */
enum oct_err oct_threads_ask_realtime(unsigned priority, struct oct_error *err);

/* SCHED_BATCH of niceness 10: the thread gives way to all that do not, and never interrupts one;
 * beside others that compute it gets a tenth of what they get (SCHED_IDLE would leave it next to
 * nothing, and was measured to be no better for the others). It cannot take that back. A lock that
 * it holds may be held for long, so it shares none with threads that do not give way; nor do they
 * wait for anything else of it without a bound. */
void oct_thread_yield_to_others(void);

#endif
