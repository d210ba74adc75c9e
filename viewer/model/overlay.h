/* Results of single B-scans, drawn over pictures: each is drawn over the B-scan that it was found
 * in and over no other. Results come after their pictures. Where they come steadily, the newest
 * picture that has one is shown, so that it stands still on it; where they do not, the newest
 * picture. Pure; one thread, the model's. */
#ifndef OCT_VIEWER_MODEL_OVERLAY_H
#define OCT_VIEWER_MODEL_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

struct oct_image_header;
struct oct_view_model;

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

#endif
