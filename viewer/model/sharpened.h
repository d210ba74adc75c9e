/* The dispersion that octd finds on request: one B-scan before and after, side by side in one
 * picture, and what is said of it.
 *
 *     asked (D) -> octd computes -> its picture is shown, frozen -> asked again: live */
#ifndef OCT_VIEWER_MODEL_SHARPENED_H
#define OCT_VIEWER_MODEL_SHARPENED_H

#include "viewer/model/image.h"
#include "viewer/model/picture.h"

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

struct oct_view_model;

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

#endif
