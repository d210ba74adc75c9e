#include "analysis/warp/solver_cpu.h"

#include "analysis/warp/sample.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PLANES 8u                 /* of a piece of evaluate, which computes two more */
#define STRIP_BYTES ((size_t)400 << 10) /* of v: its rows lie in a second cache */

enum {
    ROOM_SCRATCH,
    ROOM_FIXED, /* of a level of factor 2 or more; so are the next two */
    ROOM_MOVING,
    ROOM_MASK,
    ROOM_U, /* [3]: the other displacement beside the caller's */
    ROOM_V, /* [3] */
    ROOM_SUMS,
    ROOM_WARPED, /* OCT_WARP_PAPER: the template */
    ROOM_TOTAL,  /* and [3] its displacement of the level's moving volume */
    N_ROOMS
};

struct oct_warp_engine {
    struct oct_warp_setup setup;
    const struct oct_warp_passes *passes;
    void *rooms[N_ROOMS];

    /* Of a run. */
    struct oct_warp_pass pass;
    float *current, *trial;
    double bytes;
};

const struct oct_warp_passes *oct_warp_passes_select(const char *name)
{
    static const struct oct_warp_passes *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_warp_passes)};
    return sets[oct_simd_choose(name)];
}

/* ---- memory ---- */

static size_t n_workers_of(const struct oct_warp_setup *setup)
{
    return setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A-lines of a piece of a step. */
static uint32_t strip_lines(uint32_t n_d, unsigned radius)
{
    const size_t of_line =
        3 * (2 * (size_t)radius + OCT_WARP_TOGETHER) * oct_warp_pitch(n_d) * sizeof(float);
    const size_t fit = STRIP_BYTES / of_line;
    return fit > 8 ? 8 : fit < 2 ? 2 : (uint32_t)fit;
}

/* Floats that a pass over a level of these sides takes; radius: of G along the B-scans. */
static size_t level_scratch(const uint32_t dims[3], unsigned radius)
{
    const size_t pitch = oct_warp_pitch(dims[2]), n_lines = strip_lines(dims[2], radius);
    const size_t rows = 3 * (pitch + 2 * OCT_WARP_MOST_RADIUS) + 2 * OCT_WARP_PAD;
    const size_t evaluate = 9 * dims[1] * pitch + rows;
    const size_t of_u = 3 * (OCT_WARP_TOGETHER + 2) * (n_lines + 2);
    const size_t of_v = 3 * (2 * (size_t)radius + OCT_WARP_TOGETHER) * n_lines;
    const size_t step = (of_u + of_v + 3 * OCT_WARP_TOGETHER) * pitch;
    const size_t most = larger(larger(evaluate, step), OCT_WARP_SMOOTH_SCRATCH(dims));
    return (most + 15) / 16 * 16;
}

/* Of a worker, and the voxels of the largest level that is not the volume itself: coarser levels
 * take shorter rows, but more of them for a step. */
static size_t scratch_floats(const struct oct_warp_setup *setup, size_t *n_coarse)
{
    const unsigned radius = oct_warp_gauss_of(&setup->grid, setup->params.sigma).radius[0];
    size_t most = level_scratch(setup->grid.dims, radius);
    *n_coarse = 1;
    for (unsigned i = 0; i < setup->params.n_levels; i++) {
        uint32_t dims[3];
        oct_warp_level_dims(setup->grid.dims, setup->params.factor[i], dims);
        most = larger(most, level_scratch(dims, radius));
        if (setup->params.factor[i] > 1)
            *n_coarse = larger(*n_coarse, (size_t)dims[0] * dims[1] * dims[2]);
    }
    return most;
}

static void list_rooms(const struct oct_warp_setup *setup, size_t bytes[N_ROOMS])
{
    const size_t volume = oct_warp_n_voxels(&setup->grid) * sizeof(float);
    const bool is_paper = setup->params.profile == OCT_WARP_PAPER;
    size_t n_coarse;
    bytes[ROOM_SCRATCH] = n_workers_of(setup) * scratch_floats(setup, &n_coarse) * sizeof(float);
    bytes[ROOM_FIXED] = bytes[ROOM_MOVING] = n_coarse * sizeof(float);
    bytes[ROOM_MASK] = n_coarse;
    bytes[ROOM_U] = bytes[ROOM_V] = 3 * volume;
    bytes[ROOM_SUMS] = setup->grid.dims[0] * sizeof(struct oct_warp_plane_sums);
    bytes[ROOM_WARPED] = is_paper ? volume : 0;
    bytes[ROOM_TOTAL] = is_paper ? 3 * volume : 0;
}

static uint64_t engine_bytes(const struct oct_warp_setup *setup)
{
    size_t bytes[N_ROOMS];
    uint64_t sum = 0;
    list_rooms(setup, bytes);
    for (unsigned i = 0; i < N_ROOMS; i++)
        sum += bytes[i];
    return sum;
}

static void engine_destroy(struct oct_warp_engine *e)
{
    for (unsigned i = 0; e && i < N_ROOMS; i++)
        free(e->rooms[i]);
    free(e);
}

static enum oct_err engine_create(struct oct_warp_engine **engine,
                                  const struct oct_warp_setup *setup, struct oct_error *err)
{
    *engine = NULL;
    const enum oct_err failed = oct_warp_params_check(&setup->params, &setup->grid, err);
    if (failed)
        return failed;
    struct oct_warp_engine *e = calloc(1, sizeof(*e));
    size_t bytes[N_ROOMS];
    list_rooms(setup, bytes);
    bool fits = e;
    for (unsigned i = 0; i < N_ROOMS && fits; i++)
        fits = bytes[i] == 0 || (e->rooms[i] = oct_aligned_alloc(64, bytes[i], 1));
    if (!fits) {
        engine_destroy(e);
        return oct_fail(
            err, OCT_E_NO_MEMORY,
            "warp: out of memory for volumes of %u x %u x %u voxels, which take %.0f MB",
            setup->grid.dims[0], setup->grid.dims[1], setup->grid.dims[2],
            (double)engine_bytes(setup) / 1e6);
    }
    /* Lanes behind the end of a row are multiplied by 0, which leaves 0 of what is finite alone. */
    memset(e->rooms[ROOM_SCRATCH], 0, bytes[ROOM_SCRATCH]);
    e->setup = *setup;
    e->passes = oct_warp_passes_select("auto");
    *engine = e;
    return OCT_OK;
}

void oct_warp_cpu_use(struct oct_warp_engine *engine, const struct oct_warp_passes *passes)
{
    engine->passes = passes;
}

/* ---- steps ---- */

static void run_pass(struct oct_warp_engine *e, unsigned n_pieces,
                     void (*run)(void *pass, unsigned piece, unsigned worker))
{
    oct_workers_run(e->setup.workers, n_pieces, run, &e->pass);
}

/* Counts `floats` of each voxel that are read or written. */
static void count(struct oct_warp_engine *e, double floats)
{
    e->bytes += floats * (double)oct_warp_n_of(&e->pass) * sizeof(float);
}

/* The planes' sums, added in their order. */
static struct oct_warp_energy sum_energy(const struct oct_warp_engine *e)
{
    struct oct_warp_energy sum = {.least = INFINITY};
    for (uint32_t b = 0; b < e->pass.dims[0]; b++) {
        sum.ssd += e->pass.sums[b].ssd;
        sum.change += e->pass.sums[b].change;
        sum.least = fmin(sum.least, (double)e->pass.sums[b].least);
    }
    sum.energy = sum.ssd / 2 + sum.change;
    return sum;
}

static enum oct_err evaluate(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    (void)err;
    e->pass.u = trial ? e->trial : e->current;
    run_pass(e, e->pass.n_pieces, e->passes->evaluate);
    *energy = sum_energy(e);
    /* u, T, R and the mask are read; v is written, after the processor has read it. */
    count(e, 3 + 2 + 6 + (e->pass.mask ? 0.25 : 0));
    return OCT_OK;
}

static enum oct_err step(void *context, double scale, unsigned n_alike, struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    const unsigned n_strips = (e->pass.dims[1] + e->pass.n_lines - 1) / e->pass.n_lines;
    (void)n_alike;
    (void)err;
    e->pass.u = e->current;
    e->pass.next = e->trial;
    e->pass.scale = (float)scale;
    run_pass(e, n_strips, e->passes->step);
    count(e, 3 + 3 + 6);
    return OCT_OK;
}

static void accept(void *engine)
{
    struct oct_warp_engine *e = engine;
    float *was = e->current;
    e->current = e->trial;
    e->trial = was;
}

static enum oct_err soften(void *context, struct oct_error *err)
{
    static const struct oct_warp_gauss softer = {{1, 1, 1},
                                                 {{0.5F, 0.25F}, {0.5F, 0.25F}, {0.5F, 0.25F}}};
    struct oct_warp_engine *e = context;
    (void)err;
    oct_warp_smooth(&softer, e->pass.dims, e->setup.workers, e->current, e->pass.scratch,
                    e->pass.n_scratch);
    count(e, 6);
    return OCT_OK;
}

static const struct oct_warp_descent_ops descent_ops = {
    .evaluate = evaluate, .step = step, .accept = accept, .soften = soften};

/* ---- OCT_WARP_PAPER ----
 *
 * The Lagrangian force with its cofactors, explicit steps of the displacement, and regridding. For
 * comparison: plain loops, which compute anew rather than store. */

#define LEAST_LOG 1e-6F
#define REGRID_BELOW 0.5

static float sample(const struct oct_warp_pass *p, const float *volume, const double x[3])
{
    const struct oct_warp_cell cell = oct_warp_cell_of(p->dims, x);
    return (float)oct_warp_sample(volume, &cell);
}

/* h of a voxel. */
static void place_of(const struct oct_warp_pass *p, const uint32_t x[3], size_t at, double h[3])
{
    for (unsigned i = 0; i < 3; i++)
        h[i] = (double)x[i] - (double)p->u[i * oct_warp_n_of(p) + at];
}

/* d_axis of the trilinear moving volume at x, on a voxel's centre the mean of both sides. */
static float slope(const struct oct_warp_pass *p, const double x[3], unsigned axis)
{
    const double last = p->dims[axis] - 1.0, below = floor(x[axis]), above = ceil(x[axis]);
    if (x[axis] < 0 || x[axis] > last)
        return 0;
    const bool on_voxel = below == above;
    double low[3] = {x[0], x[1], x[2]}, high[3] = {x[0], x[1], x[2]};
    low[axis] = on_voxel ? below - 1 : below;
    high[axis] = on_voxel ? above + 1 : above;
    return (on_voxel ? 0.5F : 1) * (sample(p, p->moving, high) - sample(p, p->moving, low));
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
        uint32_t low[3] = {x[0], x[1], x[2]}, high[3] = {x[0], x[1], x[2]};
        float at_low[3], at_high[3];
        low[k] -= x[k] > 0;
        high[k] += x[k] + 1 < p->dims[k];
        stress(p, low, k, at_low);
        stress(p, high, k, at_high);
        for (unsigned i = 0; i < 3; i++)
            of_i[i] += (at_high[i] - at_low[i]) / (float)(high[k] - low[k]);
    }
}

static void force_voxel(const struct oct_warp_pass *p, const uint32_t x[3], size_t at,
                        struct oct_warp_plane_sums *sums)
{
    const size_t n = oct_warp_n_of(p);
    double h[3];
    float change[3], dh[3][3];
    place_of(p, x, at, h);
    const bool is_compared = !p->mask || p->mask[at];
    const float r = is_compared ? sample(p, p->moving, h) - p->fixed[at] : 0;
    divergence(p, x, change);
    for (unsigned i = 0; i < 3; i++)
        p->v[i * n + at] = r * slope(p, h, i) - p->lambda * change[i];
    derivative(p, x, dh);
    const float jacobian = determinant(dh);
    sums->ssd += (double)(r * r);
    sums->change += (double)(p->lambda * (jacobian - 1) * logf(fmaxf(jacobian, LEAST_LOG)));
    sums->least = fminf(sums->least, jacobian);
}

static void force_plane(void *pass, unsigned b, unsigned worker)
{
    const struct oct_warp_pass *p = pass;
    size_t at = oct_warp_row_of(p, b, 0);
    (void)worker;
    p->sums[b] = (struct oct_warp_plane_sums){.least = INFINITY};
    for (uint32_t j = 0; j < p->dims[1]; j++)
        for (uint32_t d = 0; d < p->dims[2]; d++)
            force_voxel(p, (uint32_t[3]){b, j, d}, at++, p->sums + b);
}

/* The Lagrangian force of pass->u, as it is, to pass->v, and sums. */
static void lagrangian(struct oct_warp_engine *e)
{
    run_pass(e, e->pass.dims[0], force_plane);
}

static void to_voxels(void *pass, unsigned b, unsigned worker)
{
    const struct oct_warp_pass *p = pass;
    const size_t plane = (size_t)p->dims[1] * p->dims[2];
    (void)worker;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < plane; i++)
            p->v[c * oct_warp_n_of(p) + b * plane + i] *= p->per_unit2[c];
}

static enum oct_err evaluate_paper(void *context, bool trial, struct oct_warp_energy *energy,
                                   struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    struct oct_warp_pass *p = &e->pass;
    (void)err;
    p->u = trial ? e->trial : e->current;
    lagrangian(e);
    run_pass(e, p->dims[0], to_voxels);
    oct_warp_smooth(&p->gauss, p->dims, e->setup.workers, p->v, p->scratch, p->n_scratch);
    *energy = sum_energy(e);
    /* The force reads u, T and R and writes v; each of the three others reads and writes v. */
    count(e, 3 + 2 + 6 + 3 * 6 + (p->mask ? 0.25 : 0));
    return OCT_OK;
}

/* v - v . grad u. */
static float flow(const struct oct_warp_pass *p, const uint32_t x[3], size_t at, unsigned i)
{
    const size_t n = oct_warp_n_of(p);
    float sum = p->v[i * n + at];
    for (unsigned k = 0; k < 3; k++)
        sum -= p->v[k * n + at] * difference(p, p->u + i * n, x, k);
    return sum;
}

static void step_plane(void *pass, unsigned b, unsigned worker)
{
    const struct oct_warp_pass *p = pass;
    const size_t n = oct_warp_n_of(p);
    size_t at = oct_warp_row_of(p, b, 0);
    float largest = 0;
    (void)worker;
    for (uint32_t j = 0; j < p->dims[1]; j++)
        for (uint32_t d = 0; d < p->dims[2]; d++, at++) {
            const uint32_t x[3] = {b, j, d};
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

static enum oct_err step_paper(void *context, double scale, unsigned n_alike, struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    double largest = 0;
    (void)n_alike;
    (void)err;
    e->pass.u = e->current;
    e->pass.next = e->trial;
    for (unsigned round = 0; round < 2; round++) { /* the first for the longest step alone */
        run_pass(e, e->pass.dims[0], step_plane);
        for (uint32_t b = 0; round == 0 && b < e->pass.dims[0]; b++)
            largest = fmax(largest, (double)e->pass.sums[b].least);
        e->pass.scale = largest > 0 ? (float)(scale * e->setup.params.most_step / largest) : 0;
        count(e, 3 + 3 + 6);
    }
    return OCT_OK;
}

/* next = u + total(x - u). */
static void compose_plane(void *pass, unsigned b, unsigned worker)
{
    const struct oct_warp_pass *p = pass;
    const size_t n = oct_warp_n_of(p);
    size_t at = oct_warp_row_of(p, b, 0);
    (void)worker;
    for (uint32_t j = 0; j < p->dims[1]; j++)
        for (uint32_t d = 0; d < p->dims[2]; d++, at++) {
            double h[3];
            place_of(p, (uint32_t[3]){b, j, d}, at, h);
            for (unsigned i = 0; i < 3; i++)
                p->next[i * n + at] = p->u[i * n + at] + sample(p, p->total + i * n, h);
        }
}

/* The current displacement becomes its composition with total. */
static void gather(struct oct_warp_engine *e)
{
    e->pass.u = e->current;
    e->pass.next = e->trial;
    run_pass(e, e->pass.dims[0], compose_plane);
    accept(e);
}

/* The moving volume warped by the current displacement becomes the template. By way of v, which the
 * next evaluate makes anew: the volume may be the template already. */
static void warp_template(struct oct_warp_engine *e)
{
    e->pass.u = e->current;
    e->pass.next = e->pass.v;
    run_pass(e, e->pass.dims[0], e->passes->warp);
    memcpy(e->rooms[ROOM_WARPED], e->pass.v, oct_warp_n_of(&e->pass) * sizeof(float));
    e->pass.moving = e->rooms[ROOM_WARPED];
}

static void start_anew(struct oct_warp_engine *e)
{
    const size_t bytes = 3 * oct_warp_n_of(&e->pass) * sizeof(float);
    memcpy(e->rooms[ROOM_TOTAL], e->current, bytes);
    memset(e->current, 0, bytes);
}

/* The current displacement becomes total and starts anew at 0. */
static void begin_regridding(struct oct_warp_engine *e)
{
    warp_template(e);
    start_anew(e);
}

static enum oct_err regrid(void *context, struct oct_warp_energy *energy, unsigned *n_regrids,
                           struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    if (!(energy->least < REGRID_BELOW))
        return OCT_OK;
    ++*n_regrids;
    warp_template(e);
    gather(e);
    start_anew(e);
    return evaluate_paper(e, false, energy, err);
}

static const struct oct_warp_descent_ops paper_ops = {
    .evaluate = evaluate_paper, .step = step_paper, .accept = accept, .regrid = regrid};

/* ---- solve ---- */

static enum oct_err check_values(const float *values, size_t n, const char *which,
                                 struct oct_error *err)
{
    uint32_t most = 0; /* as they have no sign, bits ascend with values, and infinity is above */
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof(bits));
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000
               ? OCT_OK
               : oct_fail(err, OCT_E_ARG, "warp: a value of the %s volume is not finite", which);
}

static void fill_pass(struct oct_warp_engine *e, unsigned factor)
{
    const struct oct_warp_params *params = &e->setup.params;
    const double *s = e->setup.grid.spacing, finest = fmin(s[0], fmin(s[1], s[2]));
    const size_t n_workers = n_workers_of(&e->setup);
    size_t n_coarse;
    struct oct_warp_pass *pass = &e->pass;
    *pass = (struct oct_warp_pass){.lambda = (float)params->lambda,
                                   .kappa = (float)params->kappa,
                                   .gauss = oct_warp_gauss_of(&e->setup.grid, params->sigma),
                                   .sums = e->rooms[ROOM_SUMS],
                                   .total = e->rooms[ROOM_TOTAL],
                                   .v = e->rooms[ROOM_V],
                                   .scratch = e->rooms[ROOM_SCRATCH],
                                   .n_scratch = scratch_floats(&e->setup, &n_coarse),
                                   .scale = 1,
                                   .most_step = (float)params->most_step};
    oct_warp_level_dims(e->setup.grid.dims, factor, pass->dims);
    for (unsigned i = 0; i < 3; i++)
        pass->per_unit2[i] = (float)((finest / s[i]) * (finest / s[i]));
    const uint32_t most = (pass->dims[0] + LEAST_PLANES - 1) / LEAST_PLANES;
    pass->n_pieces = 2 * n_workers < most ? (unsigned)(2 * n_workers) : most;
    pass->n_lines = strip_lines(pass->dims[2], pass->gauss.radius[0]);
}

struct volumes {
    const float *fixed, *moving;
    const uint8_t *mask;
};

/* The pass, the volumes and the displacement of a level. */
static void begin_level(struct oct_warp_engine *e, const struct volumes *from, unsigned index)
{
    const struct oct_warp_params *params = &e->setup.params;
    const uint32_t *dims = e->setup.grid.dims;
    const unsigned factor = params->factor[index];
    struct oct_workers *workers = e->setup.workers;
    struct oct_warp_pass *pass = &e->pass;
    fill_pass(e, factor);
    pass->fixed = from->fixed;
    pass->moving = from->moving;
    pass->mask = from->mask;
    e->bytes = 0;
    if (factor > 1) {
        float *fixed = e->rooms[ROOM_FIXED], *moving = e->rooms[ROOM_MOVING];
        uint8_t *mask = from->mask ? e->rooms[ROOM_MASK] : NULL;
        oct_warp_level_volume(dims, factor, from->fixed, from->mask, workers, pass->scratch,
                              pass->n_scratch, fixed, mask);
        oct_warp_level_volume(dims, factor, from->moving, NULL, workers, pass->scratch,
                              pass->n_scratch, moving, NULL);
        pass->fixed = fixed;
        pass->moving = moving;
        pass->mask = mask;
        count(e, 4);
        e->bytes += (double)sizeof(float) * 2 * (double)oct_warp_n_voxels(&e->setup.grid);
    }
    if (index == 0) {
        memset(e->current, 0, 3 * oct_warp_n_of(pass) * sizeof(float));
    } else {
        oct_warp_level_displacement(dims, params->factor[index - 1], factor, e->current, workers,
                                    e->trial);
        accept(e);
    }
}

static enum oct_err run_level(struct oct_warp_engine *e, const struct volumes *from, unsigned index,
                              const struct oct_warp_progress *progress,
                              struct oct_warp_level *level, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    const bool is_paper = e->setup.params.profile == OCT_WARP_PAPER;
    begin_level(e, from, index);
    if (is_paper)
        begin_regridding(e);
    const enum oct_err failed = oct_warp_descend(is_paper ? &paper_ops : &descent_ops, e,
                                                 &e->setup.params, index, progress, level, err);
    if (is_paper) { /* min J of what the templates come to */
        struct oct_warp_energy energy = {0};
        gather(e);
        evaluate(e, false, &energy, NULL);
        level->least_jacobian = energy.least;
    }
    level->bytes = e->bytes;
    level->seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
    return failed;
}

static enum oct_err engine_solve(struct oct_warp_engine *e, const float *fixed, const float *moving,
                                 const uint8_t *mask, float *displacement,
                                 struct oct_warp_report *report,
                                 const struct oct_warp_progress *progress, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    const struct volumes from = {fixed, moving, mask};
    const struct oct_warp_params *params = &e->setup.params;
    const size_t n = oct_warp_n_voxels(&e->setup.grid);
    struct oct_warp_report found = {.n_levels = params->n_levels};
    enum oct_err failed = check_values(fixed, n, "fixed", err);
    failed = failed ? failed : check_values(moving, n, "moving", err);
    e->current = displacement;
    e->trial = e->rooms[ROOM_U];
    for (unsigned i = 0; !failed && i < found.n_levels; i++)
        failed = run_level(e, &from, i, progress, found.level + i, err);
    if (failed)
        return failed;
    const unsigned factor = params->factor[params->n_levels - 1];
    if (factor > 1) {
        oct_warp_level_displacement(e->setup.grid.dims, factor, 1, e->current, e->setup.workers,
                                    e->trial);
        accept(e);
    }
    if (e->current != displacement)
        memcpy(displacement, e->current, 3 * n * sizeof(*displacement));
    found.seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
    if (report)
        *report = found;
    return OCT_OK;
}

/* ---- alone ---- */

static enum oct_err engine_warp(struct oct_warp_engine *e, const float *moving,
                                const float *displacement, float *warped, struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.moving = moving;
    e->pass.u = displacement;
    e->pass.next = warped;
    run_pass(e, e->pass.dims[0], e->passes->warp);
    return OCT_OK;
}

static enum oct_err engine_jacobian(struct oct_warp_engine *e, const float *displacement,
                                    float *jacobian, struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.u = displacement;
    e->pass.next = jacobian;
    run_pass(e, e->pass.dims[0], e->passes->jacobian);
    return OCT_OK;
}

static enum oct_err engine_force(struct oct_warp_engine *e, const float *fixed, const float *moving,
                                 const float *displacement, double *energy, float *force,
                                 struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.fixed = fixed;
    e->pass.moving = moving;
    e->pass.u = displacement;
    e->pass.v = force;
    if (e->setup.params.profile == OCT_WARP_PAPER)
        lagrangian(e);
    else
        run_pass(e, e->pass.n_pieces, e->passes->force);
    const struct oct_warp_energy sum = sum_energy(e);
    energy[0] = sum.energy;
    energy[1] = sum.ssd / 2;
    energy[2] = sum.change;
    return OCT_OK;
}

const struct oct_warp_ops oct_warp_cpu = {
    .name = "cpu",
    .bytes = engine_bytes,
    .create = engine_create,
    .solve = engine_solve,
    .warp = engine_warp,
    .jacobian = engine_jacobian,
    .force = engine_force,
    .destroy = engine_destroy,
};
