#include "viewer/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

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

/* ---- priority ---- */

void oct_view_step_back(unsigned nice)
{
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0);

    if (nice == 0 || (now == -1 && errno != 0) || now >= (int)nice)
        return;
    setpriority(PRIO_PROCESS, 0, (int)nice);
    /* With the kernel's autogroups, niceness counts only within a session, and each session has a
     * niceness among the others. A viewer that leads its session (as desktops start programs) sets
     * the session's too; that of a terminal is not the viewer's. */
    FILE *autogroup = getsid(0) == getpid() ? fopen("/proc/self/autogroup", "w") : NULL;
    if (autogroup) {
        fprintf(autogroup, "%u", nice);
        fclose(autogroup);
    }
}
