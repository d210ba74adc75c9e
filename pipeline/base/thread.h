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

#endif
