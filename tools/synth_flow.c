#include "tools/synth_flow.h"

#include "config/analysis.h"
#include "config/apply.h"
#include "pipeline/plan/plan.h"
#include "pipeline/volume/volume.h"
#include "synth/calibration_folder.h"
#include "synth/truth_file.h"
#include "tools/commands.h"
#include "tools/synth_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_TIME "2000-01-01T00:00:00.000Z" /* same seed, same bytes */
#define LINE_UM 3.9 /* where scan.width_um and scan.height_um are not given */
#define PLACE_UM 10.0

struct work {
    struct oct_config *config;
    const char *out;
    uint64_t seed;
    struct oct_geometry geometry;
    struct oct_flow_phantom *phantom;
    struct oct_plan *plan;
    char *config_text;
    uint16_t *spectra; /* [M][N] */
    uint8_t *line_valid;
    uint64_t n_clipped;
};

void oct_synth_flow_init(struct oct_synth_flow *flow)
{
    *flow = (struct oct_synth_flow){.n_vessels = 8, .snr_db = 10};
}

/* ---- before the file ---- */

static enum oct_err make_plan(struct work *w, struct oct_error *err)
{
    const struct oct_spectrometer *s = oct_flow_phantom_truth(w->phantom)->spectrometer;
    const struct oct_calibration cal = {.wavelengths_nm = s->wavelengths_nm,
                                        .n_wavelengths = w->geometry.n_samples};
    const struct oct_chain chain = {.dc = OCT_DC_NONE};
    return oct_plan_create(&w->plan, &w->geometry, &cal, &chain, err);
}

static enum oct_err prepare(struct work *w, const struct oct_synth_flow *flow,
                            enum oct_eye_motion motion, unsigned n_blinks, struct oct_error *err)
{
    struct oct_config *c = w->config;
    const struct oct_scan_protocol scan = oct_config_scan(c);
    enum oct_err e = oct_config_geometry(c, &w->geometry, err);
    const uint32_t n_places = w->geometry.n_bscans / scan.repeats;
    if (e)
        return e;
    c->camera.bits = c->camera.bits < 12 ? c->camera.bits : 12;
    c->scan.width_um = c->scan.width_um > 0 ? c->scan.width_um : LINE_UM * w->geometry.n_lines;
    c->scan.height_um = c->scan.height_um > 0 ? c->scan.height_um : PLACE_UM * n_places;
    c->calibration.dispersion_a2 = c->calibration.dispersion_a3 = 0;
    const struct oct_flow_phantom_setup setup = {
        .n_samples = w->geometry.n_samples,
        .n_lines = w->geometry.n_lines,
        .n_bscans = w->geometry.n_bscans,
        .bits = c->camera.bits,
        .repeats = scan.repeats,
        .interleave = scan.interleave,
        .line_um = c->scan.width_um / w->geometry.n_lines,
        .place_um = c->scan.height_um / n_places,
        .line_rate_hz = c->scan.line_rate_hz,
        .refractive_index = c->scan.refractive_index,
        .snr_db = flow->snr_db,
        .n_vessels = (unsigned)flow->n_vessels,
        .motion = motion == OCT_EYE_NONE || motion == OCT_EYE_BSCANS ? OCT_FLOW_STILL
                  : motion == OCT_EYE_FIXATION                       ? OCT_FLOW_FIXATION
                                                                     : OCT_FLOW_STRONG,
        .n_bursts = (unsigned)flow->n_bursts,
        .n_blinks = n_blinks,
        .tail_rad = flow->tail_rad,
        .seed = w->seed,
        .n_threads = c->pipeline.threads,
    };
    e = oct_flow_phantom_create(&w->phantom, &setup, err);
    e = e ? e : make_plan(w, err);
    if (e)
        return e;
    w->spectra = malloc(oct_geometry_spectra_bytes(&w->geometry));
    w->line_valid = malloc(w->geometry.n_lines);
    w->config_text = oct_config_text(c);
    if (!w->spectra || !w->line_valid || !w->config_text)
        return oct_fail(err, OCT_E_NO_MEMORY, "no memory for a B-scan");
    memset(w->line_valid, 1, w->geometry.n_lines);
    return OCT_OK;
}

/* ---- the file ---- */

static enum oct_err write_samples(struct work *w, const char *path, struct oct_error *err)
{
    const size_t n = (size_t)w->geometry.n_lines * w->geometry.n_samples;
    int fd;
    enum oct_err e = oct_synth_samples_open(&fd, path, err);
    if (e)
        return e;
    for (uint32_t b = 0; b < w->geometry.n_bscans && !e; b++) {
        w->n_clipped += oct_flow_phantom_render(w->phantom, b, w->spectra);
        e = oct_synth_samples_write(fd, path, w->spectra, n, err);
    }
    if (close(fd) && !e)
        e = oct_fail(err, OCT_E_IO, "%s: cannot be written", path);
    return e;
}

static enum oct_err write_bscans(struct work *w, struct oct_volume_writer *writer,
                                 struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (uint32_t b = 0; b < w->geometry.n_bscans && !e; b++) {
        const struct oct_raw_frame frame = {
            .info = {.id = b,
                     .number = b,
                     .bscan = b,
                     .sequence = b,
                     .time_ns = (uint64_t)(1e9 * oct_flow_phantom_time(w->phantom, b, 0))},
            .spectra = w->spectra,
            .line_valid = w->line_valid};
        w->n_clipped += oct_flow_phantom_render(w->phantom, b, w->spectra);
        e = oct_volume_write_spectra(writer, &frame, err);
        e = e ? e : oct_volume_write_row(writer, &frame.info, err);
    }
    return e;
}

static enum oct_err write_volume(struct work *w, const char *path, struct oct_error *err)
{
    char engine[64];
    const struct oct_volume_about about = {
        .config_text = w->config_text,
        .scan = oct_config_scan(w->config),
        .start_time = START_TIME,
        .eye = w->config->record.eye,
        .pseudonym = w->config->record.pseudonym,
        .engine = engine,
        .width_um = w->config->scan.width_um,
        .height_um = w->config->scan.height_um,
        .refractive_index = w->config->scan.refractive_index,
    };
    struct oct_volume_writer *writer = NULL;
    snprintf(engine, sizeof(engine), "synthetic vessels, seed %" PRIu64, w->seed);
    enum oct_err e = oct_volume_create(&writer, path, w->plan, &about, true, false, err);
    if (e)
        return e;
    e = write_bscans(w, writer, err);
    const enum oct_err closed = oct_volume_close(writer, e ? NULL : err);
    return e ? e : closed;
}

static enum oct_err add_truth(const struct work *w, const char *path, struct oct_error *err)
{
    const struct oct_geometry *g = &w->geometry;
    return oct_truth_file_add_flow(path, w->phantom, g->n_bscans, g->n_lines, g->crop_first,
                                   g->depth, err);
}

/* truth: of plain samples; of a volume NULL. */
static enum oct_err write_file(struct work *w, const char *path, const char *truth,
                               struct oct_error *err)
{
    enum oct_err e = truth ? write_samples(w, path, err) : write_volume(w, path, err);
    if (!e && truth)
        e = oct_truth_file_create(truth, err);
    return e ? e : add_truth(w, truth ? truth : path, err);
}

static enum oct_err make_file(struct work *w, bool raw, struct oct_error *err)
{
    char temporary[PATH_MAX], truth[PATH_MAX], truth_temporary[PATH_MAX];
    enum oct_err e = oct_synth_claim(w->out, temporary, err);
    if (!e && raw)
        e = oct_synth_join(truth, w->out, ".truth.h5", err);
    if (!e && raw)
        e = oct_synth_claim(truth, truth_temporary, err);
    if (e)
        return e;
    e = write_file(w, temporary, raw ? truth_temporary : NULL, err);
    if (!e && raw)
        e = oct_synth_publish(truth_temporary, truth, err);
    e = e ? e : oct_synth_publish(temporary, w->out, err);
    if (e) {
        oct_synth_discard(temporary);
        if (raw)
            oct_synth_discard(truth_temporary);
        return e;
    }
    printf("%s: %u vessels, %u B-scans of %u x %u samples, with %s\n", w->out,
           oct_flow_phantom_truth(w->phantom)->n_vessels, w->geometry.n_bscans, w->geometry.n_lines,
           w->geometry.n_samples, raw ? truth : "/truth");
    if (w->n_clipped)
        printf("%" PRIu64 " samples are saturated\n", w->n_clipped);
    return OCT_OK;
}

int oct_synth_flow_make(const struct oct_synth_flow *flow, struct oct_config *config,
                        const char *out, bool raw, const char *calibration,
                        enum oct_eye_motion motion, unsigned n_blinks, uint64_t seed)
{
    struct work w = {.config = config, .out = out, .seed = seed};
    struct oct_error err = {0};
    enum oct_err e = prepare(&w, flow, motion, n_blinks, &err);
    if (!e && calibration) {
        e = oct_calibration_folder_write_spectrometer(
            calibration, oct_flow_phantom_truth(w.phantom)->spectrometer, &err);
        if (!e)
            printf("%s/%s: the true configuration, beside it k map and wavelengths\n", calibration,
                   OCT_CALIBRATION_INI);
    }
    e = e ? e : make_file(&w, raw, &err);
    oct_plan_destroy(w.plan);
    oct_flow_phantom_destroy(w.phantom);
    free(w.spectra);
    free(w.line_valid);
    free(w.config_text);
    return e ? oct_command_fail("synth", &err) : 0;
}
