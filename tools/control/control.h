/* octctl's end of the control socket: a request out, the daemon's answer in, as JSON. */
#ifndef OCT_TOOLS_CONTROL_H
#define OCT_TOOLS_CONTROL_H

#include "config/config.h"
#include "pipeline/base/err.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>

struct oct_control_link;

/* Connects, which succeeds with no daemon there. endpoint: NULL: that of the configuration.
 * timeout_s: for an answer. *control is NULL on error. */
enum oct_err oct_control_open(struct oct_control_link **control, const struct oct_config *config,
                              const char *endpoint, double timeout_s, struct oct_error *err);

const char *oct_control_endpoint(const struct oct_control_link *control);

/* The answer is an object, the caller's to delete, its texts fit for a terminal; *text (NULL: not
 * wanted) is what came, malloc'd. On error both are NULL. OCT_E_AGAIN: nobody answers.
 * OCT_E_FORMAT: what came is no JSON object. */
enum oct_err oct_control_ask(struct oct_control_link *control, const char *request, cJSON **answer,
                             char **text, struct oct_error *err);

/* The same, waiting for most_s at most. */
enum oct_err oct_control_ask_briefly(struct oct_control_link *control, const char *request,
                                     double most_s, cJSON **answer, struct oct_error *err);

/* Asks for the status. */
enum oct_err oct_control_status(struct oct_control_link *control, cJSON **status,
                                struct oct_error *err);

/* NULL is fine. */
void oct_control_close(struct oct_control_link *control);

#endif
