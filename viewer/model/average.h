/* The live average of the daemon: which picture it is, and what is said of it. */
#ifndef OCT_VIEWER_MODEL_AVERAGE_H
#define OCT_VIEWER_MODEL_AVERAGE_H

#include "viewer/model/image.h"
#include "viewer/model/picture.h"

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

#endif
