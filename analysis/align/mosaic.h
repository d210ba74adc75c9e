/* Mosaics: pictures of one tissue that overlap, of any sizes and in any order, are put into one.
 * Only translation is modelled.
 *
 * Every pair is correlated by ZNCC (analysis/correlate/correlate.h) over all shifts at which
 * enough of the smaller picture overlaps, binned until a side is 256 pixels at most. The highest
 * maxima are followed to full resolution, the best one of the pair to a fraction of a pixel
 * (subpixel.h). The pairs whose score stands out of those of all their shifts
 * (OCT_MATCH_LEAST_SIGNIFICANCE) are the edges of a graph. A maximum spanning tree of the graph by
 * score places the pictures, so that a weak overlap is used only where there is no stronger way.
 * Pictures that no edge connects stay in components of their own. Pictures are matched as
 * oct_align_prepare makes them; scores and fractions of a pixel are of the pictures as they are.
 *
 * Blending averages with weights that fall linearly towards a picture's border, so that seams do
 * not show. Pictures are moved once, by linear interpolation, from what they were.
 *
 * Any thread; different mosaics are independent. */
#ifndef OCT_ANALYSIS_ALIGN_MOSAIC_H
#define OCT_ANALYSIS_ALIGN_MOSAIC_H

#include "numeric/picture.h"

struct oct_mosaic_setup {
    double min_overlap;  /* part of the smaller picture; 0: an eighth */
    double min_score;    /* of an edge, beside that */
    uint32_t feather_px; /* over which weights rise from the border; 0: 64 */
};

/* Picture b lies at (dy, dx) of picture a: b(p) shows what a(p + d) shows. */
struct oct_mosaic_edge {
    unsigned a, b;       /* a < b */
    double dy, dx;       /* px */
    double score;        /* ZNCC at the whole pixel; NaN: none was found */
    double significance; /* as of struct oct_overlap */
    bool in_tree;
};

struct oct_mosaic_place {
    double y, x; /* px, of the pixel (0, 0), from that of the first picture of the component */
    unsigned component; /* 0: the largest, which is what is blended */
    bool is_first;      /* of its component, in the order of input: at (0, 0) */
    unsigned with;      /* the neighbour in the tree that placed it; itself: is_first */
    double score;       /* of that edge; NaN: is_first */
};

struct oct_mosaic {
    unsigned n, n_edges, n_components, n_placed; /* n_edges: all pairs; n_placed: of component 0 */
    struct oct_mosaic_place *places;             /* [n] */
    struct oct_mosaic_edge *edges;               /* [n_edges] */
    struct oct_mosaic_setup setup;
};

/* Called before each pair of the coarse search; false cancels. */
typedef bool oct_mosaic_progress_fn(void *arg, unsigned done, unsigned of);

/* Finds the places of n >= 2 pictures; one without contrast stays alone. OCT_E_ARG: too few of the
 * others; OCT_E_NO_MEMORY; OCT_E_AGAIN: cancelled. On error *mosaic is empty. progress may be
 * NULL. */
enum oct_err oct_mosaic_find(struct oct_mosaic *mosaic, const struct oct_picture *pictures,
                             unsigned n, const struct oct_mosaic_setup *setup,
                             oct_mosaic_progress_fn *progress, void *arg, struct oct_error *err);
void oct_mosaic_finish(struct oct_mosaic *mosaic); /* of an empty one too */

/* Blends component 0. *canvas: the average, NaN where no picture lies (masked there); *weight:
 * [height][width], sum of weights, free() releases it. *origin_y, *origin_x: where pixel (0, 0) of
 * the first picture lies in the canvas. OCT_E_ARG: a side above OCT_PICTURE_MOST_SIDE;
 * OCT_E_NO_MEMORY. */
enum oct_err oct_mosaic_blend(const struct oct_mosaic *mosaic, const struct oct_picture *pictures,
                              struct oct_picture *canvas, float **weight, double *origin_y,
                              double *origin_x, struct oct_error *err);

#endif
