/* Where the tissue lies in a picture, and how far it stands above the noise: from the picture
 * itself. Pure.
 *
 * At most 64 A-lines are looked at, in 16 groups of neighbours, and depths in at most 128 bins. A
 * cell is the mean intensity of a group's pixels in a bin, in decibels; the floor is the mean of
 * the darkest quarter of the depths (each over all A-lines). Tissue is the heaviest run, without a
 * gap of more than 12 % of the depth, of cells that stand above the floor by 5 standard deviations
 * of the dark cells (at most what noise alone gives) and by a quarter of what the group's 8
 * brightest cells do. Fewer than three of them are a line and no tissue. */
#ifndef OCT_ANALYSIS_QUALITY_SIGHT_H
#define OCT_ANALYSIS_QUALITY_SIGHT_H

#include "pipeline/plan/geometry.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_sight {
    double covered;     /* share of the groups in which there is tissue */
    double signal_db;   /* the brightest cells of each group above the floor, mean of all groups; a
                         group without tissue counts 0 */
    double top, bottom; /* of the tissue, shares of the depth: a fifth of the groups begin higher, a
                           fifth end lower. bottom is that of the bright layers (the RPE), as the
                           choroid fades far below; 0 and 1: cut off. NaN: there is none */
};

struct oct_sight_picture {
    const void *pixels; /* [n_lines][depth], u8 or f32 by type; NaN: nothing is there */
    enum oct_sample_type type;
    uint32_t n_lines, depth;
    double lo, hi; /* what 0 and 255 of u8 are */
    bool log;      /* pixels are dB, else counts^2 */
};

/* False: the picture has no finite value, or less than 16 A-lines or depths; then *sight is of no
 * tissue. */
bool oct_sight_of(const struct oct_sight_picture *picture, struct oct_sight *sight);

/* ---- how good that is ----
 *
 * Two of the parts of the index of quality, 10 times their product, which octview shows
 * (viewer/model/guide.h) and octctl report prints:
 *
 *   signal   (signal_db - 2) / 20, cut off at 0 and 1
 *   place    1 between the lines, 0 beyond 85 % of the way to the edge */
double oct_sight_signal(const struct oct_sight *sight);

/* The lines between which tissue should lie, as shares of the depth. */
#define OCT_SIGHT_UPPER 0.10
#define OCT_SIGHT_LOWER 0.60

struct oct_sight_place {
    double upper, lower; /* the lines, further apart for tissue that needs more room */
    double off;          /* of the depth: by how much the tissue lies too low; below 0: too high */
    double part;         /* 0..1; NaN, as off: there is too little tissue to know */
};
struct oct_sight_place oct_sight_place(const struct oct_sight *sight);

#endif
