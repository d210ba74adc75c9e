/* octctl flow: blood flow and motion of a recording whose scan repeats its places. */
#include "tools/analyse/flow.h"

#include "config/analysis.h"
#include "formats/pictures.h"
#include "formats/recording.h"
#include "formats/results.h"
#include "numeric/order.h"
#include "pipeline/plan/plan.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/files/recon_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_TISSUE 100.0 /* voxels of a recording */
static const char *const sample_names[] = {"f32", "u8", NULL};

/* ---- options ---- */

static void init_options(void *job)
{
    struct oct_flow_job *f = job;
    f->given.slabs = oct_alloc((size_t)f->job.n_words + 1, sizeof(*f->given.slabs));
    f->given.noise = NAN;
}

static void name_slab(struct oct_flow_job_slab *slab)
{
    snprintf(slab->name, sizeof(slab->name), "%s", slab->slab.name[0] ? slab->slab.name : "all");
    slab->label = slab->name;
}

static int read_slabs(struct oct_flow_job *f)
{
    struct oct_error err;
    for (const char **text = f->given.slabs; *text; text++) {
        struct oct_flow_job_slab *slab = &f->slab[f->n_slabs];
        if (f->n_slabs == OCT_FLOW_MOST_SLABS)
            return oct_command_misuse(f->job.name, "more than %u of --slab", OCT_FLOW_MOST_SLABS);
        if (oct_flow_slab_parse(&slab->slab, *text, &err))
            return oct_command_misuse(f->job.name, "--slab %s", err.text);
        slab->job = f;
        name_slab(slab);
        for (unsigned i = 0; i < f->n_slabs; i++)
            if (strcmp(slab->name, f->slab[i].name) == 0)
                return oct_command_misuse(f->job.name, "--slab %s: is given twice", *text);
        f->n_slabs++;
    }
    return 0;
}

/* Options become keys, as --set would, so that they win over the recording's own. */
static int set_key(struct oct_flow_job *f, const char *key, uint64_t value)
{
    char text[24];
    struct oct_error err;
    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (value == 0 || !oct_config_set(f->job.config, key, text, f->job.name, &err))
        return 0;
    return oct_command_fail(f->job.name, &err);
}

static int read_options(void *job)
{
    struct oct_flow_job *f = job;
    if (!f->job.out || f->job.n_inputs != 1)
        return oct_command_misuse(f->job.name, "one recording and one OUT.h5");
    const int sample = oct_option_word(f->given.sample, sample_names, 2);
    if (sample < 0)
        return oct_command_misuse(f->job.name, "--sample %s: is f32 or u8", f->given.sample);
    f->is_u8 = sample == 1;
    f->job.reads[0] = f->given.layers;
    int status = read_slabs(f);
    status = status ? status : set_key(f, "scan.repeats", f->given.repeats);
    return status ? status : set_key(f, "scan.interleave", f->given.interleave);
}

/* ---- before the first B-scan ---- */

static void read_settings(struct oct_flow_job *f, const struct oct_config *config,
                          const struct oct_plan *plan)
{
    struct oct_analysis_settings settings;
    oct_config_analysis(config, "flow", &settings);
    memcpy(&f->settings, settings.bytes, sizeof(f->settings));
    oct_param_texts_store(&oct_flow_params, &f->given.params, &f->settings);
    f->is_projected = oct_param_text(&oct_flow_params, &f->given.params, "projection") ||
                      oct_config_is_set(f->job.config, "flow.projection");
    oct_config_analysis(config, "velocity", &settings);
    memcpy(&f->velocity_settings, settings.bytes, sizeof(f->velocity_settings));
    f->scan = oct_flow_scan(&(struct oct_scan_protocol){
        config->scan.repeats, config->scan.interleave, config->scan.line_repeats});
    f->spacing = oct_config_spacing(config, plan);
    f->spacing.bscan_um *= f->scan.repeats;
    f->line_rate_hz = config->scan.line_rate_hz;
    f->n_lines = plan->geometry.n_lines;
    f->depth = plan->geometry.depth;
    f->n_places = plan->geometry.n_bscans / f->scan.repeats;
}

/* The mean line of the first B-scan that has lines, which the shot noise is as. */
static enum oct_err mean_line(struct oct_recording *recording, double *line, bool *found,
                              struct oct_error *err)
{
    const uint32_t n = oct_recording_n_samples(recording), m = oct_recording_n_lines(recording);
    struct oct_raw_frame frame = {.spectra = oct_alloc((size_t)n * m, sizeof(uint16_t)),
                                  .line_valid = oct_alloc(m, 1)};
    enum oct_err e = OCT_OK;
    *found = false;
    for (uint64_t b = 0; b < oct_recording_n_bscans(recording) && !*found && !e; b++) {
        uint32_t n_valid = 0;
        bool valid;
        e = oct_recording_read(recording, b, &frame, &valid, err);
        for (uint32_t j = 0; j < m && !e && valid; j++) {
            for (uint32_t i = 0; i < n && frame.line_valid[j]; i++)
                line[i] += frame.spectra[(size_t)j * n + i];
            n_valid += frame.line_valid[j];
        }
        for (uint32_t i = 0; i < n && n_valid; i++)
            line[i] /= n_valid;
        *found = n_valid > 0;
    }
    free(frame.spectra);
    free(frame.line_valid);
    return e;
}

static enum oct_err find_optics(struct oct_flow_job *f, const struct oct_plan *plan,
                                struct oct_recording *recording, struct oct_error *err)
{
    double *line = oct_alloc(plan->geometry.n_samples, sizeof(*line));
    bool found;
    enum oct_err e = mean_line(recording, line, &found, err);
    e = e ? e
          : oct_flow_optics_init(&f->optics, plan, found ? line : NULL,
                                 f->settings.refractive_index,
                                 f->settings.wavelengths == OCT_FLOW_FALLING, err);
    free(line);
    f->velocity_unit = isnan(f->optics.rad_um) ? "rad" : "mm/s";
    return e;
}

static uint64_t first_bscan_of(const struct oct_flow_job *f, uint32_t place)
{
    const uint32_t n = f->scan.interleave;
    return (uint64_t)(place / n) * n * f->scan.repeats + place % n;
}

/* A layer that octctl surfaces has found: a row a place, or a B-scan. */
static enum oct_err read_layer(struct oct_flow_job *f, const char *group, unsigned layer,
                               struct oct_error *err)
{
    const struct oct_pictures_options options = {.any_side = true};
    char *path = oct_alloc_text("%s:%s%s", f->given.layers, group, oct_layer_names[layer]);
    struct oct_pictures *pictures;
    struct oct_picture picture = {0};
    enum oct_err e = oct_pictures_open(&pictures, (const char *const *)&path, 1, &options, err);
    e = e ? e : oct_pictures_read(pictures, 0, &picture, NULL, err);
    const uint32_t n_bscans = f->n_places * f->scan.repeats;
    if (!e && (picture.width != f->n_lines ||
               (picture.height != f->n_places && picture.height != n_bscans)))
        e = oct_fail(err, OCT_E_ARG, "%s: %u x %u, and the recording has %u places of %u A-lines",
                     path, picture.height, picture.width, f->n_places, f->n_lines);
    if (!e)
        f->heights[layer] = oct_alloc((size_t)f->n_places * f->n_lines, sizeof(float));
    for (uint32_t p = 0; p < f->n_places && !e; p++) {
        const size_t row = picture.height == f->n_places ? p : first_bscan_of(f, p);
        for (uint32_t j = 0; j < f->n_lines; j++) {
            const size_t at = row * f->n_lines + j;
            f->heights[layer][(size_t)p * f->n_lines + j] =
                oct_picture_is_valid(&picture, at) ? picture.pixels[at] : NAN;
        }
    }
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
    free(path);
    return e;
}

/* Of a file those that slabs name, and ILM and RPE for the ETDRS grid; before version 0.2 there
 * were no others, under another name. */
static enum oct_err find_layers(struct oct_flow_job *f, struct oct_error *err)
{
    bool needs = false, is_needed[OCT_N_LAYERS] = {[OCT_LAYER_ILM] = true, [OCT_LAYER_RPE] = true};
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < f->n_slabs; i++) {
        const struct oct_flow_slab *slab = &f->slab[i].slab;
        if (oct_flow_slab_check(slab, "flow: slab", f->depth, err))
            return OCT_E_CONFIG;
        if (slab->kind == OCT_FLOW_SLAB_LAYERS) {
            needs = true;
            is_needed[slab->layers.first.layer] = true;
            is_needed[slab->layers.last.layer] = true;
        }
    }
    if (needs && !f->given.layers)
        return oct_flow_layers_create(&f->layers, f->n_lines, f->depth, &f->spacing, err);
    for (unsigned layer = 0; layer < OCT_N_LAYERS && f->given.layers && !e; layer++)
        if (is_needed[layer] && read_layer(f, "/layers/", layer, NULL))
            e = read_layer(f, "/surfaces/", layer, err);
    return e;
}

static enum oct_err open_velocity(struct oct_flow_job *f, struct oct_error *err)
{
    const bool is_lines = f->velocity_settings.between == OCT_FLOW_LINES_OF_BSCAN;
    struct oct_spacing spacing = f->spacing;
    double sigma[2];
    spacing.line_um *= is_lines ? f->scan.line_repeats : 1;
    oct_flow_sigma(&spacing, f->settings.window_um, OCT_FLOW_VELOCITY_LINES, sigma);
    const struct oct_flow_velocity_setup setup = {
        .n_lines = f->n_lines,
        .depth = f->depth,
        .line_repeats = is_lines ? f->scan.line_repeats : 1,
        .sigma_lines = sigma[0],
        .sigma_depth = sigma[1],
        .min_coherence = f->velocity_settings.min_coherence,
        .noise = f->given.noise > 0 ? f->given.noise : 0,
        .workers = f->job.workers,
    };
    f->v = oct_alloc((size_t)f->n_lines * f->depth, sizeof(*f->v));
    return oct_flow_velocity_create(&f->velocity, &setup, err);
}

/* Of a place of which nothing has come. */
static struct oct_flow_row lost_row(const struct oct_flow_job *f, uint32_t place)
{
    return (struct oct_flow_row){.place = place,
                                 .first_bscan = first_bscan_of(f, place),
                                 .bulk = NAN,
                                 .shift_lines = NAN,
                                 .shift_depth = NAN,
                                 .noise = NAN,
                                 .snr_db = NAN,
                                 .tau_us = NAN,
                                 .time_s = NAN};
}

static void alloc_results(struct oct_flow_job *f)
{
    const size_t n = (size_t)f->n_places * f->n_lines, voxels = (size_t)f->n_lines * f->depth;
    f->rows = oct_alloc(f->n_places, sizeof(*f->rows));
    for (uint32_t place = 0; place < f->n_places; place++)
        f->rows[place] = lost_row(f, place);
    f->shifts = oct_alloc((size_t)f->n_places * f->scan.repeats * 2, sizeof(*f->shifts));
    f->bytes = oct_alloc(voxels, 1);
    if (f->n_slabs == 0) {
        oct_flow_slab_parse(&f->slab[0].slab, f->settings.slab.name, NULL);
        f->slab[0].job = f;
        name_slab(&f->slab[0]);
        f->n_slabs = 1;
    }
    for (unsigned i = 0; i < f->n_slabs; i++) {
        f->slab[i].z = oct_alloc(n, sizeof(float));
        f->slab[i].structure = oct_alloc(n, sizeof(float));
        for (size_t k = 0; k < n; k++)
            f->slab[i].z[k] = f->slab[i].structure[k] = NAN;
    }
    for (unsigned i = 0; i < OCT_FLOW_N_SHOWN && f->given.png; i++) {
        struct oct_flow_shown *s = &f->shown[f->n_shown];
        s->place = (uint32_t)((uint64_t)f->n_places * (2 * i + 1) / (2 * OCT_FLOW_N_SHOWN));
        if (i > 0 && s->place == f->shown[f->n_shown - 1].place)
            continue;
        s->z = oct_alloc(voxels, sizeof(float));
        s->db = oct_alloc(voxels, sizeof(float));
        s->velocity = f->given.velocity ? oct_alloc(voxels, sizeof(float)) : NULL;
        f->n_shown++;
    }
}

/* Velocities take B-scans from the group. */
static enum oct_err open_engine(struct oct_flow_job *f, const struct oct_config *config,
                                struct oct_error *err)
{
    const bool keeps = f->given.velocity;
    struct oct_flow_engine_setup setup = {
        .place = oct_flow_place_setup_of(&f->settings, f->n_lines, f->depth, f->scan.repeats,
                                         &f->spacing, &f->optics, f->job.workers),
        .n_places = f->scan.interleave,
        .gpus = config->pipeline.gpus,
    };
    setup.place.noise = f->given.noise > 0 ? f->given.noise : 0;
    enum oct_err e =
        oct_flow_group_init(&f->group, keeps ? f->n_lines : 0, f->depth, &f->scan, err);
    return e ? e
             : oct_flow_engine_select(&f->ops, &f->engine,
                                      oct_config_backend_names[config->pipeline.backend], &setup,
                                      err);
}

static enum oct_err begin(void *context, const struct oct_config *config,
                          const struct oct_plan *plan, struct oct_recording *recording,
                          struct oct_error *err)
{
    struct oct_flow_job *f = context;
    read_settings(f, config, plan);
    enum oct_err e = oct_flow_check("flow", f->n_lines, f->depth, &f->scan, err);
    e = e ? e : find_optics(f, plan, recording, err);
    if (e)
        return e;
    alloc_results(f);
    e = find_layers(f, err);
    e = e ? e : open_engine(f, config, err);
    if (!e && f->given.velocity)
        e = open_velocity(f, err);
    return e ? e : oct_flow_begin_file(f, f->job.out, f->given.job.force, err);
}

/* ---- places ---- */

static void project(struct oct_flow_job *f, const struct oct_flow_found *found, uint32_t place)
{
    const float *position[OCT_N_LAYERS] = {NULL};
    const double um = f->spacing.depth_um > 0 ? f->spacing.depth_um : OCT_TRACE_DEPTH_UM;
    if (f->layers)
        oct_flow_layers_find(f->layers, found->intensity, &f->group.newest, position);
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        if (f->heights[k])
            position[k] = f->heights[k] + (size_t)place * f->n_lines;
    for (unsigned i = 0; i < f->n_slabs; i++)
        for (uint32_t j = 0; j < f->n_lines; j++) {
            const size_t at = (size_t)place * f->n_lines + j, line = (size_t)j * f->depth;
            uint32_t first, end;
            oct_flow_slab_span(&f->slab[i].slab, f->depth, um, position, j, &first, &end);
            if (!found->moved)
                f->slab[i].z[at] = oct_flow_slab_largest(found->projected + line, first, end);
            f->slab[i].structure[at] =
                10 * log10f(oct_flow_slab_mean(found->intensity + line, first, end));
        }
}

static void note_place(struct oct_flow_job *f, const struct oct_flow_found *found, unsigned k)
{
    const uint32_t place = oct_flow_group_place(&f->group, k), repeats = f->scan.repeats;
    struct oct_flow_row *row = &f->rows[place];
    *row = (struct oct_flow_row){
        .place = place,
        .first_bscan = first_bscan_of(f, place),
        .bulk = found->bulk,
        .noise = found->noise,
        .snr_db = found->snr_db,
        .tau_us = 1e6 * oct_flow_group_tau_s(&f->group),
        .time_s = 1e-9 * (double)oct_flow_group_time_ns(&f->group, k),
        .n_pairs = found->n_pairs,
        .moved = found->moved,
    };
    for (unsigned r = 0; r < repeats; r++) {
        const double *shift = found->shift[r];
        double *to = f->shifts + ((size_t)place * repeats + r) * 2;
        to[0] = shift[0];
        to[1] = shift[1];
        row->shift_lines = fabs(shift[0]) > fabs(row->shift_lines) ? shift[0] : row->shift_lines;
        row->shift_depth = fabs(shift[1]) > fabs(row->shift_depth) ? shift[1] : row->shift_depth;
    }
    f->n_found++;
    f->n_moved += found->moved;
    f->n_identical += found->identical;
    f->n_with_pairs += found->n_pairs > 0;
    f->tissue += found->tissue * f->n_lines * f->depth;
}

static void show_place(struct oct_flow_job *f, const struct oct_flow_found *found, uint32_t place)
{
    const size_t n = (size_t)f->n_lines * f->depth;
    for (unsigned i = 0; i < f->n_shown; i++) {
        if (f->shown[i].place != place)
            continue;
        memcpy(f->shown[i].z, found->projected, n * sizeof(float));
        for (size_t k = 0; k < n; k++)
            f->shown[i].db[k] = 10 * log10f(found->intensity[k]);
    }
}

static double per_rad(const struct oct_flow_job *f, double tau_s)
{
    return oct_flow_mm_s_per_rad(&f->optics, tau_s);
}

/* A velocity of the place's figure. */
static void show_velocity(struct oct_flow_job *f, uint32_t place, uint32_t n_rows, double of_rad)
{
    f->ambiguous_mm_s = 3.14159265358979323846 * fabs(of_rad);
    for (unsigned i = 0; i < f->n_shown; i++)
        for (size_t k = 0; f->shown[i].place == place && k < (size_t)n_rows * f->depth; k++)
            f->shown[i].velocity[k] = f->v[k];
}

/* Velocities want them on the host. */
static bool is_on_device(void *context)
{
    const struct oct_flow_job *f = context;
    return !f->velocity && f->ops->running && strcmp(f->ops->running(f->engine), "cuda") == 0;
}

static enum oct_err find_group(struct oct_flow_job *f, struct oct_error *err)
{
    const bool of_bscans = f->velocity && f->velocity_settings.between == OCT_FLOW_BSCANS_OF_PLACE;
    const double of_rad = of_bscans ? per_rad(f, oct_flow_group_tau_s(&f->group)) : 1;
    enum oct_err e = OCT_OK;
    for (unsigned k = 0; k < f->group.n_places && !e; k++) {
        const struct oct_flow_bscan *repeats[OCT_FLOW_MOST_REPEATS];
        const uint32_t place = oct_flow_group_place(&f->group, k);
        struct oct_flow_found found;
        e = f->ops->find(f->engine, k, NULL, &found, err);
        e = e ? e : oct_flow_group_check(&f->group, k, found.n_pairs, err);
        if (e)
            break;
        note_place(f, &found, k);
        project(f, &found, place);
        show_place(f, &found, place);
        oct_flow_put_place(f, &found, place);
        if (!of_bscans)
            continue;
        oct_flow_group_repeats(&f->group, k, repeats);
        e = oct_flow_velocity_bscans(f->velocity, repeats, f->scan.repeats, of_rad, f->v, err);
        show_velocity(f, place, f->n_lines, of_rad);
        oct_flow_put_velocity(f, place);
    }
    oct_flow_group_clear(&f->group);
    f->ops->clear(f->engine);
    e = e ? e : oct_results_error(f->file, err);
    return e;
}

static void find_velocity(struct oct_flow_job *f)
{
    const struct oct_bscan_info *info = &f->group.newest;
    const unsigned k = f->scan.interleave, n = f->scan.repeats * k;
    const double of_rad = per_rad(f, f->line_rate_hz > 0 ? 1 / f->line_rate_hz : 0);
    oct_flow_velocity_lines(f->velocity, &f->group.bscans[info->bscan % n], of_rad, f->v);
    if (info->bscan % n < k)
        show_velocity(f, info->bscan / n * k + info->bscan % k, f->n_lines / f->scan.line_repeats,
                      of_rad);
    oct_flow_put_velocity(f, info->bscan);
}

static enum oct_err take_bscan(void *context, const struct oct_image_frame *bscan,
                               struct oct_error *err)
{
    struct oct_flow_job *f = context;
    enum oct_err e = OCT_OK;
    if (!bscan->complex_values && !(bscan->complex_device && is_on_device(f)))
        return oct_fail(err, OCT_E_BACKEND,
                        "the GPU has failed with B-scans of the recording: try again, or "
                        "pipeline.backend=cpu");
    if (oct_flow_group_is_other(&f->group, &bscan->info))
        e = find_group(f, err);
    if (e)
        return e;
    e = f->ops->put(f->engine, oct_flow_group_put(&f->group, bscan, f->job.workers), bscan, err);
    if (e)
        return e;
    if (f->velocity && f->velocity_settings.between == OCT_FLOW_LINES_OF_BSCAN)
        find_velocity(f);
    return oct_flow_group_is_whole(&f->group) ? find_group(f, err) : OCT_OK;
}

/* ---- what follows from all ---- */

static double median_of(const struct oct_flow_job *f, size_t at)
{
    double *values = oct_alloc(f->n_places, sizeof(*values));
    size_t n = 0;
    for (uint32_t p = 0; p < f->n_places; p++) {
        const double value = *(const double *)(const void *)((const char *)&f->rows[p] + at);
        if (f->rows[p].n_pairs > 0 && isfinite(value))
            values[n++] = value;
    }
    const double median = oct_doubles_median(values, n);
    free(values);
    return median;
}

static void measure_density(struct oct_flow_job *f, struct oct_flow_job_slab *slab)
{
    const size_t n = (size_t)f->n_places * f->n_lines;
    double n_known = 0, n_flow = 0;
    for (size_t i = 0; i < n; i++) {
        n_known += isfinite(slab->z[i]);
        n_flow += slab->z[i] >= (float)f->settings.min_z;
    }
    slab->density = n_known > 0 ? n_flow / n_known : NAN;
}

/* The ETDRS grid about the fovea of the layers' file. */
static void measure_sectors(struct oct_flow_job *f, struct oct_flow_job_slab *slab)
{
    const size_t n = (size_t)f->n_places * f->n_lines;
    float *map = oct_alloc(n, sizeof(*map));
    struct oct_etdrs etdrs;
    double b, j;
    for (unsigned s = 0; s < OCT_ETDRS_N_SECTORS; s++)
        slab->sector[s] = NAN;
    oct_thickness_map(f->heights[OCT_LAYER_ILM], f->heights[OCT_LAYER_RPE], n,
                      f->spacing.depth_um > 0 ? f->spacing.depth_um : 1, map);
    if (f->spacing.bscan_um > 0 && f->spacing.line_um > 0 &&
        oct_thickness_fovea(map, f->n_places, f->n_lines, f->spacing.bscan_um, f->spacing.line_um,
                            &b, &j)) {
        const struct oct_etdrs_setup setup = {.n_bscans = f->n_places,
                                              .n_lines = f->n_lines,
                                              .bscan_um = f->spacing.bscan_um,
                                              .line_um = f->spacing.line_um,
                                              .fovea_b = b,
                                              .fovea_j = j};
        for (size_t i = 0; i < n; i++)
            map[i] = isfinite(slab->z[i]) ? slab->z[i] >= (float)f->settings.min_z : NAN;
        oct_etdrs_measure(&setup, map, &etdrs);
        memcpy(slab->sector, etdrs.mean_um, sizeof(slab->sector));
    }
    free(map);
}

static enum oct_err judge_all(struct oct_flow_job *f, struct oct_error *err)
{
    const char *in = f->job.inputs[0];
    if (f->n_with_pairs == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: no place has two B-scans one after another", in);
    if (f->n_identical >= f->n_with_pairs)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: repeats are identical: the same B-scan was saved %u times", in,
                        f->scan.repeats);
    if (f->tissue < LEAST_TISSUE)
        return oct_fail(err, OCT_E_FORMAT, "%s: no tissue: nothing is brighter than the noise%s",
                        in, f->given.noise > 0 ? " of --noise" : "");
    f->bulk = median_of(f, offsetof(struct oct_flow_row, bulk));
    f->snr_db = median_of(f, offsetof(struct oct_flow_row, snr_db));
    f->tau_us = median_of(f, offsetof(struct oct_flow_row, tau_us));
    for (unsigned i = 0; i < f->n_slabs; i++) {
        measure_density(f, &f->slab[i]);
        if (f->heights[0] && f->heights[1])
            measure_sectors(f, &f->slab[i]);
    }
    return OCT_OK;
}

static void finish_parts(struct oct_flow_job *f)
{
    oct_flow_group_finish(&f->group);
    if (f->ops)
        f->ops->destroy(f->engine);
    oct_flow_velocity_destroy(f->velocity);
    oct_flow_layers_destroy(f->layers);
    f->ops = NULL;
    f->velocity = NULL;
    f->layers = NULL;
}

/* Writes OUT.h5 while B-scans come. */
static enum oct_err write_h5(void *job, const char *path, bool force, struct oct_error *err)
{
    struct oct_flow_job *f = job;
    const struct oct_recon_sink sink = {
        .context = f, .begin = begin, .bscan = take_bscan, .is_on_device = is_on_device};
    const struct oct_recon_job run = {.in = f->job.inputs[0],
                                      .sink = &sink,
                                      .progress = oct_progress_show,
                                      .progress_context = &f->job.progress,
                                      .cancel = f->job.cancel};
    struct oct_recon *recon = oct_recon_create(f->job.workers);
    struct oct_recon_result result;
    f->job.out = path; /* as `begin` makes it */
    f->given.job.force = force;
    enum oct_err e = oct_recon_run(recon, f->job.config, &run, &result, err);
    if (!e && f->group.n > 0)
        e = find_group(f, err);
    e = e ? e : judge_all(f, err);
    if (!e)
        oct_flow_end_file(f);
    else
        oct_results_discard(f->file);
    e = e ? e : oct_results_publish(f->file, err);
    oct_progress_clear(&f->job.progress);
    oct_recon_destroy(recon);
    finish_parts(f);
    return e;
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct oct_flow_job *f = job;
    const char *png = f->given.png;
    (void)err;
    oct_job_add(&f->job, f->job.out, write_h5, f);
    oct_job_add(&f->job, f->given.csv, oct_flow_write_csv, f);
    oct_job_add(&f->job, png, oct_flow_draw_slabs, f);
    if (png)
        oct_job_add(&f->job, oct_job_beside(png, ".png", "bscans"), oct_flow_draw_bscans, f);
    if (png && f->given.velocity)
        oct_job_add(&f->job, oct_job_beside(png, ".png", "velocity"), oct_flow_draw_velocity, f);
    return OCT_OK;
}

static enum oct_err work(void *job, struct oct_error *err)
{
    struct oct_flow_job *f = job;
    const char *out = f->job.out;
    const enum oct_err e = oct_outputs_write_one(f->job.outputs, 0, err);
    f->job.out = out;
    return e;
}

static void warn(const void *job)
{
    const struct oct_flow_job *f = job;
    if (f->given.velocity && isnan(f->optics.rad_um))
        fprintf(stderr,
                "octctl flow: no wavelengths are known, nor scan.lambda_nm: velocities are rad a "
                "pair\n");
    else if (f->given.velocity && !f->optics.is_sign_known)
        fprintf(stderr,
                "octctl flow: a k map does not say whether wavelengths rise: taken as %s "
                "(--wavelengths)\n",
                f->settings.wavelengths == OCT_FLOW_FALLING ? "falling" : "rising");
    if (f->n_found < f->n_places)
        fprintf(stderr, "octctl flow: %" PRIu64 " of %u places have no B-scan and stay empty\n",
                f->n_places - f->n_found, f->n_places);
}

#define AT(member) .at = offsetof(struct oct_flow_options, member)
static const struct oct_option options[] = {
    {"--repeats", "R", "B-scans at one place, instead of scan.repeats", OCT_OPTION_COUNT,
     AT(repeats), .least = 2, .most = OCT_FLOW_MOST_REPEATS},
    {"--interleave", "K", "places in turn, instead of scan.interleave", OCT_OPTION_COUNT,
     AT(interleave), .least = 1, .most = 1048576},
    {.kind = OCT_OPTION_PARAMS, .params = &oct_flow_params, AT(params)},
    {"--noise", "COUNTS2", "mean |B|^2 without light from the sample (found in the recording)",
     OCT_OPTION_NUMBER, AT(noise), .least = OCT_OPTION_ABOVE_0, .most = 1e12},
    {"--slab", "A:B",
     "angiogram of these depths, as ilm:ilm+80, superficial, deep, avascular,\n"
     "choriocapillaris or pixels 120:180 (all depths); repeatable",
     OCT_OPTION_LIST, AT(slabs)},
    {"--layers", "FILE", "the layers that octctl surfaces found, instead of those of each place",
     OCT_OPTION_TEXT, AT(layers)},
    {"--velocity", NULL, "speed along the beam, too (velocity.between, velocity.min_coherence)",
     OCT_OPTION_FLAG, AT(velocity)},
    {"--sample", "f32|u8", "of d and z; u8: 0..1 and 0..25.5 (f32)", OCT_OPTION_TEXT, AT(sample),
     .words = "f32 u8"},
    {"--csv", "FILE", "a row a place", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE",
     "angiograms beside the structure, FILE-bscans.png, and with --velocity\n"
     "FILE-velocity.png",
     OCT_OPTION_TEXT, AT(png)},
    OCT_JOB_JSON(struct oct_flow_options, job),
    OCT_JOB_FORCE(struct oct_flow_options, job),
    {NULL},
};

static const struct oct_job_ops flow_job = {
    .command = &oct_command_flow,
    .bytes = sizeof(struct oct_flow_job),
    .values = offsetof(struct oct_flow_job, given),
    .options = offsetof(struct oct_flow_job, given.job),
    .takes_names = true,
    .progress = "B-scans",
    .init = init_options,
    .read = read_options,
    .list = list_files,
    .work = work,
    .warn = warn,
    .print = oct_flow_print,
    .json = oct_flow_json,
};

static int run(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&flow_job, config, argc, argv);
}

const struct oct_command oct_command_flow = {
    .name = "flow",
    .usage = "IN OUT.h5",
    .keys = "flow.method flow.window_um flow.min_z flow.projection flow.slab flow.max_bulk "
            "flow.wavelengths velocity.between velocity.min_coherence",
    .help = "finds what moves between the B-scans of a place: blood",
    .options = options,
    .n_least = 2,
    .n_most = 2,
    .too_few = "which recording, and which OUT.h5?",
    .run = run,
};
