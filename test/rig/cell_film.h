/* Simulated films of cells whose places are known: disks with soft edges over an uneven background,
 * with noise. Cells run along lanes, enter on one side and leave on the other. */
#ifndef OCT_TEST_RIG_CELL_FILM_H
#define OCT_TEST_RIG_CELL_FILM_H

#include "analysis/cells/score.h"
#include "numeric/picture.h"

#include <stdbool.h>
#include <stdint.h>

#define CELL_FILM_MOST 256u

/* Lengths in units of the scene: pixels, where dy and dx are 1. */
struct cell_film_setup {
    uint32_t height, width; /* px */
    double dy, dx;          /* of a pixel */
    unsigned n_frames;
    double radius;
    double cnr; /* (cell - background) / sd of the noise; INFINITY: no noise */
    double slowest, fastest;
    double lane;              /* distance of lanes */
    double distance;          /* of cells in a lane */
    bool overtakes;           /* two cells a lane, of which the faster one passes the slower */
    double nearest, farthest; /* the distance of their paths */
    double softness;          /* of edges: contrast / (1 + exp((distance - radius) / softness)) */
    bool is_upright;          /* lanes run along y */
    double scan; /* share of a frame in which its rows are scanned, from the first to the last */
    double texture, grain; /* of the background, which stands still: standard deviation in shares of
                              the contrast, and correlation length */
    uint64_t seed;
};

void cell_film_setup_default(struct cell_film_setup *setup); /* 240 x 320, R 10, CNR 8, 2 to 5 */

struct cell_film_cell {
    double x, y, vx, vy; /* at frame 0; a frame */
    double swing, phase; /* across its lane */
    double radius;
};

struct cell_film {
    struct cell_film_setup setup;
    struct cell_film_cell cells[CELL_FILM_MOST];
    unsigned n_cells;
};

void cell_film_init(struct cell_film *film, const struct cell_film_setup *setup);

/* Where a cell is at a time in frames; false: outside the scene by more than its radius. */
bool cell_film_place(const struct cell_film *film, unsigned cell, double time, double *x,
                     double *y);

/* Where it is when its row is scanned in this frame. */
bool cell_film_place_seen(const struct cell_film *film, unsigned cell, unsigned frame, double *x,
                          double *y);

/* picture: initialised, of the film's size, without mask. Same film and frame, same picture. */
void cell_film_draw(const struct cell_film *film, unsigned frame, struct oct_picture *picture);

#endif
