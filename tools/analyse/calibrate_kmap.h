/* octctl calibrate kmap: recordings of a mirror in, k map, dispersion and the widths of all mirrors
 * out. One thread. */
#ifndef OCT_TOOLS_CALIBRATE_KMAP_H
#define OCT_TOOLS_CALIBRATE_KMAP_H

#include "analysis/calibrate/kmap.h"
#include "analysis/calibrate/peak.h"
#include "tools/analyse/job.h"

#define OCT_KMAP_MOST_AXIAL_ERROR 0.01 /* beyond it positions give no axial scale */

struct oct_kmap_given {
    const char *positions, *sides, *lines, *pictures;
    uint64_t order;
    struct oct_job_options job;
};

/* A recording, and its A-lines reconstructed. NaN: not known. */
struct oct_kmap_file {
    const char *path;
    uint32_t n_lines;
    uint16_t *lines; /* [n_lines][N], of which all came; owned, as all that follows */
    float *before;   /* [depth] counts^2, the mean over the lines */
    float *after;    /* alike */
    double before_fwhm_px, before_fwhm_um; /* between the outermost halves */
    double before_px;                      /* their middle */
    struct oct_peak peak; /* after; of a mirror on the other side with theta turned around */
    double fwhm_um, limit_um;
    double limit_px, ratio; /* what its own amplitude allows; the width in it */
    double position_um;     /* as given */
    double off_um;          /* from the straight line through all positions */
    double cycles, contrast_db, coherence, residual_rad, side; /* of its fringe, and of the fit */
};

struct oct_kmap_figure; /* calibrate_kmap_pictures.c */

/* A picture: the context of oct_kmap_draw. */
struct oct_kmap_picture {
    const struct oct_kmap_job *job;
    const struct oct_kmap_figure *figure;
    uint32_t mirror;
    char *path;
};

struct oct_kmap_job {
    struct oct_job job; /* inputs: the mirrors; out: the folder of the calibration */
    struct oct_kmap_given given;
    uint32_t n; /* mirrors */
    double positions_um[OCT_KMAP_MOST_MIRRORS];
    bool has_positions;
    int sides[OCT_KMAP_MOST_MIRRORS];
    struct oct_span lines; /* of each B-scan */
    struct oct_kmap_setup setup;

    /* Files. */
    struct oct_kmap_picture *pictures; /* [n_pictures] */
    unsigned n_pictures;
    char *names[4];      /* of the others; NULL */
    const char *made[2]; /* folders that were made; NULL */

    /* Found: filled by oct_kmap_run. */
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
 * those of opening a recording, of the configuration and of the engine. */
enum oct_err oct_kmap_run(struct oct_kmap_job *job, struct oct_error *err);

/* The straight line of y over x by least weighted squares; xx: the weighted sum of the squares of
 * x about their mean. */
struct oct_kmap_line {
    double mean_x, mean_y, slope, xx;
};
struct oct_kmap_line oct_kmap_fit_line(const double *x, const double *y, const double *weight,
                                       size_t n);

static inline double oct_kmap_off_line(const struct oct_kmap_line *line, double x, double y)
{
    return y - line->mean_y - line->slope * (x - line->mean_x);
}

/* Fills job->pictures, with paths in the folder. */
void oct_kmap_list_pictures(struct oct_kmap_job *job, const char *folder);
oct_output_writer oct_kmap_draw;

#endif
