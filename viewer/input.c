#include "viewer/input.h"

#include "viewer/model/buttons.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- playback by the mouse ---- */

static enum oct_view_grip navigate_grip(const struct oct_view_model *model,
                                        const struct oct_draw *draw, double x, double y)
{
    const struct oct_view_layout *l = oct_draw_layout(draw);
    const int px = (int)x, py = (int)y;
    return !model->playback.active                        ? OCT_GRIP_NONE
           : oct_view_rect_holds(l->enface_at, px, py)    ? OCT_GRIP_ENFACE
           : oct_view_rect_holds(l->slice_at, px, py)     ? OCT_GRIP_SLICE
           : oct_view_rect_holds(l->thickness_at, px, py) ? OCT_GRIP_THICKNESS
           : oct_view_rect_holds(l->timeline, px, py)     ? OCT_GRIP_SLIDER
                                                          : OCT_GRIP_NONE;
}

/* Moves to what such a grip says at this place. */
static void navigate_to(struct oct_view_model *model, const struct oct_draw *draw,
                        enum oct_view_grip grip, double x, double y)
{
    const struct oct_view_file *file = &model->playback.file;
    const struct oct_view_rect enface = grip == OCT_GRIP_THICKNESS
                                            ? oct_draw_layout(draw)->thickness_at
                                            : oct_draw_layout(draw)->enface_at;
    const struct oct_view_rect slice = oct_draw_layout(draw)->slice_at;
    if (grip == OCT_GRIP_ENFACE || grip == OCT_GRIP_THICKNESS) {
        oct_view_playback_go(model, floor((y - enface.y) / enface.h * file->n_bscans));
        oct_view_playback_slice_at(model, floor((x - enface.x) / enface.w * file->n_lines));
        oct_view_model_point_at(model, model->playback.slice_line);
    } else if (grip == OCT_GRIP_SLICE) {
        oct_view_playback_go(model, floor((x - slice.x) / slice.w * file->n_bscans));
    } else {
        oct_view_playback_go(model, round(oct_draw_slider_share(draw, x) * (file->n_bscans - 1.0)));
    }
}

#define FAST_STEPS 5
#define WHEEL_ZOOM 1.2

/* ---- keys ---- */

void oct_view_input_init(struct oct_view_input *input)
{
    static const char ctrl[] = "Ctrl+", shift[] = "Shift+";
    char keys[128], *rest;
    memset(input, 0, sizeof(*input));
    for (size_t i = 0; i < oct_view_n_keys; i++) {
        snprintf(keys, sizeof(keys), "%s", oct_view_keys[i].keys);
        for (char *key = strtok_r(keys, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
            struct oct_view_binding b = {.action = oct_view_keys[i].action};
            b.ctrl = strncmp(key, ctrl, strlen(ctrl)) == 0;
            key += b.ctrl ? strlen(ctrl) : 0;
            b.shift = strncmp(key, shift, strlen(shift)) == 0;
            key += b.shift ? strlen(shift) : 0;
            for (char *c = key; *c; c++)
                *c = *c == '_' ? ' ' : *c; /* "Keypad_+" */
            b.key = SDL_GetKeyFromName(key);
            if (b.key != SDLK_UNKNOWN && input->n_bindings < OCT_VIEW_MOST_BINDINGS)
                input->binding[input->n_bindings++] = b;
        }
    }
}

static enum oct_view_action find_action(const struct oct_view_input *input, const SDL_Keysym *key,
                                        bool shift)
{
    bool ctrl = key->mod & KMOD_CTRL;
    for (unsigned i = 0; i < input->n_bindings; i++)
        if (input->binding[i].key == key->sym && input->binding[i].ctrl == ctrl &&
            input->binding[i].shift == shift)
            return input->binding[i].action;
    return OCT_ACTION_NOTHING;
}

/* Escape closes the help, else the window. Users hit Escape to be rid of something, so it does not
 * close the window during a recording. */
static void leave(struct oct_view_input *input, struct oct_view_model *model)
{
    if (!model->help && oct_view_model_is_recording(model))
        oct_view_model_say(model,
                           "octd is recording: Stop (R) ends that, Q closes this window alone");
    else
        input->quit = !model->help;
    model->help = false;
}

/* A window that closed now would take a Stop along that octd has not heard yet. */
static void quit(struct oct_view_input *input, struct oct_view_model *model)
{
    const bool stop_waits = model->asked == OCT_WISH_STOP ||
                            oct_view_wishes_find(&model->wishes, OCT_WISH_STOP) != NULL;
    if (!model->help && stop_waits && !input->quit_was_refused) {
        oct_view_model_say(model, "octd has not answered to Stop yet: Q again closes all the same");
        input->quit_was_refused = true;
        return;
    }
    input->quit = !model->help;
    model->help = false;
}

static void act(struct oct_view_input *input, struct oct_view_model *model,
                enum oct_view_action action, unsigned times)
{
    bool locked = model->settings.operators && !oct_view_action_is_operators(action);
    if (action == OCT_ACTION_LEAVE &&
        (oct_view_patient_cancel(model) || oct_view_scan_cancel(model)))
        return;
    if (locked && action == OCT_ACTION_LEAVE && oct_view_model_is_recording(model)) {
        oct_view_model_say(model, "octd is recording: Stop ends that");
        return;
    }
    switch (locked ? OCT_ACTION_NOTHING : action) {
    case OCT_ACTION_SNAPSHOT:
        input->snapshot = true;
        break;
    case OCT_ACTION_SNAPSHOT_PLAIN:
        input->snapshot_plain = true;
        break;
    case OCT_ACTION_FULL_SCREEN:
        input->full_screen = true;
        break;
    case OCT_ACTION_QUIT:
        quit(input, model);
        break;
    case OCT_ACTION_LEAVE:
        leave(input, model);
        break;
    default:
        oct_view_model_apply(model, action, times);
    }
}

/* ---- the day's patients, exams, scans ---- */

/* The list that stands in the window; NULL: none does. */
static struct oct_view_list *list_of(struct oct_view_model *model)
{
    return oct_view_worklist_is_shown(model) ? &model->worklist.rows
           : oct_view_exams_are_shown(model) ? &model->exams.rows
           : oct_view_scans_are_shown(model) ? &model->scan.rows
                                             : NULL;
}

static void choose_row(struct oct_view_model *model, unsigned i)
{
    if (oct_view_worklist_is_shown(model))
        oct_view_worklist_choose(model, i);
    else if (oct_view_exams_are_shown(model))
        oct_view_exams_choose(model, i);
    else
        oct_view_scans_choose(model, i);
}

/* Letters are what is searched for. */
static bool on_search_key(struct oct_view_model *model, const SDL_Keysym *key)
{
    struct oct_view_exams *e = &model->exams;
    if (!oct_view_exams_are_shown(model) || (key->sym >= SDLK_F1 && key->sym <= SDLK_F12))
        return false;
    if (key->sym == SDLK_ESCAPE && !e->search[0])
        e->is_open = false;
    else if (key->sym == SDLK_BACKSPACE || key->sym == SDLK_ESCAPE)
        oct_view_exams_rub_out(e, key->sym == SDLK_ESCAPE);
    return true;
}

/* Enter takes who was chosen by other keys; without, it means what it means elsewhere. */
static bool on_list_key(struct oct_view_model *model, const SDL_Keysym *key, unsigned n_rows)
{
    const int page = (int)n_rows;
    struct oct_view_list *list = list_of(model);
    if (!list || key->mod & (KMOD_CTRL | KMOD_ALT | KMOD_GUI))
        return false;
    switch (key->sym) {
    case SDLK_UP:
    case SDLK_DOWN:
        oct_view_list_move(list, key->sym == SDLK_DOWN ? 1 : -1, n_rows);
        return true;
    case SDLK_PAGEUP:
    case SDLK_PAGEDOWN:
        oct_view_list_scroll(list, key->sym == SDLK_PAGEDOWN ? page : -page, n_rows);
        list->chosen = 0;
        return true;
    case SDLK_RETURN:
    case SDLK_KP_ENTER:
        if (list->chosen == 0)
            return on_search_key(model, key);
        choose_row(model, list->chosen - 1);
        return true;
    default:
        return on_search_key(model, key);
    }
}

static void tap_list(struct oct_view_model *model, const struct oct_draw *draw, int x, int y)
{
    const struct oct_view_layout *l = oct_draw_layout(draw);
    const int row = oct_view_layout_row_at(l, x, y);
    const struct oct_view_list *list = list_of(model);
    const unsigned i = list && row >= 0 ? list->first + (unsigned)row : 0;
    struct oct_view_worklist *w = &model->worklist;
    if (!list || row >= (int)l->n_rows)
        return;
    if (row < 0 && list == &w->rows && w->state != OCT_WORKLIST_ASKING) {
        w->is_open = false;
        oct_view_worklist_open(model);
    } else if (row < 0 && list == &model->scan.rows) {
        model->scan.is_open = false;
    } else if (row >= 0 && list == &model->exams.rows && x >= l->compare_x &&
               oct_view_exams_is_alike(model, i)) {
        oct_view_exams_compare(model, i);
    } else if (row >= 0) {
        choose_row(model, i);
    }
}

/* Nothing below it is pressed through it. */
static bool press_list(struct oct_view_input *input, const struct oct_view_model *model,
                       const struct oct_view_layout *l, int button)
{
    const bool is_on = oct_view_rect_holds(l->list, (int)input->x, (int)input->y);
    if (is_on && button == SDL_BUTTON_LEFT)
        input->grip = OCT_GRIP_LIST;
    return is_on || (oct_view_exams_are_shown(model) &&
                     oct_view_rect_holds(l->area, (int)input->x, (int)input->y));
}

/* Of a finger that draws it up or down: by whole rows. */
static void drag_list(struct oct_view_input *input, struct oct_view_model *model,
                      const struct oct_view_layout *l)
{
    const int by = (int)((input->y0 - input->y) / l->row_height);
    if (by == 0 || !list_of(model))
        return;
    oct_view_list_scroll(list_of(model), by, l->n_rows);
    input->y0 -= by * l->row_height;
}

static void on_typing(struct oct_view_model *model, const SDL_Keysym *key)
{
    switch (key->sym) {
    case SDLK_RETURN:
    case SDLK_KP_ENTER:
    case SDLK_TAB:
        oct_view_model_end_typing(model, true);
        break;
    case SDLK_ESCAPE:
        oct_view_model_end_typing(model, false);
        break;
    case SDLK_BACKSPACE:
    case SDLK_DELETE:
        oct_view_model_rub_out(model);
        break;
    case SDLK_LEFT:
    case SDLK_RIGHT:
    case SDLK_HOME:
    case SDLK_END:
        model->patient.selected = false;
        break;
    default:
        break;
    }
}

static void on_key(struct oct_view_input *input, struct oct_view_model *model,
                   const struct oct_draw *draw, const SDL_KeyboardEvent *event)
{
    const SDL_Keysym *key = &event->keysym;
    bool shift = key->mod & KMOD_SHIFT;
    unsigned times = 1;
    if (on_list_key(model, key, draw ? oct_draw_layout(draw)->n_rows : 0))
        return;
    if (model->typing) {
        on_typing(model, key);
        return;
    }
    if (key->mod & (KMOD_ALT | KMOD_GUI))
        return; /* the desktop's */
    enum oct_view_action action = find_action(input, key, shift);
    if (action == OCT_ACTION_NOTHING && shift) {
        action = find_action(input, key, false);
        times = FAST_STEPS;
        if (!oct_view_action_is_step(action))
            action = OCT_ACTION_NOTHING;
    }
    /* A held key repeats only where it is a step. */
    if (action == OCT_ACTION_NOTHING || (event->repeat && !oct_view_action_is_step(action)))
        return;
    act(input, model, action, times);
}

/* ---- mouse ---- */

static struct oct_view_point point_at(const struct oct_draw *draw,
                                      const struct oct_view_model *model, double x, double y)
{
    struct oct_view_rectf place = oct_draw_layout(draw)->place;
    const struct oct_picture_header *h = &model->shown.header;
    return (struct oct_view_point){(x - place.x) / place.w * h->n_lines,
                                   (y - place.y) / place.h * h->depth};
}

/* A drag that begins near an end of calipers holds them and moves that end, the nearest; the other
 * end stays. */
static bool grab_end(const struct oct_view_input *input, struct oct_view_model *model,
                     const struct oct_draw *draw)
{
    struct oct_view_caliper_set *set = &model->calipers.shown;
    const struct oct_view_rectf place = oct_draw_layout(draw)->place;
    const struct oct_picture_header *h = &model->shown.header;
    double nearest_px = oct_draw_layout(draw)->text_px;
    struct oct_view_point from = {0, 0}, to = {0, 0};
    bool found = false;
    for (unsigned i = 0; i < 2 * OCT_VIEW_MOST_CALIPERS; i++) {
        const struct oct_view_caliper *c = &set->caliper[i / 2];
        const struct oct_view_point p = c->end[i % 2];
        const double px = hypot(place.x + p.line / h->n_lines * place.w - input->x,
                                place.y + p.depth / h->depth * place.h - input->y);
        if (!c->is_set || px > nearest_px)
            continue;
        nearest_px = px;
        from = c->end[1 - i % 2];
        to = c->end[i % 2];
        set->held = i / 2;
        found = true;
    }
    if (found)
        oct_view_model_set_caliper(model, from, to);
    return found;
}

/* A hand takes the divider a little beside it, too. */
static bool is_at_divider(const struct oct_view_layout *l, double x, double y)
{
    struct oct_view_rect r = l->divider;
    int more = l->margin / 4 + 1;
    r.x -= l->is_stacked ? 0 : more;
    r.w += l->is_stacked ? 0 : 2 * more;
    r.y -= l->is_stacked ? more : 0;
    r.h += l->is_stacked ? 2 * more : 0;
    return l->divider.w > 0 && oct_view_rect_holds(r, (int)x, (int)y);
}

/* share 0: the standard one. */
static void set_divider(struct oct_view_model *model, const struct oct_view_layout *l, double share)
{
    *(l->is_stacked ? &model->settings.divider.stacked : &model->settings.divider.beside) = share;
}

/* On B-scan, colours, and in playback the other pictures. */
static void press_picture(struct oct_view_input *input, struct oct_view_model *model,
                          const struct oct_draw *draw, int button)
{
    const struct oct_view_layout *l = oct_draw_layout(draw);
    const struct oct_view_point p = point_at(draw, model, input->x, input->y);
    const int x = (int)input->x, y = (int)input->y;
    if (button == SDL_BUTTON_LEFT)
        input->grip = navigate_grip(model, draw, input->x, input->y);
    if (input->grip != OCT_GRIP_NONE)
        navigate_to(model, draw, input->grip, input->x, input->y);
    else if (button != SDL_BUTTON_LEFT)
        input->grip = oct_view_rect_holds(l->bscan, x, y) && !model->settings.operators
                          ? OCT_GRIP_PAN
                          : OCT_GRIP_NONE;
    else if (oct_view_rect_holds(l->colours, x, y))
        input->grip = y < l->colours.y + l->colours.h / 2 ? OCT_GRIP_HI : OCT_GRIP_LO;
    else if (oct_view_rect_holds(l->bscan, x, y) && !model->measuring)
        input->grip = OCT_GRIP_PICTURE;
    else if (oct_view_rect_holds(l->bscan, x, y)) {
        input->grip_is_new = !grab_end(input, model, draw);
        if (!input->grip_is_new || oct_view_model_add_caliper(model, p, p))
            input->grip = OCT_GRIP_CALIPER;
    }
}

static void on_press(struct oct_view_input *input, struct oct_view_model *model,
                     const struct oct_draw *draw, const SDL_MouseButtonEvent *event)
{
    const int button = event->button;
    const struct oct_view_layout *l = oct_draw_layout(draw);
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(model, buttons);
    int x = (int)input->x, y = (int)input->y;
    input->grip = OCT_GRIP_NONE;
    input->x0 = input->x;
    input->y0 = input->y;
    input->moved = false;
    for (unsigned i = 0; i < n && button == SDL_BUTTON_LEFT; i++)
        if (oct_view_rect_holds(l->button[i], x, y)) {
            if (buttons[i].look == OCT_BUTTON_OFF)
                return;
            /* A click elsewhere ends the typing, as Enter does. */
            if (model->typing && buttons[i].action != OCT_ACTION_PSEUDONYM)
                oct_view_model_end_typing(model, buttons[i].action != OCT_ACTION_NEXT_PATIENT);
            act(input, model, buttons[i].action, 1);
            return;
        }
    if (press_list(input, model, l, button))
        return;
    if (button == SDL_BUTTON_LEFT && is_at_divider(l, input->x, input->y)) {
        input->grip = OCT_GRIP_DIVIDER;
        if (event->clicks > 1)
            set_divider(model, l, 0);
        return;
    }
    if (button == SDL_BUTTON_LEFT &&
        (oct_view_recorded_news(model).any || model->exported.state == OCT_EXPORT_FAILED) &&
        oct_view_rect_holds(l->banner, x, y)) {
        act(input, model, OCT_ACTION_ACKNOWLEDGE, 1);
        return;
    }
    if (model->scan.draws && !model->playback.active && button == SDL_BUTTON_LEFT &&
        oct_view_rect_holds(l->enface_at, x, y))
        input->grip = OCT_GRIP_LINE;
    else if (model->has_picture)
        press_picture(input, model, draw, button);
}

static void draw_scan(const struct oct_view_input *input, struct oct_view_model *model,
                      struct oct_view_rect r)
{
    oct_view_scan_draw(model, (const double[2]){(input->x0 - r.x) / r.w, (input->y0 - r.y) / r.h},
                       (const double[2]){(input->x - r.x) / r.w, (input->y - r.y) / r.h});
}

/* Nothing is held. */
static bool hover(struct oct_view_input *input, struct oct_view_model *model,
                  const struct oct_view_layout *l, struct oct_view_point p)
{
    input->pointer = !is_at_divider(l, input->x, input->y) ? OCT_POINTER_USUAL
                     : l->is_stacked                       ? OCT_POINTER_DOWN
                                                           : OCT_POINTER_ACROSS;
    if (!model->has_picture || !oct_view_rect_holds(l->bscan, (int)input->x, (int)input->y))
        return false;
    oct_view_model_point_at(model, floor(p.line));
    return model->settings.arrangement == OCT_ARRANGEMENT_FOUR;
}

static bool on_move(struct oct_view_input *input, struct oct_view_model *model,
                    const struct oct_draw *draw, double dx, double dy)
{
    const struct oct_view_layout *l = oct_draw_layout(draw);
    const struct oct_view_point p = point_at(draw, model, input->x, input->y);
    const struct oct_view_caliper *held = oct_view_calipers_held(&model->calipers);
    struct oct_view_contrast *c = &model->contrast;
    /* Moving down the bar lowers the value, by the bar's own scale. */
    const double down = -dy / l->colours.h * (c->published_hi - c->published_lo);
    if (hypot(input->x - input->x0, input->y - input->y0) > l->text_px / 4.0)
        input->moved = true;
    switch (input->grip) {
    case OCT_GRIP_PICTURE:
        if (input->moved)
            oct_view_model_drag(model, dx / l->area.w, dy / l->area.h);
        return input->moved;
    case OCT_GRIP_CALIPER: /* a key may have taken them away meanwhile */
        if (held)
            oct_view_model_set_caliper(model, held->end[0], p);
        return true;
    case OCT_GRIP_LO:
        oct_view_contrast_move_lo(c, down);
        return true;
    case OCT_GRIP_HI:
        oct_view_contrast_move_hi(c, down);
        return true;
    case OCT_GRIP_DIVIDER:
        if (input->moved)
            set_divider(model, l, oct_view_layout_share_at(l, input->x, input->y));
        return input->moved;
    case OCT_GRIP_PAN:
        oct_view_lens_pan(&model->lens, -dx / l->bscan.w, -dy / l->bscan.h);
        return true;
    case OCT_GRIP_LINE:
        draw_scan(input, model, l->enface_at);
        return true;
    case OCT_GRIP_LIST:
        if (input->moved)
            drag_list(input, model, l);
        return input->moved;
    case OCT_GRIP_ENFACE:
    case OCT_GRIP_SLICE:
    case OCT_GRIP_THICKNESS:
    case OCT_GRIP_SLIDER:
        navigate_to(model, draw, input->grip, input->x, input->y);
        return true;
    case OCT_GRIP_NONE:
        return hover(input, model, l, p);
    }
    return false;
}

static void on_release(struct oct_view_input *input, struct oct_view_model *model,
                       const struct oct_draw *draw)
{
    struct oct_view_point p = point_at(draw, model, input->x, input->y);
    if (input->grip == OCT_GRIP_PICTURE && !input->moved && !model->settings.operators) {
        oct_view_model_mark(model, p);
        oct_view_model_point_at(model, floor(p.line));
    }
    if (input->grip == OCT_GRIP_LIST && !input->moved)
        tap_list(model, draw, (int)input->x, (int)input->y);
    if (input->grip == OCT_GRIP_LINE)
        oct_view_scan_release(model);
    /* A click has no length. */
    if (input->grip == OCT_GRIP_CALIPER && input->grip_is_new && !input->moved)
        oct_view_calipers_remove(&model->calipers);
    input->grip = OCT_GRIP_NONE;
}

/* In playback it scrolls through the B-scans; with Ctrl over the B-scan it zooms, as live. */
static void on_wheel(struct oct_view_input *input, struct oct_view_model *model,
                     const struct oct_draw *draw, double turns)
{
    const struct oct_view_rectf place = oct_draw_layout(draw)->place;
    const SDL_Keymod mod = SDL_GetModState();
    const bool on_bscan =
        oct_view_rect_holds(oct_draw_layout(draw)->bscan, (int)input->x, (int)input->y);
    const struct oct_view_layout *l = oct_draw_layout(draw);
    if (list_of(model) && oct_view_rect_holds(l->list, (int)input->x, (int)input->y))
        oct_view_list_scroll(list_of(model), turns > 0 ? -3 : 3, l->n_rows);
    else if (!(mod & KMOD_CTRL) && model->playback.active &&
             (on_bscan || navigate_grip(model, draw, input->x, input->y) != OCT_GRIP_NONE))
        oct_view_playback_step(model, -turns * (mod & KMOD_SHIFT ? FAST_STEPS : 1));
    else if (model->has_picture && !model->settings.operators && on_bscan)
        oct_view_lens_zoom(&model->lens, pow(WHEEL_ZOOM, turns), (input->x - place.x) / place.w,
                           (input->y - place.y) / place.h);
}

bool oct_view_input_take(struct oct_view_input *input, const SDL_Event *event,
                         struct oct_view_model *model, const struct oct_draw *draw,
                         double pixel_ratio)
{
    bool pointed, rested;
    if (draw && model->has_picture)
        oct_view_lens_see(&model->lens, oct_draw_layout(draw)->bscan, oct_draw_layout(draw)->place);
    switch (event->type) {
    case SDL_QUIT:
        input->quit = true;
        return true;
    case SDL_KEYDOWN:
        on_key(input, model, draw, &event->key);
        return true;
    case SDL_TEXTINPUT:
        if (oct_view_exams_are_shown(model))
            oct_view_exams_type(&model->exams, event->text.text);
        else
            oct_view_model_type(model, event->text.text);
        return true;
    case SDL_MOUSEBUTTONDOWN:
        input->x = event->button.x * pixel_ratio;
        input->y = event->button.y * pixel_ratio;
        on_press(input, model, draw, &event->button);
        return true;
    case SDL_MOUSEBUTTONUP:
        on_release(input, model, draw);
        return true;
    case SDL_MOUSEMOTION:
        input->x = event->motion.x * pixel_ratio;
        input->y = event->motion.y * pixel_ratio;
        pointed = model->guide.pointed;
        model->guide.pointed =
            oct_view_rect_holds(oct_draw_layout(draw)->guide, (int)input->x, (int)input->y) &&
            !oct_view_rect_holds(oct_draw_layout(draw)->list, (int)input->x, (int)input->y);
        rested = model->points_at_banner;
        model->points_at_banner =
            oct_view_rect_holds(oct_draw_layout(draw)->banner, (int)input->x, (int)input->y);
        return (int)(model->guide.pointed != pointed) | (int)(model->points_at_banner != rested) |
               (int)on_move(input, model, draw, event->motion.xrel * pixel_ratio,
                            event->motion.yrel * pixel_ratio);
    case SDL_WINDOWEVENT:
        model->guide.pointed &= event->window.event != SDL_WINDOWEVENT_LEAVE;
        model->points_at_banner &= event->window.event != SDL_WINDOWEVENT_LEAVE;
        return true;
    case SDL_MOUSEWHEEL:
        on_wheel(input, model, draw, event->wheel.y);
        return true;
    default:
        return true;
    }
}
