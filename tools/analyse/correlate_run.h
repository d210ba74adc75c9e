/* Correlates the pictures of a sequence, a picture a core or batches on a GPU, and hands the
 * results over in order. Memory is that of a batch, however long the sequence. One thread calls. */
#ifndef OCT_TOOLS_CORRELATE_RUN_H
#define OCT_TOOLS_CORRELATE_RUN_H

#include "analysis/correlate/correlate.h"
#include "analysis/correlate/profile.h"
#include "formats/pictures.h"

#include <signal.h>

struct oct_correlate_result {
    struct oct_pictures_info info;
    const char
        *left_out; /* why: then there is no peak, c1d and c2d are NaN, sums 0. NULL: it is not */
    struct oct_ring_peak peak;
    const double *c1d;      /* [max_shift + 1] */
    const float *c2d;       /* [2 max_shift + 1][2 max_shift + 1] */
    const int64_t *sums;    /* the same, with exact; else NULL */
    const double *radius;   /* [max_shift + 1] */
    const uint32_t *shifts; /* [max_shift + 1] */
};

struct oct_correlate_setup {
    struct oct_pictures *pictures;
    struct oct_pictures
        *with; /* g: one picture, or as many as there are f; NULL: each with itself */
    uint32_t max_shift;
    enum oct_correlation_norm norm;
    bool keep_mean, exact;
    double flatten_px; /* 0: not */
    const char *backend, *gpus;
    const volatile sig_atomic_t *cancel;

    /* Called by the thread that called run, in order; what result points at lives for the call. */
    enum oct_err (*take)(void *context, const struct oct_correlate_result *result,
                         struct oct_error *err);
    void *context;
};

/* why: one line, which engine computed. A picture without contrast, or with fewer than 10 % valid
 * pixels, is left out, as is one whose partner is; OCT_E_ARG: all are. Errors name the file, and of
 * several pictures the one at fault; OCT_E_STATE: cancelled. */
enum oct_err oct_correlate_run(const struct oct_correlate_setup *setup, char *why, size_t why_bytes,
                               struct oct_error *err);

#endif
