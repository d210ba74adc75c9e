/* Plots: the A-line's profile, the spectrum, the timeline of the quality. */
#include "pipeline/base/clock.h"
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdio.h>

/* A plot's inside, and the values at its lower and upper edge. */
struct plot {
    struct oct_view_rect r;
    double lo, hi;
    bool is_labelled_inside;
};

static double height_of(const struct plot *plot, double value)
{
    double share = (value - plot->lo) / (plot->hi - plot->lo);
    share = share > 0 ? share < 1 ? share : 1 : 0; /* NaN too */
    return plot->r.y + plot->r.h - 1 - share * (plot->r.h - 1);
}

/* Its columns go from x to x + w. */
static struct plot open_plot_at(struct oct_draw *draw, struct oct_view_rect area, int x, int w,
                                const char *title, double lo, double hi)
{
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    struct plot plot = {.r = {x, area.y + line, w > 1 ? w : 1, area.h - 2 * line},
                        .lo = lo,
                        .hi = hi > lo ? hi : lo + 1};
    oct_draw_fill(draw, area, RGB_AREA, 255);
    oct_draw_text(draw, OCT_TEXT_NORMAL, x, area.y, title, RGB_DIM);
    plot.r.h = plot.r.h > 1 ? plot.r.h : 1;
    oct_draw_frame_of(draw, plot.r, RGB_BUTTON);
    return plot;
}

static struct plot open_plot(struct oct_draw *draw, struct oct_view_rect area, const char *title,
                             double lo, double hi)
{
    const int left = 4 * draw->layout.text_px;
    return open_plot_at(draw, area, area.x + left, area.w - left - draw->layout.margin, title, lo,
                        hi);
}

static void label_heights(struct oct_draw *draw, const struct plot *plot)
{
    double step = oct_view_scale_bar_um((plot->hi - plot->lo) / 3);
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), margin = draw->layout.margin / 2;
    char text[32];
    while (step > 0 && step / (plot->hi - plot->lo) * plot->r.h < line) /* each has its line */
        step *= 2;
    for (double v = ceil(plot->lo / step) * step; step > 0 && v <= plot->hi; v += step) {
        double y = height_of(plot, v);
        oct_draw_box(draw, plot->r.x, (int)y, plot->r.w, 1, RGB_BUTTON);
        snprintf(text, sizeof(text), "%g", fabs(v) < step / 2 ? 0 : v);
        int w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, text);
        if (plot->is_labelled_inside && (int)y - line > plot->r.y)
            oct_draw_text(draw, OCT_TEXT_NORMAL, plot->r.x + margin, (int)y - line, text, RGB_DIM);
        else if (!plot->is_labelled_inside)
            oct_draw_text(draw, OCT_TEXT_NORMAL, plot->r.x - w - margin, (int)y - line / 2, text,
                          RGB_DIM);
    }
}

/* Draws a curve of n values over the plot's width. Where several values share a column, it covers
 * their range. */
static void draw_curve(struct oct_draw *draw, const struct plot *plot, uint32_t n,
                       double (*value)(const void *context, uint32_t i), const void *context,
                       uint32_t rgb)
{
    double last = NAN;
    int thick = draw->layout.text_px / 20 + 1;
    for (int x = 0; x < plot->r.w; x++) {
        uint32_t from = (uint32_t)((uint64_t)n * (uint64_t)x / (uint64_t)plot->r.w);
        uint32_t to = (uint32_t)((uint64_t)n * (uint64_t)(x + 1) / (uint64_t)plot->r.w);
        double top = INFINITY, bottom = -INFINITY;
        for (uint32_t i = from; i < n && (i < to || i == from); i++) {
            const double v = value(context, i), y = height_of(plot, v);
            if (isnan(v))
                continue;
            top = fmin(top, y);
            bottom = fmax(bottom, y);
        }
        if (bottom < top) { /* none of them is known */
            last = NAN;
            continue;
        }
        if (isfinite(last)) {
            top = fmin(top, last);
            bottom = fmax(bottom, last);
        }
        const double end = value(context, from < n ? from : n - 1);
        last = isnan(end) ? NAN : height_of(plot, end);
        oct_draw_box(draw, plot->r.x + x, (int)top, thick, (int)(bottom - top) + thick, rgb);
    }
}

/* ---- the profile ---- */

static double profile_value(const void *context, uint32_t i)
{
    const struct oct_view_model *model = context;
    return oct_view_picture_value(&model->shown, (uint32_t)model->cursor_line, i);
}

/* A peak in the picture's own unit. */
static double peak_value(const struct oct_view_model *model, double db)
{
    return model->contrast.log ? db : pow(10, db / 10);
}

/* The profile's limits, so far apart that the mirror's peaks lie between them. */
static void widen(const struct oct_view_model *model, double *lo, double *hi)
{
    const struct oct_view_rolloff *r = &model->rolloff;
    const double above = model->contrast.log ? 3 : 0; /* dB */
    if (r->state == OCT_MIRROR_FOUND && isfinite(r->peak_db))
        *hi = fmax(*hi, peak_value(model, r->peak_db + above));
    for (unsigned i = 0; i < r->n; i++) {
        *hi = fmax(*hi, peak_value(model, (double)r->points[i].peak_db + above));
        *lo = fmin(*lo, peak_value(model, (double)r->points[i].peak_db));
    }
}

static void draw_peak(struct oct_draw *draw, const struct oct_view_model *model,
                      const struct plot *plot, double depth_px, double db, int side, uint32_t rgb)
{
    const double x = plot->r.x + (depth_px + 0.5) / model->shown.header.depth * plot->r.w;
    const double y = height_of(plot, peak_value(model, db));
    if (x >= plot->r.x && x < plot->r.x + plot->r.w)
        oct_draw_box(draw, (int)x - side / 2, (int)y - side / 2, side, side, rgb);
}

/* The largest peaks by depth, the line through them, and the mirror now. */
static void draw_rolloff(struct oct_draw *draw, const struct oct_view_model *model,
                         const struct plot *plot)
{
    const struct oct_view_rolloff *r = &model->rolloff;
    const uint32_t depth = model->shown.header.depth;
    const int side = draw->layout.text_px / 3 + 1;
    double before = NAN, lines, moved;
    for (int x = 0; x < plot->r.w && isfinite(r->db_per_100px); x++) {
        const double px = (x + 0.5) / plot->r.w * depth - 0.5;
        const double y = height_of(plot, peak_value(model, oct_view_rolloff_line(r, px)));
        if (isfinite(before) && x % 8 < 5)
            oct_draw_line(draw, plot->r.x + x - 1, before, plot->r.x + x, y, RGB_MEASURE, 200);
        before = y;
    }
    for (unsigned i = 0; i < r->n; i++)
        draw_peak(draw, model, plot, (double)r->points[i].depth_px, (double)r->points[i].peak_db,
                  side, RGB_MEASURE);
    oct_view_overlay_belongs(model, &r->of, &lines, &moved);
    if (r->state == OCT_MIRROR_FOUND)
        draw_peak(draw, model, plot, r->depth_px + moved, r->peak_db, side, RGB_MARK);
}

/* Words at the right of the line at y, beside those that end at `taken`. */
static void draw_words(struct oct_draw *draw, const struct plot *plot, int y, int taken,
                       struct oct_view_phrase *words)
{
    const int right = plot->r.x + plot->r.w;
    const int w = oct_draw_text_fit(draw, OCT_TEXT_NORMAL, words->text, sizeof(words->text),
                                    right - taken - draw->layout.margin, OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_NORMAL, right - w, y, words->text, oct_draw_tone(words->tone));
}

/* In the lines above and below the plot, which begin with these texts. */
static void draw_rolloff_words(struct oct_draw *draw, const struct oct_view_model *model,
                               const struct plot *plot, const char *above, const char *below)
{
    struct oct_view_phrase lines[2];
    const unsigned n = oct_view_rolloff_text(model, lines);
    if (n > 0)
        draw_words(draw, plot, plot->r.y - oct_draw_line_height(draw, OCT_TEXT_NORMAL),
                   plot->r.x + oct_draw_text_width(draw, OCT_TEXT_NORMAL, above), &lines[0]);
    if (n > 1)
        draw_words(draw, plot, plot->r.y + plot->r.h,
                   plot->r.x + oct_draw_text_width(draw, OCT_TEXT_NORMAL, below), &lines[1]);
}

void oct_draw_profile(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_rect area = draw->layout.profile;
    const struct oct_picture_header *h = &model->shown.header;
    double lo = model->contrast.published_lo, hi = model->contrast.published_hi;
    char title[96], text[96];
    if (area.w == 0)
        return;
    snprintf(title, sizeof(title), "A-line %.0f, %s", model->cursor_line,
             oct_view_model_unit(model));
    lo = fmin(lo, model->contrast.lo);
    hi = fmax(hi, model->contrast.hi);
    const bool has_rolloff = oct_view_model_has_rolloff(model);
    if (has_rolloff)
        widen(model, &lo, &hi);
    struct plot plot = open_plot(draw, area, model->has_picture ? title : "A-line", lo, hi);
    if (!model->has_picture)
        return;
    label_heights(draw, &plot);
    draw_curve(draw, &plot, h->depth, profile_value, model, RGB_GOOD);
    /* The limits of the contrast. */
    oct_draw_line(draw, plot.r.x, height_of(&plot, model->contrast.lo), plot.r.x + plot.r.w,
                  height_of(&plot, model->contrast.lo), RGB_MARK, 90);
    oct_draw_line(draw, plot.r.x, height_of(&plot, model->contrast.hi), plot.r.x + plot.r.w,
                  height_of(&plot, model->contrast.hi), RGB_MARK, 90);
    if (has_rolloff)
        draw_rolloff(draw, model, &plot);
    if (isfinite(oct_view_model_scale(model).axial_um))
        snprintf(text, sizeof(text), "depth 0 .. %.0f \u00b5m",
                 h->depth * oct_view_model_scale(model).axial_um);
    else
        snprintf(text, sizeof(text), "depth 0 .. %u px", h->depth);
    oct_draw_text(draw, OCT_TEXT_NORMAL, plot.r.x, plot.r.y + plot.r.h, text, RGB_DIM);
    if (has_rolloff)
        draw_rolloff_words(draw, model, &plot, title, text);
}

/* ---- the nerve fibre layer ---- */

#define FIBRES_STEP_UM 25.0
#define RGB_FIBRES 0xf5e663u /* as its lower border */

static double fibres_value(const void *context, uint32_t i)
{
    return oct_view_model_fibres(context, i);
}

void oct_draw_fibres(struct oct_draw *draw, const struct oct_view_model *model,
                     struct oct_view_rect map)
{
    const struct oct_view_playback *p = &model->playback;
    const struct oct_view_enface *e = &p->thickness.map[OCT_MAP_NERVE_FIBRES];
    const struct oct_view_rect area = draw->layout.fibres;
    const int margin = draw->layout.margin;
    const bool is_below = area.y > map.y;
    const double most = FIBRES_STEP_UM * ceil(1.2 * e->hi / FIBRES_STEP_UM);
    struct oct_view_phrase phrase;
    char title[64];
    if (area.w == 0)
        return;
    snprintf(title, sizeof(title), "nerve fibres, %s", e->unit);
    struct plot plot = open_plot_at(draw, area, is_below ? map.x : area.x + margin,
                                    is_below ? map.w : area.w - 2 * margin, title, 0,
                                    fmax(2 * FIBRES_STEP_UM, most));
    plot.is_labelled_inside = true;
    label_heights(draw, &plot);
    draw_curve(draw, &plot, p->file.n_lines, fibres_value, model, RGB_FIBRES);
    const double x = plot.r.x + (p->slice_line + 0.5) / p->file.n_lines * plot.r.w;
    oct_draw_line(draw, x, plot.r.y, x, plot.r.y + plot.r.h - 1, RGB_GOOD, 200);
    oct_view_fibres_text(model, &phrase);
    oct_draw_leave_out_clauses(draw, OCT_TEXT_NORMAL, phrase.text, area.w - 2 * margin);
    oct_draw_text(draw, OCT_TEXT_NORMAL, area.x + margin, plot.r.y + plot.r.h, phrase.text,
                  oct_draw_tone(phrase.tone));
}

/* ---- the spectrum ---- */

static double spectrum_value(const void *context, uint32_t i)
{
    return ((const struct oct_view_spectrum *)context)->sample[i];
}

void oct_draw_spectrum(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_rect area = draw->layout.spectrum;
    const struct oct_view_spectrum *s = &model->spectrum;
    char text[96];
    if (area.w == 0)
        return;
    struct plot plot = open_plot(draw, area, "spectrum, counts", 0, s->limit * 1.05);
    if (!s->n_samples) {
        oct_draw_text(draw, OCT_TEXT_NORMAL, plot.r.x + draw->layout.margin, plot.r.y,
                      "none came yet", RGB_DIM);
        return;
    }
    label_heights(draw, &plot);
    draw_curve(draw, &plot, s->n_samples, spectrum_value, s, RGB_MEASURE);
    double y = height_of(&plot, s->limit);
    oct_draw_line(draw, plot.r.x, y, plot.r.x + plot.r.w, y, RGB_BAD, 255);
    snprintf(text, sizeof(text), "A-line %u, saturated %llu", s->line,
             (unsigned long long)s->n_saturated);
    oct_draw_text(draw, OCT_TEXT_NORMAL, plot.r.x, plot.r.y + plot.r.h, text,
                  s->n_saturated ? RGB_WARN : RGB_DIM);
}

/* ---- the trace ---- */

static double trace_value(const void *context, uint32_t i)
{
    return ((const struct oct_view_trace *)context)->points[i].moved;
}

/* A column a point, as the B-scan's colours have it. */
static void draw_lines(struct oct_draw *draw, const struct oct_view_model *model,
                       struct oct_view_rect r)
{
    const struct oct_view_trace *t = &model->trace;
    struct oct_draw_sheet *sheet = &draw->trace;
    uint32_t colours[256], *pixels;
    size_t pitch_px;
    if (oct_draw_sheet_size(draw, sheet, t->n, OCT_VIEW_TRACE_DEPTHS, NULL))
        return;
    if (!oct_draw_sheet_has(sheet, t->serial, &model->contrast)) {
        if (oct_draw_sheet_lock(sheet, t->serial, &model->contrast, &pixels, &pitch_px, NULL))
            return;
        oct_view_contrast_colours(&model->contrast, colours);
        for (unsigned d = 0; d < OCT_VIEW_TRACE_DEPTHS; d++)
            for (unsigned i = 0; i < t->n; i++)
                pixels[d * pitch_px + i] = colours[t->lines[i][d]];
        SDL_UnlockTexture(sheet->texture);
    }
    SDL_RenderCopy(draw->renderer, sheet->texture, NULL, &(SDL_Rect){r.x, r.y, r.w, r.h});
}

/* Two sd to each side. */
static void draw_band(struct oct_draw *draw, const struct plot *plot,
                      const struct oct_view_trace *t)
{
    for (int x = 0; x < plot->r.w; x++) {
        const unsigned i = (unsigned)((uint64_t)t->n * (uint64_t)x / (uint64_t)plot->r.w);
        const int top = (int)height_of(plot, t->points[i].moved + 2 * t->points[i].sd);
        const int bottom = (int)height_of(plot, t->points[i].moved - 2 * t->points[i].sd);
        oct_draw_fill(draw, (struct oct_view_rect){plot->r.x + x, top, 1, bottom - top + 1},
                      RGB_MEASURE, 70);
    }
}

void oct_draw_trace(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_trace *t = &model->trace;
    struct oct_view_rect area = draw->layout.spectrum;
    double lo = INFINITY, hi = -INFINITY;
    char text[96];
    if (area.w == 0 || t->n == 0)
        return;
    for (unsigned i = 0; i < t->n; i++) {
        lo = fmin(lo, t->points[i].moved - 2 * t->points[i].sd);
        hi = fmax(hi, t->points[i].moved + 2 * t->points[i].sd);
    }
    oct_view_trace_text(model, text, sizeof(text));
    struct plot plot = open_plot(draw, area, text, lo, hi);
    const struct oct_view_rect strip = {plot.r.x, plot.r.y, plot.r.w, plot.r.h / 3};
    plot.r.y += strip.h;
    plot.r.h -= strip.h;
    if (strip.h > 0)
        draw_lines(draw, model, strip);
    label_heights(draw, &plot);
    draw_band(draw, &plot, t);
    draw_curve(draw, &plot, t->n, trace_value, t, RGB_MEASURE);
    snprintf(text, sizeof(text), "%.3f .. %.3f s", t->points[0].time_s, t->points[t->n - 1].time_s);
    oct_draw_text(draw, OCT_TEXT_NORMAL, plot.r.x, plot.r.y + plot.r.h, text, RGB_DIM);
}

/* ---- the timeline ---- */

/* Draws nothing for NaN. */
static void draw_point(struct oct_draw *draw, const struct plot *plot, int x, int thick,
                       double value, uint32_t rgb)
{
    if (isfinite(value))
        oct_draw_box(draw, x, (int)height_of(plot, value), thick, thick, rgb);
}

static void draw_moments(struct oct_draw *draw, const struct oct_view_model *model,
                         const struct plot *snr, const struct plot *sharpness)
{
    uint64_t now = model->now_ns / OCT_VIEW_TIMELINE_BIN_NS;
    struct oct_view_rect r = snr->r;
    int thick = draw->layout.text_px / 10 + 1;
    for (unsigned i = 0; i < OCT_VIEW_TIMELINE; i++) {
        const struct oct_view_moment *m =
            now >= i ? oct_view_quality_moment(&model->quality, now - i) : NULL;
        if (!m)
            continue;
        int x = r.x + r.w - 1 - (int)((uint64_t)i * (uint64_t)r.w / OCT_VIEW_TIMELINE);
        if (m->marks)
            oct_draw_fill(draw, (struct oct_view_rect){x - thick / 2, r.y, thick + 1, r.h},
                          m->marks & OCT_MARK_BLINK ? RGB_BAD : RGB_WARN, 130);
        draw_point(draw, sharpness, x, thick, (double)m->sharpness, RGB_DIM);
        draw_point(draw, snr, x, thick, (double)m->snr_db, RGB_GOOD);
    }
}

void oct_draw_timeline(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_rect area = draw->layout.timeline, words = area;
    const struct oct_view_quality *q = &model->quality;
    struct oct_view_phrase phrase;
    int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    oct_view_quality_text(model, &phrase);
    oct_draw_fill(draw, area, RGB_AREA, 255);
    int y = area.y + (area.h - line) / 2;
    words.w =
        draw->layout.margin + oct_draw_text(draw, OCT_TEXT_NORMAL, area.x + draw->layout.margin, y,
                                            phrase.text, oct_draw_tone(phrase.tone));
    struct plot snr = {.r = {area.x + words.w + draw->layout.margin, area.y + 1,
                             area.w - words.w - draw->layout.margin, area.h - 2},
                       .hi = fmax(10, q->level_db * 1.4)};
    struct plot sharpness = {.r = snr.r, .hi = fmax(2, q->sharpness * 2)};
    if (snr.r.w > 8 * draw->layout.text_px)
        draw_moments(draw, model, &snr, &sharpness);
}
