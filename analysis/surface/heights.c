#include "analysis/surface/heights.h"

#include "numeric/order.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MEDIAN_TO_SIGMA 1.4826
#define STRAYS 2.5 /* noise */
#define BEND 0.3   /* px, of a surface from one A-line to the next */
#define ROUNDS 2

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

enum oct_err oct_heights_fill(float *heights, uint32_t n_b, uint32_t n_j, struct oct_error *err)
{
    const struct map m = {heights, n_b, n_j};
    const size_t n = (size_t)n_b * n_j;
    size_t *places = malloc((n + 1) * sizeof(*places)), n_places = 0;
    float *means = malloc((n + 1) * sizeof(*means));
    for (size_t i = 0; i < n && places && means; i++)
        if (isnan(heights[i]))
            places[n_places++] = i;
    while (n_places > 0) {
        size_t n_left = 0;
        for (size_t i = 0; i < n_places; i++)
            means[i] = mean_around(&m, (int64_t)(places[i] / n_j), (int64_t)(places[i] % n_j));
        for (size_t i = 0; i < n_places; i++) {
            heights[places[i]] = means[i];
            if (isnan(means[i]))
                places[n_left++] = places[i];
        }
        if (n_left == n_places)
            break;
        n_places = n_left;
    }
    const bool has_memory = places && means;
    free(places);
    free(means);
    return has_memory ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", n);
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
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", n);
    const struct map m = {before, n_b, n_j};
    for (unsigned round = 0; round < ROUNDS && noise > 0; round++) {
        memcpy(before, heights, n * sizeof(*before));
        for (size_t i = 0; i < n; i++)
            heights[i] = tamed(&m, (int64_t)(i / n_j), (int64_t)(i % n_j), most);
    }
    free(before);
    return OCT_OK;
}
