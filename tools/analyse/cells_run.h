/* The loop of octctl cells: pictures in, rows out, and on the way what the reports need of every
 * picture. Pictures are read one at a time. B-scans are turned, so that x is the A-line and y the
 * depth; en face pictures and films lie as they are. One thread. */
#ifndef OCT_TOOLS_CELLS_RUN_H
#define OCT_TOOLS_CELLS_RUN_H

#include "analysis/cells/cells.h"
#include "formats/pictures.h"
#include "tools/analyse/cells_maps.h"
#include "tools/analyse/cells_rows.h"

#include <signal.h>
#include <stdbool.h>

/* From (x0, y0) to (x1, y1), px. */
struct oct_cells_line {
    double x0, y0, x1, y1;
};

/* Brightness along a line, averaged over so many frames a row that there are few rows. */
struct oct_cells_kymograph {
    float *values;     /* [n_t][n_x]; NaN: nothing valid there */
    uint32_t *n_added; /* [n_t][n_x] */
    uint32_t n_t, n_x;
    uint64_t frames_a_row;
};

struct oct_cells_run {
    /* Filled in before begin. */
    struct oct_pictures *pictures;
    bool is_turned;        /* the pictures are B-scans */
    const char *mask_path; /* NULL: none */
    bool um_is_given;      /* um is the user's; else begin takes what the file says */
    double um[2];          /* dy, dx of a pixel as shown; NaN: unknown */
    struct oct_cells_film_setup film_setup; /* height, width and um are filled in by begin */
    bool has_min_frames; /* given; else a film of fewer pictures asks for as many as it has */
    bool has_line;
    struct oct_cells_line line;
    const char *maps_path; /* NULL: none */
    bool force;

    /* Filled by begin and all. */
    uint32_t height, width; /* as shown */
    uint64_t n_all;         /* frames of the sequence */
    uint64_t n;             /* that were searched */
    uint64_t n_blank;       /* of these: of one value, or without any valid pixel */
    double first_s, last_s; /* starts of the first and of the last; NaN: unknown */
    double valid_share;     /* of the pixels, in the mean */
    double lo, hi;          /* values to show as black and white */
    double highest;         /* as oct_cells_film_highest */
    struct oct_cells_grid grid;
    struct oct_cells_params params;
    const char *running;
    struct oct_cells_rows rows;
    struct oct_cells_kymograph kymograph; /* with a line */

    /* Private. */
    struct oct_cells_film *film;
    struct oct_cells_maps *maps;
    struct oct_picture mask;
    struct oct_pictures_times times;
    float *samples; /* [n_samples] of pixels, for lo and hi */
    size_t n_samples;
    bool is_u8;
};

/* Looks at the first picture and makes the film. OCT_E_ARG: what was asked for does not fit the
 * pictures: film.h, a line outside, a mask of another size. Else as oct_pictures_read and
 * oct_cells_maps_create. */
enum oct_err oct_cells_run_begin(struct oct_cells_run *run, struct oct_error *err);

/* Searches all pictures. A picture that cannot be read ends the film: run->n says how many were
 * searched, their rows are complete, and the error is returned. So is OCT_E_STATE after a signal.
 * show(context, done, all) is called after each picture. */
enum oct_err oct_cells_run_all(struct oct_cells_run *run, const volatile sig_atomic_t *cancel,
                               void (*show)(void *context, uint64_t done, uint64_t all),
                               void *context, struct oct_error *err);

void oct_cells_run_finish(struct oct_cells_run *run); /* pictures stay the caller's */

/* Picture `frame` as it is shown and searched; the caller finishes it. info may be NULL. */
enum oct_err oct_cells_run_read(struct oct_cells_run *run, uint64_t frame,
                                struct oct_picture *picture, struct oct_pictures_info *info,
                                struct oct_error *err);

/* um of a pixel along x and y; both NaN: unknown. */
bool oct_cells_run_has_um(const struct oct_cells_run *run);

#endif
