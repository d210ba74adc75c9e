#include "pipeline/flow/even_lines.h"

#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a column is made of. */
struct taps {
    uint32_t first, n;
    size_t at; /* in the weights */
};

struct direction {
    struct taps *column; /* [M] */
    float *weights;
    size_t n_weights, room;
};

struct oct_even_lines {
    struct oct_scan scan;
    uint32_t n_lines, depth;
    struct direction way[2]; /* forwards, backwards */
    void *lines;             /* a copy of what is made even: [M][D][2] f32 */
    float *sum;              /* [2 D] */
};

/* The integral from a to b (a <= b) of line k's part in the polygon through the lines at u, a
 * hat. */
static double hat_integral(const double *u, uint32_t n, uint32_t k, double a, double b)
{
    double sum = 0;
    for (int side = 0; side < 2; side++) {
        const bool outer = side == 0 ? k == 0 : k + 1 == n;
        const double foot =
            outer ? (side == 0 ? -INFINITY : INFINITY) : u[side == 0 ? k - 1 : k + 1];
        const double from = side == 0 ? fmax(a, foot) : fmax(a, u[k]);
        const double to = side == 0 ? fmin(b, u[k]) : fmin(b, foot);
        const double middle = (from + to) / 2;
        if (to > from)
            sum += (to - from) * (outer ? 1 : (middle - foot) / (u[k] - foot));
    }
    return sum;
}

/* The line's part in the polygon at x. */
static double hat(const double *u, uint32_t n, uint32_t k, double x)
{
    if (x <= u[k])
        return k == 0 ? 1 : x <= u[k - 1] ? 0 : (x - u[k - 1]) / (u[k] - u[k - 1]);
    return k + 1 == n ? 1 : x >= u[k + 1] ? 0 : (u[k + 1] - x) / (u[k + 1] - u[k]);
}

/* The distance of the lines around x, of which the first is k - 1 at the least. */
static double distance_at(const double *u, uint32_t n, uint32_t k, double x)
{
    while (k + 1 < n && u[k] < x)
        k++;
    return n > 1 ? u[k] - u[k - 1] : 1;
}

static bool add_weight(struct direction *way, double weight)
{
    if (way->n_weights == way->room) {
        const size_t room = 2 * way->room + 256;
        float *more = realloc(way->weights, room * sizeof(*more));
        if (!more)
            return false;
        way->weights = more;
        way->room = room;
    }
    way->weights[way->n_weights++] = (float)weight;
    return true;
}

/* The weights of column j, which begin no earlier than those of the one before; false: no
 * memory. */
static bool find_taps(struct direction *way, const double *u, uint32_t n, uint32_t j)
{
    const uint32_t least = j > 0 ? way->column[j - 1].first : 0;
    const double half = fmax(0, 1 - distance_at(u, n, least + 1 < n ? least + 1 : n - 1, j)) / 2;
    const double from = j == 0 ? -0.5 : j - half, to = j + 1 == n ? n - 0.5 : j + half;
    struct taps *taps = &way->column[j];
    *taps = (struct taps){.at = way->n_weights};
    for (uint32_t k = least; k < n; k++) {
        const double w =
            half > 1e-6 ? hat_integral(u, n, k, from, to) / (to - from) : hat(u, n, k, j);
        if (w <= 0 && taps->n == 0)
            continue;
        if (w <= 0)
            break;
        taps->first = taps->n == 0 ? k : taps->first;
        taps->n++;
        if (!add_weight(way, w))
            return false;
    }
    return true;
}

static bool find_weights(struct oct_even_lines *e, bool is_turned)
{
    struct direction *way = &e->way[is_turned];
    double *u = malloc(e->n_lines * sizeof(*u));
    way->column = malloc(e->n_lines * sizeof(*way->column));
    bool ok = u && way->column;
    for (uint32_t k = 0; ok && k < e->n_lines; k++)
        u[k] = oct_scan_column(&e->scan, is_turned, k);
    for (uint32_t j = 0; ok && j < e->n_lines; j++)
        ok = find_taps(way, u, e->n_lines, j);
    free(u);
    return ok;
}

enum oct_err oct_even_lines_create(struct oct_even_lines **even, const struct oct_scan *scan,
                                   const struct oct_geometry *geometry, struct oct_error *err)
{
    struct oct_even_lines *e = calloc(1, sizeof(*e));
    *even = e;
    if (!e)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the even grid of lines");
    e->scan = *scan;
    e->n_lines = geometry->n_lines;
    e->depth = geometry->depth;
    e->lines = oct_aligned_alloc(64, oct_geometry_complex_bytes(geometry), 1);
    e->sum = oct_aligned_alloc(64, 2 * (size_t)e->depth, sizeof(float));
    if (e->lines && e->sum && find_weights(e, false) && find_weights(e, true))
        return OCT_OK;
    oct_even_lines_destroy(e);
    *even = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the even grid of lines");
}

void oct_even_lines_destroy(struct oct_even_lines *e)
{
    if (!e)
        return;
    for (int i = 0; i < 2; i++) {
        free(e->way[i].column);
        free(e->way[i].weights);
    }
    free(e->lines);
    free(e->sum);
    free(e);
}

double oct_even_lines_weight(const struct oct_even_lines *e, bool is_turned, uint32_t j, uint32_t k)
{
    const struct taps *taps = &e->way[is_turned].column[j];
    return k >= taps->first && k < taps->first + taps->n
               ? (double)e->way[is_turned].weights[taps->at + k - taps->first]
               : 0;
}

/* The weight of those of the column's lines that came; *missing: one that did not. */
static float valid_weight(const struct taps *taps, const float *w, const uint8_t *line_valid,
                          uint32_t *missing)
{
    float sum = 0;
    for (uint32_t i = 0; i < taps->n; i++)
        if (line_valid[taps->first + i])
            sum += w[i];
        else
            *missing = taps->first + i;
    return sum;
}

static void add_u8(float *restrict sum, const uint8_t *restrict line, float w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sum[i] += w * (float)line[i];
}

static void add_f32(float *restrict sum, const float *restrict line, float w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sum[i] += w * line[i];
}

/* The column of `n` values from the lines in e->lines. */
static void make_column(const struct oct_even_lines *e, const struct direction *way, uint32_t j,
                        bool is_u8, uint32_t n, const uint8_t *line_valid, void *out)
{
    const struct taps *taps = &way->column[j];
    const float *w = way->weights + taps->at;
    const size_t bytes = n * (is_u8 ? 1 : sizeof(float));
    uint32_t missing = 0;
    const float valid = valid_weight(taps, w, line_valid, &missing);
    if (valid < 0.5F) {
        memcpy(out, (const uint8_t *)e->lines + missing * bytes, bytes);
        return;
    }
    memset(e->sum, 0, n * sizeof(*e->sum));
    for (uint32_t i = 0; i < taps->n; i++) {
        const void *line = (const uint8_t *)e->lines + (taps->first + i) * bytes;
        if (!line_valid[taps->first + i])
            continue;
        if (is_u8)
            add_u8(e->sum, line, w[i] / valid, n);
        else
            add_f32(e->sum, line, w[i] / valid, n);
    }
    for (uint32_t i = 0; is_u8 && i < n; i++)
        ((uint8_t *)out)[i] = (uint8_t)(e->sum[i] + 0.5F);
    if (!is_u8)
        memcpy(out, e->sum, bytes);
}

static void make_even(struct oct_even_lines *e, const struct direction *way, bool is_u8, uint32_t n,
                      const uint8_t *line_valid, void *lines)
{
    const size_t bytes = n * (is_u8 ? 1 : sizeof(float));
    if (!lines)
        return;
    memcpy(e->lines, lines, e->n_lines * bytes);
    for (uint32_t j = 0; j < e->n_lines; j++)
        make_column(e, way, j, is_u8, n, line_valid, (uint8_t *)lines + j * bytes);
}

void oct_even_lines_apply(struct oct_even_lines *e, const struct oct_image_frame *frame,
                          const uint8_t *line_valid)
{
    /* By its number: rows of a file need not follow one another. Where volumes have no size, as in
     * liboctd, which is given arrays, by the caller's own. */
    const uint32_t n = e->scan.n_bscans;
    const uint32_t b = n > 0 ? (uint32_t)(frame->info.number % n) : frame->info.bscan;
    const struct direction *way = &e->way[oct_scan_is_turned(&e->scan, b)];
    const bool is_u8 = frame->form->type == OCT_SAMPLE_U8;
    make_even(e, way, is_u8, e->depth, line_valid, frame->pixels);
    if ((void *)frame->values != frame->pixels)
        make_even(e, way, false, e->depth, line_valid, frame->values);
    make_even(e, way, false, 2 * e->depth, line_valid, frame->complex_values);
}
