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

struct oct_subpixel {
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

static bool allocate(struct oct_subpixel *s, bool measure)
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
        s->plan = oct_transform_forward(s->height, s->width, measure, s->line, s->f);
    return s->plan && s->g && s->re && s->im && s->k_x && s->k_y && s->turn_re && s->turn_im &&
           s->taper;
}

enum oct_err oct_subpixel_create(struct oct_subpixel **out, uint32_t height, uint32_t width,
                                 bool measure, struct oct_error *err)
{
    *out = NULL;
    struct oct_subpixel *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for sub-pixel shifts");
    s->height = oct_transform_good_size(height);
    s->width = oct_transform_good_size(width);
    s->n_bins = s->width / 2 + 1;
    if (!allocate(s, measure)) {
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

/* conj(F) G, smoothed. Bins in the middle of an axis have no sign; they are left out, as is the
 * mean. */
static void multiply(struct oct_subpixel *s, double smooth_px)
{
    const double variance = smooth_px * smooth_px;
    float *pass = s->turn_re; /* not needed yet */
    for (uint32_t x = 0; x < s->n_bins; x++)
        pass[x] = (float)exp(-variance * (double)s->k_x[x] * (double)s->k_x[x]);
    for (uint32_t y = 0; y < s->height; y++) {
        size_t row = (size_t)y * s->n_bins;
        float *restrict re = s->re + row, *restrict im = s->im + row;
        float scale =
            y == s->height / 2 ? 0.0F : (float)(2 * exp(-variance * s->k_y[y] * s->k_y[y]));
        for (uint32_t x = 0; x < s->n_bins; x++) {
            const float *f = s->f[row + x], *g = s->g[row + x];
            re[x] = scale * pass[x] * (f[0] * g[0] + f[1] * g[1]);
            im[x] = scale * pass[x] * (f[0] * g[1] - f[1] * g[0]);
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

/* True: *y, *x is a maximum, to far less than 1/400 px. */
static bool climb(struct oct_subpixel *s, double *y, double *x)
{
    double last = -HUGE_VAL;
    for (unsigned step = 0; step < 8; step++) {
        struct value v = evaluate(s, *y, *x);
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

void oct_subpixel_find(struct oct_subpixel *s, const struct oct_level *f, const struct oct_level *g,
                       int32_t dy, int32_t dx, double smooth_px, double *fraction_y,
                       double *fraction_x)
{
    uint32_t off_y = (uint32_t)abs(dy), off_x = (uint32_t)abs(dx);
    double y = *fraction_y, x = *fraction_x;
    *fraction_y = *fraction_x = 0;
    if (off_y + 2 > f->height || off_x + 2 > f->width)
        return;
    uint32_t height = f->height - off_y, width = f->width - off_x;
    struct cut of_f = {f, dy < 0 ? off_y : 0, dx < 0 ? off_x : 0, height, width};
    struct cut of_g = {g, dy > 0 ? off_y : 0, dx > 0 ? off_x : 0, height, width};
    transform(s, &of_f, s->f);
    transform(s, &of_g, s->g);
    multiply(s, smooth_px);
    if (!climb(s, &y, &x)) {
        y = x = 0;
        search_grid(s, 2 * COARSE + 1, 1.0 / COARSE, &y, &x);
        search_grid(s, 2 * FINE / COARSE + 1, 1.0 / FINE, &y, &x);
    }
    *fraction_y = y;
    *fraction_x = x;
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
