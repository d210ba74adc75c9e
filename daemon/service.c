#include "daemon/service.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

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

bool oct_service_is_alive(const struct oct_service_progress *now, struct oct_service_progress *seen,
                          struct oct_service_life *life)
{
    bool ingest_may_wait = now->for_engine || now->for_keeper;
    life->engine |= !now->for_engine || now->engine != seen->engine;
    life->keeper |= !now->for_keeper || now->keeper != seen->keeper;
    life->ingest |= ingest_may_wait || now->ingest != seen->ingest;
    *seen = *now;
    return life->engine && life->keeper && life->ingest;
}

static struct oct_service_progress read_progress(const struct oct_session *s, bool draining)
{
    struct oct_recorder_status recorder;
    oct_recorder_get_status(s->recorder, &recorder); /* before the ring that it reads */
    struct oct_pipeline_progress pipeline = oct_pipeline_get_progress(s->pipeline);
    uint64_t images = oct_ring_published(oct_pipeline_images(s->pipeline));
    bool may_wait = draining || recorder.keeper.is_full;
    return (struct oct_service_progress){
        .engine = pipeline.moves + (draining ? pipeline.sink_waits : 0),
        .keeper = recorder.keeper.next_slot,
        .ingest = oct_ingest_looks(s->ingest),
        .for_engine = pipeline.n_waiting,
        .for_keeper = may_wait ? 0 : images - recorder.keeper.next_slot,
    };
}

/* Whether a build hangs: it reads a file from a server that is gone, say, or waits for a driver. */
static bool build_hangs(struct oct_service *s, const struct oct_daemon_job *job, uint64_t now_ns)
{
    bool hangs = job->kind == OCT_JOB_BUILD &&
                 now_ns - job->begun_ns > OCT_SERVICE_BUILD_S * UINT64_C(1000000000);
    if (hangs && !s->told_hanging)
        oct_log(OCT_LOG_ERROR,
                "the start has taken more than %d s: it hangs, look at the calibration files and "
                "the engine%s",
                OCT_SERVICE_BUILD_S,
                s->watchdog_ns ? "; the service manager is told no more that octd is alive" : "");
    s->told_hanging = hangs;
    return hangs;
}

/* Four times an interval, so that a lost datagram does no harm. */
static void feed_watchdog(struct oct_service *s, const struct oct_daemon *d, uint64_t now_ns)
{
    bool alive = true;
    if (d->session) {
        struct oct_service_progress now = read_progress(d->session, d->job.kind == OCT_JOB_DRAIN);
        alive = oct_service_is_alive(&now, &s->seen, &s->life);
    }
    if (build_hangs(s, &d->job, now_ns) || !alive)
        return;
    if (s->watchdog_ns == 0 || now_ns - s->fed_ns < s->watchdog_ns / 4)
        return;
    if (!oct_notify_send(&s->notify, "WATCHDOG=1"))
        return;
    s->fed_ns = now_ns;
    s->life = (struct oct_service_life){0};
}

static void send_status(struct oct_service *s, const struct oct_daemon *d, uint64_t now_ns)
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
    send_status(s, d, now_ns);
    feed_watchdog(s, d, now_ns);
}
