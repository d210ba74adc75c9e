#include "daemon/state.h"

#include <stddef.h>

const char *const oct_state_names[] = {"idle", "running", "recording", "error", NULL};

enum oct_state oct_state_of(bool failed, bool accepting, bool recording)
{
    if (failed)
        return OCT_STATE_ERROR;
    if (recording)
        return OCT_STATE_RECORDING;
    return accepting ? OCT_STATE_RUNNING : OCT_STATE_IDLE;
}

const char *oct_state_refuses(enum oct_state state, enum oct_action action)
{
    switch (action) {
    case OCT_ACTION_RECORD_START:
        if (state == OCT_STATE_IDLE)
            return "the daemon is idle: send start first";
        if (state == OCT_STATE_ERROR)
            return "the daemon is in error: see last_error, then send start";
        if (state == OCT_STATE_RECORDING)
            return "a recording is under way already";
        return NULL;
    case OCT_ACTION_SET_IDLE_KEY:
        if (state == OCT_STATE_RUNNING || state == OCT_STATE_RECORDING)
            return "this key can change only while the daemon is idle: send stop first";
        return NULL;
    case OCT_ACTION_SET_LIVE_KEY:
        /* A file says with which configuration it was made, all of it. */
        if (state == OCT_STATE_RECORDING)
            return "a recording is under way: its files say how they were made; send record stop "
                   "first";
        return NULL;
    case OCT_ACTION_START: /* what is so already is granted: scripts may repeat themselves */
    case OCT_ACTION_STOP:
    case OCT_ACTION_RECORD_STOP:
        return NULL;
    }
    return NULL;
}
