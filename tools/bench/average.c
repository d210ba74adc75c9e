/* The live average beside the pictures: what it does to their latency in a real octd, how far its
 * results lag behind them, and what it does alone. */
#include "analysis/average/average.h"
#include "config/apply.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "tools/bench/beside.h"
#include "tools/bench/part.h"
#include "tools/bench/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RATE_HZ 70000.0 /* A-lines a second: 292 B-scans of 240 */
#define N_AVERAGED "16"
#define N_ALONE 32u

/* ---- beside the pictures ---- */

static enum oct_err report_beside(const struct oct_bench_beside_found *found,
                                  struct oct_bench_rows *rows, struct oct_error *err)
{
    const struct oct_bench_beside_way *without = &found->ways[0], *with = &found->ways[1];
    const double behind = oct_bench_number(found->status, "average", "behind");
    if (behind < 0)
        return oct_fail(err, OCT_E_IO, "octd does not tell what its average does");
    struct oct_bench_row *row = oct_bench_add(rows, "average", "p99 without it", "us", 1.05);
    row->less_is_better = true;
    row->value = with->p99_us;
    row->limit = without->p99_us;
    snprintf(row->what, sizeof(row->what), "bscan p99 beside an average of " N_AVERAGED);
    snprintf(row->note, sizeof(row->note),
             "%.0f lines/s, medians of %u rounds, %.0f B-scans dropped", RATE_HZ,
             OCT_BENCH_BESIDE_ROUNDS, found->n_dropped);
    row = oct_bench_add(rows, "average", "the goal, 2 B-scans", "B-scans", 1);
    row->less_is_better = true;
    row->value = with->most_lag;
    row->limit = 2;
    snprintf(row->what, sizeof(row->what), "most that a result lags behind the pictures");
    snprintf(row->note, sizeof(row->note), "%llu results, %llu lag more; behind %.0f",
             (unsigned long long)with->n_results, (unsigned long long)with->n_lagging, behind);
    return OCT_OK;
}

/* Every B-scan is taken in, whatever it looks like: that takes longest. */
static enum oct_err bench_beside(const struct oct_config *config, double seconds,
                                 struct oct_bench_rows *rows, struct oct_error *err)
{
    const struct oct_bench_setting settings[] = {{"average.bscans", {"1", N_AVERAGED}}, {NULL}};
    const struct oct_bench_beside beside = {
        .rate_hz = RATE_HZ, .topic = "average", .settings = settings};
    struct oct_bench_beside_found found;
    struct oct_config c = *config;
    c.average.min_score = -1;
    c.average.max_shift_px = 32;
    enum oct_err e = oct_config_set(&c, "analysis.run", "enface,quality,average", "bench", err);
    if (!e)
        e = oct_bench_beside(&c, &beside, seconds, &found, err);
    if (e)
        return e;
    e = report_beside(&found, rows, err);
    cJSON_Delete(found.status);
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
    const struct oct_average_settings settings = {.bscans = 16, .repeats = 1, .max_shift_px = 32};
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
