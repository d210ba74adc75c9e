/* What octd finds in pictures and octview draws over them, or shows in their place: what is kept of
 * each, and the table of all. Each has a file of its own in viewer/overlay.
 *
 * Results of single B-scans are drawn over the B-scan that they were found in and over no other.
 * They come after their pictures. Where they come steadily, the newest picture that has one is
 * shown, so that it stands still on it; where they do not, the newest picture.
 *
 * A struct of results, zeroed, knows nothing. Numbers out of images are hostile: what is kept is in
 * range. An image that a check refuses changes nothing. One thread, the model's. */
#ifndef OCT_VIEWER_MODEL_OVERLAY_H
#define OCT_VIEWER_MODEL_OVERLAY_H

#include "analysis/layers/layers.h"
#include "analysis/rolloff/mirror.h"
#include "analysis/rolloff/rolloff.h"
#include "viewer/model/action.h"
#include "viewer/model/enface.h"
#include "viewer/model/layout.h"
#include "viewer/model/phrase.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_draw;
struct oct_view_archive;
struct oct_view_model;

/* ---- the table ---- */

struct oct_view_overlay {
    const char *topic; /* NULL: octd sends nothing for it */
    /* Refuses a form that octview has no use for: OCT_E_FORMAT. */
    enum oct_err (*check)(const struct oct_image_header *header, struct oct_error *err);
    /* Puts every image into the archive; NULL: the newest is enough. */
    void (*keep)(struct oct_view_archive *archive, const struct oct_view_image *image);
    /* Whether the topic is subscribed to now; NULL: always, or while its setting is on. */
    bool (*wanted)(const struct oct_view_model *model);
    /* Takes the newest image of the topic, while its setting is on. One that becomes a picture
     * swaps buffers through the model's spare one. */
    void (*take)(struct oct_view_model *model, struct oct_view_image *image);
    /* Results of single B-scans: of those that are drawn and come, the lowest chooses the picture;
     * 0: none does. */
    unsigned leads;
    /* Draw over the B-scan; and on the en face picture in r, below `line` lines of words: true, if
     * that adds another one. */
    void (*draw)(struct oct_draw *draw, const struct oct_view_model *model);
    bool (*draw_enface)(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_view_rect r, int line);
    /* Of those that a key switches. Where octd computes it, the key draws it or does not. Where it
     * does not, the key says so and offers the setting that starts it, which the same key again
     * asks octd for. */
    enum oct_view_action action;
    char key;
    size_t setting;           /* offset of its bool in struct oct_view_settings */
    const char *setting_name; /* in the file of settings; NULL: it has none */
    const char *what, *drawn, *not_drawn;
    size_t state_bytes; /* that it keeps for itself, OCT_VIEW_OVERLAY_BYTES at most */
};

#define OCT_VIEW_MOST_OVERLAYS 16u
#define OCT_VIEW_OVERLAY_BYTES 512u

/* In the order of drawing. */
extern const struct oct_view_overlay *const oct_view_overlays[];
extern const size_t oct_view_n_overlays;
#define OVERLAY(name) extern const struct oct_view_overlay oct_view_overlay_##name;
#include "viewer/model/overlays.h"
#undef OVERLAY

/* What it keeps for itself: state_bytes, zeroed at first. */
void *oct_view_overlay_state(const struct oct_view_model *model,
                             const struct oct_view_overlay *overlay);

/* Its setting; NULL: it has none. */
bool *oct_view_overlay_setting(struct oct_view_model *model,
                               const struct oct_view_overlay *overlay);

/* Takes an image of its topic, while frozen of the shown picture alone; where results come steadily
 * and pictures are B-scans, shows its picture. */
void oct_view_overlay_take(struct oct_view_model *model, const struct oct_view_overlay *overlay,
                           struct oct_view_image *image);

/* Does what the key of an overlay does. */
void oct_view_overlay_apply(struct oct_view_model *model, enum oct_view_action action);

/* What a key offered last. */
struct oct_view_offer {
    enum oct_view_action action;
    uint64_t until_ns; /* 0: nothing was */
};

/* ---- which picture ---- */

/* What chooses the picture; zeroed nothing does. */
struct oct_view_lead {
    unsigned of; /* `leads` of the overlay */
    bool is_steady;
    uint64_t came_ns; /* its newest result whose picture is kept; 0: none */
};

/* Of which B-scan a result is. */
struct oct_view_of {
    uint64_t frame_num;
    char acquisition_id[64];
};
struct oct_view_of oct_view_of_image(const struct oct_image_header *header);

/* Whether a picture that has no result is passed over, as one that has will follow. */
bool oct_view_overlay_leads(const struct oct_view_model *model);

/* Whether a result of this B-scan belongs to the shown picture: it is that B-scan, or an average
 * that has it in its mean. *lines, *depth: what moved it there, in A-lines and depth pixels. */
bool oct_view_overlay_belongs(const struct oct_view_model *model, const struct oct_view_of *of,
                              double *lines, double *depth);

/* The same; where no picture is chosen and they follow each other fast, only of a frozen one: drawn
 * over few of many it would flicker. */
bool oct_view_overlay_is_drawn(const struct oct_view_model *model, const struct oct_view_of *of);

/* Where that B-scan lies in the window, by where the shown picture does. */
struct oct_view_rectf oct_view_overlay_place(const struct oct_draw *draw,
                                             const struct oct_view_model *model,
                                             const struct oct_view_of *of);

/* ---- octd's average ---- */

#define OCT_VIEW_LEAST_AVERAGE 2u
#define OCT_VIEW_MOST_AVERAGE 32u
#define OCT_VIEW_AVERAGE_OF 8u /* B-scans that octd is asked to average at first */

/* What is said of one average. */
struct oct_view_average {
    double averaged, score;          /* NaN: not told */
    double shift_lines, shift_depth; /* px that moved the newest B-scan onto it; NaN: not told */
    uint64_t arrival_ns;             /* 0: the picture is a B-scan, no average */
};

/* What the image's header says. */
void oct_view_average_read(struct oct_view_average *average, const struct oct_view_image *image);

/* Makes a picture of a checked image; the buffers are swapped, so that the image then has one to
 * reuse. */
void oct_view_image_to_picture(struct oct_view_image *image, struct oct_view_picture *picture);

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

/* ---- the sharpest dispersion, which octd finds on request ----
 *
 *     asked (D) -> octd computes -> its picture is shown, frozen -> asked again: live */

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

/* Asks octd for it; or, where its picture is shown, goes back to live ones. */
void oct_view_sharpened_toggle(struct oct_view_model *model);

/* With the daemon's newest status: ends the wait where octd says that it failed, or is silent. */
void oct_view_sharpened_hear(struct oct_view_model *model);

/* Line i of what is said of the shown picture: sharpness and width, then what to write into the
 * configuration. False: there are not so many. */
bool oct_view_sharpened_text(const struct oct_view_model *model, unsigned i, char *text,
                             size_t n_bytes);

/* ---- the cone spacing of the newest volume ---- */

struct oct_view_cones {
    bool known;    /* a row came */
    bool has_ring; /* the numbers below are there; else they are 0 */
    double spacing_um, per_mm2, strength;
    uint64_t volume;
    char acquisition_id[64]; /* of the row, as in the header */
};

/* Takes a row: labels spacing_um, cells_per_mm2, strength; unknown ones are ignored. There is a
 * ring where all three are above 0 and can be (a micrometre to a millimetre). One without rows
 * changes nothing. */
void oct_view_cones_set(struct oct_view_cones *cones, const struct oct_view_image *row);

/* "cones 4.2 um 65,000/mm2 (0.14)", and how many volumes ago where others were scanned since; "no
 * ring" where octd found none; empty where octd says nothing of cones, its row is of another
 * acquisition than the picture, or the scale is not known. */
void oct_view_cones_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* ---- cells that are followed: where they are and have been ---- */

#define OCT_VIEW_CELLS_MOST 256u
#define OCT_VIEW_CELLS_TAIL 20u /* positions of a track that are kept, the newest among them */

struct oct_view_track {
    uint32_t track;
    unsigned n;                                           /* positions: 1 or more */
    float x[OCT_VIEW_CELLS_TAIL], y[OCT_VIEW_CELLS_TAIL]; /* px of the picture, the newest last */
    float radius;                                         /* px of its finer axis */
    bool is_coasting; /* it was not seen in the newest picture: that is where it is thought */
};

struct oct_view_cells {
    unsigned n; /* of tracks */
    struct oct_view_track tracks[OCT_VIEW_CELLS_MOST];
    double count;           /* as octd says: those beyond the table too */
    double median_um_s;     /* NaN: not known */
    uint32_t width, height; /* of the picture that positions are of; 0: nothing came */
    bool is_bscan;          /* it is a B-scan, else the volume from above */
    struct oct_view_of of;  /* the newest B-scan in it */
    uint64_t volume;        /* of that B-scan */
    uint64_t arrival_ns;    /* of the newest table; 0: none came */
    uint64_t interval_ns;   /* between that and the one before; 0: there was none */
};

/* Takes a table: labels track, x_px, y_px, radius_px, how; numbers width, height, is_bscan, count,
 * median_speed_um_s. Rows with a place outside the picture, or a radius that cannot be, are left
 * out. A track goes on that had a row in the table before; a table of another acquisition, another
 * picture, or from before the newest begins anew. */
void oct_view_cells_set(struct oct_view_cells *cells, const struct oct_view_image *table);

/* Whether what is known is of now: no table for two of the times between them, and two seconds
 * more, is too old. */
bool oct_view_cells_are_new(const struct oct_view_cells *cells, uint64_t now_ns);

/* Whether there are cells to be drawn: of the shown B-scan, or of now and of the volume that is
 * seen from above. */
bool oct_view_model_has_cells(const struct oct_view_model *model);

/* "cells 12, median 340 um/s" of the cells that are drawn; empty: there are none. */
void oct_view_cells_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* ---- layers ---- */

struct oct_view_layers {
    uint32_t n_lines;              /* of the B-scan that they are of; 0: nothing came */
    float *position[OCT_N_LAYERS]; /* [n_lines] depth pixels, 0 in the middle of the first one;
                                         NaN: not found; one block, owned */
    struct oct_view_of of;
};
void oct_view_layers_finish(struct oct_view_layers *layers);

/* Copies the positions; what is no place in a picture is NaN. Without memory for them nothing
 * changes. */
void oct_view_layers_set(struct oct_view_layers *layers, const struct oct_view_image *image);

/* The mean distance from the ILM to the RPE, in depth pixels, of the A-lines between two places (of
 * one, where both lie on it) that have both; NaN where none has. *found (may be NULL): the share of
 * A-lines that have both. */
double oct_view_layers_thickness(const struct oct_view_layers *layers, double line_a, double line_b,
                                 double *found);

/* Whether there are layers of the shown picture. */
bool oct_view_model_has_layers(const struct oct_view_model *model);

/* How thick the nerve fibre layer of the shown picture is at an A-line, um, or depth pixels where
 * their size is not known; NaN: it is not found. */
double oct_view_model_fibres(const struct oct_view_model *model, uint32_t line);

/* "ILM to RPE 285 um" of the layers that are drawn, and their share of the A-lines where some lack
 * them. */
void oct_view_layers_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* "; ILM to RPE 285.1 um" between two A-lines; "": it is not known. */
void oct_view_model_thickness_text(const struct oct_view_model *model, double line_a, double line_b,
                                   char *text, size_t n_bytes);

/* ---- a mirror's axial peak, and the roll-off over depth ---- */

/* Numbers are finite or NaN: not known. */
struct oct_view_rolloff {
    enum oct_mirror_state state; /* FOUND: the newest B-scan has a mirror */
    double depth_px, depth_um, peak_db, fwhm_px, fwhm_um, snr_db;
    double db_per_mm, db_per_100px, minus_6db_px, minus_6db_um;
    unsigned n; /* points */
    struct {
        float depth_px, peak_db;
    } points[OCT_ROLLOFF_MOST_POINTS];
    struct oct_view_of of; /* the newest B-scan */
};

/* Takes a table and its numbers; rows without a depth and a peak are left out. */
void oct_view_rolloff_set(struct oct_view_rolloff *rolloff, const struct oct_view_image *table);

/* dB of the line through the points, at a depth pixel; NaN: there is none. */
double oct_view_rolloff_line(const struct oct_view_rolloff *rolloff, double depth_px);

/* Whether a mirror was measured in the shown picture. */
bool oct_view_model_has_rolloff(const struct oct_view_model *model);

/* What octd measures of a mirror: "412.3 px: FWHM 6.12 px, 15.31 um, SNR 52.1 dB" (um in air), or
 * why there is none; and, from three points on, "-5.10 dB/mm, -6 dB at 1.18 mm, 12 points".
 * Returns how many lines; 0: nothing is measured now. */
unsigned oct_view_rolloff_text(const struct oct_view_model *model, struct oct_view_phrase lines[2]);

/* ---- blood flow over the B-scan: decorrelation, or the velocity ---- */

#define OCT_VIEW_BULK_DOUBTFUL 0.1 /* decorrelation of still tissue */
#define OCT_VIEW_BULK_MOST 0.3     /* where octd does not say flow.max_bulk */

/* Of the newest result; numbers that are not known are NaN. */
struct oct_view_flow {
    bool is_velocity;
    uint32_t n_lines, depth;     /* 0: nothing came */
    uint32_t *argb;              /* [depth][n_lines] a colour and how much of it; 0: none; owned */
    uint64_t serial;             /* changes with every result */
    struct oct_view_of of;       /* the last B-scan of its place */
    double bulk, snr_db, tau_us; /* bulk: decorrelation of still tissue */
    bool has_moved;
    double limit; /* where speeds become ambiguous, in `unit` */
    char unit[OCT_IMAGE_UNIT_BYTES];
};
void oct_view_flow_finish(struct oct_view_flow *flow);

/* Takes a result of the topic `flow` or `velocity`. Without memory for it nothing changes. */
void oct_view_flow_set(struct oct_view_flow *flow, const struct oct_view_image *image,
                       bool is_velocity);

/* 0xrrggbb of a velocity as a share of the limit: red towards the beam (-1), black, blue away. */
uint32_t oct_view_velocity_rgb(double share);

/* Whether octd computes what is to be drawn; whether there is some of the shown picture. */
bool oct_view_flow_is_on(const struct oct_view_model *model);
/* Which of cells and mirror octd computes and the window draws; NULL: neither. */
const struct oct_view_overlay *oct_view_overlay_more(const struct oct_view_model *model);

/* Whether octd searches for layers, as far as it said. */
bool oct_view_layers_are_on(const struct oct_view_model *model);
bool oct_view_model_has_flow(const struct oct_view_model *model);

/* Colours a part of the shown picture, which oct_view_convert_part made of it. */
void oct_view_flow_tint(const struct oct_view_model *model, const struct oct_view_part *part,
                        uint32_t *argb, size_t pitch_px);

/* "flow: bulk 0.04, SNR 12.1 dB, tau 5.02 ms"; "velocity up to 15.4 mm/s, tau 10 us"; a warning
 * where the place moved. "": nothing is drawn. */
void oct_view_flow_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* ---- the angiogram ---- */

struct oct_view_angiogram {
    struct oct_view_enface enface; /* rows are places; arrival_ns 0: none came */
    double n_places, n_moved;      /* of the newest volume; NaN: not told */
    /* Rows without flow that were scanned, where places moved: octd leaves those out. */
    bool is_gap[OCT_VIEW_ENFACE_MOST];
};

void oct_view_angiogram_set(struct oct_view_angiogram *angiogram,
                            const struct oct_view_image *image);
bool oct_view_model_has_angiogram(const struct oct_view_model *model);

/* Two lines: "angiogram, superficial" (or for how long none came), "3 of 240 places moved". */
void oct_view_angiogram_text(const struct oct_view_model *model, struct oct_view_phrase lines[2]);

/* The slab of an action, as flow.slab names it; and asks octd for it, or for the whole depth where
 * that is on. False: the action is none of these. */
const char *oct_view_slab_of(enum oct_view_action action);
bool oct_view_angiogram_apply(struct oct_view_model *model, enum oct_view_action action);

/* ---- how a layer moves against another, over time ---- */

#define OCT_VIEW_TRACE_MOST 1024u
#define OCT_VIEW_TRACE_DEPTHS 64u

/* The last points, the oldest first: finite. */
struct oct_view_trace {
    unsigned n;
    struct {
        double time_s, moved, sd; /* in `unit`; sd is what noise makes of it */
    } points[OCT_VIEW_TRACE_MOST];
    /* An A-line of what was shown when it came, 0 (black) .. 255, from above: of M-mode the point's
     * own, else that of the profile. */
    uint8_t lines[OCT_VIEW_TRACE_MOST][OCT_VIEW_TRACE_DEPTHS];
    const char *unit; /* "nm", "rad" */
    char acquisition_id[64];
    uint64_t serial, came_ns; /* 0: none came */
};

/* Takes a table of labels time_s, nm or rad, sd_nm or sd_rad. One of another acquisition, or from
 * before the newest, begins anew. Rows that are not known are left out. */
void oct_view_trace_set(struct oct_view_trace *trace, const struct oct_view_image *table,
                        const struct oct_view_model *model);

/* Whether it stands in the place of the spectrum; "trace  12.3 nm, sd 1.2" of the newest point. */
bool oct_view_model_has_trace(const struct oct_view_model *model);
void oct_view_trace_text(const struct oct_view_model *model, char *text, size_t n_bytes);

/* ---- the en face picture ---- */

/* After the slab comes the picture that follows layers, if octd makes one, then the mean again. */
void oct_view_model_next_projection(struct oct_view_model *model);

#endif
