#include "analysis/warp/solver_cpu.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PLANES 8u /* of a piece of evaluate, which computes two more */
#define OF_TYPE(pointer, n) oct_aligned_alloc(OCT_WARP_ALIGNMENT, (n), sizeof(*(pointer)))

/* ---- life ---- */

static size_t n_workers_of(const struct oct_warp_setup *setup)
{
    return setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
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
        const size_t n = oct_warp_scratch_floats(dims, radius);
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
    free(e->scratch);
    free(e->fixed);
    free(e->moving);
    free(e->mask);
    free(e->u);
    free(e->v);
    free(e->sums);
    free(e->finite);
    free(e->largest);
    free(e->regridding.warped);
    free(e->regridding.total);
    free(e);
}

static bool allocate(struct oct_warp_engine *e)
{
    const uint32_t *dims = e->setup.grid.dims;
    const size_t n = oct_warp_n_voxels(&e->setup.grid), n_level = n_coarse(&e->setup);
    struct oct_warp_regridding *g = &e->regridding;
    e->n_scratch = scratch_floats(&e->setup);
    e->scratch = OF_TYPE(e->scratch, e->n_workers * e->n_scratch);
    e->fixed = OF_TYPE(e->fixed, n_level);
    e->moving = OF_TYPE(e->moving, n_level);
    e->mask = OF_TYPE(e->mask, n_level);
    e->u = OF_TYPE(e->u, 3 * n);
    e->v = OF_TYPE(e->v, 3 * n);
    e->sums = OF_TYPE(e->sums, dims[0]);
    e->finite = OF_TYPE(e->finite, dims[0]);
    e->largest = OF_TYPE(e->largest, dims[1]);
    if (e->setup.params.profile == OCT_WARP_PAPER) {
        g->warped = OF_TYPE(g->warped, n);
        g->total = OF_TYPE(g->total, 3 * n);
        if (!g->warped || !g->total)
            return false;
    }
    /* Lanes behind the end of a row are multiplied by 0, which leaves 0 of what is finite alone. */
    if (e->scratch)
        memset(e->scratch, 0, e->n_workers * e->n_scratch * sizeof(*e->scratch));
    return e->scratch && e->fixed && e->moving && e->mask && e->u && e->v && e->sums &&
           e->largest && e->finite;
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

/* ---- pieces ---- */

unsigned oct_warp_cpu_n_pieces(const struct oct_warp_engine *e, uint32_t n, uint32_t least)
{
    const uint32_t most = (n + least - 1) / least, wanted = 2 * (uint32_t)e->n_workers;
    return wanted < most ? wanted : most;
}

struct part {
    uint32_t first, end;
};

static struct part part_of(uint32_t n, unsigned n_pieces, unsigned piece)
{
    return (struct part){(uint32_t)((uint64_t)n * piece / n_pieces),
                         (uint32_t)((uint64_t)n * (piece + 1) / n_pieces)};
}

static float *scratch_of(const struct oct_warp_engine *e, unsigned worker)
{
    return e->scratch + worker * e->n_scratch;
}

static void evaluate_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const uint32_t n = e->pass.dims[0];
    const struct part part = part_of(n, oct_warp_cpu_n_pieces(e, n, LEAST_PLANES), piece);
    e->passes->evaluate(&e->pass, part.first, part.end, scratch_of(e, worker));
}

static void force_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const uint32_t n = e->pass.dims[0];
    const struct part part = part_of(n, oct_warp_cpu_n_pieces(e, n, LEAST_PLANES), piece);
    e->passes->force(&e->pass, part.first, part.end, scratch_of(e, worker));
}

static void step_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const uint32_t n = e->pass.dims[1], lines = oct_warp_strip(e->pass.dims[2], e->pass.radius[0]);
    const uint32_t first = piece * lines, end = first + lines < n ? first + lines : n;
    e->largest[piece] = e->passes->step(&e->pass, first, end, scratch_of(e, worker));
}

static size_t n_voxels(const struct oct_warp_pass *pass)
{
    return (size_t)pass->dims[0] * pass->dims[1] * pass->dims[2];
}

/* ---- steps ---- */

struct oct_warp_energy oct_warp_cpu_energy(const struct oct_warp_engine *e, double *change)
{
    struct oct_warp_energy sum = {.least = INFINITY};
    *change = 0;
    for (uint32_t b = 0; b < e->pass.dims[0]; b++) {
        sum.ssd += e->sums[b].ssd;
        *change += e->sums[b].change;
        sum.least = fmin(sum.least, (double)e->sums[b].least);
    }
    sum.energy = sum.ssd / 2 + e->setup.params.lambda * *change;
    return sum;
}

static enum oct_err evaluate(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err)
{
    struct oct_warp_engine *e = context;
    double change;
    (void)err;
    e->pass.u = trial ? e->trial : e->current;
    oct_workers_run(e->setup.workers, oct_warp_cpu_n_pieces(e, e->pass.dims[0], LEAST_PLANES),
                    evaluate_piece, e);
    *energy = oct_warp_cpu_energy(e, &change);
    /* u, T and R are read; v is written, after the processor has read it. */
    e->bytes +=
        (double)n_voxels(&e->pass) * (double)((3 + 2 + 6) * sizeof(float) + (e->pass.mask != NULL));
    return OCT_OK;
}

static double run_step(struct oct_warp_engine *e, double scale)
{
    const uint32_t lines = oct_warp_strip(e->pass.dims[2], e->pass.radius[0]);
    const unsigned n_pieces = (e->pass.dims[1] + lines - 1) / lines;
    double largest = 0;
    e->pass.scale = (float)scale;
    oct_workers_run(e->setup.workers, n_pieces, step_piece, e);
    for (unsigned i = 0; i < n_pieces; i++)
        largest = fmax(largest, (double)e->largest[i]);
    e->bytes += (double)n_voxels(&e->pass) * (3 + 3 + 6) * sizeof(float);
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
    e->bytes += (double)n_voxels(&e->pass) * 6 * sizeof(float);
    return OCT_OK;
}

static const struct oct_warp_descent_ops octd = {
    .evaluate = evaluate, .step = step, .accept = oct_warp_cpu_accept, .soften = soften};

/* ---- solve ---- */

static bool is_finite(const float *values, size_t n)
{
    float product = 0; /* what is not finite times 0 is not 0 */
    for (size_t i = 0; i < n; i++)
        product += values[i] * 0;
    return product == 0;
}

struct looking {
    const float *values;
    size_t plane;
    uint8_t *finite; /* [V] */
};

static void look_at_plane(void *context, unsigned piece, unsigned worker)
{
    const struct looking *l = context;
    (void)worker;
    l->finite[piece] = is_finite(l->values + piece * l->plane, l->plane);
}

static enum oct_err check_values(const struct oct_warp_engine *e, const float *values,
                                 const char *which, struct oct_error *err)
{
    const uint32_t *dims = e->setup.grid.dims;
    const struct looking l = {values, (size_t)dims[1] * dims[2], e->finite};
    oct_workers_run(e->setup.workers, dims[0], look_at_plane, (void *)&l);
    for (uint32_t b = 0; b < dims[0]; b++)
        if (!l.finite[b])
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

/* The volumes of a level. */
static enum oct_err make_volumes(struct oct_warp_engine *e, const struct volumes *from,
                                 unsigned factor, struct oct_error *err)
{
    const uint32_t *dims = e->setup.grid.dims;
    struct oct_warp_pass *pass = &e->pass;
    enum oct_err failed = OCT_OK;
    pass->fixed = factor > 1 ? e->fixed : from->fixed;
    pass->moving = factor > 1 ? e->moving : from->moving;
    pass->mask = !from->mask ? NULL : factor > 1 ? e->mask : from->mask;
    e->bytes = 0;
    if (factor == 1)
        return OCT_OK;
    failed = oct_warp_level_volume(dims, factor, from->fixed, from->mask, e->setup.workers,
                                   e->fixed, e->mask, err);
    if (failed == OCT_OK)
        failed = oct_warp_level_volume(dims, factor, from->moving, NULL, e->setup.workers,
                                       e->moving, NULL, err);
    e->bytes = (double)sizeof(float) *
               (2 * (double)oct_warp_n_voxels(&e->setup.grid) + 4 * (double)n_voxels(pass));
    return failed;
}

static enum oct_err begin_level(struct oct_warp_engine *e, const struct volumes *from,
                                unsigned index, struct oct_error *err)
{
    const struct oct_warp_params *params = &e->setup.params;
    const uint32_t *dims = e->setup.grid.dims;
    const unsigned factor = params->factor[index];
    fill_pass(e, factor);
    const enum oct_err failed = make_volumes(e, from, factor, err);
    if (failed != OCT_OK)
        return failed;
    if (index == 0) {
        memset(e->current, 0, 3 * n_voxels(&e->pass) * sizeof(float));
        return OCT_OK;
    }
    oct_warp_level_displacement(dims, params->factor[index - 1], factor, e->current,
                                e->setup.workers, e->trial);
    oct_warp_cpu_accept(e);
    return OCT_OK;
}

/* min J of what the templates of a level come to. */
static double gather(struct oct_warp_engine *e)
{
    struct oct_warp_energy energy = {0};
    oct_warp_cpu_gather(e);
    evaluate(e, false, &energy, NULL);
    return energy.least;
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
    if (is_paper)
        level->least_jacobian = gather(e);
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

static void warp_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const size_t plane = (size_t)e->pass.dims[1] * e->pass.dims[2];
    e->passes->warp(&e->pass, piece, scratch_of(e, worker), e->pass.next + piece * plane);
}

static void jacobian_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_warp_engine *e = context;
    const size_t plane = (size_t)e->pass.dims[1] * e->pass.dims[2];
    e->passes->jacobian(&e->pass, piece, scratch_of(e, worker), e->pass.next + piece * plane);
}

static enum oct_err warp(struct oct_warp_engine *e, const float *moving, const float *displacement,
                         float *warped, struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.moving = moving;
    e->pass.u = displacement;
    e->pass.next = warped;
    oct_workers_run(e->setup.workers, e->pass.dims[0], warp_piece, e);
    return OCT_OK;
}

static enum oct_err jacobian(struct oct_warp_engine *e, const float *displacement, float *jacobians,
                             struct oct_error *err)
{
    (void)err;
    fill_pass(e, 1);
    e->pass.u = displacement;
    e->pass.next = jacobians;
    oct_workers_run(e->setup.workers, e->pass.dims[0], jacobian_piece, e);
    return OCT_OK;
}

static enum oct_err force(struct oct_warp_engine *e, const float *fixed, const float *moving,
                          const float *displacement, bool lagrangian, double *energy, float *forces,
                          struct oct_error *err)
{
    double change;
    (void)err;
    fill_pass(e, 1);
    e->pass.fixed = fixed;
    e->pass.moving = moving;
    e->pass.u = displacement;
    e->pass.v = forces;
    if (lagrangian)
        oct_warp_cpu_lagrangian(e);
    else
        oct_workers_run(e->setup.workers, oct_warp_cpu_n_pieces(e, e->pass.dims[0], LEAST_PLANES),
                        force_piece, e);
    const struct oct_warp_energy sum = oct_warp_cpu_energy(e, &change);
    energy[0] = sum.energy;
    energy[1] = sum.ssd / 2;
    energy[2] = e->setup.params.lambda * change;
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
