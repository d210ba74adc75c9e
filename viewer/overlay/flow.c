/* What moves in the B-scan, as octd's analyses `flow` and `velocity` find it: its colours, words,
 * the bulk motion as a bar, and the scale of speeds. */
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a pixel is coloured where something just flows, and where all is new. */
#define LEAST_INK 96
#define MOST_INK 235
#define MOST_LIMIT 1e6
#define BAR_LETTERS 16u

void oct_view_flow_finish(struct oct_view_flow *flow)
{
    free(flow->argb);
    *flow = (struct oct_view_flow){.serial = flow->serial};
}

/* [A-lines][depths], with scan.interleave of several places. */
static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    const unsigned r = header->rank;
    if (header->n_labels > 0 || (r != 2 && r != 3) || header->dims[0] == 0 ||
        header->dims[r - 2] == 0 || header->dims[r - 1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%.40s: it is no picture of A-lines and depths",
                        header->dataset);
    return OCT_OK;
}

/* ---- colours ---- */

uint32_t oct_view_velocity_rgb(double share)
{
    const uint32_t level = (uint32_t)lround(255 * fmin(fabs(share), 1));
    const uint32_t pale = level * 3 / 8; /* blue alone is dark */
    return share < 0 ? level << 16 | level / 8 << 8 | level / 8 : pale << 16 | pale << 8 | level;
}

/* share: d, or a velocity by its limit. */
static uint32_t colour_of(float share, bool is_velocity)
{
    if (!isfinite(share) || (!is_velocity && share <= 0))
        return 0;
    if (is_velocity)
        return 0xff000000u | oct_view_velocity_rgb((double)share);
    const uint32_t ink = LEAST_INK + (uint32_t)((MOST_INK - LEAST_INK) * fminf(share, 1));
    return ink << 24 | RGB_FLOW;
}

/* Of the newest B-scan's place of the group. */
static void colour(struct oct_view_flow *f, const struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;
    const size_t n = (size_t)f->n_lines * f->depth;
    const size_t first = h->rank == 3 ? n * (h->bscan % h->dims[0]) : 0;
    const float scale = f->is_velocity ? (float)(1 / f->limit) : 1;
    const uint8_t *u8 = (const uint8_t *)image->values + first;
    const float *f32 = (const float *)image->values + first;
    for (uint32_t j = 0; j < f->n_lines; j++)
        for (uint32_t d = 0; d < f->depth; d++) {
            const size_t i = (size_t)j * f->depth + d;
            const float share =
                h->type == OCT_SAMPLE_U8 ? (float)u8[i] / UINT8_MAX : f32[i] * scale;
            f->argb[(size_t)d * f->n_lines + j] = colour_of(share, f->is_velocity);
        }
}

static double number(const struct oct_image_header *h, const char *name)
{
    const double value = oct_image_header_number(h, name, 0);
    return fabs(value) <= MOST_LIMIT ? value : NAN;
}

void oct_view_flow_set(struct oct_view_flow *flow, const struct oct_view_image *image,
                       bool is_velocity)
{
    const struct oct_image_header *h = &image->header;
    const double limit = number(h, "ambiguous_mm_s");
    if (check(h, NULL) || (is_velocity && (h->type != OCT_SAMPLE_F32 || !(limit > 1e-9))))
        return;
    struct oct_view_flow next = {
        .is_velocity = is_velocity,
        .n_lines = h->dims[h->rank - 2],
        .depth = h->dims[h->rank - 1],
        .serial = flow->serial + 1,
        .of = oct_view_of_image(h),
        .bulk = number(h, "bulk_decorrelation"),
        .snr_db = number(h, "snr_db"),
        .tau_us = number(h, "tau_us"),
        .has_moved = number(h, "moved") > 0,
        .limit = limit,
    };
    const size_t n = (size_t)next.n_lines * next.depth;
    memcpy(next.unit, h->unit, sizeof(next.unit));
    next.argb =
        (size_t)flow->n_lines * flow->depth == n ? flow->argb : malloc(n * sizeof(*next.argb));
    if (!next.argb)
        return;
    if (next.argb != flow->argb)
        free(flow->argb);
    colour(&next, image);
    *flow = next;
}

static uint32_t mix(uint32_t under, uint32_t over)
{
    const uint32_t a = over >> 24;
    uint32_t rgb = 0;
    for (unsigned shift = 0; shift < 24; shift += 8)
        rgb |= ((under >> shift & 255) * (255 - a) + (over >> shift & 255) * a) / 255 << shift;
    return 0xff000000u | rgb;
}

void oct_view_flow_tint(const struct oct_view_model *model, const struct oct_view_part *part,
                        uint32_t *argb, size_t pitch_px)
{
    const struct oct_view_flow *f = &model->flow;
    const struct oct_picture_header *h = &model->shown.header;
    double lines, depth;
    oct_view_overlay_belongs(model, &f->of, &lines, &depth);
    /* An A-line of M-B scans stands for those at its point. */
    const double per_line = (double)f->n_lines / h->n_lines;
    const double per_depth = (double)f->depth / h->depth;
    for (int y = 0; y < part->height; y++) {
        const double d = (part->depth0 + (y + 0.5) * part->depth_px - depth) * per_depth;
        if (!(d >= 0 && d < f->depth))
            continue;
        const uint32_t *row = f->argb + (size_t)d * f->n_lines;
        for (int x = 0; x < part->width; x++) {
            const double j = (part->line0 + (x + 0.5) * part->lines_px - lines) * per_line;
            if (j >= 0 && j < f->n_lines && row[(size_t)j])
                argb[(size_t)y * pitch_px + (size_t)x] =
                    mix(argb[(size_t)y * pitch_px + (size_t)x], row[(size_t)j]);
        }
    }
}

/* ---- of the shown picture ---- */

bool oct_view_flow_is_on(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_settings *s = &model->settings;
    const struct oct_view_analysis *row =
        oct_view_daemon_analysis(d, s->velocity ? "velocity" : "flow");
    return (s->flow || s->velocity) && row && !row->at_rest;
}

bool oct_view_model_has_flow(const struct oct_view_model *model)
{
    const struct oct_view_flow *f = &model->flow;
    return (f->is_velocity ? model->settings.velocity : model->settings.flow) && f->n_lines > 0 &&
           oct_view_overlay_is_drawn(model, &f->of);
}

/* ---- words ---- */

static void tau_text(double us, char *text, size_t n_bytes)
{
    text[0] = '\0';
    if (us >= 1000)
        snprintf(text, n_bytes, ", tau %.3g ms", us / 1000);
    else if (us > 0)
        snprintf(text, n_bytes, ", tau %.3g \u00b5s", us);
}

void oct_view_flow_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_flow *f = &model->flow;
    char tau[40], snr[40] = "";
    oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!oct_view_model_has_flow(model))
        return;
    tau_text(f->tau_us, tau, sizeof(tau));
    if (isfinite(f->snr_db))
        snprintf(snr, sizeof(snr), ", SNR %.1f dB", f->snr_db);
    if (f->is_velocity)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "velocity, ambiguous from %.3g %s on%s",
                            f->limit, f->unit, tau);
    else if (f->has_moved)
        oct_view_phrase_set(phrase, OCT_TONE_BAD, "flow: MOVED, bulk %.2f%s%s", f->bulk, snr, tau);
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "flow: bulk %.2f%s%s", f->bulk, snr, tau);
}

/* ---- drawing ---- */

/* The bulk decorrelation, to a third above what is too much. */
static void draw_bulk(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_flow *f = &model->flow;
    const double told = model->daemon.flow.max_bulk, most = told > 0 ? told : OCT_VIEW_BULK_MOST;
    const double marks[] = {OCT_VIEW_BULK_DOUBTFUL, most};
    const struct oct_view_rect r =
        oct_draw_corner_room(draw, oct_draw_letters_width(draw, BAR_LETTERS));
    const double end = fmax(most, OCT_VIEW_BULK_DOUBTFUL) * 4 / 3;
    const int h = r.h / 2, y = r.y + (r.h - h) / 2;
    const uint32_t rgb = f->has_moved || f->bulk > most     ? RGB_BAD
                         : f->bulk > OCT_VIEW_BULK_DOUBTFUL ? RGB_WARN
                                                            : RGB_GOOD;
    oct_draw_box(draw, r.x, y, r.w, h, RGB_BUTTON);
    if (f->bulk > 0)
        oct_draw_box(draw, r.x, y, (int)(r.w * fmin(f->bulk / end, 1)), h, rgb);
    for (int i = 0; i < 2; i++)
        oct_draw_box(draw, r.x + (int)(r.w * marks[i] / end), y - 1, 1, h + 2, RGB_PLAIN);
}

static void draw_flow(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_phrase phrase;
    oct_view_flow_text(model, &phrase);
    if (!phrase.text[0])
        return;
    oct_draw_corner(draw, phrase.text, oct_draw_tone(phrase.tone));
    if (!model->flow.is_velocity && isfinite(model->flow.bulk))
        draw_bulk(draw, model);
}

/* Towards the beam is up, as in the picture. */
static void draw_speeds(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect bar = oct_draw_layout(draw)->speeds;
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    const int text_px = oct_draw_layout(draw)->text_px;
    const int top = bar.y + line, height = bar.h - 2 * line, x = bar.x + text_px / 2;
    char text[32];
    if (bar.w == 0 || height < 3 * line || !oct_view_model_has_flow(model))
        return;
    for (int y = 0; y < height; y++)
        oct_draw_box(draw, x, top + y, text_px, 1,
                     oct_view_velocity_rgb(2.0 * y / (height - 1) - 1));
    oct_draw_frame_of(draw, (struct oct_view_rect){x - 1, top - 1, text_px + 2, height + 2},
                      RGB_DIM);
    for (int i = -1; i <= 1; i++) {
        const int y = top + height * (i + 1) / 2;
        snprintf(text, sizeof(text), i ? "%+.3g" : "%.0f", i * model->flow.limit);
        oct_draw_box(draw, x + text_px, y, text_px / 3, 1, RGB_DIM);
        oct_draw_text(draw, OCT_TEXT_NORMAL, x + text_px * 3 / 2, y - line / 2, text, RGB_PLAIN);
    }
    if (height > 5 * line)
        oct_draw_text(draw, OCT_TEXT_NORMAL, x + text_px * 3 / 2, top + line, model->flow.unit,
                      RGB_DIM);
}

/* ---- the tables ---- */

static void take_flow(struct oct_view_model *model, struct oct_view_image *image)
{
    oct_view_flow_set(&model->flow, image, false);
}

static void take_velocity(struct oct_view_model *model, struct oct_view_image *image)
{
    oct_view_flow_set(&model->flow, image, true);
}

const struct oct_view_overlay oct_view_overlay_flow = {
    .topic = "flow",
    .check = check,
    .take = take_flow,
    .leads = 1, /* it is of every R-th B-scan alone */
    .draw = draw_flow,
    .action = OCT_ACTION_FLOW,
    .key = 'U',
    .setting = offsetof(struct oct_view_settings, flow),
    .setting_name = "flow",
    .what = "finds no flow",
    .drawn = "blood flow: what is new between the B-scans of a place, in red",
    .not_drawn = "blood flow is not drawn",
};
const struct oct_view_overlay oct_view_overlay_velocity = {
    .topic = "velocity",
    .check = check,
    .take = take_velocity,
    .leads = 1,
    .draw = draw_speeds,
    .action = OCT_ACTION_FLOW,
    .key = 'U',
    .setting = offsetof(struct oct_view_settings, velocity),
    .setting_name = "velocity",
    .what = "finds no velocity",
    .drawn = "velocity: red towards the beam, blue away",
    .not_drawn = "velocity is not drawn",
};
