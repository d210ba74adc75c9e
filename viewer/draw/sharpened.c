/* Before and after of the dispersion that octd found: the line between them, and the words. */
#include "viewer/draw/areas.h"

void oct_draw_sharpened(struct oct_draw *draw, const struct oct_view_model *model)
{
    char text[160];
    const double middle = draw->place.x + draw->place.w / 2;

    if (!model->has_picture || model->sharpened.arrival_ns == 0)
        return;
    oct_draw_clip(draw, &draw->picture_rect);
    oct_draw_line(draw, middle, draw->place.y, middle, draw->place.y + draw->place.h, RGB_MARK,
                  255);
    oct_draw_clip(draw, NULL);
    for (unsigned i = 0; oct_view_sharpened_text(model, i, text, sizeof(text)); i++)
        oct_draw_corner(draw, text, RGB_PLAIN);
}
