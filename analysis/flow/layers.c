/* The layers of a place, by its mean intensity. */
#include "analysis/flow/flow.h"
#include "analysis/layers/find/sequence.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_UM 100.0 /* as surfaces.least_um, most_um and min_quality are shipped */
#define MOST_UM 600.0

struct oct_flow_layers {
    struct oct_layer_sequence *sequence;
    struct oct_image_form form;
    float *db; /* [M][D] */
};

enum oct_err oct_flow_layers_create(struct oct_flow_layers **layers, uint32_t n_lines,
                                    uint32_t depth, const struct oct_spacing *spacing,
                                    struct oct_error *err)
{
    struct oct_flow_layers *l = calloc(1, sizeof(*l));
    *layers = NULL;
    if (l) {
        l->form = (struct oct_image_form){.name = "bscan",
                                          .quantity = OCT_QUANTITY_INTENSITY_DB,
                                          .type = OCT_SAMPLE_F32,
                                          .rank = 2,
                                          .dims = {n_lines, depth},
                                          .spacing_um = {spacing->line_um, spacing->depth_um},
                                          .axes = {"line", "depth"}};
        l->db = malloc((size_t)n_lines * depth * sizeof(*l->db));
    }
    const struct oct_layer_sequence_setup setup = {.input = l ? &l->form : NULL,
                                                   .spacing = *spacing,
                                                   .least_um = LEAST_UM,
                                                   .most_um = MOST_UM,
                                                   .min_quality = OCT_TRACE_MIN_QUALITY};
    const enum oct_err e = l && l->db ? oct_layer_sequence_create(&l->sequence, &setup, err)
                                      : oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    if (e)
        oct_flow_layers_destroy(l);
    else
        *layers = l;
    return e;
}

void oct_flow_layers_destroy(struct oct_flow_layers *l)
{
    if (!l)
        return;
    oct_layer_sequence_destroy(l->sequence);
    free(l->db);
    free(l);
}

void oct_flow_layers_find(struct oct_flow_layers *l, const float *intensity,
                          const struct oct_bscan_info *info, const float *position[OCT_N_LAYERS])
{
    const size_t n = (size_t)l->form.dims[0] * l->form.dims[1];
    for (size_t i = 0; i < n; i++)
        l->db[i] = intensity[i] > 0 ? 10 * log10f(intensity[i]) : NAN;
    const struct oct_image_frame bscan = {.info = *info,
                                          .form = &l->form,
                                          .dims = {l->form.dims[0], l->form.dims[1]},
                                          .pixels = l->db,
                                          .lo = 0,
                                          .hi = 1};
    const struct oct_sequence_layers *found = oct_layer_sequence_run(l->sequence, &bscan);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++)
        position[i] = found->position[i];
}

/* ---- two of them, of a B-scan ---- */

enum oct_err oct_flow_check_spans(const struct oct_flow_slab *upper,
                                  const struct oct_flow_slab *lower, uint32_t depth,
                                  struct oct_error *err)
{
    const struct oct_flow_slab *slabs[2] = {upper, lower};
    for (unsigned i = 0; i < 2; i++) {
        if (slabs[i]->kind == OCT_FLOW_SLAB_WHOLE)
            return oct_fail(err, OCT_E_CONFIG,
                            "trace: trace.upper and trace.lower must name two layers, as 120:140 "
                            "and 300:320 (pixels) or ilm:ilm+20 and rpe-10:rpe+10");
        if (oct_flow_slab_check(slabs[i], i ? "trace: lower" : "trace: upper", depth, err))
            return OCT_E_CONFIG;
    }
    return OCT_OK;
}

/* The layers of its own intensity. */
static enum oct_err find_of_bscan(struct oct_flow_layers *l, const struct oct_image_frame *bscan,
                                  const float *position[OCT_N_LAYERS], struct oct_error *err)
{
    const size_t n = (size_t)l->form.dims[0] * l->form.dims[1];
    const float *z = bscan->complex_values;
    float *intensity = malloc(n * sizeof(*intensity));
    if (!intensity)
        return oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    for (size_t i = 0; i < n; i++)
        intensity[i] = z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1];
    oct_flow_layers_find(l, intensity, &bscan->info, position);
    free(intensity);
    return OCT_OK;
}

enum oct_err oct_flow_find_spans(const struct oct_flow_slab *upper,
                                 const struct oct_flow_slab *lower,
                                 const struct oct_spacing *spacing,
                                 const struct oct_image_frame *bscan, struct oct_flow_span *spans,
                                 struct oct_error *err)
{
    const uint32_t m = bscan->form->dims[0], depth = bscan->form->dims[1];
    const double um = spacing->depth_um > 0 ? spacing->depth_um : OCT_TRACE_DEPTH_UM;
    const float *position[OCT_N_LAYERS] = {NULL};
    struct oct_flow_layers *layers = NULL;
    enum oct_err e = OCT_OK;
    if (upper->kind == OCT_FLOW_SLAB_LAYERS || lower->kind == OCT_FLOW_SLAB_LAYERS)
        e = oct_flow_layers_create(&layers, m, depth, spacing, err);
    if (layers)
        e = find_of_bscan(layers, bscan, position, err);
    for (uint32_t i = 0; i < 2 * m && !e; i++) {
        uint32_t first, end;
        oct_flow_slab_span(i < m ? upper : lower, depth, um, position, i % m, &first, &end);
        spans[i] = (struct oct_flow_span){(int32_t)first, (int32_t)end};
    }
    oct_flow_layers_destroy(layers);
    return e;
}
