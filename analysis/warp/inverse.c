#include "analysis/warp/inverse.h"

#include "analysis/warp/sample.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

/* ---- the inverse ---- */

#define MOST_STEPS 50u
#define LEAST_CHANGE 1e-3

struct inversion {
    const uint32_t *dims;
    size_t n;
    const float *u; /* [3][V][M][D] */
    float *inverse;
    double *left; /* [V]: the largest residual of a plane, squared; NULL: not asked for */
};

static void value_at(const uint32_t dims[3], size_t n, const float *u, const double x[3],
                     double value[3])
{
    const struct oct_warp_cell cell = oct_warp_cell_of(dims, x);
    for (unsigned c = 0; c < 3; c++)
        value[c] = oct_warp_sample(u + c * n, &cell);
}

/* r = -u(y - w) - w; returns its square. */
static double residual_at(const struct inversion *v, const double y[3], const double w[3],
                          double r[3])
{
    const double x[3] = {y[0] - w[0], y[1] - w[1], y[2] - w[2]};
    value_at(v->dims, v->n, v->u, x, r);
    for (unsigned c = 0; c < 3; c++)
        r[c] = -r[c] - w[c];
    return r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
}

/* w: a first guess, then w(y). Returns the square of what is left. A step that leaves more than
 * there was is taken back, and half of it tried. */
static double invert_voxel(const struct inversion *v, const double y[3], double w[3])
{
    double r[2][3], share = 1, left = residual_at(v, y, w, r[0]);
    unsigned now = 0;
    for (unsigned i = 0; i < MOST_STEPS; i++) {
        const bool is_last = share * share * left < LEAST_CHANGE * LEAST_CHANGE;
        double next[3];
        for (unsigned c = 0; c < 3; c++)
            next[c] = w[c] + share * r[now][c];
        const double then = residual_at(v, y, next, r[1 - now]);
        const bool is_better = then <= left;
        for (unsigned c = 0; c < 3 && is_better; c++)
            w[c] = next[c];
        left = is_better ? then : left;
        now = is_better ? 1 - now : now;
        share = !is_better ? share / 2 : share < 0.5 ? 2 * share : 1;
        if (is_last)
            break;
    }
    return left;
}

/* A voxel begins with what its neighbour ended with. */
static void invert_plane(void *context, unsigned b, unsigned worker)
{
    const struct inversion *v = context;
    double most = 0;
    (void)worker;
    for (uint32_t j = 0; j < v->dims[1]; j++) {
        const size_t at = ((size_t)b * v->dims[1] + j) * v->dims[2];
        double w[3] = {0};
        for (uint32_t d = 0; d < v->dims[2]; d++) {
            most = fmax(most, invert_voxel(v, (double[3]){b, j, d}, w));
            for (size_t c = 0; c < 3; c++)
                v->inverse[c * v->n + at + d] = (float)w[c];
        }
    }
    if (v->left)
        v->left[b] = most;
}

enum oct_err oct_warp_invert(const struct oct_warp_grid *grid, const float *displacement,
                             struct oct_workers *workers, float *inverse, double *largest,
                             struct oct_error *err)
{
    struct inversion v = {.dims = grid->dims,
                          .n = oct_warp_n_voxels(grid),
                          .u = displacement,
                          .inverse = inverse,
                          .left = largest ? calloc(grid->dims[0], sizeof(double)) : NULL};
    if (largest && !v.left)
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an inverse");
    oct_workers_run(workers, grid->dims[0], invert_plane, &v);
    if (!largest)
        return OCT_OK;
    *largest = 0;
    for (uint32_t b = 0; b < grid->dims[0]; b++)
        *largest = fmax(*largest, sqrt(v.left[b]));
    free(v.left);
    return OCT_OK;
}

void oct_warp_point(const struct oct_warp_grid *grid, const float *displacement, const double x[3],
                    double moved[3])
{
    double u[3];
    value_at(grid->dims, oct_warp_n_voxels(grid), displacement, x, u);
    for (unsigned c = 0; c < 3; c++)
        moved[c] = x[c] - u[c];
}

/* ---- what is said of it ---- */

/* Sums of as many pieces, whatever the number of threads, and added in their order. */
#define N_PIECES 64u

enum { SSD, A, B, AA, BB, AB, N_SUMS, LOG = 0, LOG2 };

struct sums {
    uint64_t n, n_folded;
    double of[N_SUMS]; /* of two volumes, or of log J */
    double least, most;
};

struct review {
    const float *a, *b; /* b NULL: a is J */
    const uint8_t *mask;
    size_t n;
    double base_a, base_b; /* values of theirs: what is constant leaves no rounding */
    struct sums sums[N_PIECES];
};

static bool is_compared(const struct review *r, size_t i)
{
    return (!r->mask || r->mask[i]) && isfinite(r->a[i]) && (!r->b || isfinite(r->b[i]));
}

static void add_pair(const struct review *r, size_t i, struct sums *s)
{
    const double away = (double)r->a[i] - (double)r->b[i];
    const double a = (double)r->a[i] - r->base_a, b = (double)r->b[i] - r->base_b;
    s->of[SSD] += away * away;
    s->of[A] += a;
    s->of[B] += b;
    s->of[AA] += a * a;
    s->of[BB] += b * b;
    s->of[AB] += a * b;
}

static void add_jacobian(double j, struct sums *s)
{
    const double log_j = j > 0 ? log(j) : 0;
    s->least = fmin(s->least, j);
    s->most = fmax(s->most, j);
    s->n_folded += j <= 0;
    s->of[LOG] += log_j;
    s->of[LOG2] += log_j * log_j;
}

static void review_piece(void *context, unsigned piece, unsigned worker)
{
    struct review *r = context;
    const size_t share = (r->n + N_PIECES - 1) / N_PIECES, first = piece * share;
    struct sums s = {.least = INFINITY, .most = -INFINITY};
    (void)worker;
    for (size_t i = first; i < first + share && i < r->n; i++) {
        if (!is_compared(r, i))
            continue;
        s.n++;
        if (r->b)
            add_pair(r, i, &s);
        else
            add_jacobian((double)r->a[i], &s);
    }
    r->sums[piece] = s;
}

static struct sums sum_review(struct review *r, struct oct_workers *workers)
{
    oct_workers_run(workers, N_PIECES, review_piece, r);
    struct sums all = r->sums[0];
    for (unsigned i = 1; i < N_PIECES; i++) {
        const struct sums *s = &r->sums[i];
        all.n += s->n;
        all.n_folded += s->n_folded;
        for (unsigned k = 0; k < N_SUMS; k++)
            all.of[k] += s->of[k];
        all.least = fmin(all.least, s->least);
        all.most = fmax(all.most, s->most);
    }
    return all;
}

void oct_warp_compare(const float *a, const float *b, const uint8_t *mask, size_t n,
                      struct oct_workers *workers, struct oct_warp_likeness *likeness)
{
    struct review r = {.a = a, .b = b, .mask = mask, .n = n};
    size_t first = 0;
    while (first < n && !is_compared(&r, first))
        first++;
    if (first < n) {
        r.base_a = (double)a[first];
        r.base_b = (double)b[first];
    }
    const struct sums all = sum_review(&r, workers);
    const double *s = all.of, per = all.n > 0 ? 1 / (double)all.n : 0;
    const double aa = s[AA] - s[A] * s[A] * per, bb = s[BB] - s[B] * s[B] * per;
    *likeness = (struct oct_warp_likeness){
        .ssd = s[SSD],
        .ncc = aa > 0 && bb > 0 ? (s[AB] - s[A] * s[B] * per) / sqrt(aa * bb) : NAN,
        .n = all.n};
}

void oct_warp_look_at_jacobian(const float *jacobian, const uint8_t *mask, size_t n,
                               struct oct_workers *workers, struct oct_warp_volume_change *change)
{
    struct review r = {.a = jacobian, .mask = mask, .n = n};
    const struct sums all = sum_review(&r, workers);
    const double n_log = (double)(all.n - all.n_folded), mean = all.of[LOG] / n_log;
    *change =
        (struct oct_warp_volume_change){.least = all.n > 0 ? all.least : NAN,
                                        .most = all.n > 0 ? all.most : NAN,
                                        .mean_log = mean,
                                        .sd_log = sqrt(fmax(0, all.of[LOG2] / n_log - mean * mean)),
                                        .folded = (double)all.n_folded / (double)all.n};
}
