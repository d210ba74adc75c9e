/* A synthetic retina: what a camera of a spectral-domain AO-OCT would record of a macula, with the
 * truth beside it.
 *
 * Coordinates. x runs along a B-scan, y across B-scans, micrometres, origin at the first A-line of
 * the first B-scan of an eye at rest; A-line j of B-scan b looks at
 *     (j * width / M + x[b][j], b * height / V + y[b][j])
 * of the tissue, z[b][j] deeper than at rest, where (x, y, z) is the eye's motion. +x is nasal.
 * Depth is optical path in air; a depth pixel is a pixel of contract step 6 for the wavelengths of
 * this camera.
 *
 * The field. The lateral pitch is width / M. Left open (0) the field is 2.5 um an A-line and 2.5
 * um a B-scan (600 um square, 2 degrees, at 240 x 240), at most 9 mm: there the cones, whose
 * spacing rises from 2.6 um at the fovea by 9.5 um a millimetre, come apart towards the nasal
 * edge, and the foveal pit is still in view; it lies at 24 % of the width and 42 % of the height.
 * The lateral resolution is 3.3 um FWHM, or 1.4 times the pitch where that is coarser. Cones are
 * modelled one by one where that is at most 8 um and the field at most 10 mm^2; otherwise IS/OS
 * and COST are plain speckle and n_cones is 0.
 *
 * The camera. 98 nm around 850 nm over N pixels (less for N < 832, in proportion, so that the
 * retina stays within the depth range), wavelength cubic in the pixel; 12 bits.
 *
 * Of an eye that is not well, where asked for: drusen lift the RPE off Bruch's membrane and press
 * the layers above together; wide vessels run across the B-scans and shade what lies below; blinks
 * leave whole B-scans dark.
 *
 * Cells, where they are asked for, float 9 to 15 um of optical path above the ILM: bright disks
 * that move while the volumes are scanned.
 *
 * Same parameters, same bytes, on one machine, whatever the number of threads. */
#ifndef OCT_SYNTH_RETINA_H
#define OCT_SYNTH_RETINA_H

#include "pipeline/base/err.h"
#include "pipeline/plan/scan.h"
#include "synth/cell_paths.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the eye moves. But for the first it moves during a B-scan too, and /truth says how, A-line by
 * A-line. Lateral positions stay within 100 um. */
enum oct_eye_motion {
    OCT_EYE_BSCANS,   /* slow drift, microsaccades, heart and breath, from B-scan to B-scan */
    OCT_EYE_NONE,     /* at rest */
    OCT_EYE_FIXATION, /* drift, tremor of 80 Hz, microsaccades of 10 to 40 um, heart and breath */
    OCT_EYE_UNSTEADY, /* more of all; saccades of 40 to 130 um in 20 to 50 ms, with jumps in depth,
                         several a second; a blink of 100 to 300 ms after 200 to 700 ms */
    OCT_N_EYE_MOTIONS
};
extern const char *const oct_eye_motion_names[OCT_N_EYE_MOTIONS]; /* "bscans", "none", ... */

#define OCT_RETINA_MOST_DRUSEN 64u
#define OCT_RETINA_MOST_SHADOWS 32u
#define OCT_RETINA_MOST_BLINKS 16u

struct oct_retina_params {
    uint32_t n_samples, n_lines, n_bscans; /* N, M, V, as accepted by oct_geometry_init */
    uint64_t seed;
    double width_um, height_um; /* the scanned field; 0: see above */
    double line_rate_hz;        /* > 0: with M it gives the time between B-scans */
    double refractive_index;    /* of the tissue; 0: 1.36 */
    unsigned bits;              /* of a sample: 12 at most, 0: 12 */
    unsigned n_threads;         /* 0: one a core */
    enum oct_eye_motion motion;
    bool has_fovea;
    double fovea[2];    /* with has_fovea: where the pit is, shares of width and height; else as
                           above */
    unsigned n_drusen;  /* at most OCT_RETINA_MOST_DRUSEN, of 40 to 120 um across and 15 to 60 um
                           high */
    unsigned n_shadows; /* wide vessels, at most OCT_RETINA_MOST_SHADOWS */
    unsigned n_blinks;  /* a volume, at most OCT_RETINA_MOST_BLINKS, of 3 to 6 % of its B-scans */
    struct oct_cell_paths_setup
        cells; /* n_cells 0: none; um, times in volumes; width and height are
                                          filled in */
};

/* Surfaces from the vitreous down. ILM, ELM, ISOS, COST and RPE are the centre of a thin bright
 * band, the others the border between two layers. */
enum oct_surface {
    OCT_SURFACE_ILM,
    OCT_SURFACE_NFL_GCL,
    OCT_SURFACE_IPL_INL,
    OCT_SURFACE_INL_OPL,
    OCT_SURFACE_OPL_ONL,
    OCT_SURFACE_ELM,
    OCT_SURFACE_ISOS,
    OCT_SURFACE_COST,
    OCT_SURFACE_RPE,
    OCT_SURFACE_BRUCH,
    OCT_SURFACE_CHOROID_SCLERA,
    OCT_N_SURFACES
};
extern const char *const oct_surface_names[OCT_N_SURFACES]; /* "ilm", "nfl_gcl", ... */

/* What is true of every volume of a retina. Arrays are owned by the retina. */
struct oct_retina_facts {
    const double *wavelengths_nm;        /* [N] */
    double dispersion_a2, dispersion_a3; /* radians, contract step 5 */
    double axial_um;                     /* optical path in air per depth pixel */
    double width_um, height_um;
    double fovea_um[2]; /* x, y */
    size_t n_cones;
    const double *cones; /* [n_cones][4]: x, y (um), IS/OS and COST depth offset from the surface
                            (depth pixels); tissue within 130 um around the field */
    double full_scale;   /* the largest sample, 4095 */
};

/* What is true of one volume. */
struct oct_retina_truth {
    double *motion_um;  /* [V][3]: x, y, z; z is optical path, positive downward; the mean over the
                           A-lines of a B-scan */
    double *line_um;    /* [V][M][3]: the same of every A-line; NULL with OCT_EYE_BSCANS */
    double *line_px;    /* [V][M][2]: the shift (A-lines, depth pixels) that puts an A-line where it
                           would be without motion: x * M / width, -z / axial_um; or NULL */
    double *blink;      /* [V][M] 1: the lid was closed and the A-line is noise, else 0; or NULL */
    double *surface_px; /* [OCT_N_SURFACES][V][M] depth pixels */
    double *vessel_um;  /* [V][M] optical thickness of the vessel crossed, 0: none */
    struct oct_retina_cells {
        size_t n;          /* cells whose centres are in view */
        double *track;     /* [n] from 1; owns the others */
        double *um;        /* [n][2] x, y of the tissue */
        double *px;        /* [n][2] A-line and B-scan where it is seen: as its B-scan moved */
        double *radius_um; /* [n] */
        double *time_s;    /* [n] when its B-scan was scanned, from the first one of all volumes */
    } cells;
};

struct oct_retina;

/* OCT_E_CONFIG names the key of an impossible parameter. */
enum oct_err oct_retina_create(struct oct_retina **retina, const struct oct_retina_params *params,
                               struct oct_error *err);

const struct oct_retina_facts *oct_retina_facts(const struct oct_retina *retina);

/* The way of the scan, borrowed; NULL, as after create: a raster whose lines and B-scans are even.
 * Its origin is the middle of the field, and a B-scan of spectra has its lines where they were
 * taken (oct_scan_sample), in the order of places; the truth is of pictures, on the even grid. */
void oct_retina_set_scan(struct oct_retina *retina, const struct oct_scan *scan);

/* Renders n_bscans B-scans of volume v, from B-scan `first` on, into spectra [n_bscans][M][N].
 * Motion goes on from volume to volume; the tissue stays. *n_saturated (may be NULL) gets the
 * number of samples clipped at 0 or full scale. One thread at a time calls. */
enum oct_err oct_retina_render(struct oct_retina *retina, uint32_t volume, uint32_t first,
                               uint32_t n_bscans, uint16_t *spectra, uint64_t *n_saturated,
                               struct oct_error *err);

/* Fills *truth for volume v; the caller finishes it. */
enum oct_err oct_retina_truth(const struct oct_retina *retina, uint32_t volume,
                              struct oct_retina_truth *truth, struct oct_error *err);
void oct_retina_truth_finish(struct oct_retina_truth *truth);

/* NULL is fine. */
void oct_retina_destroy(struct oct_retina *retina);

#endif
