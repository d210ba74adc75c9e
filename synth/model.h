/* The parts of the synthetic retina, for the files of this folder only. Everything here is
 * immutable after its creation. Lengths in um; depth is optical path. */
#ifndef OCT_SYNTH_MODEL_H
#define OCT_SYNTH_MODEL_H

#include "synth/random.h"
#include "synth/retina.h"

#include <stdbool.h>

/* Tissue around the field that eye motion can bring into view: motion stays within MOTION_MAX. */
#define OCT_MOTION_MAX_UM 100.0
#define OCT_MOTION_MAX_Z_UM 40.0 /* of movement.c: the retina stays within the depth range */
#define OCT_MARGIN_UM 130.0

/* The depth profile of an A-line: complex amplitudes of scatterers on a grid fixed to the tissue.
 * Cell OCT_CELL_RPE is the centre of the RPE. A resolution cell (about 6 um deep) holds 4 layers
 * of cells, times some ten across, so the field in it is a sum of many scatterers. */
#define OCT_CELL_UM 1.5
#define OCT_N_CELLS 576
#define OCT_CELL_RPE 336
#define OCT_CELL_CENTRE (OCT_N_CELLS / 2)

/* ---- anatomy.c: layers ---- */

struct oct_eye {
    uint64_t seed;
    double index; /* optical path per um of tissue */
    double fovea_um[2];
    double centre_um[2];     /* of the field: tilt and curvature turn around it */
    double rpe_um;           /* depth of the RPE there, eye at rest */
    double tilt_x, tilt_y;   /* optical um per um */
    double bowl;             /* optical um per um^2 */
    double pit_um, rim_gain; /* this eye's pit radius and thickness */
    struct oct_druse {
        double x_um, y_um, radius_um, lift_um; /* um of tissue */
    } drusen[OCT_RETINA_MOST_DRUSEN];
    unsigned n_drusen;
};

struct oct_tissue {
    double rpe_um;                     /* depth below the reference, without motion */
    double surface_um[OCT_N_SURFACES]; /* relative to the RPE, negative above it */
    double nfl_gain;                   /* relative amplitude of the nerve fibre layer */
    double lift_um;                    /* of the RPE by drusen, optical */
};

void oct_eye_init(struct oct_eye *eye, const struct oct_retina_params *params, double width_um,
                  double height_um);
void oct_tissue_at(const struct oct_eye *eye, double x_um, double y_um, struct oct_tissue *tissue);

/* Fills amplitude[OCT_N_CELLS] with the scattering strength (field, RPE peak = 1) of all layers
 * but the cones, and mirror[] with the part that reflects as one surface (ILM). */
void oct_tissue_profile(const struct oct_eye *eye, const struct oct_tissue *tissue, double x_um,
                        double y_um, float *amplitude, float *mirror);

/* ---- cones.c ---- */

struct oct_cone {
    float x_um, y_um;
    float isos_re, isos_im, cost_re, cost_im; /* reflected field, about 1 */
    float isos_um, cost_um;                   /* depth offset from the surface */
};

struct oct_retina_cones {
    struct oct_cone *cone; /* [n], sorted by bin */
    uint32_t *bin_start;   /* [n_x * n_y + 1] */
    size_t n;
    uint32_t n_x, n_y;
    double x0_um, y0_um;
};

/* What the beam sees of the mosaic at one place: coherent sums. */
struct oct_mosaic_view {
    float isos_re, isos_im, cost_re, cost_im, isos_um, cost_um;
};

enum oct_err oct_cones_init(struct oct_retina_cones *cones, uint64_t seed, const double fovea_um[2],
                            double width_um, double height_um, struct oct_error *err);
void oct_cones_view(const struct oct_retina_cones *cones, double x_um, double y_um, double beam_um,
                    struct oct_mosaic_view *view);
void oct_cones_finish(struct oct_retina_cones *cones);

/* ---- vessels.c: a map of the half height (um of tissue) of the superficial vessels ---- */

struct oct_vessels {
    float *half_um; /* [n_y][n_x] */
    uint32_t n_x, n_y;
    double x0_um, y0_um, cell_um;
};

enum oct_err oct_vessels_init(struct oct_vessels *vessels, uint64_t seed, const double fovea_um[2],
                              double width_um, double height_um, struct oct_error *err);
/* Adds wide vessels that run from the first B-scan to the last. */
void oct_vessels_add_wide(struct oct_vessels *vessels, uint64_t seed, unsigned n, double width_um);
double oct_vessels_at(const struct oct_vessels *vessels, double x_um, double y_um);
void oct_vessels_finish(struct oct_vessels *vessels);

/* Puts a vessel of that half height (optical) into a profile, and its shadow below it. */
void oct_vessel_apply(const struct oct_tissue *tissue, double half_um, float *amplitude,
                      float *mirror, float *shadow);

/* ---- floating.c: cells above the retina ---- */

/* How much of a cell the beam sees at (x, y), 0 to 1; time in volumes. */
float oct_floating_at(const struct oct_cell_paths *paths, double x_um, double y_um, double time);

/* A volume, and how its B-scans moved. */
struct oct_floating_view {
    const struct oct_cell_paths *paths;
    uint32_t volume, n_bscans, n_lines;
    double volume_s;
    const double *bscan_um; /* [n_bscans][3] */
};

/* Fills *cells, which is empty. */
enum oct_err oct_floating_truth(const struct oct_floating_view *view,
                                struct oct_retina_cells *cells, struct oct_error *err);

/* ---- motion.c ---- */

/* Simulates the eye from the first B-scan of the session and writes those from `first` on into
 * xyz_um [n][3]. */
void oct_motion_trace(uint64_t seed, double bscan_s, uint64_t first, uint32_t n, double *xyz_um);

/* ---- movement.c ---- */

/* The same for OCT_EYE_FIXATION and OCT_EYE_UNSTEADY, A-line by A-line: xyz_um [n_lines][3], and
 * blink [n_lines], 1 where the lid is closed and 0 elsewhere. */
void oct_movement_trace(uint64_t seed, enum oct_eye_motion motion, double line_s,
                        uint64_t first_line, size_t n_lines, double *xyz_um, double *blink);

/* ---- scatter.c: speckle ---- */

/* One B-scan's worth of scatterers, summed across y with the beam's profile. */
struct oct_scatter {
    float *re, *im; /* [n_columns][OCT_N_CELLS] */
    size_t n_columns;
    int64_t first_column;
    double grid_um, beam_um;
};

enum oct_err oct_scatter_init(struct oct_scatter *scatter, double width_um, double beam_um,
                              struct oct_error *err);
void oct_scatter_load(struct oct_scatter *scatter, uint64_t seed, double x_um, double y_um);
/* The field of the beam at x: re, im [OCT_N_CELLS], unit variance each cell. */
void oct_scatter_at(const struct oct_scatter *scatter, double x_um, float *re, float *im);
void oct_scatter_finish(struct oct_scatter *scatter);

/* ---- camera.c ---- */

#define OCT_K_GRID 4096 /* points of the uniform k grid that a profile is transformed to */

struct oct_camera {
    uint32_t n_samples;
    double *wavelengths_nm;      /* [N] */
    float *kappa;                /* [N] 2 (k - k_centre), rad/um */
    float *theta;                /* [N] dispersion mismatch at the pixel */
    uint32_t *tap;               /* [N] first of 4 neighbours on the k grid */
    float *weight;               /* [N][4] */
    float *offset, *dc, *fringe; /* [N] counts: dark, reference arm, fringe of unit amplitude */
    double k_centre, axial_um, a2, a3, depth_max_um;
    float full_scale, scale; /* scale: 1 at 12 bits */
};

enum oct_err oct_camera_init(struct oct_camera *camera, uint64_t seed, uint32_t n_samples,
                             unsigned bits, struct oct_error *err);
/* One exposure: spectrum is the transformed profile [OCT_K_GRID] as (re, im) pairs, depth_um the
 * depth of OCT_CELL_CENTRE. Returns the number of samples clipped. */
uint32_t oct_camera_expose(const struct oct_camera *camera, const float *spectrum, double depth_um,
                           uint64_t noise_seed, uint16_t *samples);
/* Fall-off of the fringes with depth (field). */
float oct_camera_rolloff(const struct oct_camera *camera, double depth_um);
void oct_camera_finish(struct oct_camera *camera);

#endif
