#include "pipeline/plan/spread.h"

#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Measured against the exact sum: uneven axes of 832 and 2048 samples; reflectors at all depths,
 * beyond P2/4 too, and spectra of nothing but noise, which are the worst: 4 taps -65 dB, 5 -81,
 * 6 -98, 7 -117. By that, six would do for -80 dB; but values 80 dB below the maximum, which a
 * picture in dB still shows, would be off by up to 0.08 dB, with seven by 0.009. Eight add nothing
 * to what floats leave. */
static const struct {
    unsigned n_taps;
    double error_db;
} kernels[] = {{4, -45}, {5, -60}, {6, -75}, {8, OCT_SPREAD_LEAST_DB}};

unsigned oct_spread_taps(double accuracy_db)
{
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
        if (kernels[k].error_db <= accuracy_db)
            return kernels[k].n_taps;
    return OCT_SPREAD_MOST_TAPS;
}

double oct_spread_error_db(unsigned n_taps)
{
    double error_db = 0;
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
        if (kernels[k].n_taps == n_taps)
            error_db = kernels[k].error_db;
    return error_db;
}

struct kernel {
    double taps, beta, scale; /* J, beta, 1 / I0(beta) */
};

/* Modified Bessel function of the first kind, order 0: its power series. */
static double bessel_i0(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; term > 1e-18 * sum; k++) {
        term *= x / (2 * k) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

static struct kernel make_kernel(unsigned n_taps)
{
    double half = n_taps / 2.0, beta = PI * sqrt(half * half * 2.25 - 0.8);
    return (struct kernel){n_taps, beta, 1 / bessel_i0(beta)};
}

static double kernel_at(const struct kernel *k, double u)
{
    double r = 2 * u / k->taps;
    return r * r < 1 ? bessel_i0(k->beta * sqrt(1 - r * r)) * k->scale : 0;
}

/* The kernel's transform at `turns` a grid point: at most a quarter, where the root is real. */
static double kernel_transform(const struct kernel *k, double turns)
{
    double a = PI * k->taps * turns, root = sqrt(k->beta * k->beta - a * a);
    return k->taps * k->scale * sinh(root) / root;
}

/* origin is whole: as a part of n_grid the turn keeps all its digits. */
static void fill_gain(struct oct_spread *s, const struct kernel *kernel, double origin)
{
    for (uint32_t d = 0; d < s->n_grid / 2; d++) {
        double h = kernel_transform(kernel, (double)d / s->n_grid - 0.25);
        double turn = -2 * PI * fmod(d * origin, s->n_grid) / s->n_grid;
        s->gain[d] = (float)(1 / (h * h));
        s->factor[2 * (size_t)d] = (float)(cos(turn) / h);
        s->factor[2 * (size_t)d + 1] = (float)(sin(turn) / h);
    }
}

/* Grid points that a sample at y reaches: *first .. its result. */
static int64_t reach(const struct kernel *kernel, double y, int64_t *first)
{
    *first = (int64_t)ceil(y - kernel->taps / 2);
    return (int64_t)floor(y + kernel->taps / 2);
}

/* Where sample i lies on the grid, which begins at the first point that any sample reaches. */
static double place(const double *q, uint32_t i, double origin)
{
    return q[i] / 2 - origin;
}

/* Counts the samples of each grid point in at[g + 1], and finds the first of each: of a point that
 * both ends reach, the first of those from the far end. */
static void count(struct oct_spread *s, const struct kernel *kernel, const double *q, uint32_t n,
                  double origin)
{
    memset(s->first, 0xff, s->n_grid * sizeof(*s->first)); /* UINT32_MAX: no sample yet */
    for (uint32_t turn = 0; turn < 2; turn++)              /* around the end first */
        for (uint32_t i = 0; i < n; i++) {
            int64_t low, high = reach(kernel, place(q, i, origin), &low);
            for (int64_t g = low; g <= high; g++) {
                if ((g >= s->n_grid) == (turn == 1))
                    continue;
                uint32_t at = (uint32_t)(g % s->n_grid);
                if (s->first[at] == UINT32_MAX)
                    s->first[at] = i;
                s->at[at + 1]++;
                s->n_used = at >= s->n_used ? at + 1 : s->n_used;
            }
        }
    for (uint32_t g = 0; g < s->n_grid; g++) {
        s->first[g] = s->first[g] == UINT32_MAX ? 0 : s->first[g];
        uint32_t end = s->first[g] + s->at[g + 1];
        s->n_wrap = end > n + s->n_wrap ? end - n : s->n_wrap;
        s->at[g + 1] += s->at[g];
    }
}

/* The depths' middle, d0, turns by a quarter a grid point: with the sample's own place that leaves
 * the small angle between both. */
static enum oct_err fill_weights(struct oct_spread *s, const struct kernel *kernel, const double *q,
                                 const double *phase, uint32_t n, double origin)
{
    for (uint32_t g = 0; g < s->n_grid; g++)
        for (uint32_t t = s->at[g]; t < s->at[g + 1]; t++) {
            uint32_t i = (s->first[g] + (t - s->at[g])) % n;
            double away = place(q, i, origin) - g;
            away -= away > s->n_grid / 2.0 ? s->n_grid : 0;
            double h = kernel_at(kernel, away);
            double c = h * cos(PI / 2 * away), sine = -h * sin(PI / 2 * away);
            s->re[t] = (float)(phase[2 * i] * c - phase[2 * i + 1] * sine);
            s->im[t] = (float)(phase[2 * i] * sine + phase[2 * i + 1] * c);
            if (!isfinite(s->re[t]) || !isfinite(s->im[t]))
                return OCT_E_CONFIG;
        }
    return OCT_OK;
}

enum oct_err oct_spread_init(struct oct_spread *s, const double *q, const double *phase, uint32_t n,
                             uint32_t p2, unsigned n_taps)
{
    const struct kernel kernel = make_kernel(n_taps);
    double origin = ceil(q[0] / 2 - n_taps / 2.0);

    *s = (struct oct_spread){
        .n_taps = n_taps,
        .n_grid = p2 / 2,
        .first = oct_aligned_calloc(64, p2 / 2, sizeof(uint32_t)),
        .at = oct_aligned_calloc(64, p2 / 2 + 1, sizeof(uint32_t)),
        .gain = oct_aligned_calloc(64, p2 / 4, sizeof(float)),
        .factor = oct_aligned_calloc(64, p2 / 2, sizeof(float)),
    };
    if (!s->first || !s->at || !s->gain || !s->factor)
        return OCT_E_NO_MEMORY;
    fill_gain(s, &kernel, origin);
    count(s, &kernel, q, n, origin);
    s->re = oct_aligned_calloc(64, s->at[s->n_grid], sizeof(float));
    s->im = oct_aligned_calloc(64, s->at[s->n_grid], sizeof(float));
    return s->re && s->im ? fill_weights(s, &kernel, q, phase, n, origin) : OCT_E_NO_MEMORY;
}

void oct_spread_finish(struct oct_spread *s)
{
    free(s->first);
    free(s->at);
    free(s->re);
    free(s->im);
    free(s->gain);
    free(s->factor);
    *s = (struct oct_spread){0};
}
