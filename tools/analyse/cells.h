/* octctl cells: pictures in, rows out, and the files that are made of them. Pictures are read one
 * at a time. B-scans are turned, so that x is the A-line and y the depth; en face pictures and
 * films lie as they are. Writers are those of a struct oct_output_file, of a struct oct_cells_job;
 * errors as those of formats/csv.h, formats/results.h and plot/plot.h. One thread. */
#ifndef OCT_TOOLS_ANALYSE_CELLS_H
#define OCT_TOOLS_ANALYSE_CELLS_H

#include "analysis/cells/cells.h"
#include "formats/pictures.h"
#include "tools/analyse/job.h"
#include "tools/options.h"

/* ---- rows (cells_rows.c) ---- */

struct oct_cells_row {
    uint64_t frame;
    struct oct_cells_found found; /* its score as a float has it */
    double speed_px;              /* a frame, from where it was last seen; NaN: the track begins */
    size_t order;                 /* among by_track */
};

/* A row a cell and frame, in order of frame and then of track. A track's rows stay only if it was
 * seen often enough, and up to where it was last seen; that is known when it has ended, so rows of
 * other tracks are held until then. */
struct oct_cells_rows {
    struct oct_cells_row *rows; /* [n] */
    size_t n, room;
    const struct oct_cells_row **by_track; /* [n] after the end: in order of track, then of frame */

    size_t n_pruned;                     /* rows that the last pruning left */
    struct oct_cells_rows_track *tracks; /* [n_tracks], by number - 1 */
    size_t n_tracks, tracks_room;
    uint64_t frame;      /* the newest */
    unsigned min_frames; /* a track that was seen in fewer is none */
};

/* What the film gave for this frame; frames rise. */
void oct_cells_rows_add(struct oct_cells_rows *rows, uint64_t frame,
                        const struct oct_cells_found *found, unsigned n);
void oct_cells_rows_end(struct oct_cells_rows *rows); /* the film is over: all tracks have ended */

static inline bool oct_cells_is_seen(const struct oct_cells_row *row)
{
    return row->found.how != OCT_CELLS_COASTED;
}

/* ---- the numbers that sum them up (cells_summary.c) ---- */

/* Ranks of the speeds of all rows that were seen and have one. NaN: there is none. */
struct oct_cells_speeds {
    uint64_t n;
    double p10, p50, p90;
};

struct oct_cells_summary {
    uint64_t frames, frames_blank;
    uint64_t rows;            /* cells of all frames */
    uint64_t cells;           /* of these detected, or followed by a snake */
    uint64_t tracks;          /* 0: detection alone */
    double cells_a_frame;     /* seen */
    double density_mm2;       /* of these in the part of the pictures that can be searched */
    double nearest_px, sd_px; /* to the nearest other cell of the frame that was seen */
    double nearest_um, sd_um; /* */
    struct oct_cells_speeds um_s, px_frame;
    double over_line, past_middle; /* tracks that end on the other side of the line; that pass its
                                      middle; NaN: there is no line */
    double over_line_s, past_middle_s; /* a second; NaN: times are unknown */
    double highest;                    /* the largest |S| seen */
    double seconds, rate;
    const char *backend;
};

/* ---- the command ---- */

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

enum oct_cells_format { OCT_CELLS_CSV, OCT_CELLS_TRACKMATE, OCT_CELLS_NAPARI };

/* Options with words, of a parameter table. */
struct oct_cells_choice {
    int projection, profile;
    enum oct_cells_format format;
};

struct oct_cells_options {
    struct oct_param_texts own, search; /* of oct_cells_params, oct_cells_search_params */
    struct oct_param_texts choice;
    const char *frames, *slab, *pixel_um, *mask, *tracks, *into, *overlay, *kymograph, *along,
        *histogram, *summary, *maps; /* NULL: not given */
    double fps;                      /* NaN: not given */
    bool detect_only;
    struct oct_job_options job;
};

struct oct_cells_maps;

struct oct_cells_job {
    struct oct_job job;
    struct oct_cells_options given;

    /* What the options mean. */
    struct oct_cells_choice choice;
    struct oct_pictures_options options;
    struct oct_cells_film_setup setup;
    bool source_is_given, projection_is_given, um_is_given, has_min_frames, has_line;
    bool is_bscan; /* of recordings B-scans are searched, not pictures from above */
    struct oct_cells_line line;
    const char *overlay_folder, *overlay_film; /* one of them */

    /* The pictures. */
    struct oct_pictures *pictures;
    struct oct_picture mask; /* as they are shown; empty: none */
    struct oct_pictures_times times;
    bool is_turned;          /* they are B-scans */
    bool is_u8;              /* and shown as they are */
    uint32_t height, width;  /* as shown */
    double um[2];            /* dy, dx of a pixel as shown; NaN: unknown */
    uint64_t n_all;          /* frames of the sequence */
    uint64_t n;              /* that were searched */
    uint64_t n_blank;        /* of these: of one value, or without any valid pixel */
    double first_s, last_s;  /* starts of the first and of the last; NaN: unknown */
    double valid_share;      /* of the pixels, in the mean */
    struct oct_error damage; /* why the film ends early; code 0: it does not */

    /* What was found. */
    struct oct_cells_film *film;
    const struct oct_cells_params *params; /* of the film */
    struct oct_cells_grid grid;
    struct oct_cells_rows rows;
    struct oct_cells_summary summary;
    char *config; /* "key = value" a line, of what was used */

    struct oct_cells_kymograph kymograph; /* with a line */
    float *samples;                       /* [n_samples] of pixels, for lo and hi */
    size_t n_samples;
    double lo, hi; /* values to show as black and white */
    struct oct_cells_maps *maps;
};

/* um of a pixel along x and y are known. */
bool oct_cells_has_um(const struct oct_cells_job *c);

/* Picture `frame` as it is shown and searched; the caller finishes it. info may be NULL. */
enum oct_err oct_cells_read(struct oct_cells_job *c, uint64_t frame, struct oct_picture *picture,
                            struct oct_pictures_info *info, struct oct_error *err);

void oct_cells_summarise(struct oct_cells_job *c);
void oct_cells_print(const void *job);
oct_output_writer oct_cells_write_summary;

/* ---- cells_files.c ---- */

/* "track,frame,time_s,x_px,y_px,...": those in um and um/s are left out where the pixels' size is
 * unknown; times and speeds are empty where they are. */
oct_output_writer oct_cells_write_csv;
/* "track_id,t,y,x", px, in order of track: a tracks layer of napari. */
oct_output_writer oct_cells_write_napari;
oct_output_writer oct_cells_write_trackmate; /* cells_trackmate.c */
/* A file with /tracks: a dataset a column. */
oct_output_writer oct_cells_write_h5;

/* /tracks in the file of results --into, which is there; force: instead of those it has. The file
 * is replaced when the new one is whole. */
enum oct_err oct_cells_check_into(const struct oct_cells_job *c, struct oct_error *err);
enum oct_err oct_cells_write_into(const struct oct_cells_job *c, struct oct_error *err);

/* ---- cells_pictures.c ---- */

/* What pictures and plots need of every picture: begin before the first (OCT_E_ARG: the line lies
 * outside), add each, end after the last. */
enum oct_err oct_cells_shown_begin(struct oct_cells_job *c, struct oct_error *err);
void oct_cells_shown_add(struct oct_cells_job *c, uint64_t frame,
                         const struct oct_picture *picture);
void oct_cells_shown_end(struct oct_cells_job *c);

oct_output_writer oct_cells_draw_kymograph;
oct_output_writer oct_cells_draw_histogram;

/* Pictures with their cells: a ring a cell, its track's number and where it was before; an AVI, or
 * a folder of PNG files, which need not exist. force: pictures of an earlier run go. OCT_E_ARG,
 * OCT_E_IO. */
oct_output_writer oct_cells_draw_film;
enum oct_err oct_cells_check_folder(const char *path, bool force, struct oct_error *err);
enum oct_err oct_cells_draw_folder(struct oct_cells_job *c, struct oct_error *err);

/* ---- cells_maps.c: what the search saw, for tests and the curious ---- */

/* An HDF5 file with
 *     /score        f32 [T][H][W]  S of every pixel, NaN of frames that were not searched
 *     /best_radius  u8  [T][H][W]  the number of the best circle, 255: none
 *     /mgvf/field   f32 [n][h][w]  the MGVF field of each window, NaN beyond it
 *     /mgvf/frame, track, u1, v1, rows, columns, iterations   [n]
 * H x W is the searched picture: (x, y) of the original is (x0 + dx * column, y0 + dy * row), which
 * are attributes of the file. Begun after the film is made, a frame added after each push. */
enum oct_err oct_cells_maps_begin(struct oct_cells_job *c, struct oct_error *err);
enum oct_err oct_cells_maps_add(struct oct_cells_job *c, uint64_t frame, struct oct_error *err);
oct_output_writer oct_cells_maps_publish;
void oct_cells_maps_discard(struct oct_cells_maps *maps); /* NULL is fine */

#endif
