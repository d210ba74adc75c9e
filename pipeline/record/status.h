/* The recorder's status and the account of its recordings. Both are exact at every moment, although
 * one thread writes a file while another closes the one before.
 *
 *     file --left--> file being closed --synced--> counts are final --closed--> named, or not
 *
 * One file at a time is being closed. status.file and bscans_in_file are of the newest.
 *
 * One struct holds the lock and everything that it guards, and the recorder owns it. Every function
 * here takes the lock itself but those that say "lock held". */
#ifndef OCT_PIPELINE_RECORD_STATUS_H
#define OCT_PIPELINE_RECORD_STATUS_H

#include "pipeline/record/file.h"
#include "pipeline/record/recorder.h"
#include "pipeline/record/settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OCT_RECORDER_FAILURES 2u /* the file being closed, and the one that was put after it */

/* The last B-scan that the recorder has looked at. */
struct oct_recorder_seen {
    bool any;
    uint32_t acquisition;
    uint64_t volume, number;
};

/* What is to be recorded. recorder.c alone uses it; it is here because it changes together with
 * status.active, under the same lock. */
struct oct_recorder_order {
    /* Changed by start alone, and only while inactive: the recorder's thread needs no lock to read
     * them. */
    struct oct_record_settings_copy settings;
    /* End after this many slots, which is as many B-scans (frame.h); UINT64_MAX: go on. Changed
     * under the lock, read without. */
    atomic_uint_fast64_t stop_at;
    uint64_t n_whole; /* volumes that all B-scans of were given to a file, of this recording */
    bool fresh;       /* no B-scan of this recording has been accepted */
    struct oct_recorder_seen seen;
    bool skip; /* the volume under way when recording started is not recorded */
    uint32_t skip_acquisition;
    uint64_t skip_volume;
};

/* All that the recorder's thread, the closer's thread and the callers share. */
struct oct_recorder_shared {
    pthread_mutex_t lock; /* guards everything in this struct, and nothing else */
    struct oct_recorder_status status;
    struct oct_recorder_order order;
    uint64_t n_opened, n_closed;    /* files */
    struct oct_record_file closing; /* being closed, or the last one that was */
    struct oct_error close_failure[OCT_RECORDER_FAILURES]; /* not taken yet, the older first */
    unsigned n_close_failures;
    uint64_t written_before, volumes_before, incomplete_before; /* this recording */
};

void oct_recorder_status_init(struct oct_recorder_shared *shared);
void oct_recorder_status_finish(struct oct_recorder_shared *shared);

/* Another recording begins: active, nothing offered, no failure. Lock held. */
void oct_recorder_status_begin(struct oct_recorder_shared *shared);

/* Of this recording, or the last one; of all. Lock held. */
struct oct_recorder_account oct_recorder_status_account(const struct oct_recorder_shared *shared);
struct oct_recorder_account oct_recorder_status_total(const struct oct_recorder_shared *shared);

/* Files of this recording, or the last one, that are closed; of those, not whole. Lock held. */
void oct_recorder_status_files(const struct oct_recorder_shared *shared, uint64_t *n_files,
                               uint64_t *n_incomplete);

/* n B-scans did not get into a file; `offered`: they are not counted as offered yet. */
void oct_recorder_status_dropped(struct oct_recorder_shared *shared, uint64_t n,
                                 enum oct_loss reason, bool offered);

/* A file was created: sets its number. How much is safe in it now. */
void oct_recorder_status_opened(struct oct_recorder_shared *shared, struct oct_record_file *file,
                                const char *path);
void oct_recorder_status_progress(struct oct_recorder_shared *shared, struct oct_record_file *file,
                                  uint64_t written, uint64_t bytes);

/* The file is being closed from now on; none is being closed yet. */
void oct_recorder_status_left(struct oct_recorder_shared *shared,
                              const struct oct_record_file *file);

/* Of the file being closed: synced sets what is safe, which is final; closed ends it. why NULL: the
 * file has its final name; else why it could not be closed. */
void oct_recorder_status_synced(struct oct_recorder_shared *shared, uint64_t written,
                                uint64_t bytes);
void oct_recorder_status_closed(struct oct_recorder_shared *shared, const struct oct_error *why);

/* Returns whether closing a file has failed since the last call, and why. */
bool oct_recorder_status_take_failure(struct oct_recorder_shared *shared, struct oct_error *why);

/* Logs the account of the recording that has ended, in one line. */
void oct_recorder_status_log(struct oct_recorder_shared *shared);

#endif
