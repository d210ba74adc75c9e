#define _GNU_SOURCE /* pthread_setname_np */
#include "pipeline/base/thread.h"

#include <signal.h>

/* All but those that an instruction raises: a thread that blocks SIGBUS dies of a fault that the
 * handler in pipeline/ingest/shm_guard.c survives. */
static void fill_blocked(sigset_t *blocked)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(blocked);
    for (unsigned i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
        sigdelset(blocked, raised[i]);
}

enum oct_err oct_thread_start(pthread_t *thread, const char *name, void *(*run)(void *),
                              void *argument, const char *what, struct oct_error *err)
{
    sigset_t blocked, before;
    pthread_t started;
    fill_blocked(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before); /* a new thread inherits its creator's mask */
    int status = pthread_create(&started, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status)
        return oct_fail_errno(err, OCT_E_IO, status, "%s", what);
    if (name)
        pthread_setname_np(started, name);
    *thread = started;
    return OCT_OK;
}

enum oct_err oct_thread_start_detached(const char *name, void *(*run)(void *), void *argument,
                                       const char *what, struct oct_error *err)
{
    pthread_t thread = 0;
    enum oct_err e = oct_thread_start(&thread, name, run, argument, what, err);
    if (e == OCT_OK)
        pthread_detach(thread); /* only now: a detached thread may end before it has its name */
    return e;
}
