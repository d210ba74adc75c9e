/* Quality: what its numbers say of pictures whose quality is known. */
#include "analysis/quality/quality.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

enum { M = 120, D = 100, V = 200 };

struct rig {
    struct oct_suite_recipe recipe;
    struct oct_suite_bscan bscan;
    struct oct_suite_result result;
    struct oct_analysis *analysis;
};

static void open_rig(struct rig *r, bool linear)
{
    struct oct_image_form form;
    *r = (struct rig){.recipe = {.n_lines = M,
                                 .depth = D,
                                 .n_bscans = V,
                                 .type = OCT_SAMPLE_U8,
                                 .linear = linear,
                                 .live = true}};
    oct_suite_bscan_open(&r->bscan, &r->recipe, OCT_STAGE_PICTURES);
    struct oct_analysis_setup setup = oct_suite_setup(&r->bscan, &r->recipe, NULL);
    must(oct_quality_cpu.create(&r->analysis, &setup, &form, &failure));
    oct_suite_result_open(&r->result, &form);
    r->bscan.frame.lo = 10;
    r->bscan.frame.hi = 70;
}

static void close_rig(struct rig *r)
{
    oct_quality_cpu.run.destroy(r->analysis);
    oct_suite_result_close(&r->result);
    oct_suite_bscan_close(&r->bscan);
}

/* A bright layer of 4 depths on grey 10; its row of numbers. */
static const float *look_at(struct rig *r, uint64_t number, unsigned layer, bool closed)
{
    uint8_t *pixels = r->bscan.memory;
    memset(pixels, 10, (size_t)M * D);
    for (unsigned j = 0; j < M && !closed; j++)
        memset(pixels + (size_t)j * D + layer, 255, 4);
    oct_suite_bscan_number(&r->bscan, number, V);
    must(oct_quality_cpu.run.push(r->analysis, &r->bscan.frame, &failure));
    assert_int_equal(
        oct_suite_take(&oct_quality_cpu, r->analysis, &r->bscan.frame.info, &r->result), OCT_OK);
    return r->result.memory;
}

TEST(blinks_and_motion_are_marked)
{
    struct rig r;
    const float *row = NULL;
    open_rig(&r, false);
    for (uint64_t i = 0; i < 100; i++) {
        /* At 50 the layer jumps by 6 % of the depth; at 70 .. 74 the eye is closed. */
        row = look_at(&r, i, 30 + (unsigned)i / 50 * 6, i >= 70 && i < 75);
        assert_int_equal(row[OCT_QUALITY_MOTION], i == 50);
        assert_int_equal(row[OCT_QUALITY_BLINK], i >= 70 && i < 75);
        if (i == 60) { /* 255 over 10 of 60 dB */
            assert_true(fabs((double)row[OCT_QUALITY_SNR_SMOOTH_DB] - 245 / 255.0 * 60) < 1);
            assert_true(fabs((double)row[OCT_QUALITY_SNR_DB] - 245 / 255.0 * 60) < 1);
        }
    }
    assert_int_equal(row[OCT_QUALITY_BLINKS], 1);
    assert_int_equal(row[OCT_QUALITY_MOTIONS], 1);
    assert_int_equal(row[OCT_QUALITY_MISSING], 0);
    r.bscan.frame.info.missing_lines = 3;
    assert_int_equal(look_at(&r, 100, 36, false)[OCT_QUALITY_MISSING], 1);
    close_rig(&r);
}

TEST(another_volume_and_a_gap_are_no_motion)
{
    struct rig r;
    open_rig(&r, false);
    look_at(&r, V - 1, 30, false);
    assert_int_equal(look_at(&r, V, 40, false)[OCT_QUALITY_MOTIONS], 0);
    assert_int_equal(look_at(&r, V + 2, 50, false)[OCT_QUALITY_MOTIONS], 0);
    assert_int_equal(look_at(&r, V + 3, 60, false)[OCT_QUALITY_MOTIONS], 1);
    close_rig(&r);
}

/* Of 100 depths a layer moves by more than 2, and is found by up to 12 to both sides. */
TEST(a_layer_has_moved_by_more_than_a_fiftieth)
{
    static const struct {
        int by;
        bool is_motion;
    } moves[] = {{1, false}, {-1, false}, {2, false},  {-2, false}, {3, true},
                 {-3, true}, {12, true},  {-12, true}, {20, false}, {-20, false}};
    struct rig r;
    unsigned at = 40;
    open_rig(&r, false);
    look_at(&r, 0, at, false);
    for (unsigned i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        at = (unsigned)((int)at + moves[i].by);
        assert_int_equal(look_at(&r, i + 1, at, false)[OCT_QUALITY_MOTION], moves[i].is_motion);
    }
    close_rig(&r);
}

TEST(every_pixel_counts_once)
{
    static const uint8_t values[4] = {10, 60, 120, 200};
    struct rig r;
    double sum = 0, sum2 = 0;
    open_rig(&r, true);
    r.bscan.frame.lo = 0;
    r.bscan.frame.hi = 255;
    uint8_t *pixels = r.bscan.memory;
    for (size_t i = 0; i < (size_t)M * D; i++)
        pixels[i] = values[i % 4];
    for (unsigned i = 0; i < 4; i++) {
        sum += values[i] / 4.0;
        sum2 += values[i] * values[i] / 4.0;
    }
    oct_suite_bscan_number(&r.bscan, 0, V);
    must(oct_quality_cpu.run.push(r.analysis, &r.bscan.frame, &failure));
    assert_int_equal(oct_suite_take(&oct_quality_cpu, r.analysis, &r.bscan.frame.info, &r.result),
                     OCT_OK);
    const float *row = r.result.memory;
    assert_true(fabs((double)row[OCT_QUALITY_SHARPNESS] * sum * sum / sum2 - 1) < 0.01);
    close_rig(&r);
}

/* Sharpness of a picture of two intensities, by hand: share p at a, the rest at b. */
TEST(sharpness_is_the_ratio_of_moments)
{
    struct rig r;
    open_rig(&r, true);
    r.bscan.frame.lo = 0;
    r.bscan.frame.hi = 255;
    const float *row = look_at(&r, 0, 30, false);
    double p = 0.04, sum = p * 255 + (1 - p) * 10, sum2 = p * 255 * 255 + (1 - p) * 100;
    /* A pixel of 10 lies in bin 20 of 512, which stands for 9.98. */
    assert_true(fabs((double)row[OCT_QUALITY_SHARPNESS] - sum2 / sum / sum) <
                0.01 * sum2 / sum / sum);
    close_rig(&r);
}

TEST(hostile_limits_give_finite_numbers)
{
    static const double limits[][2] = {{-10, 50},        {-1e308, 1e307}, {1e300, 1e308},
                                       {-1e308, -1e300}, {0, 1e-320},     {-1e308, 1e308}};
    for (int linear = 0; linear < 2; linear++) {
        struct rig r;
        open_rig(&r, linear);
        for (uint64_t i = 0; i < 60; i++) {
            r.bscan.frame.lo = limits[i % 6][0];
            r.bscan.frame.hi = limits[i % 6][1];
            const float *row = look_at(&r, i, 30, false);
            for (int c = 0; c < OCT_QUALITY_N_COLUMNS; c++)
                assert_true(isfinite(row[c]));
            assert_true(fabsf(row[OCT_QUALITY_SNR_DB]) <= 400);
        }
        close_rig(&r);
    }
}

int main(void)
{
    const struct oct_analysis_suite suite = {.ops = &oct_quality_cpu};
    return oct_analysis_suite_run(&suite) + test_run();
}
