/* The mean of the last B-scans of a window: each is kept as it was added, shifted and weighted, so
 * that it can be taken out again exactly.
 *
 * Sums are of doubles, weights are multiples of 1/4096 and thus exact in floats. What rounding
 * leaves behind when a bright pixel goes does not stay: the sums of a few A-lines are made anew
 * with each B-scan, of all of them within 64. Of this folder alone; one thread. */
#ifndef OCT_ANALYSIS_AVERAGE_WINDOW_H
#define OCT_ANALYSIS_AVERAGE_WINDOW_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a B-scan lies: lines and depths that it is moved by, multiples of 1/64 px. */
struct oct_average_shift {
    double lines, depth;
};

struct oct_average_window {
    uint32_t n_lines, depth; /* M, D */
    uint32_t n_most, n;      /* B-scans that it holds at most; now */
    uint32_t next;           /* place of the next one */
    uint32_t next_sum;       /* A-line of which the sums are made anew next */
    float *frames;           /* [n_most][M][D]: value * weight */
    float *line_weights;     /* [n_most][M]; the weight of a pixel is that of its line times ... */
    float *depth_weights;    /* [n_most][D]; ... that of its depth */
    double *sum;             /* [M][D] */
    float *weight;           /* [M][D] */
    float *scratch; /* [5][D]: the moved A-line, one with a margin of zeros on both sides, and
                                the new weights of depths */
};

/* OCT_E_CONFIG: such a window takes more than a quarter of this machine's memory. */
enum oct_err oct_average_window_check(uint32_t n_lines, uint32_t depth, uint32_t n_most,
                                      struct oct_error *err);

/* Takes memory. Errors of the check, OCT_E_NO_MEMORY. *window is empty then. */
enum oct_err oct_average_window_init(struct oct_average_window *window, uint32_t n_lines,
                                     uint32_t depth, uint32_t n_most, struct oct_error *err);
void oct_average_window_finish(struct oct_average_window *window); /* of an empty one too */

void oct_average_window_clear(struct oct_average_window *window);

/* Adds a B-scan, [M][D], line_valid [M] 0 or 1, moved by a shift; the oldest goes when the window
 * is full. */
void oct_average_window_add(struct oct_average_window *window, const float *values,
                            const uint8_t *line_valid, struct oct_average_shift shift);

/* The mean of one A-line; NaN where nothing lies. */
void oct_average_window_mean(const struct oct_average_window *window, uint32_t line, float *mean);

#endif
