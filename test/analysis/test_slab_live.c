/* The live slab (analysis/surface/live.h): means between layers whose places are known, one row a
 * B-scan, of volumes that grow, end early and come live. */
#include "analysis/surface/live.h"
#include "pipeline/base/clock.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/layers_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = LAYERS_LINES, D = LAYERS_DEPTH, V = LAYERS_BSCANS };

static struct oct_surfaces_settings usual(unsigned every)
{
    struct oct_trace_params params;
    oct_trace_params_default(&params);
    return (struct oct_surfaces_settings){.every = every,
                                          .least_um = params.least_um,
                                          .most_um = params.most_um,
                                          .min_quality = params.min_quality,
                                          .slab = {{OCT_LAYER_RPE, -60}, {OCT_LAYER_RPE, 0}}};
}

struct rig {
    struct layers_scene scene;
    struct oct_analysis *analysis;
    struct oct_image_form form;
    struct oct_suite_result result;
    float expected[V][M]; /* by the places that are known */
};

static void open_rig(struct rig *r, const struct oct_surfaces_settings *settings,
                     enum oct_sample_type type, bool live)
{
    struct oct_error err = {.text = ""};
    *r = (struct rig){.analysis = NULL};
    layers_scene_open(&r->scene, type, true);
    const struct oct_analysis_setup setup = {
        .input = &r->scene.form,
        .n_bscans = V,
        .spacing = {LAYERS_BSCAN_UM, LAYERS_LINE_UM, LAYERS_DEPTH_UM},
        .live = live,
        .settings = settings};
    if (oct_slab_analysis_cpu.create(&r->analysis, &setup, &r->form, &err))
        fail_msg("%s", err.text);
    oct_suite_result_open(&r->result, &r->form);
}

static void close_rig(struct rig *r)
{
    oct_slab_analysis_cpu.run.destroy(r->analysis);
    oct_suite_result_close(&r->result);
    layers_scene_close(&r->scene);
}

/* What an A-line's mean is, by the layers that are known. */
static float expect(const struct rig *r, const struct oct_slab *slab, uint32_t line)
{
    const struct layers_scene *s = &r->scene;
    const float at[OCT_N_LAYERS] = {[OCT_LAYER_ILM] = (float)layers_scene_ilm(s, line),
                                    [OCT_LAYER_RPE] = (float)layers_scene_rpe(s, line)};
    const float *const position[OCT_N_LAYERS] = {&at[0], &at[1]};
    const bool is_u8 = s->form.type == OCT_SAMPLE_U8;
    float pixels[D], mean;
    for (uint32_t d = 0; d < D; d++) {
        const size_t i = (size_t)line * D + d;
        pixels[d] = is_u8 ? (float)(LAYERS_LO +
                                    ((const uint8_t *)s->pixels)[i] * (LAYERS_HI - LAYERS_LO) / 255)
                          : ((const float *)s->pixels)[i];
    }
    oct_slab_project(slab, pixels, 1, D, LAYERS_DEPTH_UM, position, &mean);
    return mean;
}

static void push(struct rig *r, const struct oct_slab *slab)
{
    struct oct_error err = {.text = ""};
    layers_scene_next(&r->scene);
    if (oct_slab_analysis_cpu.run.push(r->analysis, &r->scene.bscan, &err))
        fail_msg("%s", err.text);
    for (uint32_t j = 0; j < M; j++)
        r->expected[r->scene.bscan.info.bscan][j] = expect(r, slab, j);
}

static bool take(struct rig *r)
{
    return oct_suite_take(&oct_slab_analysis_cpu, r->analysis, &r->scene.bscan.info, &r->result) ==
           OCT_OK;
}

static const float *row_of(const struct rig *r, uint32_t row)
{
    return (const float *)r->result.memory + (size_t)row * M;
}

/* Layers lie within a pixel or two of where they are: means differ by what that makes. */
static void assert_row(const struct rig *r, uint32_t row)
{
    double sum = 0;
    unsigned n = 0;
    for (uint32_t j = 0; j < M; j++) {
        const double off = fabs((double)row_of(r, row)[j] - (double)r->expected[row][j]);
        sum += isnan(off) ? 0 : off;
        n += isnan(off) ? 0 : 1;
    }
    if (n < M * 95 / 100 || sum / n > 0.5)
        fail_msg("row %u: %u known, off by %.3f dB in the mean", row, n, sum / n);
}

static void assert_no_row(const struct rig *r, uint32_t row)
{
    for (uint32_t j = 0; j < M; j++)
        assert_true(isnan(row_of(r, row)[j]));
}

/* ---- cases ---- */

static void a_row_is_the_mean_between_its_layers(void **state)
{
    for (unsigned every = 1; every <= 4; every += 3) {
        const struct oct_surfaces_settings settings = usual(every);
        for (unsigned type = 0; type < 2; type++) {
            struct rig r;
            open_rig(&r, &settings, type ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8, false);
            for (unsigned i = 0; i < V; i++) {
                assert_false(take(&r));
                push(&r, &settings.slab);
            }
            assert_true(take(&r) && r.result.frame.whole);
            assert_true(r.result.frame.lo < r.result.frame.hi);
            for (unsigned i = 0; i < V; i++)
                assert_row(&r, i);
            assert_false(take(&r));
            close_rig(&r);
        }
    }
}

static void what_did_not_come_or_has_no_layer_is_no_number(void **state)
{
    const struct oct_surfaces_settings settings = usual(4);
    struct rig r;
    open_rig(&r, &settings, OCT_SAMPLE_U8, false);
    for (unsigned i = 0; i < V; i++) {
        r.scene.is_blink = i == 8;
        r.scene.missing_first = 20;
        r.scene.n_missing = i == 1 ? 10 : 0;
        if (i == 4) {
            r.scene.n++;
            continue;
        }
        push(&r, &settings.slab);
    }
    assert_true(take(&r));
    for (unsigned i = 0; i < V; i++) {
        if (i == 4)
            assert_no_row(&r, i);
        else if (i == 1)
            for (uint32_t j = 20; j < 30; j++)
                assert_true(isnan(row_of(&r, i)[j]));
        else if (i < 8)
            assert_row(&r, i); /* 5 to 7 by the layers of 5 */
    }
    for (unsigned i = 8; i < V; i++) { /* by those of the blink, which has none */
        unsigned n = 0;
        for (uint32_t j = 0; j < M; j++)
            n += isnan(row_of(&r, i)[j]) ? 0 : 1;
        assert_in_range(n, 0, M / 20);
    }
    close_rig(&r);
}

static void a_volume_that_ends_early_is_given_as_far_as_it_came(void **state)
{
    const struct oct_surfaces_settings settings = usual(1);
    struct rig r;
    open_rig(&r, &settings, OCT_SAMPLE_U8, false);
    for (unsigned i = 0; i < 5; i++)
        push(&r, &settings.slab);
    r.scene.n = V; /* another one begins */
    const uint64_t newest = r.scene.bscan.info.number;
    push(&r, &settings.slab);
    assert_true(take(&r) && r.result.frame.whole);
    assert_int_equal(r.result.frame.info.number, newest);
    assert_int_equal(r.result.frame.info.volume, 0);
    assert_row(&r, 4);
    assert_no_row(&r, 5);
    assert_false(take(&r));
    oct_slab_analysis_cpu.run.end(r.analysis);
    assert_true(take(&r));
    assert_int_equal(r.result.frame.info.volume, 1);
    assert_row(&r, 0);
    assert_no_row(&r, 1);
    close_rig(&r);
}

/* The first at once, and no second one before a tenth of a second has passed. */
static void live_a_growing_volume_comes_ten_times_a_second_at_most(void **state)
{
    const struct oct_surfaces_settings settings = usual(1);
    struct rig r;
    unsigned n_growing = 0, n_whole = 0;
    open_rig(&r, &settings, OCT_SAMPLE_U8, true);
    const uint64_t begun_ns = oct_clock_ns();
    for (unsigned i = 0; i < 4 * V; i++) {
        push(&r, &settings.slab);
        while (take(&r)) {
            n_whole += r.result.frame.whole ? 1 : 0;
            n_growing += r.result.frame.whole ? 0 : 1;
        }
    }
    assert_int_equal(n_whole, 4);
    assert_in_range(n_growing, 1, 1 + (oct_clock_ns() - begun_ns) / 100000000);
    assert_true(n_growing < 4 * V - 4 || oct_clock_ns() - begun_ns > 1000000000);
    close_rig(&r);
}

static void another_slab_begins_the_volume_anew(void **state)
{
    struct oct_surfaces_settings settings = usual(1);
    struct oct_error err;
    struct rig r;
    open_rig(&r, &settings, OCT_SAMPLE_F32, false);
    for (unsigned i = 0; i < 3; i++)
        push(&r, &settings.slab);
    settings.every = 2; /* changes nothing of what was found */
    assert_int_equal(oct_slab_analysis_cpu.run.configure(r.analysis, &settings, &err), OCT_OK);
    for (unsigned i = 3; i < V; i++)
        push(&r, &settings.slab);
    assert_true(take(&r));
    assert_row(&r, 0);
    assert_row(&r, V - 1);
    for (unsigned i = 0; i < 3; i++)
        push(&r, &settings.slab);
    settings.slab = (struct oct_slab){
        .first = {OCT_LAYER_ILM, 10}, .last = {OCT_LAYER_ILM, 60}, .is_none = false};
    assert_int_equal(oct_slab_analysis_cpu.run.configure(r.analysis, &settings, &err), OCT_OK);
    for (unsigned i = 3; i < V; i++)
        push(&r, &settings.slab);
    assert_true(take(&r));
    assert_no_row(&r, 2);
    assert_row(&r, 3);
    settings.slab.is_none = true;
    assert_false(oct_slab_analysis_cpu.run.is_at_rest(r.analysis));
    assert_int_equal(oct_slab_analysis_cpu.run.configure(r.analysis, &settings, &err), OCT_OK);
    assert_true(oct_slab_analysis_cpu.run.is_at_rest(r.analysis));
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_the_mean_between_its_layers),
        cmocka_unit_test(what_did_not_come_or_has_no_layer_is_no_number),
        cmocka_unit_test(a_volume_that_ends_early_is_given_as_far_as_it_came),
        cmocka_unit_test(live_a_growing_volume_comes_ten_times_a_second_at_most),
        cmocka_unit_test(another_slab_begins_the_volume_anew),
    };
    struct oct_surfaces_settings settings = usual(2), wrong = usual(2);
    wrong.most_um = wrong.least_um / 2;
    const struct oct_analysis_suite suite = {.ops = &oct_slab_analysis_cpu,
                                             .settings = &settings,
                                             .wrong_settings = &wrong,
                                             .refuses_small = true};
    int failures = oct_analysis_suite_run(&suite);
    return failures + cmocka_run_group_tests(tests, NULL, NULL);
}
