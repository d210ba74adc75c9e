/* What the two sides of playback share, between them the lock: the reader's thread (reader.c) takes
 * what is wanted and puts what it read into the box; the owner (play.c) says what the model
 * wants and gives the model what is in the box. Private to this room. */
#ifndef OCT_VIEWER_PLAY_BOX_H
#define OCT_VIEWER_PLAY_BOX_H

#include "pipeline/volume/label.h"
#include "viewer/model/model.h"
#include "viewer/play/fill.h"
#include "viewer/play/recorded.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What the model wants, as of the last turn. */
struct oct_play_wants {
    bool file; /* else it is closed */
    uint64_t number;
    char path[OCT_VIEW_PATH_BYTES];
    int by;
    bool or_before;
    uint64_t seen;                   /* the newest request of which the model has heard */
    struct oct_view_relabel relabel; /* that the thread has not begun */
    uint32_t bscan, slice_line;
    bool gently; /* octd records: the disk is its own */
};

/* What was read and not taken. */
struct oct_play_box {
    bool opened, refused, labelled, not_labelled, picture_came, slice_came, enface_came;
    struct oct_view_file file;
    char why_not[OCT_ERROR_TEXT_BYTES], why_no_label[OCT_ERROR_TEXT_BYTES];
    char labelled_path[OCT_VIEW_PATH_BYTES];
    struct oct_volume_label label;
    struct oct_view_picture picture;
    uint32_t bscan;
    bool valid;
    char why[160];
    struct oct_view_picture slice; /* of which the thread fills columns */
    uint32_t slice_of;
    double slice_share;
    struct oct_view_enface enface; /* of which it fills rows */
    bool enface_recorded;
    double enface_share;
};

struct oct_play {
    pthread_mutex_t lock; /* guards all down to `box` */
    pthread_cond_t asked, answered;
    bool ending, idle;
    uint64_t opened_number; /* the request that was opened or refused last */
    char refusal[OCT_ERROR_TEXT_BYTES];
    struct oct_play_wants wants;
    uint64_t n_asked; /* changes of wants */
    struct oct_play_box box;

    pthread_t thread;
    void (*notify)(void *context);
    void *context;
    const struct oct_config *config; /* borrowed */
    uint64_t taken_request;          /* the owner's: the model's newest */

    /* The thread's own. */
    struct oct_play_recorded *recorded; /* NULL: none is open */
    uint64_t done_number;               /* a request */
    bool has_bscan;
    uint32_t done_bscan;
    struct oct_view_picture picture;
    struct oct_play_fill slice, enface;
    bool looked_for_enface; /* in the file */
    uint32_t slice_line;
    float *values; /* room for an A-line, or for the means of a B-scan */
    uint64_t shown_ns;
};

/* Whether anything of a label is to be corrected. */
bool oct_play_relabels(const struct oct_view_relabel *relabel);

/* The thread: works until the owner ends it. context: the struct oct_play. */
void *oct_play_read(void *context);

#endif
