/* Live analyses: beside the pictures of a real octd, what they do to its latency; and the average
 * and the layers on one core, alone. */
#include "analysis/average/average.h"
#include "analysis/layers/find/sequence.h"
#include "analysis/layers/layers.h"
#include "config/analysis.h"
#include "config/apply.h"
#include "pipeline/base/aligned.h"
#include "test/bench/bench.h"
#include "test/rig/layered_eye.h"
#include "tools/bench/beside.h"
#include "tools/bench/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AVERAGE_HZ 70000.0 /* A-lines a second: 292 B-scans of 240 */
#define BSCANS_A_SECOND 400.0
#define LAYERS_MS 4.0
#define FLOW_HZ 100000.0
#define LAYERS_HZ 24000.0 /* A-lines a second: 100 B-scans of 240 */
#define MOST_DB 60.0      /* of the pictures' range, from 0 */

/* ---- beside the pictures ---- */

/* The average takes every B-scan in, whatever it looks like, and each B-scan is searched for layers
 * all over, as it is no retina: that takes longest. */
static const struct live {
    const char *part, *what;
    double lines_hz; /* 0: BSCANS_A_SECOND */
    const char *key, *off, *on;
    const char *settings[4];
} lives[] = {
    {"average",
     "an average of 16",
     AVERAGE_HZ,
     "average.bscans",
     "1",
     "16",
     {"average.min_score=-1", "average.max_shift_px=32"}},
    {"cells",
     "cells, source = bscan",
     0,
     "cells.enabled",
     "no",
     "yes",
     {"cells.source=bscan", "scan.bscans=240"}},
    {"cells",
     "cells, source = enface",
     0,
     "cells.enabled",
     "no",
     "yes",
     {"cells.source=enface", "scan.bscans=240"}},
    {"flow",
     "flow and angiogram, R 4",
     FLOW_HZ,
     "flow.enabled",
     "no",
     "yes",
     {"analysis.run=enface,quality,flow,angiogram", "scan.repeats=4", "average.register=none"}},
    {"surfaces",
     "surfaces, every = 1, 100 B-scans/s",
     LAYERS_HZ,
     "surfaces.enabled",
     "no",
     "yes",
     {"surfaces.every=1"}},
    {"surfaces", "surfaces, every = 4", 0, "surfaces.enabled", "no", "yes", {"surfaces.every=4"}},
};

/* What octd says of an analysis; NULL: nothing. */
static const cJSON *find_analysis(const cJSON *status, const char *wanted)
{
    const cJSON *analysis;
    cJSON_ArrayForEach(analysis, cJSON_GetObjectItemCaseSensitive(status, "analysis"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(analysis, "name"));
        if (name && strcmp(name, wanted) == 0)
            return analysis;
    }
    return NULL;
}

static void add_beside(const struct live *live, const struct oct_bench_beside_found *found,
                       struct oct_bench_rows *rows)
{
    const struct oct_bench_beside_way *without = &found->ways[0], *with = &found->ways[1];
    const cJSON *said = find_analysis(found->status, live->part), *reason;
    double skipped = 0;
    cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(said, "skipped")) skipped +=
        cJSON_GetNumberValue(reason);
    struct oct_bench_row *row =
        bench_add(rows, live->part, "p99 without them", "us", with->p99_us, without->p99_us, 1.05);
    snprintf(row->what, sizeof(row->what), "bscan p99 beside %s", live->what);
    snprintf(row->note, sizeof(row->note),
             "p50 %.0f us, without %.0f; %.0f begun = %.0f done + %.0f skipped; %.0f dropped",
             with->p50_us, without->p50_us, oct_bench_number(said, NULL, "seen"),
             oct_bench_number(said, NULL, "done"), skipped, found->n_dropped);
    if (live->lines_hz == 0)
        return;
    row = bench_add(rows, live->part, "the goal, 2 B-scans", "B-scans", with->most_lag, 2, 1);
    row->less_is_better = true;
    snprintf(row->what, sizeof(row->what), "most that a result lags behind the pictures");
    snprintf(row->note, sizeof(row->note), "%llu results, %llu lag more",
             (unsigned long long)with->n_results, (unsigned long long)with->n_lagging);
}

static enum oct_err run_live(const struct oct_config *config, const struct live *live,
                             double seconds, struct oct_bench_rows *rows, struct oct_error *err)
{
    const struct oct_bench_setting settings[] = {{live->key, {live->off, live->on}}, {NULL}};
    const struct oct_bench_beside beside = {
        .rate_hz = live->lines_hz > 0 ? live->lines_hz : BSCANS_A_SECOND * config->scan.lines,
        .topic = live->part,
        .settings = settings};
    struct oct_bench_beside_found found;
    struct oct_config c = *config;
    char run[64];
    snprintf(run, sizeof(run), "analysis.run=enface,quality,%s", live->part);
    enum oct_err e = oct_config_set_assignment(&c, run, err);
    for (const char *const *setting = live->settings; *setting && !e; setting++)
        e = oct_config_set_assignment(&c, *setting, err);
    e = e ? e : oct_bench_beside(&c, &beside, seconds, &found, err);
    if (e)
        return e;
    add_beside(live, &found, rows);
    cJSON_Delete(found.status);
    return OCT_OK;
}

enum oct_err bench_live(const struct oct_config *config, const char *part, double seconds,
                        struct oct_bench_rows *rows, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]) && !e; i++)
        if (strcmp(lives[i].part, part) == 0)
            e = run_live(config, &lives[i], seconds, rows, err);
    return e;
}

/* ---- alone, on one core ---- */

/* B-scans of a retina that goes a little deeper from one to the next. */
struct eye {
    struct oct_image_form form;
    float *values; /* [OCT_BENCH_FRAMES] B-scans, dB */
    uint8_t *pixels;
};

static enum oct_err open_eye(struct eye *eye, const struct oct_config *config,
                             struct oct_error *err)
{
    const struct oct_spacing unknown = {NAN, NAN, NAN};
    struct oct_geometry g;
    *eye = (struct eye){.values = NULL};
    enum oct_err e = oct_config_geometry(config, &g, err);
    if (e)
        return e;
    g.sample_type = OCT_SAMPLE_U8;
    oct_image_form_of_bscan(&eye->form, &g, true, &unknown);
    const size_t n = (size_t)g.n_lines * g.depth;
    double *layers = calloc(g.n_lines, 2 * sizeof(*layers));
    eye->values = oct_aligned_alloc(64, OCT_BENCH_FRAMES * n, sizeof(*eye->values));
    eye->pixels = malloc(OCT_BENCH_FRAMES * n);
    if (!layers || !eye->values || !eye->pixels)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for B-scans");
    for (unsigned k = 0; k < OCT_BENCH_FRAMES && !e; k++) {
        const struct oct_layered_eye scene = {g.n_lines, g.depth, 2.5, k + 1};
        oct_layered_pit(&scene, 0.4 * k, layers, layers + g.n_lines);
        oct_layered_draw(&scene, layers, layers + g.n_lines, eye->values + k * n);
    }
    for (size_t i = 0; i < OCT_BENCH_FRAMES * n && !e; i++)
        eye->pixels[i] = (uint8_t)fmin(fmax((double)eye->values[i] / MOST_DB * 255, 0), 255);
    free(layers);
    return e;
}

static void close_eye(struct eye *eye)
{
    free(eye->values);
    free(eye->pixels);
}

static struct oct_image_frame bscan_of(const struct eye *eye, uint64_t number)
{
    const size_t at = number % OCT_BENCH_FRAMES * eye->form.dims[0] * eye->form.dims[1];
    return (struct oct_image_frame){.form = &eye->form,
                                    .pixels = eye->pixels + at,
                                    .values = eye->values + at,
                                    .hi = MOST_DB,
                                    .info.number = number};
}

struct tracing {
    const struct eye *eye;
    struct oct_layer_sequence *sequence;
    bool bounded; /* by the B-scan before */
};

static enum oct_err trace(void *context, struct oct_error *err)
{
    const struct tracing *t = context;
    (void)err;
    for (unsigned k = 0; k < OCT_BENCH_FRAMES; k++) {
        const struct oct_image_frame bscan = bscan_of(t->eye, k);
        if (!t->bounded)
            oct_layer_sequence_reset(t->sequence);
        oct_layer_sequence_run(t->sequence, &bscan);
    }
    return OCT_OK;
}

enum oct_err bench_layers_alone(const struct oct_config *config, double seconds,
                                struct oct_bench_rows *rows, struct oct_error *err)
{
    struct eye eye;
    enum oct_err e = open_eye(&eye, config, err);
    const struct oct_surfaces_settings *settings = oct_config_settings(config, "surfaces");
    const struct oct_layer_sequence_setup setup = {.input = &eye.form,
                                                   .spacing = {NAN, NAN, NAN},
                                                   .least_um = settings->least_um,
                                                   .most_um = settings->most_um,
                                                   .min_quality = settings->min_quality};
    struct tracing free_of = {.eye = &eye}, bounded = {.eye = &eye, .bounded = true};
    struct bench_turn turns[2] = {{.run = trace, .context = &free_of},
                                  {.run = trace, .context = &bounded}};
    e = e ? e : oct_layer_sequence_create(&free_of.sequence, &setup, err);
    bounded.sequence = free_of.sequence;
    e = e ? e : bench_turns(turns, 2, 1, seconds, err);
    if (!e) {
        struct oct_bench_row *row =
            bench_add(rows, "layers", "the goal, 4 ms", "ms",
                      turns[0].thread_s * 1e3 / OCT_BENCH_FRAMES, LAYERS_MS, 1);
        snprintf(row->what, sizeof(row->what), "seven borders of %u x %u on 1 core",
                 eye.form.dims[0], eye.form.dims[1]);
        snprintf(row->note, sizeof(row->note),
                 "%.0f B-scans/s; after one that is known %.2f ms, %.0f B-scans/s",
                 OCT_BENCH_FRAMES / turns[0].thread_s, turns[1].thread_s * 1e3 / OCT_BENCH_FRAMES,
                 OCT_BENCH_FRAMES / turns[1].thread_s);
    }
    oct_layer_sequence_destroy(free_of.sequence);
    close_eye(&eye);
    return e;
}

struct averaging {
    const struct eye *eye;
    struct oct_analysis *analysis;
    struct oct_image_frame result;
    uint64_t number;
};

static enum oct_err average(void *context, struct oct_error *err)
{
    struct averaging *a = context;
    enum oct_err e = OCT_OK;
    for (unsigned k = 0; k < OCT_BENCH_FRAMES && !e; k++) {
        const struct oct_image_frame bscan = bscan_of(a->eye, a->number++);
        e = oct_average_cpu.run.push(a->analysis, &bscan, err);
        e = e ? e : oct_average_cpu.run.take(a->analysis, &a->result, err);
    }
    return e;
}

static enum oct_err average_alone(const struct oct_config *config, double seconds,
                                  struct oct_bench_rows *rows, struct oct_error *err)
{
    const struct oct_average_settings settings = {.bscans = 16, .repeats = 1, .max_shift_px = 32};
    struct eye eye;
    struct oct_image_form form;
    struct averaging a = {.eye = &eye};
    struct bench_turn turn = {.run = average, .context = &a};
    enum oct_err e = open_eye(&eye, config, err);
    const struct oct_analysis_setup setup = {.input = &eye.form,
                                             .n_bscans = 1,
                                             .spacing = {NAN, NAN, NAN},
                                             .live = true,
                                             .settings = &settings};
    a.result.pixels = malloc((size_t)eye.form.dims[0] * eye.form.dims[1]);
    e = e ? e : oct_average_cpu.create(&a.analysis, &setup, &form, err);
    e = e ? e : average(&a, err);
    e = e ? e : bench_turns(&turn, 1, OCT_BENCH_REPEATS, seconds, err);
    if (!e) {
        struct oct_bench_row *row =
            bench_add(rows, "average", "what the camera makes", "B-scans/s",
                      OCT_BENCH_FRAMES / turn.wall_s, AVERAGE_HZ / eye.form.dims[0], 1);
        snprintf(row->what, sizeof(row->what), "alone, one core, %u x %u, registered",
                 eye.form.dims[0], eye.form.dims[1]);
        snprintf(row->note, sizeof(row->note), "%.2f ms a B-scan, window of 16", 1e3 / row->value);
    }
    oct_average_cpu.run.destroy(a.analysis);
    free(a.result.pixels);
    close_eye(&eye);
    return e;
}

enum oct_err bench_average(const struct oct_config *config, const struct oct_bench_options *options,
                           struct oct_bench_rows *rows, struct oct_error *err)
{
    const enum oct_err e = average_alone(config, options->seconds, rows, err);
    return e ? e : bench_live(config, "average", options->seconds, rows, err);
}
