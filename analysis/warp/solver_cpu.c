#include "analysis/warp/solver_cpu.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PLANES 8u                 /* of a piece of evaluate, which computes two more */
#define STRIP_BYTES ((size_t)400 << 10) /* of v: its rows lie in a second cache */

const struct oct_warp_passes *oct_warp_passes_select(const char *name)
{
    static const struct oct_warp_passes *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_warp_passes_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_warp_passes_avx2,
        [OCT_SIMD_AVX512] = &oct_warp_passes_avx512,
#endif
    };
    return sets[oct_simd_choose(name)];
}

/* ---- life ---- */

static size_t n_workers_of(const struct oct_warp_setup *setup)
{
    return setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
}

/* A-lines of a piece of a step. */
static uint32_t strip_lines(uint32_t n_d, unsigned radius)
{
    const size_t of_line =
        3 * (2 * (size_t)radius + OCT_WARP_TOGETHER) * oct_warp_pitch(n_d) * sizeof(float);
    const size_t fit = STRIP_BYTES / of_line;
    return fit > 8 ? 8 : fit < 2 ? 2 : (uint32_t)fit;
}

/* That a pass over a level of these sides takes; radius: of G along the B-scans. */
static size_t level_scratch(const uint32_t dims[3], unsigned radius)
{
    const size_t pitch = oct_warp_pitch(dims[2]), n_lines = strip_lines(dims[2], radius);
    const size_t rows = 3 * (pitch + 2 * OCT_WARP_MOST_RADIUS) + 2 * OCT_WARP_PAD;
    const size_t evaluate = 9 * dims[1] * pitch + rows;
    const size_t of_u = 3 * (OCT_WARP_TOGETHER + 2) * (n_lines + 2);
    const size_t of_v = 3 * (2 * (size_t)radius + OCT_WARP_TOGETHER) * n_lines;
    const size_t step = (of_u + of_v + 3 * OCT_WARP_TOGETHER) * pitch;
    const size_t line = dims[0] > dims[1] ? dims[0] : dims[1]; /* OCT_WARP_PAPER */
    const size_t most = evaluate > step ? evaluate : step;
    return ((most > line ? most : line) + 15) / 16 * 16;
}

/* Voxels of the largest level that is not the volume itself. */
static size_t n_coarse(const struct oct_warp_setup *setup)
{
    size_t most = 1;
    for (unsigned i = 0; i < setup->params.n_levels; i++) {
        uint32_t dims[3];
        oct_warp_level_dims(setup->grid.dims, setup->params.factor[i], dims);
        const size_t n = (size_t)dims[0] * dims[1] * dims[2];
        most = setup->params.factor[i] > 1 && n > most ? n : most;
    }
    return most;
}

/* Of a worker: coarser levels take shorter rows, but more of them for a step. */
static size_t scratch_floats(const struct oct_warp_setup *setup)
{
    double sigma[3], per_unit2[3];
    float taps[OCT_WARP_MOST_RADIUS + 1];
    size_t most = 0;
    oct_warp_units(&setup->grid, setup->params.sigma, sigma, per_unit2);
    const unsigned radius = oct_warp_gauss_taps(sigma[0], taps);
    for (unsigned i = 0; i <= setup->params.n_levels; i++) {
        uint32_t dims[3];
        oct_warp_level_dims(setup->grid.dims,
                            i < setup->params.n_levels ? setup->params.factor[i] : 1, dims);
        const size_t n = level_scratch(dims, radius);
        most = n > most ? n : most;
    }
    return most;
}

static uint64_t bytes(const struct oct_warp_setup *setup)
{
    const uint64_t n = oct_warp_n_voxels(&setup->grid);
    const uint64_t scratch = n_workers_of(setup) * scratch_floats(setup);
    const uint64_t floats = setup->params.profile == OCT_WARP_PAPER ? 10 : 6;
    const uint64_t n_level = n_coarse(setup);
    return sizeof(float) * (floats * n + 2 * n_level + scratch) + n_level;
}

static void destroy(struct oct_warp_engine *e)
{
    if (!e)
        return;
    float *const all[] = {e->scratch, e->fixed,   e->moving, e->u,
                          e->v,       e->largest, e->warped, e->total};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
    free(e->mask);
    free(e->sums);
    free(e);
}

static bool get(float **to, size_t n)
{
    *to = oct_aligned_alloc(OCT_WARP_ALIGNMENT, n, sizeof(**to));
    return *to;
}

static bool allocate(struct oct_warp_engine *e)
{
    const uint32_t *dims = e->setup.grid.dims;
    const size_t n = oct_warp_n_voxels(&e->setup.grid), n_level = n_coarse(&e->setup);
    const bool is_paper = e->setup.params.profile == OCT_WARP_PAPER;
    e->n_scratch = scratch_floats(&e->setup);
    e->mask = oct_aligned_alloc(OCT_WARP_ALIGNMENT, n_level, 1);
    e->sums = oct_aligned_alloc(OCT_WARP_ALIGNMENT, dims[0], sizeof(*e->sums));
    if (!e->mask || !e->sums || !get(&e->scratch, e->n_workers * e->n_scratch) ||
        !get(&e->fixed, n_level) || !get(&e->moving, n_level) || !get(&e->u, 3 * n) ||
        !get(&e->v, 3 * n) || !get(&e->largest, dims[1]) ||
        (is_paper && (!get(&e->warped, n) || !get(&e->total, 3 * n))))
        return false;
    /* Lanes behind the end of a row are multiplied by 0, which leaves 0 of what is finite alone. */
    memset(e->scratch, 0, e->n_workers * e->n_scratch * sizeof(*e->scratch));
    return true;
}

static enum oct_err create(struct oct_warp_engine **engine, const struct oct_warp_setup *setup,
                           struct oct_error *err)
{
    *engine = NULL;
    const enum oct_err failed = oct_warp_params_check(&setup->params, &setup->grid, err);
    if (failed != OCT_OK)
        return failed;
    struct oct_warp_engine *e = calloc(1, sizeof(*e));
    if (e) {
        e->setup = *setup;
        e->n_workers = n_workers_of(setup);
        e->passes = oct_warp_passes_select("auto");
    }
    if (!e || !allocate(e)) {
        destroy(e);
        return oct_fail(
            err, OCT_E_NO_MEMORY,
            "warp: out of memory for volumes of %u x %u x %u voxels, which take %.0f MB",
            setup->grid.dims[0], setup->grid.dims[1], setup->grid.dims[2],
            (double)bytes(setup) / 1e6);
    }
    *engine = e;
    return OCT_OK;
}

void oct_warp_cpu_use(struct oct_warp_engine *engine, const struct oct_warp_passes *passes)
{
    engine->passes = passes;
}

/* ---- passes over a level ---- */

static float *scratch_of(const struct oct_warp_engine *e, unsigned worker)
{
    return e->scratch + worker * e->n_scratch;
}

static unsigned n_pieces(const struct oct_warp_engine *e)
{
    const uint32_t most = (e->pass.dims[0] + LEAST_PLANES - 1) / LEAST_PLANES;
    const uint32_t wanted = 2 * (uint32_t)e->n_workers;
    return wanted < most ? wanted : most;
}

/* Planes i n / pieces .. (i + 1) n / pieces - 1 of piece i. */
static uint32_t first_of(const struct oct_warp_engine *e, unsigned piece)
{
    return (uint32_t)((uint64_t)e->pass.dims[0] * piece / n_pieces(e));
}

static void evaluate_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    e->passes->evaluate(&e->pass, first_of(e, piece), first_of(e, piece + 1),
                        scratch_of(e, worker));
}

static void force_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    e->passes->force(&e->pass, first_of(e, piece), first_of(e, piece + 1), scratch_of(e, worker));
}

static void step_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const uint32_t n = e->pass.dims[1], lines = strip_lines(e->pass.dims[2], e->pass.radius[0]);
    const uint32_t first = piece * lines, end = first + lines < n ? first + lines : n;
    e->largest[piece] = e->passes->step(&e->pass, first, end, scratch_of(e, worker));
}

static void warp_plane(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    e->passes->warp(&e->pass, b, scratch_of(e, worker),
                    e->pass.next + oct_warp_row_of(&e->pass, b, 0));
}

static void jacobian_plane(void *context, unsigned b, unsigned worker)
{
    struct oct_warp_engine *e = context;
    e->passes->jacobian(&e->pass, b, scratch_of(e, worker),
                        e->pass.next + oct_warp_row_of(&e->pass, b, 0));
}

void oct_warp_cpu_warp(struct oct_warp_engine *e)
{
    oct_workers_run(e->setup.workers, e->pass.dims[0], warp_plane, e);
}

/* ---- steps ---- */

struct oct_warp_energy oct_warp_cpu_energy(const struct oct_warp_engine *e)
{
    struct oct_warp_energy sum = {.least = INFINITY};
    for (uint32_t b = 0; b < e->pass.dims[0]; b++) {
        sum.ssd += e->sums[b].ssd;
        sum.change += e->sums[b].change;
        sum.least = fmin(sum.least, (double)e->sums[b].least);
    }
    sum.energy = sum.ssd / 2 + e->setup.params.lambda * sum.change;
    return sum;
}

static enum oct_err evaluate(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    (void)err;
    e->pass.u = trial ? e->trial : e->current;
    oct_workers_run(e->setup.workers, n_pieces(e), evaluate_piece, e);
    *energy = oct_warp_cpu_energy(e);
    /* u, T and R are read; v is written, after the processor has read it. */
    e->bytes += (double)oct_warp_n_of(&e->pass) *
                (double)((3 + 2 + 6) * sizeof(float) + (e->pass.mask != NULL));
    return OCT_OK;
}

static double run_step(struct oct_warp_engine *e, double scale)
{
    const uint32_t lines = strip_lines(e->pass.dims[2], e->pass.radius[0]);
    const unsigned n_strips = (e->pass.dims[1] + lines - 1) / lines;
    double largest = 0;
    e->pass.scale = (float)scale;
    oct_workers_run(e->setup.workers, n_strips, step_piece, e);
    for (unsigned i = 0; i < n_strips; i++)
        largest = fmax(largest, (double)e->largest[i]);
    e->bytes += (double)oct_warp_n_of(&e->pass) * (3 + 3 + 6) * sizeof(float);
    return largest;
}

/* |v| is known after the step: where it was too long it is made again. */
static enum oct_err step(void *context, double scale, struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    const double most = e->setup.params.most_step;
    (void)err;
    e->pass.u = e->current;
    e->pass.next = e->trial;
    const double largest = run_step(e, scale);
    if (largest > most)
        run_step(e, scale * most / largest);
    return OCT_OK;
}

void oct_warp_cpu_accept(void *engine)
{
    struct oct_warp_engine *e = engine;
    float *was = e->current;
    e->current = e->trial;
    e->trial = was;
}

static enum oct_err soften(void *context, struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    (void)err;
    oct_warp_soften(e->pass.dims, e->current, e->setup.workers, e->trial);
    oct_warp_cpu_accept(e);
    e->bytes += (double)oct_warp_n_of(&e->pass) * 6 * sizeof(float);
    return OCT_OK;
}

static const struct oct_warp_descent_ops octd = {
    .evaluate = evaluate, .step = step, .accept = oct_warp_cpu_accept, .soften = soften};

/* ---- solve ---- */

struct looking {
    struct oct_warp_engine *engine;
    const float *values;
};

static void look_at_plane(void *context, unsigned b, unsigned worker)
{
    const struct looking *l = context;
    const size_t n = oct_warp_n_voxels(&l->engine->setup.grid) / l->engine->setup.grid.dims[0];
    float product = 0; /* what is not finite times 0 is not 0 */
    (void)worker;
    for (size_t i = 0; i < n; i++)
        product += l->values[b * n + i] * 0;
    l->engine->sums[b].least = product;
}

static enum oct_err check_values(struct oct_warp_engine *e, const float *values, const char *which,
                                 struct oct_error *err)
{
    struct looking looking = {e, values};
    oct_workers_run(e->setup.workers, e->setup.grid.dims[0], look_at_plane, &looking);
    for (uint32_t b = 0; b < e->setup.grid.dims[0]; b++)
        if (e->sums[b].least != 0)
            return oct_fail(err, OCT_E_ARG, "warp: a value of the %s volume is not finite", which);
    return OCT_OK;
}

static void fill_pass(struct oct_warp_engine *e, unsigned factor)
{
    const struct oct_warp_params *params = &e->setup.params;
    double sigma[3], per_unit2[3];
    struct oct_warp_pass *pass = &e->pass;
    *pass = (struct oct_warp_pass){.lambda = (float)params->lambda,
                                   .kappa = (float)params->kappa,
                                   .sums = e->sums,
                                   .v = e->v,
                                   .scale = 1};
    oct_warp_level_dims(e->setup.grid.dims, factor, pass->dims);
    oct_warp_units(&e->setup.grid, params->sigma, sigma, per_unit2);
    for (unsigned i = 0; i < 3; i++) {
        pass->per_unit2[i] = (float)per_unit2[i];
        pass->radius[i] = oct_warp_gauss_taps(sigma[i], pass->taps[i]);
    }
}

struct volumes {
    const float *fixed, *moving;
    const uint8_t *mask;
};

/* The pass, the volumes and the displacement of a level. */
static enum oct_err begin_level(struct oct_warp_engine *e, const struct volumes *from,
                                unsigned index, struct oct_error *err)
{
    const struct oct_warp_params *params = &e->setup.params;
    const uint32_t *dims = e->setup.grid.dims;
    const unsigned factor = params->factor[index];
    struct oct_warp_pass *pass = &e->pass;
    enum oct_err failed = OCT_OK;
    fill_pass(e, factor);
    pass->fixed = factor > 1 ? e->fixed : from->fixed;
    pass->moving = factor > 1 ? e->moving : from->moving;
    pass->mask = !from->mask ? NULL : factor > 1 ? e->mask : from->mask;
    e->bytes = 0;
    if (factor > 1) {
        failed = oct_warp_level_volume(dims, factor, from->fixed, from->mask, e->setup.workers,
                                       e->fixed, e->mask, err);
        failed = failed ? failed
                        : oct_warp_level_volume(dims, factor, from->moving, NULL, e->setup.workers,
                                                e->moving, NULL, err);
        e->bytes = (double)sizeof(float) * (2 * (double)oct_warp_n_voxels(&e->setup.grid) +
                                            4 * (double)oct_warp_n_of(pass));
    }
    if (!failed && index == 0) {
        memset(e->current, 0, 3 * oct_warp_n_of(pass) * sizeof(float));
    } else if (!failed) {
        oct_warp_level_displacement(dims, params->factor[index - 1], factor, e->current,
                                    e->setup.workers, e->trial);
        oct_warp_cpu_accept(e);
    }
    return failed;
}

static enum oct_err run_level(struct oct_warp_engine *e, const struct volumes *from, unsigned index,
                              const struct oct_warp_progress *progress,
                              struct oct_warp_level *level, struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns();
    const bool is_paper = e->setup.params.profile == OCT_WARP_PAPER;
    enum oct_err failed = begin_level(e, from, index, err);
    if (failed != OCT_OK)
        return failed;
    if (is_paper)
        oct_warp_cpu_begin_regridding(e);
    failed = oct_warp_descend(is_paper ? &oct_warp_cpu_paper : &octd, e, &e->setup.params, index,
                              progress, level, err);
    if (is_paper) { /* min J of what the templates come to */
        struct oct_warp_energy energy = {0};
        oct_warp_cpu_gather(e);
        evaluate(e, false, &energy, NULL);
        level->least_jacobian = energy.least;
    }
    level->bytes = e->bytes;
    level->seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    return failed;
}

static void finish(struct oct_warp_engine *e, float *displacement)
{
    const size_t n = oct_warp_n_voxels(&e->setup.grid);
    const struct oct_warp_params *params = &e->setup.params;
    const unsigned factor = params->factor[params->n_levels - 1];
    if (factor > 1) {
        oct_warp_level_displacement(e->setup.grid.dims, factor, 1, e->current, e->setup.workers,
                                    e->trial);
        oct_warp_cpu_accept(e);
    }
    if (e->current != displacement)
        memcpy(displacement, e->current, 3 * n * sizeof(*displacement));
}

static enum oct_err solve(struct oct_warp_engine *e, const float *fixed, const float *moving,
                          const uint8_t *mask, float *displacement, struct oct_warp_report *report,
                          const struct oct_warp_progress *progress, struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns();
    const struct volumes from = {fixed, moving, mask};
    struct oct_warp_report found = {.n_levels = e->setup.params.n_levels};
    enum oct_err failed = check_values(e, fixed, "fixed", err);
    if (failed == OCT_OK)
        failed = check_values(e, moving, "moving", err);
    e->current = displacement;
    e->trial = e->u;
    for (unsigned i = 0; failed == OCT_OK && i < found.n_levels; i++)
        failed = run_level(e, &from, i, progress, found.level + i, err);
    if (failed != OCT_OK)
        return failed;
    finish(e, displacement);
    found.seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    if (report)
        *report = found;
    return OCT_OK;
}

/* ---- alone ---- */

static enum oct_err warp(struct oct_warp_engine *e, const float *moving, const float *displacement,
                         float *warped, struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.moving = moving;
    e->pass.u = displacement;
    e->pass.next = warped;
    oct_warp_cpu_warp(e);
    return OCT_OK;
}

static enum oct_err jacobian(struct oct_warp_engine *e, const float *displacement, float *jacobians,
                             struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.u = displacement;
    e->pass.next = jacobians;
    oct_workers_run(e->setup.workers, e->pass.dims[0], jacobian_plane, e);
    return OCT_OK;
}

static enum oct_err force(struct oct_warp_engine *e, const float *fixed, const float *moving,
                          const float *displacement, double *energy, float *forces,
                          struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.fixed = fixed;
    e->pass.moving = moving;
    e->pass.u = displacement;
    e->pass.v = forces;
    if (e->setup.params.profile == OCT_WARP_PAPER)
        oct_warp_cpu_lagrangian(e);
    else
        oct_workers_run(e->setup.workers, n_pieces(e), force_piece, e);
    const struct oct_warp_energy sum = oct_warp_cpu_energy(e);
    energy[0] = sum.energy;
    energy[1] = sum.ssd / 2;
    energy[2] = e->setup.params.lambda * sum.change;
    return OCT_OK;
}

const struct oct_warp_ops oct_warp_cpu = {
    .name = "cpu",
    .bytes = bytes,
    .create = create,
    .solve = solve,
    .warp = warp,
    .jacobian = jacobian,
    .force = force,
    .destroy = destroy,
};
