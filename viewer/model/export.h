/* A recording in playback to the hospital's archive (octctl archive exam), or as DICOM into a file
 * beside it where there is no archive (octctl export): what was asked for, and what became of it.
 * Pure; one thread. */
#ifndef OCT_VIEWER_MODEL_EXPORT_H
#define OCT_VIEWER_MODEL_EXPORT_H

#include "viewer/model/phrase.h"
#include "viewer/model/playback.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oct_view_export_state {
    OCT_EXPORT_NONE,
    OCT_EXPORT_DUE, /* octctl is to be asked for it */
    OCT_EXPORT_RUNS,
    OCT_EXPORT_WAITS,   /* in the queue for the archive */
    OCT_EXPORT_ARRIVED, /* the archive has said so */
    OCT_EXPORT_WRITTEN, /* to a file */
    OCT_EXPORT_FAILED,  /* `why` */
};

#define OCT_VIEW_EXAM_PARTS 4u /* B-scans, two pictures from above, a report */

/* Zeroed nothing was exported. Of several it is of the last one. */
struct oct_view_export {
    bool has_archive, is_real; /* dicom.archive is set; dicom.identity is real: the owner says so */
    char archive[32];          /* its title */
    enum oct_view_export_state state;
    char path[OCT_VIEW_PATH_BYTES];    /* of the recording */
    char written[OCT_VIEW_PATH_BYTES]; /* the file beside it */
    char uid[OCT_VIEW_EXAM_PARTS][66]; /* [n] instances */
    unsigned n;
    char why[256];      /* it failed, or one of them waits still */
    unsigned n_waiting; /* instances, of the queue */
    bool nobody_sends;  /* octctl archive run is not running */
    uint64_t look_ns;   /* then the queue is to be looked at */
    bool is_noted;      /* the user took note of the failure */
};

/* A page of a recording (octctl report). Zeroed none was asked for. */
struct oct_view_report_page {
    bool is_due, runs;              /* octctl is to be asked for it; it is asked */
    char path[OCT_VIEW_PATH_BYTES]; /* of the recording */
    char written[OCT_VIEW_PATH_BYTES];
};

struct oct_view_model;

/* Makes a page of the recording in playback, beside it, or says why not; what octctl printed then,
 * or (json NULL) why there is none. */
void oct_view_report_page_begin(struct oct_view_model *model);
void oct_view_report_page_take(struct oct_view_model *model, const char *json, const char *why);

/* Exports the recording in playback, unless it is under way, or says why it cannot. */
void oct_view_export_begin(struct oct_view_model *model);

/* Whether an export goes on: asked for and not made yet. */
bool oct_view_export_runs(const struct oct_view_model *model);

/* What octctl printed: of archive exam or export; of archive status. json NULL: it failed, and
 * why. */
void oct_view_export_take(struct oct_view_model *model, const char *json, size_t n_bytes,
                          const char *why);
void oct_view_export_take_status(struct oct_view_model *model, const char *json, size_t n_bytes);

/* Whether the queue is to be looked at now. */
bool oct_view_export_wants_status(const struct oct_view_model *model);

/* What became of the file in playback; false: it was not exported. Commas and semicolons part what
 * may be left out. */
bool oct_view_export_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

#endif
