/* A simulated film run through the product, and its tracks judged by the truth. */
#ifndef OCT_TEST_RIG_CELL_JUDGE_H
#define OCT_TEST_RIG_CELL_JUDGE_H

#include "analysis/cells/cells.h"
#include "test/rig/cell_film.h"

/* A cell that was found, with its frame. */
struct cell_judge_row {
    unsigned frame;
    struct oct_cells_found found;
};

struct cell_judge {
    struct cell_judge_row *rows; /* of tracks that count, in order of frames */
    size_t n_rows;
    struct oct_cells_score score;
    double px; /* of the searched picture, in units of the scene */
};

/* Parameters, units and backend (NULL: cpu) of setup are the caller's; size and times are set here:
 * with frame_s above 0 rows have times, frame + scan y / height.
 *
 * Tracks count as in a table of octctl: seen in min_frames pictures at least, up to where they were
 * last seen. Cells match within R / 2. True cells outside the part in which S is defined are none;
 * within 5 px of its rim, and what is found there, they are not judged, nor before the first search
 * (detect_every) since they came. With OCT_CELLS_FAULTS in the environment all places are printed.
 */
void cell_judge_run(struct cell_judge *judge, const struct cell_film_setup *film_setup,
                    const struct oct_cells_film_setup *setup, double frame_s);
void cell_judge_finish(struct cell_judge *judge);

#endif
