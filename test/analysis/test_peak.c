/* The axial peak: places, widths, noise and side lobes of A-lines that are known. */
#include "analysis/calibrate/peak.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { D = 1024 };

/* Noise of one spectrum: exponential intensities, from a generator of its own. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

/* What a mirror at `depth` makes of a source: |sum over k of s(k) exp(..)|^2, top 1. The source has
 * `n` of 4096 steps: flat, Hann's, or Gauss's of which the intensity is `fwhm` wide. */
enum source { FLAT, HANN, GAUSS };

static double width_of(enum source source, unsigned n, double fwhm)
{
    if (source == GAUSS)
        return fwhm;
    /* of a flat spectrum 0.885893 2 pi / width, of Hann's 1.440593; sums, not integrals, differ by
     * less than 1e-5 */
    return (source == FLAT ? 0.885893 : 1.440593) * 4096 / n;
}

static void add_mirror(float *line, enum source source, unsigned n, double fwhm, double depth,
                       double top)
{
    double total = 0, *s = malloc(n * sizeof(*s));
    assert_non_null(s);
    for (unsigned i = 0; i < n; i++) {
        const double t = (i + 0.5) / n - 0.5, w = PI * fwhm * t * n / 4096;
        s[i] = source == FLAT   ? 1
               : source == HANN ? 0.5 + 0.5 * cos(2 * PI * t)
                                : exp(-w * w / (2 * log(2)));
        total += s[i];
    }
    for (int d = 0; d < D; d++) {
        double re = 0, im = 0, a = 2 * PI * (d - depth) / 4096;
        for (unsigned i = 0; i < n; i++) {
            re += s[i] * cos(a * i);
            im += s[i] * sin(a * i);
        }
        line[d] += (float)(top * (re * re + im * im) / total / total);
    }
    free(s);
}

static bool is_near(double got, double want, double most)
{
    if (fabs(got - want) <= most)
        return true;
    print_error("%.6f instead of %.6f +- %.6f\n", got, want, most);
    return false;
}

TEST(places_and_widths_are_those_of_the_source)
{
    static const struct {
        enum source source;
        unsigned n;
        double fwhm;
    } sources[] = {{FLAT, 1664, 0},  {FLAT, 832, 0},   {HANN, 1664, 0},  {HANN, 832, 0},
                   {GAUSS, 4000, 4}, {GAUSS, 3000, 6}, {GAUSS, 1664, 10}};
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        for (int k = 0; k < 4; k++) {
            static float line[D];
            const double depth = 300 + k * 0.27, top = 1e7;
            struct oct_peak p;
            memset(line, 0, sizeof(line));
            add_mirror(line, sources[i].source, sources[i].n, sources[i].fwhm, depth, top);
            assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_FOUND);
            const double fwhm = width_of(sources[i].source, sources[i].n, sources[i].fwhm);
            assert_true(is_near(p.depth_px, depth, 1e-3));
            assert_true(is_near(p.fwhm_px / fwhm, 1, 1e-4));
            assert_true(is_near(p.top / top, 1, 1e-5));
            assert_true(p.share > 0.85);
        }
}

TEST(side_lobes_are_those_of_the_source)
{
    static const struct {
        enum source source;
        double side_db, px_times_n; /* of the first lobe, from the top */
    } sources[] = {{FLAT, -13.26, 1.430 * 4096}, {HANN, -31.47, 2.361 * 4096}};
    for (size_t i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            static float line[D];
            struct oct_peak p;
            const double depth = 300 + k * 0.27;
            memset(line, 0, sizeof(line));
            add_mirror(line, sources[i].source, 1664, 0, depth, 1e7);
            assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_FOUND);
            assert_true(is_near(p.side_lobe_db, sources[i].side_db, 0.02));
            assert_true(is_near(fabs(p.side_lobe_px - depth), sources[i].px_times_n / 1664, 0.02));
            assert_true(p.side_lobe_stands_out);
            assert_true(is_near(p.dynamic_range_db, -sources[i].side_db, 0.02));
        }
    /* Gauss's has none. */
    static float line[D];
    struct oct_peak p;
    add_mirror(line, GAUSS, 1664, 10, 300.4, 1e7);
    assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_FOUND);
    assert_true(!(p.side_lobe_db > -200));
}

/* The mean of n A-lines of |mirror + noise|^2, noise of power 1. */
static void noisy_line(float *line, double depth, double snr_db, unsigned n, uint64_t *seed)
{
    static float mirror[D];
    memset(mirror, 0, sizeof(mirror));
    add_mirror(mirror, GAUSS, 1664, 7, depth, pow(10, snr_db / 10));
    for (int d = 0; d < D; d++) {
        double sum = 0;
        for (unsigned j = 0; j < n; j++) {
            const double r = sqrt(-log(uniform(seed))), a = 2 * PI * uniform(seed);
            const double re = sqrt((double)mirror[d]) + r * cos(a), im = r * sin(a);
            sum += re * re + im * im;
        }
        line[d] = (float)(sum / n);
    }
}

TEST(noise_is_measured_and_costs_no_width)
{
    static const struct {
        unsigned n;
        double snr_db, floor_share, width_share, depth_px; /* most by which it may be off */
    } cases[] = {{1, 30, 0.25, 0.15, 0.4},
                 {1, 45, 0.25, 0.03, 0.1},
                 {64, 25, 0.03, 0.05, 0.1},
                 {240, 40, 0.02, 0.01, 0.02}};
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int k = 0; k < 4; k++) {
            static float line[D];
            const double depth = 150 + 200.3 * k;
            const struct oct_peak_search search = {8, cases[i].n, OCT_PEAK_MIN_SNR_DB};
            struct oct_peak p;
            noisy_line(line, depth, cases[i].snr_db, cases[i].n, &seed);
            assert_int_equal(oct_peak_find(&p, line, D, &search), OCT_PEAK_FOUND);
            assert_true(is_near(p.floor, 1, cases[i].floor_share));
            assert_true(is_near(p.fwhm_px / 7, 1, cases[i].width_share));
            assert_true(is_near(p.depth_px, depth, cases[i].depth_px));
            assert_true(is_near(p.snr_db, cases[i].snr_db, 1.2));
            assert_false(p.side_lobe_stands_out);
            assert_true(p.dynamic_range_db == p.snr_db);
            assert_true(p.share > (i == 0 ? 0.7 : 0.9));
        }
}

/* The half lies between the floor and the top: what the noise adds to all pixels alike widens
 * nothing. */
TEST(the_half_is_above_the_floor)
{
    static float line[D];
    const struct oct_peak_search search = {8, 1000000, 15};
    struct oct_peak p;
    add_mirror(line, GAUSS, 1664, 7, 500.3, 49);
    for (int d = 0; d < D; d++)
        line[d] += 1;
    assert_int_equal(oct_peak_find(&p, line, D, &search), OCT_PEAK_FOUND);
    assert_true(is_near(p.floor, 1, 1e-4));
    assert_true(is_near(p.top, 50, 1e-3));
    assert_true(is_near(p.fwhm_px / 7, 1, 1e-3));
}

TEST(noise_alone_is_no_peak)
{
    uint64_t seed = 3;
    for (int i = 0; i < 200; i++) {
        static float line[D];
        struct oct_peak p;
        for (int d = 0; d < D; d++)
            line[d] = (float)-log(uniform(&seed));
        assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_WEAK);
        assert_true(p.snr_db < OCT_PEAK_MIN_SNR_DB && p.snr_db > 5);
        assert_true(isnan(p.fwhm_px) && isnan(p.side_lobe_db));
    }
}

TEST(a_second_reflector_and_dc_are_no_part_of_the_peak)
{
    static float line[D];
    struct oct_peak p;
    uint64_t seed = 1;
    noisy_line(line, 600.25, 40, 16, &seed);
    add_mirror(line, GAUSS, 1664, 7, 0, 1e9); /* its flank goes on behind the first pixels */
    add_mirror(line, GAUSS, 1664, 7, 400.5, 100);
    const struct oct_peak_search search = {8, 16, 15};
    assert_int_equal(oct_peak_find(&p, line, D, &search), OCT_PEAK_FOUND);
    assert_true(is_near(p.depth_px, 600.25, 0.1));
    assert_true(is_near(p.side_lobe_px, 400.5, 0.3));
    assert_true(is_near(p.side_lobe_db, -20, 0.5));
    assert_true(p.side_lobe_stands_out);
    /* Two of the same height are no single reflector. */
    add_mirror(line, GAUSS, 1664, 7, 400.5, 9800);
    memset(line, 0, 40 * sizeof(float));
    assert_int_equal(oct_peak_find(&p, line, D, &search), OCT_PEAK_FOUND);
    assert_true(p.share < 0.55 && p.share > 0.4);
}

TEST(what_cannot_be_measured_is_said)
{
    static float line[D];
    static const float wrong[] = {NAN, INFINITY, -1};
    struct oct_peak p;
    assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_WEAK); /* dark */
    for (int d = 0; d < D; d++)
        line[d] = 5;
    assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_WEAK); /* even */
    assert_int_equal(oct_peak_find(&p, line, 63, NULL), OCT_PEAK_NO_NUMBERS);
    for (int i = 0; i < 3; i++) {
        line[700] = wrong[i];
        assert_int_equal(oct_peak_find(&p, line, D, NULL), OCT_PEAK_NO_NUMBERS);
        assert_true(isnan(p.floor) && isnan(p.snr_db));
    }
    static const double ends[] = {1022.4, 1.6};
    for (int i = 0; i < 2; i++) {
        const struct oct_peak_search search = {1, 1, 15};
        memset(line, 0, sizeof(line));
        add_mirror(line, GAUSS, 1664, 10, ends[i], 1e6);
        assert_int_equal(oct_peak_find(&p, line, D, &search), OCT_PEAK_AT_END);
        assert_true(isnan(p.fwhm_px));
        assert_true(is_near(p.depth_px, ends[i], 0.3));
    }
    assert_string_equal(oct_peak_state_text(OCT_PEAK_WEAK), "no peak");
}
