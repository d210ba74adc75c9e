/* The live average in pieces by the worker pool, beside pictures: they go between its pieces and
 * within those of registration, and change nothing of its results. */
#include "analysis/average/average.h"
#include "kernels/device/workers.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/tap.h"
#include "test/rig/waiting_pictures.h"

#include <stdlib.h>
#include <string.h>

enum { N_BSCANS = 6, N_LINES = 240, DEPTH = 1024 };
/* 32 A-lines each, the ends of three passes, the shift and the reference. */
enum { N_PIECES = 3 * 8 + 3 + 2, N_PASSES = 4 };

static const struct oct_suite_recipe recipe = {
    .name = "pool", .n_lines = N_LINES, .depth = DEPTH, .n_bscans = 1, .live = true};
static const struct oct_average_settings at_rest = {
    .bscans = 1, .repeats = 1, .max_shift_px = 32, .min_score = -1};
static const struct oct_average_settings settings = {
    .bscans = 4, .repeats = 1, .max_shift_px = 32, .min_score = -1};

/* Pushes the B-scan that is there; the result is the caller's to free. */
static void *push(struct oct_analysis *analysis, struct oct_suite_bscan *bscan,
                  struct oct_image_frame *result)
{
    struct oct_error err = {.text = ""};
    *result = (struct oct_image_frame){.pixels = malloc((size_t)N_LINES * DEPTH * sizeof(float))};
    assert_non_null(result->pixels);
    if (oct_average_cpu.run.push(analysis, &bscan->frame, &err) ||
        oct_average_cpu.run.take(analysis, result, &err))
        fail_msg("%s", err.text);
    return result->pixels;
}

static struct oct_analysis *open_average(const struct oct_suite_bscan *bscan,
                                         struct oct_workers *pool, size_t *bytes)
{
    struct oct_error err = {.text = ""};
    struct oct_analysis *analysis;
    struct oct_image_form form;
    struct oct_analysis_setup setup = oct_suite_setup(bscan, &recipe, &at_rest);
    setup.workers = pool;
    if (oct_average_cpu.create(&analysis, &setup, &form, &err) ||
        oct_average_cpu.run.configure(analysis, &settings, &err))
        fail_msg("%s", err.text);
    *bytes = oct_image_form_bytes(&form);
    return analysis;
}

static void beside_pictures_it_gives_the_same_results(void **state)
{
    (void)state;
    for (unsigned n_threads = 1; n_threads <= 3; n_threads++) {
        struct oct_error err = {.text = ""};
        struct oct_workers *pool;
        struct oct_suite_bscan bscan;
        struct oct_waiting_pictures pictures;
        oct_waiting_pictures_init(&pictures);
        size_t bytes;
        assert_int_equal(oct_workers_create(&pool, n_threads, &err), OCT_OK);
        oct_suite_bscan_open(&bscan, &recipe, OCT_STAGE_VALUES);
        oct_workers_add(pool, &pictures.source);
        struct oct_analysis *pooled = open_average(&bscan, pool, &bytes);
        struct oct_analysis *alone = open_average(&bscan, NULL, &bytes);
        for (unsigned k = 0; k < N_BSCANS; k++) {
            struct oct_image_frame result, expected;
            oct_suite_bscan_fill(&bscan, 5, false); /* all match */
            oct_suite_bscan_number(&bscan, k, 1);
            void *want = push(alone, &bscan, &expected);
            unsigned n = oct_waiting_pictures_done(&pictures, pool);
            void *got = push(pooled, &bscan, &result);
            n = oct_waiting_pictures_done(&pictures, pool) - n;
            assert_memory_equal(got, want, bytes);
            assert_memory_equal(result.numbers, expected.numbers, sizeof(result.numbers));
            if (n_threads == 1 && k > 0) /* two looks at the end of each pass, and then asleep */
                assert_in_range(n, N_PIECES + 2 * N_PASSES + 10, 1000);
            free(got);
            free(want);
        }
        oct_average_cpu.run.destroy(pooled);
        oct_average_cpu.run.destroy(alone);
        oct_workers_remove(pool, &pictures.source);
        oct_workers_destroy(pool);
        oct_suite_bscan_close(&bscan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_pictures_it_gives_the_same_results),
    };
    return cmocka_run_group_tests_name("average and pool", tests, NULL, NULL) > 0;
}
