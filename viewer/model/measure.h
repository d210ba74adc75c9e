/* Lengths in a picture: scale bars, proportions, calipers. Pure. */
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

/* Calipers: lengths between two places of a B-scan, numbered. Those of a live picture stay while
 * the pictures go on. Those of a picture that stands (frozen, or played back) belong to it: another
 * picture has its own, and they are there again when it is shown again, as long as they are among
 * the OCT_VIEW_KEPT_CALIPERS last sets. A picture that is frozen begins with a copy of the live
 * ones. Pure. */

#define OCT_VIEW_MOST_CALIPERS 9u
#define OCT_VIEW_KEPT_CALIPERS 24u

struct oct_picture_header;

struct oct_view_caliper {
    bool is_set;
    struct oct_view_point end[2]; /* from, to */
};

/* Number i + 1 is caliper[i]. */
struct oct_view_caliper_set {
    struct oct_view_caliper caliper[OCT_VIEW_MOST_CALIPERS];
    unsigned held; /* what is moved or removed; meaningful while it is set */
};

/* Which picture. While `stands` is false, sets of all pictures of that size are one. */
struct oct_view_calipers_of {
    bool stands;
    char source[256]; /* acquisition or file */
    uint64_t frame_num;
    uint32_t n_lines, depth;
};

/* Anyone reads `shown` and its functions; the rest is measure.c's. A zeroed struct has none. */
struct oct_view_calipers {
    struct oct_view_caliper_set shown;
    struct oct_view_calipers_of of;
    struct oct_view_kept_calipers {
        struct oct_view_calipers_of of;
        struct oct_view_caliper_set set;
        uint64_t turn; /* when it was kept; 0: nothing is */
    } kept[OCT_VIEW_KEPT_CALIPERS];
    uint64_t turn;
};

/* How many are set. */
unsigned oct_view_calipers_count(const struct oct_view_calipers *calipers);

/* The held one; NULL: it is not set. */
const struct oct_view_caliper *oct_view_calipers_held(const struct oct_view_calipers *calipers);

/* Adds one with the lowest free number and holds it. False: all numbers are taken. */
bool oct_view_calipers_add(struct oct_view_calipers *calipers, struct oct_view_point from,
                           struct oct_view_point to);

/* Sets the held one; where it is not set, adds it. */
void oct_view_calipers_move(struct oct_view_calipers *calipers, struct oct_view_point from,
                            struct oct_view_point to);

/* Holds the next one that is set. False: there is none after the held one, and the first that is
 * set is held (none is: 0). */
bool oct_view_calipers_hold_next(struct oct_view_calipers *calipers);

/* Removes the held one, and holds the next; removes all. */
void oct_view_calipers_remove(struct oct_view_calipers *calipers);
void oct_view_calipers_clear(struct oct_view_calipers *calipers);

/* This picture of that acquisition or file is shown now; stands: frozen or played back. Keeps the
 * set of the one before and shows the set of this one. */
void oct_view_calipers_show(struct oct_view_calipers *calipers,
                            const struct oct_picture_header *picture, bool stands,
                            const char *source);

#endif
