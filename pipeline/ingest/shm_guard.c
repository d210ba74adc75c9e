#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "pipeline/ingest/shm_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* The handler searches them in the thread that faulted: so they are lock-free and at fixed
 * addresses. */
#define MOST_GUARDS 16

struct oct_shm_guard {
    _Atomic(unsigned char *) end; /* written last, cleared first; NULL: the entry is free */
    _Atomic(unsigned char *) begin;
    atomic_bool struck;
    bool used; /* under the lock */
};

static struct oct_shm_guard guards[MOST_GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

/* Two threads that fault at once both map zeros there, which is harmless. */
static void on_sigbus(int number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;
    for (struct oct_shm_guard *g = guards; g < guards + MOST_GUARDS; g++) {
        unsigned char *end = atomic_load(&g->end), *begin = atomic_load(&g->begin);
        if (at < begin || at >= end)
            continue;
        atomic_store(&g->struck, true);
        if (mmap(begin, (size_t)(end - begin), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            return;
    }
    pass_on(number, info, context);
}

/* Installs the handler if it is not installed, or if another one was set since. Lock held. */
static void install_handler(void)
{
    struct sigaction now, action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_sigbus;
    sigaction(SIGBUS, NULL, &now);
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
        before = now;
        sigaction(SIGBUS, &action, NULL);
    }
}

struct oct_shm_guard *oct_shm_guard_begin(void *memory, size_t bytes)
{
    struct oct_shm_guard *guard = guards;
    pthread_mutex_lock(&lock);
    install_handler();
    while (guard < guards + MOST_GUARDS && guard->used)
        guard++;
    if (guard < guards + MOST_GUARDS) {
        guard->used = true;
        atomic_store(&guard->struck, false);
        atomic_store(&guard->begin, memory);
        atomic_store(&guard->end, (unsigned char *)memory + bytes);
    } else {
        guard = NULL;
    }
    pthread_mutex_unlock(&lock);
    return guard;
}

bool oct_shm_guard_struck(const struct oct_shm_guard *guard)
{
    return atomic_load(&guard->struck);
}

void oct_shm_guard_end(struct oct_shm_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&lock);
    atomic_store(&guard->end, NULL);
    guard->used = false;
    pthread_mutex_unlock(&lock);
}
