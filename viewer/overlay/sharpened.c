/* Before and after of the dispersion that octd found: the line between them, and the words. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_NS (60 * OCT_NS_PER_S)

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->rank == 2 && header->dims[0] >= 2 && header->dims[0] % 2 == 0 &&
        header->n_labels == 0)
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT, "calibrate: it is no picture of a B-scan before and after");
}

void oct_view_sharpened_toggle(struct oct_view_model *model)
{
    if (model->sharpened.arrival_ns > 0) {
        oct_view_model_apply(model, OCT_ACTION_FREEZE, 1);
        return;
    }
    if (model->sharpening.waits) {
        oct_view_model_say(model, "octd still looks for the sharpest dispersion");
        return;
    }
    oct_view_model_wish(model, OCT_WISH_CALIBRATE, "");
    if (!oct_view_wishes_find(&model->wishes, OCT_WISH_CALIBRATE))
        return; /* and it is said why */
    model->sharpening =
        (struct oct_view_sharpening){true, model->daemon.errand.number, model->now_ns};
    oct_view_model_say(model, "octd looks for the sharpest dispersion");
}

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;
    struct oct_view_sharpened s = {.arrival_ns = image->arrival_ns};
    if (!model->sharpening.waits)
        return;
    for (unsigned i = 0; i < 4; i++)
        s.dispersion[i] = oct_image_header_number(h, "dispersion", i);
    for (unsigned i = 0; i < 2; i++) {
        s.sharpness[i] = oct_image_header_number(h, "sharpness", i);
        s.width_px[i] = oct_image_header_number(h, "width_px", i);
    }
    oct_view_image_to_picture(image, &model->spare);
    /* Layers and cells belong to other pictures. */
    memset(model->spare.header.acquisition_id, 0, sizeof(model->spare.header.acquisition_id));
    model->sharpening.waits = false;
    oct_view_model_hold_up(model, &model->spare);
    model->sharpened = s;
}

void oct_view_sharpened_hear(struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_sharpening *w = &model->sharpening;
    if (!w->waits)
        return;
    if (d->errand.number > w->number && !d->errand.pending && d->errand.why[0])
        oct_view_model_say(model, "no sharper dispersion: %s", d->errand.why);
    else if (model->now_ns > w->since_ns && model->now_ns - w->since_ns > PATIENCE_NS)
        oct_view_model_say(model, "octd has sent no picture of the sharpest dispersion");
    else
        return;
    model->sharpening.waits = false;
}

bool oct_view_sharpened_text(const struct oct_view_model *model, unsigned i, char *text,
                             size_t n_bytes)
{
    const struct oct_view_sharpened *s = &model->sharpened;
    const double *a = s->dispersion;
    char width[64] = "";
    if (s->arrival_ns == 0)
        return false;
    switch (i) {
    case 0:
        if (isfinite(s->width_px[0]) && isfinite(s->width_px[1]))
            snprintf(width, sizeof(width), "; width %.2f -> %.2f px", s->width_px[0],
                     s->width_px[1]);
        snprintf(text, n_bytes, "before | after: sharpness %.1f -> %.1f%s", s->sharpness[0],
                 s->sharpness[1], width);
        return true;
    case 1:
        if (isfinite(a[0]))
            snprintf(text, n_bytes, "[calibration] dispersion_over = spectrum");
        else
            snprintf(text, n_bytes, "the dispersion is a file: octctl calibrate dispersion");
        return true;
    case 2:
        snprintf(text, n_bytes, "dispersion_a2 = %.4f  dispersion_a3 = %.4f", a[0], a[1]);
        return isfinite(a[0]);
    case 3:
        snprintf(text, n_bytes, "dispersion_a4 = %.4f  dispersion_a5 = %.4f", a[2], a[3]);
        return isfinite(a[0]) && (a[2] != 0 || a[3] != 0);
    default:
        return false;
    }
}

/* A line between before and after, and the words. */
static void draw_halves(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rectf place = oct_draw_layout(draw)->place;
    const struct oct_view_rect seen = oct_draw_layout(draw)->picture;
    const double middle = place.x + place.w / 2;
    char text[160];
    if (!model->has_picture || model->sharpened.arrival_ns == 0)
        return;
    oct_draw_clip(draw, &seen);
    oct_draw_line(draw, middle, place.y, middle, place.y + place.h, RGB_MARK, 255);
    oct_draw_clip(draw, NULL);
    for (unsigned i = 0; oct_view_sharpened_text(model, i, text, sizeof(text)); i++)
        oct_draw_corner(draw, text, RGB_PLAIN);
}

static bool wanted(const struct oct_view_model *model)
{
    return model->sharpening.waits;
}

const struct oct_view_overlay oct_view_overlay_sharpened = {
    .topic = "calibrate",
    .check = check,
    .wanted = wanted,
    .take = take,
    .draw = draw_halves,
};
