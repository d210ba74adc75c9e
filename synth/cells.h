/* A film of bright cells that move over an uneven background, 8 bit, with the truth about it.
 *
 * Background: a vessel along the flow, brighter in its middle and with dark walls, texture of a few
 * R and a slope. Cells: disks with soft edges; where they overlap, the brighter one shows. Noise:
 * Gaussian, of every pixel of every picture. CNR = (mean of a cell of radius R - background beside
 * it) / sd of the noise, what rounding to grey levels adds included; from 60 grey levels of
 * contrast and 20 of noise neither is exceeded.
 *
 * Pixels need not be square: radius, speeds and distances are in pixels of the finer axis. Same
 * setup, same bytes, whatever the number of threads. One thread uses a film at a time. */
#ifndef OCT_SYNTH_CELLS_H
#define OCT_SYNTH_CELLS_H

#include "synth/cell_paths.h"

#define OCT_CELL_FILM_MOST_SIDE 16384u

struct oct_cell_film_setup {
    uint32_t height, width, n_frames;
    double um[2]; /* dy, dx of a pixel; 0: unknown, and square */
    double fps;
    double cnr;  /* INFINITY: no noise */
    double scan; /* share of a frame in which its rows are scanned, one after another; 0: all pixels
                    are taken when the frame begins */
    unsigned n_threads;                /* 0: one a core */
    struct oct_cell_paths_setup paths; /* width, height and n_frames are filled in */
};

/* A cell in one picture. */
struct oct_cell_truth {
    uint64_t track;
    double time_s;     /* when its row was scanned */
    double x_px, y_px; /* of the film */
    double radius_px;  /* of the finer axis */
};

struct oct_cell_film;

/* OCT_E_ARG: as oct_cell_paths_init, and a side of 0 or above OCT_CELL_FILM_MOST_SIDE.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_cell_film_create(struct oct_cell_film **film,
                                  const struct oct_cell_film_setup *setup, struct oct_error *err);
void oct_cell_film_destroy(struct oct_cell_film *film); /* NULL is fine */

/* Pictures first .. first + n - 1: [n][height][width]. */
void oct_cell_film_render(struct oct_cell_film *film, unsigned first, unsigned n,
                          uint8_t *pictures);

/* The cells whose centres lie within the picture, in the order of paths; room for paths.n_cells.
 * Returns how many. */
unsigned oct_cell_film_truth(const struct oct_cell_film *film, unsigned frame,
                             struct oct_cell_truth *truth);

#endif
