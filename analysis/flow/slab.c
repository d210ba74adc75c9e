#include "analysis/flow/slab.h"

#include "analysis/flow/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

/* "120:180" */
static bool read_pixels(const char *text, uint32_t pixels[2])
{
    unsigned long value[2];
    for (int i = 0; i < 2; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        value[i] = strtoul(text, &end, 10);
        if (*end != (i ? '\0' : ':') || value[i] > UINT32_MAX - 1)
            return false;
        text = end + 1;
    }
    pixels[0] = (uint32_t)value[0];
    pixels[1] = (uint32_t)value[1];
    return value[0] < value[1];
}

enum oct_err oct_flow_slab_parse(struct oct_flow_slab *slab, const char *text,
                                 struct oct_error *err)
{
    struct oct_flow_slab read;
    memset(&read, 0, sizeof(read)); /* equal ones are equal in all bytes */
    read.layers.is_none = true;
    snprintf(read.name, sizeof(read.name), "%s", text);
    if (read_pixels(text, read.pixels)) {
        read.kind = OCT_FLOW_SLAB_PIXELS;
    } else if (*text) {
        struct oct_slab of_layers;
        struct oct_error why;
        if (*text >= '0' && *text <= '9')
            return oct_fail(err, OCT_E_ARG,
                            "%.40s: no slab: pixels A:B are two whole numbers, A below B, at most "
                            "the depth of an A-line, as 120:180",
                            text);
        if (strlen(text) >= sizeof(read.name))
            return oct_fail(err, OCT_E_ARG, "%.40s..: no slab: %zu characters at most", text,
                            sizeof(read.name) - 1);
        if (oct_slab_parse(&of_layers, text, &why))
            return oct_fail(err, OCT_E_ARG, "%s; or pixels A:B, as 120:180", why.text);
        read.kind = OCT_FLOW_SLAB_LAYERS;
        read.layers.first.layer = of_layers.first.layer;
        read.layers.first.offset_um = of_layers.first.offset_um;
        read.layers.last.layer = of_layers.last.layer;
        read.layers.last.offset_um = of_layers.last.offset_um;
        read.layers.is_none = false;
    }
    *slab = read;
    return OCT_OK;
}

enum oct_err oct_flow_slab_check(const struct oct_flow_slab *slab, const char *what, uint32_t depth,
                                 struct oct_error *err)
{
    if (slab->kind != OCT_FLOW_SLAB_PIXELS || slab->pixels[1] <= depth)
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG, "%s %s: an A-line has pixels 0:%u", what, slab->name, depth);
}

static bool parse_form(const struct oct_param *param, const char *text, void *value, char *why,
                       size_t why_bytes)
{
    struct oct_error err;
    (void)param;
    if (oct_flow_slab_parse(value, text, &err) == OCT_OK)
        return true;
    snprintf(why, why_bytes, "%s", err.text);
    return false;
}

static void format_form(const void *value, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s", ((const struct oct_flow_slab *)value)->name);
}

const struct oct_param_form oct_param_flow_slab = {parse_form, format_form};

void oct_flow_slab_text(const struct oct_flow_slab *slab, char *text, unsigned text_bytes)
{
    if (slab->kind == OCT_FLOW_SLAB_LAYERS)
        oct_slab_text(&slab->layers, text, text_bytes);
    else
        snprintf(text, text_bytes, "%s", slab->name);
}

/* ---- depths ---- */

static double place(const struct oct_slab_bound *bound, double depth_um, uint32_t j,
                    const float *const position[OCT_N_LAYERS])
{
    const float *layer = position[bound->layer];
    return layer ? (double)layer[j] + bound->offset_um / depth_um : NAN;
}

void oct_flow_slab_span(const struct oct_flow_slab *slab, uint32_t depth, double depth_um,
                        const float *const position[OCT_N_LAYERS], uint32_t j, uint32_t *first,
                        uint32_t *end)
{
    double from = 0, to = depth;
    if (slab->kind == OCT_FLOW_SLAB_PIXELS) {
        from = slab->pixels[0];
        to = slab->pixels[1];
    } else if (slab->kind == OCT_FLOW_SLAB_LAYERS) {
        from = place(&slab->layers.first, depth_um, j, position);
        to = place(&slab->layers.last, depth_um, j, position);
    }
    *first = *end = 0;
    if (!(from < to))
        return;
    *first = (uint32_t)fmin(fmax(ceil(from), 0), depth);
    *end = (uint32_t)fmin(fmax(ceil(to), 0), depth);
}

float oct_flow_slab_largest(const float *values, uint32_t first, uint32_t end)
{
    return oct_flow_kernels_best()->largest(values + first, end - first);
}

float oct_flow_slab_mean(const float *values, uint32_t first, uint32_t end)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t d = first; d < end; d++)
        if (isfinite(values[d])) {
            sum += (double)values[d];
            n++;
        }
    return n ? (float)(sum / n) : NAN;
}
