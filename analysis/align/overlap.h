/* Where two of several pictures overlap: the shift of the highest ZNCC, over all shifts at which
 * enough of the smaller picture lies on the other. The correlation is of pictures binned until a
 * side is 256 pixels at most; its highest maxima are followed to full resolution, and the best one
 * on request to a fraction of a pixel (subpixel.h).
 *
 *     create -> { set_first -> find ... find } -> destroy
 *
 * One thread at a time. */
#ifndef OCT_ANALYSIS_ALIGN_OVERLAP_H
#define OCT_ANALYSIS_ALIGN_OVERLAP_H

#include "numeric/picture.h"

/* The second picture lies at (dy, dx) of the first: second(p) shows what first(p + d) shows. */
struct oct_overlap {
    double dy, dx;       /* px */
    double score;        /* ZNCC at the whole pixel; NaN: none was found */
    double significance; /* of the binned pictures: oct_match_significance; -1 at the border of what
                            may overlap, where the true maximum may lie beyond */
};

struct oct_overlaps;

/* pictures: [n], as oct_align_prepare leaves them, borrowed until destroy. min_overlap: part of the
 * smaller picture. OCT_E_NO_MEMORY; *overlaps is NULL on error. */
enum oct_err oct_overlaps_create(struct oct_overlaps **overlaps, const struct oct_picture *pictures,
                                 unsigned n, double min_overlap, struct oct_error *err);
void oct_overlaps_destroy(struct oct_overlaps *overlaps); /* NULL is fine */

/* The first picture of the pairs that follow. */
enum oct_err oct_overlaps_set_first(struct oct_overlaps *overlaps, unsigned first,
                                    struct oct_error *err);

/* The best whole-pixel shift of picture `second` on the first. */
enum oct_err oct_overlaps_find(struct oct_overlaps *overlaps, unsigned second,
                               struct oct_overlap *overlap, struct oct_error *err);

/* ZNCC of b at the whole pixel (dy, dx) of a. */
double oct_overlap_score(const struct oct_picture *a, const struct oct_picture *b, double dy,
                         double dx);

/* Adds the fraction of a pixel to an overlap of a and b that is right to the pixel.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_overlap_refine(const struct oct_picture *a, const struct oct_picture *b,
                                struct oct_overlap *overlap, struct oct_error *err);

#endif
