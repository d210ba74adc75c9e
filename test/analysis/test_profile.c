/* The average over angles and the first ring. */
#include "analysis/correlate/correlate.h"
#include "analysis/correlate/profile.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* By definition: each bin from all shifts. */
TEST(bins_are_whole_circles)
{
    enum { R = 19, SIDE = 2 * R + 1 };
    float c2d[SIDE * SIDE];
    double radius[R + 1], c1d[R + 1];
    uint32_t shifts[R + 1], random = 3;
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        c2d[i] = oct_oracle_random(&random) % 9 ? (float)oct_oracle_random(&random) : NAN;
    c2d[R * SIDE + R] = NAN; /* bin 0 has no other */
    oct_profile(c2d, R, radius, shifts, c1d);
    for (unsigned k = 0; k <= R; k++) {
        double r = 0, c = 0, n = 0, n_with_c = 0;
        for (int dy = -R; dy <= R; dy++)
            for (int dx = -R; dx <= R; dx++) {
                const float v = c2d[(dy + R) * SIDE + dx + R];
                if (floor(sqrt(dy * dy + dx * dx) + 0.5) != k)
                    continue;
                n++;
                r += sqrt(dy * dy + dx * dx);
                n_with_c += !isnan(v);
                c += isnan(v) ? 0 : (double)v;
            }
        assert_int_equal(shifts[k], n);
        assert_true(fabs(radius[k] - r / n) < 1e-12 * (k + 1));
        assert_true(k == 0 ? isnan(c1d[k]) : fabs(c1d[k] - c / n_with_c) < 1e-9 * c / n_with_c);
    }
    assert_true(fabs(radius[1] - 1.2071) < 1e-4);
    oct_profile(c2d, R, NULL, NULL, c1d);
}

/* J0, as the mean of plane waves over all directions. */
static double bessel(double x)
{
    double sum = 0;
    for (unsigned i = 0; i < 200; i++)
        sum += cos(x * sin(2 * PI * (i + 0.5) / 200));
    return sum / 200;
}

TEST(a_thin_spectral_ring_has_the_peak_of_theory)
{
    enum { R = 60, SIDE = 2 * R + 1 };
    static float c2d[SIDE * SIDE];
    double radius[R + 1], c1d[R + 1];
    for (double length = 12; length < 50; length += 9.3) {
        for (int dy = -R; dy <= R; dy++)
            for (int dx = -R; dx <= R; dx++)
                c2d[(dy + R) * SIDE + dx + R] =
                    (float)bessel(2 * PI * sqrt(dy * dy + dx * dx) / length);
        oct_profile(c2d, R, radius, NULL, c1d);
        const struct oct_ring_peak p =
            oct_profile_first_ring(radius, c1d, R, OCT_PROFILE_PROMINENCE);
        assert_true(p.found);
        assert_true(fabs(p.radius_px / length - 1.1166) < 0.004);
        assert_true(fabs(p.trough_px - 0.6098 * length) < 0.8);
        assert_true(fabs(p.c - 0.3001) < 0.01);
        assert_true(fabs(p.height - 0.7028) < 0.02);
    }
}

/* Waves of one length in all directions: a network whose ring is known. */
TEST(a_network_has_its_ring)
{
    enum { H = 260, W = 220, R = 70, N_WAVES = 60 };
    const double length = 24;
    struct oct_picture f;
    struct oct_correlator *c;
    unsigned which;
    uint32_t random = 5;
    const struct oct_correlator_setup setup = {.height = H,
                                               .width = W,
                                               .g_height = H,
                                               .g_width = W,
                                               .max_dy = R,
                                               .max_dx = R,
                                               .n_batch = 1};
    static float c2d[(2 * R + 1) * (2 * R + 1)];
    double radius[R + 1], c1d[R + 1];
    must(oct_picture_init(&f, H, W, false, &failure));
    memset(f.pixels, 0, (size_t)H * W * sizeof(float));
    for (unsigned k = 0; k < N_WAVES; k++) {
        const double angle = 2 * PI * k / N_WAVES, q = 2 * PI / length,
                     phase = 2 * PI * oct_oracle_random(&random) / 16777216.0;
        for (unsigned y = 0; y < H; y++)
            for (unsigned x = 0; x < W; x++)
                f.pixels[y * W + x] += (float)cos(q * (y * sin(angle) + x * cos(angle)) + phase);
    }
    for (size_t i = 0; i < (size_t)H * W; i++) /* two phases, 8 bit, on an offset */
        f.pixels[i] = f.pixels[i] > 0 ? 220 : 180;
    must(oct_correlator_cpu.create(&c, &setup, &failure));
    must(oct_correlator_cpu.run(c, &f, 1, c2d, &which, &failure));
    oct_profile(c2d, R, radius, NULL, c1d);
    const struct oct_ring_peak p = oct_profile_first_ring(radius, c1d, R, OCT_PROFILE_PROMINENCE);
    assert_true(p.found);
    if (fabs(p.radius_px / length - 1.1166) > 0.06)
        fail_msg("the ring is at %.3f wavelengths", p.radius_px / length);
    oct_correlator_cpu.destroy(c);
    oct_picture_finish(&f);
}

/* ---- rings of profiles made by hand ---- */

static struct oct_ring_peak ring_of(const double *c1d, uint32_t n)
{
    double radius[64];
    for (uint32_t k = 0; k < n; k++)
        radius[k] = k;
    return oct_profile_first_ring(radius, c1d, n - 1, OCT_PROFILE_PROMINENCE);
}

static void assert_none(struct oct_ring_peak p)
{
    assert_false(p.found);
    assert_true(isnan(p.radius_px) && isnan(p.c) && isnan(p.trough_px) && isnan(p.height));
}

TEST(profiles_without_a_ring)
{
    const double falls[] = {1, 0.6, 0.3, 0.1, 0, 0, -0.1};
    const double rises_to_the_end[] = {1, 0.5, 0.1, 0.2, 0.3};
    const double ripples[] = {1, 0.5, 0.1, 0.11, 0.1, 0.115, 0.1, 0.11, 0.1};
    const double ends[] = {1, 0.5, -0.2, 0.3, NAN, 0.1, -0.3};
    const double empty[] = {NAN, 0.5, -0.2, 0.3, 0.1};
    const double one[] = {1};
    assert_none(ring_of(falls, 7));
    assert_none(ring_of(rises_to_the_end, 5));
    assert_none(ring_of(ripples, 9));
    assert_none(ring_of(ends, 7));
    assert_none(ring_of(empty, 5));
    assert_none(ring_of(one, 1));
}

TEST(ripples_before_the_ring_are_passed)
{
    const double c1d[] = {1, 0.4, 0.1, 0.11, 0.02, -0.1, -0.2, -0.19, -0.195, 0.1, 0.3, 0.2, NAN};
    const struct oct_ring_peak p = ring_of(c1d, 13);
    assert_true(p.found);
    assert_true(fabs(p.c - 0.3) < 1e-12);
    assert_true(p.trough_px == 8);
    assert_true(fabs(p.height - 0.495) < 1e-12);
    assert_true(fabs(p.radius_px - (10 + 0.1 / 0.6)) < 1e-9);
}

/* The vertex of a parabola is found exactly, though bins are not evenly spaced. */
TEST(the_parabola_knows_the_radii_of_its_bins)
{
    const double radius[] = {0, 1.2071, 2.1, 3.05, 3.97, 5.02};
    double c1d[6] = {1, 0.3};
    for (unsigned k = 2; k < 6; k++)
        c1d[k] = 0.5 - 0.1 * (radius[k] - 3.3) * (radius[k] - 3.3);
    c1d[1] = 0.1;
    const struct oct_ring_peak p = oct_profile_first_ring(radius, c1d, 5, 0.02);
    assert_true(p.found);
    assert_true(fabs(p.radius_px - 3.3) < 1e-9);
    assert_true(p.trough_px == 1.2071);
}
