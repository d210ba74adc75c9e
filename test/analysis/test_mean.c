/* The example of docs/tasks/write-an-analysis.md: what every analysis must stand, its number. */
#include "test/analysis/mean.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/tap.h"

#include <math.h>

TEST(the_mean_is_that_of_the_finite_values)
{
    const struct oct_suite_recipe recipe = {
        .n_lines = 2, .depth = 4, .n_bscans = 1, .type = OCT_SAMPLE_F32};
    struct oct_suite_bscan bscan;
    struct oct_suite_result result;
    struct oct_analysis *mean;
    struct oct_image_form form;
    oct_suite_bscan_open(&bscan, &recipe, OCT_STAGE_VALUES);
    const struct oct_analysis_setup setup = oct_suite_setup(&bscan, &recipe, NULL);
    must(oct_mean_cpu.create(&mean, &setup, &form, &failure));
    oct_suite_result_open(&result, &form);
    memcpy(bscan.memory, (float[]){1, 2, NAN, 3, -INFINITY, 4, 5, 6}, 8 * sizeof(float));
    oct_suite_bscan_number(&bscan, 0, 1);
    must(oct_mean_cpu.run.push(mean, &bscan.frame, &failure));
    assert_int_equal(oct_suite_take(&oct_mean_cpu, mean, &bscan.frame.info, &result), OCT_OK);
    assert_float_equal(*(float *)result.memory, 3.5, 1e-6);
    assert_string_equal(form.labels[0], "mean_db");
    oct_mean_cpu.run.destroy(mean);
    oct_suite_result_close(&result);
    oct_suite_bscan_close(&bscan);
}

int main(void)
{
    const struct oct_analysis_suite suite = {.ops = &oct_mean_cpu};
    return oct_analysis_suite_run(&suite) + test_run();
}
