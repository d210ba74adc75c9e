/* The part of `octctl synth` that makes cells: films of their own (OUT.npy, .tif, .avi), and what a
 * recording of the retina is told of them. */
#ifndef OCT_TOOLS_SYNTH_CELLS_H
#define OCT_TOOLS_SYNTH_CELLS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* As given on the command line; texts NULL, numbers NaN and counts 0 where they were not. */
struct oct_synth_cells {
    uint64_t n_cells, n_frames;
    const char *truth, *size, *speed, *paths, *pixel_um;
    double cnr, radius, fps, flow_deg;
    bool of_rows;
};

void oct_synth_cells_init(struct oct_synth_cells *cells);

/* Whether the name is that of a film. */
bool oct_synth_cells_is_film(const char *out);

struct oct_cell_paths_setup;

/* Paths of cells of a film (R 10 px, 2 to 5 px a frame) or of a recording (R 10 um, 2 to 5 um a
 * volume), but for size and time. Returns 0, or the exit status once it has said what is wrong with
 * the options. */
int oct_synth_cells_paths(const struct oct_synth_cells *cells, const char *out, uint64_t seed,
                          struct oct_cell_paths_setup *paths);

/* Makes the film and beside it the table of the truth. n_threads 0: one a core. Returns the exit
 * status; says what is wrong. */
int oct_synth_cells_film(const struct oct_synth_cells *cells, const char *out, uint64_t seed,
                         unsigned n_threads);

#endif
