/* What the archive is still to get: a folder of DICOM files, UID.dcm, with a note beside each,
 * UID.json, both of mode 0600. An instance is written and synced under another name; then its note
 * is there, then its name. What has arrived leaves its note ("sent", or "stored" once the archive
 * has answered that it has it) and loses its file. So at any moment, after a power cut too, a file
 * that has not arrived is there with a note that says "waiting"; killed between the archive's
 * answer and the note, it is sent again with the same UID, which archives keep as one.
 *
 * Several processes may use a folder: a note is changed under a lock. Main thread. */
#ifndef OCT_TOOLS_DICOM_QUEUE_H
#define OCT_TOOLS_DICOM_QUEUE_H

#include "config/config.h"

#include <stdint.h>
#include <time.h>

struct oct_queue_note {
    char uid[65], pseudonym[128], what[64]; /* "bscans", or a file that was DICOM already: "file" */
    char state[16];                         /* "waiting", "sent", "stored" */
    char reason[200];                       /* why it is still waiting; "" */
    time_t since, next, done;               /* queued; to be tried; 0: at once, not yet */
    unsigned tries;
    uint64_t bytes; /* of the file now; 0: there is none */
};

struct oct_queue {
    char folder[OCT_CONFIG_STRING_BYTES];
    int lock; /* -1: not held */
};

/* Finds the folder and makes the one that is meant by an empty key. OCT_E_IO: there is none. */
enum oct_err oct_queue_open(struct oct_queue *queue, const struct oct_config *config,
                            struct oct_error *err);

/* Waits for the lock of all notes; unlock of a queue without is fine. */
enum oct_err oct_queue_lock(struct oct_queue *queue, struct oct_error *err);
void oct_queue_unlock(struct oct_queue *queue);

/* A descriptor that is open as long as this process may send; OCT_E_STATE: another one does. */
enum oct_err oct_queue_be_sender(const struct oct_queue *queue, int *fd, struct oct_error *err);

/* All notes, those queued first first; malloc'd. */
enum oct_err oct_queue_list(const struct oct_queue *queue, struct oct_queue_note **notes,
                            unsigned *n, struct oct_error *err);

/* OCT_E_STATE: there is none. */
enum oct_err oct_queue_read(const struct oct_queue *queue, const char *uid,
                            struct oct_queue_note *note, struct oct_error *err);
enum oct_err oct_queue_write(const struct oct_queue *queue, const struct oct_queue_note *note,
                             struct oct_error *err);

/* The path of the instance (end ".dcm") or of another file of that name. */
void oct_queue_path(const struct oct_queue *queue, const char *uid, const char *end,
                    char path[OCT_CONFIG_STRING_BYTES]);

/* Takes the whole DICOM file at `path`, which lies in the folder, as an instance: note->uid is read
 * from it, pseudonym and what are the caller's. *is_new: false: it is there already, and has
 * arrived or is waiting: note is its note, and the file is removed. */
enum oct_err oct_queue_add(struct oct_queue *queue, const char *path, struct oct_queue_note *note,
                           bool *is_new, struct oct_error *err);

/* Removes the instance and its note. */
enum oct_err oct_queue_drop(struct oct_queue *queue, const char *uid, struct oct_error *err);

/* Removes what ended processes have left half done, and notes of what arrived a month ago. */
void oct_queue_tidy(struct oct_queue *queue);

#endif
