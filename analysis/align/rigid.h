/* Rigid registration: the one shift d = (dy, dx) that puts a moving picture onto a reference,
 * moving(p) onto reference(p + d), to a fraction of a pixel.
 *
 * The whole pixel is that of the largest ZNCC (analysis/correlate/correlate.h) over |dy| <=
 * max_dy, |dx| <= max_dx. Then the fraction is that of the maximum of the weighted cross-spectrum
 * (subpixel.h): frequencies count by how sure their phase is, so that noise, and speckle that the
 * pictures do not share, hide no fraction. Phase correlation is not used: it is wrong on
 * band-limited pictures. Where a pixel of either picture is masked the fraction is that of the
 * parabola through nine ZNCC: the mask's edges lie at whole pixels and pull the cross-spectrum's
 * maximum there. Its error is in docs/registration.md.
 *
 * Pictures come as oct_align_prepare leaves them.
 *
 * One thread uses a rigid registration at a time. */
#ifndef OCT_ANALYSIS_ALIGN_RIGID_H
#define OCT_ANALYSIS_ALIGN_RIGID_H

#include "numeric/picture.h"

struct oct_shift {
    double dy, dx;       /* px */
    double sd_dy, sd_dx; /* px, standard deviations of them (subpixel.h); NaN: of masked pictures */
    double score;        /* ZNCC at the whole pixel, -1 .. 1; NaN: the picture has no contrast */
    double significance; /* of the score (oct_match_significance) */
    bool is_match;       /* the score stands out of chance, and on no border (matcher.h), and, of
                            a search along both axes of pictures without masks, the score is 0.6 or
                            one sd 0.2 px at most */
};

struct oct_rigid_setup {
    uint32_t height, width; /* of all pictures */
    uint32_t max_dy, max_dx;
    double min_overlap;   /* part of the largest overlap below which a shift is not considered */
    bool masked;          /* pictures may have masks */
    bool plans_ahead;     /* the CPU engine: all plans at create, none while B-scans come */
    const char *backend;  /* "auto", "cpu", "cuda" */
    const char *gpus;     /* as pipeline.gpus */
    unsigned deadline_ms; /* of a GPU; 0: 2000 */
};

struct oct_rigid;

/* *rigid is NULL on error. OCT_E_ARG: sizes or shifts that cannot be; OCT_E_BACKEND: "cuda" and no
 * GPU; OCT_E_NO_MEMORY. */
enum oct_err oct_rigid_create(struct oct_rigid **rigid, const struct oct_rigid_setup *setup,
                              struct oct_error *err);
void oct_rigid_destroy(struct oct_rigid *rigid); /* NULL is fine */

/* The reference is copied. OCT_E_ARG: it has no contrast, or less than 10 % of it is valid. */
enum oct_err oct_rigid_set_reference(struct oct_rigid *rigid, const struct oct_picture *reference,
                                     struct oct_error *err);

/* Finds the shift of a picture. A picture without contrast, or with less than 10 % valid pixels,
 * has score NaN and shift 0: no error. OCT_E_STATE: there is no reference. */
enum oct_err oct_rigid_find(struct oct_rigid *rigid, const struct oct_picture *moving,
                            struct oct_shift *shift, struct oct_error *err);

/* What computes now: "cpu" or "cuda". */
const char *oct_rigid_running(const struct oct_rigid *rigid);

#endif
