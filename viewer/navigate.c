#include "viewer/navigate.h"

#include <math.h>

enum oct_view_grip oct_view_navigate_grip(const struct oct_view_model *model,
                                          const struct oct_draw *draw, double x, double y)
{
    const int px = (int)x, py = (int)y;

    if (!model->playback.active)
        return OCT_GRIP_NONE;
    if (oct_view_rect_holds(oct_draw_enface_rect(draw), px, py))
        return OCT_GRIP_ENFACE;
    if (oct_view_rect_holds(oct_draw_slice_rect(draw), px, py))
        return OCT_GRIP_SLICE;
    if (oct_view_rect_holds(oct_draw_layout(draw)->timeline, px, py))
        return OCT_GRIP_SLIDER;
    return OCT_GRIP_NONE;
}

void oct_view_navigate_to(struct oct_view_model *model, const struct oct_draw *draw,
                          enum oct_view_grip grip, double x, double y)
{
    const struct oct_view_file *file = &model->playback.file;
    const struct oct_view_rect enface = oct_draw_enface_rect(draw);
    const struct oct_view_rect slice = oct_draw_slice_rect(draw);

    switch (grip) {
    case OCT_GRIP_ENFACE:
        oct_view_playback_go(model, floor((y - enface.y) / enface.h * file->n_bscans));
        oct_view_playback_slice_at(model, floor((x - enface.x) / enface.w * file->n_lines));
        oct_view_model_point_at(model, model->playback.slice_line);
        break;
    case OCT_GRIP_SLICE:
        oct_view_playback_go(model, floor((x - slice.x) / slice.w * file->n_bscans));
        break;
    case OCT_GRIP_SLIDER:
        oct_view_playback_go(model, round(oct_draw_slider_share(draw, x) * (file->n_bscans - 1.0)));
        break;
    default:
        break;
    }
}

bool oct_view_navigate_wheel(struct oct_view_model *model, const struct oct_draw *draw, double x,
                             double y, double turns, double each)
{
    const bool on_bscan = oct_view_rect_holds(oct_draw_layout(draw)->bscan, (int)x, (int)y);

    if (!model->playback.active ||
        (!on_bscan && oct_view_navigate_grip(model, draw, x, y) == OCT_GRIP_NONE))
        return false;
    oct_view_playback_step(model, -turns * each);
    return true;
}
