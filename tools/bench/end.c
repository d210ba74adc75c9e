/* octd from end to end, as a process of its own between a camera and a viewer: the A-lines a
 * second that it publishes with lines as fast as it takes them, beside what the engine does
 * B-scan by B-scan, and the delay at a rate that it keeps, by each way in. Pictures are compared
 * first. */
#include "pipeline/base/clock.h"
#include "tools/bench/part.h"
#include "tools/bench/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETTLE_S 0.7   /* slots are filled, buffers are touched */
#define KEPT_SHARE 0.8 /* of the most that was published: the rate at which delays are measured */
#define CHECK_HZ 10000.0
#define MOST_WAITS 200  /* pictures until each of the scene's has come */
#define DELAY_US 1000.0 /* p99 that is wanted */
#define RANGE_DB 60     /* of the pictures that are compared, below the brightest pixel */
#define MOST_OFF 0.001  /* of these pixels */
#define LEAST_GREY 0.2  /* of these pixels: black ones prove nothing */

struct way {
    const char *name, *endpoint;
    enum oct_bench_filling filling;
    unsigned block;  /* B-scans */
    double delay_hz; /* at most, at which delays are measured: the goal of a GPU */
};

static const struct way ways[] = {
    {"shm in place", "shm://bench", OCT_BENCH_IN_PLACE, 1, 9e6},
    {"shm in place", "shm://bench", OCT_BENCH_IN_PLACE, 16, 15e6},
    {"shm", "shm://bench", OCT_BENCH_HAND_OVER, 1, INFINITY},
    {"ipc", "ipc://bench", OCT_BENCH_HAND_OVER, 1, INFINITY},
    {"tcp", OCT_BENCH_TCP, OCT_BENCH_HAND_OVER, 1, INFINITY},
    {"tcp", OCT_BENCH_TCP, OCT_BENCH_HAND_OVER, 16, INFINITY},
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static enum oct_err open_rig(struct oct_bench_rig *r, const struct oct_config *config,
                             const struct way *way, struct oct_error *err)
{
    struct oct_config c = *config;
    snprintf(c.ingest.endpoint, sizeof(c.ingest.endpoint), "%s", way->endpoint);
    c.ingest.slot_bscans = way->block;
    enum oct_err e = oct_bench_rig_open(r, &c, 0, err);
    e = e ? e : oct_bench_rig_load(r, way->block, err);
    r->filling = way->filling;
    return e ? e : oct_bench_rig_run(r, err);
}

/* ---- pictures ---- */

/* Receives one picture of each B-scan of the scene into scene.out. */
static enum oct_err take_pictures(struct oct_bench_rig *r, struct oct_error *err)
{
    const size_t bytes = oct_geometry_image_bytes(&r->scene.plan->geometry);
    bool came[OCT_BENCH_FRAMES] = {false};
    void *pixels = malloc(bytes);
    enum oct_err e = pixels ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    unsigned n = 0;
    for (unsigned k = 0; k < MOST_WAITS && n < OCT_BENCH_FRAMES && !e; k++) {
        struct oct_bench_message m = {.number = -1, .pixels = pixels};
        e = oct_bench_message_take(r, &m, err);
        const unsigned f = e || m.number < 0 ? 0 : (unsigned)fmod(m.number, OCT_BENCH_FRAMES);
        if (e || m.number < 0 || came[f])
            continue;
        if (m.bytes != bytes)
            e = oct_fail(err, OCT_E_FORMAT, "a picture has %zu bytes", m.bytes);
        memcpy(r->scene.out[f].pixels, pixels, bytes);
        r->scene.out[f].lo = m.lo;
        r->scene.out[f].hi = m.hi;
        came[f] = true;
        n++;
    }
    free(pixels);
    return e || n == OCT_BENCH_FRAMES
               ? e
               : oct_fail(err, OCT_E_IO, "not every B-scan has come as a picture");
}

/* The scene's B-scans by octd, into r->scene.out. The caller closes the rig. */
static enum oct_err picture_scene(struct oct_bench_rig *r, const struct oct_config *config,
                                  const struct way *way, struct oct_error *err)
{
    enum oct_err e = open_rig(r, config, way, err);
    if (way->filling == OCT_BENCH_IN_PLACE)
        r->filling = OCT_BENCH_FILL_PLACE;
    r->rate_hz = CHECK_HZ;
    e = e ? e : oct_bench_camera_start(r, err);
    e = e ? e : take_pictures(r, err);
    oct_bench_camera_end(r);
    return e;
}

/* Largest difference in grey levels from double precision. */
static enum oct_err check_exactly(const struct oct_bench_rig *r, double *worst,
                                  struct oct_error *err)
{
    *worst = 0;
    for (unsigned f = 0; f < OCT_BENCH_FRAMES && r->scene.plan->chain.dc != OCT_DC_RUNNING; f++)
        *worst = fmax(*worst, oct_bench_scene_error(&r->scene, f));
    return *worst <= 1
               ? OCT_OK
               : oct_fail(err, OCT_E_BACKEND,
                          "published pictures are off by %.1f grey levels: not timed", *worst);
}

struct difference {
    double most, share; /* grey levels; of pixels that differ at all */
    double grey;        /* share of pixels that are neither black nor white */
};

static struct difference compare(const struct oct_bench_scene *a, const struct oct_bench_scene *b)
{
    const size_t n = oct_geometry_image_bytes(&a->plan->geometry);
    const double each = 1 / ((double)n * OCT_BENCH_FRAMES);
    struct difference d = {0};
    for (unsigned f = 0; f < OCT_BENCH_FRAMES; f++) {
        const uint8_t *pa = a->out[f].pixels, *pb = b->out[f].pixels;
        for (size_t i = 0; i < n; i++) {
            d.most = fmax(d.most, abs(pa[i] - pb[i]));
            d.share += pa[i] != pb[i] ? each : 0;
            d.grey += pb[i] > 0 && pb[i] < 255 ? each : 0;
        }
    }
    return d;
}

static enum oct_err judge(const struct difference *d, const char *backend, struct oct_error *err)
{
    if (d->grey < LEAST_GREY)
        return oct_fail(err, OCT_E_BACKEND, "only %.1f %% of the pixels that are compared are grey",
                        100 * d->grey);
    if (d->most > 1 || d->share > MOST_OFF)
        return oct_fail(err, OCT_E_BACKEND,
                        "pictures of %s and of the plain CPU engine differ by %.0f grey levels, "
                        "%.3f %% of pixels: not timed",
                        backend, d->most, 100 * d->share);
    return OCT_OK;
}

static void read_backend(const struct oct_bench_rig *r, char *backend, size_t bytes)
{
    cJSON *status = oct_bench_rig_status(r);
    const char *is = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "backend"));
    snprintf(backend, bytes, "%s", is ? is : "octd");
    cJSON_Delete(status);
}

/* Grey levels by each B-scan's own limits, against double precision; *most_db: the brightest pixel
 * of all. */
static enum oct_err check_auto(struct oct_config *config, char *backend, size_t bytes,
                               double *exact, double *most_db, struct oct_error *err)
{
    struct oct_bench_rig r;
    config->pipeline.range = OCT_RANGE_AUTO;
    enum oct_err e = picture_scene(&r, config, &ways[0], err);
    e = e ? e : check_exactly(&r, exact, err);
    *most_db = -INFINITY;
    for (unsigned f = 0; f < OCT_BENCH_FRAMES && !e; f++)
        *most_db = fmax(*most_db, r.scene.out[f].hi);
    if (!e)
        read_backend(&r, backend, bytes);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}

/* As configured, and the plain CPU engine, both published by octd. */
static enum oct_err compare_engines(const struct oct_config *config, struct difference *d,
                                    struct oct_error *err)
{
    struct oct_bench_rig a, b;
    struct oct_config plain = *config;
    oct_config_set(&plain, "pipeline.backend", "cpu", "bench end", NULL);
    oct_config_set(&plain, "pipeline.simd", "plain", "bench end", NULL);
    enum oct_err e = picture_scene(&a, config, &ways[0], err);
    oct_bench_rig_end(&a);
    if (!e) {
        e = picture_scene(&b, &plain, &ways[3], err);
        if (!e)
            *d = compare(&a.scene, &b.scene);
        oct_bench_rig_close(&b, e != OCT_OK);
    }
    oct_bench_rig_close(&a, e != OCT_OK);
    return e;
}

static enum oct_err check_pictures(const struct oct_config *config, struct oct_bench_rows *rows,
                                   struct oct_error *err)
{
    struct oct_config c = *config;
    struct difference d = {0};
    double exact = 0;
    char backend[32] = "";
    c.output.sample = OCT_SAMPLE_U8;
    c.pipeline.log = true;
    enum oct_err e = check_auto(&c, backend, sizeof(backend), &exact, &c.pipeline.max_db, err);
    c.pipeline.range = OCT_RANGE_MANUAL;
    c.pipeline.min_db = c.pipeline.max_db - RANGE_DB;
    e = e ? e : compare_engines(&c, &d, err);
    e = e ? e : judge(&d, backend, err);
    if (e)
        return e;
    struct oct_bench_row *row = oct_bench_add(rows, "end", "allowed", "grey", 1);
    row->less_is_better = true;
    row->value = d.most;
    row->limit = 1;
    snprintf(row->what, sizeof(row->what), "%s against cpu without SIMD", backend);
    snprintf(row->note, sizeof(row->note),
             "published by octd; %.4f %% of pixels differ; from double precision %.2f",
             100 * d.share, exact);
    return OCT_OK;
}

/* ---- rates and delays ---- */

/* What happened within so many seconds. */
struct found {
    double seconds, published, done, lost; /* B-scans; lost: lines that came, or were to, and did
                                              not become pictures */
    double own_p50_us, own_p99_us;         /* octd's own, from the last line's arrival */
    double *us;                            /* the viewer's, from sending, sorted */
    size_t n, most;
};

struct counts {
    uint64_t at_ns;
    double published, done, lost_bscans, lost_lines;
};

static enum oct_err read_counts(const struct oct_bench_rig *r, struct counts *c,
                                struct found *latency, struct oct_error *err)
{
    cJSON *status = oct_bench_rig_status(r);
    *c = (struct counts){
        .at_ns = oct_clock_ns(),
        .published = oct_bench_number(status, NULL, "bscans_published"),
        .done = oct_bench_number(status, NULL, "bscans_done"),
        .lost_bscans = oct_bench_number(status, "bscans_dropped", "ring_full") +
                       oct_bench_number(status, "bscans_dropped", "engine"),
        .lost_lines = oct_bench_number(status, NULL, "lines_missing"),
    };
    latency->own_p50_us = oct_bench_number(status, "latency_us", "p50");
    latency->own_p99_us = oct_bench_number(status, "latency_us", "p99");
    cJSON_Delete(status);
    return c->done >= 0 ? OCT_OK : oct_fail(err, OCT_E_IO, "octd does not say what it has done");
}

static enum oct_err receive_for(struct oct_bench_rig *r, double seconds, struct found *found,
                                struct oct_error *err)
{
    const uint64_t until = oct_clock_ns() + (uint64_t)(seconds * 1e9);
    enum oct_err e = OCT_OK;
    while (!e && oct_clock_ns() < until) {
        uint64_t sent_ns;
        e = oct_bench_picture_take(r, &sent_ns, err);
        const uint64_t now_ns = oct_clock_ns();
        if (!e && found && found->n < found->most)
            found->us[found->n++] = now_ns > sent_ns ? (double)(now_ns - sent_ns) * 1e-3 : 0;
    }
    return e;
}

/* The camera sends at r->rate_hz. found->us: for free, whatever the result. */
static enum oct_err watch(struct oct_bench_rig *r, double seconds, struct found *found,
                          struct oct_error *err)
{
    const double n_lines = r->scene.plan->geometry.n_lines;
    struct counts begin = {0}, end = {0};
    *found = (struct found){.most = (size_t)(4e6 * seconds / n_lines) + 1000};
    found->us = calloc(found->most, sizeof(*found->us));
    if (!found->us)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the delays");
    enum oct_err e = oct_bench_camera_start(r, err);
    e = e ? e : receive_for(r, SETTLE_S, NULL, err);
    atomic_store(&r->restart, true); /* octd's delays are those of an acquisition */
    e = e ? e : read_counts(r, &begin, found, err);
    e = e ? e : receive_for(r, seconds, found, err);
    e = e ? e : read_counts(r, &end, found, err);
    oct_bench_camera_end(r);
    if (!e && r->camera_failed)
        e = oct_fail(err, OCT_E_IO, "the camera could not send by %s", r->ingest);
    found->seconds = (double)(end.at_ns - begin.at_ns) * 1e-9;
    found->published = end.published - begin.published;
    found->done = end.done - begin.done;
    found->lost = (end.lost_bscans - begin.lost_bscans) * n_lines + end.lost_lines -
                  begin.lost_lines + (r->rate_hz > 0 ? (double)r->n_given_up : 0);
    oct_bench_median(found->us, found->n); /* sorts */
    return e;
}

static double delay_at(const struct found *found, double share)
{
    return found->n ? found->us[(size_t)(share * (double)(found->n - 1))] : 0;
}

static void name_row(struct oct_bench_row *row, const struct way *way, const char *what)
{
    snprintf(row->what, sizeof(row->what), "%s, %u B-scan%s a block%s", way->name, way->block,
             way->block > 1 ? "s" : "", what);
}

/* Returns what was published, A-lines a second. */
static double report_rate(struct oct_bench_rows *rows, const struct way *way,
                          const struct found *found, double n_lines, double engine_hz)
{
    struct oct_bench_row *row = oct_bench_add(rows, "end", "one B-scan at a time", "A-lines/s", 0);
    row->value = found->published * n_lines / found->seconds;
    row->limit = engine_hz;
    name_row(row, way, "");
    snprintf(row->note, sizeof(row->note), "reconstructed %.0f/s; the viewer had %.0f/s; lost %.0f",
             found->done * n_lines / found->seconds, (double)found->n * n_lines / found->seconds,
             found->lost);
    return row->value;
}

static void report_delay(struct oct_bench_rows *rows, const struct way *way,
                         const struct found *found, double rate_hz)
{
    struct oct_bench_row *row = oct_bench_add(rows, "end", "wanted", "us", 1);
    row->less_is_better = true;
    row->value = found->own_p99_us;
    row->limit = DELAY_US;
    name_row(row, way, ", p99");
    snprintf(row->note, sizeof(row->note),
             "at %.0f/s; p50 %.0f; viewer p50 %.0f, p99 %.0f; lost %.0f lines", rate_hz,
             found->own_p50_us, delay_at(found, 0.5), delay_at(found, 0.99), found->lost);
}

static enum oct_err measure(const struct oct_config *config, const struct way *way, double seconds,
                            double engine_hz, struct oct_bench_rows *rows, struct oct_error *err)
{
    struct oct_bench_rig r;
    struct found found = {0};
    enum oct_err e = open_rig(&r, config, way, err);
    e = e ? e : watch(&r, seconds, &found, err);
    if (!e) {
        const double n_lines = r.scene.plan->geometry.n_lines;
        r.rate_hz =
            fmin(KEPT_SHARE * report_rate(rows, way, &found, n_lines, engine_hz), way->delay_hz);
        free(found.us);
        e = watch(&r, seconds, &found, err);
    }
    if (!e)
        report_delay(rows, way, &found, r.rate_hz);
    free(found.us);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}

enum oct_err oct_bench_end(const struct oct_config *config, const struct oct_bench_options *options,
                           struct oct_bench_rows *rows, struct oct_error *err)
{
    double engine_hz = 0, bscan_us = 0;
    enum oct_err e = check_pictures(config, rows, err);
    e = e ? e : oct_bench_engine(config, 0, 0, options->seconds, &engine_hz, &bscan_us, err);
    if (e)
        return e;
    for (unsigned k = 0; k < N_WAYS; k++) { /* one that fails costs no other */
        struct oct_error why;
        if (measure(config, &ways[k], options->seconds, engine_hz, rows, &why))
            e = oct_fail(err, why.code, "%s: %s", ways[k].name, why.text);
    }
    return e;
}
