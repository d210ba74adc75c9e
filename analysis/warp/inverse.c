#include "analysis/warp/inverse.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

/* ---- the inverse ---- */

#define MOST_STEPS 50u
#define LEAST_CHANGE 1e-3F

/* A displacement to be read between its voxels. */
struct field {
    uint32_t dims[3];
    const float *u; /* [3][V][M][D] */
    size_t n;
};

struct inversion {
    struct field field;
    float *inverse;
    float *left; /* [V]: the largest residual of a plane, squared; NULL: not asked for */
};

struct vector {
    float c[3];
};

struct place {
    size_t low;
    float part; /* of the voxel above */
};

static inline struct place place_of(float x, uint32_t n)
{
    const float last = (float)(n - 1);
    const float inside = x > 0 ? (x < last ? x : last) : 0;
    const size_t low = inside < last ? (size_t)inside : n - 2;
    return (struct place){low, inside - (float)low};
}

/* u at a place, trilinear, constant beyond the border. */
static inline struct vector value_at(const struct field *f, const float x[3])
{
    const struct place b = place_of(x[0], f->dims[0]), j = place_of(x[1], f->dims[1]);
    const struct place d = place_of(x[2], f->dims[2]);
    const size_t row = f->dims[2], plane = row * f->dims[1];
    const float *at = f->u + b.low * plane + j.low * row + d.low;
    struct vector value;
    for (size_t c = 0; c < 3; c++, at += f->n) {
        const float *up = at + plane;
        const float low0 = at[0] + d.part * (at[1] - at[0]);
        const float low1 = at[row] + d.part * (at[row + 1] - at[row]);
        const float high0 = up[0] + d.part * (up[1] - up[0]);
        const float high1 = up[row] + d.part * (up[row + 1] - up[row]);
        const float low = low0 + j.part * (low1 - low0), high = high0 + j.part * (high1 - high0);
        value.c[c] = low + b.part * (high - low);
    }
    return value;
}

static inline float square_of(const struct vector *v)
{
    return v->c[0] * v->c[0] + v->c[1] * v->c[1] + v->c[2] * v->c[2];
}

/* -u(y - w) - w. */
static inline struct vector residual_at(const struct field *f, const float y[3],
                                        const struct vector *w)
{
    const float x[3] = {y[0] - w->c[0], y[1] - w->c[1], y[2] - w->c[2]};
    struct vector r = value_at(f, x);
    for (unsigned c = 0; c < 3; c++)
        r.c[c] = -r.c[c] - w->c[c];
    return r;
}

/* *w: a first guess, then w(y). Returns the square of what is left. A step that leaves more than
 * there was is taken back, and half of it tried. */
static float invert_voxel(const struct field *f, const float y[3], struct vector *w)
{
    struct vector r = residual_at(f, y, w);
    float left = square_of(&r), share = 1;
    for (unsigned i = 0; i < MOST_STEPS; i++) {
        const bool is_last = share * share * left < LEAST_CHANGE * LEAST_CHANGE;
        struct vector next;
        for (unsigned c = 0; c < 3; c++)
            next.c[c] = w->c[c] + share * r.c[c];
        const struct vector then = residual_at(f, y, &next);
        const float left_then = square_of(&then);
        if (left_then <= left) {
            *w = next;
            r = then;
            left = left_then;
            share = share < 0.5F ? 2 * share : 1;
        } else
            share /= 2;
        if (is_last)
            break;
    }
    return left;
}

/* A voxel begins with what its neighbour ended with. */
static void invert_plane(void *context, unsigned b, unsigned worker)
{
    const struct inversion *inversion = context;
    const struct field *f = &inversion->field;
    float most = 0;
    (void)worker;
    for (uint32_t j = 0; j < f->dims[1]; j++) {
        const size_t at = ((size_t)b * f->dims[1] + j) * f->dims[2];
        struct vector w = {{0}};
        for (uint32_t d = 0; d < f->dims[2]; d++) {
            const float y[3] = {(float)b, (float)j, (float)d};
            const float left = invert_voxel(f, y, &w);
            most = left > most ? left : most;
            for (size_t c = 0; c < 3; c++)
                inversion->inverse[c * f->n + at + d] = w.c[c];
        }
    }
    if (inversion->left)
        inversion->left[b] = most;
}

enum oct_err oct_warp_invert(const struct oct_warp_grid *grid, const float *displacement,
                             struct oct_workers *workers, float *inverse, double *largest,
                             struct oct_error *err)
{
    struct inversion inversion = {.field = {{grid->dims[0], grid->dims[1], grid->dims[2]},
                                            displacement,
                                            oct_warp_n_voxels(grid)},
                                  .inverse = inverse};
    if (largest) {
        inversion.left = calloc(grid->dims[0], sizeof(*inversion.left));
        if (!inversion.left)
            return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an inverse");
    }
    oct_workers_run(workers, grid->dims[0], invert_plane, &inversion);
    if (largest) {
        float most = 0;
        for (uint32_t b = 0; b < grid->dims[0]; b++)
            most = inversion.left[b] > most ? inversion.left[b] : most;
        *largest = sqrt((double)most);
        free(inversion.left);
    }
    return OCT_OK;
}

void oct_warp_point(const struct oct_warp_grid *grid, const float *displacement, const double x[3],
                    double moved[3])
{
    const size_t n = oct_warp_n_voxels(grid);
    const size_t strides[3] = {(size_t)grid->dims[1] * grid->dims[2], grid->dims[2], 1};
    double part[3];
    size_t first = 0;
    for (unsigned i = 0; i < 3; i++) {
        const double last = grid->dims[i] - 1.0, inside = fmin(fmax(x[i], 0), last);
        const double low = fmin(floor(inside), last - 1);
        part[i] = inside - low;
        first += (size_t)low * strides[i];
    }
    for (unsigned c = 0; c < 3; c++) {
        double sum = 0;
        for (unsigned corner = 0; corner < 8; corner++) {
            size_t at = c * n + first;
            double weight = 1;
            for (unsigned i = 0; i < 3; i++) {
                const bool is_high = corner >> i & 1;
                at += is_high ? strides[i] : 0;
                weight *= is_high ? part[i] : 1 - part[i];
            }
            sum += weight * (double)displacement[at];
        }
        moved[c] = x[c] - sum;
    }
}

/* ---- what is said of it ---- */

/* Sums of as many pieces, whatever the number of threads, and added in their order. */
#define N_PIECES 64u

struct sums {
    uint64_t n, n_folded;
    double ssd, a, b, aa, bb, ab;  /* of two volumes */
    double least, most, log, log2; /* of J */
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
    s->ssd += away * away;
    s->a += a;
    s->b += b;
    s->aa += a * a;
    s->bb += b * b;
    s->ab += a * b;
}

static void add_jacobian(double j, struct sums *s)
{
    s->least = fmin(s->least, j);
    s->most = fmax(s->most, j);
    if (j <= 0) {
        s->n_folded++;
        return;
    }
    const double log_j = log(j);
    s->log += log_j;
    s->log2 += log_j * log_j;
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

static struct sums review(struct review *r, struct oct_workers *workers)
{
    struct sums all = {.least = INFINITY, .most = -INFINITY};
    oct_workers_run(workers, N_PIECES, review_piece, r);
    for (unsigned i = 0; i < N_PIECES; i++) {
        const struct sums *s = &r->sums[i];
        all.n += s->n;
        all.n_folded += s->n_folded;
        all.ssd += s->ssd;
        all.a += s->a;
        all.b += s->b;
        all.aa += s->aa;
        all.bb += s->bb;
        all.ab += s->ab;
        all.least = fmin(all.least, s->least);
        all.most = fmax(all.most, s->most);
        all.log += s->log;
        all.log2 += s->log2;
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
    const struct sums all = review(&r, workers);
    const double per = all.n > 0 ? 1 / (double)all.n : 0;
    const double aa = all.aa - all.a * all.a * per, bb = all.bb - all.b * all.b * per;
    const double ab = all.ab - all.a * all.b * per;
    *likeness = (struct oct_warp_likeness){
        .ssd = all.ssd, .ncc = aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN, .n = all.n};
}

void oct_warp_look_at_jacobian(const float *jacobian, const uint8_t *mask, size_t n,
                               struct oct_workers *workers, struct oct_warp_volume_change *change)
{
    struct review r = {.a = jacobian, .mask = mask, .n = n};
    const struct sums all = review(&r, workers);
    const double n_log = (double)(all.n - all.n_folded), mean = all.log / n_log;
    *change =
        (struct oct_warp_volume_change){.least = all.n > 0 ? all.least : NAN,
                                        .most = all.n > 0 ? all.most : NAN,
                                        .mean_log = mean,
                                        .sd_log = sqrt(fmax(0, all.log2 / n_log - mean * mean)),
                                        .folded = (double)all.n_folded / (double)all.n};
}
