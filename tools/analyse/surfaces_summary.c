/* What octctl surfaces prints. */
#include "plot/plot.h"
#include "tools/analyse/surfaces_files.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double share_found(const struct oct_surfaces_run *run, unsigned layer)
{
    return (double)run->n_known[layer] / ((double)run->n_bscans * run->n_lines);
}

static double mean_of(const float *values, size_t n)
{
    double sum = 0, n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            sum += (double)values[i];
            n_known++;
        }
    return n_known > 0 ? sum / n_known : NAN;
}

static bool is_left_out(const struct oct_surfaces_run *run, uint32_t b)
{
    const enum oct_volume_fate fate = run->surfaces.fate[b];
    return fate != OCT_VOLUME_USED && fate != OCT_VOLUME_NEW;
}

static const char *upper(const char *name, char text[16])
{
    size_t i = 0;
    for (; i < 15 && name[i]; i++)
        text[i] = (char)toupper((unsigned char)name[i]);
    text[i] = '\0';
    return text;
}

/* ---- in lines ---- */

static void print_fates(const struct oct_surfaces_run *run)
{
    const char *before = "; not registered: ";
    for (uint32_t b = 0; b < run->n_bscans; b++) {
        uint32_t last = b;
        if (!is_left_out(run, b))
            continue;
        while (last + 1 < run->n_bscans && run->surfaces.fate[last + 1] == run->surfaces.fate[b])
            last++;
        printf("%s%u", before, b);
        if (last > b)
            printf("-%u", last);
        printf(" (%s)", oct_volume_fate_text(run->surfaces.fate[b]));
        before = ", ";
        b = last;
    }
}

static void print_found(const struct oct_surfaces_report *report)
{
    const struct oct_surfaces_run *run = report->run;
    const char *before = ", ";
    char text[16];
    printf("%s: %u B-scans of %u A-lines", report->out, run->n_bscans, run->n_lines);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++) {
        if (!run->given->has_layer[i])
            continue;
        printf("%s%s in %.1f %%", before, upper(oct_layer_names[i], text),
               100 * share_found(run, i));
        if (run->denoised[i].running && run->n_known[i] > 0)
            printf(" (noise %.2f px)", oct_command_shown(run->denoised[i].noise_px, 2));
        before = ", ";
    }
    print_fates(run);
    printf(", %.1f s\n", run->seconds);
}

static void print_thickness(const struct oct_surfaces_run *run)
{
    static const double shares[2] = {0.01, 0.99};
    const size_t n = (size_t)run->n_bscans * run->n_lines;
    double limits[2] = {NAN, NAN};
    if (run->n_thickness == 0 || oct_plot_shares(run->thickness, n, shares, 2, limits, NULL))
        return;
    printf("thickness: %.1f %s in the mean, %.1f to %.1f in 98 %% of %.1f %% that are known\n",
           mean_of(run->thickness, n), isnan(run->um[2]) ? "px" : "um", limits[0], limits[1],
           100 * (double)run->n_thickness / (double)n);
}

/* A line a ring. */
static void print_grid(const struct oct_surfaces_run *run)
{
    if (!run->has_etdrs)
        return;
    printf("ETDRS, um (in brackets: less than half of the sector), about B-scan %.1f, A-line "
           "%.1f:",
           run->fovea_px[0], run->fovea_px[1]);
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        const bool is_half = run->etdrs.covered[i] >= 0.5;
        const bool begins = i == OCT_ETDRS_INNER_SUPERIOR || i == OCT_ETDRS_OUTER_SUPERIOR;
        printf("%s %s ", begins ? "\n " : i ? "," : "", oct_etdrs_names[i]);
        if (isnan(run->etdrs.mean_um[i]))
            printf("-");
        else
            printf(is_half ? "%.0f" : "(%.0f)", run->etdrs.mean_um[i]);
    }
    printf("\n");
}

void oct_surfaces_print(const struct oct_surfaces_report *report)
{
    print_found(report);
    print_thickness(report->run);
    print_grid(report->run);
}

/* ---- as JSON ---- */

static void add_layers(cJSON *object, const struct oct_surfaces_run *run)
{
    cJSON *layers = cJSON_AddObjectToObject(object, "layers");
    for (unsigned i = 0; i < OCT_N_LAYERS; i++) {
        const struct oct_denoise_report *d = &run->denoised[i];
        if (!run->given->has_layer[i])
            continue;
        cJSON *layer = cJSON_AddObjectToObject(layers, oct_layer_names[i]);
        cJSON_AddNumberToObject(layer, "found", share_found(run, i));
        if (!d->running)
            continue;
        oct_command_add_number(layer, "noise_px", d->noise_px);
        cJSON_AddNumberToObject(layer, "lost", (double)d->n_lost);
        cJSON_AddNumberToObject(layer, "band", (double)d->levelset.n_band);
        cJSON_AddNumberToObject(layer, "c2", d->levelset.c2);
        cJSON_AddStringToObject(layer, "backend", d->running);
    }
}

static enum oct_err add_thickness(cJSON *object, const struct oct_surfaces_run *run,
                                  struct oct_error *err)
{
    static const double shares[2] = {0.01, 0.99};
    const size_t n = (size_t)run->n_bscans * run->n_lines;
    double limits[2] = {NAN, NAN};
    if (!run->thickness)
        return OCT_OK;
    const enum oct_err e = oct_plot_shares(run->thickness, n, shares, 2, limits, err);
    if (e)
        return e;
    cJSON *t = cJSON_AddObjectToObject(object, isnan(run->um[2]) ? "thickness_px" : "thickness_um");
    oct_command_add_number(t, "mean", mean_of(run->thickness, n));
    oct_command_add_number(t, "p1", limits[0]);
    oct_command_add_number(t, "p99", limits[1]);
    cJSON_AddNumberToObject(t, "known", (double)run->n_thickness / (double)n);
    return OCT_OK;
}

static void add_grid(cJSON *object, const struct oct_surfaces_run *run)
{
    if (!run->has_etdrs)
        return;
    cJSON *grid = cJSON_AddObjectToObject(object, "etdrs");
    cJSON_AddItemToObject(grid, "fovea_px", cJSON_CreateDoubleArray(run->fovea_px, 2));
    cJSON_AddStringToObject(grid, "fovea", run->given->has_fovea ? "given" : "found");
    cJSON_AddStringToObject(grid, "eye", oct_surfaces_eye_name(run->eye));
    cJSON_AddStringToObject(grid, "superior", run->given->superior_is_last ? "last" : "first");
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        cJSON *sector = cJSON_AddObjectToObject(grid, oct_etdrs_names[i]);
        oct_command_add_number(sector, "mean_um", run->etdrs.mean_um[i]);
        cJSON_AddNumberToObject(sector, "covered", run->etdrs.covered[i]);
    }
}

static void add_left_out(cJSON *object, const struct oct_surfaces_run *run)
{
    cJSON *left = cJSON_AddArrayToObject(object, "left_out");
    for (uint32_t b = 0; b < run->n_bscans; b++) {
        if (!is_left_out(run, b))
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "bscan", b);
        cJSON_AddStringToObject(one, "reason", oct_volume_fate_text(run->surfaces.fate[b]));
        cJSON_AddItemToArray(left, one);
    }
}

enum oct_err oct_surfaces_print_json(const struct oct_surfaces_report *report,
                                     struct oct_error *err)
{
    const struct oct_surfaces_run *run = report->run;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "bscans", run->n_bscans);
    cJSON_AddNumberToObject(o, "lines", run->n_lines);
    cJSON_AddNumberToObject(o, "depth", run->depth);
    cJSON *um = cJSON_AddObjectToObject(o, "pixel_um");
    oct_command_add_number(um, "bscan", run->um[0]);
    oct_command_add_number(um, "line", run->um[1]);
    oct_command_add_number(um, "depth", run->um[2]);
    add_layers(o, run);
    const enum oct_err e = add_thickness(o, run, err);
    add_grid(o, run);
    add_left_out(o, run);
    cJSON_AddStringToObject(
        o, "denoise",
        run->given->is_denoised ? oct_surfaces_denoise_names[run->given->levelset] : "none");
    cJSON_AddNumberToObject(o, "seconds", run->seconds);
    cJSON_AddStringToObject(o, "out", report->out);
    const bool printed = !e && oct_command_print_json(o);
    cJSON_Delete(o);
    return e ? e : printed ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

/* ---- what is missing ---- */

/* Of thickness and grid; nothing where no layer was found, of which a line says so. */
static void warn_of_grid(const struct oct_surfaces_run *run, const char *name)
{
    if (!oct_surfaces_given_both(run->given) || run->n_thickness == 0)
        return;
    if (oct_surfaces_run_has_um(run) && !run->has_fovea)
        fprintf(stderr,
                "octctl %s: no pit of a fovea in view: no ETDRS means; --fovea B,J says where it "
                "is\n",
                name);
    if (run->has_etdrs && run->eye == OCT_SURFACES_EYE_UNKNOWN)
        fprintf(stderr,
                "octctl %s: which eye is not known: nasal stands for larger A-lines; --eye says "
                "it\n",
                name);
}

static void warn_of_layers(const struct oct_surfaces_run *run, const char *name)
{
    char missing[32] = "", text[16];
    for (unsigned i = 0; i < OCT_N_LAYERS; i++)
        if (run->given->has_layer[i] && run->n_known[i] == 0)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), "%s%s",
                     missing[0] ? " and no " : "", upper(oct_layer_names[i], text));
    if (missing[0])
        fprintf(stderr,
                "octctl %s: no %s found: no retina is in view, or noise hides it; all is NaN\n",
                name, missing);
}

/* Of slabs of layers that were found. */
static void warn_of_slabs(const struct oct_surfaces_run *run, const char *name)
{
    const size_t n = (size_t)run->n_bscans * run->n_lines;
    for (unsigned i = 0; i < run->given->n_slabs; i++) {
        const struct oct_slab *slab = &run->given->slab[i];
        if (run->n_known[slab->first.layer] > 0 && run->n_known[slab->last.layer] > 0 &&
            isnan(mean_of(run->slab[i], n)))
            fprintf(stderr,
                    "octctl %s: --slab %s: in no A-line it begins above its end and lies in the "
                    "picture; all of it is NaN\n",
                    name, run->given->slabs[i]);
    }
}

void oct_surfaces_warn(const struct oct_surfaces_run *run, const char *name)
{
    char unknown[64] = "";
    static const char *const axes[3] = {"B-scans", "A-lines", "depths"};
    for (int i = 2; i >= 0; i--)
        if (isnan(run->um[i]))
            snprintf(unknown + strlen(unknown), sizeof(unknown) - strlen(unknown), "%s%s",
                     unknown[0] ? ", " : "", axes[i]);
    if (unknown[0])
        fprintf(stderr, "octctl %s: the spacing of %s is not known: %s; --pixel-um gives it\n",
                name, unknown,
                isnan(run->um[2])
                    ? "thickness is in pixels, and layers are sought as in pixels of 2.5 um"
                    : "no ETDRS means");
    warn_of_layers(run, name);
    warn_of_slabs(run, name);
    warn_of_grid(run, name);
}
