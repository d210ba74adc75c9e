#include "analysis/align/mosaic.h"

#include "analysis/align/matcher.h"
#include "analysis/align/overlap.h"
#include "analysis/align/prepare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- pairs ---- */

/* Scores are of the pictures as they are. */
static enum oct_err find_edges(struct oct_mosaic *m, const struct oct_picture *pictures,
                               struct oct_overlaps *overlaps, oct_mosaic_progress_fn *progress,
                               void *arg, struct oct_error *err)
{
    unsigned k = 0;

    for (unsigned a = 0; m->edges && a < m->n; a++) {
        const bool is_blank = !oct_picture_has_contrast(&pictures[a]);
        enum oct_err e = is_blank ? OCT_OK : oct_overlaps_set_first(overlaps, a, err);
        for (unsigned b = a + 1; !e && b < m->n; b++, k++) {
            if (progress && !progress(arg, k, m->n_edges))
                return oct_fail(err, OCT_E_AGAIN, "cancelled");
            struct oct_overlap found = {.score = NAN, .significance = NAN};
            if (!is_blank && oct_picture_has_contrast(&pictures[b]))
                e = oct_overlaps_find(overlaps, b, &found, err);
            if (found.significance >= OCT_MATCH_LEAST_SIGNIFICANCE)
                found.score = oct_overlap_score(&pictures[a], &pictures[b], found.dy, found.dx);
            if (!e)
                m->edges[k] = (struct oct_mosaic_edge){.a = a,
                                                       .b = b,
                                                       .dy = found.dy,
                                                       .dx = found.dx,
                                                       .score = found.score,
                                                       .significance = found.significance};
        }
        if (e)
            return e;
    }
    return OCT_OK;
}

/* Copies by which pictures are matched; the caller finishes them. */
static struct oct_picture *prepare(const struct oct_picture *pictures, unsigned n, enum oct_err *e,
                                   struct oct_error *err)
{
    struct oct_picture *copies = calloc(n, sizeof(*copies));
    unsigned n_seen = 0;

    if (!copies) {
        *e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", n);
        return NULL;
    }
    for (unsigned i = 0; !*e && i < n; i++) {
        const struct oct_picture *p = &pictures[i];
        const size_t n_pixels = (size_t)p->height * p->width;
        *e = oct_picture_init(&copies[i], p->height, p->width, p->valid != NULL, err);
        if (*e)
            break;
        memcpy(copies[i].pixels, p->pixels, n_pixels * sizeof(float));
        if (p->valid)
            memcpy(copies[i].valid, p->valid, n_pixels);
        n_seen += oct_picture_has_contrast(p);
        *e = oct_align_prepare(&copies[i], err);
    }
    if (!*e && n_seen < 2)
        *e = oct_fail(err, OCT_E_ARG, "fewer than two pictures have contrast");
    return copies;
}

/* ---- the tree ---- */

static bool is_edge(const struct oct_mosaic *m, const struct oct_mosaic_edge *edge)
{
    return edge->score >= m->setup.min_score && edge->significance >= OCT_MATCH_LEAST_SIGNIFICANCE;
}

/* Prim's algorithm from `first`: joins, one by one, the picture with the highest edge to what is
 * there. */
static enum oct_err grow(struct oct_mosaic *m, const struct oct_picture *pictures, unsigned first,
                         bool *placed, struct oct_error *err)
{
    unsigned component = m->n_components++;

    m->places[first] = (struct oct_mosaic_place){
        .component = component, .is_first = true, .with = first, .score = NAN};
    placed[first] = true;
    for (;;) {
        struct oct_mosaic_edge *best = NULL;
        for (unsigned k = 0; k < m->n_edges; k++) {
            struct oct_mosaic_edge *edge = &m->edges[k];
            bool a = placed[edge->a] && m->places[edge->a].component == component;
            bool b = placed[edge->b] && m->places[edge->b].component == component;
            if (a != b && is_edge(m, edge) && (!best || edge->score > best->score))
                best = edge;
        }
        if (!best)
            return OCT_OK;
        struct oct_overlap fine = {.dy = best->dy, .dx = best->dx};
        enum oct_err e = oct_overlap_refine(&pictures[best->a], &pictures[best->b], &fine, err);
        if (e)
            return e;
        best->dy = fine.dy;
        best->dx = fine.dx;
        unsigned from = placed[best->a] ? best->a : best->b,
                 to = from == best->a ? best->b : best->a;
        double sign = from == best->a ? 1 : -1;
        best->in_tree = true;
        placed[to] = true;
        m->places[to] = (struct oct_mosaic_place){.y = m->places[from].y + sign * best->dy,
                                                  .x = m->places[from].x + sign * best->dx,
                                                  .component = component,
                                                  .with = from,
                                                  .score = best->score};
    }
}

/* Numbers the components anew: 0 is the one of most pictures, the earlier one of two alike. */
static void put_largest_first(struct oct_mosaic *m)
{
    unsigned largest = 0;

    m->n_placed = 0;
    for (unsigned c = 0; c < m->n_components; c++) {
        unsigned n = 0;
        for (unsigned i = 0; i < m->n; i++)
            n += m->places[i].component == c;
        if (n > m->n_placed) {
            m->n_placed = n;
            largest = c;
        }
    }
    for (unsigned i = 0; i < m->n; i++) {
        unsigned *c = &m->places[i].component;
        *c = *c == largest ? 0 : *c < largest ? *c + 1 : *c;
    }
}

static enum oct_err place(struct oct_mosaic *m, const struct oct_picture *pictures,
                          struct oct_error *err)
{
    bool *placed = calloc(m->n, sizeof(bool));
    enum oct_err e = OCT_OK;

    if (!placed)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", m->n);
    for (unsigned i = 0; !e && i < m->n; i++)
        if (!placed[i])
            e = grow(m, pictures, i, placed, err);
    free(placed);
    if (!e)
        put_largest_first(m);
    return e;
}

void oct_mosaic_finish(struct oct_mosaic *mosaic)
{
    free(mosaic->places);
    free(mosaic->edges);
    *mosaic = (struct oct_mosaic){0};
}

enum oct_err oct_mosaic_find(struct oct_mosaic *m, const struct oct_picture *pictures, unsigned n,
                             const struct oct_mosaic_setup *setup, oct_mosaic_progress_fn *progress,
                             void *arg, struct oct_error *err)
{
    struct oct_overlaps *overlaps = NULL;
    enum oct_err e = OCT_OK;

    *m = (struct oct_mosaic){.n = n, .n_edges = n > 1 ? n * (n - 1) / 2 : 0, .setup = *setup};
    if (n < 2)
        return oct_fail(err, OCT_E_ARG, "a mosaic needs two pictures at least");
    m->setup.min_overlap = setup->min_overlap > 0 ? setup->min_overlap : 0.125;
    m->setup.feather_px = setup->feather_px ? setup->feather_px : 64;
    m->places = calloc(n, sizeof(*m->places));
    m->edges = calloc(m->n_edges, sizeof(*m->edges));
    if (!m->places || !m->edges)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", n);
    struct oct_picture *prepared = e ? NULL : prepare(pictures, n, &e, err);
    if (!e)
        e = oct_overlaps_create(&overlaps, prepared, n, m->setup.min_overlap, err);
    if (!e)
        e = find_edges(m, pictures, overlaps, progress, arg, err);
    if (!e)
        e = place(m, pictures, err);
    oct_overlaps_destroy(overlaps);
    for (unsigned i = 0; prepared && i < n; i++)
        oct_picture_finish(&prepared[i]);
    free(prepared);
    if (e)
        oct_mosaic_finish(m);
    return e;
}
