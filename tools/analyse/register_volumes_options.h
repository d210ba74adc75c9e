/* The options of octctl register-volumes: as given, and what they mean. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_OPTIONS_H
#define OCT_TOOLS_REGISTER_VOLUMES_OPTIONS_H

#include "analysis/warp/pair.h"
#include "tools/options.h"

struct oct_volumes_given {
    /* As given; NULL, NaN and false where not. */
    const char *model_name, *profile_name, *levels, *iterations, *reach, *um;
    const char *mask, *points, *points_out, *nifti, *png;
    double lambda, sigma, jump_price;
    bool average, inverse, group, json, force;

    /* What they mean: filled by oct_volumes_given_read. */
    enum oct_warp_model model;
    enum oct_warp_profile profile;
    unsigned n_levels; /* 0: not given; factor[0] 0: so many, by halves */
    unsigned factor[OCT_WARP_MOST_LEVELS];
    unsigned n_iterations; /* 0: not given; 1: of each level */
    unsigned iteration[OCT_WARP_MOST_LEVELS];
    uint32_t reach_px[3]; /* B-scans, A-lines, depth; 0: not given */
    double um_given[3];   /* B-scan, A-line, depth; 0: not given */
};

extern const struct oct_option oct_volumes_options[];

/* Where nothing is given. */
#define OCT_VOLUMES_GIVEN_NONE                                                                     \
    (struct oct_volumes_given)                                                                     \
    {                                                                                              \
        .lambda = NAN, .sigma = NAN, .jump_price = NAN                                             \
    }

/* Returns 0, or 2 once it has said what is wrong. n_moving: volumes that are registered. */
int oct_volumes_given_read(struct oct_volumes_given *given, unsigned n_moving, const char *name);

/* The solver's parameters for this model and grid. OCT_E_CONFIG: what was given does not fit. */
enum oct_err oct_volumes_given_params(const struct oct_volumes_given *given,
                                      enum oct_warp_model model, const struct oct_warp_grid *grid,
                                      struct oct_warp_params *params, struct oct_error *err);

/* Of the grid's finest spacing: um where it is known, else 1. */
double oct_volumes_finest(const struct oct_warp_grid *grid);

extern const char *const oct_volumes_profile_names[]; /* of enum oct_warp_profile */

#endif
