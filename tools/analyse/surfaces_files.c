/* What octctl surfaces writes and prints of layers: OUT.h5, --csv, the summary. */
#include "formats/csv.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "tools/alloc.h"
#include "tools/analyse/surfaces.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is found ---- */

#define S struct oct_surfaces_job
static const struct oct_result_field volume_rows[] = {
    {OCT_RESULT("bscans", S, n_bscans), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("lines", S, n_lines), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("depth", S, depth), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("pixel_um.bscan", S, um[0]), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("pixel_um.line", S, um[1]), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("pixel_um.depth", S, um[2]), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("denoise", S, denoise_name)},
    {OCT_RESULT("seconds", S, job.seconds), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("out", S, job.out), .not_in = OCT_RESULT_H5},
    {OCT_RESULT_LIST("axis_spacing_um", S, um), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("layers", S, layer_names), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("align", S, is_aligned), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("eye", S, eye_name), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("skip", S, given.skip), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("strength_px", S, choice.strength), .not_in = OCT_RESULT_JSON, .is_optional = true},
    {OCT_RESULT("backend", S, running), .not_in = OCT_RESULT_JSON},
};
#undef S
static const struct oct_result_fields volume_fields = OCT_RESULT_FIELDS(volume_rows);

#define L struct oct_surfaces_layer
static const struct oct_result_field layer_rows[] = {
    {OCT_RESULT("label", L, label), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("found", L, share)},
};
static const struct oct_result_fields layer_fields = OCT_RESULT_FIELDS(layer_rows);

/* Of a layer that was denoised. */
static const struct oct_result_field denoised_rows[] = {
    {OCT_RESULT("noise_px", L, denoised.noise_px)},
    {OCT_RESULT("lost", L, denoised.n_lost), .h5 = "n_lost"},
    {OCT_RESULT("band", L, denoised.levelset.n_band), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("c2", L, denoised.levelset.c2)},
    {OCT_RESULT("backend", L, denoised.running), .not_in = OCT_RESULT_H5},
};
#undef L
static const struct oct_result_fields denoised_fields = OCT_RESULT_FIELDS(denoised_rows);

#define T struct oct_surfaces_thickness
static const struct oct_result_field thickness_rows[] = {
    {OCT_RESULT("mean", T, mean)},
    {OCT_RESULT("p1", T, p1)},
    {OCT_RESULT("p99", T, p99)},
    {OCT_RESULT("known", T, known)},
    {OCT_RESULT("unit", T, unit), .not_in = OCT_RESULT_JSON},
};
#undef T
static const struct oct_result_fields thickness_fields = OCT_RESULT_FIELDS(thickness_rows);

#define G struct oct_surfaces_grid
static const struct oct_result_field grid_rows[] = {
    {OCT_RESULT_LIST("fovea_px", G, fovea_px)},
    {OCT_RESULT("fovea", G, fovea)},
    {OCT_RESULT("eye", G, eye), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("superior", G, superior)},
    {OCT_RESULT("nasal", G, nasal), .not_in = OCT_RESULT_JSON},
};
#undef G
static const struct oct_result_fields grid_fields = OCT_RESULT_FIELDS(grid_rows);

struct sector {
    double mean_um, covered;
};
static const struct oct_result_field sector_rows[] = {
    {OCT_RESULT("mean_um", struct sector, mean_um), .unit = "um"},
    {OCT_RESULT("covered", struct sector, covered)},
};
static const struct oct_result_fields sector_fields = OCT_RESULT_FIELDS(sector_rows);

/* Of a thickness. */
static void fill_sector(const void *thickness, uint64_t i, void *sector)
{
    const struct oct_etdrs *etdrs = &((const struct oct_surfaces_thickness *)thickness)->etdrs;
    *(struct sector *)sector = (struct sector){etdrs->mean_um[i], etdrs->covered[i]};
}

static void fill_tsnit(const void *circle, uint64_t i, void *sector)
{
    const struct oct_tsnit *tsnit = &((const struct oct_surfaces_circle *)circle)->tsnit;
    *(struct sector *)sector = (struct sector){tsnit->mean_um[i], tsnit->covered[i]};
}

/* ---- OUT.h5 ---- */

static unsigned write_map(struct oct_results *f, const struct oct_surfaces_job *s, const char *name,
                          const char *unit, const float *values)
{
    static const char *const axes[2] = {"bscan", "line"};
    const uint64_t dims[2] = {s->n_bscans, s->n_lines};
    const unsigned dataset = oct_results_dataset(f, name, OCT_RESULTS_F32, 2, dims, unit);
    oct_results_text(f, name, "axes", "B-scan, A-line");
    oct_results_axes(f, dataset, axes, s->um);
    if (values)
        oct_results_write(f, dataset, values);
    return dataset;
}

/* Below the layer that stands first, of itself 0. */
static void write_um(struct oct_results *f, const struct oct_surfaces_job *s, unsigned layer)
{
    const float *first = s->surfaces.position[s->first], *own = s->surfaces.position[layer];
    const size_t m = s->n_lines;
    float *row = oct_alloc(m, sizeof(*row));
    char name[64];
    snprintf(name, sizeof(name), "/layers/%s_um", oct_layer_names[layer]);
    const unsigned dataset = write_map(f, s, name, "um", NULL);
    for (uint64_t b = 0; b < s->n_bscans; b++) {
        oct_thickness_map(first + b * m, own + b * m, m, s->um[2], row);
        oct_results_write_rows(f, dataset, b, 1, row);
    }
    free(row);
}

/* A name of before version 0.2, of what is there. */
static void link_name(struct oct_results *f, const char *group, const char *layer,
                      const char *suffix, const char *of)
{
    char name[64];
    snprintf(name, sizeof(name), "%s/%s%s", group, layer, suffix);
    oct_results_link(f, name, of);
}

static void write_layer(struct oct_results *f, const struct oct_surfaces_job *s, unsigned k)
{
    static const char *const borders[OCT_N_LAYERS] = {
        "vitreous to nerve fibres: dark to bright",
        "nerve fibres to ganglion cells: bright to dark",
        "inner plexiform to inner nuclear layer: bright to dark",
        "inner nuclear to outer plexiform layer: dark to bright",
        "outer plexiform to outer nuclear layer: bright to dark",
        "inner segments to the ellipsoid zone: dark to bright",
        "pigment epithelium with Bruch's membrane to choroid: bright to dark"};
    const char *layer = oct_layer_names[k];
    char name[64];
    snprintf(name, sizeof(name), "/layers/%s", layer);
    write_map(f, s, name, "px", s->surfaces.position[k]);
    oct_results_text(f, name, "border", borders[k]);
    oct_results_text(f, name, "place", "where the light changes fastest");
    oct_results_text(f, name, "origin",
                     "depth pixels of the B-scan as read, 0 in the middle of the first");
    if (s->layer[k].denoised.running)
        oct_result_attributes(f, name, &denoised_fields, &s->layer[k]);
    link_name(f, "/surfaces", layer, "", name);
    if (!isnan(s->um[2])) {
        write_um(f, s, k);
        snprintf(name, sizeof(name), "/layers/%s_um", layer);
        link_name(f, "/surfaces", layer, "_um", name);
    }
    snprintf(name, sizeof(name), "/layers/%s_path", layer);
    write_map(f, s, name, "px", s->surfaces.path[k]);
    snprintf(name, sizeof(name), "/layers/%s_quality", layer);
    write_map(f, s, name, NULL, s->surfaces.quality[k]);
    link_name(f, "/quality", layer, "", name);
}

/* Each thickness, the retina's under its old name too. */
static void write_thicknesses(struct oct_results *f, const struct oct_surfaces_job *s)
{
    for (unsigned i = 0; i < OCT_SURFACES_N_THICKNESSES; i++) {
        const struct oct_surfaces_thickness *t = &s->thickness[i];
        char name[64];
        snprintf(name, sizeof(name), "/thickness/%s", t->name);
        if (!t->map)
            continue;
        write_map(f, s, name, t->unit, t->map);
        if (i == 0)
            oct_results_link(f, isnan(s->um[2]) ? "/thickness_px" : "/thickness_um", name);
    }
}

static void write_device(struct oct_results *f, const struct oct_surfaces_job *s)
{
    const struct oct_surfaces_device *d = &s->device;
    char name[64];
    for (unsigned k = 0; k < d->n; k++) {
        snprintf(name, sizeof(name), "/device/%s", d->layers[k]);
        write_map(f, s, name, "px", d->px + (size_t)k * s->n_bscans * s->n_lines);
        oct_results_text(f, name, "found_by", d->format);
    }
}

static void write_names(struct oct_results *f, const char *group, const char *const *sectors,
                        unsigned n)
{
    char names[OCT_ETDRS_N_SECTORS * 24] = "";
    for (unsigned i = 0; i < n; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
                 sectors[i]);
    oct_results_text(f, group, "sectors", names);
}

static void write_circle(struct oct_results *f, const struct oct_surfaces_job *s)
{
    const struct oct_surfaces_circle *c = &s->circle;
    const uint64_t m = s->n_lines;
    const struct oct_result_rows sectors = {.fields = &sector_fields,
                                            .n = OCT_TSNIT_N_SECTORS,
                                            .row_bytes = sizeof(struct sector),
                                            .fill = fill_tsnit,
                                            .context = c};
    const unsigned angle =
        oct_results_dataset(f, "/tsnit/angle_deg", OCT_RESULTS_F64, 1, &m, "deg");
    const unsigned rnfl = oct_results_dataset(f, "/tsnit/rnfl_um", OCT_RESULTS_F64, 1, &m, "um");
    oct_results_text(f, "/tsnit/angle_deg", "from",
                     "0 temporal, 90 superior, 180 nasal, 270 inferior");
    oct_results_write(f, angle, c->angle_deg);
    oct_results_write(f, rnfl, c->rnfl_um);
    oct_result_datasets(f, "/tsnit", &sectors);
    write_names(f, "/tsnit", oct_tsnit_names, OCT_TSNIT_N_SECTORS);
    oct_results_text(f, "/tsnit", "eye", s->eye_name);
}

/* /etdrs of the retina, /etdrs/NAME of its layers. */
static void write_grid(struct oct_results *f, const struct oct_surfaces_job *s)
{
    for (unsigned i = 0; i < OCT_SURFACES_N_THICKNESSES; i++) {
        const struct oct_result_rows sectors = {.fields = &sector_fields,
                                                .n = OCT_ETDRS_N_SECTORS,
                                                .row_bytes = sizeof(struct sector),
                                                .fill = fill_sector,
                                                .context = &s->thickness[i]};
        char group[32];
        snprintf(group, sizeof(group), i ? "/etdrs/%s" : "/etdrs", s->thickness[i].name);
        if (s->thickness[i].map)
            oct_result_datasets(f, group, &sectors);
    }
    write_names(f, "/etdrs", oct_etdrs_names, OCT_ETDRS_N_SECTORS);
    oct_result_attributes(f, "/etdrs", &grid_fields, &s->grid);
}

static void write_frames(struct oct_results *f, const struct oct_surfaces_job *s)
{
    const uint64_t n = s->n_bscans;
    const unsigned shift = oct_results_dataset(f, "/frames/shift_px", OCT_RESULTS_F64, 1, &n, "px");
    const unsigned fate = oct_results_dataset(f, "/frames/fate", OCT_RESULTS_U8, 1, &n, NULL);
    oct_results_text(f, "/frames/shift_px", "sign", "position + shift is aligned");
    oct_results_text(f, "/frames/fate", "meaning",
                     "0 used, 1 blank, 2 no fit, 3 new place, 4 skipped");
    oct_results_write(f, shift, s->surfaces.shift_px);
    for (uint64_t b = 0; b < n; b++)
        oct_results_write_rows(f, fate, b, 1, &(uint8_t){(uint8_t)s->surfaces.fate[b]});
}

static void write_settings(struct oct_results *f, const struct oct_surfaces_job *s)
{
    struct oct_trace_params p;
    oct_trace_params_default(&p);
    oct_outputs_source(f, s->job.inputs, s->job.n_inputs);
    oct_results_text(f, NULL, "axes", "B-scan, A-line");
    oct_result_attributes(f, NULL, &volume_fields, s);
    oct_results_number(f, NULL, "least_um", p.least_um);
    oct_results_number(f, NULL, "most_um", p.most_um);
    oct_results_number(f, NULL, "max_slope", p.max_slope);
    oct_results_number(f, NULL, "price", p.price);
    oct_results_number(f, NULL, "gap_um", p.gap_um);
    oct_results_number(f, NULL, "min_quality", p.min_quality);
    if (s->is_denoised)
        oct_surfaces_write_params(f, &s->params);
}

enum oct_err oct_surfaces_write_h5(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_surfaces_job *s = job;
    struct oct_results *f;
    const enum oct_err e = oct_results_create(&f, path, "layers", force, err);
    if (e)
        return e;
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        if (s->layer[k].is_asked)
            write_layer(f, s, k);
    write_device(f, s);
    write_thicknesses(f, s);
    if (s->grid.is_measured)
        write_grid(f, s);
    if (s->circle.is_measured)
        write_circle(f, s);
    write_frames(f, s);
    for (unsigned i = 0; i < s->n_slabs; i++) {
        char name[80];
        snprintf(name, sizeof(name), "/slabs/%s", s->slab[i].name);
        write_map(f, s, name, s->is_db ? "dB" : NULL, s->slab[i].values);
    }
    write_settings(f, s);
    return oct_results_publish(f, err);
}

/* ---- --csv ---- */

static void write_line(struct oct_csv *csv, const struct oct_surfaces_job *s, size_t i)
{
    const size_t b = i / s->n_lines, j = i % s->n_lines;
    const float *retina = s->thickness[0].map;
    oct_csv_count(csv, b);
    oct_csv_count(csv, j);
    oct_csv_number(csv, (double)j * s->um[1]);
    oct_csv_number(csv, (double)b * s->um[0]);
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        oct_csv_number(csv, s->layer[k].is_asked ? (double)s->surfaces.position[k][i] : NAN);
    oct_csv_number(csv, retina && !isnan(s->um[2]) ? (double)retina[i] : NAN);
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        oct_csv_number(csv, s->layer[k].is_asked ? (double)s->surfaces.quality[k][i] : NAN);
    const float *fibres = s->thickness[1].map;
    oct_csv_number(csv, fibres && !isnan(s->um[2]) ? (double)fibres[i] : NAN);
    oct_csv_number(csv,
                   s->circle.is_measured ? oct_tsnit_angle(&s->circle.setup, (uint32_t)j) : NAN);
    oct_csv_end_row(csv);
}

enum oct_err oct_surfaces_write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_surfaces_job *s = job;
    const size_t n = (size_t)s->n_bscans * s->n_lines;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(
        &csv, path, force,
        "bscan,line,x_um,y_um,ilm_px,rnfl_gcl_px,ipl_inl_px,inl_opl_px,opl_onl_px,is_os_px,rpe_px,"
        "thickness_um,ilm_quality,rnfl_gcl_quality,ipl_inl_quality,inl_opl_quality,"
        "opl_onl_quality,is_os_quality,rpe_quality,rnfl_um,angle_deg",
        err);
    for (size_t i = 0; i < n && !e; i++)
        write_line(csv, s, i);
    return e ? e : oct_csv_publish(csv, err);
}

/* ---- in lines ---- */

/* Of the B-scans' fates those that need a word. */
static const char *why_left_out(const void *job, uint64_t b)
{
    const enum oct_volume_fate fate = ((const struct oct_surfaces_job *)job)->surfaces.fate[b];
    return fate == OCT_VOLUME_USED || fate == OCT_VOLUME_NEW ? NULL : oct_volume_fate_text(fate);
}

/* Whether the field ends within the grid, by more than a pixel. */
static bool is_cut(const struct oct_surfaces_job *s)
{
    const double reach_um = 1000 * oct_etdrs_radii_mm[OCT_ETDRS_N_CIRCLES - 1];
    for (int axis = 0; axis < 2; axis++) {
        const double field_um = (axis ? s->n_lines : s->n_bscans) * s->um[axis];
        const double at_um = (s->grid.fovea_px[axis] + 0.5) * s->um[axis];
        if (fmin(at_um, field_um - at_um) < reach_um - s->um[axis])
            return true;
    }
    return false;
}

/* A line a ring. */
static void print_grid(const struct oct_surfaces_job *s)
{
    const struct oct_etdrs *etdrs = &s->thickness[0].etdrs;
    printf("ETDRS, um (in brackets: less than half of the sector), about B-scan %.1f, A-line "
           "%.1f%s:",
           s->grid.fovea_px[0], s->grid.fovea_px[1], is_cut(s) ? "; the field cuts the grid" : "");
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        const bool begins = i == OCT_ETDRS_INNER_SUPERIOR || i == OCT_ETDRS_OUTER_SUPERIOR;
        printf("%s %s ", begins ? "\n " : i ? "," : "", oct_etdrs_names[i]);
        if (isnan(etdrs->mean_um[i]))
            printf("-");
        else
            printf(etdrs->covered[i] >= 0.5 ? "%.0f" : "(%.0f)", etdrs->mean_um[i]);
    }
    printf("\n");
}

static void print_circle(const struct oct_surfaces_circle *c)
{
    printf("nerve fibres, um (in brackets: less than half of the sector):");
    for (unsigned i = 0; i < OCT_TSNIT_N_SECTORS; i++)
        printf(c->tsnit.covered[i] >= 0.5 ? "%s %s %.0f" : "%s %s (%.0f)", i ? "," : "",
               oct_tsnit_names[i], c->tsnit.mean_um[i]);
    printf("\n");
}

void oct_surfaces_print(const void *job)
{
    const struct oct_surfaces_job *s = job;
    oct_result_print(stdout, "{out}: {bscans} B-scans of {lines} A-lines", &volume_fields, s);
    for (unsigned k = 0; k < OCT_N_LAYERS; k++) {
        const struct oct_surfaces_layer *layer = &s->layer[k];
        if (!layer->is_asked)
            continue;
        oct_result_print(stdout, ", {label} in {100*found:.1f} %", &layer_fields, layer);
        if (layer->denoised.noise_px > 0 && layer->n_known > 0)
            oct_result_print(stdout, " (noise {noise_px:.2f} px)", &denoised_fields, layer);
    }
    oct_command_print_runs("; not registered: ", s->n_bscans, why_left_out, s);
    printf(", %.1f s\n", s->job.seconds);
    if (s->thickness[0].n_known > 0)
        oct_result_print(stdout,
                         "thickness: {mean:.1f} {unit} in the mean, {p1:.1f} to {p99:.1f} in 98 % "
                         "of {100*known:.1f} % that are known\n",
                         &thickness_fields, &s->thickness[0]);
    if (s->grid.is_measured)
        print_grid(s);
    if (s->circle.is_measured)
        print_circle(&s->circle);
}

/* ---- as JSON ---- */

static void add_sectors(cJSON *to, const char *const *names, unsigned n,
                        void (*fill)(const void *of, uint64_t i, void *sector), const void *of)
{
    for (unsigned i = 0; i < n; i++) {
        struct sector sector;
        fill(of, i, &sector);
        oct_result_json(cJSON_AddObjectToObject(to, names[i]), &sector_fields, &sector);
    }
}

void oct_surfaces_json(const void *job, cJSON *tree)
{
    const struct oct_surfaces_job *s = job;
    oct_result_json(tree, &volume_fields, s);
    cJSON *layers = cJSON_AddObjectToObject(tree, "layers");
    for (unsigned k = 0; k < OCT_N_LAYERS; k++) {
        if (!s->layer[k].is_asked)
            continue;
        cJSON *layer = cJSON_AddObjectToObject(layers, oct_layer_names[k]);
        oct_result_json(layer, &layer_fields, &s->layer[k]);
        if (s->layer[k].denoised.running)
            oct_result_json(layer, &denoised_fields, &s->layer[k]);
    }
    if (s->thickness[0].map)
        oct_result_json(
            cJSON_AddObjectToObject(tree, isnan(s->um[2]) ? "thickness_px" : "thickness_um"),
            &thickness_fields, &s->thickness[0]);
    cJSON *thickness = cJSON_AddObjectToObject(tree, "thickness");
    for (unsigned i = 0; i < OCT_SURFACES_N_THICKNESSES; i++)
        if (s->thickness[i].map)
            oct_result_json(cJSON_AddObjectToObject(thickness, s->thickness[i].name),
                            &thickness_fields, &s->thickness[i]);
    if (s->grid.is_measured) {
        cJSON *grid = cJSON_AddObjectToObject(tree, "etdrs");
        oct_result_json(grid, &grid_fields, &s->grid);
        add_sectors(grid, oct_etdrs_names, OCT_ETDRS_N_SECTORS, fill_sector, &s->thickness[0]);
    }
    if (s->circle.is_measured)
        add_sectors(cJSON_AddObjectToObject(tree, "tsnit"), oct_tsnit_names, OCT_TSNIT_N_SECTORS,
                    fill_tsnit, &s->circle);
    oct_command_add_reasons(tree, "bscan", s->n_bscans, why_left_out, s);
}
