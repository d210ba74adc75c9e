/* A volume from above: a value an A-line, a row a B-scan, of a slab of the depth; of scans that are
 * no rows gridded (analysis/enface/gridded.h). */
#include "analysis/enface/enface.h"
#include "analysis/enface/gridded.h"
#include "tools/alloc.h"
#include "tools/files/export_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct slab {
    uint32_t first, n;
    bool is_max;
};

/* The slab that was asked for, else what the configuration says of analysis.enface_*. */
static enum oct_err choose_slab(struct slab *slab, const struct oct_export_input *in,
                                const struct oct_export_wish *wish, double depth_um,
                                struct oct_error *err)
{
    const struct oct_enface_settings *s = oct_config_settings(in->config, "enface");
    const uint32_t depth = in->facts->depth;
    *slab = (struct slab){.n = depth};
    if (wish->has_slab) {
        uint32_t last = 0;
        const enum oct_err e =
            oct_depths_find(&wish->slab, in->path, depth, depth_um, &slab->first, &last, err);
        slab->n = last - slab->first;
        return e;
    }
    if (s->projection == OCT_PROJECTION_SLAB) {
        oct_enface_slab(s->slab_first, s->slab_last, depth, &slab->first, &slab->n);
    } else {
        slab->is_max = s->projection == OCT_PROJECTION_MAX;
    }
    return OCT_OK;
}

/* held: [V][M], one pass over the B-scans. */
static enum oct_err project(float *held, const struct oct_export_source *bscans,
                            const struct slab *slab, const struct oct_export_options *work,
                            struct oct_error *err)
{
    const uint32_t n_bscans = bscans->form.dims[0], n_lines = bscans->form.dims[1],
                   depth = bscans->form.dims[2];
    enum oct_err e = OCT_OK;
    float *plane = oct_alloc((size_t)n_lines * depth, sizeof(*plane));
    for (uint32_t v = 0; v < n_bscans && !e; v++) {
        if (work->cancel && *work->cancel)
            e = oct_fail(err, OCT_E_CLOSED, "interrupted: nothing is left behind");
        e = e ? e : bscans->read(bscans->context, v, plane, err);
        for (uint32_t j = 0; j < n_lines && !e; j++) {
            const struct oct_enface_line line =
                oct_enface_line(plane + (size_t)j * depth + slab->first, slab->n);
            held[(size_t)v * n_lines + j] = (float)(slab->is_max ? line.most : line.mean);
        }
        if (work->progress)
            work->progress(work->progress_context, v + 1u, n_bscans);
    }
    free(plane);
    return e;
}

static enum oct_err read_held(void *context, uint32_t plane, void *pixels, struct oct_error *err)
{
    const struct oct_export_values *values = context;
    (void)plane;
    (void)err;
    memcpy(pixels, values->held,
           (size_t)values->form.dims[1] * values->form.dims[2] * sizeof(float));
    return OCT_OK;
}

static enum oct_err make_values(struct oct_export_values *values,
                                const struct oct_export_source *bscans, const struct slab *slab,
                                double depth_um, const struct oct_export_wish *wish,
                                struct oct_error *err)
{
    const struct oct_export_form *b = &bscans->form;
    *values = (struct oct_export_values){
        .what = "B-scans",
        .context = values,
        .read = read_held,
        .is_rows = true,
        .valid = oct_alloc(b->dims[0], 1),
        .held = oct_alloc((size_t)b->dims[0] * b->dims[1], sizeof(float))};
    memcpy(values->valid, b->plane_valid, b->dims[0]);
    values->form = (struct oct_export_form){.dims = {1, b->dims[0], b->dims[1]},
                                            .axes = {"slab", "bscan", "line"},
                                            .um = {slab->n * depth_um, b->um[0], b->um[1]},
                                            .is_upright = true,
                                            .sample = OCT_EXPORT_F32,
                                            .name = "enface",
                                            .quantity = b->quantity,
                                            .unit = b->unit,
                                            .plane_s = NAN};
    return project(values->held, bscans, slab, wish->work, err);
}

/* held: [V'][M], of the B-scans of span; returns rows of the grid, of which those that were not
 * exported are NaN. */
static float *rows_of_grid(const struct oct_image_form *form, const struct oct_span *span,
                           uint32_t n_bscans, const float *held)
{
    const uint32_t step = oct_enface_row_step(n_bscans, form->dims[1]), n_lines = form->dims[1];
    float *rows = oct_alloc((size_t)form->dims[0] * n_lines, sizeof(*rows));
    for (uint32_t r = 0; r < form->dims[0]; r++) {
        const uint32_t v = (r + 1) * step < n_bscans ? (r + 1) * step - 1 : n_bscans - 1;
        const bool is_there =
            v >= span->first && v < span->last && (v - span->first) % span->step == 0;
        for (uint32_t j = 0; j < n_lines; j++)
            rows[(size_t)r * n_lines + j] =
                is_there ? held[(size_t)((v - span->first) / span->step) * n_lines + j] : NAN;
    }
    return rows;
}

static enum oct_err grid(struct oct_export_values *values, const struct oct_export_input *in,
                         const struct oct_span *span, struct oct_error *err)
{
    const uint32_t n = in->facts->n_bscans, n_lines = in->facts->n_lines;
    const uint32_t step = oct_enface_row_step(n, n_lines);
    const struct oct_image_form form = {.of_volume = true,
                                        .type = OCT_SAMPLE_F32,
                                        .rank = 2,
                                        .dims = {(n + step - 1) / step, n_lines},
                                        .axes = {"bscan", "line"}};
    struct oct_grid *grid;
    double pitch_um;
    uint32_t height, width;
    if (!oct_gridded_is_wanted(&in->scan, &form))
        return OCT_OK;
    const enum oct_err e = oct_grid_create(&grid, &in->scan, n, &form, err);
    if (e)
        return e;
    oct_grid_size(grid, &height, &width, &pitch_um);
    float *rows = rows_of_grid(&form, span, n, values->held);
    free(values->held);
    values->held = oct_alloc((size_t)height * width, sizeof(float));
    oct_grid_apply(grid, rows, values->held);
    free(rows);
    oct_grid_destroy(grid);
    free(values->valid);
    values->valid = NULL;
    values->is_rows = false;
    values->what = "planes";
    memcpy(values->form.dims, (uint32_t[]){1, height, width}, sizeof(values->form.dims));
    memcpy(values->form.um + 1, (double[]){pitch_um, pitch_um}, 2 * sizeof(double));
    values->form.axes[1] = "y";
    values->form.axes[2] = "x";
    return OCT_OK;
}

enum oct_err oct_export_values_enface(struct oct_export_values *values, struct oct_export_input *in,
                                      const struct oct_export_wish *wish, struct oct_error *err)
{
    struct oct_export_wish all = *wish;
    struct oct_export_open *open;
    struct oct_export_source bscans;
    struct slab slab;
    *values = (struct oct_export_values){0};
    all.dataset = "bscans";
    all.has_sample = true;
    all.sample = OCT_EXPORT_F32;
    all.has_range = all.u8_only = all.no_f32 = all.needs_um = false;
    enum oct_err e = oct_export_source_open(&open, &bscans, in->path, &all, err);
    if (e)
        return e;
    const double depth_um = isnan(wish->um[2]) ? bscans.form.um[2] : wish->um[2];
    e = choose_slab(&slab, in, wish, depth_um, err);
    e = e ? e : make_values(values, &bscans, &slab, depth_um, wish, err);
    const struct oct_span span = oct_span_of(wish->frames, in->facts->n_bscans);
    e = e ? e : grid(values, in, &span, err);
    oct_export_source_close(open);
    return e;
}
