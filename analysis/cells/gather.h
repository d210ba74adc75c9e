/* From B-scans to the pictures that cells are sought in, with the times of their pixels.
 *
 *     create -> { has_left? -> picture; push; is_whole? -> picture | reset } -> picture -> destroy
 *
 * enface: a volume from above, [rows][M], done when it is whole, or when a B-scan of another volume
 * comes (has_left, before that is pushed), or at the end. bscan: each B-scan, [D][M].
 * What is masked, and what is known of times: live.h. One thread. */
#ifndef OCT_ANALYSIS_CELLS_GATHER_H
#define OCT_ANALYSIS_CELLS_GATHER_H

#include "analysis/cells/live.h"

struct oct_cells_gather;

struct oct_cells_gathered {
    struct oct_picture picture; /* the gather's own, until the next push */
    struct oct_cells_times times;
    struct oct_bscan_info info; /* of the B-scan, or of the newest one of the volume */
    uint64_t number;            /* of the picture in the acquisition: of the volume, the B-scan */
};

/* The size of pictures and their pixels, {dy, dx}, in um. */
void oct_cells_gather_size(enum oct_cells_source source, const struct oct_image_form *input,
                           uint32_t n_bscans, double bscan_um, uint32_t *height, uint32_t *width,
                           double um[2]);

/* OCT_E_CONFIG: settings of en face that cannot be; OCT_E_NO_MEMORY. */
enum oct_err oct_cells_gather_create(struct oct_cells_gather **gather,
                                     const struct oct_analysis_setup *setup,
                                     const struct oct_cells_settings *settings,
                                     struct oct_error *err);
void oct_cells_gather_destroy(struct oct_cells_gather *gather); /* NULL is fine */

/* Whether a volume is under way that this B-scan is not of. */
bool oct_cells_gather_has_left(const struct oct_cells_gather *gather,
                               const struct oct_bscan_info *next);
enum oct_err oct_cells_gather_push(struct oct_cells_gather *gather,
                                   const struct oct_image_frame *bscan, struct oct_error *err);
bool oct_cells_gather_is_whole(const struct oct_cells_gather *gather);

/* Whether a volume is under way: the end makes it a picture. */
bool oct_cells_gather_is_open(const struct oct_cells_gather *gather);

/* What has come, as a picture; the next push begins another. */
enum oct_err oct_cells_gather_picture(struct oct_cells_gather *gather,
                                      struct oct_cells_gathered *gathered, struct oct_error *err);

/* Another acquisition begins. */
void oct_cells_gather_reset(struct oct_cells_gather *gather);

/* Another projection. */
enum oct_err oct_cells_gather_configure(struct oct_cells_gather *gather,
                                        const struct oct_enface_settings *settings,
                                        struct oct_error *err);

#endif
