/* The layers that octd finds, over the B-scan, and how far they lie apart. */
#include "viewer/draw/areas.h"

/* A line from A-line to A-line where both are found, twice as thick as a pixel's; p is the place
 * of their B-scan. */
static void draw_layer(struct oct_draw *draw, struct oct_view_rectf p, const float *position,
                       uint32_t n_lines, uint32_t depth, uint32_t rgb)
{
    const double dx = p.w / n_lines, dy = p.h / depth;

    for (uint32_t j = 0; j < n_lines; j++) {
        const uint32_t next = j + 1 < n_lines ? j + 1 : j;
        const double x = p.x + (j + 0.5) * dx, y = p.y + ((double)position[j] + 0.5) * dy;
        const double to_y = p.y + ((double)position[next] + 0.5) * dy;
        if (!(position[j] < (float)depth)) /* nor is a NaN */
            continue;
        const bool goes_on = next > j && position[next] < (float)depth;
        for (int thick = 0; thick < 2; thick++)
            oct_draw_line(draw, goes_on ? x : x - dx / 2, y + thick, x + (goes_on ? dx : dx / 2),
                          (goes_on ? to_y : y) + thick, rgb, 220);
    }
}

void oct_draw_layers(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_layers *layers = &model->layers;
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_rectf place = draw->place;
    struct oct_view_phrase phrase;
    double lines, depth;

    if (!oct_view_model_has_layers(model) || h->n_lines != layers->n_lines)
        return;
    oct_view_overlay_belongs(model, layers->acquisition_id, layers->frame_num, &lines, &depth);
    place.x += lines / h->n_lines * place.w;
    place.y += depth / h->depth * place.h;
    oct_draw_clip(draw, &draw->picture_rect);
    draw_layer(draw, place, layers->position[OCT_LAYER_ILM], h->n_lines, h->depth, RGB_ILM);
    draw_layer(draw, place, layers->position[OCT_LAYER_RPE], h->n_lines, h->depth, RGB_RPE);
    oct_draw_clip(draw, NULL);
    oct_view_layers_text(model, &phrase);
    oct_draw_corner(draw, phrase.text, RGB_ILM);
}
