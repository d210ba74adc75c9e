/* Pictures as numbers in which layers are traced. */
#include "analysis/layers/find/pixels.h"
#include "test/rig/tap.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { M = 3, D = 8 };

static struct oct_image_form form_of(enum oct_sample_type type, enum oct_quantity quantity)
{
    return (struct oct_image_form){.type = type, .quantity = quantity, .rank = 2, .dims = {M, D}};
}

static void what_is_no_light_is_not_finite(void **state)
{
    float values[M * D] = {1,    NAN,  INFINITY, -INFINITY, 0,        -1, FLT_MAX, 2e-38f,
                           -120, 1e7f, -1e7f,    NAN,       INFINITY, 30, 0,       -90};
    const struct oct_image_frame bscan = {.pixels = values};
    const struct oct_image_form counts = form_of(OCT_SAMPLE_F32, OCT_QUANTITY_INTENSITY);
    const struct oct_image_form db = form_of(OCT_SAMPLE_F32, OCT_QUANTITY_INTENSITY_DB);
    static const bool of_counts[D] = {true, false, false, false, false, false, true, true};
    static const bool of_db[D] = {true, false, false, false, false, true, true, true};
    struct oct_surface_pixels pixels;
    float light[D];
    oct_surface_pixels_begin(&pixels, &counts, &bscan);
    oct_surface_pixels_brightness(&pixels, 0, light);
    for (unsigned d = 0; d < D; d++)
        assert_int_equal(isfinite(light[d]) != 0, of_counts[d]);
    oct_surface_pixels_begin(&pixels, &db, &bscan);
    oct_surface_pixels_brightness(&pixels, 1, light);
    for (unsigned d = 0; d < D; d++)
        assert_int_equal(isfinite(light[d]) != 0, of_db[d]);
}

/* Steps of the decibels of counts^2, whose zero is its own. */
static void counts_become_decibels(void **state)
{
    const struct oct_image_form counts = form_of(OCT_SAMPLE_F32, OCT_QUANTITY_INTENSITY);
    float values[M * D] = {1}, light[D];
    const struct oct_image_frame bscan = {.pixels = values};
    struct oct_surface_pixels pixels;
    for (unsigned i = 0; i < 2000; i++) {
        values[1] = (float)pow(10, -20 + 40 * i / 2000.0);
        oct_surface_pixels_begin(&pixels, &counts, &bscan);
        oct_surface_pixels_brightness(&pixels, 0, light);
        assert_true(fabs((double)light[1] - (double)light[0] - 10 * log10((double)values[1])) <
                    0.3);
    }
}

static void a_picture_of_bytes_goes_from_lo_to_hi(void **state)
{
    uint8_t bytes[M * D] = {0, 51, 255};
    const struct oct_image_frame bscan = {.pixels = bytes, .lo = -10, .hi = 41};
    const struct oct_image_form db = form_of(OCT_SAMPLE_U8, OCT_QUANTITY_INTENSITY_DB);
    const struct oct_image_form counts = form_of(OCT_SAMPLE_U8, OCT_QUANTITY_INTENSITY);
    struct oct_surface_pixels pixels;
    float values[D], light[D];
    oct_surface_pixels_begin(&pixels, &db, &bscan);
    oct_surface_pixels_values(&pixels, 0, values);
    assert_true(fabsf(values[0] + 10) < 1e-4f && fabsf(values[1] - 0.2f) < 1e-4f &&
                fabsf(values[2] - 41) < 1e-4f);
    oct_surface_pixels_brightness(&pixels, 0, light);
    assert_true(fabsf((light[2] - light[1]) / (light[1] - light[0]) - 4) < 1e-4f);
    struct oct_image_frame linear = bscan;
    linear.lo = 0;
    linear.hi = 255;
    oct_surface_pixels_begin(&pixels, &counts, &linear);
    oct_surface_pixels_brightness(&pixels, 0, light);
    assert_true(isfinite(light[0]) && light[0] < light[1]); /* 0 is less than a step, not nothing */
    assert_true(fabsf(light[2] - light[1] - 6.9897f) < 0.3f);
}

static void lines_that_never_came_have_no_light(void **state)
{
    float values[M * D];
    uint8_t bytes[M * D] = {0};
    for (unsigned i = 0; i < M * D; i++)
        values[i] = -120;
    values[D + 3] = -119;
    bytes[D + 3] = 1;
    const struct oct_image_form forms[] = {form_of(OCT_SAMPLE_F32, OCT_QUANTITY_INTENSITY_DB),
                                           form_of(OCT_SAMPLE_U8, OCT_QUANTITY_INTENSITY_DB)};
    for (unsigned i = 0; i < 2; i++) {
        struct oct_image_frame bscan = {.pixels = i ? (void *)bytes : values, .hi = 50};
        struct oct_surface_pixels pixels;
        for (unsigned missing = 0; missing < 2; missing++) {
            bscan.info.missing_lines = missing;
            oct_surface_pixels_begin(&pixels, &forms[i], &bscan);
            assert_int_equal(oct_surface_pixels_came(&pixels, 0), missing == 0);
            assert_true(oct_surface_pixels_came(&pixels, 1));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_light_is_not_finite),
        cmocka_unit_test(counts_become_decibels),
        cmocka_unit_test(a_picture_of_bytes_goes_from_lo_to_hi),
        cmocka_unit_test(lines_that_never_came_have_no_light),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
