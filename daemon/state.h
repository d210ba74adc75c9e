/* The daemon's states: one table, event x state -> next state, or why not.
 *
 *                          start                     gate open
 *       +-------> IDLE ------------------> STARTING -----------> ARMED <--------------+
 *       |          ^                        |  |  ^                | |  lines come    |
 *       |          | built, not to open     |  |  |                | v                |
 *       |          +------------------------+  |  |     +------- RUNNING              |
 *       |                        build failed  |  |     |          |  ^  silence, or   |
 *       |                                      v  |     |          |  |  end of the    |
 *       |                 engine failed     ERROR-+     |  record  |  |  acquisition --+
 *       |          IDLE, ARMED, RUNNING, --->^  start   |  start   |  | recording
 *       |          RECORDING                 |          v          v  | ended
 *       |                           overdue  |        RECORDING <--+  |
 *       |                                    |          |   +---------+
 *       |  drained                           |          |
 *       +------------------------------- DRAINING <-----+---- stop, from every state that takes
 *                                            ^                lines or is about to
 *                                            +--------------- shutdown, from every state
 *
 * ARMED: lines are taken, none come. A sender that restarts needs no command: lines of a new epoch
 * lead from ARMED to RUNNING as the first ones did. RECORDING is kept through a silence. DRAINING:
 * what had arrived is reconstructed, published and recorded, files are closed. STARTING is there
 * because building an engine takes up to seconds, and no reply waits so long.
 *
 * The functions are pure: the daemon acts on a change. */
#ifndef OCT_DAEMON_STATE_H
#define OCT_DAEMON_STATE_H

#include <stdbool.h>

enum oct_state {
    OCT_STATE_IDLE,
    OCT_STATE_STARTING,
    OCT_STATE_ARMED,
    OCT_STATE_RUNNING,
    OCT_STATE_RECORDING,
    OCT_STATE_DRAINING,
    OCT_STATE_ERROR,
    OCT_N_STATES
};

enum oct_event {
    /* Commands; may be refused. A command that changes nothing is granted, as scripts repeat
     * themselves. */
    OCT_EVENT_START,
    OCT_EVENT_STOP,
    OCT_EVENT_RECORD_START,
    OCT_EVENT_RECORD_STOP,
    OCT_EVENT_SET_IDLE_KEY,
    OCT_EVENT_SET_LIVE_KEY,
    OCT_EVENT_SHUTDOWN,
    /* Events; never refused. They leave a state that they do not concern unchanged. */
    OCT_EVENT_OPENED,        /* the session is built and takes lines */
    OCT_EVENT_BUILT_SHUT,    /* the session is built and must not take lines yet */
    OCT_EVENT_BUILD_REFUSED, /* the new configuration was refused; the old session goes on */
    OCT_EVENT_BUILD_FAILED,  /* there is no session */
    OCT_EVENT_SOURCE_BEGAN,
    OCT_EVENT_SOURCE_SILENT,
    OCT_EVENT_RECORD_ENDED, /* all its files are closed */
    OCT_EVENT_ENGINE_FAILED,
    OCT_EVENT_DRAINED,
    OCT_EVENT_OVERDUE, /* not drained within daemon.drain_s */
    OCT_N_EVENTS
};
#define OCT_N_COMMANDS OCT_EVENT_OPENED

/* Lower case, as "phase" in the status. */
extern const char *const oct_state_names[OCT_N_STATES];
extern const char *const oct_event_names[OCT_N_EVENTS];

/* Moves *state and returns NULL; or leaves it and returns why the event is refused and what to do.
 */
const char *oct_state_apply(enum oct_state *state, enum oct_event event);

/* Whether the state will change soon by itself: a refused client may ask again. */
bool oct_state_is_passing(enum oct_state state);

/* "state" of the status, which knows four words: idle, running, recording, error. recording: files
 * are open or will be. */
const char *oct_state_contract_name(enum oct_state state, bool recording);

#endif
