/* The k map and the dispersion phase from mirrors of a synthetic spectrometer with truth. */
#include "analysis/calibrate/kmap.h"
#include "analysis/calibrate/source.h"
#include "pipeline/plan/grid.h"
#include "test/rig/spectrometer.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define LINES 32u
#define MOST_MIRRORS 8u

/* Mirrors before one spectrometer, and what is found of them. */
struct scene {
    struct oct_spectrometer s;
    struct oct_fringe fringes[MOST_MIRRORS];
    unsigned n;
    struct oct_kmap kmap;
    uint32_t which;
    struct oct_error err;
};

static void end_scene(struct scene *x)
{
    for (unsigned m = 0; m < x->n; m++)
        oct_fringe_finish(&x->fringes[m]);
    oct_kmap_finish(&x->kmap);
    oct_spectrometer_finish(&x->s);
}

/* A negative depth is one on the other side. turns 0: the mirror rests. */
static enum oct_err see_mirror(struct scene *x, double depth_px, double turns,
                               struct oct_error *err)
{
    const struct oct_reflector mirror = {depth_px, OCT_SPECTROMETER_SHARE, 0.3 + depth_px};
    const uint32_t n = x->s.setup.n_samples;
    uint16_t *lines = malloc((size_t)LINES * n * sizeof(*lines));
    assert_non_null(lines);
    uint64_t n_clipped;
    assert_int_equal(
        oct_spectrometer_bscan(&x->s, &mirror, 1, turns, LINES, x->n + 1, lines, &n_clipped, NULL),
        OCT_OK);
    enum oct_err e =
        oct_fringe_find(&x->fringes[x->n++], lines, LINES, n, NULL, x->s.setup.bits, err);
    free(lines);
    return e;
}

static void see_mirrors(struct scene *x, const struct oct_spectrometer_setup *setup,
                        const double *depths, unsigned n, double turns)
{
    *x = (struct scene){.n = 0};
    oct_spectrometer_rig(&x->s, setup);
    for (unsigned m = 0; m < n; m++)
        if (see_mirror(x, depths[m], turns, &x->err))
            fail_msg("mirror %u at %g px: %s", m, depths[m], x->err.text);
}

static void find(struct scene *x, unsigned order)
{
    const struct oct_kmap_setup setup = {.order = order};
    if (oct_kmap_find(&x->kmap, x->fringes, x->n, &setup, &x->which, &x->err))
        fail_msg("%s", x->err.text);
}

/* How far the k map lies from the truth, camera samples rms over the half width of the source, but
 * for the scale and the zero of k, which no map has. */
static double map_error_px(const struct scene *x)
{
    const uint32_t n = x->s.setup.n_samples;
    double first, last, sums[5] = {0}, square = 0, count = 0;
    oct_source_half(x->s.source, n, &first, &last);
    for (uint32_t i = (uint32_t)ceil(first); i <= last; i++) {
        const double t = x->s.place[i], k = x->kmap.k[i];
        sums[0]++;
        sums[1] += t;
        sums[2] += k;
        sums[3] += t * t;
        sums[4] += t * k;
    }
    const double slope =
        (sums[0] * sums[4] - sums[1] * sums[2]) / (sums[0] * sums[3] - sums[1] * sums[1]);
    const double zero = (sums[2] - slope * sums[1]) / sums[0];
    for (uint32_t i = (uint32_t)ceil(first); i <= last; i++) {
        const double off = (x->kmap.k[i] - zero) / slope - x->s.place[i];
        square += pow(off / x->s.slope[i], 2);
        count++;
    }
    return sqrt(square / count);
}

/* What the truth's dispersion is over the spectrum: theta at camera sample i is a polynomial of t,
 * t -1 at the first sample and 1 at the last, by four samples of it. */
static void true_coefficients(const struct oct_spectrometer *s, double a[4])
{
    const double last = s->upsampled - 1, n = s->setup.n_samples - 1;
    const double q0 = s->place[0], q1 = s->place[(uint32_t)n];
    const double zoom = (q1 - q0) / last,
                 shift = (q0 + q1) / last - 1; /* of t: grid from spectrum */
    a[3] = s->setup.a3 * pow(zoom, 3);
    a[2] = zoom * zoom * (s->setup.a2 + 3 * s->setup.a3 * shift);
}

static void assert_truth(const struct scene *x, double map_px, double a2_part)
{
    double a[OCT_MAX_DISPERSION_ORDER + 1], rms, truth[4];
    oct_kmap_coefficients(&x->kmap, a, &rms);
    true_coefficients(&x->s, truth);
    const double off = map_error_px(x);
    if (!(off < map_px) || !(fabs(a[2] / truth[2] - 1) < a2_part))
        fail_msg("map off by %g px (allowed %g), a2 %g, truth %g", off, map_px, a[2], truth[2]);
}

/* The synthetic spectrometer's goal is 0.02 px and 1 %; this is what it is found with. */
TEST(map_and_dispersion_are_found)
{
    static const double depths[] = {60, 300, 500, 700, 920};
    struct oct_spectrometer_setup lumpy = oct_spectrometer_standard, falling = lumpy, steep = lumpy;
    lumpy.bump = 0.5;
    lumpy.snr_db = 45;
    falling.span_nm = -falling.span_nm;
    steep.quadratic = 0.08;
    steep.cubic = -0.03;
    steep.a2 = -80;
    steep.a3 = 40;
    const struct oct_spectrometer_setup *const setups[] = {NULL, &lumpy, &falling, &steep};
    for (unsigned i = 0; i < 4; i++)
        for (int rests = 0; rests < 2; rests++) {
            struct scene x;
            const unsigned n = i == 3 ? 4 : 5; /* the steep one's last depth is beyond Nyquist */
            see_mirrors(&x, setups[i], depths, n, rests ? 0 : 1);
            find(&x, 0);
            assert_truth(&x, 0.0015, 0.004);
            for (unsigned m = 0; m < n; m++) {
                assert_int_equal(x.kmap.mirrors[m].side, 1);
                assert_true(x.fringes[m].coherence > 0.98);
            }
            end_scene(&x);
        }
}

TEST(two_depths_are_enough_and_one_takes_no_dispersion)
{
    static const double depths[] = {300, 500};
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    struct scene x;
    see_mirrors(&x, NULL, depths, 2, 1);
    find(&x, 0);
    assert_true(x.kmap.has_theta);
    assert_truth(&x, 0.0015, 0.004);
    end_scene(&x);
    setup.a2 = setup.a3 = 0;
    see_mirrors(&x, &setup, depths, 1, 1);
    find(&x, 0);
    assert_false(x.kmap.has_theta);
    assert_true(map_error_px(&x) < 0.002);
    for (uint32_t i = 0; i < x.kmap.n_samples; i++)
        assert_true(x.kmap.theta[i] == 0);
    end_scene(&x);
}

/* The camera sees cos(-phi) = cos(phi): what tells is that three phases agree in one way alone. */
TEST(a_mirror_on_the_other_side_is_known)
{
    static const double depths[] = {250, -420, 640};
    static const int sides[] = {1, -1, 1};
    struct scene x;
    for (unsigned n = 3; n >= 2; n--) {
        see_mirrors(&x, NULL, depths, n, 1);
        const struct oct_kmap_setup setup = {.sides = n == 2 ? sides : NULL};
        assert_int_equal(oct_kmap_find(&x.kmap, x.fringes, n, &setup, &x.which, &x.err), OCT_OK);
        assert_truth(&x, 0.0015, 0.004);
        for (unsigned m = 0; m < n; m++)
            assert_int_equal(x.kmap.mirrors[m].side, sides[m]);
        end_scene(&x);
    }
}

/* What octd computes with the files: places and phases on its grid, widths by the exact sum. */
TEST(octd_gets_what_was_found)
{
    static const double depths[] = {150, 500, 920};
    struct oct_geometry g;
    struct oct_calibration cal;
    struct scene x;
    see_mirrors(&x, NULL, depths, 3, 1);
    find(&x, 0);
    const uint32_t n = x.s.setup.n_samples;
    assert_int_equal(oct_geometry_init(&g, n, 2, 1, 0, 0, OCT_SAMPLE_F32, NULL), OCT_OK);
    assert_int_equal(oct_kmap_calibration(&x.kmap, &g, 1, &cal, NULL), OCT_OK);
    assert_int_equal(cal.n_kmap, n);
    assert_true(fabs(cal.kmap_px[0]) < 1e-9 && fabs(cal.kmap_px[n - 1] - (n - 1)) < 1e-9);
    assert_int_equal(cal.n_dispersion, g.upsampled);
    double *place = malloc(3 * n * sizeof(*place)), *theta = place + n, *counts = theta + n;
    struct oct_k_grid grid;
    assert_non_null(place);
    assert_int_equal(oct_k_grid_init(&grid, &g, &cal, NULL), OCT_OK);
    for (uint32_t i = 0; i < n; i++) {
        place[i] = oct_k_grid_place(&grid, 2 * (g.left + i));
        const double *phi = cal.dispersion + 2 * (size_t)lround(place[i]);
        theta[i] = atan2(-phi[1], phi[0]);
    }
    const struct oct_spectrometer_reading found = {.place = place, .theta = theta};
    for (unsigned m = 0; m < 3; m++) {
        const struct oct_reflector mirror = {depths[m], OCT_SPECTROMETER_SHARE, 1};
        double at, width, best_at, best, height;
        oct_spectrometer_light(&x.s, &mirror, 1, counts);
        oct_spectrometer_rig_peak(&x.s, counts, &found, depths[m], &at, &width, &height);
        oct_spectrometer_rig_peak(&x.s, counts, NULL, depths[m], &best_at, &best, &height);
        assert_true(fabs(at - depths[m]) < 8); /* theta's linear part is a depth */
        if (!(fabs(width / best - 1) < 0.005))
            fail_msg("depth %g: width %g px, with the truth %g", depths[m], width, best);
        const double limit = oct_source_limit_px(x.fringes[m].envelope, place, n, g.upsampled);
        if (!(fabs(limit / best - 1) < 0.01))
            fail_msg("depth %g: limit %g px, with the truth %g", depths[m], limit, best);
    }
    oct_k_grid_finish(&grid);
    oct_calibration_finish(&cal);
    free(place);
    end_scene(&x);
}

/* ---- what is no mirror ---- */

static void assert_fault(const struct oct_spectrometer_setup *setup,
                         const struct oct_reflector *reflectors, unsigned n, double turns,
                         enum oct_fringe_fault fault, const char *said)
{
    struct oct_spectrometer s;
    struct oct_fringe fringe;
    struct oct_error err = {.text = ""};
    uint64_t n_clipped;
    oct_spectrometer_rig(&s, setup);
    uint16_t *lines = malloc((size_t)LINES * s.setup.n_samples * sizeof(*lines));
    assert_non_null(lines);
    assert_int_equal(
        oct_spectrometer_bscan(&s, reflectors, n, turns, LINES, 7, lines, &n_clipped, NULL),
        OCT_OK);
    enum oct_err e =
        oct_fringe_find(&fringe, lines, LINES, s.setup.n_samples, NULL, s.setup.bits, &err);
    if (fringe.fault != fault || (fault && !strstr(err.text, said)))
        fail_msg("%s: fault %d '%s'", said, fringe.fault, err.text);
    assert_int_equal(e, fault ? OCT_E_FORMAT : OCT_OK);
    free(lines);
    oct_fringe_finish(&fringe);
    oct_spectrometer_finish(&s);
}

TEST(what_is_no_mirror_is_told_by_name)
{
    struct oct_spectrometer_setup bright = oct_spectrometer_standard, bump = bright, humps = bright;
    humps.bump = 1;
    bright.gain = 2;
    bump.bump = 0.6;
    const double share = OCT_SPECTROMETER_SHARE;
    const struct oct_reflector mirror = {400, share, 0}, zero = {0, share, 0},
                               near = {30, share, 0}, far = {900, share, 0},
                               deep = {1010, share, 0}, beyond = {1060, share, 0},
                               two[] = {{200, share, 0}, {420, share * 0.4, 1}},
                               faint[] = {{200, share, 0}, {420, share * 0.2, 1}},
                               weak = {400, 3e-5, 0};
    for (int rests = 0; rests < 2; rests++) {
        const double turns = rests ? 0 : 1;
        assert_fault(NULL, &mirror, 1, turns, OCT_FRINGE_GOOD, "");
        assert_fault(&bump, &mirror, 1, turns, OCT_FRINGE_GOOD, "");
        /* The two humps of a chirped fringe are no two fringes. */
        assert_fault(&humps, &far, 1, turns, OCT_FRINGE_GOOD, "");
        assert_fault(NULL, faint, 2, turns, OCT_FRINGE_GOOD, "");
        assert_fault(&bright, &mirror, 1, turns, OCT_FRINGE_SATURATED, "saturated");
        assert_fault(NULL, NULL, 0, turns, OCT_FRINGE_NONE, "no fringe");
        assert_fault(&bump, NULL, 0, turns, OCT_FRINGE_NONE, "no fringe");
        assert_fault(NULL, &weak, 1, turns, OCT_FRINGE_NONE, "no fringe");
        assert_fault(NULL, two, 2, turns, OCT_FRINGE_TWO, "two fringes");
        assert_fault(NULL, &deep, 1, turns, OCT_FRINGE_ALIASED, "beyond Nyquist");
        assert_fault(NULL, &beyond, 1, turns, OCT_FRINGE_ALIASED, "beyond Nyquist");
        assert_fault(NULL, &near, 1, turns, OCT_FRINGE_SLOW, "depth zero");
        if (!rests)
            assert_fault(NULL, &zero, 1, turns, OCT_FRINGE_SLOW, "depth zero");
    }
}

static void assert_refused(const double *depths, unsigned n, uint32_t which, const char *said)
{
    const struct oct_kmap_setup setup = {.order = 0};
    struct scene x;
    see_mirrors(&x, NULL, depths, n, 1);
    assert_int_equal(oct_kmap_find(&x.kmap, x.fringes, n, &setup, &x.which, &x.err), OCT_E_FORMAT);
    if (!strstr(x.err.text, said) || x.which != which)
        fail_msg("'%s' of mirror %u", x.err.text, x.which);
    end_scene(&x);
}

/* A Gaussian of amplitude exp(-x^2 / (2 s^2)) over q is as wide as exp(-(2 pi d s / P2)^2) is high
 * at half: 2 sqrt(ln 2) P2 / (2 pi s). */
TEST(widths_of_a_source_are_those_of_its_transform)
{
    enum { N = 512, P2 = 4096 };
    double amplitude[N], im[N], re[N], place[N], first, last, at;
    const double s = 60, expected = sqrt(log(2)) * P2 / (PI * 2 * s);
    for (unsigned i = 0; i < N; i++) {
        const double x = i - 255.5, turn = 2 * PI * 321.3 * 2 * i / P2;
        place[i] = 100 + 2.0 * i;
        amplitude[i] = 7 * exp(-0.5 * x * x / (s * s));
        re[i] = amplitude[i] * cos(turn);
        im[i] = amplitude[i] * sin(turn);
    }
    assert_true(fabs(oct_source_limit_px(amplitude, place, N, P2) / expected - 1) < 1e-3);
    assert_true(fabs(oct_source_peak_px(re, im, place, N, P2, 320, &at) / expected - 1) < 1e-3);
    assert_true(fabs(at - 321.3) < 1e-3);
    assert_true(fabs(oct_source_psf(amplitude, place, N, P2, expected / 2) - 0.5) < 1e-3);
    oct_source_half(amplitude, N, &first, &last);
    assert_true(fabs(last - first - 2 * sqrt(2 * log(2)) * s) < 0.01);
    assert_true(isnan(oct_source_limit_px(im, place, 1, P2)));
    memset(amplitude, 0, sizeof(amplitude));
    assert_true(isnan(oct_source_limit_px(amplitude, place, N, P2)));
}

TEST(mirrors_that_do_not_agree_are_told)
{
    static const double same[] = {300, 301, 303}, aliased[] = {300, 1400, 500, 700};
    assert_refused(same, 3, 3, "same depth");
    assert_refused(aliased, 4, 1, "only if it was aliased");
}
