/* Lengths in a picture: calipers, scale bars, proportions. Pure. */
#ifndef OCT_VIEWER_MODEL_MEASURE_H
#define OCT_VIEWER_MODEL_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a B-scan: A-lines from its left edge, depth pixels from its top. Pixel i reaches from
 * i to i + 1. */
struct oct_view_point {
    double line, depth;
};

/* Micrometres of an A-line and of a depth pixel; NaN: not known. */
struct oct_view_scale {
    double lateral_um, axial_um;
};

/* Whether both spacings are known. */
bool oct_view_proportion_known(double across_um, double down_um);

/* Returns width over height of the tissue in a picture; of its pixels where a spacing is not
 * known. */
double oct_view_proportion(uint32_t n_across, double across_um, uint32_t n_down, double down_um);

/* Micrometres between two places; NaN where a spacing that it needs is not known. */
double oct_view_distance_um(struct oct_view_point a, struct oct_view_point b,
                            struct oct_view_scale scale);

/* "123.4 um (across 100.0, deep 72.3)", or what can be said in A-lines and pixels. */
void oct_view_distance_text(struct oct_view_point a, struct oct_view_point b,
                            struct oct_view_scale scale, char *text, size_t n_bytes);

/* The longest of 1, 2, 5 times a power of ten that is at most `most`; 0 when there is none. */
double oct_view_scale_bar_um(double most_um);

/* "200 um" or "2 mm". */
void oct_view_length_text(double um, char *text, size_t n_bytes);

#endif
