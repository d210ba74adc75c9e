/* What octd does beside its stream for a while (daemon/errand.h): begun by a control command that
 * answers with its number, told in the status. Blocks; one thread. */
#ifndef OCT_TOOLS_ERRAND_H
#define OCT_TOOLS_ERRAND_H

#include "tools/control/control_wait.h"

#include <cjson/cJSON.h>

/* OCT_E_STATE with octd's words unless the answer is ok. */
enum oct_err oct_errand_granted(const cJSON *answer, struct oct_error *err);

/* Sends the request (JSON) until octd is free for it; *number is then that of the errand. */
enum oct_err oct_errand_ask(const struct oct_control_wait *wait, const char *request,
                            double *number, struct oct_error *err);

/* Waits until it is done, at most most_s. *status then has it; *result, which is not NULL, lies
 * within. The caller deletes *status. OCT_E_STATE: it failed, another came between, or it was not
 * done in time; that of octd's silence. */
enum oct_err oct_errand_wait(struct oct_control_link *control, double number, double most_s,
                             cJSON **status, const cJSON **result, struct oct_error *err);

#endif
