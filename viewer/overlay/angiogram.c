/* The angiogram of octd, its rows that moved, and its slab: in words, on request, and as lines on
 * the B-scan. */
#include "analysis/flow/slab.h"
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_PLACES 1e9

/* ---- what is kept ---- */

static bool has_any(const float *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(row[i]))
            return true;
    return false;
}

/* The first row of an image that falls on row r of those that are kept. */
static uint32_t first_of(uint32_t r, const struct oct_view_enface *e)
{
    return (uint32_t)(((uint64_t)r * e->n_bscans + e->n_rows - 1) / e->n_rows);
}

/* Rows up to the newest one that have no flow are gaps; those behind it are of the volume
 * before. */
static void find_gaps(struct oct_view_angiogram *a, const struct oct_view_image *image)
{
    const struct oct_view_enface *e = &a->enface;
    const size_t n = e->n_lines;
    /* Of places that were lost none is counted, but rows behind them say so. */
    const double n_places = a->n_places > 0 ? fmin(a->n_places, e->n_bscans) : 0;
    uint32_t end =
        image->header.whole ? e->n_rows : (uint32_t)(n_places * e->n_rows / fmax(e->n_bscans, 1));
    bool came[OCT_VIEW_ENFACE_MOST] = {false};
    for (uint32_t r = 0; r < e->n_rows; r++) {
        for (uint32_t i = first_of(r, e); i < first_of(r + 1, e) && !came[r]; i++)
            came[r] = has_any((const float *)image->values + i * n, e->n_lines);
        end = came[r] && r + 1 > end ? r + 1 : end;
    }
    for (uint32_t r = 0; r < end; r++)
        a->is_gap[r] = !came[r] && a->n_moved > 0;
    a->enface.newest_row = end > 0 ? end - 1 : 0;
}

void oct_view_angiogram_set(struct oct_view_angiogram *a, const struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;
    const struct oct_view_enface before = a->enface;
    const double n_places = oct_image_header_number(h, "places", 0);
    const double n_moved = oct_image_header_number(h, "moved", 0);
    if (oct_view_enface_check(h, NULL))
        return;
    oct_view_enface_set(&a->enface, image);
    if (before.forget || a->enface.n_bscans != before.n_bscans ||
        a->enface.n_lines != before.n_lines)
        memset(a->is_gap, 0, sizeof(a->is_gap));
    a->n_places = n_places >= 0 && n_places <= MOST_PLACES ? n_places : NAN;
    a->n_moved = n_moved >= 0 && n_moved <= MOST_PLACES ? n_moved : NAN;
    if (a->enface.n_bscans == h->dims[0] && a->enface.n_lines == h->dims[1])
        find_gaps(a, image);
}

bool oct_view_model_has_angiogram(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, "angiogram");
    const bool is_off = d->reachable && d->analyses_told && (!row || row->at_rest);
    return (model->settings.flow || model->settings.velocity) && !model->playback.active &&
           model->angiogram.enface.n_rows > 0 && !is_off;
}

/* ---- words ---- */

void oct_view_angiogram_text(const struct oct_view_model *model, struct oct_view_phrase lines[2])
{
    const struct oct_view_angiogram *a = &model->angiogram;
    const char *slab = model->daemon.flow.slab;
    const uint64_t came_ns = a->enface.arrival_ns;
    oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "angiogram%s%s", slab[0] ? ", " : "", slab);
    if (oct_view_enface_is_late(model, came_ns))
        oct_view_phrase_set(&lines[0], OCT_TONE_WARN, "angiogram: none came for %.0f s",
                            (double)(model->now_ns - came_ns) / 1e9);
    oct_view_phrase_set(&lines[1], OCT_TONE_WARN, "%s", "");
    if (a->n_moved > 0)
        oct_view_phrase_set(&lines[1], OCT_TONE_WARN, "%.0f of %.0f places moved", a->n_moved,
                            a->n_places);
}

/* ---- slabs ---- */

const char *oct_view_slab_of(enum oct_view_action action)
{
    static const char *const names[] = {"superficial", "deep", "avascular", "choriocapillaris"};
    return action >= OCT_ACTION_SUPERFICIAL && action <= OCT_ACTION_CHORIOCAPILLARIS
               ? names[action - OCT_ACTION_SUPERFICIAL]
               : NULL;
}

bool oct_view_angiogram_apply(struct oct_view_model *model, enum oct_view_action action)
{
    const char *slab = oct_view_slab_of(action);
    if (!slab)
        return false;
    oct_view_model_wish(model, OCT_WISH_FLOW_SLAB,
                        strcmp(model->daemon.flow.slab, slab) == 0 ? "" : slab);
    return true;
}

/* The slab's limits over the B-scan: of depths between layers where those are known of it. */
static void draw_slab(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_rect seen = oct_draw_layout(draw)->picture;
    const struct oct_view_layers *l = &model->layers;
    const double um = model->daemon.axial_um;
    const float *position[OCT_N_LAYERS] = {NULL};
    struct oct_flow_slab slab;
    if (!oct_view_model_has_angiogram(model) || !oct_view_model_has_flow(model) ||
        oct_flow_slab_parse(&slab, model->daemon.flow.slab, NULL) ||
        slab.kind == OCT_FLOW_SLAB_WHOLE)
        return;
    if (oct_view_model_has_layers(model) && l->n_lines == h->n_lines && um > 0)
        memcpy(position, l->position, sizeof(position));
    else if (slab.kind == OCT_FLOW_SLAB_LAYERS)
        return;
    const struct oct_view_rectf p = oct_view_overlay_place(draw, model, &model->flow.of);
    const double dx = p.w / h->n_lines, dy = p.h / h->depth;
    oct_draw_clip(draw, &seen);
    for (uint32_t j = 0; j < h->n_lines; j++) {
        uint32_t first, end;
        oct_flow_slab_span(&slab, h->depth, um, position, j, &first, &end);
        for (int i = 0; i < 2 && end > first; i++) {
            const double y = p.y + (i ? end : first) * dy;
            oct_draw_line(draw, p.x + j * dx, y, p.x + (j + 1) * dx - 1, y, RGB_GOOD, 160);
        }
    }
    oct_draw_clip(draw, NULL);
}

/* ---- the table ---- */

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    oct_view_angiogram_set(&model->angiogram, image);
}

static bool wanted(const struct oct_view_model *model)
{
    return model->settings.arrangement != OCT_ARRANGEMENT_ALONE &&
           (model->settings.flow || model->settings.velocity);
}

const struct oct_view_overlay oct_view_overlay_angiogram = {
    .topic = "angiogram",
    .check = oct_view_enface_check,
    .wanted = wanted,
    .take = take,
    .draw = draw_slab,
};
