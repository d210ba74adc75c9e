/* Where simulated cells are: on parallel lanes across a scene, with a small wander across. A cell
 * that leaves the scene on one side is followed by a new one on the other, so that their number
 * stays the same.
 *
 * Separate: the cells of a lane have one speed, and centres are never nearer than 3 R. Overtaking:
 * a lane has pairs of a slow and a fast cell, whose centres pass each other 0.8 to 1.6 R apart in
 * the middle of the time; of other lanes they stay 3 R away.
 *
 * Lengths are of any one unit, times in frames. Same setup, same places. */
#ifndef OCT_SYNTH_CELL_PATHS_H
#define OCT_SYNTH_CELL_PATHS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_CELL_PATHS_MOST 4096u /* cells */

struct oct_cell_paths_setup {
    double width, height;    /* the scene: from (0, 0) to these */
    unsigned n_cells;        /* at a time, some of them just outside */
    double radius;           /* R; that of a cell differs by up to 5 % */
    double slowest, fastest; /* along the lane, a frame */
    double n_frames;         /* of the time */
    bool overtakes;
    bool has_flow; /* all cells go along flow_deg; else along x, a lane to the right or the left */
    double flow_deg; /* 0: to the right, 90: downward */
    uint64_t seed;
};

struct oct_cell_place {
    uint64_t track; /* from 1 */
    double x, y, radius;
    double time; /* frames */
};

struct oct_cell_paths {
    struct oct_cell_paths_setup setup;
    double cosine, sine; /* of the flow */
    double period;       /* a lane's length, from end to end */
    double usable;       /* across */
    unsigned n_lanes;
};

/* OCT_E_ARG: a scene without room for a lane, or for so many cells: says for how many it has. */
enum oct_err oct_cell_paths_init(struct oct_cell_paths *paths,
                                 const struct oct_cell_paths_setup *setup, struct oct_error *err);

/* Of cell 0 .. n_cells - 1 at a time. */
struct oct_cell_place oct_cell_paths_at(const struct oct_cell_paths *paths, unsigned cell,
                                        double time);

/* Where it is when its row is scanned: rows are scanned from y = 0 to the height during the share
 * `scan` (0 to 1) of a frame. */
struct oct_cell_place oct_cell_paths_scanned(const struct oct_cell_paths *paths, unsigned cell,
                                             unsigned frame, double scan);

/* The share of a cell's brightness at a distance from its centre: 1 within, 0 outside, 1 / 2 at its
 * radius. softness: there it falls by 1 / 4 of itself over this length. */
double oct_cell_profile(double distance, double radius, double softness);

#endif
