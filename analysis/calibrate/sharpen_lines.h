/* The A-lines that are sharpened, as analytic signals over k, and one trial of them (sharpen.h).
 * One thread at a time. */
#ifndef OCT_ANALYSIS_CALIBRATE_SHARPEN_LINES_H
#define OCT_ANALYSIS_CALIBRATE_SHARPEN_LINES_H

#include "analysis/calibrate/sharpen.h"

#include <fftw3.h>

/* Lines k, k + N_GROUPS, ... are group k. */
#define OCT_SHARPEN_N_GROUPS 4u

struct oct_sharpen_lines {
    struct oct_plan *plan; /* interpolation = nufft */
    uint32_t n_depth;      /* P2/4: points over k, depths */
    uint32_t first, last;  /* depths that count */
    uint32_t most, n;      /* lines there is room for, and that are there */
    double *t;             /* [n_depth] of sharpen.h, at each point over k */
    float (*signal)[2];    /* [most][n_depth] */
    float *x;              /* [N + n_wrap] */
    double *mean;          /* [N] */
    fftwf_complex *grid, *depth, *turned, *phase;
    fftwf_plan spread, back, forward;
};

/* The sums that a sharpness is made of, a group each. */
struct oct_sharpen_sums {
    double i[OCT_SHARPEN_N_GROUPS], i2[OCT_SHARPEN_N_GROUPS], n[OCT_SHARPEN_N_GROUPS];
};

/* finish is right after a failure too, and on zeroed memory. */
enum oct_err oct_sharpen_lines_init(struct oct_sharpen_lines *lines,
                                    const struct oct_sharpen_setup *setup, struct oct_error *err);
void oct_sharpen_lines_finish(struct oct_sharpen_lines *lines);

/* Adds at most n_keep lines of a B-scan, evenly spread. Returns how many were left out for a sample
 * of at least `limit` (0: none). */
uint32_t oct_sharpen_lines_add(struct oct_sharpen_lines *lines, const uint16_t *spectra,
                               const uint8_t *line_valid, uint32_t n_keep, uint32_t limit);

/* The phase of all lines until the next call. */
void oct_sharpen_lines_turn(struct oct_sharpen_lines *lines, const double b[2]);

/* The line's complex depths [n_depth] with that phase; valid until the next call. */
const fftwf_complex *oct_sharpen_lines_depths(struct oct_sharpen_lines *lines, uint32_t line);

/* Sums over every `step`-th line of each group, with that phase. */
void oct_sharpen_lines_sum(struct oct_sharpen_lines *lines, uint32_t step,
                           struct oct_sharpen_sums *sums);

/* S of one group, or of all (group = N_GROUPS). NaN without light. */
double oct_sharpen_of(const struct oct_sharpen_sums *sums, unsigned group);

#endif
