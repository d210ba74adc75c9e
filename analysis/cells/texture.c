#include "analysis/cells/find.h"
#include "analysis/cells/track.h"
#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>

#define N_SAMPLES 48u /* of a circle */
#define N_CIRCLES 3u  /* on either side of the edge */
#define MOST_VALUES 1024u
#define MOST_PLACES 600u
#define LEAST_PLACES 30u
#define MARGIN 4.5      /* times t */
#define CLEAR_SCORE 2.0 /* times the threshold */
#define WEAK_SCORE 1.4  /* the same */
#define WEAK_SHARE 0.5  /* of the contrast of clear cells */
#define LEAST_CLEAR 3u
#define TWO_PI 6.283185307179586

struct looker {
    const struct oct_picture *picture;
    double h, unit[N_SAMPLES][2];
    float values[MOST_VALUES]; /* what a median is of */
    unsigned n;
};

static double median_of(struct looker *l)
{
    oct_floats_sort(l->values, l->n);
    return l->n > 0 ? (double)l->values[l->n / 2] : 0;
}

/* The mean over the circles on one side of the edge; NaN where a quarter of them is missing. */
static double mean_beside(const struct looker *l, double x, double y, double radius, double h)
{
    static const double share[N_CIRCLES] = {0.6, 1, 1.4};
    const struct oct_picture *p = l->picture;
    double sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < N_CIRCLES * N_SAMPLES; i++) {
        const double r = fmax(radius + h * share[i / N_SAMPLES], 0);
        const double px = x + r * l->unit[i % N_SAMPLES][0] + 0.5; /* of the nearest */
        const double py = y + r * l->unit[i % N_SAMPLES][1] + 0.5;
        if (!(px >= 0 && py >= 0 && px < p->width && py < p->height))
            continue;
        const size_t at = (size_t)py * p->width + (size_t)px;
        if (!oct_picture_is_valid(p, at))
            continue;
        sum += (double)p->pixels[at];
        n++;
    }
    return 4 * n >= 3 * N_CIRCLES * N_SAMPLES ? sum / n : NAN;
}

static double contrast_at(const struct looker *l, double x, double y, double radius)
{
    return fabs(mean_beside(l, x, y, radius, l->h) - mean_beside(l, x, y, radius, -l->h));
}

/* The variance that a noise of 1 makes in c: samples fall onto a ring's pixels, and some onto the
 * same one. */
static double noise_share(const struct looker *l, double radius)
{
    double sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        const double pixels = TWO_PI * fmax(radius + side * l->h, 1) * (0.8 * l->h + 1);
        sum += 1 / fmin(pixels, N_CIRCLES * N_SAMPLES);
    }
    return sum;
}

/* The noise of a pixel, by neighbours in a row. */
static double noise_of(struct looker *l)
{
    const struct oct_picture *p = l->picture;
    const size_t n = (size_t)p->height * (p->width - 1), step = n / MOST_VALUES + 1;
    l->n = 0;
    for (size_t i = 0; i < n && l->n < MOST_VALUES; i += step) {
        const size_t at = i / (p->width - 1) * p->width + i % (p->width - 1);
        if (oct_picture_is_valid(p, at) && oct_picture_is_valid(p, at + 1))
            l->values[l->n++] = fabsf(p->pixels[at + 1] - p->pixels[at]);
    }
    return OCT_CELLS_MEDIAN_TO_SIGMA * median_of(l) / sqrt(2);
}

/* t; 0: there are too few places. */
static double texture_of(struct looker *l, const struct oct_cells_params *params,
                         const struct oct_crowd *crowd)
{
    const struct oct_picture *p = l->picture;
    const double R = params->radius, rim = oct_cells_border(params);
    const double area = (double)p->height * p->width;
    const double step = fmax(1.5 * R, sqrt(area / MOST_PLACES)), noise = noise_of(l);
    unsigned k = 0;
    l->n = 0;
    for (double y = rim; y < p->height - rim; y += step)
        for (double x = rim; x < p->width - rim; x += step) {
            const double c = oct_crowd_is_near(crowd, x, y)
                                 ? NAN
                                 : contrast_at(l, x, y, R * (0.8 + 0.2 * (k++ % 3)));
            if (!isnan(c) && l->n < MOST_VALUES)
                l->values[l->n++] = (float)c;
        }
    if (l->n < LEAST_PLACES)
        return 0;
    const double all = OCT_CELLS_MEDIAN_TO_SIGMA * median_of(l);
    return sqrt(fmax(all * all - noise * noise * noise_share(l, R), 0));
}

/* The contrast of clear cells; 0: there are too few. */
static double clear_contrast(struct looker *l, const struct oct_cells_params *params,
                             const struct oct_cell *cells, const double *contrast, unsigned n)
{
    l->n = 0;
    for (unsigned c = 0; c < n && l->n < MOST_VALUES; c++)
        if (fabs((double)cells[c].score) >= CLEAR_SCORE * params->threshold && contrast[c] > 0)
            l->values[l->n++] = (float)contrast[c];
    return l->n >= LEAST_CLEAR ? median_of(l) : 0;
}

static void drop(struct looker *l, const struct oct_cells_params *params,
                 const struct oct_crowd *crowd, struct oct_cell *cells, double *contrast,
                 unsigned *n)
{
    const double texture = MARGIN * params->floor * texture_of(l, params, crowd);
    unsigned n_kept = 0;
    for (unsigned c = 0; c < *n; c++)
        contrast[c] = contrast_at(l, cells[c].x, cells[c].y, cells[c].radius);
    const double weak = WEAK_SHARE * clear_contrast(l, params, cells, contrast, *n);
    for (unsigned c = 0; c < *n; c++) {
        const bool is_weak = fabs((double)cells[c].score) < WEAK_SCORE * params->threshold;
        if (!(contrast[c] < texture || (is_weak && contrast[c] < weak)))
            cells[n_kept++] = cells[c];
    }
    *n = n_kept;
}

enum oct_err oct_cells_above_texture(const struct oct_cells_params *params,
                                     const struct oct_picture *picture, struct oct_crowd *crowd,
                                     struct oct_cell *cells, unsigned *n, struct oct_error *err)
{
    struct looker l = {.picture = picture, .h = fmax(params->radius / 5, 1)};
    if (*n == 0 || !(params->floor > 0))
        return OCT_OK;
    enum oct_err e = oct_crowd_reset(crowd, 2 * params->radius, *n, err);
    if (e)
        return e;
    double *contrast = malloc(*n * sizeof(*contrast));
    if (!contrast)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the contrast of %u cells", *n);
    for (unsigned c = 0; c < *n; c++)
        oct_crowd_add(crowd, cells[c].x, cells[c].y);
    for (unsigned i = 0; i < N_SAMPLES; i++) {
        l.unit[i][0] = cos(TWO_PI * i / N_SAMPLES);
        l.unit[i][1] = sin(TWO_PI * i / N_SAMPLES);
    }
    drop(&l, params, crowd, cells, contrast, n);
    free(contrast);
    return OCT_OK;
}
