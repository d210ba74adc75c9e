#include "analysis/cells/spline.h"

#define N OCT_CELLS_CONTROL_POINTS
#define SAMPLES OCT_CELLS_SPLINE_SAMPLES
#define A_SEGMENT (SAMPLES / N)
#define STEPS 20
#define STEP 0.02
#define DELTA 0.3 /* [R] */

static const double pi = 3.14159265358979323846;

/* Weights of the four control points of a segment at s. */
static void weights_at(double s, double a[4])
{
    const double q = 1 - s;
    a[0] = q * q * q / 6;
    a[1] = (3 * s * s * s - 6 * s * s + 4) / 6;
    a[2] = (-3 * s * s * s + 3 * s * s + 3 * s + 1) / 6;
    a[3] = s * s * s / 6;
}

/* And of the derivative. */
static void slopes_at(double s, double b[4])
{
    const double q = 1 - s;
    b[0] = -3 * q * q / 6;
    b[1] = (9 * s * s - 12 * s) / 6;
    b[2] = (-9 * s * s + 6 * s + 3) / 6;
    b[3] = 3 * s * s / 6;
}

/* Control point `of` of the four of segment i. */
static int control(int i, int of)
{
    return (i + of + N - 1) % N;
}

void oct_cells_spline_circle(struct oct_cells_spline *spline, double radius)
{
    /* Control points z q^m, q = exp(2 pi i / 9), turn into samples z l_j q^m: least squares of one
     * complex number z. */
    double re = 0, im = 0, squares = 0;
    for (int j = 0; j < A_SEGMENT; j++) {
        double a[4], l_re = 0, l_im = 0;
        const double t = 2 * pi * j / SAMPLES;
        weights_at((double)j / A_SEGMENT, a);
        for (int n = 0; n < 4; n++) {
            l_re += a[n] * cos(2 * pi * (n - 1) / N);
            l_im += a[n] * sin(2 * pi * (n - 1) / N);
        }
        re += l_re * cos(t) + l_im * sin(t);
        im += l_re * sin(t) - l_im * cos(t);
        squares += l_re * l_re + l_im * l_im;
    }
    for (int m = 0; m < N; m++) {
        const double c = cos(2 * pi * m / N), s = sin(2 * pi * m / N);
        spline->x[m] = radius * (re * c - im * s) / squares;
        spline->y[m] = radius * (re * s + im * c) / squares;
    }
}

void oct_cells_spline_samples(const struct oct_cells_spline *spline,
                              struct oct_cells_spline_sample samples[SAMPLES])
{
    for (int k = 0; k < SAMPLES; k++) {
        struct oct_cells_spline_sample *p = &samples[k];
        double a[4], b[4];
        weights_at((double)(k % A_SEGMENT) / A_SEGMENT, a);
        slopes_at((double)(k % A_SEGMENT) / A_SEGMENT, b);
        *p = (struct oct_cells_spline_sample){0, 0, 0, 0};
        for (int n = 0; n < 4; n++) {
            const int c = control(k / A_SEGMENT, n);
            p->x += a[n] * spline->x[c];
            p->y += a[n] * spline->y[c];
            p->dx += b[n] * spline->x[c];
            p->dy += b[n] * spline->y[c];
        }
    }
}

/* Adds what one sample contributes: outer, inner: the gradients delta outside and inside. */
static void add_sample(struct oct_cells_spline *gradient, const struct oct_cells_spline_sample *p,
                       const double outer[2], const double inner[2], double delta, int k)
{
    double a[4], b[4];
    const double length = sqrt(p->dx * p->dx + p->dy * p->dy), cube = length * length * length;
    weights_at((double)(k % A_SEGMENT) / A_SEGMENT, a);
    slopes_at((double)(k % A_SEGMENT) / A_SEGMENT, b);
    for (int n = 0; n < 4; n++) {
        /* d(delta n)/dC: of a control point's x (first) and y. */
        const double skew = delta * p->dx * p->dy * b[n] / cube;
        const double of_x = delta * (b[n] / length - p->dx * p->dx * b[n] / cube);
        const double of_y = delta * (b[n] / length - p->dy * p->dy * b[n] / cube);
        const int c = control(k / A_SEGMENT, n);
        gradient->x[c] +=
            outer[0] * (a[n] - skew) - outer[1] * of_x - inner[0] * (a[n] + skew) - inner[1] * of_x;
        gradient->y[c] +=
            outer[0] * of_y + outer[1] * (a[n] + skew) + inner[0] * of_y - inner[1] * (a[n] - skew);
    }
}

void oct_cells_spline_gradient(const struct oct_cells_spline *spline,
                               const struct oct_cells_slopes *slopes, int32_t x, int32_t y,
                               double delta, double scale, struct oct_cells_spline *gradient)
{
    struct oct_cells_spline_sample samples[SAMPLES];
    *gradient = (struct oct_cells_spline){{0}, {0}};
    oct_cells_spline_samples(spline, samples);
    for (int k = 0; k < SAMPLES; k++) {
        const struct oct_cells_spline_sample *p = &samples[k];
        const double length = sqrt(p->dx * p->dx + p->dy * p->dy);
        if (!(length > 0))
            continue;
        const double nx = delta * p->dy / length, ny = -delta * p->dx / length;
        const struct oct_cells_slope o =
            oct_cells_slope_at(slopes, x, y, (float)(p->x + nx), (float)(p->y + ny));
        const struct oct_cells_slope i =
            oct_cells_slope_at(slopes, x, y, (float)(p->x - nx), (float)(p->y - ny));
        const double outer[2] = {(double)o.x / scale, (double)o.y / scale};
        const double inner[2] = {(double)i.x / scale, (double)i.y / scale};
        add_sample(gradient, p, outer, inner, delta, k);
    }
}

static bool is_within(const struct oct_cells_spline *spline, double reach)
{
    bool within = true;
    for (int m = 0; m < N; m++)
        within = within && hypot(spline->x[m], spline->y[m]) <= reach;
    return within; /* NaN is not */
}

void oct_cells_refine_spline(const struct oct_cells_slopes *slopes, double radius, double scale,
                             bool is_dark, int32_t x, int32_t y, struct oct_cells_place *place)
{
    struct oct_cells_spline spline, gradient;
    struct oct_cells_spline_sample samples[SAMPLES];
    double sum_x = 0, sum_y = 0, sum_r = 0;
    *place = (struct oct_cells_place){x, y, radius};
    oct_cells_spline_circle(&spline, radius);
    for (int step = 0; step < STEPS; step++) {
        oct_cells_spline_gradient(&spline, slopes, x, y, DELTA * radius, scale, &gradient);
        for (int m = 0; m < N; m++) {
            spline.x[m] += (is_dark ? STEP : -STEP) * gradient.x[m];
            spline.y[m] += (is_dark ? STEP : -STEP) * gradient.y[m];
        }
        if (!is_within(&spline, 2 * radius))
            return;
    }
    oct_cells_spline_samples(&spline, samples);
    for (int k = 0; k < SAMPLES; k++) {
        sum_x += samples[k].x / SAMPLES;
        sum_y += samples[k].y / SAMPLES;
    }
    for (int k = 0; k < SAMPLES; k++)
        sum_r += hypot(samples[k].x - sum_x, samples[k].y - sum_y) / SAMPLES;
    *place = (struct oct_cells_place){x + sum_x, y + sum_y, sum_r};
}
