#include "viewer/priority.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* With the kernel's autogroups, niceness counts only within a session, and each session has a
 * niceness among the others. A viewer that leads its session (as desktops start programs) sets the
 * session's too. The session of a terminal is not the viewer's, which leaves it as it is. */
static void step_back_as_session(unsigned nice)
{
    FILE *autogroup = getsid(0) == getpid() ? fopen("/proc/self/autogroup", "w") : NULL;

    if (!autogroup)
        return;
    fprintf(autogroup, "%u", nice);
    fclose(autogroup);
}

void oct_view_step_back(unsigned nice)
{
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0);

    if (nice == 0 || (now == -1 && errno != 0) || now >= (int)nice)
        return;
    setpriority(PRIO_PROCESS, 0, (int)nice);
    step_back_as_session(nice);
}
