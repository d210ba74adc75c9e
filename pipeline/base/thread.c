#define _GNU_SOURCE /* pthread_setname_np, SCHED_BATCH, syscall */
#include "pipeline/base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define YIELDING_NICE 10 /* a tenth of the weight of others */
#define SLICE_NS 300000u /* the system's own is 3 ms */

/* All but those that an instruction raises: a thread that blocks SIGBUS dies of a fault that the
 * handler in pipeline/ingest/shm_store.c survives. */
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

/* struct sched_attr of sched_setattr(2), which this C library does not declare. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns,
        period_ns; /* runtime: of SCHED_OTHER, the slice; 0: default */
};

/* Of the calling thread. False: errno says why not. */
static bool set_scheduling(unsigned policy, unsigned priority, uint64_t slice_ns)
{
    const struct attributes attributes = {.size = sizeof(attributes),
                                          .policy = policy,
                                          .nice = getpriority(PRIO_PROCESS, 0),
                                          .priority = priority,
                                          .runtime_ns = slice_ns};
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

void oct_threads_ask_short_slices(void)
{
    set_scheduling(SCHED_OTHER, 0, SLICE_NS);
}

enum oct_err oct_threads_ask_realtime(unsigned priority, struct oct_error *err)
{
    if (set_scheduling(SCHED_RR, priority, 0))
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG,
                    "the system grants no real-time priority %u (%s): LimitRTPRIO= of the unit "
                    "file, or ulimit -r",
                    priority, strerror(errno));
}

void oct_thread_yield_to_others(void)
{
    setpriority(PRIO_PROCESS, 0, YIELDING_NICE); /* of this thread alone, on Linux */
    set_scheduling(SCHED_BATCH, 0, 0);
}
