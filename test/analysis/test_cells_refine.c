/* The parts of refinement: the quadratic of 27 values, bilinear gradients, the B-spline snake. */
#include "analysis/cells/find.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define SIDE 80
#define PI 3.14159265358979323846

/* ---- the quadratic ---- */

TEST(the_top_of_a_quadratic_is_found)
{
    for (unsigned round = 0; round < 20; round++) {
        const double x = 0.1 * round - 1, y = 0.4 - 0.05 * round, z = 0.03 * round;
        double step[3];
        float f[27];
        for (int n = 0; n < 27; n++) {
            const double u = n % 3 - 1 - x, v = n / 3 % 3 - 1 - y, w = n / 9 - 1 - z;
            f[n] = (float)(100 - 3 * u * u - 2 * v * v - 4 * w * w + u * v - 2 * v * w + u * w);
        }
        assert_true(oct_cells_top_of_27(f, step));
        assert_true(fabs(step[0] - x) < 1e-5);
        assert_true(fabs(step[1] - y) < 1e-5);
        assert_true(fabs(step[2] - z) < 1e-5);
    }
}

TEST(without_a_top_the_best_point_is_taken)
{
    double step[3];
    float f[27];
    /* A saddle: rises along z. */
    for (int n = 0; n < 27; n++) {
        const double u = n % 3 - 1, v = n / 3 % 3 - 1, w = n / 9 - 1;
        f[n] = (float)(10 - u * u - v * v + w * w + 0.1 * w);
    }
    assert_false(oct_cells_top_of_27(f, step));
    oct_cells_edge_step(f, step);
    assert_true(step[0] == 0 && step[1] == 0 && step[2] == 1);
    for (int n = 0; n < 27; n++) { /* another, that falls along z alone */
        const double u = n % 3 - 1, v = n / 3 % 3 - 1, w = n / 9 - 1;
        f[n] = (float)(10 + u * u + v * v - w * w);
    }
    assert_false(oct_cells_top_of_27(f, step));
    memset(f, 0, sizeof(f));
    oct_cells_edge_step(f, step); /* the first of equals */
    assert_true(step[0] == -1 && step[1] == -1 && step[2] == -1);
    /* A top far away is not gone to at once. */
    for (int n = 0; n < 27; n++) {
        const double u = n % 3 - 1 - 9, v = n / 3 % 3 - 1, w = n / 9 - 1 + 7;
        f[n] = (float)(1000 - u * u - v * v - w * w);
    }
    oct_cells_edge_step(f, step);
    assert_true(step[0] == 1.5 && fabs(step[1]) < 1e-4 && step[2] == -1.5);
}

/* ---- gradients between pixels ---- */

static float plane_x[SIDE * SIDE], plane_y[SIDE * SIDE];
static const struct oct_cells_slopes slopes = {plane_x, plane_y, SIDE, SIDE, SIDE};

TEST(gradients_are_bilinear_and_repeat_the_border)
{
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        plane_x[i] = (float)(i % SIDE) + 100;
        plane_y[i] = (float)((i % SIDE) * (i / SIDE)) / 16;
    }
    for (float v = -9; v < 9; v += 0.75f)
        for (float u = -9; u < 9; u += 0.625f)
            for (int at = 0; at < SIDE; at += SIDE - 1) {
                const struct oct_cells_slope g = oct_cells_slope_at(&slopes, at, at, u, v);
                const double x = fmin(fmax(at + (double)u, 0), SIDE - 1);
                const double y = fmin(fmax(at + (double)v, 0), SIDE - 1);
                assert_true(fabs((double)g.x - (x + 100)) < 1e-4);
                assert_true(fabs((double)g.y - x * y / 16) < 1e-3);
            }
}

static const struct oct_cells_refiner *refiner(void)
{
    static struct oct_cells_refiner refiner;
    const struct oct_cells_params params = {.radius = 10, .first = 1, .last = 1, .step = 1};
    oct_cells_refiner_init(&refiner, &params);
    return &refiner;
}

TEST(the_mean_of_a_radial_field_is_its_slope)
{
    const struct oct_cells_place place = {40.25, 38.5, 7.5}, shifted = {41.25, 37.5, 7.5};
    float f[27];
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        plane_x[i] = (float)(i % SIDE) - 40.25f; /* of |X - C|^2 / 2: m is the radius */
        plane_y[i] = (float)(i / SIDE) - 38.5f;
    }
    oct_cells_edge_means(&slopes, refiner()->unit, &place, 0.5, f);
    for (int n = 0; n < 27; n++) /* a shift of a circle in such a field changes nothing */
        assert_true(fabsf(f[n] - (7.5f + 0.5f * (float)(n / 9 - 1))) < 1e-5f);
    oct_cells_edge_means(&slopes, refiner()->unit, &shifted, 0.5, f);
    assert_true(fabsf(f[13] - 7.5f) < 1e-5f);
}

/* In double precision, by the gradient at each of the 64 samples. */
static double mean_at(double x, double y, double r)
{
    double sum = 0;
    for (int i = 0; i < OCT_CELLS_EDGE_SAMPLES; i++) {
        const double t = 2 * PI * i / OCT_CELLS_EDGE_SAMPLES;
        const double at_x = x + r * cos(t), at_y = y + r * sin(t);
        const struct oct_cells_slope g =
            oct_cells_slope_at(&slopes, (int32_t)floor(at_x), (int32_t)floor(at_y),
                               (float)(at_x - floor(at_x)), (float)(at_y - floor(at_y)));
        sum += (double)g.x * cos(t) + (double)g.y * sin(t);
    }
    return sum / OCT_CELLS_EDGE_SAMPLES;
}

/* Within the picture, over each of its borders, and beyond it. */
TEST(means_of_27_circles_are_those_of_their_samples)
{
    static const struct oct_cells_place places[7] = {
        {40.3, 37.6, 9.7}, {3.2, 44.9, 8.1},  {76.4, 30.1, 11.3}, {35.7, 2.9, 7.2},
        {29.2, 78.8, 9.9}, {-1.4, 81.6, 5.3}, {-40.2, 130.7, 6.1}};
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        plane_x[i] = (float)((i * 7919 + i / SIDE * 31) % 257) - 128;
        plane_y[i] = (float)((i * 104729 + i / SIDE * 17) % 241) - 120;
    }
    for (unsigned p = 0; p < 7; p++) {
        const double h = 0.3 + 0.1 * p;
        float f[27];
        oct_cells_edge_means(&slopes, refiner()->unit, &places[p], h, f);
        for (int n = 0; n < 27; n++) {
            const double expected =
                mean_at(places[p].x + h * (n % 3 - 1), places[p].y + h * (n / 3 % 3 - 1),
                        places[p].radius + h * (n / 9 - 1));
            assert_true(fabs((double)f[n] - expected) < 1e-3); /* of 1e-5 px in f32 */
        }
    }
}

/* ---- the spline ---- */

/* A smooth picture of known values. */
static double value(double x, double y)
{
    return 60 * exp(-(pow(x - 41.3, 2) + pow(y - 39.1, 2)) / 200) + 8 * sin(x / 7) * cos(y / 9);
}

static void set_slopes(double scale)
{
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        const double x = i % SIDE, y = i / SIDE;
        plane_x[i] = (float)(scale * (value(x + 1, y) - value(x - 1, y)) / 2);
        plane_y[i] = (float)(scale * (value(x, y + 1) - value(x, y - 1)) / 2);
    }
}

static double energy(const struct oct_cells_spline *spline, double x, double y, double delta)
{
    struct oct_cells_spline_sample s[OCT_CELLS_SPLINE_SAMPLES];
    double sum = 0;
    oct_cells_spline_samples(spline, s);
    for (int k = 0; k < OCT_CELLS_SPLINE_SAMPLES; k++) {
        const double length = hypot(s[k].dx, s[k].dy);
        const double nx = delta * s[k].dy / length, ny = -delta * s[k].dx / length;
        sum += value(x + s[k].x + nx, y + s[k].y + ny) - value(x + s[k].x - nx, y + s[k].y - ny);
    }
    return sum;
}

TEST(a_spline_begins_as_a_circle)
{
    struct oct_cells_spline spline;
    struct oct_cells_spline_sample s[OCT_CELLS_SPLINE_SAMPLES];
    oct_cells_spline_circle(&spline, 10);
    oct_cells_spline_samples(&spline, s);
    for (int k = 0; k < OCT_CELLS_SPLINE_SAMPLES; k++) {
        const double t = 2 * PI * k / OCT_CELLS_SPLINE_SAMPLES;
        assert_true(hypot(s[k].x - 10 * cos(t), s[k].y - 10 * sin(t)) < 0.02);
        /* The derivative by the segment, of a ninth of the circle. */
        assert_true(hypot(s[k].dx + 10 * sin(t) * 2 * PI / 9, s[k].dy - 10 * cos(t) * 2 * PI / 9) <
                    0.1);
    }
    /* Least squares: what is left is orthogonal to the derivatives by the control points. */
    for (int m = 0; m < OCT_CELLS_CONTROL_POINTS; m++) {
        struct oct_cells_spline one = {{0}, {0}};
        struct oct_cells_spline_sample a[OCT_CELLS_SPLINE_SAMPLES];
        double left = 0;
        one.x[m] = 1;
        oct_cells_spline_samples(&one, a);
        for (int k = 0; k < OCT_CELLS_SPLINE_SAMPLES; k++)
            left += a[k].x * (s[k].x - 10 * cos(2 * PI * k / OCT_CELLS_SPLINE_SAMPLES));
        assert_true(fabs(left) < 1e-12);
    }
}

TEST(its_gradient_is_that_of_its_energy)
{
    struct oct_cells_spline spline, gradient;
    const double scale = 0.25, delta = 3, h = 1e-4;
    double most = 0, off = 0;
    set_slopes(scale);
    oct_cells_spline_circle(&spline, 10);
    for (int m = 0; m < OCT_CELLS_CONTROL_POINTS; m++) { /* no circle any more */
        spline.x[m] += 0.8 * sin(3.0 * m);
        spline.y[m] += 0.7 * cos(5.0 * m);
    }
    oct_cells_spline_gradient(&spline, &slopes, 38, 40, delta, scale, &gradient);
    for (int m = 0; m < 2 * OCT_CELLS_CONTROL_POINTS; m++) {
        double *c = m % 2 ? &spline.y[m / 2] : &spline.x[m / 2];
        const double was = *c, is = m % 2 ? gradient.y[m / 2] : gradient.x[m / 2];
        *c = was + h;
        const double more = energy(&spline, 38, 40, delta);
        *c = was - h;
        const double difference = (more - energy(&spline, 38, 40, delta)) / (2 * h);
        *c = was;
        most = fmax(most, fabs(difference));
        off = fmax(off, fabs(difference - is));
    }
    assert_true(most > 1);
    assert_true(off < 0.03 * most);
}

/* Disks of soft edges in grey levels, beside the pixel at which the snake begins. */
TEST(a_spline_goes_to_the_cell)
{
    for (unsigned is_dark = 0; is_dark < 2; is_dark++) {
        struct oct_cells_place place;
        for (unsigned i = 0; i < SIDE * SIDE; i++) {
            const double x = i % SIDE - 41.5, y = i / SIDE - 38.75, d = hypot(x, y);
            const double rise = 1 / (4 * pow(cosh((10 - d) / 4), 2)); /* of tanh */
            plane_x[i] = (float)((is_dark ? 60 : -60) * rise * x / (d + 1e-9));
            plane_y[i] = (float)((is_dark ? 60 : -60) * rise * y / (d + 1e-9));
        }
        oct_cells_refine_spline(&slopes, 10, 1, is_dark, 40, 40, &place);
        assert_true(hypot(place.x - 41.5, place.y - 38.75) < 0.8); /* from 1.95, in 20 steps */
        assert_true(fabs(place.radius - 10) < 1);
        /* Steps that leave the picture of the cell end at its pixel. */
        oct_cells_refine_spline(&slopes, 10, 1e-4, is_dark, 40, 40, &place);
        assert_true(place.x == 40 && place.y == 40 && place.radius == 10);
    }
}
