/* The B-scans of a volume onto each other: a shift for each that undoes the eye's motion between
 * B-scans, dy along the A-lines (lateral) and dx along the depth (axial).
 *
 * Each B-scan is registered (rigid.h) onto a mean of the last 4 that registered, as moved by their
 * own shifts; weights halve from one to the one before, as the nearest shares most of its speckle.
 * What is moved is always the B-scan as it was read.
 *
 * What does not fit is left out, and the B-scans behind it go on from those before it: a blink
 * loses nothing of the drift. Four B-scans in a row that fit each other but nothing before them are
 * a new place; they take the last known shift.
 *
 * A slope of the tissue from B-scan to B-scan cannot be separated from motion: slow parts of it are
 * undone with the motion. Without `lateral` the shift along the A-lines is 0, and dx is what makes
 * the layers go on as they are. */
#ifndef OCT_ANALYSIS_ALIGN_VOLUME_H
#define OCT_ANALYSIS_ALIGN_VOLUME_H

#include "analysis/align/rigid.h"

#define OCT_VOLUME_NEIGHBOURS 4u

enum oct_volume_fate {
    OCT_VOLUME_USED,
    OCT_VOLUME_BLANK,   /* half of the A-lines have a tenth of the others' contrast: a blink */
    OCT_VOLUME_NO_FIT,  /* no match, or below min_score */
    OCT_VOLUME_NEW,     /* registered, but not onto those before: see above */
    OCT_VOLUME_SKIPPED, /* as asked for */
};
const char *oct_volume_fate_text(enum oct_volume_fate fate);

struct oct_volume_shift {
    double dy, dx;       /* px; NaN: neither USED nor NEW */
    double sd_dy, sd_dx; /* px, of the step from those before it (rigid.h); NaN: not known */
    double score;        /* ZNCC with the mean; NaN: of the first one, and of BLANK and SKIPPED */
    enum oct_volume_fate fate;
};

struct oct_volume_source {
    void *context;
    uint32_t n_bscans;
    /* Makes *picture, which the caller finishes; in any order. */
    enum oct_err (*read)(void *context, uint32_t bscan, struct oct_picture *picture,
                         struct oct_error *err);
    void (*progress)(void *context, uint64_t done, uint64_t all); /* NULL: none */
};

struct oct_volume_setup {
    uint32_t height, width; /* A-lines, depth pixels */
    bool lateral;
    uint32_t max_dy, max_dx; /* between neighbours; 0: a third of the side */
    double min_score;        /* beside what struct oct_shift calls a match */
    const uint8_t *skip;     /* [n_bscans], 1: leave out; NULL: none */
    const char *backend, *gpus;
    unsigned deadline_ms;
};

/* shifts: [n_bscans]. OCT_E_ARG: fewer than two B-scans registered; else as the source and rigid.h.
 * *running, which may be NULL: "cpu" or "cuda". */
enum oct_err oct_volume_register(const struct oct_volume_setup *setup,
                                 const struct oct_volume_source *source,
                                 struct oct_volume_shift *shifts, const char **running,
                                 struct oct_error *err);

#endif
