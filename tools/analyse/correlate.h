/* octctl correlate: pictures in, C of every shift and the mean distance of bright features out.
 * Memory is that of a batch of pictures, however long the sequence. One thread. */
#ifndef OCT_TOOLS_ANALYSE_CORRELATE_H
#define OCT_TOOLS_ANALYSE_CORRELATE_H

#include "analysis/correlate/correlate.h"
#include "analysis/correlate/profile.h"
#include "formats/pictures.h"
#include "tools/analyse/job.h"
#include "tools/options.h"

/* What becomes of one picture. */
struct oct_correlate_result {
    struct oct_pictures_info info;
    const char
        *left_out; /* why: then there is no peak, c1d and c2d are NaN, sums 0. NULL: it is not */
    struct oct_ring_peak peak;
    double *c1d;   /* [max_shift + 1] */
    float *c2d;    /* [2 max_shift + 1][2 max_shift + 1] */
    int64_t *sums; /* the same, with --exact; else NULL */
};

/* Of it what is kept. */
struct oct_correlate_row {
    uint64_t frame, time_ns;
    double time_s; /* since the first picture; NaN: unknown */
    const char *path;
    char *left_out;
    struct oct_ring_peak peak;
    double r_max_um; /* NaN: unknown, or pixels are no squares */
};

/* R_max = offset + slope t, by least squares, over time where it is known. */
struct oct_correlate_fit {
    const char *over; /* "time_s", "frame" */
    uint64_t n;       /* pictures with a ring; fewer than 2: no fit, all are NaN */
    double slope, offset, r2;
};

/* Options with words, of a parameter table. */
struct oct_correlate_choice {
    enum oct_correlation_norm norm;
    int mean, fit; /* 1: none; linear */
};

struct oct_correlate_options {
    uint64_t max_shift; /* UINT64_MAX: not given */
    struct oct_param_texts choice;
    const char *frames, *slab, *with, *mask, *pixel_um, *csv, *png;
    double invalid, flatten; /* NaN: not given */
    bool exact, c2d;
    struct oct_job_options job;
};

struct oct_correlate_job {
    struct oct_job job;
    struct oct_correlate_options given;
    struct oct_correlate_choice choice;
    struct oct_pictures_options options;
    struct oct_pictures *pictures;
    struct oct_pictures
        *with; /* g: one picture, or as many as there are f; NULL: each with itself */

    const char *source; /* the first path */
    uint64_t n;         /* pictures */
    uint32_t height, width, max_shift;
    double um[2]; /* of the first picture: dy, dx */
    const char *engine;
    char why[256]; /* `engine` */

    double *radius;                 /* [max_shift + 1] */
    uint32_t *shifts;               /* [max_shift + 1] */
    double *c1d;                    /* [max_shift + 1] of the first picture */
    struct oct_correlate_row *rows; /* [n] */
    struct oct_correlate_fit fit;

    struct oct_results *results; /* OUT.h5, which grows with the pictures; NULL: none */
    unsigned h5_c1d, h5_c2d, h5_sums;
};

/* Correlates all pictures, a picture a core or batches on a GPU, and calls oct_correlate_add for
 * each, in order. A picture without contrast, or with fewer than 10 % valid pixels, is left out, as
 * is one whose partner is; OCT_E_ARG: all are. Errors name the file, and of several pictures the
 * one at fault; OCT_E_STATE: cancelled. */
enum oct_err oct_correlate_run(struct oct_correlate_job *c, struct oct_error *err);

/* What the result points at lives for the call. */
enum oct_err oct_correlate_add(struct oct_correlate_job *c,
                               const struct oct_correlate_result *result, struct oct_error *err);

#endif
