#include "pipeline/flow/raw_tap.h"

#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"

#define LOOK_US 20000

/* After a timeout: what came, and what to look at. */
static enum oct_err too_few(const struct oct_raw_tap *tap, struct oct_error *err)
{
    unsigned n = atomic_load(&tap->n_taken), bad = atomic_load(&tap->n_incomplete);
    double s = (double)tap->timeout_us * 1e-6;
    if (bad)
        return oct_fail(err, OCT_E_AGAIN,
                        "%u of %u whole B-scans came within %.6g s, %u others had missing lines: "
                        "see lines_missing of the status",
                        n, tap->n_bscans, s, bad);
    return oct_fail(err, OCT_E_AGAIN,
                    "%u of %u B-scans came within %.6g s: does the camera send lines?", n,
                    tap->n_bscans, s);
}

static void copy_frame(struct oct_raw_tap *tap, const struct oct_raw_frame *frame)
{
    if (frame->info.missing_lines) {
        atomic_fetch_add(&tap->n_incomplete, 1);
        return;
    }
    tap->take(tap->context, frame);
    atomic_fetch_add(&tap->n_taken, 1);
}

static enum oct_err take_all(struct oct_raw_tap *tap, struct oct_ring_reader *reader,
                             struct oct_error *err)
{
    const uint64_t until_ns = oct_clock_ns() + tap->timeout_us * 1000;
    while (atomic_load(&tap->n_taken) < tap->n_bscans) {
        uint64_t slot;
        if (tap->cancelled && atomic_load(tap->cancelled))
            return oct_fail(err, OCT_E_STATE, "cancelled");
        enum oct_err e = oct_ring_read(reader, LOOK_US, &slot);
        if (e == OCT_E_CLOSED)
            return oct_fail(err, e, "the stream has ended");
        if (e == OCT_OK) {
            copy_frame(tap, oct_raw_held(reader));
            oct_ring_release(reader);
        }
        if (atomic_load(&tap->n_taken) < tap->n_bscans && oct_clock_ns() >= until_ns)
            return too_few(tap, err);
    }
    return OCT_OK;
}

enum oct_err oct_raw_tap_run(struct oct_raw_tap *tap, struct oct_error *err)
{
    struct oct_ring_reader *reader = oct_ring_reader_create(tap->raw, false, 1);
    atomic_store(&tap->n_taken, 0);
    atomic_store(&tap->n_incomplete, 0);
    if (!reader)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a reader");
    enum oct_err e = take_all(tap, reader, err);
    oct_ring_reader_destroy(reader);
    return e;
}
