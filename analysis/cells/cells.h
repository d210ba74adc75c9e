/* Cells in films: found by an engine (engine.h), linked to tracks (track.h), given in the pictures'
 * own pixels, times and units. What octctl uses, and the live analysis `cells`.
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
 * its prediction. One thread uses a film at a time.
 *
 * Cells are linked on the host: the same steps for both engines, in the same order, so that both
 * give the same tracks.
 *
 * With params.predicts, of each picture:
 *  1. Every track predicts its cell: the last position plus its velocity, per frame. The first
 *     displacement is the velocity, later v = (v + displacement) / 2; a displacement is that from
 *     where the cell was last seen, divided by the frames since. A prediction whose pixel lies
 *     outside the part of the picture where S is defined ends the track: the cell has left.
 *  2. Detected cells (every detect_every frames) that stand above the picture's texture and tracks
 *     are paired with the least sum of (distance / gate)^2; a pair beyond the gate costs as much as
 *     none, 1. Gate: max_step (2 R) a frame while a track has no velocity, else
 *     R sqrt(1 + misses + pictures left out); at most the picture's diagonal.
 *     A cell may be two that cover each other: it is within 1.5 R of the prediction of a track
 *     without a pair, and nearer to its own track's than the two predictions are to each other. Its
 *     own track then coasts, which is no miss; nor is it one of the other track, if the two move
 *     against each other by more than R / 10 a frame. Both have velocities.
 *  3. Tracks without a pair: a snake from the prediction, along (sign of vx, 0) or the flow. It
 *     counts if it stayed in its window and the cell that it gives lies within the gate, at an |S|
 *     of at least 0.7 threshold, with no other cell of this picture within R; of two such snakes
 *     the older track's counts.
 *     Else the cell coasts: it is where it was predicted. A snake starts with the radii of the
 *     snake by which its cell was last seen, or with the refined radius if it was detected.
 *  4. A frame in which it coasted, or was looked for and not detected, is a miss. A detection
 *     forgets the misses, a snake does not. A track stands `memory` misses; the next one ends it
 *     where it was last seen.
 *  5. Detected cells without a pair, farther than R from every track, begin tracks.
 * Without predicts (Boyer 2009): a snake from the last snake's position in every frame after the
 * first, along (1, 1), which always counts while it is defined, with the last snake's radii, at
 * first R; detected cells farther than R from every track begin tracks; a track ends when its snake
 * is not defined.
 *
 * Pictures left out (live) are frames: of the prediction, of displacements and of detect_every;
 * they are no misses.
 *
 * Tracks are numbered from 1 in order of birth, cells of one picture in raster order. Memory:
 * tracks alive and one picture's cells.
 */
#ifndef OCT_ANALYSIS_CELLS_CELLS_H
#define OCT_ANALYSIS_CELLS_CELLS_H

#include "analysis/analysis.h"
#include "analysis/cells/engine.h"
#include "analysis/enface/enface.h"

/* ---- a picture of which a part is taken, and stretched until its pixels are square ---- */

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

/* ---- films ---- */

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
    const struct oct_cells_engine_ops *ops; /* NULL: an engine of the backend; else this table */
    struct oct_cells_engine *engine;        /* with ops: borrowed; outlives the film */
};

/* When the pixels of a picture were taken. */
struct oct_cells_times {
    const double *time_s; /* [height] of rows, or [width] of columns; NaN: unknown */
    bool of_columns;
    double start_s; /* of the picture, and of all its pixels where time_s is NULL; NaN: unknown */
};

#define OCT_CELLS_MOST 65536u /* cells of a picture that are looked at */

enum oct_cells_how { OCT_CELLS_DETECTED, OCT_CELLS_SNAKE, OCT_CELLS_COASTED, OCT_CELLS_N_HOWS };
extern const char *const oct_cells_how_names[OCT_CELLS_N_HOWS + 1]; /* "detected", ..; NULL */

/* A cell of the newest picture. What is unknown is NaN. */
struct oct_cells_found {
    uint64_t track;  /* 0: detection alone */
    uint32_t n_seen; /* pictures in which the track was seen so far, this one included */
    uint32_t before; /* how many frames ago it was last seen before this; 0: it begins here */
    double time_s, last_s;
    double x_px, y_px; /* of the original picture */
    double x_um, y_um;
    double last_x, last_y; /* where it was last seen, px of the searched picture */
    double radius_px;      /* the same */
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
 * it. times NULL: unknown. (*found)[0 .. *n - 1] is valid until the next call. In
 * order of track numbers (detect_only: in raster order). `skipped`: pictures left out since the one
 * before (live); they count as frames of the prediction, not as misses. After an error the picture
 * counts as skipped. */
enum oct_err oct_cells_film_push(struct oct_cells_film *film, const struct oct_picture *picture,
                                 const struct oct_cells_times *times, unsigned skipped,
                                 const struct oct_cells_found **found, unsigned *n,
                                 struct oct_error *err);

/* Another film begins: all tracks end; numbers go on; the next picture is searched. */
void oct_cells_film_reset(struct oct_cells_film *film);

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

/* ---- live: cells of each volume or B-scan, found and followed while they come ----
 *
 * Source enface: of each volume that is whole, or has ended, the picture from above
 * (analysis/enface/enface.h, with its projection): x is the A-line, y the B-scan. Rows that never
 * came, and those that miss A-lines, are masked; the time of a row is that of its B-scan, between
 * those that came where it did not.
 * Source bscan: each B-scan, x the A-line, y the depth. A-lines that never came are masked; the
 * time of a column is that of the B-scan plus x / line rate.
 * What was left out between two pictures counts as skipped. An acquisition begins a film.
 *
 * Result: a table, f32 [256 at most][7], a row a track that was seen in min_frames pictures so far,
 * in the order of their births:
 *   track       from 1 in each acquisition; after 16,777,215 again from 1
 *   x_px, y_px  of the picture
 *   radius_px   in pixels of the finer axis
 *   score       S; NaN: coasted
 *   how         0 detected, 1 snake, 2 coasted
 *   speed_um_s  NaN: unknown
 * and beside it the numbers of enum oct_cells_live_number. In the topic's header the rows are
 * objects too, `cells`.
 *
 * Pictures are taken up, searched and followed by the workers of the pool; the stage's thread links
 * what was found. B-scans that come meanwhile are skipped and counted. */

#define OCT_CELLS_LIVE_MOST 256u /* rows of a table: the oldest tracks */

enum oct_cells_source { OCT_CELLS_OF_ENFACE, OCT_CELLS_OF_BSCAN, OCT_CELLS_N_SOURCES };

enum oct_cells_column {
    OCT_CELLS_TRACK,
    OCT_CELLS_X,
    OCT_CELLS_Y,
    OCT_CELLS_RADIUS,
    OCT_CELLS_SCORE,
    OCT_CELLS_HOW,
    OCT_CELLS_SPEED,
    OCT_CELLS_N_COLUMNS
};

enum oct_cells_live_number {
    OCT_CELLS_COUNT,     /* of tracks, those beyond the table too */
    OCT_CELLS_MEDIAN,    /* of the speeds that are known, um/s; NaN: none is */
    OCT_CELLS_FRAMES,    /* pictures done since octd took up its settings */
    OCT_CELLS_WIDTH,     /* of the picture */
    OCT_CELLS_HEIGHT,    /* */
    OCT_CELLS_IS_BSCAN,  /* 1: of a B-scan, 0: of a volume from above */
    OCT_CELLS_N_NUMBERS, /* at most OCT_IMAGE_MAX_NUMBERS */
};

struct oct_cells_settings {
    bool enabled; /* no: at rest, and no memory is taken */
    bool record;
    enum oct_cells_source source; /* of create: configure does not change it */
    double radius_um;             /* 0: params.radius */
    double max_speed_um_s;        /* 0: 2 R a picture */
    struct oct_region roi;
    struct oct_cells_params params; /* of oct_cells_search_params */
    bool cpu;                       /* else a GPU where one answers */
    struct oct_enface_settings enface;
};

extern const struct oct_params oct_cells_params; /* all but `params` */

/* All defaults but those of en face. */
void oct_cells_settings_init(struct oct_cells_settings *settings);

/* Whether such pictures can be searched; no memory is taken. n_bscans: V; bscan_um: between
 * B-scans, NaN: unknown. OCT_E_CONFIG. */
enum oct_err oct_cells_live_check(const struct oct_cells_settings *settings,
                                  const struct oct_image_form *input, uint32_t n_bscans,
                                  double bscan_um, struct oct_error *err);

/* What these settings mean for films of such pictures, live and offline; um: dy, dx, NaN where it
 * is unknown. `source` and `enface` choose pictures, and are not in it. */
struct oct_cells_film_setup oct_cells_live_film(const struct oct_cells_settings *settings,
                                                uint32_t height, uint32_t width,
                                                const double um[2]);

extern const struct oct_analysis_ops oct_cells_analysis_cpu; /* struct oct_cells_settings */

#endif
