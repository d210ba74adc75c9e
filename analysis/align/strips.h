/* Motion within pictures: time runs along the lines, so strips of lines are registered one by one,
 * whole rows each, and every line between them by linear interpolation.
 *
 *  1. The whole picture is registered to the pixel.
 *  2. Strips are sought from the middle outwards, within `search` pixels of the last good one.
 *  3. A strip without a match there is sought within `far` pixels of the whole picture's shift,
 *     where it must reach 0.8 of the median score of the picture's good strips: among so many
 *     shifts chance finds lower maxima.
 *  4. Strips that jump by more than 1.5 px a line from both neighbours are dropped. The rest gets
 *     its fraction of a pixel by a parabola.
 *
 * A strip matches where its score is min_score or more, stands OCT_STRIP_STANDS_OUT_NEAR or _FAR
 * times above chance (step 2, 3), and lies on no border of the search or of what overlaps. Chance
 * is that of the whole picture (oct_match_significance), of so many pixels less. Pictures come as
 * oct_align_prepare leaves them.
 *
 * Strips of all pictures of a call are sought side by side. One thread uses a struct oct_strips. */
#ifndef OCT_ANALYSIS_ALIGN_STRIPS_H
#define OCT_ANALYSIS_ALIGN_STRIPS_H

#include "numeric/picture.h"

struct oct_workers;

#define OCT_STRIP_ROWS 32u
#define OCT_STRIP_STEP 8u
#define OCT_STRIP_SEARCH 12u
#define OCT_STRIP_FAR 64u
#define OCT_STRIP_MIN_SCORE 0
#define OCT_STRIP_STANDS_OUT_NEAR 4.5
#define OCT_STRIP_STANDS_OUT_FAR 5.5

struct oct_strip {
    float dy, dx, score; /* px; ZNCC. Not ok: where the largest was, or 0, 0 and NaN */
    bool ok;
};

struct oct_strips_setup {
    uint32_t height, width;
    uint32_t max_dy, max_dx; /* of the whole picture */
    uint32_t rows, step;     /* of strips */
    uint32_t search, far;    /* px */
    double min_score;
    bool masked;
    unsigned n_batch;            /* most pictures a call */
    struct oct_workers *workers; /* NULL: the caller alone */
    const char *backend, *gpus;  /* as of struct oct_rigid_setup */
    unsigned deadline_ms;
};

struct oct_strips;

/* How many strips a picture has: (height - rows) / step + 1; 0: rows or step cannot be. */
uint32_t oct_strips_count(uint32_t height, uint32_t rows, uint32_t step);

/* OCT_E_ARG: strips or shifts that cannot be; OCT_E_BACKEND; OCT_E_NO_MEMORY. */
enum oct_err oct_strips_create(struct oct_strips **strips, const struct oct_strips_setup *setup,
                               struct oct_error *err);
void oct_strips_destroy(struct oct_strips *strips); /* NULL is fine */

/* OCT_E_ARG: no contrast. */
enum oct_err oct_strips_set_reference(struct oct_strips *strips,
                                      const struct oct_picture *reference, struct oct_error *err);

/* found: [n][count]. */
enum oct_err oct_strips_find(struct oct_strips *strips, const struct oct_picture *pictures,
                             unsigned n, struct oct_strip *found, struct oct_error *err);

/* The shift of every line: linear between the middles of good strips, constant beyond the
 * outermost. `first_row` is added to the strips' rows (a region of interest). False: fewer than
 * half of the strips are good; dy and dx, [height] each, are not set then. */
bool oct_strips_lines(const struct oct_strip *strips, uint32_t n_strips, uint32_t rows,
                      uint32_t step, uint32_t first_row, uint32_t height, double *dy, double *dx);

/* The median score of the good ones; NaN: there is none. */
double oct_strips_score(const struct oct_strip *strips, uint32_t n_strips);

/* What computes now: "cpu" or "cuda". */
const char *oct_strips_running(const struct oct_strips *strips);

#endif
