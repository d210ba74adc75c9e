/* The next whole B-scans of spectra, read beside the stream: for what computes something from a few
 * of them once (a background line, a calibration).
 *
 * It reads as a lossy reader of the raw ring: it never holds up the stream, and B-scans that come
 * while it reads another are passed by. B-scans with missing lines are passed by too. What a driver
 * lends through shared memory stays lent while it is read: a thread that yields to others does not
 * run a tap.
 */
#ifndef OCT_PIPELINE_FLOW_RAW_TAP_H
#define OCT_PIPELINE_FLOW_RAW_TAP_H

#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/flow/ring.h"

#include <stdatomic.h>
#include <stdint.h>

struct oct_raw_tap {
    struct oct_ring *raw;
    unsigned n_bscans;            /* to be taken */
    uint64_t timeout_us;          /* for all of them */
    const atomic_bool *cancelled; /* looked at every 20 ms; NULL: never */
    /* Gets each B-scan; the frame is lent for the call, and a driver may overwrite its samples
     * meanwhile. */
    void (*take)(void *context, const struct oct_raw_frame *frame);
    void *context;
    atomic_uint n_taken, n_incomplete; /* so far; any thread may read them */
};

/* Returns when n_bscans have been taken. The ring must outlive the call. OCT_E_AGAIN: timeout_us
 * are over, and err says how many came; OCT_E_STATE: cancelled; OCT_E_CLOSED: the ring was closed;
 * OCT_E_NO_MEMORY. */
enum oct_err oct_raw_tap_run(struct oct_raw_tap *tap, struct oct_error *err);

#endif
