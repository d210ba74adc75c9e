#include "test/rig/physics.h"

#include <math.h>

#define N OCT_PHYSICS_N
#define P2 OCT_PHYSICS_P2
#define LEFT ((P2 / 2 - N) / 2)

static const double pi = 3.14159265358979323846;

void oct_physics_wavelengths(double *lambda_nm, int falling)
{
    for (int i = 0; i < N; i++)
        lambda_nm[falling ? N - 1 - i : i] = 795 + 0.108 * i;
}

double oct_physics_wavelength_at(const double *lambda_nm, double c)
{
    int i = (int)fmin(fmax(floor(c), 0), N - 2);
    return lambda_nm[i] + (c - i) * (lambda_nm[i + 1] - lambda_nm[i]);
}

void oct_physics_k_range(const double *lambda_nm, double *k_first, double *k_last)
{
    *k_first = 2 * pi / oct_physics_wavelength_at(lambda_nm, -LEFT);
    *k_last = 2 * pi / oct_physics_wavelength_at(lambda_nm, (P2 - 1) / 2.0 - LEFT);
}

double oct_physics_pixel(const double *lambda_nm, double z_um)
{
    double k_first, k_last;
    oct_physics_k_range(lambda_nm, &k_first, &k_last);
    return z_um * 1e3 / pi * fabs(k_last - k_first) * P2 / (P2 - 1);
}

void oct_physics_spectra(const double *lambda_nm, const struct oct_physics_mirror *mirror,
                         uint16_t *spectra)
{
    double k_first, k_last;
    oct_physics_k_range(lambda_nm, &k_first, &k_last);
    double k_camera_first = 2 * pi / lambda_nm[0], k_camera_last = 2 * pi / lambda_nm[N - 1];
    /* Depth is positive along q; where k falls along q the fringes run the other way. */
    double along = k_last > k_first ? 1 : -1;
    for (int j = 0; j < OCT_PHYSICS_LINES; j++)
        for (int i = 0; i < N; i++) {
            double k = 2 * pi / lambda_nm[i];
            double t = 2 * (k - k_first) / (k_last - k_first) - 1;
            double in_camera = (k - k_camera_first) / (k_camera_last - k_camera_first);
            if (mirror->over_camera)
                t = 2 * in_camera - 1;
            double source = exp(-pow((in_camera - 0.5) / 0.2, 2));
            double phase = 2 * k * mirror->z_um * 1e3 +
                           along * (mirror->a2 * t * t + mirror->a3 * t * t * t) +
                           2 * pi * j / OCT_PHYSICS_LINES;
            double counts = 200 + source * (20000 + mirror->amplitude * cos(phase));
            spectra[j * N + i] = (uint16_t)lround(counts);
        }
}

/* Where intensity falls through `level`, from `at` in direction `step`, as a distance. */
static double falls_below(const float *intensity, size_t n, size_t at, int step, double level)
{
    size_t i = at;
    while (i > 0 && i + 1 < n && (double)intensity[i] > level)
        i = step > 0 ? i + 1 : i - 1;
    size_t before = step > 0 ? i - 1 : i + 1;
    double high = (double)intensity[before], low = (double)intensity[i];
    double distance = step > 0 ? (double)(before - at) : (double)(at - before);
    return distance + (high - level) / (high - low);
}

struct oct_physics_peak oct_physics_peak(const float *intensity, size_t n)
{
    size_t at = 1;
    for (size_t i = 1; i + 1 < n; i++)
        if (intensity[i] > intensity[at])
            at = i;
    double a = log((double)intensity[at - 1]), b = log((double)intensity[at]),
           c = log((double)intensity[at + 1]);
    double off = 0.5 * (a - c) / (a - 2 * b + c);
    double height = exp(b - 0.25 * (a - c) * off);
    return (struct oct_physics_peak){
        .at_px = (double)at + off,
        .width_px = falls_below(intensity, n, at, 1, height / 2) +
                    falls_below(intensity, n, at, -1, height / 2),
        .height = height,
    };
}
