/* The keeper: memory between the rings and the disk, and the thread that fills it.
 *
 *     raw ring ----+
 *                  +-> keeper thread --copies--> [ kept B-scans, the oldest overwritten ]
 *     image ring --+                                 |             |
 *                                           read in order by   copied out by
 *                                           the recorder       "save the last N seconds"
 *
 * The keeper is a guaranteed reader of both rings that never waits for a disk: a disk that stalls
 * holds up the recorder, and the keeper takes on what comes meanwhile. Only when its memory holds
 * nothing but B-scans that the recorder has not read, and half of the image ring has filled behind
 * it too, does it drop a B-scan: from the recording alone (OCT_LOSS_DISK_SLOW in the loss log),
 * the picture is published all the same. After a pause of the whole program (pause.h) all that came
 * meanwhile comes at once: what is dropped while that is caught up with, and while the recorder
 * moves, is OCT_LOSS_PAUSED.
 *
 *     kept number   first .......... next_read ........... head
 *                   | history: for   | not read by the     |
 *                   | "last" alone   | recorder            | next to be put
 *
 * Kept B-scans have numbers of their own: 0, 1, 2, ... Slot of number n: n % n_slots. Without a
 * history the slots share their memory: as much is used as ever waited at once, no more.
 *
 * Threads: the keeper's own; one that reads and releases (the recorder); one that holds and copies
 * (the saver of the last seconds). The rest may be called by any thread. */
#ifndef OCT_PIPELINE_RECORD_KEEPER_H
#define OCT_PIPELINE_RECORD_KEEPER_H

#include "pipeline/flow/frame.h"
#include "pipeline/flow/loss.h"
#include "pipeline/flow/ring.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_keeper;

struct oct_keeper_options {
    const struct oct_plan *plan; /* outlives the keeper, as all that follows */
    struct oct_ring *raw, *images;
    struct oct_loss_log *losses; /* NULL: drops are told to nobody */
    uint32_t buffer_bscans;      /* what the recorder may fall behind; raised to a few */
    uint32_t history_bscans;     /* what is kept after that, always; 0: nothing */
};

/* One B-scan as kept. */
struct oct_kept {
    struct oct_raw_frame raw;
    struct oct_image_frame image; /* info as in raw */
    bool has_payload;             /* else nobody wanted it: spectra and pixels mean nothing */
    uint64_t slot;                /* of the rings */
};

/* Memory for spectra and pixels of a B-scan, mask included: what one kept B-scan takes. */
uint64_t oct_kept_bytes(const struct oct_geometry *geometry);

/* history_bscans > 0 touches all memory at once, so that what is short is short now
 * (OCT_E_NO_MEMORY says how much was wanted); else it grows with what has to wait. */
enum oct_err oct_keeper_create(struct oct_keeper **keeper, const struct oct_keeper_options *options,
                               struct oct_error *err);

/* The image ring must be closed; the recorder must have read to the end. NULL is fine. */
void oct_keeper_destroy(struct oct_keeper *keeper);

/* Whether B-scans are copied from now on although there is no history to keep. */
void oct_keeper_want(struct oct_keeper *keeper, bool wanted);

/* From now on the keeper rather waits than drops: the daemon ends, pictures need not go on. */
void oct_keeper_drain(struct oct_keeper *keeper);

/* The recorder's next B-scan, lent until release. OCT_E_AGAIN: nothing yet; then every slot of the
 * rings before *passed has been read or dropped. OCT_E_CLOSED: all is read and no more comes. */
enum oct_err oct_keeper_read(struct oct_keeper *keeper, uint64_t timeout_us,
                             const struct oct_kept **kept, uint64_t *passed);
void oct_keeper_release(struct oct_keeper *keeper);

/* Makes the recorder's read return OCT_E_AGAIN now. */
void oct_keeper_wake(struct oct_keeper *keeper);

/* First slot of the rings that is kept with spectra and picture. */
uint64_t oct_keeper_first_slot(const struct oct_keeper *keeper);

/* Holds the newest history_bscans for copying; returns how many there are, and in infos
 * ([history_bscans]; may be NULL) which they are. Those that the keeper needs before they are
 * copied are given up, the oldest first. One hold at a time. */
uint32_t oct_keeper_hold(struct oct_keeper *keeper, struct oct_bscan_info *infos);

/* Copies the next held B-scan into `kept` (its three arrays are the caller's, large enough).
 * *index: which of those held it is; those between it and the one before were given up.
 * OCT_E_CLOSED: that was all, nothing is held any more; then *index is their number. */
enum oct_err oct_keeper_copy(struct oct_keeper *keeper, struct oct_kept *kept, uint32_t *index);

/* Gives up what is still held. */
void oct_keeper_let_go(struct oct_keeper *keeper);

struct oct_keeper_status {
    uint32_t buffer_bscans, history_bscans; /* room */
    uint32_t n_waiting;                     /* not read by the recorder */
    uint32_t n_history;                     /* what hold would find */
    uint64_t history_ns;                    /* between the arrivals of the oldest and the newest */
    uint64_t bytes;                         /* of all slots */
    uint64_t n_dropped;                     /* for want of room, wanted or not */
    uint64_t n_paused;                      /* of those, after a pause of the program */
    uint64_t n_pauses, pause_ns;            /* of the program, and how long the newest was */
    bool catches_up;                        /* with what came in that */
    uint64_t next_slot; /* all slots of the rings before it were taken or dropped */
    bool is_full;       /* no room until the recorder has read on: the keeper may wait for that */
};
void oct_keeper_get_status(struct oct_keeper *keeper, struct oct_keeper_status *status);

#endif
