/* One track: what is known of its cell's motion. Private to the tracker; its rules: tracker.h. */
#ifndef OCT_ANALYSIS_CELLS_TRACK_H
#define OCT_ANALYSIS_CELLS_TRACK_H

#include "analysis/cells/tracker.h"

#define OCT_TRACK_MOST_YS 10u /* Ey of follow.h */

struct oct_track {
    uint64_t number;
    uint32_t n_seen;
    uint32_t misses, left_out; /* since it was detected */
    uint32_t frames;           /* since it was last seen */
    bool has_velocity, is_dark;
    double x, y, radius;             /* now: seen, or coasted */
    double seen_x, seen_y;           /* where it was last seen */
    double vx, vy;                   /* px a frame */
    double radii[OCT_CELLS_SNAXELS]; /* the next snake starts with */

    /* Without predicts: where it starts, and the y of the last snakes, newest at n_ys - 1. */
    double snake_x, snake_y;
    double ys[OCT_TRACK_MOST_YS];
    unsigned n_ys;

    /* Of the picture that is being looked at. */
    double predicted_x, predicted_y, gate;
    double last_x, last_y; /* where it was last seen before, */
    uint32_t before;       /* so many frames ago; 0: it begins here */
    bool has_left, has_ended;
    bool is_merged;    /* its detected cell is another track's as well */
    bool is_hidden;    /* it has none, as it passes that other one */
    int32_t pair, end; /* its detected cell, its snake among the ends; -1: none */
};

/* A track that begins with this cell. */
void oct_track_begin(struct oct_track *track, uint64_t number, const struct oct_cell *cell,
                     const struct oct_cells_params *params);

/* Where the cell will be after so many frames, and how far from there it is looked for. */
void oct_track_predict(struct oct_track *track, const struct oct_cells_params *params,
                       uint32_t frames);

/* The mean of ys. */
double oct_track_mean_y(const struct oct_track *track);

/* What this picture said, `frames` after the one before: the cell was detected, followed by a
 * snake, or is where it was predicted. Sets has_ended with one miss too many. */
void oct_track_detect(struct oct_track *track, const struct oct_cell *cell, uint32_t frames);
void oct_track_follow(struct oct_track *track, const struct oct_cell_end *end, uint32_t frames);
void oct_track_coast(struct oct_track *track, uint32_t frames);
void oct_track_miss(struct oct_track *track, const struct oct_cells_params *params);

#endif
