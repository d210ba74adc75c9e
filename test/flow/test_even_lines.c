/* Pictures of uneven scans on an even grid. */
#include "pipeline/flow/even_lines.h"

#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 64, D = 5 };

struct rig {
    struct oct_scan scan;
    struct oct_geometry geometry;
    struct oct_even_lines *even;
    struct oct_image_form form;
    float values[M][D];
    uint8_t pixels[M][D], valid[M];
};

static void open_rig(struct rig *r, double phase, double delay)
{
    *r = (struct rig){.scan = {.pattern = OCT_SCAN_RASTER_BOTH,
                               .n_lines = M,
                               .n_bscans = 2,
                               .flyback_lines = 4,
                               .delay_lines = delay,
                               .phase_deg = phase},
                      .geometry = {.n_lines = M, .depth = D},
                      .form = {.type = OCT_SAMPLE_U8}};
    memset(r->valid, 1, M);
    must(oct_even_lines_create(&r->even, &r->scan, &r->geometry, &failure));
}

static void apply(struct rig *r, uint32_t b)
{
    const struct oct_image_frame frame = {
        .form = &r->form, .info = {.number = b}, .pixels = r->pixels, .values = &r->values[0][0]};
    oct_even_lines_apply(r->even, &frame, r->valid);
}

TEST(weights_add_up_to_1_and_no_line_is_left_out)
{
    const double phases[] = {0, 0, 45, 80, 90}, delays[] = {0.37, 2.5, 1.2, 0, 0};
    for (unsigned t = 0; t < 5; t++)
        for (int turned = 0; turned < 2; turned++) {
            struct rig r;
            double of_line[M] = {0};
            open_rig(&r, phases[t], delays[t]);
            for (uint32_t j = 0; j < M; j++) {
                double sum = 0;
                for (uint32_t k = 0; k < M; k++) {
                    const double w = oct_even_lines_weight(r.even, turned, j, k);
                    assert_true(w >= 0);
                    sum += w;
                    of_line[k] += w;
                }
                assert_true(fabs(sum - 1) < 1e-6);
            }
            for (uint32_t k = 0; k < M; k++)
                assert_true(of_line[k] > 0);
            oct_even_lines_destroy(r.even);
        }
}

TEST(a_slope_along_the_way_comes_back_as_a_slope)
{
    const double phases[] = {0, 50};
    for (unsigned t = 0; t < 2; t++)
        for (uint32_t b = 0; b < 2; b++) {
            struct rig r;
            open_rig(&r, phases[t], 2.37);
            for (uint32_t k = 0; k < M; k++)
                for (int d = 0; d < D; d++) {
                    const double column = oct_scan_column(&r.scan, b, k);
                    r.values[k][d] = (float)(2 * column + d);
                    r.pixels[k][d] = (uint8_t)lround(3 * column + d + 5);
                }
            apply(&r, b);
            for (int j = 2; j < M - 2; j++)
                for (int d = 0; d < D; d++) {
                    assert_true(fabs((double)r.values[j][d] - (2 * j + d)) < 0.05);
                    assert_true(abs(r.pixels[j][d] - (3 * j + d + 5)) <= 1);
                }
            oct_even_lines_destroy(r.even);
        }
}

TEST(lines_that_did_not_come_have_no_weight)
{
    struct rig r;
    open_rig(&r, 0, 2.25);
    for (int k = 0; k < M; k++)
        for (int d = 0; d < D; d++)
            r.values[k][d] = k == 10 ? -120 : 7;
    r.valid[10] = 0;
    apply(&r, 0);
    int n_missing = 0;
    for (int j = 0; j < M; j++) {
        assert_true(r.values[j][0] == -120 || fabsf(r.values[j][0] - 7) < 1e-5F);
        n_missing += r.values[j][0] == -120;
    }
    assert_int_equal(n_missing, 1);
    oct_even_lines_destroy(r.even);
}

TEST(the_widest_bscan_is_made_ready_at_once)
{
    struct oct_even_lines *even;
    const struct oct_scan scan = {.pattern = OCT_SCAN_RASTER_BOTH,
                                  .n_lines = OCT_MAX_LINES,
                                  .n_bscans = 2,
                                  .flyback_lines = 4,
                                  .delay_lines = 2.25,
                                  .phase_deg = 60};
    const struct oct_geometry geometry = {.n_lines = OCT_MAX_LINES, .depth = 1};
    must(oct_even_lines_create(&even, &scan, &geometry, &failure)); /* each line looked at once */
    double sum = 0;
    for (uint32_t k = OCT_MAX_LINES / 3 - 4; k < OCT_MAX_LINES; k++)
        sum += oct_even_lines_weight(even, true, OCT_MAX_LINES / 2, k);
    assert_true(fabs(sum - 1) < 1e-6);
    oct_even_lines_destroy(even);
}
