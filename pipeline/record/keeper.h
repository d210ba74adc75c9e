/* The keeper: memory between the rings and the disk, and the thread that fills it.
 *
 *     raw ring ----+
 *                  +-> keeper thread --copies--> [ kept B-scans, the oldest overwritten ]
 *     image ring --+                                 |             |
 *                                           read in order by   copied out by
 *                                           the recorder       "save the last N seconds"
 *
 * The keeper is a guaranteed reader of both rings and never waits for a disk. While a disk stalls,
 * the recorder blocks and the keeper stores the B-scans that come. It drops a B-scan only when its
 * memory is full of B-scans that the recorder has not read and half of the image ring has filled
 * behind it. The B-scan is then missing from the recording alone (OCT_LOSS_DISK_SLOW in the loss
 * log); its picture is published all the same. After a pause of the whole program (pause.h) all
 * B-scans of that time come at once. Those that are dropped until the backlog is gone, while the
 * recorder does make progress, are logged as OCT_LOSS_PAUSED.
 *
 *     kept number   first .......... next_read ........... head
 *                   | history: for   | not read by the     |
 *                   | history.h only | recorder            | next to be put
 *
 * Kept B-scans have numbers of their own: 0, 1, 2, ... Number n lies in slot n % n_slots. Without a
 * history the slots share their memory, so that only as much is used as ever waited at once.
 *
 * Threads: the keeper's own; one that reads and releases (the recorder); one that holds and copies
 * (the saver of the last seconds). The rest may be called by any thread. */
#ifndef OCT_PIPELINE_RECORD_KEEPER_H
#define OCT_PIPELINE_RECORD_KEEPER_H

#include "pipeline/flow/frame.h"
#include "pipeline/flow/loss.h"
#include "pipeline/flow/pipeline.h"
#include "pipeline/flow/ring.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_keeper;

struct oct_keeper_options {
    const struct oct_plan *plan; /* outlives the keeper, as all that follows */
    struct oct_ring *raw, *images;
    struct oct_loss_log *losses;     /* NULL: drops are not logged */
    uint32_t buffer_bscans;          /* by how much the recorder may lag; 8 at least */
    uint32_t history_bscans;         /* what is kept after that, always; 0: nothing */
    struct oct_pipeline *complex_of; /* keep complex values, too, and ask it for them while B-scans
                                        are copied; NULL: none */
};

/* One B-scan as kept. */
struct oct_kept {
    struct oct_raw_frame raw;
    struct oct_image_frame image; /* info as in raw */
    bool has_payload; /* false: not copied, since nothing recorded, or made before its complex
                         values were asked for; no spectra, no pixels */
    uint64_t slot;    /* of the rings */
};

/* Memory for spectra and pixels of a B-scan, mask included, and its complex values: what one kept
 * B-scan takes. */
uint64_t oct_kept_bytes(const struct oct_geometry *geometry, bool has_complex);

/* With history_bscans > 0 it touches all memory at once, so that a lack of memory shows now
 * (OCT_E_NO_MEMORY says how much was wanted). Else memory is used as B-scans have to wait.
 * OCT_E_NO_MEMORY, too: there is none for the pipeline's complex values. */
enum oct_err oct_keeper_create(struct oct_keeper **keeper, const struct oct_keeper_options *options,
                               struct oct_error *err);

/* The image ring must be closed; the recorder must have read to the end. NULL is fine. */
void oct_keeper_destroy(struct oct_keeper *keeper);

/* Whether B-scans are copied from now on although there is no history to keep. */
void oct_keeper_want(struct oct_keeper *keeper, bool wanted);

/* The daemon ends and pictures need not go on: from now on the keeper waits instead of dropping. */
void oct_keeper_drain(struct oct_keeper *keeper);

/* Lends the recorder its next B-scan until release. OCT_E_AGAIN: none came in time, or
 * oct_keeper_wake was called; every slot of the rings before *passed has then been read or dropped.
 * OCT_E_CLOSED: everything is read and no more will come. */
enum oct_err oct_keeper_read(struct oct_keeper *keeper, uint64_t timeout_us,
                             const struct oct_kept **kept, uint64_t *passed);
void oct_keeper_release(struct oct_keeper *keeper);

/* Makes the recorder's read return OCT_E_AGAIN now. */
void oct_keeper_wake(struct oct_keeper *keeper);

/* First slot of the rings that is kept with spectra and picture. */
uint64_t oct_keeper_first_slot(const struct oct_keeper *keeper);

/* Holds the newest history_bscans for copying; returns how many there are, in infos
 * ([history_bscans]; may be NULL) which they are, and in *format (may be NULL) that of their
 * samples, u16 where they differ. Held B-scans of which the keeper needs the memory
 * before they are copied are given up, the oldest first. Only one hold at a time. */
uint32_t oct_keeper_hold(struct oct_keeper *keeper, struct oct_bscan_info *infos, uint16_t *format);

/* Copies the next held B-scan into `kept` (its three arrays are the caller's, large enough).
 * *index: which of those held it is; those between it and the one before were given up.
 * OCT_E_CLOSED: that was all, nothing is held any more; then *index is their number. */
enum oct_err oct_keeper_copy(struct oct_keeper *keeper, struct oct_kept *kept, uint32_t *index);

/* Ends the hold. */
void oct_keeper_let_go(struct oct_keeper *keeper);

struct oct_keeper_status {
    uint32_t buffer_bscans, history_bscans; /* room */
    uint32_t n_waiting;                     /* not read by the recorder */
    uint32_t n_history;                     /* what hold would find */
    uint64_t history_ns;                    /* between the arrivals of the oldest and the newest */
    uint64_t bytes;                         /* of all slots */
    uint64_t n_dropped;                     /* because there was no room, recording or not */
    uint64_t n_paused;                      /* of those, after a pause of the program */
    uint64_t n_pauses, pause_ns;            /* of the program, and how long the newest was */
    bool catches_up;                        /* it still works on the backlog of that pause */
    uint64_t next_slot; /* all slots of the rings before it were taken or dropped */
    bool is_full;       /* no room until the recorder has read on: the keeper may wait for that */
};
void oct_keeper_get_status(struct oct_keeper *keeper, struct oct_keeper_status *status);

#endif
