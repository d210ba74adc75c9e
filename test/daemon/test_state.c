/* The daemon's state table: what each command may, and 10^6 random events against what must always
 * hold. */
#include "daemon/state.h"
#include "test/rig/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N_RANDOM 1000000

TEST(the_contract_knows_four_words)
{
    static const char *const wanted[OCT_N_STATES][2] = {
        [OCT_STATE_IDLE] = {"idle", "idle"},
        [OCT_STATE_STARTING] = {"idle", "idle"},
        [OCT_STATE_ARMED] = {"running", "running"},
        [OCT_STATE_RUNNING] = {"running", "running"},
        [OCT_STATE_RECORDING] = {"recording", "recording"},
        [OCT_STATE_DRAINING] = {"running", "recording"},
        [OCT_STATE_ERROR] = {"error", "error"},
    };
    for (int s = 0; s < OCT_N_STATES; s++)
        for (int recording = 0; recording < 2; recording++)
            assert_string_equal(oct_state_contract_name((enum oct_state)s, recording),
                                wanted[s][recording]);
}

TEST(every_command_is_granted_or_refused_with_what_to_do)
{
    /* What the refusal must name; NULL: granted. Columns: idle, starting, armed, running,
     * recording, draining, error. */
    static const struct {
        enum oct_event event;
        const char *says[OCT_N_STATES];
    } cases[] = {
        {OCT_EVENT_START, {NULL, NULL, NULL, NULL, NULL, "idle", NULL}},
        {OCT_EVENT_STOP, {NULL}},
        {OCT_EVENT_RECORD_START, {"start", "again", NULL, NULL, "already", "idle", "last_error"}},
        {OCT_EVENT_RECORD_STOP, {NULL}},
        {OCT_EVENT_SET_IDLE_KEY, {NULL, "again", "stop", "stop", "stop", "idle", NULL}},
        {OCT_EVENT_SET_LIVE_KEY, {NULL, NULL, NULL, NULL, "record stop", "idle", NULL}},
        {OCT_EVENT_SHUTDOWN, {NULL}},
    };
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), OCT_N_COMMANDS);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int s = 0; s < OCT_N_STATES; s++) {
            enum oct_state at = (enum oct_state)s;
            const char *why = oct_state_apply(&at, cases[i].event);
            const char *wanted = cases[i].says[s];
            if (why && at != (enum oct_state)s)
                fail_msg("%s is refused in %s and moves it", oct_event_names[cases[i].event],
                         oct_state_names[s]);
            if (!wanted)
                assert_null(why);
            else if (!why || !strstr(why, wanted))
                fail_msg("%s in %s: '%s' does not say '%s'", oct_event_names[cases[i].event],
                         oct_state_names[s], why ? why : "(granted)", wanted);
        }
}

/* What must hold of one step, whatever the states are. */
static void check_step(enum oct_state from, enum oct_event event, enum oct_state to,
                       const char *why)
{
    const char *broken = NULL;
    bool command = event < OCT_N_COMMANDS;

    if (to < 0 || to >= OCT_N_STATES)
        broken = "leaves the states";
    else if (why && to != from)
        broken = "is refused and moves";
    else if (why && !command)
        broken = "happens and is refused";
    else if (event == OCT_EVENT_STOP && (why || (to != OCT_STATE_DRAINING && to != from)))
        broken = "must always be possible";
    else if (event == OCT_EVENT_SHUTDOWN && (why || to != OCT_STATE_DRAINING))
        broken = "must always drain";
    else if (to == OCT_STATE_RECORDING && from != to &&
             (event != OCT_EVENT_RECORD_START ||
              (from != OCT_STATE_ARMED && from != OCT_STATE_RUNNING)))
        broken = "begins a recording that nobody asked for, or without lines being taken";
    else if (from == OCT_STATE_RECORDING && to != from && event != OCT_EVENT_STOP &&
             event != OCT_EVENT_SHUTDOWN && event != OCT_EVENT_RECORD_ENDED &&
             event != OCT_EVENT_ENGINE_FAILED)
        broken = "ends a recording";
    else if (to == OCT_STATE_IDLE && from != to && from != OCT_STATE_DRAINING &&
             from != OCT_STATE_STARTING)
        broken = "comes to idle without draining";
    else if (to == OCT_STATE_ARMED && from != to && from != OCT_STATE_STARTING &&
             from != OCT_STATE_RUNNING)
        broken = "takes lines without a start";
    else if (from == OCT_STATE_ERROR && to != from && event != OCT_EVENT_START &&
             event != OCT_EVENT_SHUTDOWN)
        broken = "leaves the error by itself";
    else if ((event == OCT_EVENT_SET_IDLE_KEY || event == OCT_EVENT_SET_LIVE_KEY) && to != from)
        broken = "moves";
    else if (event == OCT_EVENT_SET_IDLE_KEY && !why && from != OCT_STATE_IDLE &&
             from != OCT_STATE_ERROR)
        broken = "changes the geometry under a session";
    if (broken)
        fail_msg("%s in %s (-> %s): it %s", oct_event_names[event], oct_state_names[from],
                 oct_state_names[to], broken);
}

TEST(random_events_keep_what_must_hold)
{
    uint64_t n_visits[OCT_N_STATES] = {0}, random = 88172645463325252u;
    enum oct_state now = OCT_STATE_STARTING;

    for (int i = 0; i < N_RANDOM; i++) {
        random ^= random << 13; /* xorshift64, Marsaglia 2003 */
        random ^= random >> 7;
        random ^= random << 17;
        enum oct_event event = (enum oct_event)(random % OCT_N_EVENTS);
        enum oct_state from = now;
        const char *why = oct_state_apply(&now, event);
        check_step(from, event, now, why);
        n_visits[now]++;
    }
    for (int s = 0; s < OCT_N_STATES; s++)
        assert_true(n_visits[s] > N_RANDOM / 1000);
}

/* Which states can be reached from one, by the events from first on. */
static void reach(enum oct_state from, enum oct_event first, bool *reached)
{
    if (reached[from])
        return;
    reached[from] = true;
    for (int e = (int)first; e < OCT_N_EVENTS; e++) {
        enum oct_state to = from;
        oct_state_apply(&to, (enum oct_event)e);
        reach(to, first, reached);
    }
}

TEST(no_state_is_a_trap)
{
    for (int s = 0; s < OCT_N_STATES; s++) {
        bool reached[OCT_N_STATES] = {false};
        reach((enum oct_state)s, OCT_EVENT_START, reached);
        for (int t = 0; t < OCT_N_STATES; t++)
            if (!reached[t])
                fail_msg("%s cannot be reached from %s", oct_state_names[t], oct_state_names[s]);
    }
    /* A passing state passes without a command, and none of the others is left for good by what
     * only happens, unless something is wrong with it. */
    for (int s = 0; s < OCT_N_STATES; s++) {
        bool reached[OCT_N_STATES] = {false};
        reach((enum oct_state)s, OCT_N_COMMANDS, reached);
        bool leaves = false;
        for (int t = 0; t < OCT_N_STATES; t++)
            leaves |= reached[t] && !oct_state_is_passing((enum oct_state)t);
        assert_true(leaves);
    }
}
