/* The recorder: a thread that writes volumes, one file each (volume.h).
 *
 * It reads from the keeper (keeper.h), which reads both rings and never waits for the disk. When
 * the disk stalls for longer than the keeper's memory lasts, B-scans are dropped from the
 * recording, counted as "disk_slow" and noted in the file's gap map, and pictures go on. A recorder
 * may be created while B-scans flow; it ignores those that are in the rings already.
 *
 * Recording goes by volumes. After start the recorder waits for the first volume of which it has
 * seen no B-scan yet. It closes a file when its volume is whole, when the acquisition ends or
 * another begins, or when recording stops; rows that did not come are then not valid. stop takes
 * effect after the B-scans that are in the raw ring at that time. A recording of n volumes
 * (settings.volumes) ends by itself behind the n-th whole one; files of volumes that are not whole
 * do not count.
 *
 * Another thread (volume/closer.h) closes a file, so that the disk writes its last blocks while the
 * next file is made, each with up to 26 MiB of blocks for the disk (volume.h); before two files
 * would
 * be closed at once the recorder waits. The end of a recording, and of the recorder, waits until
 * all files are closed.
 *
 * Files hold the results of analyses too, /analysis/NAME (volume.h): the recorder's thread takes
 * them from the sources' rings and never lets a source wait (results.h). They are of B-scans before
 * the recording's end alone, also where a volume goes on behind a stop. A file whose B-scans have
 * all come is set aside until every source has dealt with the last of them, within a bound that
 * follows from how long the source took before (results.h), and the next volume is recorded
 * meanwhile; synced as any open file is. At most four files wait; when a fifth has all its B-scans,
 * the fourth is closed with what it has, as an analysis that is busy with the first skips most of
 * the others. A recording ends when none waits. So no analysis, however slow, costs a B-scan, and
 * one that hangs costs a recording its own dataset only. The file of `record last` (history.h) has
 * no results.
 *
 * A failure (disk full, folder gone) ends the recording and its account; its files keep what they
 * have, the failure is logged once and stays in the status, and pictures go on. When a file cannot
 * be closed and the
 * next is open already, that one is closed too, with what it has. When both fail, the status holds
 * the failure of the older and the log names both.
 *
 * start, stop and status are called by one thread (the main loop). */
#ifndef OCT_PIPELINE_RECORD_RECORDER_H
#define OCT_PIPELINE_RECORD_RECORDER_H

#include "pipeline/flow/ring.h"
#include "pipeline/plan/plan.h"
#include "pipeline/record/account.h"
#include "pipeline/record/history.h"
#include "pipeline/record/keeper.h"
#include "pipeline/record/results.h"
#include "pipeline/record/settings.h"

#include <stdatomic.h>

struct oct_recorder;

struct oct_recorder_options {
    const struct oct_plan *plan; /* must outlive the recorder */
    struct oct_ring *raw, *images;
    /* Slots published when the last acquisition ended, + 1 (assembler.h); NULL: none ends. */
    const atomic_uint_fast64_t *ended_at;
    const char *engine;          /* description for the file; borrowed for the recorder's life */
    struct oct_loss_log *losses; /* NULL: all losses are the source's */
    uint32_t buffer_bscans, history_bscans; /* keeper.h, as the next */
    struct oct_pipeline *complex_of;
    /* Results that files have datasets for, of B-scans of `images`. Copied; what they point at must
     * outlive the recorder. */
    const struct oct_image_source *sources;
    unsigned n_sources; /* OCT_VOLUME_MAX_FORMS at most */
    /* How long files wait at least for the results of a source that is slow; 0: 60,000;
     * a thirtieth of that at the recorder's end. */
    uint32_t await_ms;
};

struct oct_recorder_status {
    bool active;      /* between start and the last file's close */
    bool stopping;    /* it ends, but its files are not closed yet */
    uint32_t volumes; /* whole ones after which this recording ends, or the last one; 0: none */
    uint64_t files, files_incomplete; /* closed, of this recording or the last; not whole */
    char file[1024];         /* the newest: being written, or the last one; "" : none yet */
    bool file_open;          /* that file, or the one before it, is not closed yet */
    uint32_t bscans_in_file; /* safe in the newest */
    uint64_t bscans_passed;  /* through the recorder, recorded or not */
    uint64_t next_slot;      /* all slots of the rings before it have passed or were dropped */
    uint64_t bscans_written; /* safe in files since the daemon's start */
    uint64_t bscans_unsaved; /* of `total`: those that came and are in no file */
    uint64_t volumes_written, volumes_incomplete; /* files closed; of those, not whole */
    uint64_t bytes_written;
    struct oct_recorder_account account; /* of this recording, or the last one */
    struct oct_recorder_account total;   /* of all recordings; its counts never fall */
    struct oct_error failure;            /* of the last recording that failed; code OCT_OK: none */
    struct oct_keeper_status keeper;
    struct oct_record_history_status history;
    struct oct_record_result_counts results[OCT_VOLUME_MAX_FORMS]; /* of the sources, in order */
    unsigned n_results;
};

/* OCT_E_ARG: the sources' forms cannot be in one file (oct_volume_forms_check). */
enum oct_err oct_recorder_create(struct oct_recorder **recorder,
                                 const struct oct_recorder_options *options, struct oct_error *err);

/* Checks that the folder can be written and holds a volume with its results; makes the folder
 * (OCT_E_IO, OCT_E_NO_SPACE). *free_bytes (may be NULL): what is free there. Any thread. */
enum oct_err oct_recorder_check(const struct oct_recorder *recorder,
                                const struct oct_record_settings *settings, double *free_bytes,
                                struct oct_error *err);

/* Checks first. OCT_E_STATE: recording already. */
enum oct_err oct_recorder_start(struct oct_recorder *recorder,
                                const struct oct_record_settings *settings, struct oct_error *err);

/* Saves what the keeper's history holds, whether a recording is under way or not
 * (record/history.h). */
enum oct_err oct_recorder_save_history(struct oct_recorder *recorder,
                                       const struct oct_record_settings *settings, const char *name,
                                       struct oct_error *err);

/* The daemon is about to end: from now on the keeper waits for the disk and drops nothing. */
void oct_recorder_drain(struct oct_recorder *recorder);

/* Returns at once; the status says when the file is closed. Does nothing when not active. */
void oct_recorder_stop(struct oct_recorder *recorder);

/* Changes settings.volumes of the recording under way. If it has as many whole ones already, it
 * ends with the volume under way. Does nothing when not active. */
void oct_recorder_set_volumes(struct oct_recorder *recorder, uint32_t volumes);

void oct_recorder_get_status(struct oct_recorder *recorder, struct oct_recorder_status *status);

/* The image ring must be closed. Writes what is still in it and closes the file. NULL is fine. */
void oct_recorder_destroy(struct oct_recorder *recorder);

#endif
