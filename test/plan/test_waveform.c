/* Waveforms of the mirrors: they stay within their limits, and are of use for most of the time. */
#include "pipeline/plan/waveform.h"

#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

static const struct oct_mirrors mirrors = {
    .line_rate_hz = 100000, .step_us = 300, .um_per_degree = 600, .volts_per_degree = 0.5};

static struct oct_scan scan_of(enum oct_scan_pattern pattern, uint32_t n_lines)
{
    return (struct oct_scan){.pattern = pattern,
                             .n_lines = n_lines,
                             .n_bscans = n_lines,
                             .width_um = 3000,
                             .height_um = 3000};
}

/* By the numbers themselves, in seconds and um: the greatest speed and acceleration, of W = 3 mm.
 */
static void check_limits(const struct oct_waveform *w)
{
    const double dt = 1e-5, step = 300e-6, field = 3000;
    for (size_t i = 0; i < w->n; i++)
        for (int axis = 0; axis < 2; axis++) {
            const double before = w->um[(i + w->n - 1) % w->n][axis], here = w->um[i][axis];
            const double after = w->um[(i + 1) % w->n][axis];
            assert_true(fabs(after - here) / dt <= 2 * field / step * 1.01);
            assert_true(fabs(after - 2 * here + before) / dt / dt <=
                        4 * field / step / step * 1.01);
        }
}

/* Takes the least flyback; returns the share of the time that is of use. */
static double make_and_check(struct oct_scan *scan)
{
    struct oct_waveform w;
    uint32_t n_useful = 0;
    must(oct_waveform_flyback(scan, &mirrors, &scan->flyback_lines, &failure));
    must(oct_waveform_init(&w, scan, &mirrors, &failure));
    check_limits(&w);
    assert_true(w.speed <= 1.01 && w.acceleration <= 1.01);
    for (uint32_t b = 0; b < scan->n_bscans; b += 7)
        for (uint32_t i = 0; i < scan->n_lines; i++) {
            double um[2];
            const size_t at = (size_t)b * oct_scan_sent_lines(scan) + i;
            oct_scan_way(scan, b, i, um);
            assert_true(fabs(um[0] - w.um[at][0]) + fabs(um[1] - w.um[at][1]) < 1e-9);
        }
    for (size_t i = 0; i < w.n; i++)
        n_useful += w.is_line[i];
    assert_int_equal(n_useful, scan->n_bscans * scan->n_lines);
    assert_true(fabs(w.useful - n_useful / (double)w.n) < 1e-12);
    const double useful = w.useful;
    oct_waveform_finish(&w);
    return useful;
}

TEST(a_raster_of_512_by_512_is_of_use_for_85_percent_of_the_time)
{
    struct oct_scan scan = scan_of(OCT_SCAN_RASTER, 512);
    assert_true(make_and_check(&scan) >= 0.85);
    scan = scan_of(OCT_SCAN_RASTER_BOTH, 512);
    scan.n_bscans = 511; /* the last goes the same way as the first: the mirror flies back once */
    assert_true(make_and_check(&scan) >= 0.85);
}

TEST(every_pattern_stays_within_what_the_mirrors_can)
{
    for (enum oct_scan_pattern p = OCT_SCAN_LINE; p <= OCT_SCAN_LISSAJOUS; p++) {
        struct oct_scan scan = scan_of(p, 256);
        const double useful = make_and_check(&scan);
        if (p == OCT_SCAN_CIRCLE || p == OCT_SCAN_LISSAJOUS)
            assert_true(useful == 1); /* they close by themselves */
        assert_true(useful > 0.7);
    }
    struct oct_scan scan = scan_of(OCT_SCAN_RASTER_BOTH, 256); /* a resonant mirror goes on */
    scan.phase_deg = 70;
    assert_true(make_and_check(&scan) > 0.7);
}

TEST(what_mirrors_cannot_follow_is_refused_with_what_they_need)
{
    struct oct_scan scan = scan_of(OCT_SCAN_RASTER, 512);
    struct oct_waveform w;
    uint32_t least;
    must(oct_waveform_flyback(&scan, &mirrors, &least, &failure));
    scan.flyback_lines = least - 1;
    must_fail(oct_waveform_init(&w, &scan, &mirrors, &failure), OCT_E_CONFIG,
              "scan.flyback_lines: ");
    scan = scan_of(OCT_SCAN_CIRCLE, 20);
    must_fail(oct_waveform_init(&w, &scan, &mirrors, &failure), OCT_E_CONFIG,
              "cannot follow the pattern circle");
    scan = scan_of(OCT_SCAN_RASTER, 512);
    scan.width_um = scan.height_um = 0;
    must_fail(oct_waveform_init(&w, &scan, &mirrors, &failure), OCT_E_CONFIG, "field's size");
    assert_true(fabs(oct_mirror_volts(&mirrors, 1200) - 1) < 1e-12);
}
