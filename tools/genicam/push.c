#include "tools/genicam/push.h"

#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "tools/genicam/genicam.h"
#include "tools/genicam/numbering.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define SLICE_MS 100u /* every wait looks for a signal this often */
#define LINGER_MS 10000u
#define SECOND_NS UINT64_C(1000000000)
#define SILENT_NS (5 * SECOND_NS)

struct push {
    const struct oct_push_options *options;
    struct oct_genicam *camera;
    struct oct_genicam_form form;
    struct oct_client *client;
    struct oct_numbering numbering;
    uint64_t n_frames;                            /* sent */
    uint64_t n_lost, n_late, n_broken, n_no_room; /* of the acquisitions before this one */
    uint64_t said_ns;                             /* when a loss was last told */
    bool stopped, has_begun;
};

/* ---- signals: they stay blocked and are polled, without a handler or a global ---- */

/* True once for each. */
static bool take_signal(void)
{
    const struct timespec at_once = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return sigtimedwait(&set, NULL, &at_once) > 0;
}

static bool is_stopped(struct push *p)
{
    p->stopped = p->stopped || take_signal();
    return p->stopped;
}

/* ---- the camera ---- */

static enum oct_err open_camera(struct push *p, struct oct_error *err)
{
    const struct oct_push_options *o = p->options;
    const uint32_t n_samples = p->form.n_samples; /* of the camera before; 0: none */
    const enum oct_pixel_format format = p->form.format;
    enum oct_err e = oct_genicam_open(&p->camera, o->camera, err);
    for (unsigned i = 0; i < o->n_sets && !e; i++)
        e = oct_genicam_set(p->camera, o->sets[i], err);
    e = e ? e : oct_genicam_prepare(p->camera, &p->form, err);
    if (!e && o->samples && p->form.n_samples != o->samples)
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: frames are %" PRIu32 " samples wide, camera.samples is %" PRIu32
                        "; --set Width=%" PRIu32,
                        p->form.id, p->form.n_samples, o->samples, o->samples);
    if (!e && n_samples && p->form.n_samples != n_samples)
        return oct_fail(err, OCT_E_CONFIG, "%s: came back with frames %" PRIu32 " samples wide",
                        p->form.id, p->form.n_samples);
    if (!e && n_samples && p->form.format != format)
        return oct_fail(err, OCT_E_CONFIG, "%s: came back with pixels of %s", p->form.id,
                        oct_pixel_format_name(p->form.format));
    return e;
}

static void close_camera(struct push *p)
{
    uint64_t n_broken = 0, n_no_room = 0;
    if (p->camera)
        oct_genicam_counts(p->camera, &n_broken, &n_no_room);
    p->n_broken += n_broken;
    p->n_no_room += n_no_room;
    p->n_lost += p->numbering.n_lost;
    p->n_late += p->numbering.n_late;
    p->numbering = (struct oct_numbering){0};
    oct_genicam_close(p->camera);
    p->camera = NULL;
}

/* Tries once a second. OCT_E_CLOSED: a signal came first. */
static enum oct_err await_camera(struct push *p, struct oct_error *err)
{
    for (;;) {
        const enum oct_err e = open_camera(p, err);
        if (e == OCT_OK || e == OCT_E_CONFIG)
            return e;
        close_camera(p);
        for (unsigned i = 0; i < 1000 / SLICE_MS; i++) {
            if (is_stopped(p))
                return OCT_E_CLOSED;
            nanosleep(&(struct timespec){.tv_nsec = SLICE_MS * 1000000L}, NULL);
        }
    }
}

/* ---- octd ---- */

static enum oct_err connect_client(struct push *p, struct oct_error *err)
{
    const struct oct_push_options *o = p->options;
    const struct oct_client_options options = {
        .linger_ms = LINGER_MS,
        .wait_ms = SLICE_MS,
        .drop_when_full = true, /* a camera does not wait */
        .client_key = o->client_key,
        .server_public = o->server_public,
        .format =
            (enum oct_client_format)oct_pixel_lines_format(p->form.format, p->form.n_samples)};
    char why[OCT_ERROR_TEXT_BYTES / 2];
    if (oct_client_connect(&p->client, o->endpoint, p->form.n_samples, &options, why, sizeof(why)))
        return oct_fail(err, OCT_E_CONFIG, "ingest.endpoint: %s", why);
    const uint64_t end_ns = oct_clock_ns() + (uint64_t)(o->wait_s * 1e9);
    while (oct_client_wait_connected(p->client, SLICE_MS) != OCT_CLIENT_OK) {
        if (is_stopped(p))
            return oct_fail(err, OCT_E_CLOSED, "interrupted before a daemon was there");
        if (oct_clock_ns() >= end_ns)
            return oct_fail(err, OCT_E_IO,
                            "no daemon takes lines at %s after %g s (is octd running? --to "
                            "ENDPOINT or --config FILE)",
                            o->endpoint, o->wait_s);
    }
    return OCT_OK;
}

/* ---- frames ---- */

static void report_loss(struct push *p, const struct oct_genicam_frame *frame, uint64_t n_lost,
                        bool is_anew)
{
    const uint64_t now = oct_clock_ns();
    if ((n_lost == 0 && !is_anew) || (p->said_ns && now - p->said_ns < SECOND_NS))
        return;
    p->said_ns = now;
    fprintf(stderr,
            "octgenicam: %" PRIu64 " frames lost before frame %" PRIu64 "%s; %" PRIu64
            " so far: gaps of %" PRIu32 " lines each\n",
            n_lost, frame->id, is_anew ? ", where the camera counts anew" : "",
            p->n_lost + p->numbering.n_lost, p->form.n_lines);
}

static enum oct_err send_lines(struct push *p, const struct oct_genicam_frame *frame,
                               uint32_t first, uint32_t n, uint64_t time_ns, struct oct_error *err)
{
    uint16_t *lines;
    enum oct_client_result r;
    do
        r = oct_client_borrow(p->client, n, &lines);
    while (r == OCT_CLIENT_INTERRUPTED || (r == OCT_CLIENT_TIMEOUT && !is_stopped(p)));
    if (r == OCT_CLIENT_DROPPED || r == OCT_CLIENT_TIMEOUT)
        return OCT_OK; /* counted by the client, which shows octd a gap */
    if (r != OCT_CLIENT_OK)
        return oct_fail(err, OCT_E_IO, "%s: %s", p->options->endpoint, oct_client_error(p->client));
    oct_pixel_lines(p->form.format, frame->bytes, first, n, p->form.n_samples, frame->row_padding,
                    lines);
    do
        r = oct_client_send_borrowed(p->client, n, time_ns);
    while (r == OCT_CLIENT_INTERRUPTED || (r == OCT_CLIENT_TIMEOUT && !is_stopped(p)));
    if (r == OCT_CLIENT_OK || r == OCT_CLIENT_DROPPED || r == OCT_CLIENT_TIMEOUT)
        return OCT_OK;
    return oct_fail(err, OCT_E_IO, "%s: %s", p->options->endpoint, oct_client_error(p->client));
}

static enum oct_err send_frame(struct push *p, const struct oct_genicam_frame *frame,
                               struct oct_error *err)
{
    const uint32_t most = p->options->most_lines ? p->options->most_lines : frame->n_lines;
    const double line_ns = oct_numbering_period_ns(&p->numbering) / p->form.n_lines;
    const uint64_t time_ns = frame->time_ns ? frame->time_ns : frame->system_ns;
    uint64_t n_lost;
    const enum oct_numbering_verdict v =
        oct_numbering_next(&p->numbering, frame->id, frame->time_ns, &n_lost);
    if (v == OCT_FRAME_LATE)
        return OCT_OK;
    report_loss(p, frame, n_lost, v == OCT_FRAME_ANEW);
    oct_client_skip(p->client, n_lost * p->form.n_lines);
    for (uint32_t at = 0, n; at < frame->n_lines; at += n) {
        n = frame->n_lines - at < most ? frame->n_lines - at : most;
        const enum oct_err e = send_lines(p, frame, at, n, time_ns + (uint64_t)(at * line_ns), err);
        if (e)
            return e;
    }
    oct_client_skip(p->client, p->form.n_lines - frame->n_lines); /* a frame that was cut short */
    p->n_frames++;
    return OCT_OK;
}

static bool is_done(struct push *p)
{
    return is_stopped(p) || (p->options->n_frames && p->n_frames >= p->options->n_frames);
}

/* One acquisition, to its end. */
static enum oct_err acquire(struct push *p, struct oct_error *err)
{
    uint64_t heard_ns = oct_clock_ns();
    oct_numbering_init(&p->numbering, p->form.has_wide_ids);
    oct_client_start(p->client);
    enum oct_err e = oct_genicam_start(p->camera, err);
    if (e)
        return e;
    printf("octgenicam: %s: frames of %" PRIu32 " A-lines of %" PRIu32 " samples, %s, to %s\n",
           p->form.id, p->form.n_lines, p->form.n_samples, oct_pixel_format_name(p->form.format),
           p->options->endpoint);
    fflush(stdout);
    p->has_begun = true;
    while (!e && !is_done(p)) {
        struct oct_genicam_frame frame;
        e = oct_genicam_next(p->camera, SLICE_MS, &frame, err);
        if (e == OCT_OK) {
            e = send_frame(p, &frame, err);
            oct_genicam_release(p->camera, &frame);
            heard_ns = oct_clock_ns();
        } else if (e == OCT_E_AGAIN) {
            e = OCT_OK;
            if (heard_ns && oct_clock_ns() - heard_ns > SILENT_NS) {
                fprintf(stderr, "octgenicam: no frame for 5 s: is the camera triggered?\n");
                heard_ns = 0;
            }
        }
    }
    const enum oct_client_result r = oct_client_end(p->client);
    if (!e && r != OCT_CLIENT_OK)
        e = oct_fail(err, OCT_E_IO, "%s: the end of the acquisition was not taken",
                     p->options->endpoint);
    return e;
}

/* ---- the whole ---- */

static enum oct_err run(struct push *p, struct oct_error *err)
{
    enum oct_err e = open_camera(p, err);
    e = e ? e : connect_client(p, err);
    while (!e) {
        e = acquire(p, err);
        if (e != OCT_E_CLOSED || !p->options->reconnect)
            return e;
        fprintf(stderr, "octgenicam: %s: the camera has gone away; waiting for it\n", p->form.id);
        close_camera(p);
        e = await_camera(p, err);
        if (e == OCT_E_CLOSED)
            return OCT_OK;
    }
    return e;
}

static enum oct_err finish_client(struct push *p, enum oct_err e, struct oct_error *err)
{
    struct oct_client_counters counters;
    const uint64_t end_ns = oct_clock_ns() + LINGER_MS * UINT64_C(1000000);
    while (p->has_begun && oct_client_flush(p->client, SLICE_MS) != OCT_CLIENT_OK)
        if (oct_clock_ns() >= end_ns || take_signal() /* a second one */)
            break;
    oct_client_get_counters(p->client, &counters);
    oct_client_give_up(p->client);
    oct_client_close(p->client);
    if (p->has_begun)
        printf("octgenicam: %" PRIu64 " frames, %" PRIu64 " lines sent; %" PRIu64
               " frames lost (%" PRIu64 " broken, %" PRIu64 " without room), %" PRIu64
               " late; %" PRIu64 " lines that octd did not take in time\n",
               p->n_frames, counters.lines_sent, p->n_lost, p->n_broken, p->n_no_room, p->n_late,
               counters.lines_dropped);
    if (!e && counters.lines_queued > 0)
        e = oct_fail(err, OCT_E_IO, "%" PRIu64 " lines were not delivered to %s within %u s",
                     counters.lines_queued, p->options->endpoint, LINGER_MS / 1000);
    return e;
}

enum oct_err oct_push_run(const struct oct_push_options *options, struct oct_error *err)
{
    struct push p = {.options = options};
    enum oct_err e = run(&p, err);
    close_camera(&p);
    if (p.client)
        e = finish_client(&p, e, err);
    return e;
}
