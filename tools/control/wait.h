/* Waiting for what a daemon has granted: it answers within 100 ms and may go on working. A daemon
 * whose counts rise is given ten minutes; one whose counts all stand still, wait_s. */
#ifndef OCT_TOOLS_WAIT_H
#define OCT_TOOLS_WAIT_H

#include "tools/control/control.h"

#include <stdbool.h>
#include <sys/types.h>

struct oct_control_wait {
    struct oct_control_link *control;
    const char *command; /* "record": of it only what is written counts */
    const char *action;  /* "start", "stop", "last"; NULL: the command is the action */
    double wait_s;       /* while nothing gets on; 0: by daemon.drain_s */
    double most_s;       /* in all, whatever gets on; 0: see above */
};

/* Asks the same again as long as the daemon says that it is busy with starting or draining. */
enum oct_err oct_control_ask_patiently(const struct oct_control_wait *wait, const char *request,
                                       cJSON **answer, char **text, struct oct_error *err);

/* Waits until nothing is under way and, if `closed`, until no recording is active: who asked for a
 * stop wants the file. A daemon that is gone is as good. Returns the exit status of the command,
 * once it has said on stderr what failed. */
int oct_control_wait_done(const struct oct_control_wait *wait, bool closed);

/* Waits until the last seconds are in their file, and prints its name if `prints`. Returns the exit
 * status. */
int oct_control_wait_saved(const struct oct_control_wait *wait, bool prints);

/* Whether a daemon answers; its process, if it runs on this machine, 0 if that is not known. */
bool oct_control_find_process(const struct oct_control_wait *wait, pid_t *process);

/* For how long oct_control_wait_ended will wait: asked for before the daemon is told to end. */
double oct_control_most_ending_s(const struct oct_control_wait *wait);

/* Waits until the process has ended; 0: until nobody answers. Returns the exit status. */
int oct_control_wait_ended(const struct oct_control_wait *wait, pid_t process, double most_s);

/* What the forecast says of a recording that begins, on stderr. */
void oct_control_print_warning(const cJSON *from);

/* ---- what octd does beside its stream for a while (daemon/errand.h) ---- */

/* OCT_E_STATE with octd's words unless the answer is ok. */
enum oct_err oct_errand_granted(const cJSON *answer, struct oct_error *err);

/* Sends the request (JSON) until octd is free for it; *number is then that of the errand. */
enum oct_err oct_errand_ask(const struct oct_control_wait *wait, const char *request,
                            double *number, struct oct_error *err);

/* Waits until it is done, at most wait->most_s. *status then has it; *result, which is not NULL,
 * lies within. The caller deletes *status. OCT_E_STATE: it failed, another came between, or it was
 * not done in time; that of octd's silence. */
enum oct_err oct_errand_wait(const struct oct_control_wait *wait, double number, cJSON **status,
                             const cJSON **result, struct oct_error *err);

#endif
