/* What octctl register-volumes reads and writes beside volumes: OUT.h5, NIfTI, tables of places. */
#include "formats/csv.h"
#include "formats/csv_read.h"
#include "formats/nifti_write.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "tools/alloc.h"
#include "tools/analyse/register_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES 64

/* ---- what is found ---- */

#define P struct oct_volumes_pair
static const struct oct_result_field pair_fields[] = {
    {OCT_RESULT("moving", P, path)},
    {OCT_RESULT("before.ssd", P, before.ssd), .h5 = "ssd_before"},
    {OCT_RESULT("before.ncc", P, before.ncc), .h5 = "ncc_before"},
    {OCT_RESULT("before.voxels", P, before.n), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("after.ssd", P, after.ssd), .h5 = "ssd_after"},
    {OCT_RESULT("after.ncc", P, after.ncc), .h5 = "ncc_after"},
    {OCT_RESULT("after.voxels", P, after.n), .h5 = "compared_voxels"},
    {OCT_RESULT("jacobian.least", P, change.least)},
    {OCT_RESULT("jacobian.most", P, change.most)},
    {OCT_RESULT("jacobian.mean_log", P, change.mean_log), .h5 = "log_jacobian_mean"},
    {OCT_RESULT("jacobian.sd_log", P, change.sd_log), .h5 = "log_jacobian_sd"},
    {OCT_RESULT("jacobian.folded", P, change.folded), .h5 = "folded"},
    {OCT_RESULT("displacement.mean_voxels", P, mean_length[0])},
    {OCT_RESULT("displacement.most_voxels", P, most_length[0])},
    {OCT_RESULT("displacement.mean_um", P, mean_length[1]), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("displacement.most_um", P, most_length[1]), .not_in = OCT_RESULT_H5},
    {OCT_RESULT_LIST("range", P, range), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("backend", P, running)},
    {OCT_RESULT_NAMED("kept_model", P, kept, oct_volumes_model_names)},
    {OCT_RESULT("bscans_without_counterpart", P, n_lost), .not_in = OCT_RESULT_H5,
     .is_optional = true},
    {OCT_RESULT("bscans", P, n_bscans), .not_in = OCT_RESULT_H5 | OCT_RESULT_JSON},
    {OCT_RESULT("seconds", P, seconds)},
    {OCT_RESULT("inverse_left_voxels", P, inverse_left), .is_optional = true},
    {OCT_RESULT("resampled", P, is_resampled)},
    {OCT_RESULT_LIST("moving_origin", P, placing.origin), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT_LIST("moving_scale", P, placing.scale), .not_in = OCT_RESULT_JSON},
};
#undef P
const struct oct_result_fields oct_volumes_pair_fields = OCT_RESULT_FIELDS(pair_fields);

const char oct_volumes_jacobian_sentence[] =
    "J {jacobian.least:.3f} to {jacobian.most:.3f}, log J {jacobian.mean_log:.4f} in the mean, sd "
    "{jacobian.sd_log:.4f}, J <= 0 in {100*jacobian.folded:.3g} %";

#define L struct oct_warp_level
static const struct oct_result_field level_fields[] = {
    {OCT_RESULT("factor", L, factor)},
    {OCT_RESULT("iterations", L, iterations)},
    {OCT_RESULT("halvings", L, halvings)},
    {OCT_RESULT("regrids", L, regrids)},
    {OCT_RESULT("energy_first", L, energy_first)},
    {OCT_RESULT("energy_last", L, energy)},
    {OCT_RESULT("ssd_first", L, ssd_first)},
    {OCT_RESULT("ssd_last", L, ssd)},
    {OCT_RESULT("least_jacobian", L, least_jacobian)},
    {OCT_RESULT("seconds", L, seconds), .unit = "s"},
};
#undef L
static const struct oct_result_fields all_level_fields = OCT_RESULT_FIELDS(level_fields);

struct oct_result_rows oct_volumes_levels(const struct oct_volumes_pair *pair)
{
    return (struct oct_result_rows){.fields = &all_level_fields,
                                    .n = pair->report.n_levels,
                                    .row_bytes = sizeof(struct oct_warp_level),
                                    .context = pair->report.level};
}

/* ---- places ---- */

/* Where the three numbers stand; the columns of a header, if the row is one. */
static bool read_header(const char *const *cells, unsigned n, unsigned column[3])
{
    static const char *const names[3] = {"bscan", "line", "depth"};
    double number;
    bool is_header = false;
    for (unsigned k = 0; k < 3; k++) {
        column[k] = k;
        is_header = is_header || (k < n && !oct_csv_to_number(cells[k], &number));
        for (unsigned i = 0; i < n; i++)
            if (strcasecmp(cells[i], names[k]) == 0)
                column[k] = i, is_header = true;
    }
    return is_header;
}

static enum oct_err read_row(const struct oct_volumes *v, const struct oct_csv_reader *csv,
                             const char *const *cells, unsigned n, const unsigned column[3],
                             double point[3], struct oct_error *err)
{
    const uint32_t *dims = v->grid.dims;
    for (unsigned k = 0; k < 3; k++) {
        if (column[k] >= n || !oct_csv_to_number(cells[column[k]], &point[k]))
            return oct_csv_refuse(csv, err, "needs three numbers: B-scan, A-line, depth");
        if (!(point[k] >= -0.5 && point[k] <= dims[k] - 0.5))
            return oct_csv_refuse(csv, err, "%g lies outside 0 to %u, voxels of %s", point[k],
                                  dims[k] - 1, v->job.inputs[0]);
    }
    return OCT_OK;
}

enum oct_err oct_volumes_read_points(struct oct_volumes *volumes, struct oct_error *err)
{
    struct oct_volumes *v = volumes;
    struct oct_csv_reader *csv;
    const char *const *cells;
    unsigned n, column[3] = {0, 1, 2};
    bool is_first = true;
    if (!v->given.points)
        return OCT_OK;
    enum oct_err e = oct_csv_open(&csv, v->given.points, err);
    while (!e && !(e = oct_csv_next(csv, &cells, &n, err)) && n > 0) {
        if (!is_first || !read_header(cells, n, column)) {
            const size_t i = v->n_points++;
            if ((i & (i + 1)) == 0) /* room for twice as many, and one more */
                v->points = oct_alloc_more(v->points, 2 * i + 1, sizeof(*v->points));
            e = read_row(v, csv, cells, n, column, v->points[i], err);
        }
        is_first = false;
    }
    oct_csv_close(csv);
    if (!e && v->n_points == 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: has no places", v->given.points);
    return e;
}

enum oct_err oct_volumes_write_points(void *volumes, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(
        &csv, path, force,
        "moving,bscan,line,depth,moving_bscan,moving_line,moving_depth,moving_file", err);
    if (e)
        return e;
    for (unsigned i = 0; i < v->n_moving; i++)
        for (size_t p = 0; p < v->n_points; p++) {
            oct_csv_count(csv, i + 1);
            for (unsigned k = 0; k < 3; k++)
                oct_csv_number(csv, v->points[p][k]);
            for (unsigned k = 0; k < 3; k++)
                oct_csv_number(csv, v->pairs[i].points[p][k]);
            oct_csv_text(csv, v->pairs[i].path);
            oct_csv_end_row(csv);
        }
    return oct_csv_publish(csv, err);
}

/* ---- HDF5 ---- */

/* "/warped", or "/pair/2/warped" of several. */
static const char *name_of(const struct oct_volumes *v, const char *what, char name[NAME_BYTES])
{
    if (v->n_moving > 1)
        snprintf(name, NAME_BYTES, "/pair/%u%s", v->hand.i + 1, what);
    else
        snprintf(name, NAME_BYTES, "%s", what);
    return name;
}

static const char *unit_of_values(const struct oct_volumes *v)
{
    const bool is_db = v->fixed_info.is_db || v->fixed_info.is_linear; /* counts^2 become dB */
    return is_db ? "dB" : NULL;
}

/* meaning NULL: a volume, [V][M][D]; else a field, [3][V][M][D]. values NULL: there is none. */
static void write_values(const struct oct_volumes *v, const char *name, const char *unit,
                         const char *meaning, const float *values)
{
    static const char *const axes[4] = {"component", "bscan", "line", "depth"};
    const struct oct_warp_grid *g = &v->grid;
    const uint64_t dims[4] = {3, g->dims[0], g->dims[1], g->dims[2]};
    const unsigned skipped = meaning ? 0 : 1;
    double um[4] = {NAN, NAN, NAN, NAN};
    if (!values)
        return;
    for (unsigned i = 0; g->in_um && i < 3; i++)
        um[1 + i] = g->spacing[i];
    const unsigned d =
        oct_results_dataset(v->h5, name, OCT_RESULTS_F32, 4 - skipped, dims + skipped, unit);
    oct_results_text(v->h5, name, "axes",
                     meaning ? "component (B-scans, A-lines, depth), B-scan, A-line, depth"
                             : "B-scan, A-line, depth");
    oct_results_axes(v->h5, d, axes + skipped, um + skipped);
    if (meaning && g->in_um) {
        oct_results_numbers(v->h5, name, "element_size_um", g->spacing, 3);
        oct_results_numbers(v->h5, name, "um", g->spacing, 3);
    }
    if (meaning)
        oct_results_text(v->h5, name, "meaning", meaning);
    oct_results_write(v->h5, d, values);
}

static void write_bscans(const struct oct_volumes *v)
{
    const struct oct_warp_bscan *bscans = v->hand.made->bscans;
    const uint64_t dims[2] = {v->grid.dims[0], 3};
    char shift[NAME_BYTES], score[NAME_BYTES];
    if (!bscans)
        return;
    name_of(v, "/bscans_shift", shift);
    name_of(v, "/bscans_score", score);
    const unsigned d = oct_results_dataset(v->h5, shift, OCT_RESULTS_F64, 2, dims, "voxel");
    const unsigned s = oct_results_dataset(v->h5, score, OCT_RESULTS_F64, 1, dims, NULL);
    oct_results_text(v->h5, shift, "axes", "B-scan, component (B-scans, A-lines, depth)");
    oct_results_text(v->h5, shift, "sign",
                     "what is at x of FIXED is at x + shift of MOVING, before the smooth field");
    oct_results_text(v->h5, score, "meaning", "NCC with its counterpart; NaN: it has none");
    for (uint64_t b = 0; b < dims[0]; b++) {
        oct_results_write_rows(v->h5, d, b, 1, bscans[b].shift);
        oct_results_write_rows(v->h5, s, b, 1, &bscans[b].score);
    }
}

void oct_volumes_write_pair(const struct oct_volumes *volumes)
{
    const struct oct_volumes *v = volumes;
    const struct oct_volumes_hand *h = &v->hand;
    const struct oct_volumes_pair *pair = &v->pairs[h->i];
    const struct oct_result_rows levels = oct_volumes_levels(pair);
    char name[NAME_BYTES];
    write_values(v, name_of(v, "/warped", name), unit_of_values(v), NULL, h->made->warped);
    write_values(v, name_of(v, "/displacement", name), "voxel",
                 "voxel x of FIXED lies at x - u of MOVING, on the grid of FIXED",
                 h->made->displacement);
    write_values(v, name_of(v, "/jacobian", name), NULL, NULL, h->made->jacobian);
    write_values(v, name_of(v, "/inverse", name), "voxel",
                 "voxel y of MOVING, on the grid of FIXED, lies at y - w of FIXED", h->inverse);
    write_bscans(v);
    if (levels.n > 0)
        oct_result_datasets(v->h5, name_of(v, "/levels", name), &levels);
    oct_result_attributes(v->h5, v->n_moving > 1 ? name_of(v, "", name) : NULL,
                          &oct_volumes_pair_fields, pair);
}

static void write_solver(const struct oct_volumes *v)
{
    const struct oct_warp_params *p = &v->setup.solver.params;
    struct oct_results *f = v->h5;
    double factors[OCT_WARP_MOST_LEVELS], iterations[OCT_WARP_MOST_LEVELS];
    for (unsigned i = 0; i < p->n_levels; i++) {
        factors[i] = p->factor[i];
        iterations[i] = p->iterations[i];
    }
    oct_results_text(f, NULL, "profile", oct_volumes_profile_names[p->profile]);
    oct_results_number(f, NULL, "lambda", p->lambda);
    oct_results_number(f, NULL, v->grid.in_um ? "sigma_um" : "sigma_voxels",
                       p->sigma * oct_volumes_finest(&v->grid));
    oct_results_number(f, NULL, "kappa", p->kappa);
    oct_results_number(f, NULL, "most_step", p->most_step);
    oct_results_numbers(f, NULL, "factors", factors, p->n_levels);
    oct_results_numbers(f, NULL, "most_iterations", iterations, p->n_levels);
}

static void write_settings(const struct oct_volumes *v)
{
    const struct oct_volumes_settings *s = &v->settings;
    struct oct_results *f = v->h5;
    oct_results_text(f, NULL, "fixed", v->job.inputs[0]);
    oct_outputs_source(f, v->job.inputs, 1 + v->n_moving);
    oct_results_text(f, NULL, "model", oct_volumes_model_names[s->model]);
    oct_results_text(f, NULL, "group", v->given.group ? "yes" : "no");
    oct_results_text(f, NULL, "units", v->grid.in_um ? "um" : "voxel");
    if (v->grid.in_um)
        oct_results_numbers(f, NULL, "element_size_um", v->grid.spacing, 3);
    oct_results_text(f, NULL, "asked_backend", v->job.backend);
    if (v->given.mask)
        oct_results_text(f, NULL, "mask", v->given.mask);
    if (s->model != OCT_WARP_BSCANS)
        write_solver(v);
    const double reach[3] = {s->reach_px[0], s->reach_px[1], s->reach_px[2]};
    if (v->given.reach)
        oct_results_numbers(f, NULL, "reach", reach, 3);
    if (!isnan(s->jump_price))
        oct_results_number(f, NULL, "jump_price", s->jump_price);
}

enum oct_err oct_volumes_write_h5(void *volumes, const char *path, bool force,
                                  struct oct_error *err)
{
    struct oct_volumes *v = volumes;
    struct oct_results *f = v->h5;
    (void)force;
    write_values(v, "/average", unit_of_values(v), NULL, v->average);
    if (v->average)
        oct_results_count(f, "/average", "n_averaged", v->n_averaged);
    write_settings(v);
    v->h5 = NULL;
    return oct_results_publish_as(f, path, err);
}

/* ---- NIfTI ---- */

static struct oct_nifti_form form_of(const struct oct_volumes *v, const char *description)
{
    struct oct_nifti_form form = {.description = description};
    memcpy(form.dims, v->grid.dims, sizeof(form.dims));
    for (unsigned i = 0; i < 3; i++)
        form.um[i] = v->grid.in_um ? v->grid.spacing[i] : NAN;
    if (v->fixed_info.is_nifti)
        form.to_mm = v->fixed_info.to_mm;
    return form;
}

enum oct_err oct_volumes_nifti_warped(void *volumes, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    const struct oct_nifti_form form = form_of(v, "octctl register-volumes: moving as fixed");
    return oct_nifti_write(path, force, &form, v->hand.made->warped, err);
}

/* Places of the moving volume, counted on the fixed grid, in mm. */
static void moving_to_mm(const struct oct_volumes_pair *pair, double to_mm[3][4])
{
    for (unsigned row = 0; row < 3; row++) {
        to_mm[row][3] = pair->info.to_mm[row][3];
        for (unsigned k = 0; k < 3; k++) { /* depth, A-line, B-scan */
            const double step = pair->info.to_mm[row][k];
            to_mm[row][k] = step * pair->placing.scale[2 - k];
            to_mm[row][3] += step * pair->placing.origin[2 - k];
        }
    }
}

enum oct_err oct_volumes_nifti_displacement(void *volumes, const char *path, bool force,
                                            struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    const struct oct_volumes_pair *pair = &v->pairs[v->hand.i];
    const struct oct_nifti_form form = form_of(v, "octctl register-volumes: from fixed to moving");
    double to_mm[3][4];
    moving_to_mm(pair, to_mm);
    return oct_nifti_write_displacement(path, force, &form,
                                        pair->info.is_nifti ? (const double(*)[4])to_mm : NULL,
                                        v->hand.made->displacement, err);
}

enum oct_err oct_volumes_nifti_jacobian(void *volumes, const char *path, bool force,
                                        struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    const struct oct_nifti_form form = form_of(v, "octctl register-volumes: Jacobian determinant");
    return oct_nifti_write(path, force, &form, v->hand.made->jacobian, err);
}

enum oct_err oct_volumes_nifti_average(void *volumes, const char *path, bool force,
                                       struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    const struct oct_nifti_form form = form_of(v, "octctl register-volumes: mean");
    return oct_nifti_write(path, force, &form, v->average, err);
}
