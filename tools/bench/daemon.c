/* The whole daemon, as a process of its own: from the last line in to the picture out beside the
 * time that the B-scan takes to compute, and from its start to its first picture beside the time
 * that FFTW takes to plan with the wisdom kept. */
#include "analysis/analyses.h"
#include "config/apply.h"
#include "kernels/recon/fft.h"
#include "pipeline/base/clock.h"
#include "tools/bench/beside.h"
#include "tools/bench/part.h"
#include "tools/bench/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LATENCY_RATE_HZ 100000.0
#define ENOUGH 0.99 /* of the B-scans that the camera was to send; with fewer the rate differs */

/* ---- latency ---- */

/* The delays that the subscriber measured, one a picture: from the camera's sending of the last
 * line to the picture's arrival. */
struct delays {
    double *us;
    size_t n, most;
};

/* Of sorted delays. */
static double delay_at(const struct delays *d, double share)
{
    return d->n ? d->us[(size_t)(share * (double)(d->n - 1))] : -1;
}

static enum oct_err watch(struct oct_bench_rig *r, double seconds, struct delays *d,
                          struct oct_error *err)
{
    uint64_t until = oct_clock_ns() + (uint64_t)(seconds * 1e9), sent_ns = 0;
    enum oct_err e = OCT_OK;
    d->most = (size_t)(2 * seconds * r->rate_hz / r->scene.plan->geometry.n_lines) + 1000;
    d->us = calloc(d->most, sizeof(*d->us));
    if (!d->us)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the delays");
    while (!e && oct_clock_ns() < until) {
        e = oct_bench_picture_take(r, &sent_ns, err);
        uint64_t now_ns = oct_clock_ns();
        if (!e && (sent_ns == 0 || sent_ns > now_ns))
            e = oct_fail(err, OCT_E_FORMAT, "a picture does not tell when its lines were sent");
        if (!e && d->n < d->most)
            d->us[d->n++] = (double)(now_ns - sent_ns) * 1e-3;
    }
    oct_bench_median(d->us, d->n); /* sorts */
    return e;
}

static bool has_done(const cJSON *status, double n_due)
{
    return oct_bench_number(status, NULL, "bscans_done") >= n_due;
}

/* Adds a row of octd's own latency and a row of the subscriber's. */
static enum oct_err report_latency(struct oct_bench_rig *r, const struct delays *d, double alone_us,
                                   const char *depth, struct oct_bench_rows *rows,
                                   struct oct_error *err)
{
    double n_lines = r->scene.plan->geometry.n_lines;
    double n_due = (double)(uint64_t)(r->camera_s * r->rate_hz / n_lines);
    bool all_done;
    cJSON *status = oct_bench_rig_until(r, has_done, ENOUGH * n_due, &all_done);
    double n_done = oct_bench_number(status, NULL, "bscans_done");
    double own_us = oct_bench_number(status, "latency_us", "p50");
    bool enough = n_done >= ENOUGH * n_due;
    double rate_hz = enough ? r->rate_hz : n_done * n_lines / r->camera_s;
    if (n_done < 0 || own_us < 0 || n_due < 1) {
        cJSON_Delete(status);
        return oct_fail(err, OCT_E_IO, "octd does not tell its latency");
    }
    for (int k = 0; k < 2; k++) {
        struct oct_bench_row *row = oct_bench_add(rows, "latency", "the B-scan's computation", "us",
                                                  k == 0 && enough ? 1.5 : 0);
        row->less_is_better = true;
        row->value = k ? delay_at(d, 0.5) : own_us;
        row->limit = alone_us;
        snprintf(row->what, sizeof(row->what), "%s p50, %.0f lines/s, %s", k ? "viewer" : "octd",
                 rate_hz, depth);
        double p99 = k ? delay_at(d, 0.99) : oct_bench_number(status, "latency_us", "p99");
        snprintf(row->note, sizeof(row->note),
                 "p99 %.0f us%s, %.0f of %.0f B-scans, %llu lines given up%s", p99,
                 k ? "" : " (goal 5000)", k ? (double)d->n : n_done, n_due,
                 (unsigned long long)r->n_given_up, enough ? "" : "; TOO SLOW a machine");
    }
    cJSON_Delete(status);
    return OCT_OK;
}

/* ---- beside everything ---- */

#define BESIDE_RATE_HZ 20000.0
#define BESIDE_RATIO 1.2

static void report_beside(const struct oct_bench_beside_found *found, unsigned n_busy,
                          struct oct_bench_rows *rows)
{
    const struct oct_bench_beside_way *without = &found->ways[0], *with = &found->ways[1];
    struct oct_bench_row *row =
        oct_bench_add(rows, "latency", "p99 without analyses", "us", BESIDE_RATIO);
    row->less_is_better = true;
    row->value = with->p99_us;
    row->limit = without->p99_us;
    snprintf(row->what, sizeof(row->what), "bscan p99 beside all, %u busy programs", n_busy);
    snprintf(row->note, sizeof(row->note),
             "p50 %.0f us, without %.0f; %llu pictures, %llu missing, %.0f dropped", with->p50_us,
             without->p50_us, (unsigned long long)with->n_pictures,
             (unsigned long long)with->n_missing, found->n_dropped);
    row = oct_bench_add(rows, "latency", "p99 without analyses", "us", BESIDE_RATIO);
    row->less_is_better = true;
    row->value = with->reply_p99_us;
    row->limit = without->reply_p99_us;
    snprintf(row->what, sizeof(row->what), "reply p99 beside all, %u busy programs", n_busy);
    snprintf(row->note, sizeof(row->note),
             "%llu replies, the slowest %.1f ms (without %llu, %.1f); %llu took 100 ms",
             (unsigned long long)with->n_replies, with->reply_most_us * 1e-3,
             (unsigned long long)without->n_replies, without->reply_most_us * 1e-3,
             (unsigned long long)with->n_slow_replies);
}

/* All analyses at work, each at every B-scan, against none. */
static enum oct_err bench_beside_all(const struct oct_config *config,
                                     const struct oct_bench_options *options,
                                     struct oct_bench_rows *rows, struct oct_error *err)
{
    char all[256];
    oct_analysis_names(all, sizeof(all));
    const struct oct_bench_setting settings[] = {{"analysis.run", {"", all}},
                                                 {"cells.enabled", {"no", "yes"}},
                                                 {"surfaces.enabled", {"no", "yes"}},
                                                 {"rolloff.enabled", {"no", "yes"}},
                                                 {"average.bscans", {"1", "16"}},
                                                 {"surfaces.every", {"1", "1"}},
                                                 {NULL}};
    const struct oct_bench_beside beside = {.rate_hz = BESIDE_RATE_HZ,
                                            .topic = "quality",
                                            .settings = settings,
                                            .restarts = true,
                                            .n_busy = options->load ? oct_bench_n_cores() : 0};
    struct oct_bench_beside_found found;
    enum oct_err e = oct_bench_beside(config, &beside, options->seconds, &found, err);
    if (e)
        return e;
    report_beside(&found, beside.n_busy, rows);
    cJSON_Delete(found.status);
    return OCT_OK;
}

enum oct_err oct_bench_latency(const struct oct_config *config,
                               const struct oct_bench_options *options, struct oct_bench_rows *rows,
                               struct oct_error *err)
{
    struct oct_bench_rig r;
    struct delays d = {0};
    char depth[24];
    double rate = 0, alone_us = 0;
    if (options->beside)
        return bench_beside_all(config, options, rows, err);
    enum oct_err e = oct_bench_engine(config, 0, 0, options->seconds, &rate, &alone_us, err);
    if (e)
        return e;
    oct_bench_depth_text(config, depth, sizeof(depth));
    e = oct_bench_rig_open(&r, config, LATENCY_RATE_HZ, err);
    e = e ? e : oct_bench_rig_run(&r, err);
    e = e ? e : oct_bench_camera_start(&r, err);
    e = e ? e : watch(&r, options->seconds + 1, &d, err);
    oct_bench_camera_end(&r);
    e = e ? e : report_latency(&r, &d, alone_us, depth, rows, err);
    free(d.us);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}

/* ---- start ---- */

static enum oct_err time_start(struct oct_bench_rig *r, double *seconds, struct oct_error *err)
{
    oct_bench_pictures_close(r);
    enum oct_err e = oct_bench_pictures_open(r, err);
    uint64_t begin = oct_clock_ns();
    e = e ? e : oct_bench_rig_start(r, err);
    e = e ? e : oct_bench_picture_take(r, NULL, err);
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    oct_bench_rig_end(r);
    return e;
}

/* The time that FFTW takes to plan with the wisdom that octd has left; 0: octd has left none
 * because it made no plan, as the engine's transforms are its own. */
static enum oct_err time_plans(const struct oct_bench_rig *r, double *seconds,
                               struct oct_error *err)
{
    uint32_t padded = r->scene.plan->geometry.padded;
    bool is_one = r->scene.plan->chain.interpolation == OCT_INTERPOLATION_NUFFT;
    struct oct_fft fft;
    char wisdom_dir[80], file[128];
    *seconds = 0;
    snprintf(wisdom_dir, sizeof(wisdom_dir), "%s/octd", r->folder);
    snprintf(file, sizeof(file), "%s/fftwf-%s%u.wisdom", wisdom_dir, is_one ? "one-" : "", padded);
    if (access(file, R_OK) != 0)
        return OCT_OK;
    uint64_t begin = oct_clock_ns();
    enum oct_err e =
        oct_fft_init(&fft, is_one ? OCT_FFT_ONE : OCT_FFT_ALL, padded, wisdom_dir, err);
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    if (!e)
        oct_fft_finish(&fft);
    return e;
}

static enum oct_err measure_start(const struct oct_config *config, struct oct_bench_rows *rows,
                                  struct oct_error *err)
{
    struct oct_bench_rig r;
    double first = 0, second = 0, plans = 0;
    char depth[24];
    oct_bench_depth_text(config, depth, sizeof(depth));
    enum oct_err e = oct_bench_rig_open(&r, config, 50000, err);
    if (!e)
        e = oct_bench_camera_start(&r, err); /* it runs already when octd starts */
    e = e ? e : time_start(&r, &first, err);
    e = e ? e : time_start(&r, &second, err);
    e = e ? e : time_plans(&r, &plans, err);
    if (!e) {
        struct oct_bench_row *row = oct_bench_add(
            rows, "start", plans > 0 ? "FFTW plans, with wisdom" : "no plan is made", "s", 0);
        row->less_is_better = true;
        row->value = second;
        row->limit = plans;
        snprintf(row->what, sizeof(row->what), "second start, simd=%s, %s",
                 oct_config_simd_names[config->pipeline.simd], depth);
        snprintf(row->note, sizeof(row->note), "to the first picture: goal 1 s; the first%s %.2f s",
                 plans > 0 ? ", without wisdom," : "", first);
    }
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}

static int find_simd(const char *name)
{
    int k = 0;
    while (strcmp(oct_config_simd_names[k], name) != 0)
        k++;
    return k;
}

/* Measures the start as configured, and with FFTW's transforms, for which the wisdom matters. */
enum oct_err oct_bench_start(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    struct oct_config c = *config;
    (void)options;
    enum oct_err e = measure_start(config, rows, err);
    if (e || strcmp(oct_config_simd_names[config->pipeline.simd], "plain") == 0)
        return e;
    c.pipeline.simd = find_simd("plain");
    return measure_start(&c, rows, err);
}
