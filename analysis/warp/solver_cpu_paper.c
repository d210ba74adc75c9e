/* OCT_WARP_PAPER on the CPU: the Lagrangian force with its cofactors, explicit steps of the
 * displacement, and regridding. For comparison: plain loops, which compute anew rather than
 * store. */
#include "analysis/warp/solver_cpu.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <string.h>

#define LEAST_LOG 1e-6F
#define REGRID_BELOW 0.5

/* ---- samples ---- */

/* Trilinear, constant beyond the border. */
static float sample(const uint32_t dims[3], const float *volume, const float x[3])
{
    size_t low[3];
    float part[3];
    for (unsigned i = 0; i < 3; i++) {
        const float inside = fminf(fmaxf(x[i], 0), (float)(dims[i] - 1));
        low[i] = (size_t)fminf(inside, (float)(dims[i] - 2));
        part[i] = inside - (float)low[i];
    }
    float of_b[2];
    for (unsigned b = 0; b < 2; b++) {
        float of_j[2];
        for (unsigned j = 0; j < 2; j++) {
            const float *at = volume + ((low[0] + b) * dims[1] + low[1] + j) * dims[2] + low[2];
            of_j[j] = at[0] + part[2] * (at[1] - at[0]);
        }
        of_b[b] = of_j[0] + part[1] * (of_j[1] - of_j[0]);
    }
    return of_b[0] + part[0] * (of_b[1] - of_b[0]);
}

/* d_axis of the trilinear volume at x, on a voxel's centre the mean of both sides. */
static float slope(const uint32_t dims[3], const float *volume, const float x[3], unsigned axis)
{
    const float last = (float)(dims[axis] - 1), below = floorf(x[axis]), above = ceilf(x[axis]);
    if (x[axis] < 0 || x[axis] > last)
        return 0;
    const bool on_voxel = below == above;
    float low[3], high[3];
    memcpy(low, x, sizeof(low));
    memcpy(high, x, sizeof(high));
    low[axis] = on_voxel ? below - 1 : below;
    high[axis] = on_voxel ? above + 1 : above;
    return (on_voxel ? 0.5F : 1) * (sample(dims, volume, high) - sample(dims, volume, low));
}

/* d_axis of a field at a voxel, one-sided in the border layer. */
static float difference(const struct oct_warp_pass *p, const float *field, const uint32_t x[3],
                        unsigned axis)
{
    const size_t strides[3] = {(size_t)p->dims[1] * p->dims[2], p->dims[2], 1};
    const bool has_low = x[axis] > 0, has_high = x[axis] + 1 < p->dims[axis];
    const float *at = field + oct_warp_row_of(p, x[0], x[1]) + x[2];
    const float low = has_low ? *(at - strides[axis]) : *at;
    const float high = has_high ? at[strides[axis]] : *at;
    return (has_low && has_high ? 0.5F : 1) * (high - low);
}

/* ---- the Lagrangian force ---- */

static float determinant(float a[3][3])
{
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
           a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

/* Dh = I - Du at a voxel. */
static void derivative(const struct oct_warp_pass *p, const uint32_t x[3], float dh[3][3])
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++)
            dh[i][k] = (float)(i == k) - difference(p, p->u + i * oct_warp_n_of(p), x, k);
}

/* cof_ik L' at a voxel, i = 0 .. 2. */
static void stress(const struct oct_warp_pass *p, const uint32_t x[3], unsigned k, float of_i[3])
{
    float a[3][3];
    derivative(p, x, a);
    const float jacobian = fmaxf(determinant(a), LEAST_LOG);
    const float slope_of_change = 1 + logf(jacobian) - 1 / jacobian;
    const unsigned m = (k + 1) % 3, n = (k + 2) % 3;
    for (unsigned i = 0; i < 3; i++) {
        const unsigned r = (i + 1) % 3, s = (i + 2) % 3;
        of_i[i] = (a[r][m] * a[s][n] - a[r][n] * a[s][m]) * slope_of_change;
    }
}

/* sum_k d_k (cof_ik L'). */
static void divergence(const struct oct_warp_pass *p, const uint32_t x[3], float of_i[3])
{
    memset(of_i, 0, 3 * sizeof(*of_i));
    for (unsigned k = 0; k < 3; k++) {
        uint32_t low[3], high[3];
        float at_low[3], at_high[3];
        memcpy(low, x, sizeof(low));
        memcpy(high, x, sizeof(high));
        low[k] -= x[k] > 0;
        high[k] += x[k] + 1 < p->dims[k];
        stress(p, low, k, at_low);
        stress(p, high, k, at_high);
        for (unsigned i = 0; i < 3; i++)
            of_i[i] += (at_high[i] - at_low[i]) / (float)(high[k] - low[k]);
    }
}

static void force_voxel(const struct oct_warp_pass *p, const uint32_t x[3],
                        struct oct_warp_plane_sums *sums)
{
    const size_t n = oct_warp_n_of(p), at = oct_warp_row_of(p, x[0], x[1]) + x[2];
    float h[3], change[3], dh[3][3];
    for (unsigned i = 0; i < 3; i++)
        h[i] = (float)x[i] - p->u[i * n + at];
    const bool is_compared = !p->mask || p->mask[at];
    const float r = is_compared ? sample(p->dims, p->moving, h) - p->fixed[at] : 0;
    divergence(p, x, change);
    for (unsigned i = 0; i < 3; i++)
        p->v[i * n + at] = r * slope(p->dims, p->moving, h, i) - p->lambda * change[i];
    derivative(p, x, dh);
    const float jacobian = determinant(dh);
    sums->ssd += (double)(r * r);
    sums->change += (double)((jacobian - 1) * logf(fmaxf(jacobian, LEAST_LOG)));
    sums->least = fminf(sums->least, jacobian);
}

static void force_plane(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const struct oct_warp_pass *p = &e->pass;
    (void)worker;
    p->sums[b] = (struct oct_warp_plane_sums){.least = INFINITY};
    for (uint32_t j = 0; j < p->dims[1]; j++)
        for (uint32_t d = 0; d < p->dims[2]; d++)
            force_voxel(p, (uint32_t[3]){b, j, d}, p->sums + b);
}

void oct_warp_cpu_lagrangian(struct oct_warp_engine *e)
{
    oct_workers_run(e->setup.workers, e->pass.dims[0], force_plane, e);
}

/* ---- velocity ---- */

/* G of a line of n values, `stride` apart, in place. */
static void smooth_line(const struct oct_warp_pass *p, unsigned axis, float *line, size_t stride,
                        float *copy)
{
    const uint32_t n = p->dims[axis];
    for (uint32_t i = 0; i < n; i++)
        copy[i] = line[i * stride];
    for (uint32_t i = 0; i < n; i++) {
        float sum = p->taps[axis][0] * copy[i];
        for (uint32_t k = 1; k <= p->radius[axis]; k++)
            sum += p->taps[axis][k] * (copy[k > i ? 0 : i - k] + copy[i + k < n ? i + k : n - 1]);
        line[i * stride] = sum;
    }
}

static void smooth_plane(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const struct oct_warp_pass *p = &e->pass;
    float *copy = e->scratch + worker * e->n_scratch;
    for (size_t c = 0; c < 3; c++) {
        float *plane = p->v + c * oct_warp_n_of(p) + oct_warp_row_of(p, b, 0);
        for (uint32_t j = 0; j < p->dims[1]; j++)
            smooth_line(p, 2, plane + (size_t)j * p->dims[2], 1, copy);
        for (uint32_t d = 0; d < p->dims[2]; d++)
            smooth_line(p, 1, plane + d, p->dims[2], copy);
    }
}

static void smooth_bscans(void *context, unsigned j, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const struct oct_warp_pass *p = &e->pass;
    float *copy = e->scratch + worker * e->n_scratch;
    for (size_t c = 0; c < 3; c++)
        for (uint32_t d = 0; d < p->dims[2]; d++)
            smooth_line(p, 0, p->v + c * oct_warp_n_of(p) + oct_warp_row_of(p, 0, j) + d,
                        (size_t)p->dims[1] * p->dims[2], copy);
}

static void to_voxels(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const struct oct_warp_pass *p = &e->pass;
    const size_t plane = (size_t)p->dims[1] * p->dims[2];
    (void)worker;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < plane; i++)
            p->v[c * oct_warp_n_of(p) + b * plane + i] *= p->per_unit2[c];
}

static enum oct_err evaluate(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    struct oct_workers *workers = e->setup.workers;
    (void)err;
    e->pass.u = trial ? e->trial : e->current;
    oct_warp_cpu_lagrangian(e);
    oct_workers_run(workers, e->pass.dims[0], to_voxels, e);
    oct_workers_run(workers, e->pass.dims[0], smooth_plane, e);
    oct_workers_run(workers, e->pass.dims[1], smooth_bscans, e);
    *energy = oct_warp_cpu_energy(e);
    /* The force reads u, T and R and writes v; each of the three others reads and writes v. */
    e->bytes += (double)oct_warp_n_of(&e->pass) *
                ((double)((3 + 2 + 6 + 3 * 6) * sizeof(float) + (e->pass.mask != NULL)));
    return OCT_OK;
}

/* ---- steps ---- */

/* v - v . grad u. */
static float flow(const struct oct_warp_pass *p, const uint32_t x[3], size_t at, unsigned i)
{
    const size_t n = oct_warp_n_of(p);
    float sum = p->v[i * n + at];
    for (unsigned k = 0; k < 3; k++)
        sum -= p->v[k * n + at] * difference(p, p->u + i * n, x, k);
    return sum;
}

static void step_plane(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const struct oct_warp_pass *p = &e->pass;
    const size_t n = oct_warp_n_of(p);
    float largest = 0;
    (void)worker;
    for (uint32_t j = 0; j < p->dims[1]; j++)
        for (uint32_t d = 0; d < p->dims[2]; d++) {
            const uint32_t x[3] = {b, j, d};
            const size_t at = oct_warp_row_of(p, b, j) + d;
            float length2 = 0;
            for (unsigned i = 0; i < 3; i++) {
                const float w = flow(p, x, at, i);
                length2 += w * w / p->per_unit2[i];
                p->next[i * n + at] = p->u[i * n + at] + p->scale * w;
            }
            largest = fmaxf(largest, length2);
        }
    p->sums[b].least = sqrtf(largest);
}

static enum oct_err step(void *context, double scale, struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    double largest = 0;
    (void)err;
    e->pass.u = e->current;
    e->pass.next = e->trial;
    for (unsigned round = 0; round < 2; round++) { /* the first for the longest step alone */
        oct_workers_run(e->setup.workers, e->pass.dims[0], step_plane, e);
        for (uint32_t b = 0; round == 0 && b < e->pass.dims[0]; b++)
            largest = fmax(largest, (double)e->sums[b].least);
        e->pass.scale = largest > 0 ? (float)(scale * e->setup.params.most_step / largest) : 0;
        e->bytes += (double)oct_warp_n_of(&e->pass) * (3 + 3 + 6) * sizeof(float);
    }
    return OCT_OK;
}

/* ---- regridding ---- */

/* next = u + total(x - u). */
static void compose_plane(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const struct oct_warp_pass *p = &e->pass;
    const size_t n = oct_warp_n_of(p);
    (void)worker;
    for (uint32_t j = 0; j < p->dims[1]; j++)
        for (uint32_t d = 0; d < p->dims[2]; d++) {
            const size_t at = oct_warp_row_of(p, b, j) + d;
            const float h[3] = {(float)b - p->u[at], (float)j - p->u[n + at],
                                (float)d - p->u[2 * n + at]};
            for (unsigned i = 0; i < 3; i++)
                p->next[i * n + at] = p->u[i * n + at] + sample(p->dims, e->total + i * n, h);
        }
}

void oct_warp_cpu_gather(struct oct_warp_engine *e)
{
    e->pass.u = e->current;
    e->pass.next = e->trial;
    oct_workers_run(e->setup.workers, e->pass.dims[0], compose_plane, e);
    oct_warp_cpu_accept(e);
}

void oct_warp_cpu_begin_regridding(struct oct_warp_engine *e)
{
    const size_t n = oct_warp_n_of(&e->pass);
    memcpy(e->total, e->current, 3 * n * sizeof(float));
    e->pass.u = e->total;
    e->pass.next = e->warped;
    oct_warp_cpu_warp(e);
    e->pass.moving = e->warped;
    memset(e->current, 0, 3 * n * sizeof(float));
}

static enum oct_err regrid(void *context, struct oct_warp_energy *energy, unsigned *n_regrids,
                           struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    const size_t n = oct_warp_n_of(&e->pass);
    if (!(energy->least < REGRID_BELOW))
        return OCT_OK;
    ++*n_regrids;
    e->pass.u = e->current;
    e->pass.next = e->trial;
    oct_warp_cpu_warp(e);
    memcpy(e->warped, e->trial, n * sizeof(float));
    oct_workers_run(e->setup.workers, e->pass.dims[0], compose_plane, e);
    memcpy(e->total, e->trial, 3 * n * sizeof(float));
    memset(e->current, 0, 3 * n * sizeof(float));
    return evaluate(e, false, energy, err);
}

const struct oct_warp_descent_ops oct_warp_cpu_paper = {
    .evaluate = evaluate, .step = step, .accept = oct_warp_cpu_accept, .regrid = regrid};
