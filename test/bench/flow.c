/* Blood flow: what it and velocities leave of the reconstruction's rate, and what they do to the
 * pictures of a real octd. By CPU time of all threads, which neighbours disturb least. */
#include "analysis/flow/flow.h"
#include "config/analysis.h"
#include "config/apply.h"
#include "pipeline/base/aligned.h"
#include "test/bench/bench.h"
#include "tools/bench/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GOAL_FLOW 0.65
#define GOAL_BOTH 0.55
#define REPEATS 4u
#define FRAME_NS UINT64_C(2400000)

struct flowing {
    struct oct_bench_runner runner;
    struct oct_image_form input, forms[2];
    struct oct_analysis *analysis[2]; /* flow, velocity */
    struct oct_image_frame results[2];
    unsigned n; /* of them at work: 0 to 2 */
    uint64_t number;
};

static const struct oct_analysis_ops *const all_ops[2] = {&oct_flow_cpu, &oct_velocity_cpu};

static enum oct_err flow_turn(void *context, struct oct_error *err)
{
    struct flowing *f = context;
    enum oct_err e = OCT_OK;
    oct_bench_runner_seconds(&f->runner, OCT_BENCH_FRAMES);
    for (unsigned k = 0; k < OCT_BENCH_FRAMES && f->n > 0 && !e; k++, f->number++) {
        struct oct_image_frame bscan = f->runner.out[k];
        bscan.form = &f->input;
        bscan.info = (struct oct_bscan_info){.number = f->number,
                                             .bscan = (uint32_t)(f->number % OCT_BENCH_FRAMES),
                                             .volume = (uint32_t)(f->number / OCT_BENCH_FRAMES),
                                             .time_ns = f->number * FRAME_NS};
        for (unsigned i = 0; i < f->n && !e; i++) {
            const enum oct_err pushed = all_ops[i]->run.push(f->analysis[i], &bscan, err);
            e = pushed ? pushed : all_ops[i]->run.take(f->analysis[i], &f->results[i], err);
            e = e == OCT_E_AGAIN ? OCT_OK : e;
        }
    }
    return e;
}

static enum oct_err open_analyses(struct flowing *f, const struct oct_config *config,
                                  const struct oct_plan *plan, struct oct_error *err)
{
    const struct oct_spacing unknown = {NAN, NAN, NAN};
    struct oct_geometry g = plan->geometry;
    enum oct_err e = OCT_OK;
    g.sample_type = OCT_SAMPLE_F32;
    oct_image_form_of_bscan(&f->input, &g, true, &unknown);
    for (unsigned i = 0; i < f->n && !e; i++) {
        const struct oct_analysis_setup setup = {
            .input = &f->input,
            .n_bscans = OCT_BENCH_FRAMES,
            .spacing = unknown,
            .scan = {.repeats = REPEATS, .interleave = 1, .line_repeats = 1},
            .plan = plan,
            .line_rate_hz = 1e5,
            .settings = oct_config_settings(config, all_ops[i]->name)};
        e = all_ops[i]->create(&f->analysis[i], &setup, &f->forms[i], err);
        f->results[i].pixels = e ? NULL : malloc(oct_image_form_bytes(&f->forms[i]));
        if (!e && !f->results[i].pixels)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for results");
    }
    for (unsigned k = 0; k < f->runner.n_out && f->n > 0 && !e; k++) {
        f->runner.out[k].complex_values =
            oct_aligned_calloc(64, 2 * (size_t)g.n_lines * g.depth, sizeof(float));
        if (!f->runner.out[k].complex_values)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for complex values");
    }
    return e;
}

static void close_flowing(struct flowing *f)
{
    for (unsigned k = 0; k < f->runner.n_out && f->n > 0; k++)
        free(f->runner.out[k].complex_values);
    for (unsigned i = 0; i < f->n; i++) {
        all_ops[i]->run.destroy(f->analysis[i]);
        free(f->results[i].pixels);
    }
    oct_bench_runner_close(&f->runner);
}

static enum oct_err open_flowing(struct flowing *f, const struct oct_config *config,
                                 struct oct_bench_scene *scene, struct oct_error *err)
{
    const struct oct_engine_options options = {.n_threads = 1, .has_complex = f->n > 0};
    char why[128];
    double error;
    enum oct_err e =
        oct_bench_runner_open(&f->runner, scene, "cpu", &options, why, sizeof(why), err);
    if (e)
        return e;
    e = oct_bench_runner_verify(&f->runner, &error, err);
    e = e ? e : open_analyses(f, config, scene->plan, err);
    if (e)
        close_flowing(f);
    return e;
}

static void add_rate(struct oct_bench_rows *rows, const struct bench_turn turns[], unsigned i,
                     const struct oct_geometry *g)
{
    struct oct_bench_row *row =
        bench_add(rows, "flow", "without", "B-scans/s", OCT_BENCH_FRAMES / turns[i].cpu_s,
                  OCT_BENCH_FRAMES / turns[0].cpu_s, i == 1 ? GOAL_FLOW : GOAL_BOTH);
    snprintf(row->what, sizeof(row->what), "reconstruction with flow%s, R %u, %u x %u, a core",
             i == 1 ? "" : " and velocity", REPEATS, g->n_lines, g->depth);
    snprintf(row->note, sizeof(row->note), "%.2f ms a B-scan more, CPU time",
             (turns[i].cpu_s - turns[0].cpu_s) * 1e3 / OCT_BENCH_FRAMES);
}

enum oct_err bench_flow(const struct oct_config *config, const struct oct_bench_options *options,
                        struct oct_bench_rows *rows, struct oct_error *err)
{
    struct oct_bench_scene scene;
    struct oct_config on = *config;
    struct flowing ways[3] = {{.n = 0}, {.n = 1}, {.n = 2}};
    struct bench_turn turns[3];
    unsigned n_open = 0;
    enum oct_err e = oct_config_set_assignment(&on, "flow.enabled=yes", err);
    e = e ? e : oct_config_set_assignment(&on, "velocity.enabled=yes", err);
    e = e ? e : oct_bench_scene_init(&scene, config, 0, err);
    if (e)
        return e;
    for (; n_open < 3 && !e; n_open += !e) {
        turns[n_open] = (struct bench_turn){.run = flow_turn, .context = &ways[n_open]};
        e = open_flowing(&ways[n_open], &on, &scene, err);
    }
    e = e ? e : bench_turns(turns, 3, OCT_BENCH_REPEATS, options->seconds, err);
    for (unsigned i = 1; i < 3 && !e; i++)
        add_rate(rows, turns, i, &scene.plan->geometry);
    while (n_open > 0)
        close_flowing(&ways[--n_open]);
    oct_bench_scene_finish(&scene);
    return e ? e : bench_live(config, "flow", options->seconds, rows, err);
}
