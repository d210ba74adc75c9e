#include "test/rig/correlate_oracle.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_valid(const struct oct_picture *p, long y, long x)
{
    if (y < 0 || x < 0 || y >= (long)p->height || x >= (long)p->width)
        return false;
    return !p->valid || p->valid[(size_t)y * p->width + (size_t)x];
}

static double at(const struct oct_picture *p, long y, long x)
{
    return (double)p->pixels[(size_t)y * p->width + (size_t)x];
}

static double mean_of(const struct oct_picture *p)
{
    double sum = 0, n = 0;
    for (long y = 0; y < (long)p->height; y++)
        for (long x = 0; x < (long)p->width; x++)
            if (is_valid(p, y, x)) {
                sum += at(p, y, x);
                n++;
            }
    return sum / n;
}

static struct oct_oracle_sums sums_about(const struct oct_picture *f, const struct oct_picture *g,
                                         double f_mean, double g_mean, int dy, int dx)
{
    struct oct_oracle_sums s = {0};
    for (long y = 0; y < (long)f->height; y++)
        for (long x = 0; x < (long)f->width; x++) {
            if (!is_valid(f, y, x) || !is_valid(g, y + dy, x + dx))
                continue;
            const double a = at(f, y, x) - f_mean, b = at(g, y + dy, x + dx) - g_mean;
            s.n++;
            s.f += a;
            s.g += b;
            s.ff += a * a;
            s.gg += b * b;
            s.fg += a * b;
        }
    return s;
}

struct oct_oracle_sums oct_oracle_sums(const struct oct_picture *f, const struct oct_picture *g,
                                       int dy, int dx)
{
    return sums_about(f, g, 0, 0, dy, dx);
}

int64_t oct_oracle_integer(const struct oct_picture *f, const struct oct_picture *g, int dy, int dx)
{
    int64_t sum = 0;
    for (long y = 0; y < (long)f->height; y++)
        for (long x = 0; x < (long)f->width; x++)
            if (is_valid(f, y, x) && is_valid(g, y + dy, x + dx))
                sum += (int64_t)at(f, y, x) * (int64_t)at(g, y + dy, x + dx);
    return sum;
}

/* Sums about each picture's own mean: no norm but eq1 and overlap with keep_mean sees it. */
double oct_oracle_correlation(const struct oct_picture *f, const struct oct_picture *g,
                              const struct oct_correlator_setup *setup, double most_n, int dy,
                              int dx, double *n)
{
    const bool keep = setup->keep_mean && setup->norm != OCT_CORRELATION_ZNCC;
    const double f_mean = keep ? 0 : mean_of(f), g_mean = keep ? 0 : mean_of(g);
    const struct oct_oracle_sums s = sums_about(f, g, f_mean, g_mean, dy, dx);
    const struct oct_oracle_sums f0 = sums_about(f, f, f_mean, f_mean, 0, 0);
    const struct oct_oracle_sums g0 = sums_about(g, g, g_mean, g_mean, 0, 0);
    *n = s.n;
    switch (setup->norm) {
    case OCT_CORRELATION_EQ1:
        return s.fg / sqrt(f0.fg * g0.fg);
    case OCT_CORRELATION_OVERLAP:
        return s.n > 0 ? (s.fg / s.n) / sqrt(f0.fg / f0.n * (g0.fg / g0.n)) : NAN;
    default: {
        const double f_variance = s.ff - s.f * s.f / s.n, g_variance = s.gg - s.g * s.g / s.n;
        if (s.n < 1 || s.n < setup->min_overlap * most_n || f_variance < 1e-9 * f0.ff ||
            g_variance < 1e-9 * g0.ff)
            return NAN;
        return (s.fg - s.f * s.g / s.n) / sqrt(f_variance * g_variance);
    }
    }
}

double oct_oracle_most_n(const struct oct_picture *f, const struct oct_picture *g,
                         const struct oct_correlator_setup *setup)
{
    double most = 0;
    for (int dy = -(int)setup->max_dy; dy <= (int)setup->max_dy; dy++)
        for (int dx = -(int)setup->max_dx; dx <= (int)setup->max_dx; dx++)
            most = fmax(most, oct_oracle_sums(f, g, dy, dx).n);
    return most;
}

uint32_t oct_oracle_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static double unit(uint32_t *state)
{
    return (oct_oracle_random(state) + 0.5) / 16777216.0;
}

static double pixel_of(enum oct_oracle_kind kind, uint32_t y, uint32_t x, uint32_t *state)
{
    switch (kind) {
    case OCT_ORACLE_U8:
        return oct_oracle_random(state) % 256;
    case OCT_ORACLE_U8_FLAT:
        return 250 + oct_oracle_random(state) % 6;
    case OCT_ORACLE_U16:
        return oct_oracle_random(state) % 65536;
    case OCT_ORACLE_U16_FLAT:
        return 59950 + oct_oracle_random(state) % 101;
    case OCT_ORACLE_BLOBS:
        return 100 + 40 * sin(y / 9.0) * cos(x / 7.0) + 20 * sin(0.13 * x + 0.05 * y) + unit(state);
    default:
        return 10 * log10(-log(unit(state))) + 40 + 0.05 * y;
    }
}

void oct_oracle_picture(struct oct_picture *picture, uint32_t height, uint32_t width,
                        enum oct_oracle_kind kind, uint32_t seed)
{
    uint32_t state = seed;
    must(oct_picture_init(picture, height, width, false, &failure));
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            picture->pixels[(size_t)y * width + x] = (float)pixel_of(kind, y, x, &state);
}

void oct_oracle_mask(struct oct_picture *picture, uint32_t seed)
{
    uint32_t state = seed;
    const uint32_t h = picture->height, w = picture->width;
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            if (oct_oracle_random(&state) % 5 == 0 ||
                (y > h / 8 && y < h / 3 && x > w / 2 && x < w - w / 8))
                picture->pixels[(size_t)y * w + x] = NAN;
    must(oct_picture_mask_not_finite(picture, &failure));
}
