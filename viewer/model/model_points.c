/* The part of the model that measures: calipers, marked point, the profile's A-line, by mouse and
 * by key. */
#include "viewer/model/model.h"

#include <math.h>

/* Half the length of calipers that a key makes, in parts of the depth in view. */
#define HALF_CALIPER 0.15

static struct oct_view_point inside(const struct oct_view_model *model, struct oct_view_point p)
{
    double lines = model->shown.header.n_lines, depth = model->shown.header.depth;

    p.line = p.line < 0 ? 0 : p.line > lines ? lines : p.line;
    p.depth = p.depth < 0 ? 0 : p.depth > depth ? depth : p.depth;
    return p;
}

void oct_view_model_mark(struct oct_view_model *model, struct oct_view_point point)
{
    model->has_mark = model->has_picture;
    model->mark = inside(model, point);
}

double oct_view_model_mark_value(const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    return oct_view_picture_value(&model->shown, (uint32_t)fmin(model->mark.line, h->n_lines - 1.0),
                                  (uint32_t)fmin(model->mark.depth, h->depth - 1.0));
}

void oct_view_model_set_caliper(struct oct_view_model *model, struct oct_view_point from,
                                struct oct_view_point to)
{
    if (model->has_picture)
        oct_view_calipers_move(&model->calipers, inside(model, from), inside(model, to));
    model->held = OCT_HELD_TO;
}

bool oct_view_model_add_caliper(struct oct_view_model *model, struct oct_view_point from,
                                struct oct_view_point to)
{
    if (!model->has_picture)
        return false;
    if (!oct_view_calipers_add(&model->calipers, inside(model, from), inside(model, to))) {
        oct_view_model_say(model, "%u calipers are the most: X takes them away",
                           OCT_VIEW_MOST_CALIPERS);
        return false;
    }
    model->held = OCT_HELD_TO;
    return true;
}

void oct_view_model_point_at(struct oct_view_model *model, double line)
{
    double last = model->has_picture ? model->shown.header.n_lines - 1.0 : 0;

    model->cursor_line = line < 0 ? 0 : line > last ? last : line;
}

/* ---- by key ---- */

/* Returns the middle of the pixel, so that one step reaches the next pixel's middle. */
static double middle_of_pixel(double at)
{
    return floor(at) + 0.5;
}

static bool can_measure(struct oct_view_model *model)
{
    if (!model->has_picture)
        oct_view_model_say(model, "there is no picture to measure yet");
    return model->has_picture;
}

/* Those that keys make one after the other lie side by side. */
static void put_caliper(struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    double beside = 0.05 * oct_view_calipers_count(&model->calipers) / model->lens.zoom;
    double line = middle_of_pixel((model->lens.x + beside) * h->n_lines);
    double half = HALF_CALIPER / model->lens.zoom;
    double top = middle_of_pixel((model->lens.y - half) * h->depth);
    double bottom = middle_of_pixel((model->lens.y + half) * h->depth);

    oct_view_model_add_caliper(model, (struct oct_view_point){line, top},
                               (struct oct_view_point){line, bottom});
}

void oct_view_model_add_by_key(struct oct_view_model *model)
{
    if (!can_measure(model))
        return;
    model->measuring = true;
    put_caliper(model);
}

void oct_view_model_remove_held(struct oct_view_model *model)
{
    if (model->held == OCT_HELD_MARK) {
        model->has_mark = false;
        model->held = OCT_HELD_TO;
    } else {
        oct_view_calipers_remove(&model->calipers);
    }
}

const struct oct_view_point *oct_view_model_held_point(const struct oct_view_model *model)
{
    const struct oct_view_caliper *held = oct_view_calipers_held(&model->calipers);

    switch (model->held) {
    case OCT_HELD_MARK:
        return model->has_mark ? &model->mark : NULL;
    case OCT_HELD_FROM:
        return held ? &held->end[0] : NULL;
    default:
        return held ? &held->end[1] : NULL;
    }
}

void oct_view_model_hold_next(struct oct_view_model *model)
{
    if (!model->measuring) {
        oct_view_model_say(model, "M first: Tab changes what the arrows move while measuring");
        return;
    }
    if (!can_measure(model))
        return;
    if (oct_view_calipers_count(&model->calipers) == 0) {
        put_caliper(model);
        return;
    }
    /* Both ends of each pair in turn, then the marked point. */
    if (model->held == OCT_HELD_TO)
        model->held = OCT_HELD_FROM;
    else if (model->held == OCT_HELD_MARK)
        model->held = OCT_HELD_TO;
    else
        model->held = oct_view_calipers_hold_next(&model->calipers) || !model->has_mark
                          ? OCT_HELD_TO
                          : OCT_HELD_MARK;
}

void oct_view_model_mark_by_key(struct oct_view_model *model)
{
    if (!can_measure(model))
        return;
    if (!model->has_mark)
        oct_view_model_mark(model, (struct oct_view_point){
                                       middle_of_pixel(model->cursor_line),
                                       middle_of_pixel(model->lens.y * model->shown.header.depth)});
    model->measuring = true;
    model->held = OCT_HELD_MARK;
}

bool oct_view_model_move_held(struct oct_view_model *model, enum oct_view_action action,
                              unsigned times)
{
    /* The arrow keys' actions, as steps to the right and down. */
    int right = action == OCT_ACTION_LEVEL_UP ? 1 : action == OCT_ACTION_LEVEL_DOWN ? -1 : 0;
    int down = action == OCT_ACTION_WINDOW_CLOSER ? 1 : action == OCT_ACTION_WINDOW_WIDER ? -1 : 0;

    if (right == 0 && down == 0)
        return false;
    if (!can_measure(model))
        return true;
    if (!oct_view_model_held_point(model))
        put_caliper(model);
    struct oct_view_point to = *oct_view_model_held_point(model);
    to = inside(model, (struct oct_view_point){to.line + right * (double)times,
                                               to.depth + down * (double)times});
    if (model->held == OCT_HELD_MARK)
        model->mark = to;
    else
        model->calipers.shown.caliper[model->calipers.shown.held].end[model->held == OCT_HELD_TO] =
            to;
    return true;
}
