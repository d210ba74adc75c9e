#include "analysis/layers/denoise/heights.h"

#include "numeric/order.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MEDIAN_TO_SIGMA 1.4826
#define STRAYS 2.5 /* noise */
#define BEND 0.3   /* px, of a surface from one A-line to the next */
#define TAMED 2    /* rounds */

static const int directions[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};

struct map {
    const float *heights;
    int64_t n_b, n_j;
};

static float at(const struct map *m, int64_t b, int64_t j)
{
    return b < 0 || b >= m->n_b || j < 0 || j >= m->n_j ? NAN : m->heights[b * m->n_j + j];
}

/* ---- gaps ---- */

static float mean_around(const struct map *m, int64_t b, int64_t j)
{
    double sum = 0;
    unsigned n = 0;
    for (int64_t db = -1; db <= 1; db++)
        for (int64_t dj = -1; dj <= 1; dj++) {
            const float h = at(m, b + db, j + dj);
            if (isfinite(h)) {
                sum += (double)h;
                n++;
            }
        }
    return n > 0 ? (float)(sum / n) : NAN;
}

static enum oct_err no_memory(size_t n, struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", n);
}

enum oct_err oct_heights_fill(float *heights, uint32_t n_b, uint32_t n_j, struct oct_error *err)
{
    const size_t n = (size_t)n_b * n_j;
    float *before = malloc((n + 1) * sizeof(*before));
    const struct map m = {before, n_b, n_j};
    bool goes_on = true;
    if (!before)
        return no_memory(n, err);
    while (goes_on) {
        goes_on = false;
        memcpy(before, heights, n * sizeof(*before));
        for (size_t i = 0; i < n; i++)
            if (isnan(before[i])) {
                heights[i] = mean_around(&m, (int64_t)(i / n_j), (int64_t)(i % n_j));
                goes_on |= !isnan(heights[i]);
            }
    }
    free(before);
    return OCT_OK;
}

/* ---- noise ---- */

double oct_heights_noise(const float *heights, uint32_t n_b, uint32_t n_j)
{
    const struct map m = {heights, n_b, n_j};
    float *values = malloc((2 * (size_t)n_b * n_j + 1) * sizeof(*values));
    size_t n = 0;
    for (int64_t b = 0; values && b < n_b; b++)
        for (int64_t j = 0; j < n_j; j++)
            for (unsigned i = 0; i < 2; i++) {
                const int db = directions[i][0], dj = directions[i][1];
                const float bend =
                    at(&m, b - db, j - dj) - 2 * at(&m, b, j) + at(&m, b + db, j + dj);
                if (isfinite(bend))
                    values[n++] = fabsf(bend);
            }
    double noise = 0;
    if (n > 0) {
        oct_floats_sort(values, n);
        noise = MEDIAN_TO_SIGMA * (double)values[(n - 1) / 2] / sqrt(6);
    }
    free(values);
    return noise;
}

/* ---- strays ---- */

struct guess {
    float height, off; /* off: |height - guess| as between two neighbours */
};

/* The line through neighbours in one direction; false: the map ends. */
static bool guess(const struct map *m, int64_t b, int64_t j, const int dir[2], struct guess *g)
{
    const float h = at(m, b, j);
    const float p = at(m, b + dir[0], j + dir[1]), q = at(m, b - dir[0], j - dir[1]);
    if (isfinite(p) && isfinite(q)) {
        g->height = 0.5f * (p + q);
        g->off = fabsf(h - g->height);
        return true;
    }
    const int side = isfinite(p) ? 1 : -1;
    const float near = isfinite(p) ? p : q;
    const float next = at(m, b + 2 * side * dir[0], j + 2 * side * dir[1]);
    g->height = 2 * near - next;
    g->off = 0.5f * fabsf(h - g->height); /* whose noise is twice as large */
    return isfinite(g->height);
}

static int by_off(const void *a, const void *b)
{
    const struct guess *p = a, *q = b;
    return (p->off > q->off) - (p->off < q->off);
}

static int by_height(const void *a, const void *b)
{
    const struct guess *p = a, *q = b;
    return (p->height > q->height) - (p->height < q->height);
}

static float tamed(const struct map *m, int64_t b, int64_t j, float most)
{
    struct guess guesses[4];
    unsigned n = 0;
    for (unsigned i = 0; i < 4; i++)
        n += guess(m, b, j, directions[i], &guesses[n]);
    if (n < 3)
        return at(m, b, j);
    qsort(guesses, n, sizeof(*guesses), by_off);
    if (!(guesses[1].off > most))
        return at(m, b, j);
    qsort(guesses, n, sizeof(*guesses), by_height);
    return n == 4 ? 0.5f * (guesses[1].height + guesses[2].height) : guesses[1].height;
}

enum oct_err oct_heights_tame(float *heights, uint32_t n_b, uint32_t n_j, double noise,
                              struct oct_error *err)
{
    const size_t n = (size_t)n_b * n_j;
    const float most = (float)(STRAYS * noise * sqrt(1.5) + BEND);
    float *before = malloc((n + 1) * sizeof(*before));
    if (!before)
        return no_memory(n, err);
    const struct map m = {before, n_b, n_j};
    for (unsigned round = 0; round < TAMED && noise > 0; round++) {
        memcpy(before, heights, n * sizeof(*before));
        for (size_t i = 0; i < n; i++)
            heights[i] = tamed(&m, (int64_t)(i / n_j), (int64_t)(i % n_j), most);
    }
    free(before);
    return OCT_OK;
}

/* ---- refined ---- */

#define N_FILTERS 8
#define ROUNDS 4
#define OFF 2.7        /* stray_noise, beyond which a height is replaced */
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
        return no_memory(n, err);
    struct refinement f = {
        .n_b = n_b, .n_j = n_j, .n = n, .noise = noise, .found = found, .refined = refined};
    float **const maps[] = {&f.heights, &f.g[0][0], &f.g[0][1], &f.g[1][0], &f.g[1][1],
                            &f.half,    &f.bend,    &f.bias,    &f.sum,     &f.weights};
    for (unsigned i = 0; i < 10; i++, at += n)
        *maps[i] = at;
    f.row = at;
    for (unsigned round = 0; round < ROUNDS; round++) {
        leave_strays_out(&f, OFF * stray_noise);
        run_round(&f);
    }
    free(memory);
    return OCT_OK;
}
