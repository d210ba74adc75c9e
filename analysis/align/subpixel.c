#include "analysis/align/subpixel.h"

#include "analysis/align/transforms.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* The grids: first +-1 px, then +-1 coarse step, each of an odd number of points. */
#define COARSE 20
#define FINE 400
#define MOST_POINTS (2 * COARSE + 1)

/* Octaves of frequency: bins 0 .. 15, 16 .. 31, 32 .. 63, ... of half a side. */
#define FIRST_OCTAVE 16u
#define N_OCTAVES 11u
#define LEAST_FLOOR 1e-2  /* of the noise, of the pictures' variance */
#define LEAST_WEIGHT 3e-3 /* of bands in which the pictures have nothing in common */
#define DOUBT 3.0         /* so many variances of chance are not taken for coherence */

/* Sums over the bins of a band. */
struct band {
    double n, re, im, f, g;
};

struct oct_subpixel {
    bool is_even;           /* all frequencies count alike */
    uint32_t height, width; /* of the transforms */
    uint32_t n_bins;        /* width / 2 + 1 */
    fftwf_plan plan;
    float *line;              /* [height][width] */
    fftwf_complex *f, *g;     /* [height][n_bins] */
    float *re, *im;           /* [height][n_bins]: the cross-spectrum, each pair of bins once */
    float *k_x;               /* [n_bins], radians a pixel */
    double *k_y;              /* [height] */
    float *turn_re, *turn_im; /* [n_bins]: exp(i k_x x) */
    float *taper;             /* [width] */
    double bins_each;         /* bins that share what one of an untapered overlap says */
};

/* ---- life ---- */

void oct_subpixel_destroy(struct oct_subpixel *s)
{
    if (!s)
        return;
    oct_transform_destroy(s->plan);
    free(s->line);
    free(s->f);
    free(s->g);
    free(s->re);
    free(s->im);
    free(s->k_x);
    free(s->k_y);
    free(s->turn_re);
    free(s->turn_im);
    free(s->taper);
    free(s);
}

static bool allocate(struct oct_subpixel *s)
{
    size_t n = (size_t)s->height * s->n_bins;
    s->line = oct_aligned_calloc(64, (size_t)s->height * s->width, sizeof(float));
    s->f = oct_aligned_calloc(64, n, sizeof(fftwf_complex));
    s->g = oct_aligned_calloc(64, n, sizeof(fftwf_complex));
    s->re = oct_aligned_calloc(64, n, sizeof(float));
    s->im = oct_aligned_calloc(64, n, sizeof(float));
    s->k_x = oct_aligned_calloc(64, s->n_bins, sizeof(float));
    s->k_y = oct_aligned_calloc(64, s->height, sizeof(double));
    s->turn_re = oct_aligned_calloc(64, s->n_bins, sizeof(float));
    s->turn_im = oct_aligned_calloc(64, s->n_bins, sizeof(float));
    s->taper = oct_aligned_calloc(64, s->width, sizeof(float));
    if (s->line && s->f)
        s->plan = oct_transform_forward(s->height, s->width, s->line, s->f);
    return s->plan && s->g && s->re && s->im && s->k_x && s->k_y && s->turn_re && s->turn_im &&
           s->taper;
}

enum oct_err oct_subpixel_create(struct oct_subpixel **out, uint32_t height, uint32_t width,
                                 struct oct_error *err)
{
    *out = NULL;
    struct oct_subpixel *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for sub-pixel shifts");
    s->height = oct_transform_good_size(height);
    s->width = oct_transform_good_size(width);
    s->n_bins = s->width / 2 + 1;
    if (!allocate(s)) {
        oct_subpixel_destroy(s);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for sub-pixel shifts of %u x %u",
                        height, width);
    }
    for (uint32_t k = 0; k < s->n_bins; k++)
        s->k_x[k] = (float)(2 * PI * k / s->width);
    for (uint32_t k = 0; k < s->height; k++)
        s->k_y[k] = 2 * PI * ((double)k - (k > s->height / 2 ? s->height : 0)) / s->height;
    *out = s;
    return OCT_OK;
}

/* ---- the cross-spectrum ---- */

static double taper_at(uint32_t i, uint32_t n)
{
    double ramp = n / 16.0, from_side = (i < n - 1 - i ? i : n - 1 - i) + 0.5;
    return ramp > 0 && from_side < ramp ? from_side / ramp : 1.0;
}

/* A rectangle of a level, at (y0, x0). */
struct cut {
    const struct oct_level *level;
    uint32_t y0, x0, height, width;
};

static float mean_of(const struct cut *cut)
{
    const struct oct_level *level = cut->level;
    double sum = 0, n = (double)cut->height * cut->width;
    if (level->is_masked)
        n = 0;
    for (uint32_t y = 0; y < cut->height; y++) {
        size_t at = (size_t)(cut->y0 + y) * level->width + cut->x0;
        const float *values = level->planes[OCT_PLANE_VALUES] + at;
        float row[16] = {0};
        uint32_t x = 0;
        for (; x + 16 <= cut->width; x += 16)
            for (unsigned j = 0; j < 16; j++)
                row[j] += values[x + j];
        for (; x < cut->width; x++)
            row[0] += values[x];
        for (unsigned j = 0; j < 16; j++)
            sum += (double)row[j];
        for (x = 0; level->is_masked && x < cut->width; x++)
            n += (double)level->planes[OCT_PLANE_VALID][at + x];
    }
    return n > 0 ? (float)(sum / n) : 0.0F;
}

static void transform(struct oct_subpixel *s, const struct cut *cut, fftwf_complex *out)
{
    const struct oct_level *level = cut->level;
    float mean = mean_of(cut);
    for (uint32_t x = 0; x < cut->width; x++)
        s->taper[x] = (float)taper_at(x, cut->width);
    for (uint32_t y = 0; y < s->height; y++) {
        float *restrict to = s->line + (size_t)y * s->width;
        uint32_t n = y < cut->height ? cut->width : 0;
        memset(to + n, 0, (s->width - n) * sizeof(float));
        if (n == 0)
            continue;
        size_t at = (size_t)(cut->y0 + y) * level->width + cut->x0;
        const float *restrict values = level->planes[OCT_PLANE_VALUES] + at;
        float scale = (float)taper_at(y, cut->height);
        for (uint32_t x = 0; x < n; x++)
            to[x] = (values[x] - mean) * (scale * s->taper[x]);
        for (uint32_t x = 0; level->is_masked && x < n; x++)
            to[x] *= level->planes[OCT_PLANE_VALID][at + x];
    }
    fftwf_execute_dft_r2c(s->plan, s->line, out);
}

static uint32_t octave_of(uint32_t k)
{
    uint32_t octave = 0;
    while (k >= FIRST_OCTAVE << octave)
        octave++;
    return octave;
}

static uint32_t octave_end(const struct oct_subpixel *s, uint32_t octave)
{
    const uint32_t end = FIRST_OCTAVE << octave;
    return end < s->n_bins ? end : s->n_bins;
}

/* The first row of each sign and octave is 0, 1, ... of N_OCTAVES each. */
static uint32_t row_band(const struct oct_subpixel *s, uint32_t y)
{
    return y <= s->height / 2 ? octave_of(y) : N_OCTAVES + octave_of(s->height - y);
}

/* conj(F) G of a row from bin `first` to `end`, and its sums. */
static void multiply_bins(struct oct_subpixel *s, size_t row, uint32_t first, uint32_t end,
                          struct band *band)
{
    const float(*f)[2] = (const float(*)[2])(s->f + row), (*g)[2] = (const float(*)[2])(s->g + row);
    float *restrict re = s->re + row, *restrict im = s->im + row;
    float lanes[4][8] = {{0}};
    uint32_t x = first;
    for (; x + 8 <= end; x += 8)
        for (unsigned j = 0; j < 8; j++) {
            const float *a = f[x + j], *b = g[x + j];
            re[x + j] = a[0] * b[0] + a[1] * b[1];
            im[x + j] = a[0] * b[1] - a[1] * b[0];
            lanes[0][j] += re[x + j];
            lanes[1][j] += im[x + j];
            lanes[2][j] += a[0] * a[0] + a[1] * a[1];
            lanes[3][j] += b[0] * b[0] + b[1] * b[1];
        }
    for (; x < end; x++) {
        re[x] = f[x][0] * g[x][0] + f[x][1] * g[x][1];
        im[x] = f[x][0] * g[x][1] - f[x][1] * g[x][0];
        lanes[0][0] += re[x];
        lanes[1][0] += im[x];
        lanes[2][0] += f[x][0] * f[x][0] + f[x][1] * f[x][1];
        lanes[3][0] += g[x][0] * g[x][0] + g[x][1] * g[x][1];
    }
    band->n += end - first;
    for (unsigned j = 0; j < 8; j++) {
        band->re += (double)lanes[0][j];
        band->im += (double)lanes[1][j];
        band->f += (double)lanes[2][j];
        band->g += (double)lanes[3][j];
    }
}

/* See the header. n_pixels: of the overlap, whose variance is about 1. */
static float weight_of(const struct band *band, double bins_each, double n_pixels)
{
    if (!(band->n > 0))
        return 0;
    const double all = band->f * band->g / (band->n * band->n);
    const double common = (band->re * band->re + band->im * band->im) / (band->n * band->n);
    const double chance = DOUBT * bins_each / band->n * (all - common);
    const double signal = common > chance ? sqrt(common - chance) : 0;
    const double least = LEAST_FLOOR * n_pixels;
    const double noise = all - signal * signal;
    return (float)((signal + LEAST_WEIGHT * sqrt(all)) /
                   ((noise > 0 ? noise : 0) + least * (2 * signal + least)));
}

/* The cross-spectrum, weighted. Each pair of bins k, -k counts once: those of x = 0 are both there.
 * Bins in the middle of an axis have no sign; they are left out, as is the mean. */
static void multiply(struct oct_subpixel *s, double n_pixels)
{
    struct band bands[2 * N_OCTAVES][N_OCTAVES] = {{{0}}};
    float weights[2 * N_OCTAVES][N_OCTAVES];
    const uint32_t n_octaves = octave_of(s->n_bins - 1) + 1;
    for (uint32_t y = 0; y < s->height; y++)
        for (uint32_t i = 0; i < n_octaves; i++)
            multiply_bins(s, (size_t)y * s->n_bins, i ? octave_end(s, i - 1) : 0, octave_end(s, i),
                          &bands[row_band(s, y)][i]);
    for (uint32_t y = 0; y < 2 * N_OCTAVES; y++)
        for (uint32_t i = 0; i < n_octaves; i++)
            weights[y][i] = 2 * (s->is_even ? 1 : weight_of(&bands[y][i], s->bins_each, n_pixels));
    for (uint32_t y = 0; y < s->height; y++) {
        float *restrict re = s->re + (size_t)y * s->n_bins;
        float *restrict im = s->im + (size_t)y * s->n_bins;
        for (uint32_t i = 0, x = 0; i < n_octaves; i++) {
            const float w = y == s->height / 2 ? 0.0F : weights[row_band(s, y)][i];
            for (const uint32_t end = octave_end(s, i); x < end; x++) {
                re[x] *= w;
                im[x] *= w;
            }
        }
        re[0] *= 0.5F;
        im[0] *= 0.5F;
        re[s->n_bins - 1] = im[s->n_bins - 1] = 0;
    }
}

/* ---- Newton ---- */

/* The polynomial and its derivatives at a shift. */
struct value {
    double c, c_y, c_x, c_yy, c_xx, c_xy;
};

/* The sums over one row of bins, turned by k_x x: of the spectrum, times k_x, times k_x squared. */
static void sum_row(const struct oct_subpixel *s, uint32_t y, double sums[6])
{
    const float *restrict re = s->re + (size_t)y * s->n_bins;
    const float *restrict im = s->im + (size_t)y * s->n_bins;
    const float *restrict turn_re = s->turn_re, *restrict turn_im = s->turn_im;
    const float *restrict k = s->k_x;
    float lanes[6][8] = {{0}};
    uint32_t n = s->n_bins - 1; /* the last is 0 */
    for (uint32_t x = 0; x < n; x += 8) {
        unsigned m = n - x < 8 ? n - x : 8;
        if (m < 8) /* the loop below has a fixed length, which vectorises */
            break;
        for (unsigned j = 0; j < 8; j++) {
            float a = re[x + j] * turn_re[x + j] - im[x + j] * turn_im[x + j];
            float b = re[x + j] * turn_im[x + j] + im[x + j] * turn_re[x + j];
            float ka = k[x + j] * a, kb = k[x + j] * b;
            lanes[0][j] += a;
            lanes[1][j] += b;
            lanes[2][j] += ka;
            lanes[3][j] += kb;
            lanes[4][j] += k[x + j] * ka;
            lanes[5][j] += k[x + j] * kb;
        }
    }
    for (uint32_t x = n / 8 * 8; x < n; x++) {
        float a = re[x] * turn_re[x] - im[x] * turn_im[x];
        float b = re[x] * turn_im[x] + im[x] * turn_re[x];
        float add[6] = {a, b, k[x] * a, k[x] * b, k[x] * k[x] * a, k[x] * k[x] * b};
        for (unsigned i = 0; i < 6; i++)
            lanes[i][0] += add[i];
    }
    for (unsigned i = 0; i < 6; i++) {
        sums[i] = 0;
        for (unsigned j = 0; j < 8; j++)
            sums[i] += (double)lanes[i][j];
    }
}

static void set_turn(struct oct_subpixel *s, double x)
{
    for (uint32_t k = 0; k < s->n_bins; k++) {
        double angle = 2 * PI * k / s->width * x;
        s->turn_re[k] = (float)cos(angle);
        s->turn_im[k] = (float)sin(angle);
    }
}

static struct value evaluate(struct oct_subpixel *s, double dy, double dx)
{
    struct value v = {0};
    set_turn(s, dx);
    for (uint32_t y = 0; y < s->height; y++) {
        double r[6], k = s->k_y[y], a = cos(k * dy), b = sin(k * dy);
        sum_row(s, y, r);
        double c = r[0] * a - r[1] * b;
        double k_re = r[2] * a - r[3] * b, k_im = r[2] * b + r[3] * a;
        v.c += c;
        v.c_y -= k * (r[0] * b + r[1] * a);
        v.c_x -= k_im;
        v.c_yy -= k * k * c;
        v.c_xy -= k * k_re;
        v.c_xx -= r[4] * a - r[5] * b;
    }
    return v;
}

/* True: *y, *x is a maximum, to far less than 1/400 px. *at: a value within 0.04 px of it. */
static bool climb(struct oct_subpixel *s, double *y, double *x, struct value *at)
{
    double last = -HUGE_VAL;
    for (unsigned step = 0; step < 8; step++) {
        const struct value v = *at = evaluate(s, *y, *x);
        double determinant = v.c_yy * v.c_xx - v.c_xy * v.c_xy;
        if (!(v.c_yy < 0) || !(determinant > 0) || v.c < last)
            return false;
        double by_y = -(v.c_xx * v.c_y - v.c_xy * v.c_x) / determinant;
        double by_x = -(v.c_yy * v.c_x - v.c_xy * v.c_y) / determinant;
        last = v.c;
        *y += by_y;
        *x += by_x;
        if (fabs(*y) > 1 || fabs(*x) > 1)
            return false;
        /* Near a maximum the error after a step is below its square. */
        if (fabs(by_y) < 0.04 && fabs(by_x) < 0.04)
            return true;
    }
    return false;
}

/* ---- the grids ---- */

/* The largest value of a grid of n x n points around (*y, *x), `step` apart; moves there. */
static void search_grid(struct oct_subpixel *s, int n, double step, double *y, double *x)
{
    double grid[MOST_POINTS][MOST_POINTS] = {{0}}, y0 = *y, x0 = *x;
    for (int i = 0; i < n; i++) {
        set_turn(s, x0 + (i - n / 2) * step);
        for (uint32_t row = 0; row < s->height; row++) {
            double r[6];
            sum_row(s, row, r);
            for (int j = 0; j < n; j++) {
                double angle = s->k_y[row] * (y0 + (j - n / 2) * step);
                grid[j][i] += r[0] * cos(angle) - r[1] * sin(angle);
            }
        }
    }
    int best = n / 2 * n + n / 2;
    for (int i = 0; i < n * n; i++)
        if (grid[i / n][i % n] > grid[best / n][best % n])
            best = i;
    *y = y0 + (best / n - n / 2) * step;
    *x = x0 + (best % n - n / 2) * step;
}

/* ---- how sure that is ---- */

/* Of one row of bins, turned by k_x x and a + i b: what is left of the imaginary parts, squared;
 * the same times k_x, and k_x squared. */
static void sum_row_rest(const struct oct_subpixel *s, uint32_t y, float a, float b, double sums[3])
{
    const float *restrict re = s->re + (size_t)y * s->n_bins;
    const float *restrict im = s->im + (size_t)y * s->n_bins;
    const float *restrict turn_x = s->turn_re, *restrict turn_y = s->turn_im;
    const float *restrict k = s->k_x;
    const float first = re[0] * b + im[0] * a; /* k = (k_y, 0) and -k are both there: they count
                                                  twice, since they say the same */
    float lanes[3][8] = {{first * first}};
    uint32_t x = 0;
    for (; x + 8 <= s->n_bins; x += 8)
        for (unsigned j = 0; j < 8; j++) {
            const float turn_re = a * turn_x[x + j] - b * turn_y[x + j];
            const float turn_im = a * turn_y[x + j] + b * turn_x[x + j];
            const float rest = re[x + j] * turn_im + im[x + j] * turn_re, q = rest * rest;
            lanes[0][j] += q;
            lanes[1][j] += q * k[x + j];
            lanes[2][j] += q * k[x + j] * k[x + j];
        }
    for (; x + 1 < s->n_bins; x++) { /* the last is 0 */
        const float turn_re = a * turn_x[x] - b * turn_y[x];
        const float turn_im = a * turn_y[x] + b * turn_x[x];
        const float rest = re[x] * turn_im + im[x] * turn_re, q = rest * rest;
        lanes[0][0] += q;
        lanes[1][0] += q * k[x];
        lanes[2][0] += q * k[x] * k[x];
    }
    for (unsigned i = 0; i < 3; i++) {
        sums[i] = 0;
        for (unsigned j = 0; j < 8; j++)
            sums[i] += (double)lanes[i][j];
    }
}

/* The diagonal of H^-1 B H^-1 (see the header); v: the curvatures at the maximum. */
static void judge_fraction(struct oct_subpixel *s, const struct value *v,
                           struct oct_fraction *fraction)
{
    const double determinant = v->c_yy * v->c_xx - v->c_xy * v->c_xy;
    double b_yy = 0, b_xx = 0, b_yx = 0;
    if (!(v->c_yy < 0) || !(determinant > 0))
        return;
    const double yy = v->c_xx / determinant, xx = v->c_yy / determinant;
    const double yx = -v->c_xy / determinant;
    set_turn(s, fraction->x);
    for (uint32_t y = 0; y < s->height; y++) {
        const double k = s->k_y[y];
        double r[3];
        sum_row_rest(s, y, (float)cos(k * fraction->y), (float)sin(k * fraction->y), r);
        b_yy += k * k * r[0];
        b_yx += k * r[1];
        b_xx += r[2];
    }
    fraction->sd_y = sqrt(s->bins_each * (yy * yy * b_yy + 2 * yy * yx * b_yx + yx * yx * b_xx));
    fraction->sd_x = sqrt(s->bins_each * (xx * xx * b_xx + 2 * xx * yx * b_yx + yx * yx * b_yy));
}

/* How many of n_bins share what an untapered picture of n pixels says in one: zeros behind it, and
 * the taper, make neighbours alike. */
static double bins_each(uint32_t n_bins, uint32_t n)
{
    double squares = 0, fourths = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double square = taper_at(i, n) * taper_at(i, n);
        squares += square;
        fourths += square * square;
    }
    return n_bins * fourths / (squares * squares);
}

void oct_subpixel_even(struct oct_subpixel *s)
{
    s->is_even = true;
}

void oct_subpixel_find(struct oct_subpixel *s, const struct oct_level *f, const struct oct_level *g,
                       int32_t dy, int32_t dx, struct oct_fraction *fraction)
{
    uint32_t off_y = (uint32_t)abs(dy), off_x = (uint32_t)abs(dx);
    double y = fraction->y, x = fraction->x;
    struct value at;
    *fraction = (struct oct_fraction){.sd_y = NAN, .sd_x = NAN};
    if (off_y + 2 > f->height || off_x + 2 > f->width)
        return;
    uint32_t height = f->height - off_y, width = f->width - off_x;
    struct cut of_f = {f, dy < 0 ? off_y : 0, dx < 0 ? off_x : 0, height, width};
    struct cut of_g = {g, dy > 0 ? off_y : 0, dx > 0 ? off_x : 0, height, width};
    transform(s, &of_f, s->f);
    transform(s, &of_g, s->g);
    s->bins_each = bins_each(s->height, height) * bins_each(s->width, width);
    multiply(s, (double)height * width);
    if (!climb(s, &y, &x, &at)) {
        y = x = 0;
        search_grid(s, 2 * COARSE + 1, 1.0 / COARSE, &y, &x);
        search_grid(s, 2 * FINE / COARSE + 1, 1.0 / FINE, &y, &x);
        at = evaluate(s, y, x);
    }
    fraction->y = y;
    fraction->x = x;
    judge_fraction(s, &at, fraction);
}

/* ---- parabola ---- */

void oct_subpixel_parabola(const struct oct_match *match, double *y, double *x)
{
    const float(*around)[3] = (const float(*)[3])match->around;
    double c = (double)around[1][1];
    double up = (double)around[0][1], down = (double)around[2][1];
    double left = (double)around[1][0], right = (double)around[1][2];
    double g_y = (down - up) / 2, h_yy = down + up - 2 * c;
    double g_x = (right - left) / 2, h_xx = right + left - 2 * c;
    double h_xy = ((double)around[2][2] - (double)around[2][0] - (double)around[0][2] +
                   (double)around[0][0]) /
                  4;
    *y = *x = 0;
    bool is_y = h_yy < 0, is_x = h_xx < 0; /* false of NaN */
    double determinant = h_yy * h_xx - h_xy * h_xy;
    if (is_y && is_x && determinant > 0) {
        *y = -(h_xx * g_y - h_xy * g_x) / determinant;
        *x = -(h_yy * g_x - h_xy * g_y) / determinant;
    }
    if (!(fabs(*y) <= 1) || !(fabs(*x) <= 1) || !(determinant > 0)) {
        *y = is_y ? -g_y / h_yy : 0;
        *x = is_x ? -g_x / h_xx : 0;
    }
}
