#include "tools/analyse/register_volumes_files.h"

#include "formats/nifti_write.h"
#include "formats/results.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

/* ---- names ---- */

/* "/warped", or "/pair/2/warped" of several. */
static const char *name_of(const struct oct_volumes_report *r, const char *what,
                           char name[NAME_BYTES])
{
    if (r->run->n_moving > 1)
        snprintf(name, NAME_BYTES, "/pair/%u%s", r->pair + 1, what);
    else
        snprintf(name, NAME_BYTES, "%s", what);
    return name;
}

static const char *unit_of_values(const struct oct_volumes_run *run)
{
    return oct_volumes_is_db(&run->fixed_info) ? "dB" : NULL;
}

/* ---- volumes ---- */

static void describe_volume(struct oct_results *f, const char *name, unsigned dataset,
                            const struct oct_warp_grid *grid)
{
    static const char *const axes[3] = {"bscan", "line", "depth"};
    const double unknown[3] = {NAN, NAN, NAN};
    oct_results_text(f, name, "axes", "B-scan, A-line, depth");
    oct_results_axes(f, dataset, axes, grid->in_um ? grid->spacing : unknown);
}

static void describe_field(struct oct_results *f, const char *name, unsigned dataset,
                           const struct oct_warp_grid *grid)
{
    static const char *const axes[4] = {"component", "bscan", "line", "depth"};
    double um[4] = {NAN, NAN, NAN, NAN};
    for (unsigned i = 0; grid->in_um && i < 3; i++)
        um[1 + i] = grid->spacing[i];
    oct_results_text(f, name, "axes", "component (B-scans, A-lines, depth), B-scan, A-line, depth");
    oct_results_axes(f, dataset, axes, um);
    if (!grid->in_um)
        return;
    oct_results_numbers(f, name, "element_size_um", grid->spacing, 3);
    oct_results_numbers(f, name, "um", grid->spacing, 3);
}

static void write_volume(const struct oct_volumes_report *r, const char *name, const char *unit,
                         const float *values)
{
    const struct oct_warp_grid *grid = &r->run->grid;
    const uint64_t dims[3] = {grid->dims[0], grid->dims[1], grid->dims[2]};
    if (!values)
        return;
    const unsigned d = oct_results_dataset(r->h5, name, OCT_RESULTS_F32, 3, dims, unit);
    describe_volume(r->h5, name, d, grid);
    oct_results_write(r->h5, d, values);
}

static void write_field(const struct oct_volumes_report *r, const char *name, const char *meaning,
                        const float *field)
{
    const struct oct_warp_grid *grid = &r->run->grid;
    const uint64_t dims[4] = {3, grid->dims[0], grid->dims[1], grid->dims[2]};
    if (!field)
        return;
    const unsigned d = oct_results_dataset(r->h5, name, OCT_RESULTS_F32, 4, dims, "voxel");
    describe_field(r->h5, name, d, grid);
    oct_results_text(r->h5, name, "meaning", meaning);
    oct_results_write(r->h5, d, field);
}

/* ---- tables ---- */

static void write_bscans(const struct oct_volumes_report *r)
{
    const struct oct_warp_bscan *bscans = r->result->pair->bscans;
    const uint64_t dims[2] = {r->run->grid.dims[0], 3};
    char shift[NAME_BYTES], score[NAME_BYTES];
    if (!bscans)
        return;
    name_of(r, "/bscans_shift", shift);
    name_of(r, "/bscans_score", score);
    const unsigned d = oct_results_dataset(r->h5, shift, OCT_RESULTS_F64, 2, dims, "voxel");
    const unsigned s = oct_results_dataset(r->h5, score, OCT_RESULTS_F64, 1, dims, NULL);
    oct_results_text(r->h5, shift, "axes", "B-scan, component (B-scans, A-lines, depth)");
    oct_results_text(r->h5, shift, "sign",
                     "what is at x of FIXED is at x + shift of MOVING, before the smooth field");
    oct_results_text(r->h5, score, "meaning", "NCC with its counterpart; NaN: it has none");
    for (uint64_t b = 0; b < dims[0]; b++) {
        oct_results_write_rows(r->h5, d, b, 1, bscans[b].shift);
        oct_results_write_rows(r->h5, s, b, 1, &bscans[b].score);
    }
}

static void write_counts(const struct oct_volumes_report *r, const char *what, size_t at)
{
    const struct oct_warp_report *report = &r->result->pair->report;
    const uint64_t n = report->n_levels;
    char name[NAME_BYTES];
    const unsigned d =
        oct_results_dataset(r->h5, name_of(r, what, name), OCT_RESULTS_U32, 1, &n, NULL);
    for (unsigned i = 0; i < n; i++) {
        uint32_t count = *(const unsigned *)((const char *)&report->level[i] + at);
        oct_results_write_rows(r->h5, d, i, 1, &count);
    }
}

static void write_numbers(const struct oct_volumes_report *r, const char *what, const char *unit,
                          size_t at)
{
    const struct oct_warp_report *report = &r->result->pair->report;
    const uint64_t n = report->n_levels;
    char name[NAME_BYTES];
    const unsigned d =
        oct_results_dataset(r->h5, name_of(r, what, name), OCT_RESULTS_F64, 1, &n, unit);
    for (unsigned i = 0; i < n; i++)
        oct_results_write_rows(r->h5, d, i, 1, (const char *)&report->level[i] + at);
}

#define OF(member) offsetof(struct oct_warp_level, member)
static void write_levels(const struct oct_volumes_report *r)
{
    if (r->result->pair->report.n_levels == 0)
        return;
    write_counts(r, "/levels/factor", OF(factor));
    write_counts(r, "/levels/iterations", OF(iterations));
    write_counts(r, "/levels/halvings", OF(halvings));
    write_counts(r, "/levels/regrids", OF(regrids));
    write_numbers(r, "/levels/energy_first", NULL, OF(energy_first));
    write_numbers(r, "/levels/energy_last", NULL, OF(energy));
    write_numbers(r, "/levels/ssd_first", NULL, OF(ssd_first));
    write_numbers(r, "/levels/ssd_last", NULL, OF(ssd));
    write_numbers(r, "/levels/least_jacobian", NULL, OF(least_jacobian));
    write_numbers(r, "/levels/seconds", "s", OF(seconds));
}

/* ---- numbers ---- */

static void write_likeness(struct oct_results *f, const char *object, const char *when,
                           const struct oct_warp_likeness *likeness)
{
    char name[32];
    snprintf(name, sizeof(name), "ssd_%s", when);
    oct_results_number(f, object, name, likeness->ssd);
    snprintf(name, sizeof(name), "ncc_%s", when);
    oct_results_number(f, object, name, likeness->ncc);
}

static void write_pair_numbers(const struct oct_volumes_report *r)
{
    const struct oct_volumes_pair *p = &r->run->pairs[r->pair];
    char text[NAME_BYTES];
    const char *object = r->run->n_moving > 1 ? name_of(r, "", text) : NULL;
    struct oct_results *f = r->h5;
    oct_results_text(f, object, "moving", p->path);
    write_likeness(f, object, "before", &p->before);
    write_likeness(f, object, "after", &p->after);
    oct_results_count(f, object, "compared_voxels", p->after.n);
    oct_results_number(f, object, "jacobian_least", p->change.least);
    oct_results_number(f, object, "jacobian_most", p->change.most);
    oct_results_number(f, object, "log_jacobian_mean", p->change.mean_log);
    oct_results_number(f, object, "log_jacobian_sd", p->change.sd_log);
    oct_results_number(f, object, "folded", p->change.folded);
    oct_results_number(f, object, "displacement_mean_voxels", p->mean_length[0]);
    oct_results_number(f, object, "displacement_most_voxels", p->most_length[0]);
    oct_results_numbers(f, object, "range", p->range, 2);
    oct_results_text(f, object, "backend", p->running);
    oct_results_text(f, object, "kept_model", oct_warp_model_names[p->kept]);
    oct_results_number(f, object, "seconds", p->seconds);
    if (r->result->inverse)
        oct_results_number(f, object, "inverse_left_voxels", p->inverse_left);
    oct_results_text(f, object, "resampled", p->placing.is_same ? "no" : "yes");
    oct_results_numbers(f, object, "moving_origin", p->placing.origin, 3);
    oct_results_numbers(f, object, "moving_scale", p->placing.scale, 3);
}

void oct_volumes_write_pair(struct oct_volumes_report *report)
{
    const struct oct_volumes_result *result = report->result;
    char name[NAME_BYTES];
    write_volume(report, name_of(report, "/warped", name), unit_of_values(report->run),
                 result->pair->warped);
    write_field(report, name_of(report, "/displacement", name),
                "voxel x of FIXED lies at x - u of MOVING, on the grid of FIXED",
                result->pair->displacement);
    write_volume(report, name_of(report, "/jacobian", name), NULL, result->pair->jacobian);
    write_field(report, name_of(report, "/inverse", name),
                "voxel y of MOVING, on the grid of FIXED, lies at y - w of FIXED", result->inverse);
    write_bscans(report);
    write_levels(report);
    write_pair_numbers(report);
}

static void write_solver(struct oct_results *f, const struct oct_volumes_run *run)
{
    const struct oct_warp_params *p = &run->setup.solver.params;
    double factors[OCT_WARP_MOST_LEVELS], iterations[OCT_WARP_MOST_LEVELS];
    for (unsigned i = 0; i < p->n_levels; i++) {
        factors[i] = p->factor[i];
        iterations[i] = p->iterations[i];
    }
    oct_results_text(f, NULL, "profile", oct_volumes_profile_names[p->profile]);
    oct_results_number(f, NULL, "lambda", p->lambda);
    oct_results_number(f, NULL, run->grid.in_um ? "sigma_um" : "sigma_voxels",
                       p->sigma * oct_volumes_finest(&run->grid));
    oct_results_number(f, NULL, "kappa", p->kappa);
    oct_results_number(f, NULL, "most_step", p->most_step);
    oct_results_numbers(f, NULL, "factors", factors, p->n_levels);
    oct_results_numbers(f, NULL, "most_iterations", iterations, p->n_levels);
}

static void write_settings(struct oct_results *f, const struct oct_volumes_run *run)
{
    const struct oct_volumes_given *g = run->given;
    oct_results_text(f, NULL, "fixed", run->fixed_path);
    oct_outputs_source(f, run->moving, run->n_moving);
    oct_results_text(f, NULL, "model", oct_warp_model_names[g->model]);
    oct_results_text(f, NULL, "group", g->group ? "yes" : "no");
    oct_results_text(f, NULL, "units", run->grid.in_um ? "um" : "voxel");
    if (run->grid.in_um)
        oct_results_numbers(f, NULL, "element_size_um", run->grid.spacing, 3);
    oct_results_text(f, NULL, "asked_backend", run->backend);
    if (g->mask)
        oct_results_text(f, NULL, "mask", g->mask);
    if (g->model != OCT_WARP_BSCANS)
        write_solver(f, run);
    if (g->model != OCT_WARP_NONLINEAR && g->reach) {
        const double reach[3] = {g->reach_px[0], g->reach_px[1], g->reach_px[2]};
        oct_results_numbers(f, NULL, "reach", reach, 3);
    }
    if (g->model != OCT_WARP_NONLINEAR && !isnan(g->jump_price))
        oct_results_number(f, NULL, "jump_price", g->jump_price);
}

enum oct_err oct_volumes_report_h5(void *context, const char *path, bool force,
                                   struct oct_error *err)
{
    struct oct_volumes_report *r = context;
    struct oct_results *f = r->h5;
    (void)force;
    if (r->run->average) {
        write_volume(r, "/average", unit_of_values(r->run), r->run->average);
        oct_results_count(f, "/average", "n_averaged", r->run->n_averaged);
    }
    write_settings(f, r->run);
    r->h5 = NULL;
    return oct_results_publish_as(f, path, err);
}

/* ---- NIfTI ---- */

static struct oct_nifti_form form_of(const struct oct_volumes_run *run, const char *description)
{
    struct oct_nifti_form form = {.description = description};
    memcpy(form.dims, run->grid.dims, sizeof(form.dims));
    for (unsigned i = 0; i < 3; i++)
        form.um[i] = run->grid.in_um ? run->grid.spacing[i] : NAN;
    if (run->fixed_info.is_nifti)
        form.to_mm = run->fixed_info.to_mm;
    return form;
}

static enum oct_err write_nifti(const struct oct_volumes_report *r, const char *path, bool force,
                                const char *description, const float *values, struct oct_error *err)
{
    const struct oct_nifti_form form = form_of(r->run, description);
    return oct_nifti_write(path, force, &form, values, err);
}

enum oct_err oct_volumes_nifti_warped(void *report, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    return write_nifti(r, path, force, "octctl register-volumes: moving as fixed",
                       r->result->pair->warped, err);
}

/* Places of the moving volume, counted on the fixed grid, in mm; NULL: it does not say. */
static const double (*moving_to_mm(const struct oct_volumes_pair *pair, double to_mm[3][4]))[4]
{
    if (!pair->info.is_nifti)
        return NULL;
    for (unsigned row = 0; row < 3; row++) {
        to_mm[row][3] = pair->info.to_mm[row][3];
        for (unsigned k = 0; k < 3; k++) { /* depth, A-line, B-scan */
            const double step = pair->info.to_mm[row][k];
            to_mm[row][k] = step * pair->placing.scale[2 - k];
            to_mm[row][3] += step * pair->placing.origin[2 - k];
        }
    }
    return (const double(*)[4])to_mm;
}

enum oct_err oct_volumes_nifti_displacement(void *report, const char *path, bool force,
                                            struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    const struct oct_nifti_form form =
        form_of(r->run, "octctl register-volumes: from fixed to moving");
    double to_mm[3][4];
    return oct_nifti_write_displacement(path, force, &form,
                                        moving_to_mm(&r->run->pairs[r->pair], to_mm),
                                        r->result->pair->displacement, err);
}

enum oct_err oct_volumes_nifti_jacobian(void *report, const char *path, bool force,
                                        struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    return write_nifti(r, path, force, "octctl register-volumes: Jacobian determinant",
                       r->result->pair->jacobian, err);
}

enum oct_err oct_volumes_nifti_average(void *report, const char *path, bool force,
                                       struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    return write_nifti(r, path, force, "octctl register-volumes: mean", r->run->average, err);
}
