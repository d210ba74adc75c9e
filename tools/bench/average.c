/* The live average beside the pictures: what it does to their latency in a real octd, how far its
 * results lag behind them, and what it does alone. */
#include "analysis/average/average.h"
#include "config/apply.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "tools/bench/part.h"
#include "tools/bench/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zmq.h>

#define RATE_HZ 70000.0 /* A-lines a second: 292 B-scans of 240 */
#define N_AVERAGED "16"
#define N_ROUNDS 6u /* with and without in turns */
#define SETTLE_NS UINT64_C(700000000)
#define N_ALONE 32u

/* ---- beside the pictures ---- */

/* Of one way, all rounds. */
struct way {
    double *us; /* delays of pictures, [most] */
    size_t n, most;
    double p99_us[N_ROUNDS];
    uint64_t n_results, n_lagging;
    double most_lag; /* B-scans */
};

/* Takes a message of the topic bscan or average. */
static enum oct_err take(struct oct_bench_rig *r, bool *is_average, double *number,
                         uint64_t *sent_ns, struct oct_error *err)
{
    int patience_ms = OCT_BENCH_PATIENCE_MS, more = 1;
    size_t more_bytes = sizeof(more);
    zmq_setsockopt(r->pictures, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
    for (int n = 0; more; n++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, r->pictures, 0) < 0) {
            zmq_msg_close(&part);
            return oct_fail(err, OCT_E_IO, "octd has sent no picture");
        }
        if (n == 0)
            *is_average = zmq_msg_size(&part) > 0 && *(char *)zmq_msg_data(&part) == 'a';
        if (n == 1) {
            cJSON *header = cJSON_ParseWithLength(zmq_msg_data(&part), zmq_msg_size(&part));
            *number = oct_bench_number(header, NULL, "frame_num");
            *sent_ns = (uint64_t)fmax(0, oct_bench_number(header, NULL, "time_ns"));
            cJSON_Delete(header);
        }
        zmq_msg_close(&part);
        zmq_getsockopt(r->pictures, ZMQ_RCVMORE, &more, &more_bytes);
    }
    return OCT_OK;
}

/* One round: what comes for so long. Messages of a while before are passed over. */
static enum oct_err watch(struct oct_bench_rig *r, double seconds, struct way *way, unsigned round,
                          struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns() + SETTLE_NS, end = begin + (uint64_t)(seconds * 1e9);
    const size_t first = way->n;
    double newest = -1, number = 0;
    uint64_t sent_ns = 0, now_ns = 0;
    bool is_average = false;
    enum oct_err e = OCT_OK;
    while (!e && now_ns < end) {
        e = take(r, &is_average, &number, &sent_ns, err);
        now_ns = oct_clock_ns();
        if (e || now_ns < begin)
            continue;
        if (is_average && newest >= 0) {
            double lag = fmax(0, newest - number);
            way->n_results++;
            way->n_lagging += lag > 2;
            way->most_lag = fmax(way->most_lag, lag);
        } else if (!is_average) {
            newest = number;
            if (way->us && way->n < way->most)
                way->us[way->n++] = (double)(now_ns - sent_ns) * 1e-3;
        }
    }
    const size_t n = way->n - first;
    oct_bench_median(way->us + first, n); /* sorts */
    way->p99_us[round] = n ? way->us[first + (size_t)(0.99 * (double)(n - 1))] : 0;
    return e;
}

static enum oct_err set_average(const struct oct_bench_rig *r, const char *n, struct oct_error *err)
{
    char request[96];
    snprintf(request, sizeof(request),
             "{\"cmd\":\"set\",\"key\":\"average.bscans\",\"value\":\"%s\"}", n);
    cJSON *reply = oct_bench_rig_ask(r, request);
    bool granted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
    cJSON_Delete(reply);
    return granted ? OCT_OK : oct_fail(err, OCT_E_IO, "octd does not take average.bscans");
}

static enum oct_err report_beside(struct oct_bench_rig *r, struct way ways[2],
                                  struct oct_bench_rows *rows, struct oct_error *err)
{
    cJSON *status = oct_bench_rig_status(r);
    double behind = oct_bench_number(status, "average", "behind");
    double dropped = oct_bench_number(status, "bscans_dropped", "ring_full") +
                     oct_bench_number(status, "bscans_dropped", "engine");
    cJSON_Delete(status);
    if (behind < 0 || dropped < 0 || ways[0].n == 0 || ways[1].n == 0)
        return oct_fail(err, OCT_E_IO, "octd does not tell what its average does");
    struct oct_bench_row *row = oct_bench_add(rows, "average", "p99 without it", "us", 1.05);
    row->less_is_better = true;
    row->value = oct_bench_median(ways[1].p99_us, N_ROUNDS);
    row->limit = oct_bench_median(ways[0].p99_us, N_ROUNDS);
    snprintf(row->what, sizeof(row->what), "bscan p99 beside an average of " N_AVERAGED);
    snprintf(row->note, sizeof(row->note),
             "%.0f lines/s, medians of %u rounds, %.0f B-scans dropped", r->rate_hz, N_ROUNDS,
             dropped);
    row = oct_bench_add(rows, "average", "the goal, 2 B-scans", "B-scans", 1);
    row->less_is_better = true;
    row->value = ways[1].most_lag;
    row->limit = 2;
    snprintf(row->what, sizeof(row->what), "most that a result lags behind the pictures");
    snprintf(row->note, sizeof(row->note), "%llu results, %llu lag more; behind %.0f",
             (unsigned long long)ways[1].n_results, (unsigned long long)ways[1].n_lagging, behind);
    return OCT_OK;
}

static enum oct_err measure_beside(struct oct_bench_rig *r, double seconds,
                                   struct oct_bench_rows *rows, struct oct_error *err)
{
    struct way ways[2] = {{.n = 0}, {.n = 0}};
    enum oct_err e = OCT_OK;
    zmq_setsockopt(r->pictures, ZMQ_SUBSCRIBE, "average", 7);
    for (int k = 0; k < 2; k++) {
        ways[k].most =
            (size_t)(2 * N_ROUNDS * seconds * RATE_HZ / r->scene.plan->geometry.n_lines) + 1000;
        ways[k].us = calloc(ways[k].most, sizeof(*ways[k].us));
        if (!ways[k].us)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the delays");
    }
    if (e)
        goto fail;
    e = oct_bench_camera_start(r, err);
    for (unsigned round = 0; round < N_ROUNDS && !e; round++)
        for (int k = 0; k < 2 && !e; k++) {
            e = set_average(r, k ? N_AVERAGED : "1", err);
            if (!e)
                e = watch(r, seconds, &ways[k], round, err);
        }
    if (!e)
        e = report_beside(r, ways, rows, err);
    oct_bench_camera_end(r);
fail:
    free(ways[0].us);
    free(ways[1].us);
    return e;
}

/* Every B-scan is taken in, whatever it looks like: that takes longest. */
static enum oct_err bench_beside(const struct oct_config *config, double seconds,
                                 struct oct_bench_rows *rows, struct oct_error *err)
{
    struct oct_bench_rig r;
    struct oct_config c = *config;
    c.average.min_score = -1;
    c.average.max_shift_px = 32;
    enum oct_err e = oct_config_set(&c, "analysis.run", "enface,quality,average", "bench", err);
    if (e)
        return e;
    e = oct_bench_rig_open(&r, &c, RATE_HZ, err);
    if (!e)
        e = oct_bench_rig_start(&r, err);
    if (!e)
        e = oct_bench_rig_await(&r, err);
    if (!e)
        e = measure_beside(&r, seconds, rows, err);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}

/* ---- alone ---- */

/* Layers that bend, with speckle; each a little further than the one before. */
static void fill(float *values, uint32_t n_lines, uint32_t depth, unsigned k)
{
    uint64_t state = 88172645463325252u + k;
    for (uint32_t j = 0; j < n_lines; j++)
        for (uint32_t d = 0; d < depth; d++) {
            double y = j + 0.7 * k, x = d + 0.4 * k;
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            double speckle = -log(((double)(state >> 11) + 1) * 0x1p-53);
            values[(size_t)j * depth + d] = (float)(25 + 15 * sin(0.05 * x + 2 * sin(0.04 * y)) +
                                                    8 * sin(0.21 * y) + 10 * log10(speckle + 1e-3));
        }
}

static enum oct_err run_alone(struct oct_analysis *a, const struct oct_image_form *form,
                              const float *values, double seconds, double *per_s,
                              struct oct_error *err)
{
    const size_t n = (size_t)form->dims[0] * form->dims[1];
    struct oct_image_frame bscan = {.form = form, .lo = 0, .hi = 60};
    struct oct_image_frame result = {.pixels = malloc(n)};
    double best_ns = INFINITY;
    enum oct_err e =
        result.pixels ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a picture");
    for (uint64_t begin = oct_clock_ns(); !e && (double)(oct_clock_ns() - begin) < seconds * 1e9;) {
        uint64_t round = oct_clock_ns();
        for (unsigned k = 0; k < N_ALONE && !e; k++, bscan.info.number++) {
            bscan.values = (float *)values + k % OCT_BENCH_FRAMES * n;
            e = oct_average_cpu.run.push(a, &bscan, err);
            if (!e)
                e = oct_average_cpu.run.take(a, &result, err);
        }
        best_ns = fmin(best_ns, (double)(oct_clock_ns() - round) / N_ALONE);
    }
    if (!e &&
        (result.numbers[OCT_AVERAGE_AVERAGED] < 16 || result.numbers[OCT_AVERAGE_REJECTED] > 0))
        e = oct_fail(err, OCT_E_FORMAT, "the average left out B-scans that match");
    *per_s = 1e9 / best_ns;
    free(result.pixels);
    return e;
}

static enum oct_err bench_alone(const struct oct_config *config, double seconds,
                                struct oct_bench_rows *rows, struct oct_error *err)
{
    struct oct_geometry g;
    struct oct_image_form input, form;
    struct oct_analysis *a = NULL;
    double per_s = 0;
    enum oct_err e = oct_config_geometry(config, &g, err);
    if (e)
        return e;
    g.sample_type = OCT_SAMPLE_U8;
    const struct oct_spacing spacing = {NAN, NAN, NAN};
    const struct oct_average_settings settings = {
        .bscans = 16, .repeats = 1, .max_shift_px = 32, .min_score = 0.3};
    oct_image_form_of_bscan(&input, &g, true, &spacing);
    const struct oct_analysis_setup setup = {
        .input = &input, .n_bscans = 1, .spacing = spacing, .live = true, .settings = &settings};
    const size_t n = (size_t)g.n_lines * g.depth;
    float *values = oct_aligned_alloc(64, OCT_BENCH_FRAMES * n, sizeof(*values));
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for B-scans");
    for (unsigned k = 0; k < OCT_BENCH_FRAMES; k++)
        fill(values + k * n, g.n_lines, g.depth, k);
    e = oct_average_cpu.create(&a, &setup, &form, err);
    if (!e)
        e = run_alone(a, &input, values, seconds, &per_s, err);
    if (!e) {
        struct oct_bench_row *row =
            oct_bench_add(rows, "average", "what the camera makes", "B-scans/s", 1);
        row->value = per_s;
        row->limit = RATE_HZ / g.n_lines;
        snprintf(row->what, sizeof(row->what), "alone, one core, %u x %u, registered", g.n_lines,
                 g.depth);
        snprintf(row->note, sizeof(row->note), "%.2f ms a B-scan, window of 16", 1e3 / per_s);
    }
    oct_average_cpu.run.destroy(a);
    free(values);
    return e;
}

enum oct_err oct_bench_average(const struct oct_config *config,
                               const struct oct_bench_options *options, struct oct_bench_rows *rows,
                               struct oct_error *err)
{
    enum oct_err e = bench_alone(config, options->seconds, rows, err);
    return e ? e : bench_beside(config, options->seconds, rows, err);
}
