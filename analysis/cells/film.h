/* Cells in a film: pictures as they come, with their own pixels, times and units, searched by an
 * engine and linked by a tracker. What octctl and the live analysis use.
 *
 * The part of the picture within the region of interest is searched, as if nothing lay outside.
 * Pictures whose pixels differ in height and width by more than 2 % are resampled to the finer
 * spacing, bilinearly, first pixel onto first pixel. Positions come back in pixels of
 * the original picture (x_px, y_px), and in um from its first pixel. The radius is given in pixels
 * of the finer axis, or in um.
 *
 * The time of a cell is that of its place: linear between the times of the two rows (en face) or
 * columns (B-scans) about it. speed = distance / difference of times, in um/s, both from where the
 * cell was last seen; NaN where either is unknown, or the track begins. A coasted cell's is that of
 * its prediction. One thread uses a film at a time. */
#ifndef OCT_ANALYSIS_CELLS_FILM_H
#define OCT_ANALYSIS_CELLS_FILM_H

#include "analysis/cells/tracker.h"
#include "numeric/picture.h"

/* A picture of which a part is taken, and stretched along one axis until its pixels are square. */

/* Pixel (x, y) of the result lies at (x0 + x dx, y0 + y dy) of the picture. */
struct oct_cells_resample {
    uint32_t x0, y0, from_height, from_width; /* the part that is taken */
    uint32_t height, width;                   /* of the result */
    double dy, dx;                            /* 1, or less along the axis that is stretched */
};

/* Of pixels of spacings um[0] (dy), um[1] (dx) the finer one becomes that of both; the first pixel
 * lies on the first one, and the last is the last that has neighbours. Spacings that differ by no
 * more than 2 %, or are unknown (NaN), count as equal. */
void oct_cells_resample_plan(struct oct_cells_resample *plan, uint32_t x0, uint32_t y0,
                             uint32_t height, uint32_t width, const double um[2]);

/* Whether the result is the whole picture as it is. */
bool oct_cells_resample_is_identity(const struct oct_cells_resample *plan, uint32_t height,
                                    uint32_t width);

/* Row y of the result, bilinear. to: of plan->height x plan->width, with a mask where `from` has
 * one: a pixel is valid if all that it is made of are; else it is 0. */
void oct_cells_resample_row(const struct oct_cells_resample *plan, const struct oct_picture *from,
                            struct oct_picture *to, uint32_t y);

struct oct_cells_film_setup {
    uint32_t height, width;         /* of the pictures */
    double um[2];                   /* dy, dx of a pixel; NaN: unknown */
    struct oct_cells_params params; /* of the resampled picture: radius in px of the finer axis */
    double radius_um;               /* 0: params.radius; else it takes its place; needs um */
    double max_speed_um_s; /* 0: params.max_step, which also serves pictures without times; needs
                              um. A frame lasts from the start of the picture before to that of
                              this one, divided by the frames between them. */
    struct oct_region roi;
    bool detect_only;
    bool keeps_fields;
    const char *backend; /* "auto", "cpu", "cuda" */
    struct oct_workers *workers;
    const char *gpus;
    unsigned deadline_ms;
};

/* When the pixels of a picture were taken. */
struct oct_cells_times {
    const double *time_s; /* [height] of rows, or [width] of columns; NaN: unknown */
    bool of_columns;
    double start_s; /* of the picture, and of all its pixels where time_s is NULL; NaN: unknown */
};

struct oct_cells_found {
    uint64_t track;  /* 0: detection alone */
    uint32_t n_seen; /* as of struct oct_cells_seen */
    double time_s;
    double x_px, y_px; /* of the original picture */
    double x_um, y_um; /* NaN: unknown */
    double radius_px;  /* of the searched picture */
    double radius_um;
    double score; /* NaN: coasted */
    double speed_um_s;
    enum oct_cells_how how;
};

struct oct_cells_film;

/* Whether such a film can be, without making it: no memory is taken, and backend, workers and gpus
 * are not looked at. OCT_E_ARG: as oct_cells_params_check; a region outside, a spacing that is not
 * above 0 or a ratio of spacings above 8, a radius or speed in um without pixels in um. */
enum oct_err oct_cells_film_check(const struct oct_cells_film_setup *setup, struct oct_error *err);

/* OCT_E_ARG: as oct_cells_film_check. OCT_E_BACKEND, OCT_E_NO_MEMORY. */
enum oct_err oct_cells_film_create(struct oct_cells_film **film,
                                   const struct oct_cells_film_setup *setup, struct oct_error *err);
void oct_cells_film_destroy(struct oct_cells_film *film); /* NULL is fine */

/* The next picture, of the size of setup; borrowed until the next push, as map and field may read
 * it. times NULL: unknown. (*found)[0 .. *n - 1] is valid until the next call. skipped, order,
 * errors: as oct_cells_tracker_push. */
enum oct_err oct_cells_film_push(struct oct_cells_film *film, const struct oct_picture *picture,
                                 const struct oct_cells_times *times, unsigned skipped,
                                 const struct oct_cells_found **found, unsigned *n,
                                 struct oct_error *err);

void oct_cells_film_reset(struct oct_cells_film *film); /* another film begins */

/* The largest |S| of the pictures searched so far, below the threshold too; 0: none. */
double oct_cells_film_highest(const struct oct_cells_film *film);

/* The searched picture: its size, and where its pixel (0, 0) and its spacing lie in the original:
 * x_px = x0 + x * dx. For maps. */
struct oct_cells_grid {
    uint32_t height, width;
    double x0, y0, dx, dy;
    double um; /* of a pixel; NaN: unknown */
};
void oct_cells_film_grid(const struct oct_cells_film *film, struct oct_cells_grid *grid);

/* The parameters in use: radius and steps in px of the searched picture. */
const struct oct_cells_params *oct_cells_film_params(const struct oct_cells_film *film);

/* Maps of the newest picture, as the engine's map and field (engine.h): [grid.height][grid.width].
 * *searched false: this picture was not searched, nothing is filled. */
enum oct_err oct_cells_film_map(struct oct_cells_film *film, float *score, uint8_t *best,
                                bool *searched, struct oct_error *err);
unsigned oct_cells_film_n_fields(const struct oct_cells_film *film);
enum oct_err oct_cells_film_field(struct oct_cells_film *film, unsigned i, uint64_t *track,
                                  struct oct_cell_window *window, uint32_t *iterations,
                                  float *field, struct oct_error *err);

/* What computes now: "cpu" or "cuda". */
const char *oct_cells_film_running(const struct oct_cells_film *film);

#endif
