/* How long octctl waits for what a daemon has granted. All such waits share this limit. */
#ifndef OCT_TOOLS_PATIENCE_H
#define OCT_TOOLS_PATIENCE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* A daemon whose counts rise is given ten minutes; one whose counts all stand still, wait_s. Only a
 * new maximum counts as a rise, so that numbers that jump up and down prolong nothing. */
struct oct_patience {
    const char *command; /* "stop", ...; for "record" only what is written counts */
    double wait_s;
    uint64_t began_ns, moved_ns; /* 0: before the first status */
    double most;                 /* the highest count so far */
};

/* Returns whether to ask again after this status; if not, err says how long the wait was. */
bool oct_patience_lasts(struct oct_patience *patience, const cJSON *status, struct oct_error *err);

#endif
