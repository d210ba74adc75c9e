/* Where the tissue lies in a picture, and how far it stands above the noise: from the picture
 * itself. Pure.
 *
 * At most 64 A-lines are looked at, in 16 groups of neighbours, and depths in at most 128 bins. A
 * cell is the mean intensity of a group's pixels in a bin, in decibels; the floor is the mean of
 * the darkest quarter of the depths (each over all A-lines). Tissue is the heaviest run, without a
 * gap of more than 12 % of the depth, of cells that stand above the floor by 5 standard deviations
 * of the dark cells (at most what noise alone gives) and by a quarter of what the group's 8
 * brightest cells do. Fewer than three of them are a line and no tissue. */
#ifndef OCT_VIEWER_MODEL_SIGHT_H
#define OCT_VIEWER_MODEL_SIGHT_H

#include "viewer/model/picture.h"

#include <stdbool.h>

struct oct_view_sight {
    double covered;     /* share of the groups in which there is tissue */
    double signal_db;   /* the brightest cells of each group above the floor, mean of all groups; a
                         group without tissue counts 0 */
    double top, bottom; /* of the tissue, shares of the depth: a fifth of the groups begin higher, a
                           fifth end lower. bottom is that of the bright layers (the RPE), as the
                           choroid fades far below; 0 and 1: cut off. NaN: there is none */
};

/* log: pixels are dB, else counts^2. False: the picture has no finite value, or less than 16
 * A-lines or depths; then *sight is of no tissue. */
bool oct_view_sight_of(const struct oct_view_picture *picture, bool log,
                       struct oct_view_sight *sight);

#endif
