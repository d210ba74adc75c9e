/* En face: what a value is, when an image is given, and what is left of volumes that end early. */
#include "analysis/enface/enface.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

static const struct oct_enface_settings mean = {OCT_PROJECTION_MEAN, 0.28, 0.36};

struct rig {
    struct oct_suite_recipe recipe;
    struct oct_suite_bscan bscan;
    struct oct_suite_result result;
    struct oct_analysis *analysis;
};

static void open_rig(struct rig *r, struct oct_suite_recipe recipe,
                     const struct oct_enface_settings *settings)
{
    struct oct_image_form form;
    *r = (struct rig){.recipe = recipe};
    oct_suite_bscan_open(&r->bscan, &recipe, OCT_STAGE_PICTURES);
    struct oct_analysis_setup setup = oct_suite_setup(&r->bscan, &recipe, settings);
    must(oct_enface_cpu.create(&r->analysis, &setup, &form, &failure));
    oct_suite_result_open(&r->result, &form);
}

static void close_rig(struct rig *r)
{
    oct_enface_cpu.run.destroy(r->analysis);
    oct_suite_result_close(&r->result);
    oct_suite_bscan_close(&r->bscan);
}

static const struct oct_suite_recipe small = {
    .n_lines = 120, .depth = 100, .n_bscans = 20, .type = OCT_SAMPLE_U8};

/* A bright layer, 4 of 100 depths thick, on grey 10; shown from 10 to 70 dB. */
static void fill_layer(struct rig *r, unsigned first)
{
    uint8_t *pixels = r->bscan.memory;
    memset(pixels, 10, (size_t)r->recipe.n_lines * r->recipe.depth);
    for (unsigned j = 0; j < r->recipe.n_lines; j++)
        memset(pixels + (size_t)j * r->recipe.depth + first, 255, 4);
    r->bscan.frame.lo = 10;
    r->bscan.frame.hi = 70;
}

static enum oct_err push(struct rig *r, uint64_t number)
{
    struct oct_error err = {.text = ""};
    oct_suite_bscan_number(&r->bscan, number, r->recipe.n_bscans);
    return oct_enface_cpu.run.push(r->analysis, &r->bscan.frame, &err);
}

static enum oct_err take(struct rig *r)
{
    return oct_suite_take(&oct_enface_cpu, r->analysis, &r->bscan.frame.info, &r->result);
}

static double value(const struct rig *r, unsigned row, unsigned line)
{
    return (double)((const float *)r->result.memory)[(size_t)row * r->recipe.n_lines + line];
}

static void use(struct rig *r, enum oct_projection projection, double first, double last)
{
    const struct oct_enface_settings s = {projection, first, last};
    must(oct_enface_cpu.run.configure(r->analysis, &s, &failure));
}

TEST(a_value_is_mean_maximum_or_slab)
{
    struct rig r;
    struct oct_suite_recipe recipe = small;
    double step = 60 / 255.0;
    recipe.live = true;
    open_rig(&r, recipe, &mean);
    fill_layer(&r, 30);
    assert_int_equal(push(&r, 7), OCT_OK);
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.bscan, 7);
    assert_false(r.result.frame.whole);
    double expected = 10 + (4 * 255 + 96 * 10) / 100.0 * step;
    assert_true(fabs(value(&r, 7, 60) - expected) < 1e-3);
    assert_true(isnan(value(&r, 8, 60)) != 0);
    assert_true(r.result.frame.lo <= expected + 1e-3 && r.result.frame.hi > r.result.frame.lo);
    use(&r, OCT_PROJECTION_MAX, 0.28, 0.36);
    sleep_us(110000);
    assert_int_equal(take(&r), OCT_OK); /* without another B-scan */
    assert_true(fabs(value(&r, 7, 60) - 70) < 1e-3);
    use(&r, OCT_PROJECTION_SLAB, 0.28, 0.36);
    sleep_us(110000);
    assert_int_equal(take(&r), OCT_OK);
    assert_true(fabs(value(&r, 7, 60) - (10 + (4 * 255 + 4 * 10) / 8.0 * step)) < 1e-3);
    use(&r, OCT_PROJECTION_SLAB, 0, 0.1); /* of B-scans that come from now on */
    push(&r, 8);
    sleep_us(110000);
    assert_int_equal(take(&r), OCT_OK);
    assert_true(fabs(value(&r, 8, 60) - 10 - 10 * step) < 1e-3);
    close_rig(&r);
}

TEST(a_growing_volume_is_given_ten_times_a_second)
{
    struct rig r;
    struct oct_suite_recipe recipe = small;
    recipe.live = true;
    open_rig(&r, recipe, &mean);
    fill_layer(&r, 30);
    push(&r, 0);
    assert_int_equal(take(&r), OCT_OK);
    push(&r, 1);
    assert_int_equal(take(&r), OCT_E_AGAIN); /* too soon */
    sleep_us(110000);
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.bscan, 1);
    sleep_us(110000);
    assert_int_equal(take(&r), OCT_E_AGAIN); /* nothing new */
    push(&r, 19);
    assert_int_equal(take(&r), OCT_OK); /* whole: at once */
    assert_true(r.result.frame.whole);
    assert_true(isnan(value(&r, 10, 0)) != 0);
    assert_true(isnan(value(&r, 19, 0)) == 0);
    close_rig(&r);
}

TEST(offline_there_is_one_image_a_volume)
{
    struct rig r;
    open_rig(&r, small, &mean);
    for (uint64_t i = 0; i < 40; i++) {
        fill_layer(&r, 10 + (unsigned)i);
        push(&r, i);
        assert_int_equal(take(&r), i % 20 == 19 ? OCT_OK : OCT_E_AGAIN);
    }
    assert_int_equal(r.result.frame.info.volume, 1);
    close_rig(&r);
}

TEST(a_volume_that_ended_early_is_given_before_the_next)
{
    struct rig r;
    open_rig(&r, small, &mean);
    fill_layer(&r, 30);
    push(&r, 17);
    push(&r, 25); /* the last two never came */
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.volume, 0);
    assert_int_equal(r.result.frame.info.number, 17);
    assert_true(r.result.frame.whole);
    assert_true(isnan(value(&r, 17, 0)) == 0);
    assert_true(isnan(value(&r, 5, 0)) != 0); /* the next volume's row is not in it */
    assert_int_equal(take(&r), OCT_E_AGAIN);
    oct_enface_cpu.run.end(r.analysis);
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.number, 25);
    assert_true(isnan(value(&r, 17, 0)) != 0);
    assert_true(isnan(value(&r, 5, 0)) == 0);
    close_rig(&r);
}

/* Live, its last image may hold all that came and still say that the volume grows. */
TEST(the_last_image_of_every_volume_is_whole)
{
    struct rig r;
    struct oct_suite_recipe recipe = small;
    recipe.live = true;
    open_rig(&r, recipe, &mean);
    fill_layer(&r, 30);
    push(&r, 17);
    assert_int_equal(take(&r), OCT_OK);
    assert_false(r.result.frame.whole);
    push(&r, 25); /* the last two never came */
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.number, 17);
    assert_true(r.result.frame.whole);
    assert_int_equal(take(&r), OCT_E_AGAIN);
    sleep_us(110000);
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.number, 25);
    assert_false(r.result.frame.whole);
    oct_enface_cpu.run.end(r.analysis);
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.number, 25);
    assert_true(r.result.frame.whole);
    oct_enface_cpu.run.end(r.analysis);
    assert_int_equal(take(&r), OCT_E_AGAIN); /* it was given */
    close_rig(&r);
}

TEST(a_volume_that_was_given_whole_is_not_given_again)
{
    struct rig r;
    struct oct_suite_recipe recipe = small;
    recipe.live = true;
    open_rig(&r, recipe, &mean);
    fill_layer(&r, 30);
    push(&r, 19);
    assert_int_equal(take(&r), OCT_OK);
    assert_true(r.result.frame.whole);
    push(&r, 39);
    assert_int_equal(take(&r), OCT_OK);
    assert_int_equal(r.result.frame.info.number, 39);
    assert_int_equal(take(&r), OCT_E_AGAIN);
    close_rig(&r);
}

TEST(a_bscan_beyond_its_volume_is_refused)
{
    struct rig r;
    struct oct_error err;
    open_rig(&r, small, &mean);
    r.bscan.frame.info.bscan = 20;
    assert_int_equal(oct_enface_cpu.run.push(r.analysis, &r.bscan.frame, &err), OCT_E_ARG);
    r.bscan.frame.info.bscan = UINT32_MAX;
    assert_int_equal(oct_enface_cpu.run.push(r.analysis, &r.bscan.frame, &err), OCT_E_ARG);
    close_rig(&r);
}

TEST(a_huge_volume_is_thinned_out)
{
    struct rig r;
    const struct oct_suite_recipe recipe = {
        .n_lines = 500, .depth = 2, .n_bscans = 100000, .type = OCT_SAMPLE_U8};
    open_rig(&r, recipe, &mean);
    const struct oct_image_form *form = &r.result.form;
    assert_true((uint64_t)form->dims[0] * form->dims[1] <= OCT_ENFACE_MOST_VALUES);
    assert_int_equal(form->dims[0], (100000 + 11) / 12); /* 12 B-scans a row */
    assert_true(form->spacing_um[0] == 7 * 12);
    memset(r.bscan.memory, 100, 1000);
    push(&r, 99999);
    assert_int_equal(take(&r), OCT_OK);
    assert_true(isnan(value(&r, form->dims[0] - 1, 499)) == 0);
    close_rig(&r);
}

/* Rows are whole: the bound holds although the last one has fewer B-scans. */
TEST(a_thinned_volume_is_within_its_bound)
{
    struct rig r;
    const struct oct_suite_recipe recipe = {
        .n_lines = 60000, .depth = 1, .n_bscans = 139, .type = OCT_SAMPLE_U8};
    open_rig(&r, recipe, &mean);
    const struct oct_image_form *form = &r.result.form;
    assert_true((uint64_t)form->dims[0] * form->dims[1] <= OCT_ENFACE_MOST_VALUES);
    memset(r.bscan.memory, 100, 60000);
    push(&r, 138);
    assert_int_equal(take(&r), OCT_OK);
    assert_true(isnan(value(&r, form->dims[0] - 1, 59999)) == 0);
    close_rig(&r);
}

TEST(it_says_what_it_is)
{
    struct rig r;
    open_rig(&r, small, &mean);
    const struct oct_image_form *form = &r.result.form;
    assert_int_equal(form->quantity, OCT_QUANTITY_INTENSITY_DB);
    assert_int_equal(form->type, OCT_SAMPLE_F32);
    assert_int_equal(form->dims[0], 20);
    assert_int_equal(form->dims[1], 120);
    assert_true(form->spacing_um[0] == 7 && form->spacing_um[1] == 5);
    assert_true(form->of_volume);
    close_rig(&r);
}

int main(void)
{
    static const struct oct_enface_settings wrong = {OCT_PROJECTION_SLAB, 0.5, 0.5};
    const struct oct_analysis_suite suite = {
        .ops = &oct_enface_cpu, .settings = &mean, .wrong_settings = &wrong};
    return oct_analysis_suite_run(&suite) + test_run();
}
