/* ZNCC of a window of one picture with another: its sums, and products at single shifts. */
#include "analysis/align/level.h"

#include "analysis/align/matcher.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A variance below this part of that of the whole picture, which is 1 a pixel, is none. */
#define LEAST_VARIANCE 1e-9

/* ---- sums of columns ---- */

static bool sums_init(struct oct_column_sums *sums, uint32_t width)
{
    double *all = oct_aligned_calloc(64, 4 * ((size_t)width + 1), sizeof(double));
    *sums = (struct oct_column_sums){.sums = all};
    if (!all)
        return false;
    sums->squares = all + width + 1;
    sums->running = sums->squares + width + 1;
    sums->running_squares = sums->running + width + 1;
    return true;
}

OCT_WIDE static void add(double *restrict sums, double *restrict squares, const float *restrict row,
                         uint32_t n, double sign)
{
    for (uint32_t x = 0; x < n; x++) {
        double value = (double)row[x];
        sums[x] += sign * value;
        squares[x] += sign * (value * value);
    }
}

static void add_row(struct oct_column_sums *s, uint32_t y, double sign)
{
    const size_t width = s->level->width;
    add(s->sums, s->squares, s->level->planes[OCT_PLANE_VALUES] + y * width, s->level->width, sign);
}

static void run_up(struct oct_column_sums *s)
{
    double sum = 0, squares = 0;
    for (uint32_t x = 0; x < s->level->width; x++) {
        s->running[x] = sum;
        s->running_squares[x] = squares;
        sum += s->sums[x];
        squares += s->squares[x];
    }
    s->running[s->level->width] = sum;
    s->running_squares[s->level->width] = squares;
}

/* Slides to rows first .. end - 1; anew where that is less work. */
static void sums_move(struct oct_column_sums *s, uint32_t first, uint32_t end)
{
    if (s->first == first && s->end == end)
        return;
    uint32_t off = first > s->first ? first - s->first : s->first - first;
    off += end > s->end ? end - s->end : s->end - end;
    if (off >= end - first || s->end <= first || end <= s->first) {
        size_t bytes = s->level->width * sizeof(double);
        memset(s->sums, 0, bytes);
        memset(s->squares, 0, bytes);
        s->first = s->end = first;
    }
    while (s->end < end)
        add_row(s, s->end++, 1.0);
    while (s->first > first)
        add_row(s, --s->first, 1.0);
    while (s->end > end)
        add_row(s, --s->end, -1.0);
    while (s->first < first)
        add_row(s, s->first++, -1.0);
    run_up(s);
}

/* ---- the overlap ---- */

enum oct_err oct_zncc_sums_init(struct oct_zncc_sums *overlap, uint32_t width,
                                struct oct_error *err)
{
    *overlap = (struct oct_zncc_sums){0};
    if (sums_init(&overlap->f_sums, width) && sums_init(&overlap->g_sums, width))
        return OCT_OK;
    oct_zncc_sums_finish(overlap);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for sums of %u columns", width);
}

void oct_zncc_sums_finish(struct oct_zncc_sums *overlap)
{
    free(overlap->f_sums.sums);
    free(overlap->g_sums.sums);
    *overlap = (struct oct_zncc_sums){0};
}

bool oct_zncc_sums_is_masked(const struct oct_zncc_sums *overlap)
{
    return overlap->f->is_masked || overlap->g->is_masked;
}

void oct_zncc_sums_forget(struct oct_zncc_sums *o)
{
    o->g = NULL;
}

static double count_valid(const struct oct_level *level, uint32_t y0, uint32_t n_rows)
{
    size_t n = (size_t)n_rows * level->width, n_valid = n;
    if (level->is_masked) {
        const float *valid = level->planes[OCT_PLANE_VALID] + (size_t)y0 * level->width;
        n_valid = 0;
        for (size_t i = 0; i < n; i++)
            n_valid += valid[i] != 0.0F;
    }
    return (double)n_valid;
}

void oct_zncc_sums_begin(struct oct_zncc_sums *o, const struct oct_level *f,
                         const struct oct_level *g, uint32_t y0, uint32_t n_rows, double part)
{
    o->f = o->f_sums.level = f;
    if (o->g != g)
        o->g_sums.first = o->g_sums.end = 0;
    o->g = o->g_sums.level = g;
    o->f_sums.first = o->f_sums.end = 0;
    o->y0 = y0;
    o->n_rows = n_rows;
    double n = count_valid(f, y0, n_rows), n_g = (double)g->n_valid;
    o->least = part * (n < n_g ? n : n_g);
    if (o->least < 1)
        o->least = 1;
}

void oct_zncc_sums_move(struct oct_zncc_sums *o, int32_t dy)
{
    int64_t height = o->f->height, first = o->y0, end = (int64_t)o->y0 + o->n_rows;
    first = first + dy < 0 ? -(int64_t)dy : first;
    end = end + dy > height ? height - dy : end;
    o->dy = dy;
    o->first = (uint32_t)first;
    o->end = end > first ? (uint32_t)end : o->first;
    if (o->end == o->first || oct_zncc_sums_is_masked(o))
        return;
    sums_move(&o->f_sums, o->first, o->end);
    sums_move(&o->g_sums, (uint32_t)(first + dy), (uint32_t)(end + dy));
}

/* Adds to *p what the sums of columns know. */
static void add_boxes(const struct oct_zncc_sums *o, int32_t dx, struct oct_products *p)
{
    uint32_t width = o->f->width, n = width - (uint32_t)abs(dx);
    uint32_t at_f = dx < 0 ? (uint32_t)-dx : 0, at_g = dx > 0 ? (uint32_t)dx : 0;
    p->n = (double)n * (o->end - o->first);
    p->f = o->f_sums.running[at_f + n] - o->f_sums.running[at_f];
    p->g = o->g_sums.running[at_g + n] - o->g_sums.running[at_g];
    p->f_f = o->f_sums.running_squares[at_f + n] - o->f_sums.running_squares[at_f];
    p->g_g = o->g_sums.running_squares[at_g + n] - o->g_sums.running_squares[at_g];
}

float oct_zncc_sums_score(const struct oct_zncc_sums *o, int32_t dx,
                          const struct oct_products *products)
{
    if (o->end == o->first || (uint32_t)abs(dx) >= o->f->width)
        return NAN;
    struct oct_products p = *products;
    if (!oct_zncc_sums_is_masked(o))
        add_boxes(o, dx, &p);
    if (p.n < o->least)
        return NAN;
    double f_f = p.f_f - p.f * p.f / p.n, g_g = p.g_g - p.g * p.g / p.n;
    if (f_f <= LEAST_VARIANCE * p.n || g_g <= LEAST_VARIANCE * p.n)
        return NAN;
    return (float)((p.values - p.f * p.g / p.n) / sqrt(f_f * g_g));
}

/* ---- products at single shifts ---- */

/* Sixteen sums, so that they are added side by side. */
static double multiply(const float *restrict a, const float *restrict b, uint32_t n)
{
    float sums[16] = {0};
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (unsigned j = 0; j < 16; j++)
            sums[j] += a[i + j] * b[i + j];
    double sum = 0;
    for (unsigned j = 0; j < 16; j++)
        sum += (double)sums[j];
    for (; i < n; i++)
        sum += (double)(a[i] * b[i]);
    return sum;
}

static double product(const struct oct_zncc_sums *o, int32_t dx, enum oct_plane of_f,
                      enum oct_plane of_g)
{
    uint32_t width = o->f->width, n = width - (uint32_t)abs(dx);
    const float *f = o->f->planes[of_f] + (dx < 0 ? -dx : 0);
    const float *g = o->g->planes[of_g] + (dx > 0 ? dx : 0);
    double sum = 0;
    for (uint32_t y = o->first; y < o->end; y++)
        sum += multiply(f + (size_t)y * width, g + (size_t)((int64_t)y + o->dy) * width, n);
    return sum;
}

float oct_zncc_sums_score_at(struct oct_zncc_sums *o, int32_t dy, int32_t dx)
{
    oct_zncc_sums_move(o, dy);
    if (o->end == o->first || (uint32_t)abs(dx) >= o->f->width)
        return NAN;
    struct oct_products p = {.values = product(o, dx, OCT_PLANE_VALUES, OCT_PLANE_VALUES)};
    if (oct_zncc_sums_is_masked(o)) {
        p.n = product(o, dx, OCT_PLANE_VALID, OCT_PLANE_VALID);
        p.f = product(o, dx, OCT_PLANE_VALUES, OCT_PLANE_VALID);
        p.g = product(o, dx, OCT_PLANE_VALID, OCT_PLANE_VALUES);
        p.f_f = product(o, dx, OCT_PLANE_SQUARES, OCT_PLANE_VALID);
        p.g_g = product(o, dx, OCT_PLANE_VALID, OCT_PLANE_SQUARES);
    }
    return oct_zncc_sums_score(o, dx, &p);
}

/* ---- products at nine shifts ---- */

typedef float lanes __attribute__((vector_size(32), aligned(4)));

/* Adds the sums of f[x] g[x + u], x < n, u = 0 .. 2. Two groups of lanes, as one would wait for
 * each addition. */
OCT_WIDE static void multiply_three(const float *f, const float *g, uint32_t n, double sums[3])
{
    lanes a[3] = {{0}}, b[3] = {{0}};
    uint32_t x = 0;
    for (; x + 16 <= n; x += 16) {
        const lanes p = *(const lanes *)(f + x), q = *(const lanes *)(f + x + 8);
#pragma GCC unroll 3
        for (unsigned u = 0; u < 3; u++) {
            a[u] += p * *(const lanes *)(g + x + u);
            b[u] += q * *(const lanes *)(g + x + u + 8);
        }
    }
    for (unsigned u = 0; u < 3; u++) {
        double sum = 0;
        for (unsigned j = 0; j < 8; j++)
            sum += (double)(a[u][j] + b[u][j]);
        for (uint32_t i = x; i < n; i++)
            sum += (double)(f[i] * g[i + u]);
        sums[u] += sum;
    }
}

/* A row of f and one of g at dx - 1, dx and dx + 1. The columns where f meets g at all three go
 * through the loop above; there are at most two more at either end. */
static void multiply_rows(const float *f, const float *g, int32_t width, int32_t dx, double sums[3])
{
    const int32_t first = dx < 1 ? 1 - dx : 0, end = dx > -1 ? width - 1 - dx : width;
    multiply_three(f + first, g + first + dx - 1, (uint32_t)(end - first), sums);
    for (int32_t u = 0; u < 3; u++) {
        const int32_t by = dx + u - 1;
        for (int32_t x = by < 0 ? -by : 0; x < first; x++)
            sums[u] += (double)(f[x] * g[x + by]);
        for (int32_t x = end; x < (by > 0 ? width - by : width); x++)
            sums[u] += (double)(f[x] * g[x + by]);
    }
}

void oct_zncc_sums_score_around(struct oct_zncc_sums *o, int32_t dy, int32_t dx, float around[3][3])
{
    const int32_t width = (int32_t)o->f->width, height = (int32_t)o->f->height;
    const float *f = o->f->planes[OCT_PLANE_VALUES], *g = o->g->planes[OCT_PLANE_VALUES];
    const bool one_by_one = oct_zncc_sums_is_masked(o) || abs(dx) + 4 > width;
    double sums[3][3] = {{0}};
    for (int32_t y = (int32_t)o->y0; y < (int32_t)(o->y0 + o->n_rows) && !one_by_one; y++)
        for (int32_t v = 0; v < 3; v++)
            if (y + dy + v >= 1 && y + dy + v <= height)
                multiply_rows(f + (ptrdiff_t)y * width, g + (ptrdiff_t)(y + dy + v - 1) * width,
                              width, dx, sums[v]);
    for (int32_t v = 0; v < 3; v++) {
        oct_zncc_sums_move(o, dy + v - 1);
        for (int32_t u = 0; u < 3; u++) {
            const struct oct_products p = {.values = sums[v][u]};
            around[v][u] = one_by_one ? oct_zncc_sums_score_at(o, dy + v - 1, dx + u - 1)
                                      : oct_zncc_sums_score(o, dx + u - 1, &p);
        }
    }
}

/* ---- the climb ---- */

/* Goes to the highest neighbour, with what is known around it, NaN elsewhere; false: none is
 * higher. */
static bool step_up(struct oct_match *match)
{
    float(*const a)[3] = match->around, moved[3][3];
    int best = 4;
    for (int i = 0; i < 9; i++)
        if (!isnan(a[i / 3][i % 3]) && !(a[best / 3][best % 3] >= a[i / 3][i % 3]))
            best = i;
    if (best == 4)
        return false;
    for (int i = 0; i < 9; i++) {
        const int y = i / 3 + best / 3 - 1, x = i % 3 + best % 3 - 1;
        moved[i / 3][i % 3] = y >= 0 && y < 3 && x >= 0 && x < 3 ? a[y][x] : NAN;
    }
    memcpy(a, moved, sizeof(moved));
    match->dy += best / 3 - 1;
    match->dx += best % 3 - 1;
    match->score = a[1][1];
    return true;
}

void oct_zncc_sums_climb(struct oct_zncc_sums *o, struct oct_match *match, uint32_t max_dy,
                         uint32_t max_dx, unsigned most_steps)
{
    oct_zncc_sums_score_around(o, match->dy, match->dx, match->around);
    for (unsigned step = 0;; step++) {
        for (int32_t i = 0; i < 9; i++) {
            float *score = &match->around[i / 3][i % 3];
            const int32_t dy = match->dy + i / 3 - 1, dx = match->dx + i % 3 - 1;
            if ((uint32_t)abs(dy) > max_dy || (uint32_t)abs(dx) > max_dx)
                *score = NAN;
            else if (isnan(*score))
                *score = oct_zncc_sums_score_at(o, dy, dx);
        }
        match->score = match->around[1][1];
        if (step == most_steps || !step_up(match))
            return;
    }
}
