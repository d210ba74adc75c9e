/* Cells of each volume or B-scan, found and followed while they come: the live analysis `cells`.
 *
 * Source enface: of each volume that is whole, or has ended, the picture from above
 * (analysis/enface/enface.h, with its projection): x is the A-line, y the B-scan. Rows that never
 * came, and those that miss A-lines, are masked; the time of a row is that of its B-scan, between
 * those that came where it did not.
 * Source bscan: each B-scan, x the A-line, y the depth. A-lines that never came are masked; the
 * time of a column is that of the B-scan plus x / line rate.
 * Pictures go to a film (analysis/cells/film.h), which says how cells are found, followed, and
 * timed; what was left out between two pictures counts as skipped. An acquisition begins a film.
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
#ifndef OCT_ANALYSIS_CELLS_LIVE_H
#define OCT_ANALYSIS_CELLS_LIVE_H

#include "analysis/analysis.h"
#include "analysis/cells/film.h"
#include "analysis/enface/enface.h"

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
