#include "analysis/cones/whiten.h"

#include "numeric/order.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRUNCATE 4.0
#define MOST_TAPS 64u /* of one side, with the middle: 4 * 15 + 1 fit */
#define LOCAL_SIGMAS 8.0
/* Of a Gaussian over blocks, in blocks. More of them change no result, they only take longer. */
#define LEAST_LOCAL_BLOCKS 4.0
/* Of the whole picture's e^2: where there is less, there is nothing to make equal. */
#define LEAST_LOCAL_SHARE 1e-6
#define LEAST_TYPICAL_SHARE 0.16 /* of the picture's usual e^2: 0.4 of its root, and */
#define LEAST_TYPICAL 0.3        /* of its root */
#define LEAST_KNOWN 0.1          /* of a block's pixels, with its neighbours' */

/* One side of a symmetric kernel, its middle first. */
struct kernel {
    unsigned n;
    float tap[MOST_TAPS];
};

struct oct_whitener {
    uint32_t height, width;
    float *smooth, *curved; /* [height][width]: rows after G and after G'' */
    float *filled;          /* [height][width]: u less its mean */
    float *power, *weight;  /* [height][width] at most: sums of a block */
    float *scratch;         /* as power */
    float *line;            /* a row with its mirrored margins */
};

enum oct_err oct_whitener_create(struct oct_whitener **whitener, uint32_t height, uint32_t width,
                                 struct oct_error *err)
{
    struct oct_whitener *w = calloc(1, sizeof(*w));
    size_t n = (size_t)height * width;
    *whitener = NULL;
    if (!w)
        goto fail;
    w->height = height;
    w->width = width;
    float **planes[] = {&w->smooth, &w->curved, &w->filled, &w->power, &w->weight, &w->scratch};
    for (size_t i = 0; i < sizeof(planes) / sizeof(planes[0]); i++)
        if (!(*planes[i] = oct_aligned_alloc(64, n, sizeof(float))))
            goto fail;
    if (!(w->line = oct_aligned_alloc(64, (size_t)width + 2 * MOST_TAPS, sizeof(float))))
        goto fail;
    *whitener = w;
    return OCT_OK;
fail:
    oct_whitener_destroy(w);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a picture of %u x %u pixels", height,
                    width);
}

void oct_whitener_destroy(struct oct_whitener *w)
{
    if (!w)
        return;
    free(w->smooth);
    free(w->curved);
    free(w->filled);
    free(w->power);
    free(w->weight);
    free(w->scratch);
    free(w->line);
    free(w);
}

/* ---- kernels ---- */

static unsigned n_taps(double sigma)
{
    unsigned n = (unsigned)(TRUNCATE * sigma + 0.5) + 1;
    return n < MOST_TAPS ? n : MOST_TAPS;
}

/* G, and its second derivative made to sum to 0: sampled coarsely it does not by itself. */
static void make_kernels(double sigma, struct kernel *g, struct kernel *g2)
{
    double gauss[MOST_TAPS], second[MOST_TAPS], sum = 0, sum2 = 0;
    unsigned n = n_taps(sigma);
    for (unsigned i = 0; i < n; i++) {
        double x = i / sigma;
        gauss[i] = exp(-x * x / 2);
        second[i] = gauss[i] * (x * x - 1);
        sum += i ? 2 * gauss[i] : gauss[i];
        sum2 += i ? 2 * second[i] : second[i];
    }
    g->n = n;
    if (g2)
        g2->n = n;
    for (unsigned i = 0; i < n; i++) {
        g->tap[i] = (float)(gauss[i] / sum);
        if (g2)
            g2->tap[i] = (float)(second[i] - sum2 / sum * gauss[i]);
    }
}

/* The pixel that stands at i of a row of n that is mirrored at both ends. */
static uint32_t mirror(int64_t i, uint32_t n)
{
    int64_t period = 2 * (int64_t)n, at = i % period;
    at = at < 0 ? at + period : at;
    return (uint32_t)(at < n ? at : period - 1 - at);
}

/* ---- rows and columns ---- */

static void mirror_row(float *line, const float *row, uint32_t n, unsigned margin)
{
    memcpy(line + margin, row, n * sizeof(*row));
    for (unsigned i = 1; i <= margin; i++) {
        line[margin - i] = row[mirror(-(int64_t)i, n)];
        line[margin + n - 1 + i] = row[mirror((int64_t)n - 1 + i, n)];
    }
}

static void filter_line(const struct kernel *k, const float *line, uint32_t n, float *out)
{
    const float *middle = line + k->n - 1;
    for (uint32_t x = 0; x < n; x++)
        out[x] = k->tap[0] * middle[x];
    for (unsigned i = 1; i < k->n; i++) {
        const float *before = middle - i, *behind = middle + i;
        const float tap = k->tap[i];
        for (uint32_t x = 0; x < n; x++)
            out[x] += tap * (before[x] + behind[x]);
    }
}

/* Adds column y of a plane, filtered, to out. */
static void add_column(const struct kernel *k, const float *plane, uint32_t height, uint32_t width,
                       uint32_t y, float *out)
{
    for (unsigned i = 0; i < k->n; i++) {
        const float *before = plane + (size_t)mirror((int64_t)y - i, height) * width;
        const float *behind = plane + (size_t)mirror((int64_t)y + i, height) * width;
        const float tap = i ? k->tap[i] : k->tap[0] / 2;
        for (uint32_t x = 0; x < width; x++)
            out[x] += tap * (before[x] + behind[x]);
    }
}

/* Rows from `from` to `rows`, then columns from there to `to`, which may be `from`. */
static void blur(struct oct_whitener *w, const struct kernel *k, uint32_t height, uint32_t width,
                 const float *from, float *rows, float *to)
{
    for (uint32_t y = 0; y < height; y++) {
        mirror_row(w->line, from + (size_t)y * width, width, k->n - 1);
        filter_line(k, w->line, width, rows + (size_t)y * width);
    }
    for (uint32_t y = 0; y < height; y++) {
        memset(to + (size_t)y * width, 0, width * sizeof(*to));
        add_column(k, rows, height, width, y, to + (size_t)y * width);
    }
}

/* ---- the Laplacian ---- */

/* u less its mean, and in its gaps the average of what is around. */
static void fill(struct oct_whitener *w, const float *u, const uint8_t *valid,
                 const struct kernel *g)
{
    const size_t n = (size_t)w->height * w->width;
    double sum = 0;
    size_t n_valid = 0;
    for (size_t i = 0; i < n; i++)
        if (!valid || valid[i]) {
            sum += (double)u[i];
            n_valid++;
        }
    const double mean = n_valid ? sum / (double)n_valid : 0;
    for (size_t i = 0; i < n; i++)
        w->filled[i] = !valid || valid[i] ? (float)((double)u[i] - mean) : 0;
    if (!valid || n_valid == n)
        return;
    for (size_t i = 0; i < n; i++)
        w->weight[i] = valid[i];
    blur(w, g, w->height, w->width, w->weight, w->scratch, w->weight);
    blur(w, g, w->height, w->width, w->filled, w->scratch, w->curved);
    for (size_t i = 0; i < n; i++)
        if (!valid[i] && w->weight[i] > 1e-6f)
            w->filled[i] = w->curved[i] / w->weight[i];
}

static void laplacian(struct oct_whitener *w, const struct kernel *g, const struct kernel *g2,
                      const uint8_t *valid, float *e)
{
    const uint32_t width = w->width;
    for (uint32_t y = 0; y < w->height; y++) {
        mirror_row(w->line, w->filled + (size_t)y * width, width, g->n - 1);
        filter_line(g, w->line, width, w->smooth + (size_t)y * width);
        filter_line(g2, w->line, width, w->curved + (size_t)y * width);
    }
    for (uint32_t y = 0; y < w->height; y++) {
        float *row = e + (size_t)y * width;
        memset(row, 0, width * sizeof(*row));
        add_column(g2, w->smooth, w->height, width, y, row);
        add_column(g, w->curved, w->height, width, y, row);
        for (uint32_t x = 0; x < width; x++)
            row[x] = valid && !valid[(size_t)y * width + x] ? 0 : -row[x];
    }
}

/* ---- the local power ---- */

struct blocks {
    uint32_t side, rows, columns;
};

static void sum_blocks(struct oct_whitener *w, const struct blocks *b, const float *e,
                       const uint8_t *valid)
{
    memset(w->power, 0, (size_t)b->rows * b->columns * sizeof(float));
    memset(w->weight, 0, (size_t)b->rows * b->columns * sizeof(float));
    for (uint32_t y = 0; y < w->height; y++) {
        const float *row = e + (size_t)y * w->width;
        const size_t at = (size_t)(y / b->side) * b->columns;
        for (uint32_t c = 0; c < b->columns; c++) {
            uint32_t first = c * b->side, last = first + b->side;
            last = last < w->width ? last : w->width;
            for (uint32_t x = first; x < last; x++) {
                bool counts = !valid || valid[(size_t)y * w->width + x];
                w->power[at + c] += row[x] * row[x];
                w->weight[at + c] += counts ? 1 : 0;
            }
        }
    }
}

/* Where a pixel lies between two blocks: the one before and the share of the one behind. */
static uint32_t find_block(uint32_t at, uint32_t side, uint32_t n, float *share)
{
    float place = ((float)at + 0.5f) / (float)side - 0.5f;
    if (place <= 0 || n == 1) {
        *share = 0;
        return 0;
    }
    uint32_t before = (uint32_t)place;
    before = before < n - 1 ? before : n - 2;
    *share = place - (float)before;
    *share = *share < 1 ? *share : 1;
    return before;
}

/* least: of the power; flat: of e. */
static void divide(struct oct_whitener *w, const struct blocks *b, float least, float flat,
                   float *e)
{
    for (uint32_t y = 0; y < w->height; y++) {
        float down, across;
        uint32_t above = find_block(y, b->side, b->rows, &down);
        const float *first = w->power + (size_t)above * b->columns;
        const float *second = first + (b->rows > 1 ? b->columns : 0);
        for (uint32_t c = 0; c < b->columns; c++)
            w->line[c] = first[c] + down * (second[c] - first[c]);
        w->line[b->columns] = w->line[b->columns - 1];
        for (uint32_t x = 0; x < w->width; x++) {
            uint32_t c = find_block(x, b->side, b->columns, &across);
            const float power = w->line[c] + across * (w->line[c + 1] - w->line[c]);
            float *at = &e[(size_t)y * w->width + x];
            if (*at > 0 && *at < flat)
                *at = 0;
            *at *= power < least ? power / least / sqrtf(least) : 1 / sqrtf(power);
        }
    }
}

/* The median of n blocks' power, of those with pixels that count, of `pixels` each. */
static double typical_power(struct oct_whitener *w, size_t n, double pixels)
{
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++)
        if ((double)w->weight[i] > LEAST_KNOWN * pixels)
            w->scratch[n_known++] = w->power[i];
    return n_known ? (double)oct_floats_select(w->scratch, n_known, n_known / 2) : 0;
}

static bool equalise(struct oct_whitener *w, double sigma, const uint8_t *valid, bool keeps_weak,
                     float *e)
{
    struct blocks b = {.side = (uint32_t)(LOCAL_SIGMAS * sigma / LEAST_LOCAL_BLOCKS)};
    struct kernel g;
    double sum = 0, weight = 0;
    b.side = b.side > 1 ? b.side : 1;
    b.rows = (w->height + b.side - 1) / b.side;
    b.columns = (w->width + b.side - 1) / b.side;
    sum_blocks(w, &b, e, valid);
    const size_t n = (size_t)b.rows * b.columns;
    for (size_t i = 0; i < n; i++) {
        sum += (double)w->power[i];
        weight += (double)w->weight[i];
    }
    if (!(sum > 0 && isfinite(sum)))
        return false;
    /* Summing and interpolating linearly blur too, by a quarter of a block squared. */
    const double side = b.side, over = LOCAL_SIGMAS * sigma;
    const double extra = b.side > 1 ? (side * side - 1) / 12 + side * side / 6 : 0;
    make_kernels(sqrt(over * over - extra) / side, &g, NULL);
    blur(w, &g, b.rows, b.columns, w->power, w->scratch, w->power);
    blur(w, &g, b.rows, b.columns, w->weight, w->scratch, w->weight);
    for (size_t i = 0; i < n; i++)
        w->power[i] = w->weight[i] > 1e-6f ? w->power[i] / w->weight[i] : 0;
    const double typical = typical_power(w, n, (double)b.side * b.side);
    divide(w, &b, (float)fmax(LEAST_TYPICAL_SHARE * typical, LEAST_LOCAL_SHARE * sum / weight),
           keeps_weak ? 0 : (float)(LEAST_TYPICAL * sqrt(typical)), e);
    return true;
}

bool oct_whitener_run(struct oct_whitener *w, const float *u, const uint8_t *valid, double sigma,
                      bool keeps_weak, float *e)
{
    struct kernel g, g2;
    make_kernels(sigma, &g, &g2);
    fill(w, u, valid, &g);
    laplacian(w, &g, &g2, valid, e);
    return equalise(w, sigma, valid, keeps_weak, e);
}
