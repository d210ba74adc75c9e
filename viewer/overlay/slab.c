/* The en face picture that is shown: octd's projection, or the one that follows layers; and the
 * slab on the B-scan. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"

/* No image of the topic `slab` for this long: octd makes none any more. */
#define SLAB_LATE_NS (5 * OCT_NS_PER_S)

static bool slab_comes(const struct oct_view_model *model)
{
    return model->slab_came_ns > 0 && (model->now_ns < model->slab_came_ns ||
                                       model->now_ns - model->slab_came_ns < SLAB_LATE_NS);
}

static void follow_layers(struct oct_view_model *model, bool follows)
{
    model->enface.forget |= model->enface_follows_layers != follows;
    model->enface_follows_layers = follows;
}

static void take_enface(struct oct_view_model *model, struct oct_view_image *image)
{
    if ((model->enface_follows_layers && slab_comes(model)) ||
        !oct_view_above_take(model, &image->header))
        return;
    follow_layers(model, false);
    model->enface.keeps_pixels = oct_view_model_enface_is_gridded(model);
    oct_view_enface_set(&model->enface, image);
}

static void take_slab(struct oct_view_model *model, struct oct_view_image *image)
{
    model->slab_came_ns = image->arrival_ns;
    if (!model->enface_follows_layers || !oct_view_above_take(model, &image->header))
        return;
    model->enface.keeps_pixels = oct_view_model_enface_is_gridded(model);
    oct_view_enface_set(&model->enface, image);
}

void oct_view_model_next_projection(struct oct_view_model *model)
{
    const bool is_last = model->enface_wishes.wanted.projection == OCT_N_PROJECTIONS - 1;
    if (!model->enface_follows_layers && slab_comes(model) &&
        (is_last || !oct_view_model_can_set_enface(model))) {
        follow_layers(model, true);
        return;
    }
    follow_layers(model, false);
    if (oct_view_model_can_set_enface(model))
        oct_view_enface_wishes_next(&model->enface_wishes);
}

/* The slab's limits on the B-scan. */
static void draw_slab(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_slab *slab = &model->enface_wishes.octds.slab;
    const double shares[] = {slab->first, slab->last};
    const struct oct_view_rectf p = oct_draw_layout(draw)->place;
    const struct oct_view_rect seen = oct_draw_layout(draw)->picture;
    if (!model->has_picture || oct_draw_layout(draw)->enface.w <= 0 || model->playback.active ||
        model->enface_follows_layers || !model->enface_wishes.known ||
        model->enface_wishes.octds.projection != OCT_PROJECTION_SLAB)
        return;
    oct_draw_clip(draw, &seen);
    for (int i = 0; i < 2; i++)
        oct_draw_line(draw, p.x, p.y + shares[i] * p.h, p.x + p.w, p.y + shares[i] * p.h, RGB_GOOD,
                      120);
    oct_draw_clip(draw, NULL);
}

static bool wanted(const struct oct_view_model *model)
{
    return model->settings.arrangement != OCT_ARRANGEMENT_ALONE;
}

const struct oct_view_overlay oct_view_overlay_enface = {.topic = OCT_VIEW_TOPIC_ENFACE,
                                                         .check = oct_view_enface_check,
                                                         .take = take_enface,
                                                         .draw = draw_slab};
const struct oct_view_overlay oct_view_overlay_slab = {
    .topic = "slab", .check = oct_view_enface_check, .wanted = wanted, .take = take_slab};
