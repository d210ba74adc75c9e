/* The daemon's state: all facts, all actions. */
#include "daemon/state.h"
#include "test/tap.h"

#include <string.h>

static void every_combination_of_facts_gives_its_state(void **state)
{
    (void)state;
    static const struct {
        bool failed, accepting, recording;
        const char *name;
    } cases[] = {
        {false, false, false, "idle"},     {false, true, false, "running"},
        {false, false, true, "recording"}, /* stopped, the file is still being closed */
        {false, true, true, "recording"},  {true, false, false, "error"},
        {true, true, false, "error"},      {true, false, true, "error"},
        {true, true, true, "error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum oct_state got = oct_state_of(cases[i].failed, cases[i].accepting, cases[i].recording);
        assert_string_equal(oct_state_names[got], cases[i].name);
    }
    assert_null(oct_state_names[OCT_STATE_ERROR + 1]);
}

static void every_action_is_granted_or_refused_with_what_to_do(void **state)
{
    (void)state;
    /* What the refusal must name; NULL: granted. Columns: idle, running, recording, error. */
    static const struct {
        enum oct_action action;
        const char *says[4];
    } cases[] = {
        {OCT_ACTION_START, {NULL, NULL, NULL, NULL}},
        {OCT_ACTION_STOP, {NULL, NULL, NULL, NULL}},
        {OCT_ACTION_RECORD_START, {"start", NULL, "already", "last_error"}},
        {OCT_ACTION_RECORD_STOP, {NULL, NULL, NULL, NULL}},
        {OCT_ACTION_SET_IDLE_KEY, {NULL, "stop", "stop", NULL}},
        {OCT_ACTION_SET_LIVE_KEY, {NULL, NULL, "record stop", NULL}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int s = OCT_STATE_IDLE; s <= OCT_STATE_ERROR; s++) {
            const char *why = oct_state_refuses((enum oct_state)s, cases[i].action);
            const char *wanted = cases[i].says[s];
            if (!wanted)
                assert_null(why);
            else if (!why || !strstr(why, wanted))
                fail_msg("action %d in state %s: '%s' does not say '%s'", (int)cases[i].action,
                         oct_state_names[s], why ? why : "(granted)", wanted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_of_facts_gives_its_state),
        cmocka_unit_test(every_action_is_granted_or_refused_with_what_to_do),
    };
    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
