/* The scan that octd runs, changed from the window: one of the site's list (scan.choices), a line
 * drawn on the picture from above, or a line where the shown B-scan lies, for Average.
 *
 *     listed --a line--> placed --back--> listed
 *
 * What runs is what octd's status says; what was asked for is in the wishes. A scan that stays at
 * one place (a line, a circle) has no picture from above: the one before stays, and has the way of
 * the B-scan drawn over it. Pure; one thread. */
#ifndef OCT_VIEWER_MODEL_SCAN_H
#define OCT_VIEWER_MODEL_SCAN_H

#include "pipeline/plan/scan.h"
#include "viewer/model/action.h"
#include "viewer/model/daemon.h"
#include "viewer/model/list.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_LEAST_LINE_UM 200.0

/* Of which scan the live picture from above is. */
struct oct_view_above {
    bool is_known;
    struct oct_scan scan;
    double lateral_um, slow_um;
    char acquisition_id[64]; /* its images' */
    char next_id[64];        /* of the newest that is another; when its first came: */
    uint64_t next_ns;
};

/* Zeroed nothing is asked or known. */
struct oct_view_scan {
    bool is_open; /* the list, in the window */
    struct oct_view_list rows;
    bool draws;    /* a drag on the picture from above is a line */
    bool has_line; /* it is under way, between these shares of the picture: */
    double from[2], to[2];
    bool is_averages;      /* the placed line is Average's, as far as it was asked for */
    bool has_before;       /* what ran before the placed line: */
    bool before_is_listed; /* by its name, else by its keys */
    char before_name[OCT_VIEW_SCAN_NAME_BYTES];
    struct oct_scan before;
    bool has_number; /* octd counts its scans, and this is the newest: */
    double number;
    uint64_t changed_ns; /* when it became another; 0: never */
    struct oct_view_above above;
};

struct oct_image_header;
struct oct_view_model;

/* Whether the scan is a line that somebody placed: of no list, and not as configured. */
bool oct_view_scan_is_placed(const struct oct_view_model *model);

/* Whether octd is asked for another scan, or began one and no picture has come: that is no fault
 * for a while. And whether Average must wait: what is shown may be of the one before. */
bool oct_view_scan_changes(const struct oct_view_model *model);
bool oct_view_scan_is_busy(const struct oct_view_model *model);

/* OCT_ACTION_SCAN opens or closes the list; OCT_ACTION_LINE takes the tool, or puts it back and
 * ends the placed line. False: the action is neither. */
bool oct_view_scan_apply(struct oct_view_model *model, enum oct_view_action action);

/* The list: a row a scan, and one for a line to be drawn. */
bool oct_view_scans_are_shown(const struct oct_view_model *model);
const char *oct_view_scans_row(const struct oct_view_model *model, unsigned i);
bool oct_view_scans_row_runs(const struct oct_view_model *model, unsigned i);
void oct_view_scans_choose(struct oct_view_model *model, unsigned i);

/* Closes the list, or puts the tool back. False: there was neither. */
bool oct_view_scan_cancel(struct oct_view_model *model);

/* Ends the placed line: the scan before it, or as configured. */
void oct_view_scan_back(struct oct_view_model *model);

/* A drag with the tool, in shares of the picture from above: under way; released, a line is asked
 * for, or it is said why not. */
void oct_view_scan_draw(struct oct_view_model *model, const double from[2], const double to[2]);
void oct_view_scan_release(struct oct_view_model *model);

/* Average begins: asks for a line where the shown B-scan lies; ends: back, where that line is
 * Average's. False: the scan stays as it is. */
bool oct_view_scan_average(struct oct_view_model *model, bool begins);

/* Whether a recording goes on that this status, of a change of the scan, has not: octd closes its
 * file and begins the next one. */
bool oct_view_scan_holds_recording(const struct oct_view_model *model,
                                   const struct oct_view_daemon *daemon);

/* octd answered a wish; its newest status stands in model->daemon. */
void oct_view_scan_answered(struct oct_view_model *model, const struct oct_view_answer *answer);
void oct_view_scan_hear(struct oct_view_model *model);

/* ---- the picture from above ---- */

/* An image from above came: true, it is to be shown, and its scan is noted. The first of an
 * acquisition wait for a status newer than they are, which says of which scan they are. */
bool oct_view_above_take(struct oct_view_model *model, const struct oct_image_header *header);

/* The scan that the shown one is of (of a recording its own); and whether another runs, which has
 * none of its own. */
const struct oct_scan *oct_view_above_scan(const struct oct_view_model *model);
bool oct_view_above_is_kept(const struct oct_view_model *model);

/* A place of the field, um, in shares of the picture, from its left upper corner; and the other way
 * round. False: the picture is no map, or its size is not known. */
bool oct_view_above_share(const struct oct_view_model *model, const double um[2], double share[2]);
bool oct_view_above_um(const struct oct_view_model *model, const double share[2], double um[2]);

#endif
