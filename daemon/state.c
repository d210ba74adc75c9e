#include "daemon/state.h"

#include <stddef.h>

const char *const oct_state_names[OCT_N_STATES] = {
    [OCT_STATE_IDLE] = "idle",           [OCT_STATE_STARTING] = "starting",
    [OCT_STATE_ARMED] = "armed",         [OCT_STATE_RUNNING] = "running",
    [OCT_STATE_RECORDING] = "recording", [OCT_STATE_DRAINING] = "draining",
    [OCT_STATE_ERROR] = "error",
};

const char *const oct_event_names[OCT_N_EVENTS] = {
    [OCT_EVENT_START] = "start",
    [OCT_EVENT_STOP] = "stop",
    [OCT_EVENT_RECORD_START] = "record start",
    [OCT_EVENT_RECORD_STOP] = "record stop",
    [OCT_EVENT_SET_IDLE_KEY] = "set idle key",
    [OCT_EVENT_SET_LIVE_KEY] = "set live key",
    [OCT_EVENT_SHUTDOWN] = "shutdown",
    [OCT_EVENT_OPENED] = "opened",
    [OCT_EVENT_BUILT_SHUT] = "built, shut",
    [OCT_EVENT_BUILD_REFUSED] = "build refused",
    [OCT_EVENT_BUILD_FAILED] = "build failed",
    [OCT_EVENT_SOURCE_BEGAN] = "source began",
    [OCT_EVENT_SOURCE_SILENT] = "source silent",
    [OCT_EVENT_RECORD_ENDED] = "record ended",
    [OCT_EVENT_ENGINE_FAILED] = "engine failed",
    [OCT_EVENT_DRAINED] = "drained",
    [OCT_EVENT_OVERDUE] = "overdue",
};

/* One field of the table: the next state, or why the event is refused. */
struct step {
    enum oct_state to;
    const char *why; /* NULL: granted */
};

#define TO(state)                                                                                  \
    {                                                                                              \
        .to = OCT_STATE_##state                                                                    \
    }
#define NO(text)                                                                                   \
    {                                                                                              \
        .why = (text)                                                                              \
    }
#define STARTING_NOW "the daemon is starting: ask again in a moment"
#define DRAINING_NOW "the daemon finishes what it has begun: ask again when it is idle"
#define STOP_FIRST                                                                                 \
    "this key can change only while the daemon is idle: send stop first (octctl stop)"
#define IN_FILE "a recording is under way: its files say how they were made; send record stop first"

/* clang-format off */
static const struct step table[OCT_N_EVENTS][OCT_N_STATES] = {
/* event                     IDLE                STARTING          ARMED          RUNNING
                             RECORDING           DRAINING          ERROR */
[OCT_EVENT_START]         = {TO(STARTING),       TO(STARTING),     TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      NO(DRAINING_NOW), TO(STARTING)},
[OCT_EVENT_STOP]          = {TO(IDLE),           TO(DRAINING),     TO(DRAINING),  TO(DRAINING),
                             TO(DRAINING),       TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_RECORD_START]  = {NO("the daemon is idle: send start first"),
                                                 NO(STARTING_NOW), TO(RECORDING), TO(RECORDING),
                             NO("a recording is under way already"),
                                                 NO(DRAINING_NOW),
                             NO("the daemon is in error: see last_error, then send start")},
[OCT_EVENT_RECORD_STOP]   = {TO(IDLE),           TO(STARTING),     TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_SET_IDLE_KEY]  = {TO(IDLE),           NO(STARTING_NOW), NO(STOP_FIRST), NO(STOP_FIRST),
                             NO(STOP_FIRST),     NO(DRAINING_NOW), TO(ERROR)},
[OCT_EVENT_SET_LIVE_KEY]  = {TO(IDLE),           TO(STARTING),     TO(ARMED),     TO(RUNNING),
                             NO(IN_FILE),        NO(DRAINING_NOW), TO(ERROR)},
[OCT_EVENT_SHUTDOWN]      = {TO(DRAINING),       TO(DRAINING),     TO(DRAINING),  TO(DRAINING),
                             TO(DRAINING),       TO(DRAINING),     TO(DRAINING)},
[OCT_EVENT_OPENED]        = {TO(IDLE),           TO(ARMED),        TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_BUILT_SHUT]    = {TO(IDLE),           TO(IDLE),         TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_BUILD_REFUSED] = {TO(IDLE),           TO(IDLE),         TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_BUILD_FAILED]  = {TO(IDLE),           TO(ERROR),        TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(ERROR),        TO(ERROR)},
[OCT_EVENT_SOURCE_BEGAN]  = {TO(IDLE),           TO(STARTING),     TO(RUNNING),   TO(RUNNING),
                             TO(RECORDING),      TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_SOURCE_SILENT] = {TO(IDLE),           TO(STARTING),     TO(ARMED),     TO(ARMED),
                             TO(RECORDING),      TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_RECORD_ENDED]  = {TO(IDLE),           TO(STARTING),     TO(ARMED),     TO(RUNNING),
                             TO(RUNNING),        TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_ENGINE_FAILED] = {TO(ERROR),          TO(STARTING),     TO(ERROR),     TO(ERROR),
                             TO(ERROR),          TO(DRAINING),     TO(ERROR)},
[OCT_EVENT_DRAINED]       = {TO(IDLE),           TO(STARTING),     TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(IDLE),         TO(ERROR)},
[OCT_EVENT_OVERDUE]       = {TO(IDLE),           TO(STARTING),     TO(ARMED),     TO(RUNNING),
                             TO(RECORDING),      TO(ERROR),        TO(ERROR)},
};
/* clang-format on */

const char *oct_state_apply(enum oct_state *state, enum oct_event event)
{
    const struct step *step = &table[event][*state];
    if (!step->why)
        *state = step->to;
    return step->why;
}

bool oct_state_is_passing(enum oct_state state)
{
    return state == OCT_STATE_STARTING || state == OCT_STATE_DRAINING;
}

const char *oct_state_contract_name(enum oct_state state, bool recording)
{
    switch (state) {
    case OCT_STATE_IDLE:
    case OCT_STATE_STARTING: /* no lines are taken yet */
        return "idle";
    case OCT_STATE_DRAINING: /* not "idle": a client may be waiting for that word */
        return recording ? "recording" : "running";
    case OCT_STATE_RECORDING:
        return "recording";
    case OCT_STATE_ERROR:
        return "error";
    default:
        return "running";
    }
}
