/* Where the A-lines of a scan lie. */
#include "pipeline/plan/scan.h"

#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { M = 12, V = 8 };

static struct oct_scan scan_of(enum oct_scan_pattern pattern)
{
    return (struct oct_scan){
        .pattern = pattern, .n_lines = M, .n_bscans = V, .width_um = 1200, .height_um = 800};
}

static void assert_at(const struct oct_scan *scan, uint32_t b, uint32_t j, double x, double y)
{
    double um[2];
    oct_scan_position(scan, b, j, um);
    assert_true(fabs(um[0] - x) < 1e-9 && fabs(um[1] - y) < 1e-9);
}

TEST(patterns_lie_where_their_equations_say)
{
    struct oct_scan s = scan_of(OCT_SCAN_RASTER);
    assert_at(&s, 0, 0, -550, -350);
    assert_at(&s, V - 1, M - 1, 550, 350);
    s = scan_of(OCT_SCAN_LINE);
    assert_at(&s, 5, 0, -550, 0);
    s = scan_of(OCT_SCAN_CIRCLE);
    assert_at(&s, 3, 0, 600 * cos(PI / M), 600 * sin(PI / M));
    s = scan_of(OCT_SCAN_RADIAL);
    assert_at(&s, 0, M - 1, 550, 0);
    assert_at(&s, V / 2, M - 1, 0, 550);
    s = scan_of(OCT_SCAN_SPIRAL); /* half a turn, and a turn and a half, from the middle */
    double um[2], most = 0;
    oct_scan_position(&s, 0, 0, um);
    assert_true(fabs(hypot(um[0], um[1]) - 600 * 2 * 0.5 / M / V) < 1e-9);
    for (uint32_t b = 0; b < V; b++)
        for (uint32_t j = 0; j < M; j++) {
            oct_scan_position(&s, b, j, um);
            most = fmax(most, hypot(um[0], um[1]));
        }
    assert_true(most < 600 && most > 600 * (1 - 2.0 / M / V));
    s = scan_of(OCT_SCAN_LISSAJOUS);
    const double w = (2 + 3.5 / M) / V;
    assert_at(&s, 2, 3, 600 * sin(2 * PI * 3.5 / M), 400 * sin(2 * PI * (V - 1) * w));
}

TEST(centre_and_angle_move_every_pattern)
{
    struct oct_scan s = scan_of(OCT_SCAN_RASTER);
    s.centre_um[0] = 10;
    s.centre_um[1] = 20;
    s.angle_deg = 90; /* x becomes y */
    assert_at(&s, 0, 0, 10 + 350, 20 - 550);
}

TEST(repeats_and_line_repeats_lie_at_one_place)
{
    struct oct_scan s = scan_of(OCT_SCAN_RASTER);
    s.protocol = (struct oct_scan_protocol){.repeats = 2, .interleave = 2, .line_repeats = 3};
    const uint32_t places[V] = {0, 1, 0, 1, 2, 3, 2, 3};
    for (uint32_t b = 0; b < V; b++) {
        assert_int_equal(oct_scan_place(&s, b), places[b]);
        assert_at(&s, b, 4, (1.5 / 4 - 0.5) * 1200, ((places[b] + 0.5) / 4 - 0.5) * 800);
        assert_int_equal(places[oct_scan_bscan(&s, places[b])], places[b]);
        assert_true(oct_scan_bscan(&s, places[b]) <= b);
    }
    assert_int_equal(oct_scan_n_places(&s), 4);
}

TEST(of_both_ways_every_second_bscan_is_turned_and_the_lag_has_two_signs)
{
    struct oct_scan s = scan_of(OCT_SCAN_RASTER_BOTH);
    double um[2];
    s.flyback_lines = 4;
    s.delay_lines = 2.25;
    assert_int_equal(oct_scan_lag(&s), 2);
    assert_int_equal(oct_scan_sent_lines(&s), M + 4);
    assert_true(!oct_scan_is_turned(&s, 0) && oct_scan_is_turned(&s, 1) && oct_scan_is_uneven(&s));
    assert_true(fabs(oct_scan_column(&s, false, 5) - 4.75) < 1e-12);
    assert_true(fabs(oct_scan_column(&s, true, 5) - 5.25) < 1e-12);
    oct_scan_way(&s, 1, 0, um); /* in the order of time the mirror comes from the right */
    assert_true(fabs(um[0] - 550) < 1e-9);
    oct_scan_sample(&s, 1, 5, um);
    assert_true(fabs(um[0] - (5.75 / M - 0.5) * 1200) < 1e-9);
    s.delay_lines = 2;
    assert_false(oct_scan_is_uneven(&s));
}

TEST(what_begins_within_a_volume_lies_where_its_bscans_lay)
{
    double file[V * M][2];
    struct oct_scan s = scan_of(OCT_SCAN_RASTER_BOTH), file_scan = scan_of(OCT_SCAN_FILE);
    for (int i = 0; i < V * M; i++)
        file[i][0] = file[i][1] = i;
    file_scan.file = (const double(*)[2])file;
    s.n_bscans = file_scan.n_bscans = V - 1; /* 7: odd, so a volume ends and begins forwards */
    s.first_bscan = file_scan.first_bscan = 5;
    const uint32_t numbers[] = {5, 6, 0, 1, 2};
    for (uint32_t b = 0; b < 5; b++) {
        assert_int_equal(oct_scan_is_turned(&s, b), numbers[b] % 2);
        assert_int_equal(oct_scan_place(&s, b), numbers[b]);
        assert_at(&file_scan, b, 2, numbers[b] * M + 2, numbers[b] * M + 2);
    }
    file_scan.file = NULL;
    double um[2];
    oct_scan_position(&file_scan, 0, 0, um);
    assert_true(isnan(um[0]) && isnan(um[1]));
}

TEST(a_resonant_mirror_is_fastest_in_the_middle)
{
    struct oct_scan s = scan_of(OCT_SCAN_RASTER);
    double last = -1, um[2];
    s.phase_deg = 60;
    for (uint32_t k = 0; k < M; k++) {
        const double column = oct_scan_column(&s, false, k);
        const double phase = 60 * PI / 180 * (2 * (k + 0.5) / M - 1);
        assert_true(fabs(column - ((sin(phase) / sin(PI / 3) + 1) / 2 * M - 0.5)) < 1e-9);
        assert_true(column > last);
        last = column;
    }
    assert_true(oct_scan_column(&s, false, M / 2) - oct_scan_column(&s, false, M / 2 - 1) > 1.1);
    oct_scan_way(&s, 0, 0, um);
    assert_true(fabs(um[0] - (oct_scan_column(&s, false, 0) + 0.5) / M * 1200 + 600) < 1e-9);
}

TEST(what_a_pattern_cannot_have_is_refused_by_its_key)
{
    struct oct_error err;
    struct oct_scan s = scan_of(OCT_SCAN_CIRCLE);
    s.phase_deg = 30;
    assert_int_equal(oct_scan_check(&s, &err), OCT_E_CONFIG);
    assert_string_equal(err.key, "scan.phase");
    s = scan_of(OCT_SCAN_SPIRAL);
    s.width_um = 0;
    assert_int_equal(oct_scan_check(&s, &err), OCT_E_CONFIG);
    assert_string_equal(err.key, "scan.width_um");
    s = scan_of(OCT_SCAN_RASTER);
    s.flyback_lines = 3;
    s.delay_lines = 3.5;
    assert_int_equal(oct_scan_check(&s, &err), OCT_E_CONFIG);
    assert_string_equal(err.key, "scan.trigger_delay_lines");
    s.delay_lines = 3;
    assert_int_equal(oct_scan_check(&s, &err), OCT_OK);
    s = scan_of(OCT_SCAN_FILE);
    assert_int_equal(oct_scan_check(&s, &err), OCT_E_CONFIG);
    assert_string_equal(err.key, "scan.positions");
    s = scan_of(OCT_SCAN_RASTER_BOTH); /* lines of a point stay apart from those of the next */
    s.protocol.line_repeats = 3;
    s.flyback_lines = 3;
    s.delay_lines = 1.4;
    assert_int_equal(oct_scan_check(&s, &err), OCT_OK);
    assert_false(oct_scan_is_uneven(&s));
    s.phase_deg = 30;
    assert_int_equal(oct_scan_check(&s, &err), OCT_E_CONFIG);
    assert_string_equal(err.key, "scan.phase");
}
