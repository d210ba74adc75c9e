/* The daemon's state as the outside sees it, derived from three facts:
 *
 *             start            record start
 *      idle ---------> running -------------> recording
 *        ^   <---------  ^ |   <-------------  |
 *        |      stop     | |    record stop    |
 *        |               | |                   |
 *        +---------------|-+------ stop -------+
 *                        | | engine failed
 *            start       | v
 *        (builds anew) error
 *
 * No state is stored: what the parts are in decides, so that it cannot disagree with them. */
#ifndef OCT_DAEMON_STATE_H
#define OCT_DAEMON_STATE_H

#include <stdbool.h>

enum oct_state { OCT_STATE_IDLE, OCT_STATE_RUNNING, OCT_STATE_RECORDING, OCT_STATE_ERROR };

/* As they stand in the status. */
extern const char *const oct_state_names[];

/* failed: engine dead or no session; accepting: the ingest gate is open; recording: the recorder
 * is active. */
enum oct_state oct_state_of(bool failed, bool accepting, bool recording);

/* What a command asks, and whether the state allows it; NULL, or the reason why not. */
enum oct_action {
    OCT_ACTION_START,
    OCT_ACTION_STOP,
    OCT_ACTION_RECORD_START,
    OCT_ACTION_RECORD_STOP,
    OCT_ACTION_SET_IDLE_KEY,
    OCT_ACTION_SET_LIVE_KEY,
};
const char *oct_state_refuses(enum oct_state state, enum oct_action action);

#endif
