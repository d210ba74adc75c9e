/* The work of octctl calibrate kmap: recordings of a mirror in, k map, dispersion and the widths of
 * all mirrors out. One thread. */
#ifndef OCT_TOOLS_CALIBRATE_KMAP_RUN_H
#define OCT_TOOLS_CALIBRATE_KMAP_RUN_H

#include "analysis/calibrate/kmap.h"
#include "analysis/calibrate/peak.h"
#include "config/config.h"

#include <signal.h>

#define OCT_KMAP_MOST_AXIAL_ERROR 0.01 /* beyond it positions give no axial scale */

/* A recording, and its A-lines reconstructed. */
struct oct_kmap_file {
    const char *path;
    uint32_t n_lines;
    uint16_t *lines;       /* [n_lines][N], of which all came; owned, as all that follows */
    float *before;         /* [depth] counts^2, the mean over the lines */
    float *after;          /* alike */
    double before_fwhm_px; /* between the outermost halves; NaN: none */
    double before_px;      /* their middle */
    struct oct_peak peak;  /* after; of a mirror on the other side with theta turned around */
    double limit_px;       /* what its own amplitude allows */
    double position_um;    /* as given; NaN */
    double off_um;         /* from the straight line through all positions; NaN */
};

struct oct_kmap_run {
    /* Given. */
    const struct oct_config *config;
    const char *const *paths; /* [n] */
    uint32_t n;
    const double *positions_um;     /* [n]; NULL: not known */
    uint32_t first_line, last_line; /* of each B-scan; last_line is one past the last, 0: all */
    struct oct_kmap_setup setup;
    const volatile sig_atomic_t *cancel;

    /* Found; finish frees. */
    struct oct_kmap_file *files; /* [n] */
    struct oct_fringe *fringes;  /* [n] */
    struct oct_kmap kmap;
    struct oct_geometry geometry;           /* of one line, depths to P2/4 */
    struct oct_calibration cal, before_cal; /* what was found, and what was before */
    const char *before_text;                /* "the configuration's", ... */
    double *place;                          /* [N] of the samples on the P2 steps found */
    double coefficient[OCT_MAX_DISPERSION_ORDER + 1], coefficient_rms_rad;
    double curved_px;       /* how far the k map lies from a straight line, at most, in the light */
    double axial_um;        /* optical path a depth pixel; NaN */
    double axial_rms_um;    /* of the positions, of three or more; NaN */
    double axial_error;     /* standard error of their slope, as a share of it; NaN */
    const char *axial_text; /* where it comes from */
};

/* OCT_E_FORMAT, OCT_E_ARG: begin with "mirror 3 (FILE): " where one file is at fault. Other errors:
 * those of opening a recording, of the configuration and of the engine. finish is right after a
 * failure too. */
enum oct_err oct_kmap_run(struct oct_kmap_run *run, struct oct_error *err);
void oct_kmap_run_finish(struct oct_kmap_run *run);

#endif
