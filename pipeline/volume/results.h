/* Results of analyses on their way into a recording: /analysis/NAME and its columns.
 *
 * Images of B-scans are rows of a stream (stream.h). The image of a volume is kept in memory and
 * written at the next sync, over the one before. In both cases the value of the column `valid`
 * follows the two syncs of the writer:
 *
 *     push (data, other columns) -> sync -> push_valid -> sync
 *
 * An image that replaces one in the file is written only after its `valid` was set to 0 and synced,
 * so that a valid image is never half old and half new.
 *
 * One thread. */
#ifndef OCT_PIPELINE_VOLUME_RESULTS_H
#define OCT_PIPELINE_VOLUME_RESULTS_H

#include "pipeline/base/err.h"
#include "pipeline/volume/file.h"
#include "pipeline/volume/layout.h"
#include "pipeline/volume/queue.h"
#include "pipeline/volume/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_volume_result {
    struct oct_image_form form;
    struct oct_volume_result_layout layout;
    uint32_t n_rows; /* of the columns: V, the blocks of a volume, or 1 of a volume */
    uint32_t next;   /* rows from here on may be accepted; of a volume always 0 */
    uint32_t *rows;  /* the columns, [n_rows] */
    double *lo, *hi;
    double *numbers; /* [n_rows] of the first value of each, then of the next: see number_at */
    uint8_t *valid;
    uint32_t first_dirty, end_dirty; /* rows whose columns differ from the file's */
    struct oct_volume_stream stream; /* of images of B-scans */
    unsigned char *image;            /* of a volume: the newest; NULL: images of B-scans */
    bool is_in_file;                 /* of a volume: valid is 1 there */
};

/* Zeroed is one without results. */
struct oct_volume_results {
    struct oct_volume_file *file; /* borrowed */
    struct oct_volume_result *results;
    unsigned n;
    unsigned char *row; /* for images of B-scans that do not fill theirs */
};

/* How many of these forms hold a block of the queue each. */
unsigned oct_volume_results_n_streams(const struct oct_image_form *const *forms, unsigned n_forms);

/* File and queue are borrowed and outlive the results. OCT_E_NO_MEMORY. */
enum oct_err oct_volume_results_init(struct oct_volume_results *results,
                                     struct oct_volume_file *file, struct oct_volume_queue *queue,
                                     const struct oct_volume_layout *layout,
                                     const struct oct_volume_about *about, uint32_t n_bscans,
                                     struct oct_error *err);

/* Copies a result. OCT_E_ARG as oct_volume_write_result, nothing is changed; any other error: a
 * write before it failed. */
enum oct_err oct_volume_results_accept(struct oct_volume_results *results, unsigned i,
                                       const struct oct_image_frame *frame, struct oct_error *err);

/* Writes all that is new but `valid`; may sync. The caller has waited for the queue. *n_bytes
 * counts on; what is replaced counts once. */
enum oct_err oct_volume_results_push(struct oct_volume_results *results, uint64_t *n_bytes,
                                     struct oct_error *err);

/* Whether push_valid has anything to write. */
bool oct_volume_results_are_new(const struct oct_volume_results *results);

/* Writes `valid` of what push wrote and the caller has synced. */
enum oct_err oct_volume_results_push_valid(struct oct_volume_results *results, uint64_t *n_bytes,
                                           struct oct_error *err);

/* After the last push: writes NaN for all that no result came for, so that nobody takes it for 0:
 * f32 images, but for pictures of B-scans, and columns; syncs. */
enum oct_err oct_volume_results_end(struct oct_volume_results *results, uint64_t *n_bytes,
                                    struct oct_error *err);

/* Gives the disk back other images that no result was written to (oct_volume_file_give_back). */
void oct_volume_results_give_back(const struct oct_volume_results *results);

/* Bytes of the streams that went to the file by pushes. */
uint64_t oct_volume_results_bytes(const struct oct_volume_results *results);

/* Fine on a zeroed one. */
void oct_volume_results_finish(struct oct_volume_results *results);

#endif
