/* The en face picture; and playback: slider, slice, and where both lie. */
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdio.h>

#define WAY_PIECES 96 /* of a B-scan that is no row, at most */

/* ---- playback: words on the B-scan ---- */

/* In the middle of the picture, in large letters: it is empty, and why. */
static void draw_empty(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect r = draw->layout.bscan;
    char text[256];
    oct_view_playback_text(model, text, sizeof(text));
    const int w = oct_draw_text_fit(draw, OCT_TEXT_LARGE, text, sizeof(text),
                                    r.w - 4 * draw->layout.margin, OCT_DRAW_CUT_END);
    const int h = oct_draw_line_height(draw, OCT_TEXT_LARGE), margin = draw->layout.margin;
    const int x = r.x + (r.w - w) / 2, y = r.y + (r.h - h) / 2;
    oct_draw_fill(draw,
                  (struct oct_view_rect){x - margin, y - margin / 2, w + 2 * margin, h + margin},
                  RGB_GROUND, 220);
    oct_draw_text(draw, OCT_TEXT_LARGE, x, y, text, RGB_WARN);
}

void oct_draw_playback(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    static const char *const verdicts[] = {"", "  KEEP", "  REPEAT"};
    char text[OCT_VIEW_FILE_BYTES + 96];
    if (!p->active)
        return;
    char piece[64] = "", volume[256];
    oct_view_playback_volume_text(&p->file, volume, sizeof(volume));
    if (p->file.n_valid < p->file.n_bscans)
        snprintf(piece, sizeof(piece), "  a piece: %u of %u B-scans", p->file.n_valid,
                 p->file.n_bscans);
    snprintf(text, sizeof(text), "PLAYBACK  %s%s%s", p->file.name, piece,
             verdicts[p->file.verdict]);
    oct_draw_corner(draw, text, p->file.verdict == OCT_MARK_REPEAT ? RGB_WARN : RGB_PLAIN);
    if (volume[0])
        oct_draw_corner(draw, volume, RGB_PLAIN);
    if (model->has_picture && (!p->read.valid || p->read.why[0]))
        draw_empty(draw, model);
}

/* ---- the slider ---- */

/* The track of the slider; its middle of each end is the first and the last B-scan. */
static struct oct_view_rect track_of(const struct oct_draw *draw)
{
    const struct oct_view_rect r = draw->layout.timeline;
    const int margin = draw->layout.margin, thick = draw->layout.text_px / 3 + 1;
    return (struct oct_view_rect){r.x + 2 * margin, r.y + r.h - thick - 1,
                                  r.w - 4 * margin > 1 ? r.w - 4 * margin : 1, thick};
}

static void draw_words(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    const struct oct_view_rect r = draw->layout.timeline;
    const int margin = draw->layout.margin;
    char text[320], bscan[160], time[64] = "", gaps[48] = "", file[48] = "", slow[32] = "";
    const double own_hz = p->file.rate_hz, hz = oct_view_playback_rate_hz(p);
    oct_view_playback_text(model, bscan, sizeof(bscan));
    if (own_hz > 0)
        snprintf(time, sizeof(time), "  %.2f s of %.2f s", p->read.bscan / own_hz,
                 p->file.n_bscans / own_hz);
    if (own_hz > 1.05 * hz)
        snprintf(slow, sizeof(slow), " %.3gx slower", own_hz / hz);
    if (p->file.n_valid < p->file.n_bscans)
        snprintf(gaps, sizeof(gaps), "  %u were not recorded", p->file.n_bscans - p->file.n_valid);
    if (p->file.n_files > 1)
        snprintf(file, sizeof(file), "file %u of %u", p->file.place, p->file.n_files);
    snprintf(text, sizeof(text), "%s%s  %s%s%s", p->plays ? "playing" : "paused",
             p->plays ? slow : "", bscan, time, gaps);
    const int w_file = oct_draw_text_width(draw, OCT_TEXT_NORMAL, file);
    oct_draw_text_fit(draw, OCT_TEXT_NORMAL, text, sizeof(text), r.w - w_file - 6 * margin,
                      OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + 2 * margin, r.y, text,
                  p->read.valid && !p->read.why[0] ? RGB_PLAIN : RGB_WARN);
    oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + r.w - w_file - 2 * margin, r.y, file, RGB_DIM);
}

void oct_draw_slider(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    const struct oct_view_rect track = track_of(draw);
    const int half = draw->layout.text_px / 4 + 1;
    const double last = p->file.n_bscans > 1 ? p->file.n_bscans - 1.0 : 1;
    const int x = track.x + (int)lround(p->wanted / last * (track.w - 1));
    oct_draw_fill(draw, draw->layout.timeline, RGB_AREA, 255);
    draw_words(draw, model);
    oct_draw_fill(draw, track, RGB_BUTTON, 255);
    oct_draw_box(draw, track.x, track.y, x - track.x + 1, track.h, RGB_GOOD);
    oct_draw_box(draw, x - half, track.y - half, 2 * half + 1, track.h + half, RGB_PLAIN);
}

double oct_draw_slider_share(const struct oct_draw *draw, double x)
{
    const struct oct_view_rect track = track_of(draw);
    return (x - track.x) / (track.w > 1 ? track.w - 1 : 1);
}

/* ---- the slice ---- */

/* In the slice's place: the B-scan of the exam before, where the shown one is. */
static enum oct_err draw_before(struct oct_draw *draw, const struct oct_view_model *model,
                                struct oct_error *err)
{
    const struct oct_view_follow *f = &model->playback.follow;
    const struct oct_view_rect area = draw->layout.slice;
    struct oct_draw_sheet *sheet = &draw->before;
    struct oct_view_phrase phrase;
    uint32_t *pixels;
    size_t pitch_px;
    enum oct_err code;
    if (f->has_before && f->before.pixels) {
        const struct oct_view_upright up = oct_view_upright_of(&f->before.header);
        if ((code = oct_draw_sheet_size(draw, sheet, up.n_columns, up.n_rows, err)))
            return code;
        if (!oct_draw_sheet_has(sheet, f->serial, &model->contrast)) {
            if ((code = oct_draw_sheet_lock(sheet, f->serial, &model->contrast, &pixels, &pitch_px,
                                            err)))
                return code;
            oct_view_convert(&f->before, &model->contrast, pixels, pitch_px);
            SDL_UnlockTexture(sheet->texture);
        }
        const struct oct_view_rect r = oct_view_layout_fit(area, oct_view_model_proportion(model),
                                                           model->settings.fit == OCT_FIT_FILL);
        /* Moved across so that both eyes stand alike. */
        const struct oct_view_file *file = &model->playback.file;
        const double across = f->shift_um[1] / (file->lateral_um * file->n_lines) * r.w;
        oct_draw_clip(draw, &area);
        SDL_RenderCopy(draw->renderer, sheet->texture, NULL,
                       &(SDL_Rect){r.x - (int)lround(across), r.y, r.w, r.h});
        oct_draw_clip(draw, NULL);
    }
    oct_view_follow_text(model, &phrase);
    oct_draw_leave_out_clauses(draw, OCT_TEXT_NORMAL, phrase.text,
                               area.w - 2 * draw->layout.margin);
    oct_draw_label(draw, area.x + draw->layout.margin, area.y, phrase.text,
                   oct_draw_tone(phrase.tone));
    return OCT_OK;
}

enum oct_err oct_draw_slice(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err)
{
    const struct oct_view_playback *p = &model->playback;
    const struct oct_view_rect area = draw->layout.slice;
    const struct oct_view_scale scale = oct_view_model_scale(model);
    struct oct_draw_sheet *sheet = &draw->slice;
    uint32_t *pixels;
    size_t pitch_px;
    char text[64];
    enum oct_err code;
    draw->layout.slice_at = (struct oct_view_rect){area.x, area.y, 0, 0};
    if (!p->active || area.w == 0)
        return OCT_OK;
    oct_draw_fill(draw, area, RGB_AREA, 255);
    snprintf(text, sizeof(text), "slice at A-line %u", p->slice_line + 1);
    if (p->follow.is_on)
        return draw_before(draw, model, err);
    if (p->slice.pixels) {
        const struct oct_view_upright up = oct_view_upright_of(&p->slice.header);
        if ((code = oct_draw_sheet_size(draw, sheet, up.n_columns, up.n_rows, err)))
            return code;
        if (!oct_draw_sheet_has(sheet, p->slice_serial, &model->contrast)) {
            if ((code = oct_draw_sheet_lock(sheet, p->slice_serial, &model->contrast, &pixels,
                                            &pitch_px, err)))
                return code;
            oct_view_convert(&p->slice, &model->contrast, pixels, pitch_px);
            SDL_UnlockTexture(sheet->texture);
        }
        const double proportion = oct_view_proportion(
            p->file.n_bscans, model->playback.file.slow_um, p->file.depth, scale.axial_um);
        const struct oct_view_rect r =
            oct_view_layout_fit(area, proportion, model->settings.fit == OCT_FIT_FILL);
        draw->layout.slice_at = r;
        SDL_RenderCopy(draw->renderer, sheet->texture, NULL, &(SDL_Rect){r.x, r.y, r.w, r.h});
        const double x = r.x + (p->wanted + 0.5) / p->file.n_bscans * r.w;
        oct_draw_line(draw, x, r.y, x, r.y + r.h - 1, RGB_GOOD, 200);
        if (p->read.slice_share < 1)
            snprintf(text, sizeof(text), "slice at A-line %u: %.0f %% read", p->slice_line + 1,
                     100 * p->read.slice_share);
    }
    oct_draw_label(draw, area.x + draw->layout.margin, area.y, text, RGB_PLAIN);
    return OCT_OK;
}

/* ---- on the en face picture, and on the B-scan ---- */

void oct_draw_slice_place(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    if (!p->active || draw->layout.slice.w == 0)
        return;
    const double x =
        draw->layout.place.x + (p->slice_line + 0.5) / p->file.n_lines * draw->layout.place.w;
    oct_draw_clip(draw, &draw->layout.picture);
    oct_draw_line(draw, x, draw->layout.place.y, x, draw->layout.place.y + draw->layout.place.h,
                  RGB_GOOD, 70);
    oct_draw_clip(draw, NULL);
}

/* ---- the en face picture ---- */

/* Takes octd's black and white, which change a little with every image of a growing volume. True:
 * they changed, and all rows are to be drawn. */
static bool take_limits(struct oct_draw_above *above, const struct oct_view_enface *e)
{
    const double step = (e->hi - e->lo) / 100;
    /* A change that nobody sees is not worth drawing all rows for. */
    const bool stays = above->sheet.serial != 0 && fabs(e->lo - above->lo) < step &&
                       fabs(e->hi - above->hi) < step;
    above->lo = stays ? above->lo : e->lo;
    above->hi = stays ? above->hi : e->hi;
    return !stays;
}

static void colour_row(const struct oct_draw_above *above, const float *value, uint32_t n,
                       const uint32_t colours[256], uint32_t *argb)
{
    float lo = (float)above->lo, gain = (float)(255 / (above->hi - above->lo));
    for (uint32_t c = 0; c < n; c++) {
        float level = (value[c] - lo) * gain;
        /* A row that never came is NaN; it gets the background's colour. */
        argb[c] = isnan(value[c]) ? 0xff000000u | RGB_AREA
                                  : colours[level > 0 ? level < 255 ? (unsigned)level : 255u : 0u];
    }
}

enum oct_err oct_draw_above_update(struct oct_draw *draw, struct oct_draw_above *above,
                                   const struct oct_view_enface *e,
                                   const struct oct_view_contrast *c, struct oct_error *err)
{
    struct oct_draw_sheet *sheet = &above->sheet;
    uint32_t colours[256], argb[OCT_VIEW_ENFACE_MOST];
    enum oct_err code = oct_draw_sheet_size(draw, sheet, e->n_columns, e->n_rows, err);
    if (code)
        return code;
    bool all = sheet->serial == 0 || above->of != e || sheet->contrast.gamma != c->gamma ||
               sheet->contrast.palette != c->palette;
    all = take_limits(above, e) || all;
    if (!all && sheet->serial == e->serial)
        return OCT_OK;
    oct_view_contrast_colours(c, colours);
    for (uint32_t row = 0; row < e->n_rows; row++) {
        if (!all && e->row_serial[row] <= sheet->serial)
            continue;
        colour_row(above, oct_view_enface_row(e, row), e->n_columns, colours, argb);
        SDL_UpdateTexture(sheet->texture, &(SDL_Rect){0, (int)row, (int)e->n_columns, 1}, argb,
                          (int)(e->n_columns * sizeof(*argb)));
    }
    sheet->serial = e->serial;
    above->of = e;
    sheet->contrast = *c;
    return OCT_OK;
}

struct oct_view_rect oct_draw_above_fit(const struct oct_draw *draw,
                                        const struct oct_view_model *model,
                                        struct oct_view_rect area, const struct oct_view_enface *e,
                                        double bscans)
{
    const int size = draw->layout.text_px / 3;
    const struct oct_view_rect inner = {area.x + size, area.y, area.w - 2 * size, area.h};
    const bool is_other = model->playback.active && oct_view_model_enface_is_gridded(model) &&
                          e != oct_view_model_enface(model); /* a map, of rows */
    const double proportion = is_other ? NAN : oct_view_model_enface_proportion(model);
    return isfinite(proportion) || model->settings.fit == OCT_FIT_FILL
               ? oct_view_layout_fit(inner, proportion, !isfinite(proportion))
               : oct_view_layout_fit(inner, e->n_lines / (e->n_bscans * bscans), false);
}

/* Where the scan is, with an arrow at each side. */
static void draw_newest(struct oct_draw *draw, struct oct_view_rect r,
                        const struct oct_view_enface *e)
{
    const int size = draw->layout.text_px / 3;
    const double y = r.y + (e->newest_row + 0.5) * r.h / e->n_rows;
    oct_draw_line(draw, r.x, y, r.x + r.w - 1, y, RGB_GOOD, 160);
    oct_draw_box(draw, r.x - size, (int)y - size / 2, size, size, RGB_GOOD);
    oct_draw_box(draw, r.x + r.w, (int)y - size / 2, size, size, RGB_GOOD);
}

/* The way of a B-scan, from a dot at its first A-line on. */
static void draw_way(struct oct_draw *draw, const struct oct_view_model *model,
                     struct oct_view_rect r, const struct oct_scan *scan, uint32_t bscan)
{
    const uint32_t step = scan->n_lines / WAY_PIECES + 1;
    const int size = draw->layout.text_px / 3;
    double um[2], share[2], x = NAN, y = NAN;
    if (scan->pattern == OCT_SCAN_FILE || bscan >= scan->n_bscans)
        return;
    for (uint32_t j = 0; j < scan->n_lines; j += step) {
        oct_scan_position(scan, bscan, j, um);
        if (!oct_view_above_share(model, um, share))
            return;
        const double to_x = r.x + share[0] * r.w, to_y = r.y + share[1] * r.h;
        if (j == 0 && isfinite(to_x))
            oct_draw_box(draw, (int)to_x - size / 2, (int)to_y - size / 2, size, size, RGB_GOOD);
        else if (isfinite(x) && isfinite(to_x))
            oct_draw_mark_line(draw, x, y, to_x, to_y, RGB_GOOD);
        x = to_x;
        y = to_y;
    }
}

/* The line that is being drawn, with its length. */
static void draw_drawn(struct oct_draw *draw, const struct oct_view_model *model,
                       struct oct_view_rect r)
{
    const struct oct_view_scan *s = &model->scan;
    const double x0 = r.x + s->from[0] * r.w, y0 = r.y + s->from[1] * r.h;
    const double x1 = r.x + s->to[0] * r.w, y1 = r.y + s->to[1] * r.h;
    double from[2], to[2];
    char text[32];
    if (!s->has_line || !oct_view_above_um(model, s->from, from) ||
        !oct_view_above_um(model, s->to, to))
        return;
    oct_draw_mark_line(draw, x0, y0, x1, y1, RGB_MEASURE);
    snprintf(text, sizeof(text), "%.1f mm", hypot(to[0] - from[0], to[1] - from[1]) / 1000);
    oct_draw_words_below(draw, r, 1, text, RGB_MEASURE);
}

static void draw_bar(struct oct_draw *draw, const struct oct_view_model *model,
                     struct oct_view_rect r)
{
    const struct oct_view_enface *e = oct_view_model_enface(model);
    double field_um =
        e->n_lines * (oct_view_model_enface_is_gridded(model) ? e->spacing_um
                      : oct_view_above_is_kept(model)         ? model->scan.above.lateral_um
                                                      : oct_view_model_scale(model).lateral_um);
    double um = oct_view_scale_bar_um(field_um / 4);
    int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    int x = r.x + 2 * margin, y = r.y + r.h - 2 * margin;
    char text[32];
    if (!(um > 0) || r.w < 8 * line)
        return;
    oct_view_length_text(um, text, sizeof(text));
    const int length = (int)(um / field_um * r.w);
    oct_draw_mark_line(draw, x, y, x + length, y, RGB_PLAIN);
    oct_draw_label(draw, x + margin, y - line - margin / 2, text, RGB_PLAIN);
}

void oct_draw_above_cross(struct oct_draw *draw, const struct oct_view_model *model,
                          struct oct_view_rect r)
{
    const struct oct_view_playback *p = &model->playback;
    const double y = r.y + (p->wanted + 0.5) / p->file.n_bscans * r.h;
    const double x = r.x + (p->slice_line + 0.5) / p->file.n_lines * r.w;
    oct_draw_mark_line(draw, x, r.y, x, r.y + r.h - 1, RGB_GOOD);
    oct_draw_mark_line(draw, r.x, y, r.x + r.w - 1, y, RGB_GOOD);
}

enum oct_err oct_draw_enface(struct oct_draw *draw, const struct oct_view_model *model,
                             struct oct_error *err)
{
    struct oct_view_rect area = draw->layout.enface;
    const struct oct_view_enface *e = oct_view_model_enface(model);
    struct oct_view_phrase phrase;
    enum oct_err code;
    draw->layout.enface_at = (struct oct_view_rect){area.x, area.y, 0, 0};
    if (area.w == 0)
        return OCT_OK;
    oct_draw_fill(draw, area, RGB_AREA, 255);
    oct_view_enface_text(model, &phrase);
    if (e->n_rows == 0) {
        oct_draw_text(draw, OCT_TEXT_NORMAL, area.x + draw->layout.margin, area.y, phrase.text,
                      oct_draw_tone(phrase.tone));
        return OCT_OK;
    }
    if ((code = oct_draw_above_update(draw, &draw->enface, e, &model->contrast, err)))
        return code;
    const struct oct_view_rect r = oct_draw_above_fit(draw, model, area, e, 1);
    SDL_RenderCopy(draw->renderer, draw->enface.sheet.texture, NULL,
                   &(SDL_Rect){r.x, r.y, r.w, r.h});
    oct_draw_veil_panel(draw, model, r);
    const bool is_gridded = oct_view_model_enface_is_gridded(model);
    if (!is_gridded || !model->playback.active) /* else no place is a B-scan and an A-line */
        draw->layout.enface_at = r;
    if (oct_view_above_is_kept(model))
        draw_way(draw, model, r, &model->daemon.scan, 0);
    else if (is_gridded)
        draw_way(draw, model, r, oct_view_above_scan(model),
                 model->playback.active ? model->playback.wanted : e->newest_bscan);
    else if (model->playback.active)
        oct_draw_above_cross(draw, model, r);
    else
        draw_newest(draw, r, e);
    draw_drawn(draw, model, r);
    draw_bar(draw, model, r);
    oct_draw_label(draw, r.x + draw->layout.margin, r.y, phrase.text, oct_draw_tone(phrase.tone));
    for (size_t i = 0, line = 1; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->draw_enface)
            line += oct_view_overlays[i]->draw_enface(draw, model, r, (int)line);
    return OCT_OK;
}

/* ---- the angiogram ---- */

/* Rows of places that moved, those that follow one another at once. */
static void hatch_gaps(struct oct_draw *draw, const struct oct_view_angiogram *a,
                       struct oct_view_rect r)
{
    const int n = (int)a->enface.n_rows, apart = draw->layout.text_px / 2 + 1;
    for (int first = 0, end; first < n; first = end) {
        end = first + 1;
        if (!a->is_gap[first])
            continue;
        while (end < n && a->is_gap[end])
            end++;
        const int y0 = r.y + (int)((int64_t)r.h * first / n);
        const int y1 = r.y + (int)((int64_t)r.h * end / n);
        const struct oct_view_rect gap = {r.x, y0, r.w, y1 > y0 ? y1 - y0 : 1};
        oct_draw_fill(draw, gap, RGB_AREA, 255);
        oct_draw_hatch(draw, gap, apart / 3 + 1, apart, RGB_WARN, 200);
    }
}

enum oct_err oct_draw_angiogram(struct oct_draw *draw, const struct oct_view_model *model,
                                struct oct_error *err)
{
    const struct oct_view_rect area = draw->layout.angiogram;
    const struct oct_view_angiogram *a = &model->angiogram;
    const struct oct_view_enface *e = &a->enface;
    struct oct_view_phrase lines[2];
    enum oct_err code;
    if (area.w == 0 || e->n_rows == 0)
        return OCT_OK;
    oct_draw_fill(draw, area, RGB_AREA, 255);
    if ((code = oct_draw_above_update(draw, &draw->angiogram, e, &model->contrast, err)))
        return code;
    const struct oct_view_rect r =
        oct_draw_above_fit(draw, model, area, e, fmax(model->daemon.repeats, 1));
    SDL_RenderCopy(draw->renderer, draw->angiogram.sheet.texture, NULL,
                   &(SDL_Rect){r.x, r.y, r.w, r.h});
    hatch_gaps(draw, a, r);
    oct_draw_veil_panel(draw, model, r);
    draw_newest(draw, r, e);
    oct_view_angiogram_text(model, lines);
    oct_draw_label(draw, r.x + draw->layout.margin, r.y, lines[0].text,
                   oct_draw_tone(lines[0].tone));
    if (lines[1].text[0])
        oct_draw_words_below(draw, r, 1, lines[1].text, oct_draw_tone(lines[1].tone));
    return OCT_OK;
}
