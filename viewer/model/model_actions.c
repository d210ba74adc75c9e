/* The part of the model that does what the user asks for. */
#include "viewer/model/daemon.h"
#include "viewer/model/model.h"

#include <math.h>
#include <string.h>

static void move_slab(struct oct_view_model *model, double shift, double grow)
{
    if (oct_view_model_can_set_enface(model))
        oct_view_enface_wishes_move(&model->enface_wishes, shift, grow);
}

static bool apply_contrast(struct oct_view_contrast *c, enum oct_view_action action, unsigned times)
{
    double step = oct_view_contrast_step(c) * times;

    switch (action) {
    case OCT_ACTION_AUTO_CONTRAST:
        oct_view_contrast_set_range(c, c->range == OCT_CONTRAST_AUTO ? OCT_CONTRAST_MANUAL
                                                                     : OCT_CONTRAST_AUTO);
        return true;
    case OCT_ACTION_PUBLISHED_CONTRAST:
        oct_view_contrast_set_range(c, OCT_CONTRAST_PUBLISHED);
        return true;
    case OCT_ACTION_LEVEL_DOWN:
    case OCT_ACTION_LEVEL_UP:
        oct_view_contrast_move(c, action == OCT_ACTION_LEVEL_UP ? step : -step, 0);
        return true;
    case OCT_ACTION_WINDOW_WIDER:
    case OCT_ACTION_WINDOW_CLOSER:
        oct_view_contrast_move(c, 0, action == OCT_ACTION_WINDOW_WIDER ? 2 * step : -2 * step);
        return true;
    case OCT_ACTION_LOWER_DOWN:
    case OCT_ACTION_LOWER_UP:
        oct_view_contrast_move_lo(c, action == OCT_ACTION_LOWER_UP ? step : -step);
        return true;
    case OCT_ACTION_UPPER_DOWN:
    case OCT_ACTION_UPPER_UP:
        oct_view_contrast_move_hi(c, action == OCT_ACTION_UPPER_UP ? step : -step);
        return true;
    case OCT_ACTION_GAMMA_DOWN:
    case OCT_ACTION_GAMMA_UP:
        oct_view_contrast_set_gamma(c, c->gamma * (action == OCT_ACTION_GAMMA_UP ? 1.1 : 1 / 1.1));
        return true;
    case OCT_ACTION_PALETTE:
        c->palette = (enum oct_view_palette)((c->palette + 1) % OCT_N_PALETTES);
        return true;
    default:
        return false;
    }
}

static bool apply_view(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    struct oct_view_lens *lens = &model->lens;
    struct oct_view_settings *s = &model->settings;

    switch (action) {
    case OCT_ACTION_LAYOUT:
        s->arrangement = (enum oct_view_arrangement)((s->arrangement + 1) % OCT_N_ARRANGEMENTS);
        return true;
    case OCT_ACTION_PROJECTION:
        oct_view_model_next_projection(model);
        return true;
    case OCT_ACTION_SLAB_UP:
    case OCT_ACTION_SLAB_DOWN:
        move_slab(model, (action == OCT_ACTION_SLAB_DOWN ? 0.01 : -0.01) * times, 0);
        return true;
    case OCT_ACTION_SLAB_THINNER:
    case OCT_ACTION_SLAB_THICKER:
        move_slab(model, 0, (action == OCT_ACTION_SLAB_THICKER ? 0.005 : -0.005) * times);
        return true;
    case OCT_ACTION_ZOOM_IN:
    case OCT_ACTION_ZOOM_OUT:
        oct_view_lens_zoom(lens, pow(action == OCT_ACTION_ZOOM_IN ? 1.25 : 0.8, times), lens->x,
                           lens->y);
        return true;
    case OCT_ACTION_ZOOM_RESET:
        oct_view_lens_init(lens);
        return true;
    case OCT_ACTION_PAN_LEFT:
    case OCT_ACTION_PAN_RIGHT:
        oct_view_lens_pan(lens, (action == OCT_ACTION_PAN_RIGHT ? 0.1 : -0.1) * times, 0);
        return true;
    case OCT_ACTION_PAN_UP:
    case OCT_ACTION_PAN_DOWN:
        oct_view_lens_pan(lens, 0, (action == OCT_ACTION_PAN_DOWN ? 0.1 : -0.1) * times);
        return true;
    case OCT_ACTION_CURSOR_LEFT:
    case OCT_ACTION_CURSOR_RIGHT:
        oct_view_model_point_at(model, model->cursor_line + (action == OCT_ACTION_CURSOR_RIGHT
                                                                 ? (double)times
                                                                 : -(double)times));
        return true;
    case OCT_ACTION_FIT:
        oct_view_model_next_fit(model);
        return true;
    case OCT_ACTION_DETAILS:
        s->details = !s->details;
        return true;
    default:
        return false;
    }
}

static void toggle_guide(struct oct_view_model *model)
{
    model->settings.guide = !model->settings.guide;
    model->guide.pointed &= model->settings.guide;
    oct_view_model_say(model, "%s",
                       model->settings.guide ? "the guide: quality, where the retina should lie"
                                             : "no guide");
}

static bool apply_overlay(struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_AVERAGE:
        oct_view_average_toggle(model);
        return true;
    case OCT_ACTION_AVERAGE_OF:
        oct_view_average_next_number(model);
        return true;
    case OCT_ACTION_SHARPEN:
        oct_view_sharpened_toggle(model);
        return true;
    case OCT_ACTION_GUIDE:
        toggle_guide(model);
        return true;
    default:
        return oct_view_switches_apply(model, action);
    }
}

static void start(struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;

    if (d->reachable && strcmp(d->state, "idle") != 0 && strcmp(d->state, "error") != 0)
        oct_view_model_say(model, "octd receives already");
    else
        oct_view_model_wish(model, OCT_WISH_START, "");
}

static bool apply_patient(struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_START:
        start(model);
        return true;
    case OCT_ACTION_RECORD:
        oct_view_patient_record(model);
        return true;
    case OCT_ACTION_SAVE_LAST:
        oct_view_save_last(model);
        return true;
    case OCT_ACTION_EYE:
        oct_view_patient_next_eye(model);
        return true;
    case OCT_ACTION_RIGHT_EYE:
    case OCT_ACTION_LEFT_EYE:
        oct_view_patient_set_eye(model, action == OCT_ACTION_RIGHT_EYE ? "OD" : "OS");
        return true;
    case OCT_ACTION_PSEUDONYM:
        oct_view_patient_type(model);
        return true;
    case OCT_ACTION_NEXT_PATIENT:
        oct_view_patient_next(model);
        return true;
    default:
        return false;
    }
}

static void next_light(struct oct_view_model *model)
{
    static const int percent[OCT_N_LIGHTS] = {100, 50, 25};
    struct oct_view_settings *s = &model->settings;

    s->light = (enum oct_view_light)((s->light + 1) % OCT_N_LIGHTS);
    oct_view_model_say(model, "the window has %d %% of its light", percent[s->light]);
}

static void toggle_sound(struct oct_view_model *model)
{
    model->settings.sound = !model->settings.sound;
    oct_view_model_say(model, "%s",
                       model->settings.sound ? "a sound for alarms and recordings" : "no sound");
}

static void toggle_profile(struct oct_view_model *model)
{
    model->settings.operators = !model->settings.operators;
    model->measuring = false;
    oct_view_model_say(
        model, "%s", model->settings.operators ? "operator profile: Ctrl+O leaves it" : "all keys");
}

static void apply_rest(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    switch (action) {
    case OCT_ACTION_VOLUMES:
        oct_view_model_next_volumes(model);
        break;
    case OCT_ACTION_FREEZE:
        oct_view_model_set_frozen(model, !model->frozen);
        break;
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
        oct_view_model_step_back(model, action == OCT_ACTION_OLDER ? (int)times : -(int)times);
        break;
    case OCT_ACTION_MEASURE:
        model->measuring = !model->measuring;
        model->held = OCT_HELD_TO;
        break;
    case OCT_ACTION_CALIPERS:
        oct_view_model_add_by_key(model);
        break;
    case OCT_ACTION_REMOVE:
        oct_view_model_remove_held(model);
        break;
    case OCT_ACTION_HOLD:
        oct_view_model_hold_next(model);
        break;
    case OCT_ACTION_MARK:
        oct_view_model_mark_by_key(model);
        break;
    case OCT_ACTION_CLEAR:
        oct_view_calipers_clear(&model->calipers);
        model->has_mark = false;
        model->held = OCT_HELD_TO;
        break;
    case OCT_ACTION_ACKNOWLEDGE:
        oct_view_recorded_note(model);
        break;
    case OCT_ACTION_LOCK:
        toggle_profile(model);
        break;
    case OCT_ACTION_DIM:
        next_light(model);
        break;
    case OCT_ACTION_SOUND:
        toggle_sound(model);
        break;
    case OCT_ACTION_HELP:
        model->help = !model->help;
        break;
    default:
        break;
    }
}

void oct_view_model_apply(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    if (model->settings.operators && !oct_view_action_is_operators(action)) {
        oct_view_model_say(model, "not in the operator profile");
        return;
    }
    if (model->measuring && oct_view_model_move_held(model, action, times))
        return;
    if (oct_view_playback_apply(model, action, times))
        return;
    if (apply_contrast(&model->contrast, action, times))
        oct_view_model_adapt(model, 1);
    else if (!apply_view(model, action, times) && !apply_overlay(model, action) &&
             !apply_patient(model, action))
        apply_rest(model, action, times);
}

void oct_view_model_drag(struct oct_view_model *model, double across, double down)
{
    double range = model->contrast.published_hi - model->contrast.published_lo;

    if (across == 0.0 && down == 0.0)
        return;
    /* Up widens the window, as the Up key does. */
    oct_view_contrast_move(&model->contrast, across * range, -down * range);
}
