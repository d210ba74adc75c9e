/* The buttons of every state, of both profiles, and how they are drawn: readable at 1280 pixels,
 * one action each, a click on them does it. */
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/canvas.h"
#include "viewer/input.h"
#include "viewer/model/buttons.h"

#include <stdio.h>
#include <string.h>

static const char *const states[] = {"watching", "idle",     "live",  "recording",
                                     "frozen",   "playback", "asking"};
#define N_STATES (sizeof(states) / sizeof(states[0]))

/* Brings a model into a state, with all that the row could have to offer. */
static void enter(struct oct_view_model *m, unsigned state, bool operators)
{
    m->has_control = m->daemon.known = m->daemon.reachable = true;
    snprintf(m->daemon.state, sizeof(m->daemon.state), "%s", "running");
    snprintf(m->daemon.record.file, sizeof(m->daemon.record.file), "a.h5");
    m->daemon.last.bscans_most = 100;
    m->daemon.last.length_s = 19.8;
    m->daemon.average_bscans = 16;
    m->settings.operators = operators;
    if (state == OCT_SITUATION_WATCHING)
        m->daemon.reachable = false;
    if (state == OCT_SITUATION_IDLE)
        snprintf(m->daemon.state, sizeof(m->daemon.state), "%s", "idle");
    m->daemon.record.active = state == OCT_SITUATION_RECORDING;
    m->frozen = state == OCT_SITUATION_FROZEN;
    m->playback.active = state == OCT_SITUATION_PLAYBACK;
    m->patient.asks = state == OCT_SITUATION_ASKING ? OCT_ASKS_LABEL : OCT_ASKS_NOTHING;
    assert_int_equal(oct_view_situation(m), state);
}

/* The labels of a row in one line. */
static void row_of(const struct oct_view_model *m, enum oct_view_button_row row, char *text,
                   size_t n_bytes)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(m, b);
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < n; i++)
        if (b[i].row == row)
            used += (size_t)snprintf(text + used, n_bytes - used, "%s%s", used ? " | " : "",
                                     b[i].label);
}

static void every_state_has_its_buttons(void **state)
{
    static const char *const lab[N_STATES] = {
        "Freeze | Auto | Layout | Measure | Snapshot | Help",
        "Start | Playback | Help",
        "Record | Save the last 20 s | Freeze | Average 16 | Playback | Guide | Auto | Layout | "
        "Measure | Snapshot | Help",
        "Stop | Save the last 20 s | Freeze | Average 16 | Auto | Layout | Measure | Snapshot | "
        "Help",
        "Record | Save the last 20 s | Back | Forward | Go on | Playback | Auto | Layout | "
        "Measure | Snapshot | Help",
        "Live | Play | Back | Forward | Keep | Repeat | Auto | Measure | B-scan as PNG | Help",
        "Cancel | Record without a label | Help",
    };
    static const char *const operators[N_STATES] = {
        "Freeze | Auto | Brighter | Darker | Snapshot | Help",
        "Start | Playback | Help",
        "Record | Save the last 20 s | Freeze | Average 16 | Playback | Guide | Auto | Brighter | "
        "Darker | Snapshot | Help",
        "Stop | Save the last 20 s | Freeze | Average 16 | Auto | Brighter | Darker | Snapshot | "
        "Help",
        "Record | Save the last 20 s | Back | Forward | Go on | Playback | Auto | Brighter | "
        "Darker | Snapshot | Help",
        "Live | Play | Back | Forward | Keep | Repeat | Auto | Brighter | Darker | B-scan as PNG | "
        "Help",
        "Cancel | Record without a label | Help",
    };
    char text[512];

    for (unsigned k = 0; k < 2 * N_STATES; k++) {
        static struct oct_view_model m;
        oct_view_model_init(&m, "x", true);
        enter(&m, k % N_STATES, k >= N_STATES);
        row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
        assert_string_equal(text, (k < N_STATES ? lab : operators)[k % N_STATES]);
        row_of(&m, OCT_BUTTONS_PATIENT, text, sizeof(text));
        assert_string_equal(text, "OD | OS | no pseudonym | Next patient");
        oct_view_model_finish(&m);
    }
}

static void what_nobody_can_use_has_no_button(void **state)
{
    static struct oct_view_model m;
    char text[512];

    oct_view_model_init(&m, "x", true);
    row_of(&m, OCT_BUTTONS_PATIENT, text, sizeof(text));
    assert_string_equal(text, ""); /* without a control endpoint there is no patient */
    row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
    assert_null(strstr(text, "Record"));
    enter(&m, OCT_SITUATION_LIVE, false);
    m.daemon.last.bscans_most = 0;
    m.daemon.record.file[0] = '\0';
    row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
    assert_null(strstr(text, "Save"));
    assert_null(strstr(text, "Playback"));
    enter(&m, OCT_SITUATION_PLAYBACK, false);
    m.daemon.record.active = true; /* what goes on can be stopped from anywhere */
    row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
    assert_non_null(strstr(text, "Stop | Live"));
    oct_view_model_finish(&m);
}

/* No button of the operator profile is refused by it. */
static void the_profile_allows_its_own_buttons(void **state)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];

    for (unsigned k = 0; k < N_STATES; k++) {
        static struct oct_view_model m;
        oct_view_model_init(&m, "x", true);
        enter(&m, k, true);
        unsigned n = oct_view_buttons(&m, b);
        for (unsigned i = 0; i < n; i++)
            assert_true(oct_view_action_is_operators(b[i].action) ||
                        b[i].action == OCT_ACTION_LEAVE);
        oct_view_model_finish(&m);
    }
}

/* At 1280 pixels each button has room for its brief label at least, whole. */
static void the_row_is_readable_at_1280_pixels(void **state)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];

    for (unsigned k = 0; k < 2 * N_STATES; k++) {
        struct oct_viewer_stage *s = oct_viewer_stage_open();
        enter(&s->model, k % N_STATES, k >= N_STATES);
        assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
        const struct oct_view_layout *l = oct_draw_layout(s->draw);
        unsigned n = oct_view_buttons(&s->model, b);
        for (unsigned i = 0; i < n; i++) {
            struct oct_view_rect r = l->button[i];
            assert_true(oct_draw_text_width(s->draw, OCT_TEXT_NORMAL, b[i].brief) < r.w);
            assert_true(r.h > oct_draw_line_height(s->draw, OCT_TEXT_NORMAL));
            assert_true(r.x >= 0 && r.x + r.w <= 1280);
            for (unsigned j = 0; j < i; j++) {
                struct oct_view_rect o = l->button[j];
                assert_true(o.x + o.w <= r.x || r.x + r.w <= o.x || o.y + o.h <= r.y ||
                            r.y + r.h <= o.y);
            }
        }
        oct_viewer_stage_close(s);
    }
}

/* Returns where it is. */
static struct oct_view_rect click(struct oct_viewer_stage *s, struct oct_view_input *input,
                                  enum oct_view_action action)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(&s->model, b), i = 0;
    SDL_Event event = {.button = {.type = SDL_MOUSEBUTTONDOWN, .button = SDL_BUTTON_LEFT}};

    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    while (i < n && b[i].action != action)
        i++;
    assert_true(i < n);
    struct oct_view_rect r = oct_draw_layout(s->draw)->button[i];
    event.button.x = r.x + r.w / 2;
    event.button.y = r.y + r.h / 2;
    oct_view_input_take(input, &event, &s->model, s->draw, 1);
    return r;
}

static void clicks_do_what_the_buttons_say(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_model *m = &s->model;
    struct oct_view_input input;

    oct_view_input_init(&input);
    enter(m, OCT_SITUATION_LIVE, true);
    click(s, &input, OCT_ACTION_RIGHT_EYE);
    assert_string_equal(oct_view_wishes_find(&m->wishes, OCT_WISH_EYE), "OD");
    click(s, &input, OCT_ACTION_PSEUDONYM);
    assert_true(m->typing);
    oct_view_model_type(m, "P-5");
    click(s, &input, OCT_ACTION_RECORD); /* ends the typing, as Enter does */
    assert_false(m->typing);
    assert_string_equal(oct_view_wishes_find(&m->wishes, OCT_WISH_PSEUDONYM), "P-5");
    if (m->patient.asks == OCT_ASKS_SAME) /* nobody heard octd's own label yet */
        click(s, &input, OCT_ACTION_RECORD);
    assert_non_null(oct_view_wishes_find(&m->wishes, OCT_WISH_RECORD));
    oct_view_wishes_drop(&m->wishes, OCT_WISH_NONE);
    click(s, &input, OCT_ACTION_PSEUDONYM);
    oct_view_model_type(m, "nobody");
    click(s, &input, OCT_ACTION_NEXT_PATIENT); /* what was typed goes with the patient */
    assert_null(oct_view_wishes_find(&m->wishes, OCT_WISH_PSEUDONYM));
    struct oct_view_rect record = click(s, &input, OCT_ACTION_RECORD);
    assert_int_equal(m->patient.asks, OCT_ASKS_LABEL);
    /* The second click of a double click records nothing. */
    struct oct_view_rect cancel = click(s, &input, OCT_ACTION_LEAVE);
    assert_true(oct_view_rect_holds(cancel, record.x + record.w / 2, record.y + record.h / 2));
    assert_int_equal(m->patient.asks, OCT_ASKS_NOTHING);
    assert_false(input.quit);
    click(s, &input, OCT_ACTION_FREEZE);
    assert_true(m->frozen);
    oct_viewer_stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_has_its_buttons),
        cmocka_unit_test(what_nobody_can_use_has_no_button),
        cmocka_unit_test(the_profile_allows_its_own_buttons),
        cmocka_unit_test(the_row_is_readable_at_1280_pixels),
        cmocka_unit_test(clicks_do_what_the_buttons_say),
    };
    return cmocka_run_group_tests_name("viewer buttons", tests, NULL, NULL);
}
