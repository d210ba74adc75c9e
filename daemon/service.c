#include "daemon/service.h"

#include "pipeline/clock.h"
#include "pipeline/log.h"

#include <inttypes.h>
#include <stdio.h>

#define STATUS_EVERY_NS UINT64_C(5000000000)

void oct_service_init(struct oct_service *s)
{
    *s = (struct oct_service){.told_state = OCT_N_STATES};
    oct_notify_init(&s->notify);
    s->watchdog_ns = oct_notify_watchdog_us() * 1000;
    s->fed_ns = oct_clock_ns();
}

void oct_service_finish(struct oct_service *s)
{
    oct_notify_finish(&s->notify);
}

/* With B-scans waiting the ingest may well wait, too: for room. */
bool oct_service_is_alive(const struct oct_pipeline_progress *progress, uint64_t looks,
                          struct oct_service_progress *seen)
{
    if (!progress)
        return true;
    const struct oct_service_progress now = {progress->moves, looks};
    bool alive = progress->n_waiting ? now.moves != seen->moves : now.looks != seen->looks;
    *seen = now;
    return alive;
}

/* Four times an interval: one that is lost is no harm. */
static void feed_watchdog(struct oct_service *s, const struct oct_daemon *d, uint64_t now_ns)
{
    struct oct_pipeline_progress progress;
    uint64_t looks = 0;

    if (d->session) {
        progress = oct_pipeline_get_progress(d->session->pipeline);
        looks = oct_ingest_looks(d->session->ingest);
    }
    if (oct_service_is_alive(d->session ? &progress : NULL, looks, &s->seen))
        s->alive = true;
    if (s->watchdog_ns == 0 || !s->alive || now_ns - s->fed_ns < s->watchdog_ns / 4)
        return;
    if (!oct_notify_send(&s->notify, "WATCHDOG=1"))
        return;
    s->fed_ns = now_ns;
    s->alive = false;
}

static void tell_status(struct oct_service *s, const struct oct_daemon *d, uint64_t now_ns)
{
    char text[160];
    struct oct_recorder_status recorder = {0};
    struct oct_pipeline_counts counts = {0};

    if (s->notify.fd < 0 || (d->state == s->told_state && now_ns - s->status_ns < STATUS_EVERY_NS))
        return;
    if (d->session) {
        oct_recorder_get_status(d->session->recorder, &recorder);
        counts = oct_pipeline_count(d->session->pipeline);
    }
    snprintf(text, sizeof(text),
             "STATUS=%s; %" PRIu64 " B-scans done, %" PRIu64 " written, %" PRIu64 " unsaved",
             oct_state_names[d->state], counts.bscans_done, recorder.bscans_written,
             recorder.bscans_unsaved);
    if (!oct_notify_send(&s->notify, text))
        return;
    s->told_state = d->state;
    s->status_ns = now_ns;
}

void oct_service_look_around(struct oct_service *s, const struct oct_daemon *d)
{
    uint64_t now_ns = oct_clock_ns();

    if (!s->told_ready && d->was_ready && !oct_state_is_passing(d->state)) {
        s->told_ready = oct_notify_send(&s->notify, "READY=1");
        if (s->told_ready)
            oct_log(OCT_LOG_INFO, "octd %s is ready (%s)", OCT_VERSION, oct_state_names[d->state]);
    }
    if (!s->told_stopping && d->want_shutdown)
        s->told_stopping = oct_notify_send(&s->notify, "STOPPING=1");
    tell_status(s, d, now_ns);
    feed_watchdog(s, d, now_ns);
}
