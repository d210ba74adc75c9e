#include "analysis/layers/denoise/heights.h"

#include "numeric/order.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define MEDIAN_TO_SIGMA 1.4826
#define APART 2.5  /* times `alike`: noise so far apart has a fifth in common */
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

/* Of the median magnitude of the second differences in n directions; 0: too few are known. */
static double bend_noise(const struct map *m, const int64_t (*directions_of)[2],
                         unsigned n_directions, float *values)
{
    size_t n = 0;
    for (int64_t b = 0; b < m->n_b; b++)
        for (int64_t j = 0; j < m->n_j; j++)
            for (unsigned i = 0; i < n_directions; i++) {
                const int64_t db = directions_of[i][0], dj = directions_of[i][1];
                const float bend = at(m, b - db, j - dj) - 2 * at(m, b, j) + at(m, b + db, j + dj);
                if (isfinite(bend))
                    values[n++] = fabsf(bend);
            }
    if (n == 0)
        return 0;
    oct_floats_sort(values, n);
    return MEDIAN_TO_SIGMA * (double)values[(n - 1) / 2] / sqrt(6);
}

double oct_heights_noise(const float *heights, uint32_t n_b, uint32_t n_j, double alike)
{
    const struct map m = {heights, n_b, n_j};
    const int64_t next[2][2] = {{0, 1}, {1, 0}}, apart[2] = {0, (int64_t)ceil(APART * alike)};
    float *values = malloc((2 * (size_t)n_b * n_j + 1) * sizeof(*values));
    double noise = 0;
    if (values && alike > 0) {
        /* What is left in common makes the differences smaller. */
        const double d2 = (double)apart[1] * (double)apart[1] / (4 * alike * alike);
        const double share = sqrt((6 - 8 * exp(-d2) + 2 * exp(-4 * d2)) / 6);
        const double along = bend_noise(&m, &apart, 1, values) / share;
        const double across = bend_noise(&m, next + 1, 1, values);
        noise = along > 0 && (along < across || !(across > 0)) ? along : across;
    } else if (values) {
        noise = bend_noise(&m, next, 2, values);
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

#define ROUNDS 4
#define OFF 2.7   /* stray_noise, beyond which a height is replaced */
#define LOCAL 3.0 /* sigma of the mean of bias^2, heights */
/* Where noise is alike along the lines: */
#define ROUNDS_ALIKE 3
#define FAR_OFF 14.0     /* stray_noise, off the neighbouring B-scans */
#define LOCAL_LINES 8.0  /* sigma along the lines, and */
#define LOCAL_BSCANS 2.0 /* across the B-scans; */
#define WIDE 1.5         /* times these, where bias is that of noisy heights */
#define MOST_RISK 1e9f   /* noise^2; its fourth power is finite */
#define CUT 4.0          /* sigma, where a Gaussian ends */
#define FAR 128          /* heights, at the most */
#define N_FILTERS 8      /* along the lines, or of both kinds */
#define MOST_SIGMA 51.0  /* of a Gaussian that FAR hardly cuts */
#define N_ALIKE 6        /* along the lines where noise is alike there */

struct refinement {
    uint32_t n_b, n_j;
    size_t n;
    double noise, stray_noise, alike;
    bool has_pilot; /* the first round */
    const float *found;
    float *refined;
    /* [n] each: heights without strays; of them and of the surface G x and G G x along the lines,
     * and then across them; what is between two directions; bias^2; its local mean; weighted
     * heights; weights, summed up */
    float *heights, *lines[2][2], *all[2][2], *half, *bend, *bias, *sum, *weights;
    float *row; /* [FAR + n_j + FAR] */
};
#define N_MAPS 14

/* ---- a Gaussian ---- */

static int kernel_of(double sigma, float kernel[FAR + 1])
{
    const int far = (int)fmin(ceil(CUT * sigma), FAR);
    double sum = 0;
    for (int k = -far; k <= far; k++)
        sum += exp(-0.5 * k * k / (sigma * sigma));
    for (int k = 0; k <= far; k++)
        kernel[k] = (float)(exp(-0.5 * k * k / (sigma * sigma)) / sum);
    return far;
}

OCT_WIDE static void add_sides(float *restrict to, const float *restrict a, const float *restrict b,
                               float share, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += share * (a[i] + b[i]);
}

OCT_WIDE static void scale(float *restrict to, const float *restrict from, float share, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = share * from[i];
}

/* Of n heights that go on mirrored at both ends, which one lies at i. */
static size_t mirrored(int64_t i, int64_t n)
{
    const int64_t within = (i % (2 * n) + 2 * n) % (2 * n);
    return (size_t)(within < n ? within : 2 * n - 1 - within);
}

/* Along the A-lines; to is not from. sigma 0: as it is. */
static void smooth_lines(const struct refinement *f, const float *from, float *to, double sigma)
{
    const uint32_t n = f->n_j;
    float kernel[FAR + 1] = {1}, *row = f->row + FAR;
    const int far = sigma > 0 ? kernel_of(sigma, kernel) : 0;
    for (uint32_t b = 0; b < f->n_b; b++, from += n, to += n) {
        memcpy(row, from, n * sizeof(*row));
        for (int k = 1; k <= far; k++) {
            row[-k] = from[mirrored(-k, n)];
            row[(int64_t)n - 1 + k] = from[mirrored((int64_t)n - 1 + k, n)];
        }
        scale(to, row, kernel[0], n);
        for (int k = 1; k <= far; k++)
            add_sides(to, row - k, row + k, kernel[k], n);
    }
}

static const float *line_at(const struct refinement *f, const float *map, int64_t b)
{
    return map + mirrored(b, f->n_b) * f->n_j;
}

/* Across the B-scans; likewise. */
static void smooth_bscans(const struct refinement *f, const float *from, float *to, double sigma)
{
    float kernel[FAR + 1] = {1};
    const int far = sigma > 0 ? kernel_of(sigma, kernel) : 0;
    for (uint32_t b = 0; b < f->n_b; b++) {
        float *line = to + (size_t)b * f->n_j;
        scale(line, line_at(f, from, b), kernel[0], f->n_j);
        for (int k = 1; k <= far; k++)
            add_sides(line, line_at(f, from, (int64_t)b - k), line_at(f, from, (int64_t)b + k),
                      kernel[k], f->n_j);
    }
}

/* The mean of what a Gaussian of sigma s and one of sigma t make of noise of variance 1, along one
 * axis: of noise that is as alike as white noise smoothed by a Gaussian of sigma `alike`. */
static double in_common(double s, double t, double alike)
{
    const double both = s * s + t * t, own = 2 * alike * alike;
    return alike > 0 ? sqrt(own / (both + own)) : both > 0 ? 1 / sqrt(2 * PI * both) : 1;
}

/* What 2 G - G G leaves of the variance of the noise. */
static double left_of(const struct refinement *f, double lines, double bscans)
{
    const double s[2] = {lines, lines * sqrt(2)}, t[2] = {bscans, bscans * sqrt(2)};
    return 4 * in_common(s[0], s[0], f->alike) * in_common(t[0], t[0], 0) -
           4 * in_common(s[0], s[1], f->alike) * in_common(t[0], t[1], 0) +
           in_common(s[1], s[1], f->alike) * in_common(t[1], t[1], 0);
}

/* What noise of variance 1 has in common with what 2 G - G G makes of it. */
static double shared_by(const struct refinement *f, double lines, double bscans)
{
    return 2 * in_common(lines, 0, f->alike) * in_common(bscans, 0, 0) -
           in_common(lines * sqrt(2), 0, f->alike) * in_common(bscans * sqrt(2), 0, 0);
}

/* ---- a round ---- */

/* How far a height lies outside those of the two neighbouring B-scans; NaN: of none is one known.
 * What is in two B-scans is the surface's. */
static double off_neighbours(const struct map *m, int64_t b, int64_t j)
{
    const float before = at(m, b - 1, j), next = at(m, b + 1, j), h = at(m, b, j);
    const float least = fminf(before, next), most = fmaxf(before, next); /* a NaN is ignored */
    const double off = isnan(least) ? NAN : fmax(0, fmax((double)(least - h), (double)(h - most)));
    if (isnan(before) == isnan(next))
        return off;
    const int64_t side = isnan(before) ? 1 : -1; /* at an end the surface goes on as it came */
    return fmin(off, fabs((double)(h - 2 * at(m, b + side, j) + at(m, b + 2 * side, j))));
}

/* Heights off the surface become the surface's; in the first round, where noise is alike, those
 * off the neighbouring B-scans. */
static void leave_strays_out(struct refinement *f)
{
    const struct map m = {f->found, f->n_b, f->n_j};
    const bool is_across = f->has_pilot && f->alike > 0;
    const double most = (is_across ? FAR_OFF : OFF) * f->stray_noise;
    for (size_t i = 0; i < f->n; i++) {
        const double off = is_across
                               ? off_neighbours(&m, (int64_t)(i / f->n_j), (int64_t)(i % f->n_j))
                               : fabs((double)f->found[i] - (double)f->refined[i]);
        const bool is_stray = isnan(f->found[i]) || off > most || (!is_across && isnan(off));
        f->heights[i] = is_stray ? f->refined[i] : f->found[i];
    }
}

/* What the filter makes of the heights and of the surface, all[..][0] once and all[..][1] twice,
 * weighed. */
OCT_WIDE static void weigh_filter(struct refinement *f, float variance)
{
    const float over_noise2 = 1 / (float)(f->noise * f->noise);
    const float *restrict once = f->all[0][0], *restrict twice = f->all[0][1];
    const float *restrict bias = f->bias;
    float *restrict sum = f->sum, *restrict weights = f->weights;
    for (size_t i = 0; i < f->n; i++) {
        const float risk = bias[i] * over_noise2 + variance;
        const float bounded = risk < MOST_RISK ? risk : MOST_RISK, squared = bounded * bounded;
        const float weight = 1 / (squared * squared);
        sum[i] += weight * (2 * once[i] - twice[i]);
        weights[i] += weight;
    }
}

/* to = the local mean of (K x - x)^2, of x the heights (0) or the surface (1) */
static void mean_bend(struct refinement *f, unsigned k, double wide, float *to)
{
    const float *x = k ? f->refined : f->heights, *once = f->all[k][0], *twice = f->all[k][1];
    for (size_t i = 0; i < f->n; i++) {
        const float bend = 2 * once[i] - twice[i] - x[i];
        f->bend[i] = bend * bend;
    }
    smooth_lines(f, f->bend, f->half, wide * (f->alike > 0 ? LOCAL_LINES : LOCAL));
    smooth_bscans(f, f->half, to, wide * (f->alike > 0 ? LOCAL_BSCANS : LOCAL));
}

/* The pilot has been smoothed across the B-scans as along the lines, and may have lost there what a
 * filter would bend; the heights have it, under the noise: bias^2 is the mean of both. */
static void look_at_heights(struct refinement *f, double lines, double bscans)
{
    const double left = 1 - 2 * shared_by(f, lines, bscans) + left_of(f, lines, bscans);
    const float noise = (float)(left * f->noise * f->noise);
    mean_bend(f, 0, WIDE, f->bend);
    for (size_t i = 0; i < f->n; i++)
        f->bias[i] = 0.5f * (f->bias[i] + (f->bend[i] > noise ? f->bend[i] - noise : 0));
}

static void add_filter(struct refinement *f, double lines, double bscans)
{
    for (unsigned k = 0; k < 2; k++) {
        smooth_bscans(f, f->lines[k][0], f->all[k][0], bscans);
        smooth_bscans(f, f->lines[k][1], f->half, bscans);
        smooth_bscans(f, f->half, f->all[k][1], bscans);
    }
    mean_bend(f, 1, 1, f->bias);
    if (f->has_pilot && f->alike > 0)
        look_at_heights(f, lines, bscans);
    weigh_filter(f, (float)left_of(f, lines, bscans));
}

/* Of white noise filters are as wide across the B-scans as along the lines; where noise is alike
 * along the lines, of all kinds. */
static void run_round(struct refinement *f)
{
    const unsigned n = f->alike > 0 ? N_ALIKE : N_FILTERS;
    double s2 = f->alike > 0 ? 0.5 * fmax(f->alike * f->alike, 0.5) : 0.5;
    for (size_t i = 0; i < f->n; i++) { /* the filter that leaves all as it is */
        f->sum[i] = f->heights[i];
        f->weights[i] = 1;
    }
    for (unsigned i = 0; i < n && s2 <= MOST_SIGMA * MOST_SIGMA; i++, s2 *= 2) {
        for (unsigned k = 0; k < 2; k++) {
            smooth_lines(f, k ? f->refined : f->heights, f->lines[k][0], sqrt(s2));
            smooth_lines(f, f->lines[k][0], f->lines[k][1], sqrt(s2));
        }
        if (!(f->alike > 0)) {
            add_filter(f, sqrt(s2), sqrt(s2));
            continue;
        }
        add_filter(f, sqrt(s2), 0);
        for (double t2 = 0.5; t2 <= 16; t2 *= 2)
            add_filter(f, sqrt(s2), sqrt(t2));
    }
    for (size_t i = 0; i < f->n; i++)
        f->refined[i] = f->sum[i] / f->weights[i];
}

enum oct_err oct_heights_refine(const float *found, uint32_t n_b, uint32_t n_j, double alike,
                                double noise, double stray_noise, float *refined,
                                struct oct_error *err)
{
    const size_t n = (size_t)n_b * n_j, n_row = n_j + 2 * (size_t)FAR;
    if (!(noise > 0))
        return OCT_OK;
    float *memory = calloc(N_MAPS * n + n_row, sizeof(*memory)), *at = memory;
    if (!memory)
        return no_memory(n, err);
    struct refinement f = {.n_b = n_b,
                           .n_j = n_j,
                           .n = n,
                           .noise = noise,
                           .stray_noise = stray_noise,
                           .alike = alike,
                           .found = found,
                           .refined = refined};
    float **const maps[N_MAPS] = {&f.heights,     &f.lines[0][0], &f.lines[0][1], &f.lines[1][0],
                                  &f.lines[1][1], &f.all[0][0],   &f.all[0][1],   &f.all[1][0],
                                  &f.all[1][1],   &f.half,        &f.bend,        &f.bias,
                                  &f.sum,         &f.weights};
    for (unsigned i = 0; i < N_MAPS; i++, at += n)
        *maps[i] = at;
    f.row = at;
    for (unsigned round = 0; round < (alike > 0 ? ROUNDS_ALIKE : ROUNDS); round++) {
        f.has_pilot = round == 0;
        leave_strays_out(&f);
        run_round(&f);
    }
    free(memory);
    return OCT_OK;
}
