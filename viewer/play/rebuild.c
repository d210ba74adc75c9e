#include "viewer/play/rebuild.h"

#include "config/apply.h"
#include "formats/recording_plan.h"
#include "kernels/recon/tables.h"
#include "pipeline/flow/running_dc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLLECT_US 1000000u
/* Beside a daemon that needs the cores. */
#define N_THREADS 2u

struct oct_play_rebuild {
    struct oct_config config; /* the effective one */
    struct oct_recording *recording;
    struct oct_plan *plan;
    struct oct_engine *engine;
    struct oct_display display;
    struct oct_raw_frame frame; /* its arrays are owned */
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
};

static enum oct_err make_engine(struct oct_play_rebuild *r, struct oct_error *err)
{
    struct oct_engine_options options;

    oct_config_engine_options(&r->config, &options, r->wisdom_dir, sizeof(r->wisdom_dir));
    options.n_threads = N_THREADS;
    options.simd = "auto"; /* of this CPU: the file says what the CPU that recorded has */
    oct_config_display(&r->config, &r->display);
    return oct_engine_cpu.create(&r->engine, r->plan, &options, err);
}

static enum oct_err prepare(struct oct_play_rebuild *r, const char *path, struct oct_error *err)
{
    enum oct_err e = oct_config_set_assignment(&r->config, "output.sample=f32", err);

    if (e == OCT_OK)
        e = oct_recording_open(&r->recording, path, &r->config, err);
    if (e == OCT_OK)
        e = oct_recording_plan(&r->plan, &r->config, r->recording, err);
    if (e == OCT_OK)
        e = make_engine(r, err);
    if (e)
        return e;
    const struct oct_geometry *g = &r->plan->geometry;
    r->frame.spectra = malloc(oct_geometry_spectra_bytes(g));
    r->frame.line_valid = malloc(g->n_lines);
    return r->frame.spectra && r->frame.line_valid
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

enum oct_err oct_play_rebuild_open(struct oct_play_rebuild **rebuild, const char *path,
                                   const struct oct_config *config, struct oct_view_file *file,
                                   struct oct_error *err)
{
    struct oct_play_rebuild *r = calloc(1, sizeof(*r));
    struct oct_error why = {.text = ""};

    *rebuild = NULL;
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->name);
    if (config)
        r->config = *config;
    else
        oct_config_init(&r->config);
    if (prepare(r, path, &why)) {
        oct_play_rebuild_close(r);
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: it holds spectra alone, and they make no pictures: %s; octview --config "
            "gives what a recording lacks",
            file->name, why.text);
    }
    const struct oct_config *c = &r->config;
    const struct oct_input_facts *input = oct_recording_input(r->recording);
    if (input) {
        file->n_bscans = file->n_valid = (uint32_t)oct_recording_n_bscans(r->recording);
        file->n_lines = oct_recording_n_lines(r->recording);
        file->rate_hz = input->line_rate_hz > 0 ? input->line_rate_hz / file->n_lines : 0;
        snprintf(file->eye, sizeof(file->eye), "%s", input->eye);
        snprintf(file->start_time, sizeof(file->start_time), "%s", input->start_time);
    }
    const struct oct_spacing spacing = oct_spacing_of_field(
        r->plan, c->scan.width_um, c->scan.height_um, file->n_bscans, c->scan.refractive_index);
    file->depth = r->plan->geometry.depth;
    file->log = c->pipeline.log;
    file->axial_um = spacing.depth_um;
    file->lateral_um = isfinite(file->lateral_um) ? file->lateral_um : spacing.line_um;
    file->slow_um = isfinite(file->slow_um) ? file->slow_um : spacing.bscan_um;
    *rebuild = r;
    return OCT_OK;
}

void oct_play_rebuild_close(struct oct_play_rebuild *r)
{
    if (!r)
        return;
    oct_engine_cpu.destroy(r->engine);
    oct_plan_destroy(r->plan);
    oct_recording_close(r->recording);
    free(r->frame.spectra);
    free(r->frame.line_valid);
    free(r);
}

enum oct_err oct_play_rebuild_read(struct oct_play_rebuild *r, uint32_t v, float *pixels,
                                   struct oct_picture_header *header, struct oct_error *err)
{
    struct oct_image_frame out = {.pixels = pixels}, *done = NULL;
    float *dc = NULL;
    bool valid = false;
    enum oct_err e = oct_recording_read(r->recording, v, &r->frame, &valid, err);

    if (e == OCT_OK)
        e = oct_running_dc_alone(&dc, r->plan, &r->frame, err);
    if (e)
        return e;
    const struct oct_engine_job job = {
        .in = &r->frame, .out = &out, .display = r->display, .dc = dc};
    e = oct_engine_cpu.submit(r->engine, &job, 1);
    while (!e && (e = oct_engine_cpu.collect(r->engine, COLLECT_US, &done)) == OCT_E_AGAIN)
        e = OCT_OK;
    free(dc);
    e = e ? e : out.status;
    header->lo = out.lo;
    header->hi = out.hi;
    header->missing_lines = r->frame.info.missing_lines;
    return e ? oct_fail(err, e, "the engine lost B-scan %u", v + 1) : OCT_OK;
}
