#include "test/rig/analysis_suite.h"

#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 4096u
#define PATTERN 0xa5

/* ---- B-scans and results ---- */

void oct_suite_bscan_open(struct oct_suite_bscan *b, const struct oct_suite_recipe *recipe,
                          enum oct_stage_input input)
{
    *b = (struct oct_suite_bscan){
        .form = {.name = "bscan",
                 .quantity = recipe->linear ? OCT_QUANTITY_INTENSITY : OCT_QUANTITY_INTENSITY_DB,
                 .type = input == OCT_STAGE_PICTURES ? recipe->type : OCT_SAMPLE_F32,
                 .rank = 2,
                 .dims = {recipe->n_lines, recipe->depth},
                 .spacing_um = {5, NAN},
                 .axes = {"line", "depth"}}};
    b->memory = malloc(oct_image_form_bytes(&b->form) * (input == OCT_STAGE_COMPLEX ? 2 : 1));
    assert_non_null(b->memory);
    b->frame = (struct oct_image_frame){.form = &b->form, .whole = true, .lo = 20, .hi = 90};
    memcpy(b->frame.dims, b->form.dims, sizeof(b->form.dims));
    if (input == OCT_STAGE_PICTURES)
        b->frame.pixels = b->memory;
    else if (input == OCT_STAGE_VALUES)
        b->frame.values = b->memory;
    else
        b->frame.complex_values = b->memory;
}

static float layer(uint32_t d, uint32_t depth)
{
    double at = (double)d / depth;
    return (float)(30 + 40 * exp(-200 * (at - 0.3) * (at - 0.3)) +
                   25 * exp(-900 * (at - 0.6) * (at - 0.6)));
}

static void put_complex(float *z, float amplitude, struct dice *dice)
{
    const float phase = (float)dice_below(dice, 6283) / 1000;
    z[0] = amplitude * cosf(phase);
    z[1] = amplitude * sinf(phase);
}

void oct_suite_bscan_fill(struct oct_suite_bscan *b, uint64_t seed, bool hostile)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f};
    struct dice dice = {seed};
    const uint32_t depth = b->form.dims[1];
    for (size_t i = 0; i < (size_t)b->form.dims[0] * depth; i++) {
        float db = layer((uint32_t)(i % depth), depth) + (float)dice_below(&dice, 1000) / 100;
        float value = b->form.quantity == OCT_QUANTITY_INTENSITY ? powf(10, db / 10) : db;
        float amplitude = powf(10, db / 20);
        if (hostile && dice_below(&dice, 16) == 0)
            value = amplitude = strange[dice_below(&dice, 5)];
        if (b->frame.complex_values)
            put_complex(b->frame.complex_values + 2 * i, amplitude, &dice);
        else if (b->form.type == OCT_SAMPLE_F32)
            ((float *)b->memory)[i] = value;
        else
            ((uint8_t *)b->memory)[i] = (uint8_t)fminf(fmaxf((db - 20) * 255 / 70, 0), 255);
    }
}

void oct_suite_bscan_number(struct oct_suite_bscan *b, uint64_t number, uint32_t n_bscans)
{
    b->frame.info.number = b->frame.info.id = number;
    b->frame.info.volume = number / n_bscans;
    b->frame.info.bscan = (uint32_t)(number % n_bscans);
}

void oct_suite_bscan_close(struct oct_suite_bscan *b)
{
    free(b->memory);
}

struct oct_analysis_setup oct_suite_setup(const struct oct_suite_bscan *b,
                                          const struct oct_suite_recipe *recipe,
                                          const void *settings)
{
    return (struct oct_analysis_setup){.input = &b->form,
                                       .n_bscans = recipe->n_bscans,
                                       .spacing = {7, 5, NAN},
                                       .scan = {1, 1, 1},
                                       .live = recipe->live,
                                       .settings = settings};
}

void oct_suite_result_open(struct oct_suite_result *r, const struct oct_image_form *form)
{
    must(oct_image_form_check(form, &failure));
    *r = (struct oct_suite_result){.form = *form, .bytes = oct_image_form_bytes(form)};
    r->memory = malloc(r->bytes + GUARD_BYTES);
    assert_non_null(r->memory);
    memset(r->memory, PATTERN, r->bytes + GUARD_BYTES);
}

enum oct_err oct_suite_take(const struct oct_analysis_ops *ops, struct oct_analysis *analysis,
                            const struct oct_bscan_info *newest, struct oct_suite_result *r)
{
    struct oct_error err = {.text = ""};
    r->frame = (struct oct_image_frame){
        .form = &r->form, .info = *newest, .whole = true, .hi = 1, .pixels = r->memory};
    memcpy(r->frame.dims, r->form.dims, sizeof(r->form.dims));
    enum oct_err e = ops->run.take(analysis, &r->frame, &err);
    if (e && e != OCT_E_AGAIN)
        fail_msg("take: %s", err.text);
    if (e)
        return e;
    for (unsigned i = 1; i < r->form.rank; i++)
        assert_int_equal(r->frame.dims[i], r->form.dims[i]);
    assert_true(r->frame.dims[0] <= r->form.dims[0]);
    assert_true(isfinite(r->frame.lo) && isfinite(r->frame.hi));
    assert_int_equal(r->frame.info.acquisition, newest->acquisition);
    assert_true(r->frame.info.number <= newest->number);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(((unsigned char *)r->memory)[r->bytes + i], PATTERN);
    return OCT_OK;
}

void oct_suite_result_close(struct oct_suite_result *r)
{
    free(r->memory);
}

/* Live, an analysis may go by the clock: whether two runs give the same is asked offline. */
static const struct oct_suite_recipe recipes[] = {
    {.name = "u8, dB", .n_lines = 48, .depth = 100, .n_bscans = 6, .type = OCT_SAMPLE_U8},
    {.name = "f32, dB", .n_lines = 48, .depth = 100, .n_bscans = 6, .type = OCT_SAMPLE_F32},
    {.name = "f32, counts^2",
     .n_lines = 31,
     .depth = 77,
     .n_bscans = 5,
     .type = OCT_SAMPLE_F32,
     .linear = true},
    {.name = "one depth", .n_lines = 16, .depth = 1, .n_bscans = 3, .type = OCT_SAMPLE_U8},
    {.name = "one A-line", .n_lines = 1, .depth = 64, .n_bscans = 3, .type = OCT_SAMPLE_U8},
    {.name = "one B-scan a volume",
     .n_lines = 9,
     .depth = 33,
     .n_bscans = 1,
     .type = OCT_SAMPLE_U8},
    {.name = "long A-lines", .n_lines = 3, .depth = 5000, .n_bscans = 2, .type = OCT_SAMPLE_F32},
    {.name = "many A-lines", .n_lines = 3000, .depth = 8, .n_bscans = 2, .type = OCT_SAMPLE_U8},
};
#define N_RECIPES (sizeof(recipes) / sizeof(recipes[0]))

/* ---- one run of an analysis over a few volumes ---- */

struct run {
    const struct oct_analysis_suite *suite;
    const struct oct_suite_recipe *recipe;
    struct oct_suite_bscan bscan;
    struct oct_image_form form;
    struct oct_suite_result result;
    struct oct_analysis *analysis;
    unsigned n_results;
    uint64_t digest; /* of all results, in order */
};

/* False: the recipe's pictures are too small for it. */
static bool open_run(struct run *r, const struct oct_analysis_suite *suite,
                     const struct oct_suite_recipe *recipe)
{
    struct oct_error err = {.text = ""};
    *r = (struct run){.suite = suite, .recipe = recipe};
    oct_suite_bscan_open(&r->bscan, recipe, suite->ops->input);
    struct oct_analysis_setup setup = oct_suite_setup(&r->bscan, recipe, suite->settings);
    if (suite->scan.repeats)
        setup.scan = suite->scan;
    enum oct_err e = suite->ops->create(&r->analysis, &setup, &r->form, &err);
    if (e == OCT_E_CONFIG && suite->refuses_small && recipe != recipes) {
        oct_suite_bscan_close(&r->bscan);
        return false;
    }
    if (e)
        fail_msg("%s: %s", recipe->name, err.text);
    assert_string_equal(r->form.name, suite->ops->name);
    oct_suite_result_open(&r->result, &r->form);
    return true;
}

static void close_run(struct run *r)
{
    r->suite->ops->run.destroy(r->analysis);
    oct_suite_result_close(&r->result);
    oct_suite_bscan_close(&r->bscan);
}

static void take_all(struct run *r)
{
    unsigned n = 0;
    while (oct_suite_take(r->suite->ops, r->analysis, &r->bscan.frame.info, &r->result) == OCT_OK) {
        const unsigned char *bytes = r->result.memory;
        const uint32_t n_rows = r->result.frame.dims[0]; /* what lies beyond means nothing */
        for (size_t i = 0; i < r->result.bytes / r->form.dims[0] * n_rows; i++)
            r->digest = r->digest * UINT64_C(0x100000001b3) + bytes[i];
        r->n_results++;
        assert_true(++n < 64);
    }
    assert_int_equal(oct_suite_take(r->suite->ops, r->analysis, &r->bscan.frame.info, &r->result),
                     OCT_E_AGAIN);
}

static void push(struct run *r, uint64_t number, bool hostile)
{
    struct oct_error err = {.text = ""};
    size_t bytes = oct_image_form_bytes(&r->bscan.form);
    void *before = malloc(bytes);
    assert_non_null(before);
    oct_suite_bscan_number(&r->bscan, number, r->recipe->n_bscans);
    oct_suite_bscan_fill(&r->bscan, number + 1, hostile);
    memcpy(before, r->bscan.memory, bytes);
    enum oct_err e = r->suite->ops->run.push(r->analysis, &r->bscan.frame, &err);
    if (e && !hostile)
        fail_msg("%s: push %llu: %s", r->recipe->name, (unsigned long long)number, err.text);
    assert_memory_equal(before, r->bscan.memory, bytes); /* it is lent, not given */
    free(before);
}

static uint64_t run_volumes(struct run *r, unsigned n_volumes)
{
    r->digest = 0;
    for (uint64_t i = 0; i < (uint64_t)n_volumes * r->recipe->n_bscans; i++) {
        push(r, i, false);
        take_all(r);
    }
    return r->digest;
}

/* ---- the tests; the suite and the recipe in force ---- */

static const struct oct_analysis_suite *now;

static void the_same_bscans_give_the_same_results(void **state)
{
    for (size_t i = 0; i < N_RECIPES; i++) {
        struct run first, second;
        if (!open_run(&first, now, &recipes[i]))
            continue;
        open_run(&second, now, &recipes[i]);
        uint64_t digest = run_volumes(&first, 3);
        assert_true(first.n_results > 0);
        assert_true(run_volumes(&second, 3) == digest);
        print_message("# %s: %s, %u results of %zu bytes\n", now->ops->name, recipes[i].name,
                      first.n_results, first.result.bytes);
        close_run(&first);
        close_run(&second);
    }
}

static void after_a_reset_nothing_of_before_is_left(void **state)
{
    for (size_t i = 0; i < N_RECIPES; i++) {
        struct run r;
        if (!open_run(&r, now, &recipes[i]))
            continue;
        uint64_t digest = run_volumes(&r, 2);
        push(&r, 2 * (uint64_t)recipes[i].n_bscans, false); /* half a volume is under way */
        r.suite->ops->run.reset(r.analysis);
        take_all(&r);
        assert_true(run_volumes(&r, 2) == digest);
        close_run(&r);
    }
}

static void bscans_may_be_left_out_and_results_not_taken(void **state)
{
    for (size_t i = 0; i < N_RECIPES; i++) {
        struct run r;
        if (!open_run(&r, now, &recipes[i]))
            continue;
        for (uint64_t n = 0; n < 40; n += 1 + n % 3 + (n % 7 == 0 ? recipes[i].n_bscans : 0)) {
            push(&r, n, false);
            if (n % 2)
                take_all(&r);
        }
        if (r.suite->ops->run.end)
            r.suite->ops->run.end(r.analysis);
        take_all(&r);
        assert_true(r.n_results > 0);
        close_run(&r);
    }
}

static void values_that_are_no_numbers_do_no_harm(void **state)
{
    for (size_t i = 0; i < N_RECIPES; i++) {
        struct run r;
        if (!open_run(&r, now, &recipes[i]))
            continue;
        r.bscan.frame.lo = -3e38;
        r.bscan.frame.hi = 3e38;
        for (uint64_t n = 0; n < 12; n++) {
            push(&r, n, true);
            take_all(&r);
        }
        close_run(&r);
    }
}

static void settings_change_between_bscans(void **state)
{
    if (!now->ops->run.configure)
        return;
    struct run r;
    struct oct_error err = {.text = ""};
    open_run(&r, now, &recipes[0]);
    uint64_t digest = run_volumes(&r, 2);
    r.suite->ops->run.reset(r.analysis);
    if (now->wrong_settings) {
        assert_int_not_equal(now->ops->run.configure(r.analysis, now->wrong_settings, &err),
                             OCT_OK);
        assert_int_not_equal(err.text[0], '\0');
    }
    assert_int_equal(now->ops->run.configure(r.analysis, now->settings, &err), OCT_OK);
    assert_true(run_volumes(&r, 2) == digest);
    close_run(&r);
}

static void wrong_settings_make_no_analysis(void **state)
{
    if (!now->wrong_settings)
        return;
    struct oct_suite_bscan bscan;
    struct oct_image_form form;
    struct oct_error err = {.text = ""};
    struct oct_analysis *analysis = (struct oct_analysis *)&bscan;
    oct_suite_bscan_open(&bscan, &recipes[0], now->ops->input);
    struct oct_analysis_setup setup = oct_suite_setup(&bscan, &recipes[0], now->wrong_settings);
    assert_int_equal(now->ops->create(&analysis, &setup, &form, &err), OCT_E_CONFIG);
    assert_null(analysis);
    assert_int_not_equal(err.text[0], '\0');
    oct_suite_bscan_close(&bscan);
}

static void live_it_gives_results_too(void **state)
{
    struct oct_suite_recipe recipe = recipes[0];
    struct run r;
    recipe.live = true;
    open_run(&r, now, &recipe);
    run_volumes(&r, 2);
    assert_true(r.n_results > 0);
    close_run(&r);
}

static void destroy_takes_nothing_and_what_is_under_way(void **state)
{
    struct run r;
    now->ops->run.destroy(NULL);
    open_run(&r, now, &recipes[0]);
    close_run(&r);
    open_run(&r, now, &recipes[0]);
    push(&r, 0, false);
    close_run(&r);
}

int oct_analysis_suite_run(const struct oct_analysis_suite *suite)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bscans_give_the_same_results),
        cmocka_unit_test(after_a_reset_nothing_of_before_is_left),
        cmocka_unit_test(bscans_may_be_left_out_and_results_not_taken),
        cmocka_unit_test(values_that_are_no_numbers_do_no_harm),
        cmocka_unit_test(settings_change_between_bscans),
        cmocka_unit_test(wrong_settings_make_no_analysis),
        cmocka_unit_test(live_it_gives_results_too),
        cmocka_unit_test(destroy_takes_nothing_and_what_is_under_way),
    };
    now = suite;
    return cmocka_run_group_tests_name(suite->ops->name, tests, NULL, NULL);
}
