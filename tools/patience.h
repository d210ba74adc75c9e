/* How long octctl waits for what a daemon has granted: the one limit of every such wait. */
#ifndef OCT_TOOLS_PATIENCE_H
#define OCT_TOOLS_PATIENCE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* A daemon that gets on is given ten minutes, one whose counts all stand still wait_s. Counts only
 * rise; numbers that jump do not help. */
struct oct_patience {
    const char *command; /* "stop", ...; "record" is judged by what is written alone */
    double wait_s;
    uint64_t began_ns, moved_ns; /* 0: nothing was asked yet */
    double most;                 /* the highest count so far */
};

/* Whether to ask again after this status; if not, err says for how long it was waited. */
bool oct_patience_lasts(struct oct_patience *patience, const cJSON *status, struct oct_error *err);

#endif
