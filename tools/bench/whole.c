/* Everything at once: the rate at which octd records everything before a viewer beside that of its
 * slowest part alone. */
#include "config/apply.h"
#include "pipeline/base/clock.h"
#include "pipeline/wire/shm_layout.h"
#include "tools/bench/part.h"
#include "tools/bench/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEAST_SECONDS 5.0

/* Lines a second that each part does alone; the least of them. *slowest names it. */
static enum oct_err measure_parts(const struct oct_config *config,
                                  const struct oct_bench_options *options, double *least_hz,
                                  const char **slowest, struct oct_error *err)
{
    struct oct_bench_rows *parts = calloc(1, sizeof(*parts));
    struct oct_geometry g = {0};
    double engine_hz = 0, bscan_us = 0;
    if (!parts)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    enum oct_err e = oct_bench_engine(config, 0, 0, options->seconds, &engine_hz, &bscan_us, err);
    e = e ? e : oct_bench_ingest(config, options, parts, err);
    e = e ? e : oct_bench_recorder(config, options, parts, err);
    e = e ? e : oct_config_geometry(config, &g, err);
    if (!e) {
        double in = (double)oct_geometry_spectra_bytes(&g) / g.n_lines;
        double out = (double)oct_geometry_image_bytes(&g) / g.n_lines;
        const double hz[] = {engine_hz, parts->row[0].value * 1e9 / in,
                             parts->row[1].value * 1e9 / (in + out)};
        static const char *const names[] = {"the engine", "ingest", "the recorder"};
        *least_hz = 1e300;
        for (int k = 0; k < 3; k++)
            if (hz[k] < *least_hz) {
                *least_hz = hz[k];
                *slowest = names[k];
            }
    }
    free(parts);
    return e;
}

static bool record_is(const cJSON *status, double active)
{
    const cJSON *record = cJSON_GetObjectItemCaseSensitive(status, "record");
    const cJSON *is = cJSON_GetObjectItemCaseSensitive(record, "active");
    return active > 0 ? cJSON_IsTrue(is) : cJSON_IsFalse(is);
}

/* Asks again as long as a daemon that has only just started refuses. Returns when the recording has
 * begun: the reply may come earlier, and the volume that runs by then is not recorded. */
static enum oct_err start_recording(const struct oct_bench_rig *r, struct oct_error *err)
{
    static const char request[] = "{\"cmd\":\"record\",\"action\":\"start\"}";
    const struct timespec pause = {.tv_nsec = 20000000};
    const uint64_t until = oct_clock_ns() + OCT_BENCH_PATIENCE_MS * UINT64_C(1000000);
    bool came;
    for (; oct_bench_rig_command(r, request, err); nanosleep(&pause, NULL))
        if (oct_clock_ns() > until)
            return OCT_E_IO;
    cJSON_Delete(oct_bench_rig_until(r, record_is, 1, &came));
    return came ? OCT_OK
                : oct_fail(err, OCT_E_IO, "octd granted a recording and does not begin it");
}

/* Records what the camera sends in so many seconds, before a viewer, until all is on the disk:
 * lines a second over that time; 0: something was lost on the way. */
static enum oct_err run_everything(struct oct_bench_rig *r, double seconds, double *hz,
                                   struct oct_error *err)
{
    bool ended = false;
    enum oct_err e = start_recording(r, err);
    if (e)
        return e;
    e = oct_bench_camera_start(r, err);
    uint64_t begin = oct_clock_ns(), until = begin + (uint64_t)(seconds * 1e9);
    while (!e && oct_clock_ns() < until)
        e = oct_bench_picture_take(r, NULL, err);
    oct_bench_camera_end(r);
    cJSON_Delete(oct_bench_rig_ask(r, "{\"cmd\":\"record\",\"action\":\"stop\"}"));
    cJSON *status = oct_bench_rig_until(r, record_is, 0, &ended);
    if (!e && !ended)
        e = oct_fail(err, OCT_E_IO, "octd does not end its recording");
    double took = (double)(oct_clock_ns() - begin) * 1e-9;
    double lines = oct_bench_number(status, NULL, "lines_received");
    double done = oct_bench_number(status, NULL, "bscans_done");
    double lost = oct_bench_number(status, NULL, "lines_missing") + (double)r->n_given_up +
                  oct_bench_number(status, "bscans_dropped", "ring_full") +
                  oct_bench_number(status, "bscans_dropped", "engine") +
                  (done - oct_bench_number(status, NULL, "bscans_written")) +
                  (done - oct_bench_number(status, NULL, "bscans_published"));
    *hz = lost == 0 && done > 0 ? lines / took : 0;
    cJSON_Delete(status);
    return e;
}

static enum oct_err try_rate(const struct oct_config *config,
                             const struct oct_bench_options *options, double rate_hz, double *hz,
                             struct oct_error *err)
{
    struct oct_bench_rig r;
    char records[sizeof(r.records)];
    double seconds = 2 * options->seconds;
    enum oct_err e = oct_bench_rig_open(&r, config, rate_hz, err);
    snprintf(records, sizeof(records), "%s/octctl-bench.XXXXXX", options->directory);
    if (!e && !mkdtemp(records))
        e = oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", records);
    if (!e) {
        memcpy(r.records, records, sizeof(records));
        e = oct_bench_rig_configure(&r, config, err);
    }
    e = e ? e : oct_bench_rig_run(&r, err);
    e = e ? e : run_everything(&r, seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS, hz, err);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}

/* Lowers the rate from the goal until nothing is lost. */
enum oct_err oct_bench_whole(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    struct oct_bench_row *row =
        oct_bench_add(rows, "whole", "its slowest part alone", "A-lines/s", 0.85);
    const char *slowest = "";
    char depth[24];
    oct_bench_depth_text(config, depth, sizeof(depth));
    enum oct_err e = measure_parts(config, options, &row->limit, &slowest, err);
    for (double share = 0.9; share > 0.05 && !e && row->value == 0; share -= 0.05)
        e = try_rate(config, options, share * row->limit, &row->value, err);
    snprintf(row->what, sizeof(row->what), "all recorded, a viewer, %s%s", depth,
             oct_shm_is_endpoint(config->ingest.endpoint) ? ", shm" : "");
    snprintf(row->note, sizeof(row->note), "nothing lost; the slowest part is %s", slowest);
    return e;
}
