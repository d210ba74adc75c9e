/* Which twin computes, and that the other goes on where its device fails. */
#include "analysis/select.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

/* A twin that counts B-scans; that of the "GPU" dies when told to. */
struct oct_analysis {
    const char *backend;
    int settings;
    float n;
    bool has_result;
};

static struct {
    bool none_answers, wrong, dies_at_push, dies_at_take, second_refuses;
    unsigned n_alive;
    int settings; /* of the newest push */
} world;

static enum oct_err twin_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                struct oct_image_form *form, const char *backend,
                                struct oct_error *err)
{
    *out = NULL;
    if (strcmp(backend, "cuda") == 0 && world.none_answers)
        return oct_fail(err, OCT_E_BACKEND, "no GPU answers");
    if (world.wrong)
        return oct_fail(err, OCT_E_CONFIG, "these settings cannot be");
    if (strcmp(backend, "cpu") == 0 && world.second_refuses)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    *out = calloc(1, sizeof(**out));
    assert_non_null(*out);
    (*out)->backend = backend;
    (*out)->settings = *(const int *)setup->settings;
    *form = (struct oct_image_form){.name = "count",
                                    .quantity = OCT_QUANTITY_LENGTH,
                                    .type = OCT_SAMPLE_F32,
                                    .rank = 1,
                                    .dims = {1},
                                    .axes = {"column"}};
    world.n_alive++;
    return OCT_OK;
}

static enum oct_err create_cpu(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                               struct oct_image_form *form, struct oct_error *err)
{
    return twin_create(out, setup, form, "cpu", err);
}

static enum oct_err create_cuda(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                struct oct_image_form *form, struct oct_error *err)
{
    return twin_create(out, setup, form, "cuda", err);
}

static bool dies(const struct oct_analysis *a, bool at)
{
    return at && strcmp(a->backend, "cuda") == 0;
}

static enum oct_err twin_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                              struct oct_error *err)
{
    (void)bscan;
    if (dies(a, world.dies_at_push))
        return oct_fail(err, OCT_E_BACKEND, "GPU 0 has not answered for 2.0 s");
    a->n++;
    a->has_result = true;
    world.settings = a->settings;
    return OCT_OK;
}

static enum oct_err twin_take(struct oct_analysis *a, struct oct_image_frame *result,
                              struct oct_error *err)
{
    if (!a->has_result)
        return OCT_E_AGAIN;
    if (dies(a, world.dies_at_take))
        return oct_fail(err, OCT_E_BACKEND, "GPU 0: download failed");
    *(float *)result->pixels = a->n;
    a->has_result = false;
    return OCT_OK;
}

static void twin_reset(struct oct_analysis *a)
{
    a->n = 0;
}

static enum oct_err twin_configure(struct oct_analysis *a, const void *settings,
                                   struct oct_error *err)
{
    (void)err;
    a->settings = *(const int *)settings;
    return OCT_OK;
}

static bool twin_is_at_rest(const struct oct_analysis *a)
{
    return a->settings == 0;
}

static void twin_destroy(struct oct_analysis *a)
{
    if (a)
        world.n_alive--;
    free(a);
}

#define RUN                                                                                        \
    {                                                                                              \
        .push = twin_push, .take = twin_take, .reset = twin_reset, .configure = twin_configure,    \
        .is_at_rest = twin_is_at_rest, .destroy = twin_destroy                                     \
    }
static const struct oct_analysis_ops cpu = {.name = "count",
                                            .backend = "cpu",
                                            .settings_bytes = sizeof(int),
                                            .create = create_cpu,
                                            .run = RUN};
static const struct oct_analysis_ops cuda = {.name = "count",
                                             .backend = "cuda",
                                             .settings_bytes = sizeof(int),
                                             .create = create_cuda,
                                             .run = RUN};
static const struct oct_analysis_entry both = {&cpu, &cuda}, alone = {&cpu, NULL};

struct rig {
    struct oct_suite_recipe recipe;
    struct oct_suite_bscan bscan;
    struct oct_analysis_choice choice;
    int settings;
};

static enum oct_err open_rig(struct rig *r, const struct oct_analysis_entry *entry,
                             const char *backend, struct oct_error *err)
{
    memset(&world, 0, sizeof(world));
    *r = (struct rig){.recipe = {.n_lines = 2, .depth = 2, .n_bscans = 2, .type = OCT_SAMPLE_U8},
                      .settings = 7};
    oct_suite_bscan_open(&r->bscan, &r->recipe, OCT_STAGE_PICTURES);
    struct oct_analysis_setup setup = oct_suite_setup(&r->bscan, &r->recipe, &r->settings);
    setup.gpus = "0";
    enum oct_err e = oct_analysis_select(&r->choice, entry, backend, &setup, err);
    memset(&r->settings, 0xff, sizeof(r->settings)); /* create has copied what it was lent */
    return e;
}

static void close_rig(struct rig *r)
{
    r->choice.ops->destroy(r->choice.analysis);
    oct_suite_bscan_close(&r->bscan);
    assert_int_equal(world.n_alive, 0);
}

static const char *running(const struct rig *r)
{
    return r->choice.ops->running ? r->choice.ops->running(r->choice.analysis) : "cpu";
}

/* Pushes one; the count in its result, or minus the error of push or take. */
static float count_one(struct rig *r, struct oct_error *err)
{
    float n = 0;
    struct oct_image_frame result = {.pixels = &n, .dims = {1}};
    enum oct_err e = r->choice.ops->push(r->choice.analysis, &r->bscan.frame, err);
    if (!e)
        e = r->choice.ops->take(r->choice.analysis, &result, err);
    return e ? -(float)e : n;
}

static void the_gpu_computes_where_there_is_one(void **state)
{
    (void)state;
    struct rig r;
    struct oct_error err;
    assert_int_equal(open_rig(&r, &both, "auto", &err), OCT_OK);
    assert_string_equal(running(&r), "cuda");
    assert_string_equal(r.choice.form.name, "count");
    assert_true(count_one(&r, &err) == 1);
    assert_int_equal(world.settings, 7);
    close_rig(&r);
    assert_int_equal(open_rig(&r, &both, "cpu", &err), OCT_OK);
    assert_string_equal(running(&r), "cpu");
    close_rig(&r);
    assert_int_equal(open_rig(&r, &alone, "cuda", &err), OCT_OK);
    assert_string_equal(running(&r), "cpu");
    assert_non_null(strstr(r.choice.why, "no CUDA part"));
    close_rig(&r);
}

static void the_cpu_computes_where_no_gpu_answers(void **state)
{
    (void)state;
    struct rig r;
    struct oct_error err;
    memset(&r, 0, sizeof(r));
    struct oct_analysis_choice choice;
    int settings = 3;
    memset(&world, 0, sizeof(world));
    world.none_answers = true;
    r.recipe =
        (struct oct_suite_recipe){.n_lines = 2, .depth = 2, .n_bscans = 2, .type = OCT_SAMPLE_U8};
    oct_suite_bscan_open(&r.bscan, &r.recipe, OCT_STAGE_PICTURES);
    struct oct_analysis_setup setup = oct_suite_setup(&r.bscan, &r.recipe, &settings);
    assert_int_equal(oct_analysis_select(&choice, &both, "auto", &setup, &err), OCT_OK);
    assert_non_null(strstr(choice.why, "no GPU answers"));
    choice.ops->destroy(choice.analysis);
    world.wrong = true; /* an option that is wrong stays an error, whatever computes */
    world.none_answers = false;
    assert_int_equal(oct_analysis_select(&choice, &both, "auto", &setup, &err), OCT_E_CONFIG);
    assert_int_equal(world.n_alive, 0);
    oct_suite_bscan_close(&r.bscan);
}

static void when_the_gpu_fails_the_cpu_goes_on_with_that_bscan(void **state)
{
    (void)state;
    struct rig r;
    struct oct_error err;
    assert_int_equal(open_rig(&r, &both, "auto", &err), OCT_OK);
    assert_true(count_one(&r, &err) == 1);
    assert_int_equal(r.choice.ops->configure(r.choice.analysis, &(int){9}, &err), OCT_OK);
    world.dies_at_push = true;
    assert_true(count_one(&r, &err) == 1); /* it begins anew */
    assert_int_equal(world.settings, 9);   /* with the settings in force */
    assert_string_equal(running(&r), "cpu");
    assert_true(count_one(&r, &err) == 2);
    close_rig(&r);
}

static void either_twin_may_be_at_rest(void **state)
{
    (void)state;
    struct rig r;
    struct oct_error err;
    assert_int_equal(open_rig(&r, &both, "auto", &err), OCT_OK);
    assert_non_null(r.choice.ops->is_at_rest);
    for (int dies_at_push = 0; dies_at_push < 2; dies_at_push++) {
        world.dies_at_push = dies_at_push;
        assert_true(count_one(&r, &err) == 1);
        assert_string_equal(running(&r), dies_at_push ? "cpu" : "cuda");
        assert_false(r.choice.ops->is_at_rest(r.choice.analysis));
        assert_int_equal(r.choice.ops->configure(r.choice.analysis, &(int){0}, &err), OCT_OK);
        assert_true(r.choice.ops->is_at_rest(r.choice.analysis));
        assert_int_equal(r.choice.ops->configure(r.choice.analysis, &(int){1}, &err), OCT_OK);
    }
    close_rig(&r);
    assert_int_equal(open_rig(&r, &both, "auto", &err), OCT_OK);
    world.dies_at_push = world.second_refuses = true;
    assert_true(count_one(&r, &err) < 0);
    assert_false(r.choice.ops->is_at_rest(r.choice.analysis)); /* its pushes say that it failed */
    close_rig(&r);
}

static void a_gpu_that_fails_late_costs_one_result(void **state)
{
    (void)state;
    struct rig r;
    struct oct_error err;
    assert_int_equal(open_rig(&r, &both, "cuda", &err), OCT_OK);
    world.dies_at_take = true;
    assert_true(count_one(&r, &err) == -(float)OCT_E_IO);
    assert_non_null(strstr(err.text, "download failed"));
    assert_true(count_one(&r, &err) == 1);
    assert_string_equal(running(&r), "cpu");
    close_rig(&r);
}

static void where_both_fail_every_push_says_so(void **state)
{
    (void)state;
    struct rig r;
    struct oct_error err;
    assert_int_equal(open_rig(&r, &both, "auto", &err), OCT_OK);
    world.dies_at_push = world.second_refuses = true;
    assert_true(count_one(&r, &err) == -(float)OCT_E_NO_MEMORY);
    for (int i = 0; i < 3; i++)
        assert_true(count_one(&r, &err) == -(float)OCT_E_BACKEND);
    r.choice.ops->reset(r.choice.analysis);
    r.choice.ops->end(r.choice.analysis);
    close_rig(&r);
}

static void names_are_found(void **state)
{
    (void)state;
    char text[256];
    assert_ptr_equal(oct_analysis_find("enface")->cpu->name, oct_analyses[0].cpu->name);
    assert_null(oct_analysis_find("enfac"));
    assert_null(oct_analysis_find(""));
    oct_analysis_names(text, sizeof(text));
    for (unsigned i = 0; i < oct_n_analyses; i++) {
        assert_non_null(strstr(text, oct_analyses[i].cpu->name));
        assert_ptr_equal(oct_analysis_find(oct_analyses[i].cpu->name), &oct_analyses[i]);
    }
    assert_null(strchr(text, ' ')); /* it can be pasted into a configuration */
    char little[5];
    oct_analysis_names(little, sizeof(little));
    assert_int_equal(strlen(little), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gpu_computes_where_there_is_one),
        cmocka_unit_test(the_cpu_computes_where_no_gpu_answers),
        cmocka_unit_test(when_the_gpu_fails_the_cpu_goes_on_with_that_bscan),
        cmocka_unit_test(either_twin_may_be_at_rest),
        cmocka_unit_test(a_gpu_that_fails_late_costs_one_result),
        cmocka_unit_test(where_both_fail_every_push_says_so),
        cmocka_unit_test(names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
