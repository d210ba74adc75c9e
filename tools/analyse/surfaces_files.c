#include "tools/analyse/surfaces_files.h"

#include "formats/csv.h"
#include "formats/results.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *oct_surfaces_eye_name(enum oct_surfaces_eye eye)
{
    static const char *const names[] = {"", "OD", "OS"};
    return names[eye];
}

/* ---- settings ---- */

void oct_surfaces_write_levelset(struct oct_results *results,
                                 const struct oct_levelset_params *params)
{
    const bool is_full = params->weights == OCT_LEVELSET_FULL;
    oct_results_text(results, NULL, "weights", is_full ? "full" : "local");
    oct_results_text(results, NULL, "step", params->common_step ? "common" : "own");
    oct_results_number(results, NULL, "delta_px", params->delta);
    oct_results_count(results, NULL, "patch_px", params->patch);
    if (is_full)
        oct_results_count(results, NULL, "most", params->most);
    else
        oct_results_count(results, NULL, "reach_px", params->reach);
    oct_results_number(results, NULL, "c1", params->c1);
    oct_results_number(results, NULL, "beta", params->beta);
    oct_results_count(results, NULL, "rank", params->rank);
    oct_results_count(results, NULL, "steps", params->steps);
}

double oct_surfaces_reach(const struct oct_levelset_params *params)
{
    return ceil(params->delta + params->patch / 2 * sqrt(3)) + 1;
}

static void write_trace(struct oct_results *f)
{
    struct oct_trace_params p;
    oct_trace_params_default(&p);
    oct_results_number(f, NULL, "smooth_depth_um", p.smooth_depth_um);
    oct_results_number(f, NULL, "smooth_line_um", p.smooth_line_um);
    oct_results_number(f, NULL, "least_um", p.least_um);
    oct_results_number(f, NULL, "most_um", p.most_um);
    oct_results_number(f, NULL, "max_slope", p.max_slope);
    oct_results_number(f, NULL, "price", p.price);
    oct_results_number(f, NULL, "gap_um", p.gap_um);
    oct_results_number(f, NULL, "min_quality", p.min_quality);
}

static void write_settings(struct oct_results *f, const struct oct_surfaces_run *run)
{
    const struct oct_surfaces_given *g = run->given;
    oct_outputs_source(f, run->inputs, run->n_inputs);
    oct_results_text(f, NULL, "axes", "B-scan, A-line");
    oct_results_numbers(f, NULL, "axis_spacing_um", run->um, 3);
    oct_results_text(f, NULL, "layers",
                     oct_surfaces_given_both(g)    ? "ilm, rpe"
                     : g->has_layer[OCT_LAYER_ILM] ? "ilm"
                                                   : "rpe");
    oct_results_text(f, NULL, "align", g->no_align ? "no" : "yes");
    oct_results_text(f, NULL, "denoise",
                     g->is_denoised ? oct_surfaces_denoise_names[g->levelset] : "none");
    oct_results_text(f, NULL, "eye", oct_surfaces_eye_name(run->eye));
    if (g->skip)
        oct_results_text(f, NULL, "skip", g->skip);
    write_trace(f);
    if (!g->is_denoised)
        return;
    oct_surfaces_write_levelset(f, &run->params);
    if (!isnan(g->strength))
        oct_results_number(f, NULL, "strength_px", g->strength);
    const char *running = run->denoised[oct_surfaces_run_first(run)].running;
    if (running)
        oct_results_text(f, NULL, "backend", running);
}

/* ---- OUT.h5 ---- */

static unsigned write_map(struct oct_results *f, const struct oct_surfaces_run *run,
                          const char *name, const char *unit, const float *values)
{
    static const char *const axes[2] = {"bscan", "line"};
    const uint64_t dims[2] = {run->n_bscans, run->n_lines};
    const unsigned dataset = oct_results_dataset(f, name, OCT_RESULTS_F32, 2, dims, unit);
    oct_results_text(f, name, "axes", "B-scan, A-line");
    oct_results_axes(f, dataset, axes, run->um);
    if (values)
        oct_results_write(f, dataset, values);
    return dataset;
}

/* Below the layer that stands first, of itself 0. */
static void write_um(struct oct_results *f, const struct oct_surfaces_run *run, unsigned layer)
{
    const float *first = run->surfaces.position[oct_surfaces_run_first(run)];
    const float *own = run->surfaces.position[layer];
    const size_t m = run->n_lines;
    float *row = malloc(m * sizeof(*row));
    char name[64];
    snprintf(name, sizeof(name), "/surfaces/%s_um", oct_layer_names[layer]);
    const unsigned dataset = write_map(f, run, name, "um", NULL);
    for (uint64_t b = 0; row && b < run->n_bscans; b++) {
        oct_thickness_map(first + b * m, own + b * m, m, run->um[2], row);
        oct_results_write_rows(f, dataset, b, 1, row);
    }
    free(row);
}

static void write_layers(struct oct_results *f, const struct oct_surfaces_run *run)
{
    static const char *const borders[OCT_N_LAYERS] = {
        "the centre of its thin reflex, where the rise of brightness ends",
        "its outer side, Bruch's membrane, where the fall of brightness ends"};
    for (unsigned i = 0; i < OCT_N_LAYERS; i++) {
        char name[64];
        if (!run->given->has_layer[i])
            continue;
        snprintf(name, sizeof(name), "/surfaces/%s", oct_layer_names[i]);
        write_map(f, run, name, "px", run->surfaces.position[i]);
        oct_results_text(f, name, "border", borders[i]);
        oct_results_text(f, name, "origin",
                         "depth pixels of the B-scan as read, 0 in the middle of the first");
        if (run->denoised[i].running) {
            oct_results_number(f, name, "noise_px", run->denoised[i].noise_px);
            oct_results_number(f, name, "c2", run->denoised[i].levelset.c2);
            oct_results_count(f, name, "n_lost", run->denoised[i].n_lost);
        }
        if (!isnan(run->um[2]))
            write_um(f, run, i);
        snprintf(name, sizeof(name), "/quality/%s", oct_layer_names[i]);
        write_map(f, run, name, NULL, run->surfaces.quality[i]);
    }
}

static void write_grid(struct oct_results *f, const struct oct_surfaces_run *run)
{
    const uint64_t n = OCT_ETDRS_N_SECTORS;
    const bool has_eye = run->eye != OCT_SURFACES_EYE_UNKNOWN;
    char names[256] = "";
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
                 oct_etdrs_names[i]);
    const unsigned mean = oct_results_dataset(f, "/etdrs/mean_um", OCT_RESULTS_F64, 1, &n, "um");
    const unsigned covered = oct_results_dataset(f, "/etdrs/covered", OCT_RESULTS_F64, 1, &n, NULL);
    oct_results_write(f, mean, run->etdrs.mean_um);
    oct_results_write(f, covered, run->etdrs.covered);
    oct_results_text(f, "/etdrs", "sectors", names);
    oct_results_numbers(f, "/etdrs", "fovea_px", run->fovea_px, 2);
    oct_results_text(f, "/etdrs", "fovea", run->given->has_fovea ? "given" : "found");
    oct_results_text(f, "/etdrs", "superior", run->given->superior_is_last ? "last" : "first");
    oct_results_text(f, "/etdrs", "nasal",
                     !has_eye                          ? "unknown; stands for larger A-lines"
                     : run->eye == OCT_SURFACES_EYE_OD ? "larger A-lines"
                                                       : "smaller A-lines");
}

static void write_frames(struct oct_results *f, const struct oct_surfaces_run *run)
{
    const uint64_t n = run->n_bscans;
    const unsigned shift = oct_results_dataset(f, "/frames/shift_px", OCT_RESULTS_F64, 1, &n, "px");
    const unsigned fate = oct_results_dataset(f, "/frames/fate", OCT_RESULTS_U8, 1, &n, NULL);
    oct_results_text(f, "/frames/shift_px", "sign", "position + shift is aligned");
    oct_results_text(f, "/frames/fate", "meaning",
                     "0 used, 1 blank, 2 no fit, 3 new place, 4 skipped");
    oct_results_write(f, shift, run->surfaces.shift_px);
    for (uint64_t b = 0; b < n; b++) {
        const uint8_t number = (uint8_t)run->surfaces.fate[b];
        oct_results_write_rows(f, fate, b, 1, &number);
    }
}

static void write_slabs(struct oct_results *f, const struct oct_surfaces_run *run)
{
    for (unsigned i = 0; i < run->given->n_slabs; i++) {
        char text[64], name[80];
        oct_slab_text(&run->given->slab[i], text, sizeof(text));
        snprintf(name, sizeof(name), "/slabs/%s", text);
        write_map(f, run, name, run->is_db ? "dB" : NULL, run->slab[i]);
    }
}

enum oct_err oct_surfaces_report_h5(void *report, const char *path, bool force,
                                    struct oct_error *err)
{
    const struct oct_surfaces_run *run = ((const struct oct_surfaces_report *)report)->run;
    struct oct_results *f;
    const enum oct_err e = oct_results_create(&f, path, "layers", force, err);
    if (e)
        return e;
    write_layers(f, run);
    if (run->thickness)
        write_map(f, run, isnan(run->um[2]) ? "/thickness_px" : "/thickness_um",
                  isnan(run->um[2]) ? "px" : "um", run->thickness);
    if (run->has_etdrs)
        write_grid(f, run);
    write_frames(f, run);
    write_slabs(f, run);
    write_settings(f, run);
    return oct_results_publish(f, err);
}

/* ---- --csv ---- */

static void write_row(struct oct_csv *csv, const struct oct_surfaces_run *run, uint32_t b,
                      uint32_t j)
{
    const size_t at = (size_t)b * run->n_lines + j;
    oct_csv_count(csv, b);
    oct_csv_count(csv, j);
    oct_csv_number(csv, j * run->um[1]);
    oct_csv_number(csv, b * run->um[0]);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++)
        oct_csv_number(csv, run->given->has_layer[i] ? (double)run->surfaces.position[i][at] : NAN);
    oct_csv_number(csv, run->thickness && !isnan(run->um[2]) ? (double)run->thickness[at] : NAN);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++)
        oct_csv_number(csv, run->given->has_layer[i] ? (double)run->surfaces.quality[i][at] : NAN);
    oct_csv_end_row(csv);
}

enum oct_err oct_surfaces_report_csv(void *report, const char *path, bool force,
                                     struct oct_error *err)
{
    const struct oct_surfaces_run *run = ((const struct oct_surfaces_report *)report)->run;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(
        &csv, path, force,
        "bscan,line,x_um,y_um,ilm_px,rpe_px,thickness_um,ilm_quality,rpe_quality", err);
    if (e)
        return e;
    for (uint32_t b = 0; b < run->n_bscans; b++)
        for (uint32_t j = 0; j < run->n_lines; j++)
            write_row(csv, run, b, j);
    return oct_csv_publish(csv, err);
}
