/* What octctl flow writes and prints: OUT.h5, --csv, the summary. */
#include "formats/result_files.h"
#include "formats/results.h"
#include "tools/alloc.h"
#include "tools/analyse/flow.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_Z 25.5F /* of u8 */
#define DB_STEP 0.5F

/* ---- what is found ---- */

#define J struct oct_flow_job
static const struct oct_result_field job_rows[] = {
    {OCT_RESULT("places", J, n_places), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("lines", J, n_lines), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("depth", J, depth), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("repeats", J, scan.repeats)},
    {OCT_RESULT("interleave", J, scan.interleave)},
    {OCT_RESULT("line_repeats", J, scan.line_repeats)},
    {OCT_RESULT("method", J, method)},
    {OCT_RESULT("window_um", J, settings.window_um), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("min_z", J, settings.min_z)},
    {OCT_RESULT("projection", J, settings.projection)},
    {OCT_RESULT("max_bulk", J, settings.max_bulk), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("refractive_index", J, settings.refractive_index), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("rad_um", J, optics.rad_um), .not_in = OCT_RESULT_JSON, .is_optional = true},
    {OCT_RESULT("moved", J, n_moved), .h5 = "places_moved"},
    {OCT_RESULT("bulk_decorrelation", J, bulk)},
    {OCT_RESULT("snr_db", J, snr_db)},
    {OCT_RESULT("tau_us", J, tau_us)},
    {OCT_RESULT("ambiguous_mm_s", J, ambiguous_mm_s), .is_optional = true, .zero_is_none = true},
    {OCT_RESULT("seconds", J, job.seconds), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("out", J, job.out), .not_in = OCT_RESULT_H5},
};
#undef J
static const struct oct_result_fields job_fields = OCT_RESULT_FIELDS(job_rows);

#define R struct oct_flow_row
static const struct oct_result_field row_columns[] = {
    {OCT_RESULT("place", R, place), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("first_bscan", R, first_bscan)},
    {OCT_RESULT("time_s", R, time_s), .unit = "s", .meaning = "of the last B-scan"},
    {OCT_RESULT("bulk_decorrelation", R, bulk), .meaning = "median of d in bright tissue"},
    {OCT_RESULT("moved", R, moved), .meaning = "left out of the angiograms"},
    {OCT_RESULT("shift_lines", R, shift_lines), .unit = "A-lines", .not_in = OCT_RESULT_H5},
    {OCT_RESULT("shift_depth_px", R, shift_depth), .unit = "px", .not_in = OCT_RESULT_H5},
    {OCT_RESULT("noise", R, noise), .unit = "counts^2", .meaning = "n0"},
    {OCT_RESULT("snr_db", R, snr_db), .unit = "dB", .meaning = "mean of the tissue"},
    {OCT_RESULT("pairs", R, n_pairs), .meaning = "of neighbouring repeats"},
    {OCT_RESULT("tau_us", R, tau_us), .unit = "us", .meaning = "between neighbouring repeats"},
};
#undef R
static const struct oct_result_fields row_fields = OCT_RESULT_FIELDS(row_columns);

struct sector {
    const char *slab, *sector;
    double density;
};
static const struct oct_result_field sector_rows[] = {
    {OCT_RESULT("slab", struct sector, slab)},
    {OCT_RESULT("sector", struct sector, sector)},
    {OCT_RESULT("density", struct sector, density)},
};
static const struct oct_result_fields sector_fields = OCT_RESULT_FIELDS(sector_rows);

#define S struct oct_flow_job_slab
static const struct oct_result_field slab_rows[] = {
    {OCT_RESULT("name", S, label), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("density", S, density)},
};
#undef S
static const struct oct_result_fields slab_fields = OCT_RESULT_FIELDS(slab_rows);

/* ---- OUT.h5 ---- */

static unsigned add_maps(struct oct_flow_job *f, const char *name, bool is_u8, const char *unit,
                         uint64_t n, uint64_t lines, const char *first_axis)
{
    const char *axes[3] = {first_axis, "line", "depth"};
    const uint64_t dims[3] = {n, lines, f->depth};
    const double um[3] = {n == f->n_places ? f->spacing.bscan_um : NAN,
                          f->spacing.line_um * f->n_lines / (double)lines, f->spacing.depth_um};
    const unsigned dataset =
        oct_results_dataset(f->file, name, is_u8 ? OCT_RESULTS_U8 : OCT_RESULTS_F32, 3, dims, unit);
    oct_results_axes(f->file, dataset, axes, um);
    return dataset;
}

enum oct_err oct_flow_begin_file(struct oct_flow_job *f, const char *path, bool force,
                                 struct oct_error *err)
{
    const bool of_lines = f->velocity_settings.between == OCT_FLOW_LINES_OF_BSCAN;
    const uint64_t n_bscans = (uint64_t)f->n_places * f->scan.repeats;
    const enum oct_err e = oct_results_create(&f->file, path, "flow", force, err);
    if (e)
        return e;
    f->d = add_maps(f, "/flow/d", f->is_u8, "1", f->n_places, f->n_lines, "place");
    f->z = add_maps(f, "/flow/z", f->is_u8, "1", f->n_places, f->n_lines, "place");
    f->intensity = add_maps(f, "/flow/intensity", f->is_u8, "dB", f->n_places, f->n_lines, "place");
    oct_results_text(f->file, "/flow/d", "meaning", "0: still, 1: all new between neighbours");
    oct_results_text(f->file, "/flow/z", "meaning", "d in standard deviations of still tissue");
    oct_results_number(f->file, "/flow/z", "projection",
                       f->is_projected ? f->settings.projection : 0);
    if (f->is_u8) {
        oct_results_number(f->file, "/flow/d", "step", 1.0 / 255);
        oct_results_number(f->file, "/flow/z", "step", 0.1);
        oct_results_number(f->file, "/flow/intensity", "step", (double)DB_STEP);
    }
    if (f->velocity)
        f->mm_s = add_maps(f, isnan(f->optics.rad_um) ? "/velocity/rad" : "/velocity/mm_s", false,
                           f->velocity_unit, of_lines ? n_bscans : f->n_places,
                           of_lines ? f->n_lines / f->scan.line_repeats : f->n_lines,
                           of_lines ? "bscan" : "place");
    return oct_results_error(f->file, err);
}

/* NaN: 0 */
static void put_u8(struct oct_flow_job *f, unsigned dataset, uint32_t place, const float *values,
                   float scale, bool is_power)
{
    for (size_t i = 0; i < (size_t)f->n_lines * f->depth; i++) {
        const float value = is_power ? 10 * log10f(values[i]) : values[i];
        f->bytes[i] = value > 0 ? (uint8_t)lroundf(fminf(value * scale, 255)) : 0;
    }
    oct_results_write_rows(f->file, dataset, place, 1, f->bytes);
}

void oct_flow_put_place(struct oct_flow_job *f, const struct oct_flow_found *found, uint32_t place)
{
    const size_t n = (size_t)f->n_lines * f->depth;
    const float *z = f->is_projected ? found->projected : found->z;
    if (f->is_u8) {
        put_u8(f, f->d, place, found->d, 255, false);
        put_u8(f, f->z, place, z, 255 / LARGEST_Z, false);
        put_u8(f, f->intensity, place, found->intensity, 1 / DB_STEP, true);
        return;
    }
    float *db = oct_alloc(n, sizeof(*db));
    for (size_t i = 0; i < n; i++)
        db[i] = 10 * log10f(found->intensity[i]);
    oct_results_write_rows(f->file, f->d, place, 1, found->d);
    oct_results_write_rows(f->file, f->z, place, 1, z);
    oct_results_write_rows(f->file, f->intensity, place, 1, db);
    free(db);
}

void oct_flow_put_velocity(struct oct_flow_job *f, uint64_t row)
{
    oct_results_write_rows(f->file, f->mm_s, row, 1, f->v);
}

static void write_slab(struct oct_flow_job *f, const struct oct_flow_job_slab *slab)
{
    static const char *const axes[2] = {"place", "line"};
    const uint64_t dims[2] = {f->n_places, f->n_lines};
    const double um[2] = {f->spacing.bscan_um, f->spacing.line_um};
    char name[80], text[80];
    snprintf(name, sizeof(name), "/slabs/%s", slab->name);
    unsigned dataset = oct_results_dataset(f->file, name, OCT_RESULTS_F32, 2, dims, "1");
    oct_results_axes(f->file, dataset, axes, um);
    oct_results_write(f->file, dataset, slab->z);
    oct_flow_slab_text(&slab->slab, text, sizeof(text));
    oct_results_text(f->file, name, "depths", text[0] ? text : "all");
    oct_results_text(f->file, name, "meaning",
                     "the largest z of the depths; NaN: not known, or the place has moved");
    if (slab->slab.kind == OCT_FLOW_SLAB_LAYERS && strcmp(text, slab->name) != 0)
        oct_results_text(f->file, name, "about", "named depths are about a healthy macula");
    oct_result_attributes(f->file, name, &slab_fields, slab);
    snprintf(name, sizeof(name), "/slabs/%s_structure", slab->name);
    dataset = oct_results_dataset(f->file, name, OCT_RESULTS_F32, 2, dims, "dB");
    oct_results_axes(f->file, dataset, axes, um);
    oct_results_write(f->file, dataset, slab->structure);
}

static void fill_sector(const void *context, uint64_t i, void *row)
{
    const struct oct_flow_job *f = context;
    const struct oct_flow_job_slab *slab = &f->slab[i / OCT_ETDRS_N_SECTORS];
    const unsigned s = (unsigned)(i % OCT_ETDRS_N_SECTORS);
    *(struct sector *)row = (struct sector){slab->name, oct_etdrs_names[s], slab->sector[s]};
}

static bool has_sectors(const struct oct_flow_job *f)
{
    return f->heights[0] && f->heights[1];
}

static struct oct_result_rows sector_table(const struct oct_flow_job *f)
{
    return (struct oct_result_rows){.fields = &sector_fields,
                                    .n = (uint64_t)f->n_slabs * OCT_ETDRS_N_SECTORS,
                                    .row_bytes = sizeof(struct sector),
                                    .fill = fill_sector,
                                    .context = f};
}

static void write_sectors(struct oct_flow_job *f)
{
    const uint64_t dims[2] = {f->n_slabs, OCT_ETDRS_N_SECTORS};
    double values[OCT_FLOW_MOST_SLABS][OCT_ETDRS_N_SECTORS];
    char names[256] = "";
    for (unsigned i = 0; i < f->n_slabs; i++)
        memcpy(values[i], f->slab[i].sector, sizeof(values[i]));
    for (unsigned s = 0; s < OCT_ETDRS_N_SECTORS; s++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", s ? ", " : "",
                 oct_etdrs_names[s]);
    const unsigned dataset =
        oct_results_dataset(f->file, "/etdrs/density", OCT_RESULTS_F64, 2, dims, "1");
    oct_results_write(f->file, dataset, values);
    oct_results_text(f->file, "/etdrs", "sectors", names);
}

void oct_flow_end_file(struct oct_flow_job *f)
{
    const struct oct_result_rows rows = OCT_RESULT_ROWS(row_fields, f->rows, f->n_places);
    const uint64_t dims[3] = {f->n_places, f->scan.repeats, 2};
    const double um[3] = {f->spacing.bscan_um, f->spacing.line_um, f->spacing.depth_um};
    f->method = oct_flow_methods[f->settings.method];
    const unsigned shift =
        oct_results_dataset(f->file, "/flow/shift_px", OCT_RESULTS_F64, 3, dims, "px");
    oct_results_text(f->file, "/flow/shift_px", "columns",
                     "A-lines, depth pixels: what moves a repeat onto the first");
    oct_results_write(f->file, shift, f->shifts);
    oct_result_datasets(f->file, "/flow", &rows);
    for (unsigned i = 0; i < f->n_slabs; i++)
        write_slab(f, &f->slab[i]);
    if (has_sectors(f))
        write_sectors(f);
    oct_results_numbers(f->file, NULL, "axis_spacing_um", um, 3);
    oct_result_attributes(f->file, NULL, &job_fields, f);
    oct_outputs_source(f->file, f->job.inputs, 1);
}

enum oct_err oct_flow_write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_flow_job *f = job;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(row_fields, f->rows, f->n_places);
    return oct_result_csv(path, force, &rows, err);
}

/* ---- the summary ---- */

void oct_flow_print(const void *job)
{
    const struct oct_flow_job *f = job;
    oct_result_print(stdout,
                     "{out}: {places} place{places:s} of {repeats} x {lines} A-lines, {moved} "
                     "moved; bulk decorrelation {bulk_decorrelation:.3f}[, SNR {snr_db:.1f} dB], "
                     "tau {tau_us:.0f} us, {seconds:.2f} s\n",
                     &job_fields, f);
    if (f->given.velocity && !isfinite(f->ambiguous_mm_s))
        printf("  no velocities: the time between the A-lines or B-scans is not known\n");
    else if (f->given.velocity)
        printf("  velocities wrap at %.4g %s\n", f->ambiguous_mm_s, f->velocity_unit);
    for (unsigned i = 0; i < f->n_slabs; i++)
        if (isfinite(f->slab[i].density))
            printf("  %s: flow in %.1f %% of the area\n", f->slab[i].name,
                   100 * f->slab[i].density);
        else
            printf("  %s: nothing is known of it: its layers were not found, or all moved\n",
                   f->slab[i].name);
}

void oct_flow_json(const void *job, struct cJSON *tree)
{
    const struct oct_flow_job *f = job;
    const struct oct_result_rows slabs = OCT_RESULT_ROWS(slab_fields, f->slab, f->n_slabs);
    const struct oct_result_rows sectors = sector_table(f);
    oct_result_json(tree, &job_fields, f);
    oct_result_json_rows(tree, "slabs", &slabs);
    if (has_sectors(f))
        oct_result_json_rows(tree, "etdrs", &sectors);
}
