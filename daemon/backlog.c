#include "daemon/backlog.h"

#include "pipeline/base/log.h"

#include <inttypes.h>

#define STILL_NS UINT64_C(900000000)
#define OVER_NS UINT64_C(500000000)
#define STEADY_NS UINT64_C(500000000) /* shorter pauses are usual for a disk */
#define CALM_NS UINT64_C(1000000000)
#define TELL_EVERY_NS UINT64_C(60000000000)

/* A longer time between two looks means that this thread got no processor; perhaps the recorder got
 * none either. */
#define LONGEST_STEP_NS UINT64_C(100000000)

static void begin_slowness(struct oct_backlog *b, const struct oct_keeper_status *k,
                           uint64_t now_ns)
{
    b->disk_slow = true;
    b->begun_ns = now_ns;
    b->told = !b->told_ns || now_ns - b->told_ns >= TELL_EVERY_NS;
    if (!b->told)
        return;
    b->told_ns = now_ns;
    oct_log(OCT_LOG_WARNING,
            "the disk takes too long: %" PRIu32 " B-scans wait to be recorded (record.buffer_s is "
            "room for %" PRIu32 "; what comes beyond is not recorded): record less or on another "
            "disk (record.directory)",
            k->n_waiting, k->buffer_bscans);
}

static void end_slowness(struct oct_backlog *b, uint64_t now_ns)
{
    b->disk_slow = false;
    if (b->told)
        oct_log(OCT_LOG_INFO,
                "the disk no longer holds up the recording, as it did for %.1f s: %" PRIu64
                " B-scans were not recorded",
                (double)(now_ns - b->begun_ns) * 1e-9, b->n_lost);
}

static void log_pause(struct oct_backlog *b, const struct oct_keeper_status *k, uint64_t now_ns)
{
    bool is_new = k->n_pauses > b->n_pauses;
    b->n_pauses = k->n_pauses; /* a new session counts anew */
    if (!is_new || (b->pause_told_ns && now_ns - b->pause_told_ns < TELL_EVERY_NS))
        return;
    b->pause_told_ns = now_ns;
    oct_log(OCT_LOG_WARNING,
            "octd did not run for %.1f s (stopped by a signal or a debugger, suspended, or without "
            "a processor): what a recording cannot keep of all that comes at once now is dropped "
            "as paused",
            (double)k->pause_ns * 1e-9);
}

/* Adds the time since the last look to the conditions that held. */
static void add_time(struct oct_backlog *b, const struct oct_recorder_status *r, uint64_t step_ns)
{
    const struct oct_keeper_status *k = &r->keeper;
    bool moves = k->n_waiting == 0 || r->bscans_passed != b->n_passed;
    uint64_t n_slow = k->n_dropped - k->n_paused;
    uint64_t n_lost = n_slow > b->n_dropped ? n_slow - b->n_dropped : 0;

    if (k->n_waiting >= k->buffer_bscans)
        b->is_over = true;
    else if (k->n_waiting <= k->buffer_bscans / 2)
        b->is_over = false;
    b->still_ns = moves ? 0 : b->still_ns + step_ns;
    b->over_ns = b->is_over && !k->catches_up ? b->over_ns + step_ns : 0;
    bool calm = !n_lost && !b->is_over && b->still_ns < STEADY_NS;
    b->calm_ns = calm ? b->calm_ns + step_ns : 0;
    b->n_lost = b->disk_slow ? b->n_lost + n_lost : n_lost;
}

void oct_backlog_look(struct oct_backlog *b, const struct oct_recorder_status *r, uint64_t now_ns)
{
    uint64_t step_ns = b->looked_ns ? now_ns - b->looked_ns : 0;

    if (r->active) {
        add_time(b, r, step_ns < LONGEST_STEP_NS ? step_ns : LONGEST_STEP_NS);
    } else {
        b->is_over = false;
        b->still_ns = b->over_ns = 0;
    }
    b->looked_ns = now_ns;
    b->n_passed = r->bscans_passed;
    b->n_dropped = r->keeper.n_dropped - r->keeper.n_paused;
    log_pause(b, &r->keeper, now_ns);
    if (b->disk_slow && (!r->active || b->calm_ns >= CALM_NS))
        end_slowness(b, now_ns);
    else if (!b->disk_slow && r->active &&
             (b->n_lost || b->still_ns >= STILL_NS || b->over_ns >= OVER_NS))
        begin_slowness(b, &r->keeper, now_ns);
}
