#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "pipeline/shm_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

/* A signal handler finds its thread's range nowhere else. */
static _Thread_local struct {
    void *volatile memory; /* NULL: nothing is guarded */
    volatile size_t bytes;
    volatile sig_atomic_t struck;
} guarded;

static struct sigaction before; /* written before our handler is in place */

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        signal(number, SIG_DFL); /* the access is made again and ends the process */
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr, from = (uintptr_t)guarded.memory;
    if (!guarded.memory || at < from || at - from >= guarded.bytes) {
        pass_on(number, info, context);
        return;
    }
    guarded.struck = 1;
    if (mmap(guarded.memory, guarded.bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        pass_on(number, info, context);
}

void oct_shm_guard_install(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction now, action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_sigbus;
    pthread_mutex_lock(&lock);
    sigaction(SIGBUS, NULL, &now);
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
        before = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void oct_shm_guard_begin(void *memory, size_t bytes)
{
    guarded.struck = 0;
    guarded.bytes = bytes;
    guarded.memory = memory;
}

bool oct_shm_guard_end(void)
{
    guarded.memory = NULL;
    return guarded.struck;
}
