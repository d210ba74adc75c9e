/* Moved pictures on a canvas: where pixels go, what they weigh, and what is not covered. */
#include "analysis/align/reference.h"
#include "analysis/align/render.h"
#include "test/rig/tap.h"
#include "test/rig/waves.h"

#include <math.h>
#include <stdlib.h>

enum { H = 40, W = 48 };

static void fill(double *shift, double value)
{
    for (unsigned y = 0; y < H; y++)
        shift[y] = value;
}

/* The largest error of a scene that is moved back, away from the edges. */
static double worst_error(enum oct_resampling how, double dy, double dx)
{
    struct oct_waves waves;
    struct oct_render r;
    struct oct_error err;
    uint64_t random = 1;
    double y_shift[H], x_shift[H], worst = 0;
    oct_waves_init(&waves, 2, 16, 60);
    struct oct_picture moved = oct_waves_picture(&waves, H, W, dy, dx, 0, &random);
    struct oct_picture still = oct_waves_picture(&waves, H, W, 0, 0, 0, &random);
    fill(y_shift, dy);
    fill(x_shift, dx);
    assert_int_equal(oct_render_init(&r, -6, H + 5, -6, W + 5, how, false, &err), OCT_OK);
    oct_render_add(&r, &moved, y_shift, x_shift);
    float *average = calloc((size_t)r.height * (size_t)r.width, sizeof(float));
    oct_render_average(&r, average, NULL);
    for (unsigned y = 6; y < H - 6; y++)
        for (unsigned x = 6; x < W - 6; x++) {
            float value = average[((size_t)y + 6) * r.width + x + 6];
            assert_true(isfinite(value));
            worst = fmax(worst, fabs((double)(value - still.pixels[(size_t)y * W + x])));
        }
    assert_true(isnan(average[0]) && isnan(average[(size_t)r.height * r.width - 1]));
    free(average);
    oct_picture_finish(&moved);
    oct_picture_finish(&still);
    oct_render_finish(&r);
    return worst;
}

static void pictures_come_to_lie_where_they_belong(void **state)
{
    assert_true(worst_error(OCT_RESAMPLING_LINEAR, 3, -4) < 1e-5); /* whole pixels are exact */
    assert_true(worst_error(OCT_RESAMPLING_NONE, -2, 5) < 1e-5);
    double linear = worst_error(OCT_RESAMPLING_LINEAR, 2.5, -3.5);
    double cubic = worst_error(OCT_RESAMPLING_CUBIC, 2.5, -3.5);
    double none = worst_error(OCT_RESAMPLING_NONE, 2.5, -3.5);
    print_message("linear %.4f, cubic %.4f, none %.4f\n", linear, cubic, none);
    assert_true(cubic < 0.05 && cubic < linear && linear < 0.2 && linear < none);
}

static void decibels_are_averaged_as_powers_and_masks_are_left_out(void **state)
{
    struct oct_render r;
    struct oct_error err;
    struct oct_picture p;
    double zero[H] = {0};
    float average[H * W], weight[H * W];
    assert_int_equal(oct_picture_init(&p, H, W, true, &err), OCT_OK);
    assert_int_equal(oct_render_init(&r, 0, H - 1, 0, W - 1, OCT_RESAMPLING_LINEAR, true, &err),
                     OCT_OK);
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < H * W; i++)
            p.pixels[i] = k ? 20 : 0;
        p.valid[5] = k == 0;
        p.valid[6] = 0;
        p.pixels[6] = NAN;
        oct_render_add(&r, &p, zero, zero);
    }
    oct_render_average(&r, average, weight);
    assert_true(fabsf(average[0] - 17.0329F) < 1e-3F); /* 10 log10((1 + 100) / 2) */
    assert_true(fabsf(average[5]) < 1e-4F && fabsf(weight[5] - 1) < 1e-5F);
    assert_true(isnan(average[6]) && weight[6] == 0 && fabsf(weight[0] - 2) < 1e-5F);
    oct_render_finish(&r);
    oct_picture_finish(&p);
}

static void the_box_holds_all_and_what_is_common(void **state)
{
    struct oct_render_box box = {.is_set = false};
    double dy[H], dx[H];
    fill(dy, 2.5);
    fill(dx, -1.25);
    oct_render_grow(&box, H, W, dy, dx);
    fill(dy, -3);
    fill(dx, 4);
    oct_render_grow(&box, H, W, dy, dx);
    assert_int_equal(box.y0, -3);
    assert_int_equal(box.y1, H - 1 + 3);
    assert_int_equal(box.x0, -2);
    assert_int_equal(box.x1, W - 1 + 4);
    assert_int_equal(box.common_y0, 3);
    assert_int_equal(box.common_y1, H - 1 - 3);
    assert_int_equal(box.common_x0, 4);
    assert_int_equal(box.common_x1, W - 1 - 2);
}

static void the_frame_most_like_the_others_is_the_reference(void **state)
{
    struct oct_waves waves;
    struct oct_picture pictures[5];
    struct oct_error err;
    uint64_t random = 9;
    unsigned chosen;
    oct_waves_init(&waves, 4, 16, 60);
    for (unsigned i = 0; i < 5; i++) /* number 3 is clean */
        pictures[i] = oct_waves_picture(&waves, 128, 128, i, 2.0 * i, i == 3 ? 0.2 : 4, &random);
    for (unsigned i = 0; i < 128 * 128; i++)
        pictures[1].pixels[i] = 8; /* a blink */
    assert_int_equal(oct_reference_choose(pictures, 5, &chosen, &err), OCT_OK);
    assert_int_equal(chosen, 3);
    assert_int_equal(oct_reference_choose(pictures + 1, 1, &chosen, &err), OCT_E_ARG);
    for (unsigned i = 0; i < 5; i++)
        oct_picture_finish(&pictures[i]);
}

static void what_all_shifts_share_is_the_references_motion(void **state)
{
    enum { N = 9 };
    static double shifts[N * H];
    double scratch[N], motion[H], undone[H];
    for (unsigned i = 0; i < N; i++)
        for (unsigned y = 0; y < H; y++) /* frame i: its place, less the reference's wave */
            shifts[i * H + y] = 3.0 * i - sin(y * 6.283185307 / H) + (i == 4 ? 0.5 * y : 0);
    oct_reference_motion(shifts, N, H, scratch, motion);
    for (unsigned y = 0; y < H; y++)
        assert_true(fabs(motion[y] - sin(y * 6.283185307 / H)) < 0.02);
    fill(undone, 0);
    double dy[H];
    fill(dy, 1.5);
    oct_reference_undo(motion, H, dy, undone); /* line 10 lies on line 11.5 of the reference */
    assert_true(fabs(undone[10] - 0.5 * (motion[11] + motion[12])) < 1e-12);
    assert_true(undone[H - 1] == motion[H - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_come_to_lie_where_they_belong),
        cmocka_unit_test(decibels_are_averaged_as_powers_and_masks_are_left_out),
        cmocka_unit_test(the_box_holds_all_and_what_is_common),
        cmocka_unit_test(the_frame_most_like_the_others_is_the_reference),
        cmocka_unit_test(what_all_shifts_share_is_the_references_motion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
