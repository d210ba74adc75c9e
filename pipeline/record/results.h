/* Results of analyses on their way from their rings into the open file.
 *
 *     result ring --lossy reader--> one pending result a source --> oct_volume_write_result
 *
 * A source is read by a lossy reader that may fall behind by half of the ring. A result is copied
 * and its slot released at once, so that no source ever waits for the recorder or the disk.
 *
 * A file that has all its B-scans waits for its results while the next one is filled. A result
 * belongs to the file that has its acquisition and volume, unless its B-scan came after
 * the recording was stopped. So a file has results of B-scans that its recording was to have, each
 * written or lost, and of no later ones; the image of a volume that was stopped within is
 * the last that the analysis made of those B-scans. While the recorder lags, the file is not open
 * yet: the result stays pending, and those after it stay in the ring. A result of which the file is
 * closed is counted as missed; one of a B-scan after the end is nobody's.
 *
 * Threads: the recorder's, but for oct_record_results_count, which any thread may call. */
#ifndef OCT_PIPELINE_RECORD_RESULTS_H
#define OCT_PIPELINE_RECORD_RESULTS_H

#include "pipeline/flow/slots.h"
#include "pipeline/record/file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oct_record_results;

/* Where the recorder is in the stream. Numbers of B-scans are info.id. */
struct oct_record_position {
    const struct oct_record_file *open;    /* being filled, if it has a writer */
    const struct oct_record_file *waiting; /* [n_waiting], whole but for results */
    unsigned n_waiting;
    uint64_t next;       /* B-scans below have passed the recorder */
    uint64_t first, end; /* B-scans that are or were to be recorded; none: first >= end */
    /* B-scans from here on are not of the open file. Read after each result: a stop may come while
     * results are written. */
    const atomic_uint_fast64_t *stop_at;
    bool keeps_up; /* no B-scans wait for the recorder */
};

struct oct_record_result_counts {
    char name[OCT_IMAGE_NAME_BYTES];
    uint64_t written; /* given to files; safe with the next sync of their file */
    uint64_t missed;  /* of recorded volumes, but they came after their file was closed, or the ring
                         had overwritten them */
    uint64_t refused; /* not of the form that their source has, or not in order */
};

/* Sources are borrowed for the life of the results. Takes memory for one result of each.
 * OCT_E_ARG: the forms cannot be in one file (oct_volume_forms_check); OCT_E_NO_MEMORY. */
enum oct_err oct_record_results_create(struct oct_record_results **results,
                                       const struct oct_image_source *sources, unsigned n_sources,
                                       struct oct_error *err);

/* NULL is fine. */
void oct_record_results_destroy(struct oct_record_results *results);

/* Sets about->forms. */
void oct_record_results_describe(const struct oct_record_results *results,
                                 struct oct_volume_about *about);

/* Bytes that the results of these sources take in the file of a volume, with their columns. */
double oct_record_sources_bytes(const struct oct_image_source *sources, unsigned n_sources,
                                uint32_t n_bscans);
double oct_record_results_bytes(const struct oct_record_results *results, uint32_t n_bscans);

/* Takes what is there and writes what belongs to the open file. An error is that of a write: the
 * file must be given up. */
enum oct_err oct_record_results_poll(struct oct_record_results *results,
                                     const struct oct_record_position *at, struct oct_error *err);

/* Whether any result has been pending for a second. */
bool oct_record_results_wait_long(const struct oct_record_results *results);

/* Whether this file, of which the last B-scan has come, has to wait for a source: one that has not
 * dealt with that B-scan and is within its bound. The bound is four times as long as the source
 * last took to deal with the last B-scan of a file, least_ns at least and 10 minutes at most; for
 * the image of a volume that was cut off, which may never come, a quarter of a second. A source
 * that exceeds its bound is late: no file waits for it again before it has delivered something or
 * dealt with that B-scan. What sources have dealt with is in their rings: poll once more before the
 * file is closed. */
bool oct_record_results_await(struct oct_record_results *results,
                              const struct oct_record_file *file, uint64_t least_ns);

unsigned oct_record_results_n(const struct oct_record_results *results);
struct oct_record_result_counts oct_record_results_count(const struct oct_record_results *results,
                                                         unsigned i);

#endif
