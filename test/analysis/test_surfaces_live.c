/* Layers live (analysis/layers/layers.h): B-scans whose layers are known, as pictures of every
 * kind, with jumps, blinks and missing A-lines; the slab between them, one row a B-scan, of volumes
 * that grow, end early and come live. */
#include "analysis/layers/find/sequence.h"
#include "analysis/layers/layers.h"
#include "config/analysis.h"
#include "pipeline/base/clock.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/layers_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = LAYERS_LINES, D = LAYERS_DEPTH, V = LAYERS_BSCANS };

static struct oct_surfaces_settings usual(void)
{
    struct oct_trace_params params;
    oct_trace_params_default(&params);
    return (struct oct_surfaces_settings){.enabled = true,
                                          .every = 1,
                                          .least_um = params.least_um,
                                          .most_um = params.most_um,
                                          .min_quality = params.min_quality,
                                          .slab = {.is_none = true}};
}

static void assert_near(double a, double b, double most)
{
    if (!(fabs(a - b) <= most))
        fail_msg("%.9g, not %.9g", a, b);
}

struct rig {
    const struct oct_analysis_ops *ops;
    struct layers_scene scene;
    struct oct_analysis *analysis;
    struct oct_image_form form;
    struct oct_suite_result result;
    float expected[V][M]; /* of the slab, by the places that are known */
};

static void open_rig(struct rig *r, const struct oct_analysis_ops *ops,
                     const struct oct_surfaces_settings *settings, enum oct_sample_type type,
                     bool is_db, bool live)
{
    struct oct_error err = {.text = ""};
    *r = (struct rig){.ops = ops};
    layers_scene_open(&r->scene, type, is_db);
    const struct oct_analysis_setup setup = {
        .input = &r->scene.form,
        .n_bscans = V,
        .spacing = {LAYERS_BSCAN_UM, LAYERS_LINE_UM, LAYERS_DEPTH_UM},
        .live = live,
        .settings = settings};
    if (ops->create(&r->analysis, &setup, &r->form, &err))
        fail_msg("%s", err.text);
    oct_suite_result_open(&r->result, &r->form);
}

static void close_rig(struct rig *r)
{
    r->ops->run.destroy(r->analysis);
    oct_suite_result_close(&r->result);
    layers_scene_close(&r->scene);
}

/* The next B-scan comes. */
static void push(struct rig *r)
{
    struct oct_error err = {.text = ""};
    layers_scene_next(&r->scene);
    if (r->ops->run.push(r->analysis, &r->scene.bscan, &err))
        fail_msg("%s", err.text);
}

/* Whether there is a result. */
static bool take(struct rig *r)
{
    return oct_suite_take(r->ops, r->analysis, &r->scene.bscan.info, &r->result) == OCT_OK;
}

static const float *row_of(const struct rig *r, uint32_t row)
{
    return (const float *)r->result.memory + (size_t)row * M;
}

/* A-lines whose layers are both within most_px of where they are. */
static unsigned count_right(const struct rig *r, double most_px)
{
    unsigned n = 0;
    for (uint32_t j = 0; j < M; j++) {
        const double ilm = (double)row_of(r, OCT_LAYER_ILM)[j];
        const double rpe = (double)row_of(r, OCT_LAYER_RPE)[j];
        n += fabs(ilm - layers_scene_ilm(&r->scene, j)) <= most_px &&
             fabs(rpe - layers_scene_rpe(&r->scene, j)) <= most_px;
    }
    return n;
}

static unsigned count_known(const struct rig *r, uint32_t row)
{
    unsigned n = 0;
    for (uint32_t j = 0; j < M; j++)
        n += isnan(row_of(r, row)[j]) ? 0 : 1;
    return n;
}

static void assert_found(struct rig *r)
{
    assert_true(take(r));
    const unsigned n = count_right(r, 3);
    if (n < M * 95 / 100)
        fail_msg("B-scan %llu: %u of %d A-lines are right, %u and %u known",
                 (unsigned long long)r->scene.bscan.info.number, n, M,
                 count_known(r, OCT_LAYER_ILM), count_known(r, OCT_LAYER_RPE));
}

/* ---- surfaces ---- */

static void layers_are_where_they_are_in_pictures_of_every_kind(void **state)
{
    const struct oct_surfaces_settings settings = usual();
    for (unsigned kind = 0; kind < 4; kind++) {
        struct rig r;
        open_rig(&r, &oct_surfaces_analysis_cpu, &settings,
                 kind % 2 ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8, kind < 2, true);
        for (unsigned i = 0; i < V; i++) {
            push(&r);
            assert_found(&r);
            assert_int_equal(r.result.frame.info.number, i);
            const double *numbers = r.result.frame.numbers;
            double sum = 0;
            unsigned n = 0;
            for (uint32_t j = 0; j < M; j++) {
                const double px =
                    (double)row_of(&r, OCT_LAYER_RPE)[j] - (double)row_of(&r, OCT_LAYER_ILM)[j];
                sum += isnan(px) ? 0 : px;
                n += isnan(px) ? 0 : 1;
                assert_true(row_of(&r, (OCT_N_LAYERS + OCT_LAYER_ILM))[j] >= 0);
                assert_true(row_of(&r, (OCT_N_LAYERS + OCT_LAYER_RPE))[j] >= 0);
            }
            assert_near(numbers[OCT_SURFACES_FOUND], n / (double)M, 1e-12);
            assert_near(numbers[OCT_SURFACES_THICKNESS], sum / n * LAYERS_DEPTH_UM, 1e-6);
            assert_near(numbers[OCT_SURFACES_DEPTH_UM], LAYERS_DEPTH_UM, 0);
            assert_false(take(&r));
        }
        close_rig(&r);
    }
}

static void every_nth_bscan_is_traced_and_the_next_for_a_lost_one(void **state)
{
    struct oct_surfaces_settings settings = usual();
    struct oct_error err;
    struct rig r;
    settings.every = 4;
    open_rig(&r, &oct_surfaces_analysis_cpu, &settings, OCT_SAMPLE_U8, true, true);
    for (unsigned i = 0; i < 2 * V; i++) {
        if (i == 4 || i == 5) { /* do not come */
            r.scene.n++;
            continue;
        }
        push(&r);
        assert_int_equal(take(&r), i % 4 == 0 || i == 6);
    }
    settings.every = 3;
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    for (unsigned i = 0; i < V; i++) {
        push(&r);
        assert_int_equal(take(&r), i % 3 == 0);
    }
    settings.every = 3 * V; /* of each volume one */
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    for (unsigned i = 0; i < 2 * V; i++) {
        push(&r);
        assert_int_equal(take(&r), i % V == 0);
    }
    close_rig(&r);
}

static void lines_that_never_came_have_no_layers(void **state)
{
    const struct oct_surfaces_settings settings = usual();
    for (unsigned type = 0; type < 2; type++) {
        struct rig r;
        open_rig(&r, &oct_surfaces_analysis_cpu, &settings, type ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8,
                 true, true);
        r.scene.missing_first = 30;
        r.scene.n_missing = 40;
        for (unsigned i = 0; i < 3; i++) {
            push(&r);
            assert_true(take(&r));
            for (uint32_t j = 30; j < 70; j++) {
                assert_true(isnan(row_of(&r, OCT_LAYER_ILM)[j]));
                assert_true(isnan(row_of(&r, OCT_LAYER_RPE)[j]));
                assert_true(row_of(&r, (OCT_N_LAYERS + OCT_LAYER_ILM))[j] == 0);
            }
            assert_in_range(count_right(&r, 3), (M - 40) * 9 / 10, M - 40);
        }
        close_rig(&r);
    }
}

static void a_jump_and_a_blink_lose_no_more_than_their_bscan(void **state)
{
    static const double jumps_px[] = {0, 0, 40, 40, -30, 150, 150, 0};
    const struct oct_surfaces_settings settings = usual();
    struct rig r;
    open_rig(&r, &oct_surfaces_analysis_cpu, &settings, OCT_SAMPLE_U8, true, true);
    for (unsigned i = 0; i < sizeof(jumps_px) / sizeof(jumps_px[0]); i++) {
        r.scene.shift_px = jumps_px[i];
        push(&r);
        assert_found(&r);
    }
    for (unsigned i = 0; i < 3; i++) {
        r.scene.is_blink = i < 2;
        push(&r);
        if (!r.scene.is_blink) {
            assert_found(&r);
            continue;
        }
        assert_true(take(&r));
        assert_in_range(count_known(&r, OCT_LAYER_ILM), 0, M / 20);
        assert_true(r.result.frame.numbers[OCT_SURFACES_FOUND] <= 0.05);
    }
    close_rig(&r);
}

static void without_spacing_the_thickness_is_in_pixels(void **state)
{
    const struct oct_surfaces_settings settings = usual();
    struct oct_error err = {.text = ""};
    struct rig r;
    open_rig(&r, &oct_surfaces_analysis_cpu, &settings, OCT_SAMPLE_U8, true, true);
    r.ops->run.destroy(r.analysis);
    const struct oct_analysis_setup setup = {
        .input = &r.scene.form, .n_bscans = V, .spacing = {NAN, NAN, NAN}, .settings = &settings};
    assert_int_equal(r.ops->create(&r.analysis, &setup, &r.form, &err), OCT_OK);
    push(&r);
    assert_found(&r);
    assert_true(isnan(r.result.frame.numbers[OCT_SURFACES_DEPTH_UM]));
    assert_near(r.result.frame.numbers[OCT_SURFACES_THICKNESS], LAYERS_THICK_PX, 5);
    close_rig(&r);
}

/* ---- what is known of the B-scan before (sequence.h) ---- */

struct sequence_rig {
    struct layers_scene scene;
    struct oct_layer_sequence *sequence;
};

static void open_sequence(struct sequence_rig *r, double bscan_um)
{
    const struct oct_surfaces_settings s = usual();
    struct oct_error err = {.text = ""};
    layers_scene_open(&r->scene, OCT_SAMPLE_U8, true);
    const struct oct_layer_sequence_setup setup = {
        .input = &r->scene.form,
        .spacing = {bscan_um, LAYERS_LINE_UM, LAYERS_DEPTH_UM},
        .least_um = s.least_um,
        .most_um = s.most_um,
        .min_quality = s.min_quality};
    if (oct_layer_sequence_create(&r->sequence, &setup, &err))
        fail_msg("%s", err.text);
}

static void close_sequence(struct sequence_rig *r)
{
    oct_layer_sequence_destroy(r->sequence);
    layers_scene_close(&r->scene);
}

static const struct oct_sequence_layers *run_next(struct sequence_rig *r)
{
    layers_scene_next(&r->scene);
    return oct_layer_sequence_run(r->sequence, &r->scene.bscan);
}

static void the_bscan_before_bounds_the_next(void **state)
{
    struct sequence_rig r;
    open_sequence(&r, LAYERS_BSCAN_UM);
    const struct oct_sequence_layers *l = run_next(&r);
    assert_true(!l->bounded && l->n_traces == 1 && l->n_found > M * 9 / 10);
    for (unsigned i = 1; i < 6; i++) {
        r.scene.shift_px = 8.0 * i; /* the eye moves */
        l = run_next(&r);
        assert_true(l->bounded && l->n_traces == 1 && l->n_found > M * 9 / 10);
    }
    r.scene.shift_px = 170; /* farther than a course is moved */
    l = run_next(&r);
    assert_true(!l->bounded && l->n_traces == 1 && l->n_found > M * 9 / 10);
    r.scene.is_blink = true;
    assert_true(run_next(&r)->n_found < M / 20);
    r.scene.is_blink = false;
    l = run_next(&r);
    assert_true(l->bounded && l->n_found > M * 9 / 10); /* by the one before the blink */
    oct_layer_sequence_reset(r.sequence);
    assert_false(run_next(&r)->bounded);
    close_sequence(&r);
}

/* A raster comes back to its first B-scan, which lies elsewhere than its last. */
static void a_new_volume_begins_where_the_one_before_began(void **state)
{
    struct sequence_rig r;
    open_sequence(&r, LAYERS_BSCAN_UM);
    for (unsigned i = 0; i < 2 * V; i++) {
        r.scene.shift_px = i % V == 0 ? 0 : 160;
        const struct oct_sequence_layers *l = run_next(&r);
        assert_true(l->n_found > M * 9 / 10);
        assert_int_equal(l->bounded, i % V != 1 && i > 0);
    }
    close_sequence(&r);
    open_sequence(&r, 50);
    run_next(&r);
    r.scene.n = V - 1; /* farther away than OCT_SEQUENCE_APART_UM */
    assert_false(run_next(&r)->bounded);
    r.scene.n = 2 * V + (uint64_t)(OCT_SEQUENCE_APART_UM / 50);
    assert_true(run_next(&r)->bounded);
    close_sequence(&r);
}

/* The band that fades keeps the course, as the one that comes up lies beyond the slack: the check
 * finds it. */
static void a_course_that_went_wrong_ends(void **state)
{
    struct sequence_rig r;
    unsigned n_faded = 0, n_new = 0;
    open_sequence(&r, LAYERS_BSCAN_UM);
    r.scene.deeper_px = 50;
    for (unsigned i = 0; i < 2 * OCT_SEQUENCE_CHECK; i++) {
        r.scene.rpe = fmax(0, 1 - 0.1 * i);
        r.scene.deeper = fmin(1, 0.1 * i);
        const struct oct_sequence_layers *l = run_next(&r);
        const double off =
            (double)l->position[OCT_LAYER_RPE][M / 2] - layers_scene_rpe(&r.scene, M / 2);
        n_faded += i < 4 && fabs(off) < 5;
        n_new = fabs(off - r.scene.deeper_px) < 5 ? n_new + 1 : 0;
        /* Where both are as bright, none of them is an RPE. */
        assert_true(l->n_found > M / 2 || (i > 3 && i < 20));
    }
    if (n_faded == 0 || n_new < OCT_SEQUENCE_CHECK / 2)
        fail_msg("%u B-scans by the band that faded, the last %u by the other", n_faded, n_new);
    close_sequence(&r);
}

/* ---- settings ---- */

static void settings_that_cannot_be_are_named(void **state)
{
    const struct oct_surfaces_settings good = usual();
    struct oct_image_form form = {.dims = {M, D}};
    struct oct_error err = {.text = ""};
    struct oct_surfaces_settings s = good;
    assert_int_equal(oct_surfaces_live_check(&s, &form, &err), OCT_OK);
    s.every = 0;
    assert_int_equal(oct_surfaces_live_check(&s, &form, &err), OCT_E_CONFIG);
    s = good;
    s.most_um = s.least_um;
    assert_int_equal(oct_surfaces_live_check(&s, &form, &err), OCT_E_CONFIG);
    s = good;
    s.min_quality = NAN;
    assert_int_equal(oct_surfaces_live_check(&s, &form, &err), OCT_E_CONFIG);
    s = good;
    form.dims[1] = 15;
    assert_int_equal(oct_surfaces_live_check(&s, &form, &err), OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "too small"));
    s.enabled = false; /* at rest nothing is too small */
    assert_int_equal(oct_surfaces_live_check(&s, &form, &err), OCT_OK);
}

static void the_configuration_has_the_defaults_of_a_trace(void **state)
{
    struct oct_config config;
    struct oct_analysis_settings settings;
    const struct oct_surfaces_settings expected = usual(), *s = (const void *)&settings;
    oct_config_init(&config);
    assert_true(oct_config_analysis(&config, "surfaces", &settings));
    assert_true(!s->enabled && s->slab.is_none && s->every == 1);
    assert_near(s->least_um, expected.least_um, 0);
    assert_near(s->most_um, expected.most_um, 0);
    assert_near(s->min_quality, expected.min_quality, 0);
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_config_set(&config, "surfaces.slab", "ilm+10:rpe-5", "test", &err),
                     OCT_OK);
    assert_true(oct_config_analysis(&config, "slab", &settings));
    assert_true(!s->slab.is_none && s->slab.first.layer == OCT_LAYER_ILM);
    assert_near(s->slab.last.offset_um, -5, 0);
}

static void it_rests_until_it_is_enabled(void **state)
{
    struct oct_surfaces_settings settings = usual();
    struct oct_error err;
    struct rig r;
    settings.enabled = false;
    open_rig(&r, &oct_surfaces_analysis_cpu, &settings, OCT_SAMPLE_U8, true, true);
    assert_true(r.ops->run.is_at_rest(r.analysis));
    push(&r);
    assert_false(take(&r));
    settings.enabled = true;
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    assert_false(r.ops->run.is_at_rest(r.analysis));
    push(&r);
    assert_found(&r);
    settings.enabled = false;
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    assert_true(r.ops->run.is_at_rest(r.analysis));
    close_rig(&r);
}

/* ---- slab ---- */

static struct oct_surfaces_settings usual_slab(unsigned every)
{
    struct oct_surfaces_settings settings = usual();
    settings.enabled = false;
    settings.every = every;
    settings.slab = (struct oct_slab){{OCT_LAYER_RPE, -60}, {OCT_LAYER_RPE, 0}, false};
    return settings;
}

/* What an A-line's mean is, by the layers that are known. */
static float expect(const struct rig *r, const struct oct_slab *slab, uint32_t line)
{
    const struct layers_scene *s = &r->scene;
    const float at[OCT_N_LAYERS] = {[OCT_LAYER_ILM] = (float)layers_scene_ilm(s, line),
                                    [OCT_LAYER_RPE] = (float)layers_scene_rpe(s, line)};
    const float *const position[OCT_N_LAYERS] = {
        [OCT_LAYER_ILM] = &at[OCT_LAYER_ILM], [OCT_LAYER_RPE] = &at[OCT_LAYER_RPE]};
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

static void push_slab(struct rig *r, const struct oct_slab *slab)
{
    push(r);
    for (uint32_t j = 0; j < M; j++)
        r->expected[r->scene.bscan.info.bscan][j] = expect(r, slab, j);
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
    if (n < M * 95 / 100 || sum / n > 0.8)
        fail_msg("row %u: %u known, off by %.3f dB in the mean", row, n, sum / n);
}

static void assert_no_row(const struct rig *r, uint32_t row)
{
    for (uint32_t j = 0; j < M; j++)
        assert_true(isnan(row_of(r, row)[j]));
}

static void a_row_is_the_mean_between_its_layers(void **state)
{
    for (unsigned every = 1; every <= 4; every += 3) {
        const struct oct_surfaces_settings settings = usual_slab(every);
        for (unsigned type = 0; type < 2; type++) {
            struct rig r;
            open_rig(&r, &oct_slab_analysis_cpu, &settings, type ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8,
                     true, false);
            for (unsigned i = 0; i < V; i++) {
                assert_false(take(&r));
                push_slab(&r, &settings.slab);
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
    const struct oct_surfaces_settings settings = usual_slab(4);
    struct rig r;
    open_rig(&r, &oct_slab_analysis_cpu, &settings, OCT_SAMPLE_U8, true, false);
    for (unsigned i = 0; i < V; i++) {
        r.scene.is_blink = i == 8;
        r.scene.missing_first = 20;
        r.scene.n_missing = i == 1 ? 10 : 0;
        if (i == 4) {
            r.scene.n++;
            continue;
        }
        push_slab(&r, &settings.slab);
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
    const struct oct_surfaces_settings settings = usual_slab(1);
    struct rig r;
    open_rig(&r, &oct_slab_analysis_cpu, &settings, OCT_SAMPLE_U8, true, false);
    for (unsigned i = 0; i < 5; i++)
        push_slab(&r, &settings.slab);
    r.scene.n = V; /* another one begins */
    const uint64_t newest = r.scene.bscan.info.number;
    push_slab(&r, &settings.slab);
    assert_true(take(&r) && r.result.frame.whole);
    assert_int_equal(r.result.frame.info.number, newest);
    assert_int_equal(r.result.frame.info.volume, 0);
    assert_row(&r, 4);
    assert_no_row(&r, 5);
    assert_false(take(&r));
    r.ops->run.end(r.analysis);
    assert_true(take(&r));
    assert_int_equal(r.result.frame.info.volume, 1);
    assert_row(&r, 0);
    assert_no_row(&r, 1);
    close_rig(&r);
}

/* The first at once, and no second one before a tenth of a second has passed. */
static void live_a_growing_volume_comes_ten_times_a_second_at_most(void **state)
{
    const struct oct_surfaces_settings settings = usual_slab(1);
    struct rig r;
    unsigned n_growing = 0, n_whole = 0;
    open_rig(&r, &oct_slab_analysis_cpu, &settings, OCT_SAMPLE_U8, true, true);
    const uint64_t begun_ns = oct_clock_ns();
    for (unsigned i = 0; i < 4 * V; i++) {
        push_slab(&r, &settings.slab);
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
    struct oct_surfaces_settings settings = usual_slab(1);
    struct oct_error err;
    struct rig r;
    open_rig(&r, &oct_slab_analysis_cpu, &settings, OCT_SAMPLE_F32, true, false);
    for (unsigned i = 0; i < 3; i++)
        push_slab(&r, &settings.slab);
    settings.every = 2; /* changes nothing of what was found */
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    for (unsigned i = 3; i < V; i++)
        push_slab(&r, &settings.slab);
    assert_true(take(&r));
    assert_row(&r, 0);
    assert_row(&r, V - 1);
    for (unsigned i = 0; i < 3; i++)
        push_slab(&r, &settings.slab);
    settings.slab = (struct oct_slab){
        .first = {OCT_LAYER_ILM, 10}, .last = {OCT_LAYER_ILM, 60}, .is_none = false};
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    for (unsigned i = 3; i < V; i++)
        push_slab(&r, &settings.slab);
    assert_true(take(&r));
    assert_no_row(&r, 2);
    assert_row(&r, 3);
    settings.slab.is_none = true;
    assert_false(r.ops->run.is_at_rest(r.analysis));
    assert_int_equal(r.ops->run.configure(r.analysis, &settings, &err), OCT_OK);
    assert_true(r.ops->run.is_at_rest(r.analysis));
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_where_they_are_in_pictures_of_every_kind),
        cmocka_unit_test(every_nth_bscan_is_traced_and_the_next_for_a_lost_one),
        cmocka_unit_test(lines_that_never_came_have_no_layers),
        cmocka_unit_test(a_jump_and_a_blink_lose_no_more_than_their_bscan),
        cmocka_unit_test(without_spacing_the_thickness_is_in_pixels),
        cmocka_unit_test(the_bscan_before_bounds_the_next),
        cmocka_unit_test(a_new_volume_begins_where_the_one_before_began),
        cmocka_unit_test(a_course_that_went_wrong_ends),
        cmocka_unit_test(settings_that_cannot_be_are_named),
        cmocka_unit_test(the_configuration_has_the_defaults_of_a_trace),
        cmocka_unit_test(it_rests_until_it_is_enabled),
        cmocka_unit_test(a_row_is_the_mean_between_its_layers),
        cmocka_unit_test(what_did_not_come_or_has_no_layer_is_no_number),
        cmocka_unit_test(a_volume_that_ends_early_is_given_as_far_as_it_came),
        cmocka_unit_test(live_a_growing_volume_comes_ten_times_a_second_at_most),
        cmocka_unit_test(another_slab_begins_the_volume_anew),
    };
    struct oct_surfaces_settings settings = usual(), wrong = usual();
    struct oct_surfaces_settings slab = usual_slab(2), wrong_slab = usual_slab(2);
    wrong.every = 0;
    wrong_slab.most_um = wrong_slab.least_um / 2;
    const struct oct_analysis_suite suite = {.ops = &oct_surfaces_analysis_cpu,
                                             .settings = &settings,
                                             .wrong_settings = &wrong,
                                             .refuses_small = true};
    const struct oct_analysis_suite slab_suite = {.ops = &oct_slab_analysis_cpu,
                                                  .settings = &slab,
                                                  .wrong_settings = &wrong_slab,
                                                  .refuses_small = true};
    int failures = oct_analysis_suite_run(&suite) + oct_analysis_suite_run(&slab_suite);
    return failures + cmocka_run_group_tests(tests, NULL, NULL);
}
