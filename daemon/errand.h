/* An errand: what a control command computes from the next whole B-scans of spectra, beside the
 * stream (calibrate, background). One at a time, in a thread of its own,
 * "octd-errand", which yields to others while it computes:
 *
 *     begin -> prepare -> take n B-scans (raw_tap.h) -> compute from its own copies -> done
 *
 * Only until it has taken them does it touch the session. Main thread only, but for prepare, take
 * and compute. */
#ifndef OCT_DAEMON_ERRAND_H
#define OCT_DAEMON_ERRAND_H

#include "pipeline/flow/raw_tap.h"

#include <pthread.h>
#include <stdbool.h>

struct cJSON;

struct oct_errand_ops {
    const char *name; /* the command's */
    /* The errand's thread, before the first take: what needs the session, and may take its time.
     * NULL: nothing does. */
    enum oct_err (*prepare)(void *work, struct oct_error *err);
    /* The errand's thread: a B-scan; lent for the call, which should only copy: its slot of the raw
     * ring is held meanwhile. */
    void (*take)(void *work, const struct oct_raw_frame *frame);
    /* The errand's thread, after the last take; the session may be gone. Looks at *cancelled many
     * times a second and then returns any error. */
    enum oct_err (*compute)(void *work, const atomic_bool *cancelled, struct oct_error *err);
    /* Adds what was computed to an object; called only after compute returned OCT_OK. */
    void (*describe)(const void *work, struct cJSON *result);
    void (*destroy)(void *work);
};

/* Zeroed: there has been none. */
struct oct_errand {
    const struct oct_errand_ops *ops; /* NULL: none yet */
    void *work;                       /* kept until the next begins */
    uint64_t number;                  /* 1, 2, ... of this run of octd */
    bool runs;                        /* the thread has not been joined */
    const char *stopped_by;           /* NULL, or why it was cancelled */
    pthread_t thread;
    struct oct_raw_tap tap;
    atomic_bool cancelled, is_taking, is_done;
    struct oct_error err; /* code OCT_OK: done well; the thread's until is_done */
};

/* Begins one; its predecessor's result is gone. work becomes the errand's, on failure too. raw must
 * last until oct_errand_leave has returned true. OCT_E_STATE: one is under way. */
enum oct_err oct_errand_begin(struct oct_errand *errand, const struct oct_errand_ops *ops,
                              void *work, struct oct_ring *raw, unsigned n_bscans,
                              uint64_t timeout_us, struct oct_error *err);

/* Joins a thread that has ended. Returns whether the errand is still under way. */
bool oct_errand_look(struct oct_errand *errand);

/* The stream ends: cancels the errand if it still takes B-scans, and returns whether it has let go
 * of the ring; if not, ask again in a moment. `why`, a constant text, is what the client reads. */
bool oct_errand_leave(struct oct_errand *errand, const char *why);

/* Cancels, waits for the thread's end and frees. Fine if there has been none. */
void oct_errand_finish(struct oct_errand *errand);

/* Adds "errand" to a status reply: {"command", "number", "pending", "bscans", "of", "error",
 * "result"}; command is "" and number 0 if there has been none, result is there once it is done
 * well. */
void oct_errand_describe(const struct oct_errand *errand, struct cJSON *reply);

#endif
