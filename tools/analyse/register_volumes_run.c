/* The inputs of octctl register-volumes: what they are, and whether they fit. */
#include "tools/analyse/register_volumes_run.h"

#include "kernels/device/cuda_choice.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/memory.h"
#include "tools/analyse/register_volumes_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB 1073741824.0
#define PROGRAM_BYTES ((uint64_t)64 << 20) /* of the program and of pictures */

bool oct_volumes_is_db(const struct oct_volume_info *info)
{
    return info->is_db || info->is_linear; /* counts^2 become dB */
}

static enum oct_err look(const struct oct_volumes_run *run, const char *path,
                         struct oct_volume_info *info, struct oct_error *err)
{
    if (*run->cancel)
        return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
    const enum oct_err e = oct_volume_look(path, info, err);
    if (e)
        return e;
    for (unsigned i = 0; i < 3; i++) {
        if (run->given->um_given[i] > 0)
            info->um[i] = run->given->um_given[i];
        if (info->dims[i] < OCT_WARP_LEAST_SIDE)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: %u x %u x %u voxels: a volume has %u along each side at least",
                            path, info->dims[0], info->dims[1], info->dims[2], OCT_WARP_LEAST_SIDE);
    }
    if ((uint64_t)info->dims[0] * info->dims[1] > OCT_WARP_MOST_VOXELS / info->dims[2])
        return oct_fail(err, OCT_E_FORMAT, "%s: %u x %u x %u voxels: more than %.3g", path,
                        info->dims[0], info->dims[1], info->dims[2], (double)OCT_WARP_MOST_VOXELS);
    return OCT_OK;
}

static enum oct_err look_at_all(struct oct_volumes_run *run, struct oct_error *err)
{
    struct oct_volume_info *fixed = &run->fixed_info;
    enum oct_err e = look(run, run->fixed_path, fixed, err);
    for (unsigned i = 0; i < run->n_moving && !e; i++) {
        struct oct_volumes_pair *pair = &run->pairs[i];
        pair->path = run->moving[i];
        pair->inverse_left = NAN;
        e = look(run, pair->path, &pair->info, err);
        e = e ? e
              : oct_volumes_place(run->fixed_path, fixed, pair->path, &pair->info, &pair->placing,
                                  err);
    }
    if (e)
        return e;
    run->grid.in_um = oct_volumes_knows_um(fixed->um);
    for (unsigned i = 0; i < 3; i++) {
        run->grid.dims[i] = fixed->dims[i];
        run->grid.spacing[i] = run->grid.in_um ? fixed->um[i] : 1;
    }
    return OCT_OK;
}

static enum oct_err check_mask(const struct oct_volumes_run *run, struct oct_error *err)
{
    const uint32_t *dims = run->grid.dims;
    struct oct_volume_info info;
    if (!run->given->mask)
        return OCT_OK;
    const enum oct_err e = oct_volume_look(run->given->mask, &info, err);
    if (!e && memcmp(info.dims, dims, sizeof(info.dims)) != 0)
        return oct_fail(err, OCT_E_FORMAT, "%s has %u x %u x %u voxels, %s %u x %u x %u",
                        run->given->mask, info.dims[0], info.dims[1], info.dims[2], run->fixed_path,
                        dims[0], dims[1], dims[2]);
    return e;
}

/* ---- how much it takes ---- */

/* GPUs that pairs can be on side by side. */
static unsigned count_gpus(const struct oct_volumes_run *run)
{
    struct oct_cuda_choice choice;
    if (run->given->group || run->n_moving < 2 || !run->gpus || !strchr(run->gpus, ',') ||
        strcmp(run->backend, "cpu") == 0 || run->given->model == OCT_WARP_BSCANS)
        return 1;
    if (oct_cuda_choose(&choice, run->gpus, NULL, NULL, NULL) != OCT_OK)
        return 1; /* who computes says what is wrong */
    return choice.n_gpus < run->n_moving ? choice.n_gpus : run->n_moving;
}

static bool keeps_average(const struct oct_volumes_given *g)
{
    return g->average || g->group;
}

static uint64_t forecast(const struct oct_volumes_run *run)
{
    const uint64_t n = oct_warp_n_voxels(&run->grid), volume = n * sizeof(float);
    /* For all pairs: FIXED, which --group needs no more once it has become the average, the average
     * and the mask. */
    const uint64_t kept = volume * (keeps_average(run->given) && !run->given->group ? 2 : 1) +
                          (run->given->mask ? n : 0);
    /* Of each: first the moving volume put onto the grid, then the registration (which counts FIXED
     * too), then its result with the inverse. */
    uint64_t most = oct_warp_pair_bytes(&run->setup) - volume;
    const uint64_t after = volume * (run->given->inverse ? 9 : 6);
    most = after > most ? after : most;
    for (unsigned i = 0; i < run->n_moving; i++) {
        const struct oct_volumes_pair *pair = &run->pairs[i];
        const uint64_t before = pair->placing.is_same
                                    ? volume
                                    : oct_volumes_resample_bytes(pair->info.dims, run->grid.dims);
        most = before > most ? before : most;
    }
    return PROGRAM_BYTES + kept + most * run->n_lanes;
}

static enum oct_err check_memory(struct oct_volumes_run *run, struct oct_error *err)
{
    const char *limit;
    const double there = oct_memory_available_bytes(&limit);
    run->need_bytes = forecast(run);
    if ((double)run->need_bytes <= there)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "%s: %u x %u x %u voxels need %.2f GiB, %.2f GiB %s are free; crop the "
                    "volumes or end other programs",
                    run->fixed_path, run->grid.dims[0], run->grid.dims[1], run->grid.dims[2],
                    (double)run->need_bytes / GIB, there / GIB, limit);
}

/* ---- the beginning ---- */

/* Of the field alone, which --model both tries too: one number of iterations a level is of the
 * levels of `both`, fewer than it has itself. */
static enum oct_err set_up_still(struct oct_volumes_run *run, struct oct_error *err)
{
    struct oct_volumes_given given = *run->given;
    struct oct_warp_params *still = &run->setup.still;
    const struct oct_warp_params *both = &run->setup.solver.params;

    if (given.n_levels == 0 && given.n_iterations > 1)
        given.n_iterations = 0;
    const enum oct_err e =
        oct_volumes_given_params(&given, OCT_WARP_NONLINEAR, &run->grid, still, err);
    for (unsigned i = 0; i < still->n_levels && !e; i++)
        for (unsigned k = 0; k < both->n_levels && given.n_iterations == 0; k++)
            if (still->factor[i] == both->factor[k])
                still->iterations[i] = both->iterations[k];
    return e;
}

static enum oct_err set_up(struct oct_volumes_run *run, struct oct_error *err)
{
    const struct oct_volumes_given *g = run->given;
    struct oct_warp_pair_setup *s = &run->setup;
    *s = (struct oct_warp_pair_setup){.model = g->model, .backend = run->backend};
    s->solver.grid = run->grid;
    s->solver.workers = run->workers;
    s->solver.gpus = run->gpus;
    s->reach.reach_bscans = g->reach_px[0];
    s->reach.reach_lines = g->reach_px[1];
    s->reach.reach_depth = g->reach_px[2];
    s->reach.jump_price = isnan(g->jump_price) ? 0 : g->jump_price;
    const enum oct_err e =
        oct_volumes_given_params(g, g->model, &run->grid, &s->solver.params, err);
    return e || g->model != OCT_WARP_BOTH ? e : set_up_still(run, err);
}

enum oct_err oct_volumes_run_begin(struct oct_volumes_run *run, struct oct_error *err)
{
    run->progress.what = "volumes";
    run->progress.started_ns = oct_clock_ns();
    run->pairs = calloc(run->n_moving, sizeof(*run->pairs));
    if (!run->pairs)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    enum oct_err e = look_at_all(run, err);
    e = e ? e : check_mask(run, err);
    e = e ? e : set_up(run, err);
    e = e ? e : oct_volumes_read_points(run, err);
    if (e)
        return e;
    if (run->n_lanes == 0)
        run->n_lanes = count_gpus(run);
    run->shares = calloc(run->n_lanes, sizeof(*run->shares));
    if (!run->shares)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    return check_memory(run, err);
}

void oct_volumes_run_finish(struct oct_volumes_run *run)
{
    for (unsigned i = 0; run->pairs && i < run->n_moving; i++)
        free(run->pairs[i].points);
    free(run->pairs);
    free(run->points);
    free(run->shares);
    if (run->average != run->fixed)
        free(run->average);
    free(run->fixed);
    free(run->mask);
    *run = (struct oct_volumes_run){.given = run->given};
}
