#include "analysis/surface/heights.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define N_FILTERS 8
#define ROUNDS 4
#define STRAYS 2.7
#define LOCAL 3.0      /* sigma of the mean of bias^2, A-lines */
#define VARIANCE 0.146 /* sum of the squares of K, times s^2 */
#define MOST_RISK 1e9f /* noise^2; its fourth power is finite */
#define FAR 32         /* A-lines, the farthest a Gaussian reaches */

struct refinement {
    uint32_t n_b, n_j;
    size_t n;
    double noise;
    const float *found;
    float *refined;
    /* [n] each: heights without strays; G x and G r of one filter, and of the next; what is
     * between two directions; bias^2; its local mean; weighted heights; weights, summed up */
    float *heights, *g[2][2], *half, *bend, *bias, *sum, *weights;
    float *row; /* [FAR + n_j + FAR] */
};

/* ---- a Gaussian ---- */

static int kernel_of(double sigma, float kernel[FAR + 1])
{
    const int far = (int)ceil(4 * sigma);
    double sum = 0;
    for (int k = -far; k <= far; k++)
        sum += exp(-0.5 * k * k / (sigma * sigma));
    for (int k = 0; k <= far; k++)
        kernel[k] = (float)(exp(-0.5 * k * k / (sigma * sigma)) / sum);
    return far;
}

static void smooth_line(const struct refinement *f, const float *from, float *to,
                        const float *kernel, int far)
{
    const uint32_t n = f->n_j;
    float *row = f->row + FAR;
    memcpy(row, from, n * sizeof(*row));
    for (int k = 1; k <= far; k++) {
        row[-k] = from[0];
        row[n - 1 + (uint32_t)k] = from[n - 1];
    }
    for (uint32_t j = 0; j < n; j++)
        to[j] = kernel[0] * row[j];
    for (int k = 1; k <= far; k++)
        for (uint32_t j = 0; j < n; j++)
            to[j] += kernel[k] * (row[(int64_t)j - k] + row[(int64_t)j + k]);
}

static const float *line_at(const struct refinement *f, const float *map, int64_t b)
{
    const int64_t last = (int64_t)f->n_b - 1;
    return map + (size_t)(b < 0 ? 0 : b > last ? last : b) * f->n_j;
}

/* to may be from. */
static void smooth(const struct refinement *f, const float *from, float *to, double sigma)
{
    float kernel[FAR + 1] = {1};
    const int far = kernel_of(sigma, kernel);
    for (uint32_t b = 0; b < f->n_b; b++)
        smooth_line(f, from + (size_t)b * f->n_j, f->half + (size_t)b * f->n_j, kernel, far);
    for (uint32_t b = 0; b < f->n_b; b++) {
        float *line = to + (size_t)b * f->n_j;
        const float *middle = line_at(f, f->half, b);
        for (uint32_t j = 0; j < f->n_j; j++)
            line[j] = kernel[0] * middle[j];
        for (int k = 1; k <= far; k++) {
            const float *above = line_at(f, f->half, (int64_t)b - k);
            const float *below = line_at(f, f->half, (int64_t)b + k);
            for (uint32_t j = 0; j < f->n_j; j++)
                line[j] += kernel[k] * (above[j] + below[j]);
        }
    }
}

/* ---- a round ---- */

static void leave_strays_out(struct refinement *f, double most)
{
    for (size_t i = 0; i < f->n; i++) {
        const bool is_stray = !(fabs((double)f->found[i] - (double)f->refined[i]) <= most);
        f->heights[i] = is_stray ? f->refined[i] : f->found[i];
    }
}

/* What the filter 2 `once` - `twice` makes of the heights and of the surface, weighed. */
static void add_filter(struct refinement *f, float *const once[2], float *const twice[2],
                       float variance)
{
    const float scale = 1 / (float)(f->noise * f->noise);
    for (size_t i = 0; i < f->n; i++) {
        const float bend = 2 * once[1][i] - twice[1][i] - f->refined[i];
        f->bend[i] = bend * bend;
    }
    smooth(f, f->bend, f->bias, LOCAL);
    for (size_t i = 0; i < f->n; i++) {
        const float risk = fminf((f->bias[i] + variance) * scale, MOST_RISK);
        const float squared = risk * risk;
        const float weight = 1 / (squared * squared);
        f->sum[i] += weight * (2 * once[0][i] - twice[0][i]);
        f->weights[i] += weight;
    }
}

/* G of sigma s, applied twice, is G of sigma s sqrt 2: the next filter's. */
static void run_round(struct refinement *f)
{
    double s2 = 0.5;
    for (size_t i = 0; i < f->n; i++) { /* the filter that leaves all as it is */
        f->sum[i] = f->heights[i];
        f->weights[i] = 1;
    }
    smooth(f, f->heights, f->g[0][0], sqrt(s2));
    smooth(f, f->refined, f->g[0][1], sqrt(s2));
    for (unsigned i = 0; i < N_FILTERS; i++, s2 *= 2) {
        float *const *once = f->g[i % 2], *const *twice = f->g[(i + 1) % 2];
        smooth(f, once[0], twice[0], sqrt(s2));
        smooth(f, once[1], twice[1], sqrt(s2));
        add_filter(f, once, twice, (float)(VARIANCE / s2 * f->noise * f->noise));
    }
    for (size_t i = 0; i < f->n; i++)
        f->refined[i] = f->sum[i] / f->weights[i];
}

enum oct_err oct_heights_refine(const float *found, uint32_t n_b, uint32_t n_j, double noise,
                                double stray_noise, float *refined, struct oct_error *err)
{
    const size_t n = (size_t)n_b * n_j, n_row = n_j + 2 * (size_t)FAR;
    if (!(noise > 0))
        return OCT_OK;
    float *memory = calloc(10 * n + n_row, sizeof(*memory)), *at = memory;
    if (!memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", n);
    struct refinement f = {
        .n_b = n_b, .n_j = n_j, .n = n, .noise = noise, .found = found, .refined = refined};
    float **const maps[] = {&f.heights, &f.g[0][0], &f.g[0][1], &f.g[1][0], &f.g[1][1],
                            &f.half,    &f.bend,    &f.bias,    &f.sum,     &f.weights};
    for (unsigned i = 0; i < 10; i++, at += n)
        *maps[i] = at;
    f.row = at;
    for (unsigned round = 0; round < ROUNDS; round++) {
        leave_strays_out(&f, STRAYS * stray_noise);
        run_round(&f);
    }
    free(memory);
    return OCT_OK;
}
