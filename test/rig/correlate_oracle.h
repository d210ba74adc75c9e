/* Correlations by their definition: direct sums over the overlap, in double precision. Slow, one
 * shift at a time. Definitions as in analysis/correlate/correlate.h. */
#ifndef OCT_TEST_RIG_CORRELATE_ORACLE_H
#define OCT_TEST_RIG_CORRELATE_ORACLE_H

#include "analysis/correlate/correlate.h"

/* The sums over p with f(p) and g(p + d) valid. */
struct oct_oracle_sums {
    double n, f, g, ff, gg, fg;
};
struct oct_oracle_sums oct_oracle_sums(const struct oct_picture *f, const struct oct_picture *g,
                                       int dy, int dx);

/* The same sum of products of integers. */
int64_t oct_oracle_integer(const struct oct_picture *f, const struct oct_picture *g, int dy,
                           int dx);

/* C at one shift; *n: N there. most_n: the largest N of the window, for zncc. g may be f. */
double oct_oracle_correlation(const struct oct_picture *f, const struct oct_picture *g,
                              const struct oct_correlator_setup *setup, double most_n, int dy,
                              int dx, double *n);

/* Counts the valid pairs at all shifts. */
double oct_oracle_most_n(const struct oct_picture *f, const struct oct_picture *g,
                         const struct oct_correlator_setup *setup);

/* Pictures, of integers but for the last two; the same seed gives the same pixels. */
enum oct_oracle_kind {
    OCT_ORACLE_U8,       /* noise, 0 .. 255 */
    OCT_ORACLE_U8_FLAT,  /* 250 .. 255 */
    OCT_ORACLE_U16,      /* noise, 0 .. 65535 */
    OCT_ORACLE_U16_FLAT, /* 60000 +- 50 */
    OCT_ORACLE_BLOBS,    /* smooth, f32 */
    OCT_ORACLE_DB,       /* 10 log10 of speckle about a slope, f32 */
    OCT_ORACLE_N_KINDS,
};
void oct_oracle_picture(struct oct_picture *picture, uint32_t height, uint32_t width,
                        enum oct_oracle_kind kind, uint32_t seed);

/* Masks a fifth of the pixels, one by one, and a rectangle; what is masked is NaN. */
void oct_oracle_mask(struct oct_picture *picture, uint32_t seed);

/* Numbers from 0 to 2^24 - 1. */
uint32_t oct_oracle_random(uint32_t *state);

#endif
