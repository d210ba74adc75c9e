/* The live average of B-scans: the registered mean of the last N, one image a B-scan; or, where the
 * scanner repeats each place (scan.repeats), the mean of each block of N, one image a block.
 *
 * Input: values, dB or counts^2. Result: "average", [M][D], of the quantity and the sample type of
 * the pictures; u8 with the newest picture's lo and hi, so that both look alike side by side.
 * Intensity is averaged (domain linear), or its decibels (db), which the noise floor biases
 * (Baumann 2019). A value that is no number counts as no light. What no B-scan of the window
 * covers is NaN, u8: 0. Beside the pixels (struct oct_image_form):
 *
 *   averaged   B-scans in the mean
 *   rejected   B-scans left out so far
 *   resets     times that the window began anew
 *   score      of the newest B-scan: its correlation with the mean, -1 .. 1; NaN: none
 *   shift_px   of the newest B-scan, along A-lines and along depth: what moved it onto the mean;
 *              NaN: it was left out
 *
 * Registration (analysis/align/rigid.h) of binned pictures: the logarithm of the mean intensity of
 * a bin, prepared as all that is matched (analysis/align/prepare.h). The reference is the window's
 * mean. Shifts are taken in 1/64 px, so that weights add up exactly; pixels are shifted by linear
 * interpolation of intensity, and one that a B-scan does not cover, or of a line that never came,
 * has no weight.
 *
 * A B-scan is left out when it is no match (struct oct_shift: a blink, a jump), when its score is
 * below min_score or its shift beyond max_shift_px, or when more than a quarter of its lines is
 * missing. A window of one B-scan that the next one does not match begins anew with that next one:
 * which of the two is bad cannot be known. The window begins anew with an acquisition, after
 * OCT_AVERAGE_MOST_REJECTED B-scans in a row that were left out, and at a flyback: when the volume
 * changes (of more than one B-scan) and the B-scan does not match the mean, or scores less than 0.7
 * of the one before. So a line scan, which stays where it is, goes on over the end of a volume.
 * Without registration every flyback begins it anew. Neighbours of a raster are averaged like
 * others, as far as they match: the average is then of neighbouring places.
 *
 * Memory: 4 bytes a pixel for each B-scan of the window (none for those of a block), and 16 a
 * pixel. With N = 1 the analysis is at rest. Speed: see octbench average. */
#ifndef OCT_ANALYSIS_AVERAGE_AVERAGE_H
#define OCT_ANALYSIS_AVERAGE_AVERAGE_H

#include "analysis/analysis.h"

#define OCT_AVERAGE_MOST_BSCANS 256u
#define OCT_AVERAGE_MOST_REJECTED 8u

enum oct_average_register { OCT_AVERAGE_RIGID, OCT_AVERAGE_AS_THEY_COME };
enum oct_average_domain { OCT_AVERAGE_LINEAR, OCT_AVERAGE_DB };

/* Values of frame->numbers. */
enum oct_average_number {
    OCT_AVERAGE_AVERAGED,
    OCT_AVERAGE_REJECTED,
    OCT_AVERAGE_RESETS,
    OCT_AVERAGE_SCORE,
    OCT_AVERAGE_SHIFT_LINES,
    OCT_AVERAGE_SHIFT_DEPTH,
    OCT_AVERAGE_N_NUMBERS
};

struct oct_average_settings {
    uint32_t bscans;  /* of the window; 1: at rest, unless repeats is above 1 */
    uint32_t repeats; /* of one place; above 1: blocks of so many; fixed at create */
    enum oct_average_register registration;
    double max_shift_px;
    double min_score;
    enum oct_average_domain domain;
    bool record;
};

extern const struct oct_params oct_average_params;

/* OCT_E_CONFIG: settings that cannot be, for B-scans of that size on this machine: create and
 * configure refuse them. Any thread. */
enum oct_err oct_average_check(const struct oct_average_settings *settings, uint32_t n_lines,
                               uint32_t depth, struct oct_error *err);

extern const struct oct_analysis_ops oct_average_cpu;

#endif
