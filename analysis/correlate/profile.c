#include "analysis/correlate/profile.h"

#include <math.h>
#include <stddef.h>

/* The sums of one bin. Each |d| is counted for its d in all quadrants at once. */
struct bin {
    double radius, c;
    uint32_t n, n_with_c;
};

/* C at (dy, dx), (dy, -dx), (-dy, dx) and (-dy, -dx), each once, dy and dx >= 0. */
static void add(struct bin *bin, const float *centre, size_t row, uint32_t dy, uint32_t dx)
{
    const float *down = centre + dy * row, *up = centre - dy * row;
    const ptrdiff_t x = dx;
    const float c[4] = {down[x], down[-x], up[x], up[-x]};
    const double radius = sqrt((double)dy * dy + (double)dx * dx);
    for (unsigned q = 0; q < 4; q++) {
        if ((q & 1 && dx == 0) || (q & 2 && dy == 0))
            continue;
        bin->radius += radius;
        bin->n++;
        if (!isnan(c[q])) {
            bin->c += (double)c[q];
            bin->n_with_c++;
        }
    }
}

/* The first dx >= from with |d| >= k - 1/2: dy^2 + dx^2 >= k^2 - k + 1/4, in integers
 * dy^2 + dx^2 > k (k - 1). */
static uint64_t first_dx(uint64_t dy, uint64_t k, uint64_t from)
{
    while (k > 0 && from * from + dy * dy <= k * (k - 1))
        from++;
    return from;
}

static struct bin sum_bin(const float *centre, uint32_t max_shift, uint32_t k)
{
    struct bin bin = {0};
    for (uint32_t dy = 0; dy <= k; dy++) {
        const double inner = (double)k * (k - 1.0) - (double)dy * dy;
        const uint64_t guess = k > 0 && inner > 0 ? (uint64_t)sqrt(inner) : 0;
        for (uint64_t dx = first_dx(dy, k, guess); dx <= max_shift; dx++) {
            if (dx * dx + (uint64_t)dy * dy > (uint64_t)k * (k + 1))
                break;
            add(&bin, centre, 2 * (size_t)max_shift + 1, dy, (uint32_t)dx);
        }
    }
    return bin;
}

void oct_profile(const float *c2d, uint32_t max_shift, double *radius, uint32_t *shifts,
                 double *c1d)
{
    const size_t row = 2 * (size_t)max_shift + 1;
    const float *centre = c2d + max_shift * row + max_shift;
    for (uint32_t k = 0; k <= max_shift; k++) {
        const struct bin bin = sum_bin(centre, max_shift, k);
        if (radius)
            radius[k] = bin.radius / bin.n;
        if (shifts)
            shifts[k] = bin.n;
        c1d[k] = bin.n_with_c ? bin.c / bin.n_with_c : NAN;
    }
}

/* The radius where the parabola through the bins k - 1, k, k + 1 has its vertex. The radii of bins
 * are not evenly spaced. */
static double vertex(const double *radius, const double *c1d, uint32_t k)
{
    const double a = radius[k] - radius[k - 1], b = radius[k + 1] - radius[k];
    const double left = (c1d[k] - c1d[k - 1]) / a, right = (c1d[k + 1] - c1d[k]) / b;
    const double bend = left - right; /* > 0 at a maximum */
    if (!(bend > 0))
        return radius[k];
    return radius[k] + (left * b + right * a) / (2 * bend);
}

struct oct_ring_peak oct_profile_first_ring(const double *radius, const double *c1d,
                                            uint32_t max_shift, double prominence)
{
    uint32_t i = 0, n = 0;
    while (n <= max_shift && !isnan(c1d[n]))
        n++;
    while (i + 1 < n) {
        while (i + 1 < n && c1d[i + 1] <= c1d[i])
            i++;
        const uint32_t trough = i;
        while (i + 1 < n && c1d[i + 1] >= c1d[i])
            i++;
        if (i + 1 < n && i > trough && c1d[i] - c1d[trough] >= prominence)
            return (struct oct_ring_peak){.found = true,
                                          .bin = i,
                                          .radius_px = vertex(radius, c1d, i),
                                          .c = c1d[i],
                                          .trough_px = radius[trough],
                                          .height = c1d[i] - c1d[trough]};
    }
    return (struct oct_ring_peak){.radius_px = NAN, .c = NAN, .trough_px = NAN, .height = NAN};
}
