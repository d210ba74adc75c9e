/* What octd finds in pictures and octview draws over them or shows in their place. */
#ifndef OCT_VIEWER_MODEL_OVERLAY_H
#define OCT_VIEWER_MODEL_OVERLAY_H

#include "analysis/rolloff/mirror.h"
#include "analysis/rolloff/rolloff.h"
#include "analysis/surface/live.h"
#include "viewer/model/action.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

/* The live average of the daemon: which picture it is, and what is said of it. */

#define OCT_VIEW_TOPIC_AVERAGE "average"
#define OCT_VIEW_LEAST_AVERAGE 2u
#define OCT_VIEW_MOST_AVERAGE 32u
#define OCT_VIEW_AVERAGE_OF 8u /* B-scans that octd is asked to average at first */

/* What is said of one average. */
struct oct_view_average {
    double averaged, rejected, score; /* NaN: not told */
    double shift_lines, shift_depth;  /* px that moved the newest B-scan onto it; NaN: not told */
    uint64_t arrival_ns;              /* 0: the picture is a B-scan, no average */
};

/* Refuses an image that cannot be shown in place of a B-scan. */
enum oct_err oct_view_average_check(const struct oct_image_header *header, struct oct_error *err);

/* What the image's header says. */
void oct_view_average_read(struct oct_view_average *average, const struct oct_view_image *image);

/* Makes a picture of a checked image; the buffers are swapped, so that the image then has one to
 * reuse. */
void oct_view_average_take(struct oct_view_average *average, struct oct_view_image *image,
                           struct oct_view_picture *picture);

struct oct_view_model;

/* Whether averages come, so that they stand in place of B-scans. */
bool oct_view_average_comes(const struct oct_view_model *model);

/* Shows octd's average or each B-scan. Where octd makes none, it is asked for one of as many
 * B-scans as the last time. The second asks for another number of them: the next of 2, 4, 8, 16,
 * 32. */
void oct_view_average_toggle(struct oct_view_model *model);
void oct_view_average_next_number(struct oct_view_model *model);

/* How many B-scans octd is asked to average where it makes none. */
unsigned oct_view_average_wished(const struct oct_view_model *model);

/* octd compared its newest B-scan, and did not take it in. */
bool oct_view_average_left_out(const struct oct_view_average *average);

/* "AVERAGE of 16 (14 in it)  0.82" of the shown one (the score: how well the newest B-scan matches;
 * operators see none), or why a B-scan stands there. True: something is amiss with it, so that it
 * stands out: none comes, or the newest B-scan did not match. */
bool oct_view_average_text(const struct oct_view_model *model, char *text, size_t n_bytes);

/* The dispersion that octd finds on request: one B-scan before and after, side by side in one
 * picture, and what is said of it.
 *
 *     asked (D) -> octd computes -> its picture is shown, frozen -> asked again: live */

#define OCT_VIEW_TOPIC_CALIBRATE "calibrate"
#define OCT_VIEW_SHARPENED_LINES 4

struct oct_view_sharpened {
    double dispersion[4];             /* a2 to a5 in radians, over the spectrum; NaN: a file */
    double sharpness[2], width_px[2]; /* before, after; NaN: not told */
    uint64_t arrival_ns;              /* 0: the shown picture is no such one */
};

/* Waiting for octd. */
struct oct_view_sharpening {
    bool waits;
    double number;     /* of octd's errand before it was asked */
    uint64_t since_ns; /* when it was asked */
};

/* Refuses an image that is no picture of two halves. */
enum oct_err oct_view_sharpened_check(const struct oct_image_header *header, struct oct_error *err);

/* Asks octd for it; or, where its picture is shown, goes back to live ones. */
void oct_view_sharpened_toggle(struct oct_view_model *model);

/* Takes an image of the topic where it is waited for, and shows it, frozen; the buffers are swapped
 * through `spare`. */
void oct_view_sharpened_offer(struct oct_view_model *model, struct oct_view_image *image,
                              struct oct_view_picture *spare);

/* With the daemon's newest status: ends the wait where octd says that it failed, or is silent. */
void oct_view_sharpened_hear(struct oct_view_model *model);

/* Line i of what is said of the shown picture: sharpness and width, then what to write into the
 * configuration. False: there are not so many. */
bool oct_view_sharpened_text(const struct oct_view_model *model, unsigned i, char *text,
                             size_t n_bytes);

/* The cone spacing of the newest volume, as octd says in the topic `cones`. octd computes it. Pure;
 * one thread at a time. */

#define OCT_VIEW_TOPIC_CONES "cones"

/* Zeroed it knows nothing. */
struct oct_view_cones {
    bool known;    /* a row came */
    bool has_ring; /* the numbers below are there; else they are 0 */
    double spacing_um, per_mm2, strength;
    uint64_t volume;
    char acquisition_id[64]; /* of the row, as in the header */
};

/* What an image of the topic must be: one row (or none) of labelled f32 numbers. OCT_E_FORMAT. */
enum oct_err oct_view_cones_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes a row: labels spacing_um, cells_per_mm2, strength; unknown ones are ignored. There is a
 * ring where all three are above 0 and can be (a micrometre to a millimetre). An image that the
 * check refuses, or one without rows, changes nothing. */
void oct_view_cones_set(struct oct_view_cones *cones, const struct oct_view_image *row);

/* The cells that octd follows, as it says in the topic `cells`: where they are and have been. octd
 * finds them. Pure; one thread at a time. */

#define OCT_VIEW_TOPIC_CELLS "cells"
#define OCT_VIEW_CELLS_MOST 256u
#define OCT_VIEW_CELLS_TAIL 20u /* positions of a track that are kept, the newest among them */

struct oct_view_track {
    uint32_t track;
    unsigned n;                                           /* positions: 1 or more */
    float x[OCT_VIEW_CELLS_TAIL], y[OCT_VIEW_CELLS_TAIL]; /* px of the picture, the newest last */
    float radius;                                         /* px of its finer axis */
    bool is_coasting; /* it was not seen in the newest picture: that is where it is thought */
};

/* Zeroed it knows nothing. */
struct oct_view_cells {
    unsigned n; /* of tracks */
    struct oct_view_track tracks[OCT_VIEW_CELLS_MOST];
    double count;            /* as octd says: those beyond the table too */
    double median_um_s;      /* NaN: not known */
    uint32_t width, height;  /* of the picture that positions are of; 0: nothing came */
    bool is_bscan;           /* it is a B-scan, else the volume from above */
    uint64_t frame_num;      /* of the newest B-scan in it */
    uint64_t volume;         /* of that B-scan */
    uint64_t arrival_ns;     /* of the newest table; 0: none came */
    uint64_t interval_ns;    /* between that and the one before; 0: there was none */
    char acquisition_id[64]; /* as in the header */
};

/* What an image of the topic must be: a table of labelled f32 numbers, of OCT_VIEW_CELLS_MOST rows
 * at most. OCT_E_FORMAT. */
enum oct_err oct_view_cells_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes a table: labels track, x_px, y_px, radius_px, how; numbers width, height, is_bscan, count,
 * median_speed_um_s. Rows with a place outside the picture, or a radius that cannot be, are left
 * out. A track goes on that had a row in the table before. A table that the check refuses changes
 * nothing; one of another acquisition, another picture, or from before the newest begins anew. */
void oct_view_cells_set(struct oct_view_cells *cells, const struct oct_view_image *table);

/* Whether what is known is of now: no table for two of the times between them, and two seconds
 * more, is too old. */
bool oct_view_cells_are_new(const struct oct_view_cells *cells, uint64_t now_ns);

/* The layers that octd finds in B-scans, as it says in the topic `surfaces`: ILM and RPE. Pure; one
 * thread at a time. */

#define OCT_VIEW_TOPIC_LAYERS "surfaces"

/* Zeroed it knows nothing. */
struct oct_view_layers {
    uint32_t n_lines;              /* of the B-scan that they are of; 0: nothing came */
    float *position[OCT_N_LAYERS]; /* [n_lines] depth pixels, 0 in the middle of the first one;
                                         NaN: not found; one block, owned */
    uint64_t frame_num;            /* of that B-scan */
    char acquisition_id[64];
};
void oct_view_layers_finish(struct oct_view_layers *layers);

/* What an image of the topic must be: f32 [OCT_SURFACES_N_ROWS][M], M > 0. OCT_E_FORMAT. */
enum oct_err oct_view_layers_check(const struct oct_image_header *header, struct oct_error *err);

/* Copies the positions; what is no place in a picture is NaN. An image that the check refuses, or
 * one for which there is no memory, changes nothing. */
void oct_view_layers_set(struct oct_view_layers *layers, const struct oct_view_image *image);

/* The mean distance from the ILM to the RPE, in depth pixels, of the A-lines between two places (of
 * one, where both lie on it) that have both; NaN where none has. *found (may be NULL): the share of
 * A-lines that have both. */
double oct_view_layers_thickness(const struct oct_view_layers *layers, double line_a, double line_b,
                                 double *found);

/* A mirror's axial peak and the roll-off over depth, as octd says in the topic `rolloff`. octd
 * measures both. Pure; one thread at a time. */

#define OCT_VIEW_TOPIC_ROLLOFF "rolloff"

/* Zeroed it knows nothing. Numbers are finite or NaN: not known. */
struct oct_view_rolloff {
    enum oct_mirror_state state; /* FOUND: the newest B-scan has a mirror */
    double depth_px, depth_um, peak_db, fwhm_px, fwhm_um, snr_db;
    double db_per_mm, db_per_100px, minus_6db_px, minus_6db_um;
    unsigned n; /* points */
    struct {
        float depth_px, peak_db;
    } points[OCT_ROLLOFF_MOST_POINTS];
    uint64_t frame_num; /* the newest B-scan */
    char acquisition_id[64];
};

/* What an image of the topic must be: a table of labelled f32 numbers, of OCT_ROLLOFF_MOST_POINTS
 * rows at most. OCT_E_FORMAT. */
enum oct_err oct_view_rolloff_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes a table and its numbers; rows without a depth and a peak are left out. A table that the
 * check refuses changes nothing. */
void oct_view_rolloff_set(struct oct_view_rolloff *rolloff, const struct oct_view_image *table);

/* dB of the line through the points, at a depth pixel; NaN: there is none. */
double oct_view_rolloff_line(const struct oct_view_rolloff *rolloff, double depth_px);

/* Results of single B-scans, drawn over pictures: each is drawn over the B-scan that it was found
 * in and over no other. Results come after their pictures. Where they come steadily, the newest
 * picture that has one is shown, so that it stands still on it; where they do not, the newest
 * picture. Pure; one thread, the model's. */

struct oct_image_header;

/* Of those that are drawn and come, the first one chooses the picture. */
enum oct_view_overlay { OCT_OVERLAY_LAYERS, OCT_OVERLAY_CELLS, OCT_OVERLAY_ROLLOFF };

/* What chooses the picture; zeroed nothing does. */
struct oct_view_lead {
    enum oct_view_overlay of;
    bool is_steady;
    uint64_t came_ns; /* its newest result whose picture is kept; 0: none */
};

/* Whether a result of a B-scan is to be taken: of the shown picture alone while that is frozen. */
bool oct_view_overlay_takes(const struct oct_view_model *model,
                            const struct oct_image_header *header);

/* Notes that a result came of this B-scan, at that time; shows its picture where they come steadily
 * and the pictures are B-scans. */
void oct_view_overlay_lead(struct oct_view_model *model, enum oct_view_overlay of,
                           const struct oct_image_header *header, uint64_t arrival_ns);

/* Whether a picture that has no result is passed over, as one that has will follow. */
bool oct_view_overlay_leads(const struct oct_view_model *model);

/* Whether a result of this B-scan belongs to the shown picture: it is that B-scan, or an average
 * that has it in its mean. *lines, *depth: what moved it there, in A-lines and depth pixels. */
bool oct_view_overlay_belongs(const struct oct_view_model *model, const char *acquisition_id,
                              uint64_t frame_num, double *lines, double *depth);

/* The same; where no picture is chosen and they follow each other fast, only of a frozen one: drawn
 * over few of many it would flicker. */
bool oct_view_overlay_is_drawn(const struct oct_view_model *model, const char *acquisition_id,
                               uint64_t frame_num);

/* The keys of what octd computes and octview draws: cells, layers, a mirror. Where octd computes
 * it, a key draws it or does not. Where it does not, the key says so and offers the setting that
 * starts it, which the same key again asks octd for. */

/* What was offered last. */
struct oct_view_offer {
    enum oct_view_action action;
    uint64_t until_ns; /* 0: nothing was */
};

/* False: the action is none of these. */
bool oct_view_switches_apply(struct oct_view_model *model, enum oct_view_action action);

#endif
