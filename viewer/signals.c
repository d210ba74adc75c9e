#include "viewer/signals.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

void oct_signals_block(void)
{
    sigset_t set;

    fill_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

bool oct_signals_came(void)
{
    static const struct timespec at_once = {0};
    sigset_t set;

    fill_set(&set);
    if (sigtimedwait(&set, NULL, &at_once) < 0)
        return false;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return true;
}
