/* What octctl register-volumes prints. */
#include "tools/analyse/register_volumes_files.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define GIB 1073741824.0
#define LITTLE_NCC 0.3 /* below it a line says that this is hardly a registration */

static double peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : NAN;
}

/* ---- in lines ---- */

static void print_volume(const struct oct_volumes_report *report)
{
    const struct oct_volumes_run *run = report->run;
    const struct oct_warp_grid *g = &run->grid;
    printf("%s: %u x %u x %u voxels", report->out, g->dims[0], g->dims[1], g->dims[2]);
    if (g->in_um)
        printf(" of %.4g x %.4g x %.4g um", g->spacing[0], g->spacing[1], g->spacing[2]);
    else
        printf(", spacing not known");
    printf(", model %s", oct_warp_model_names[run->given->model]);
    if (run->given->model != OCT_WARP_BSCANS)
        printf(", lambda %g, sigma %.4g %s", run->setup.solver.params.lambda,
               run->setup.solver.params.sigma * oct_volumes_finest(g), g->in_um ? "um" : "voxels");
    printf(", %.1f s, %.2f GiB of memory\n", run->seconds, peak_bytes() / GIB);
}

static void print_jacobian(const struct oct_volumes_pair *p)
{
    printf("  J %.3f to %.3f, log J %.4f in the mean, sd %.4f, J <= 0 in %.3g %%\n",
           p->change.least, p->change.most, oct_command_shown(p->change.mean_log, 4),
           p->change.sd_log, 100 * p->change.folded);
}

static void print_pair(const struct oct_volumes_run *run, unsigned i)
{
    const struct oct_volumes_pair *p = &run->pairs[i];
    printf("%s: NCC %.4f, before %.4f; SSD %.5g, before %.5g; %s, %.1f s\n", p->path,
           oct_command_shown(p->after.ncc, 4), oct_command_shown(p->before.ncc, 4), p->after.ssd,
           p->before.ssd, p->running, p->seconds);
    printf("  displacement %.2f voxels in the mean, %.2f at most", p->mean_length[0],
           p->most_length[0]);
    if (run->grid.in_um)
        printf(" (%.3g, %.3g um)", p->mean_length[1], p->most_length[1]);
    if (p->kept != OCT_WARP_NONLINEAR)
        printf(", %u of %u B-scans without a counterpart", p->n_lost, run->grid.dims[0]);
    if (run->given->inverse)
        printf(", inverse to %.2g voxels", p->inverse_left);
    printf("\n");
    if (p->kept != run->given->model)
        printf("  %s\n", p->kept == OCT_WARP_BSCANS
                             ? "the map is that of the B-scans alone: the field fits noise"
                             : "the map is that of --model nonlinear: B-scans lie as they are");
    print_jacobian(p);
}

void oct_volumes_print(const struct oct_volumes_report *report)
{
    print_volume(report);
    for (unsigned i = 0; i < report->run->n_moving; i++)
        print_pair(report->run, i);
}

/* ---- JSON ---- */

static void add_numbers(cJSON *o, const char *name, const double *values, unsigned n)
{
    cJSON *list = cJSON_AddArrayToObject(o, name);
    for (unsigned i = 0; i < n; i++)
        cJSON_AddItemToArray(list, isfinite(values[i]) ? cJSON_CreateNumber(values[i])
                                                       : cJSON_CreateNull());
}

static void add_volume(cJSON *o, const struct oct_volumes_run *run)
{
    const struct oct_warp_grid *g = &run->grid;
    const struct oct_warp_params *p = &run->setup.solver.params;
    const double dims[3] = {g->dims[0], g->dims[1], g->dims[2]};
    cJSON_AddStringToObject(o, "fixed", run->fixed_path);
    add_numbers(o, "voxels", dims, 3);
    if (g->in_um)
        add_numbers(o, "um", g->spacing, 3);
    else
        cJSON_AddNullToObject(o, "um");
    cJSON_AddStringToObject(o, "model", oct_warp_model_names[run->given->model]);
    cJSON_AddBoolToObject(o, "group", run->given->group);
    if (run->given->model == OCT_WARP_BSCANS)
        return;
    cJSON_AddStringToObject(o, "profile", oct_volumes_profile_names[p->profile]);
    cJSON_AddNumberToObject(o, "lambda", p->lambda);
    cJSON_AddNumberToObject(o, "sigma", p->sigma * oct_volumes_finest(g));
    cJSON_AddStringToObject(o, "sigma_unit", g->in_um ? "um" : "voxel");
}

static void add_likeness(cJSON *o, const char *name, const struct oct_warp_likeness *likeness)
{
    cJSON *at = cJSON_AddObjectToObject(o, name);
    oct_command_add_number(at, "ssd", likeness->ssd);
    oct_command_add_number(at, "ncc", likeness->ncc);
    cJSON_AddNumberToObject(at, "voxels", (double)likeness->n);
}

static void add_levels(cJSON *o, const struct oct_warp_report *report)
{
    cJSON *list = cJSON_AddArrayToObject(o, "levels");
    for (unsigned i = 0; i < report->n_levels; i++) {
        const struct oct_warp_level *l = &report->level[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "factor", l->factor);
        cJSON_AddNumberToObject(row, "iterations", l->iterations);
        cJSON_AddNumberToObject(row, "halvings", l->halvings);
        cJSON_AddNumberToObject(row, "regrids", l->regrids);
        oct_command_add_number(row, "energy_first", l->energy_first);
        oct_command_add_number(row, "energy_last", l->energy);
        oct_command_add_number(row, "ssd_first", l->ssd_first);
        oct_command_add_number(row, "ssd_last", l->ssd);
        oct_command_add_number(row, "least_jacobian", l->least_jacobian);
        oct_command_add_number(row, "seconds", l->seconds);
        cJSON_AddItemToArray(list, row);
    }
}

static void add_lengths(cJSON *o, const struct oct_volumes_pair *p)
{
    cJSON *at = cJSON_AddObjectToObject(o, "displacement");
    oct_command_add_number(at, "mean_voxels", p->mean_length[0]);
    oct_command_add_number(at, "most_voxels", p->most_length[0]);
    oct_command_add_number(at, "mean_um", p->mean_length[1]);
    oct_command_add_number(at, "most_um", p->most_length[1]);
}

static cJSON *make_pair(const struct oct_volumes_run *run, unsigned i)
{
    const struct oct_volumes_pair *p = &run->pairs[i];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "moving", p->path);
    cJSON_AddBoolToObject(o, "resampled", !p->placing.is_same);
    add_likeness(o, "before", &p->before);
    add_likeness(o, "after", &p->after);
    add_lengths(o, p);
    cJSON_AddStringToObject(o, "kept_model", oct_warp_model_names[p->kept]);
    if (p->kept != OCT_WARP_NONLINEAR)
        cJSON_AddNumberToObject(o, "bscans_without_counterpart", p->n_lost);
    cJSON *j = cJSON_AddObjectToObject(o, "jacobian");
    oct_command_add_number(j, "least", p->change.least);
    oct_command_add_number(j, "most", p->change.most);
    oct_command_add_number(j, "mean_log", p->change.mean_log);
    oct_command_add_number(j, "sd_log", p->change.sd_log);
    oct_command_add_number(j, "folded", p->change.folded);
    if (run->given->model != OCT_WARP_BSCANS)
        add_levels(o, &p->report);
    if (run->given->inverse)
        oct_command_add_number(o, "inverse_left_voxels", p->inverse_left);
    cJSON_AddStringToObject(o, "backend", p->running);
    cJSON_AddNumberToObject(o, "seconds", p->seconds);
    return o;
}

enum oct_err oct_volumes_print_json(const struct oct_volumes_report *report, struct oct_error *err)
{
    const struct oct_volumes_run *run = report->run;
    cJSON *o = cJSON_CreateObject();
    add_volume(o, run);
    cJSON *pairs = cJSON_AddArrayToObject(o, "pairs");
    for (unsigned i = 0; i < run->n_moving; i++)
        cJSON_AddItemToArray(pairs, make_pair(run, i));
    cJSON_AddNumberToObject(o, "forecast_bytes", (double)run->need_bytes);
    oct_command_add_number(o, "peak_bytes", peak_bytes());
    cJSON_AddNumberToObject(o, "seconds", run->seconds);
    cJSON_AddStringToObject(o, "out", report->out);
    const bool is_printed = oct_command_print_json(o);
    cJSON_Delete(o);
    return is_printed ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

/* ---- what should be known ---- */

void oct_volumes_warn(const struct oct_volumes_run *run, const char *name)
{
    if (!run->grid.in_um)
        fprintf(stderr,
                "octctl %s: the spacing is not known: smoothing is in voxels; --um gives it\n",
                name);
    for (unsigned i = 0; i < run->n_moving; i++) {
        const struct oct_volumes_pair *p = &run->pairs[i];
        if (run->fixed_info.eye[0] && p->info.eye[0] &&
            strcmp(run->fixed_info.eye, p->info.eye) != 0)
            fprintf(stderr, "octctl %s: %s is of the eye %s, %s of %s\n", name, run->fixed_path,
                    run->fixed_info.eye, p->path, p->info.eye);
        if (p->change.folded > 0)
            fprintf(stderr, "octctl %s: %s: the map folds (J <= 0) in %.3g %% of the voxels: %s\n",
                    name, p->path, 100 * p->change.folded,
                    p->kept == OCT_WARP_NONLINEAR
                        ? "a larger --lambda or --sigma"
                        : "tissue that the eye's jumps show twice, or a larger --jump-price");
        if (!(p->after.ncc >= LITTLE_NCC))
            fprintf(stderr,
                    "octctl %s: %s: hardly like FIXED after registration (NCC %.2f): look at "
                    "--png\n",
                    name, p->path, p->after.ncc);
    }
}
