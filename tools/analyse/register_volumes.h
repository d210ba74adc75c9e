/* octctl register-volumes: each MOVING onto FIXED, or onto the mean of those before it. One moving
 * volume is in memory at a time, or one a GPU. What it registers by is analysis/warp/pair.h. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_H
#define OCT_TOOLS_REGISTER_VOLUMES_H

#include "analysis/result.h"
#include "analysis/warp/pair.h"
#include "formats/volumes.h"
#include "tools/analyse/job.h"
#include "tools/analyse/register_volumes_grid.h"
#include "tools/options.h"

#include <pthread.h>

#define OCT_VOLUMES_MOST_MOVING 64u

struct oct_results;

/* As given; NULL and false where not. */
struct oct_volumes_given {
    struct oct_param_texts own; /* of the rows of oct_volumes_settings */
    const char *levels, *iterations, *reach, *pixel_um;
    const char *mask, *points, *points_out, *nifti, *png;
    bool average, inverse, group;
    struct oct_job_options job;
};

/* What it means. */
struct oct_volumes_settings {
    enum oct_warp_model model;
    enum oct_warp_profile profile;
    double lambda, sigma, jump_price; /* NaN: not given */
    unsigned n_levels;                /* 0: not given; factor[0] 0: so many, by halves */
    unsigned factor[OCT_WARP_MOST_LEVELS];
    unsigned n_iterations; /* 0: not given; 1: of each level */
    unsigned iteration[OCT_WARP_MOST_LEVELS];
    uint32_t reach_px[3]; /* B-scans, A-lines, depth; 0: not given */
    double um[3];         /* B-scan, A-line, depth; 0: not given */
};

/* Of one MOVING: oct_volumes_pair_fields. */
struct oct_volumes_pair {
    const char *path;
    struct oct_volume_info info;
    struct oct_volumes_placing placing;

    /* Filled when it is registered. */
    const char *running;      /* "cpu", "cuda" */
    enum oct_warp_model kept; /* of --model both: which of them the map is of; else the model */
    double range[2], seconds;
    struct oct_warp_report report;
    struct oct_warp_likeness before, after;
    struct oct_warp_volume_change change;
    double mean_length[2], most_length[2]; /* of the displacement: voxels, um or NaN */
    double inverse_left;                   /* voxels; NaN: no inverse */
    double n_lost;     /* B-scans without a counterpart; NaN: all lie as they are */
    uint32_t n_bscans; /* of all */
    bool is_resampled;
    double (*points)[3]; /* [n_points] voxels of the moving volume's own grid */
};

/* What there is of a pair until the next one begins: [V][M][D] of the fixed grid. */
struct oct_volumes_hand {
    unsigned i;                  /* its number */
    const float *fixed, *moving; /* moving: on the fixed grid */
    const struct oct_warp_pair *made;
    const float *inverse; /* [3][V][M][D]; NULL: not asked for */
};

struct oct_volumes {
    struct oct_job job; /* inputs: FIXED, then all MOVING */
    struct oct_volumes_given given;
    struct oct_volumes_settings settings;
    unsigned n_moving; /* OCT_VOLUMES_MOST_MOVING at most */
    unsigned n_lanes;  /* pairs side by side; 0: as many as there are GPUs to use */

    /* Called in the order of the pairs, one at a time, on any thread, with `hand` filled. */
    enum oct_err (*take)(struct oct_volumes *volumes, struct oct_error *err);
    struct oct_volumes_hand hand;

    /* Files: OUT.h5, --points-out, the average, then as many of each pair. */
    struct oct_results *h5; /* while pairs are written to it */
    unsigned n_common, n_of_pair;

    /* Filled by begin. */
    struct oct_volume_info fixed_info;
    struct oct_warp_grid grid;
    struct oct_warp_pair_setup setup;
    struct oct_volumes_pair *pairs; /* [n_moving] */
    double (*points)[3];            /* [n_points] voxels of the fixed volume */
    size_t n_points;
    uint64_t need_bytes; /* of memory, at most */

    /* Filled by run. */
    float *fixed, *average; /* [V][M][D]; NULL: not asked for; --group: the same */
    uint8_t *mask;
    unsigned n_averaged;

    /* Of the lanes, under the lock. */
    unsigned next, next_to_take, n_done;
    double *shares; /* [n_lanes] how far the pair in hand is */
    struct oct_error failure;
    pthread_mutex_t lock;
    pthread_cond_t turn;
};

/* ---- register_volumes.c ---- */

extern const char *const oct_volumes_model_names[], *const oct_volumes_profile_names[];

/* The solver's parameters for this model on volumes->grid. OCT_E_CONFIG: what was given does not
 * fit. */
enum oct_err oct_volumes_params(const struct oct_volumes *volumes,
                                const struct oct_volumes_settings *settings,
                                enum oct_warp_model model, struct oct_warp_params *params,
                                struct oct_error *err);

/* Of the grid's finest spacing: um where it is known, else 1. */
double oct_volumes_finest(const struct oct_warp_grid *grid);

/* ---- register_volumes_run.c ---- */

/* Looks at all inputs, and whether what was asked for fits them and the memory. */
enum oct_err oct_volumes_begin(struct oct_volumes *volumes, struct oct_error *err);

/* All pairs. OCT_E_STATE: a signal came. */
enum oct_err oct_volumes_run(struct oct_volumes *volumes, struct oct_error *err);

/* ---- register_volumes_files.c: the context of writers is a struct oct_volumes ---- */

extern const struct oct_result_fields oct_volumes_pair_fields;
extern const char oct_volumes_jacobian_sentence[];

struct oct_result_rows oct_volumes_levels(const struct oct_volumes_pair *pair);

/* --points: rows of B-scan, A-line and depth, voxels from 0: the columns bscan, line and depth of a
 * table with a header, else the first three. OCT_E_FORMAT: the line that has no three numbers, or
 * lies outside the fixed volume; OCT_E_IO. */
enum oct_err oct_volumes_read_points(struct oct_volumes *volumes, struct oct_error *err);
oct_output_writer oct_volumes_write_points;

/* Datasets and numbers of the pair in hand, into volumes->h5. Errors come with _h5. */
void oct_volumes_write_pair(const struct oct_volumes *volumes);

/* The average and the settings, and gives the file its name. */
oct_output_writer oct_volumes_write_h5;

/* NIfTI of the pair in hand, and of the average. */
oct_output_writer oct_volumes_nifti_warped, oct_volumes_nifti_displacement,
    oct_volumes_nifti_jacobian, oct_volumes_nifti_average;

/* ---- register_volumes_pictures.c: likewise ---- */

/* Fields of FIXED and MOVING in turn, as they came and as registered. */
oct_output_writer oct_volumes_draw_checkerboard;

/* log J from above, in a B-scan, and its histogram. */
oct_output_writer oct_volumes_draw_jacobian;

/* Arrows from FIXED to MOVING on an en face, over the displacement along the depth. */
oct_output_writer oct_volumes_draw_displacement;

#endif
