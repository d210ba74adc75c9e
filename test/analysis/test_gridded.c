/* Pictures from above of stars, spirals and other ways. */
#include "analysis/enface/gridded.h"

#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

enum { M = 48, V = 40 };

static double height_at(const double um[2])
{
    return 3 + 0.02 * um[0] - 0.013 * um[1];
}

static struct oct_image_form form_of(void)
{
    return (struct oct_image_form){.type = OCT_SAMPLE_F32,
                                   .rank = 2,
                                   .dims = {V, M},
                                   .axes = {"bscan", "line"},
                                   .of_volume = true};
}

static void fill_plane(const struct oct_scan *scan, float *values)
{
    for (uint32_t b = 0; b < V; b++)
        for (uint32_t j = 0; j < M; j++) {
            double um[2];
            oct_scan_position(scan, b, j, um);
            values[b * M + j] = (float)height_at(um);
        }
}

/* Returns the share of pixels that have a value; those inside by `within` um are the plane's. */
static double check_plane(const struct oct_scan *scan, double within, double most)
{
    const struct oct_image_form form = form_of();
    float values[V * M];
    struct oct_grid *grid;
    uint32_t height, width, n = 0;
    double pitch, um[2];
    must(oct_grid_create(&grid, scan, V, &form, &failure));
    oct_grid_size(grid, &height, &width, &pitch);
    float *out = malloc((size_t)height * width * sizeof(*out));
    assert_non_null(out);
    fill_plane(scan, values);
    oct_grid_apply(grid, values, out);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const float value = out[y * width + x];
            oct_grid_position(grid, y, x, um);
            n += isfinite(value);
            if (hypot(um[0] - scan->centre_um[0], um[1] - scan->centre_um[1]) < within)
                assert_true(fabs((double)value - height_at(um)) < most);
        }
    free(out);
    oct_grid_destroy(grid);
    return n / (double)height / width;
}

TEST(a_plane_stays_the_plane_whatever_the_way)
{
    static double file[V * M][2];
    struct oct_scan scan = {.n_lines = M,
                            .n_bscans = V,
                            .width_um = 1000,
                            .height_um = 1000,
                            .centre_um = {40, -30},
                            .angle_deg = 20};
    struct dice dice = {1};
    scan.pattern = OCT_SCAN_RADIAL;
    const double disc = check_plane(&scan, 480, 0.03);
    assert_true(fabs(disc - PI / 4) < 0.05);
    scan.pattern = OCT_SCAN_SPIRAL;
    assert_true(fabs(check_plane(&scan, 480, 0.01) - PI / 4) < 0.05);
    scan.pattern = OCT_SCAN_LISSAJOUS;
    assert_true(check_plane(&scan, 480, 0.4) > 0.8); /* sparse in two corners */
    for (int i = 0; i < V * M; i++)
        for (int axis = 0; axis < 2; axis++)
            file[i][axis] = (double)(dice_roll(&dice) % 100000) / 100 - 500;
    scan.pattern = OCT_SCAN_FILE;
    scan.file = (const double(*)[2])file;
    assert_true(check_plane(&scan, 0, 1) > 0.8);
}

/* Of a star with repeats: rows of B-scans, of which two lie at one spoke, are the same plane. */
TEST(repeats_of_a_spoke_lie_on_it)
{
    struct oct_scan scan = {
        .pattern = OCT_SCAN_RADIAL, .n_lines = M, .n_bscans = V, .width_um = 1000};
    scan.protocol = (struct oct_scan_protocol){.repeats = 2, .interleave = 2};
    assert_true(fabs(check_plane(&scan, 480, 0.2) - PI / 4) < 0.05);
    scan.first_bscan = 13; /* from the middle of a volume on */
    assert_true(fabs(check_plane(&scan, 480, 0.2) - PI / 4) < 0.05);
}

/* One A-line far from all others: pixels between them have none, and are not looked for long. */
TEST(a_file_with_one_place_far_away_takes_no_longer)
{
    enum { MANY = 1024 };
    struct oct_scan scan = {.pattern = OCT_SCAN_FILE, .n_lines = MANY, .n_bscans = MANY};
    struct oct_image_form form = form_of();
    double(*file)[2] = calloc((size_t)MANY * MANY, sizeof(*file));
    struct oct_grid *grid;
    assert_non_null(file);
    for (uint32_t i = 0; i < MANY * MANY; i++) {
        file[i][0] = i / MANY * 0.001;
        file[i][1] = i % MANY * 0.001;
    }
    file[7][0] = file[7][1] = 1e6;
    scan.file = (const double(*)[2])file;
    form.dims[0] = form.dims[1] = MANY;
    const uint64_t begun_ns = oct_clock_ns();
    must(oct_grid_create(&grid, &scan, MANY, &form, &failure));
    assert_true(oct_clock_ns() - begun_ns < UINT64_C(60000000000));
    oct_grid_destroy(grid);
    free(file);
}

TEST(what_has_not_come_is_no_value)
{
    const struct oct_scan scan = {
        .pattern = OCT_SCAN_RADIAL, .n_lines = M, .n_bscans = V, .width_um = 1000};
    const struct oct_image_form form = form_of();
    float values[V * M];
    struct oct_grid *grid;
    uint32_t height, width;
    double pitch, um[2];
    must(oct_grid_create(&grid, &scan, V, &form, &failure));
    oct_grid_size(grid, &height, &width, &pitch);
    float *out = malloc((size_t)height * width * sizeof(*out));
    assert_non_null(out);
    fill_plane(&scan, values);
    for (int i = V / 2 * M; i < V * M; i++) /* spokes of 90 degrees and more */
        values[i] = NAN;
    oct_grid_apply(grid, values, out);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            oct_grid_position(grid, y, x, um);
            const double r = hypot(um[0], um[1]), a = fmod(atan2(um[1], um[0]) + 2 * PI, PI);
            if (r > 50 && r < 480 && a > 0.1 && a < PI / 2 - 0.2)
                assert_true(isfinite(out[y * width + x]));
            if (r > 50 && r < 480 && a > PI / 2 + 0.1 && a < PI - 0.2)
                assert_true(isnan(out[y * width + x]));
        }
    free(out);
    oct_grid_destroy(grid);
}
