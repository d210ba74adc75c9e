#include "analysis/layers/measure/slab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OFFSET_UM 10000.0

/* ---- text ---- */

/* Slabs by name: those of OCT angiography (macula), and layers. */
static const struct {
    const char *name, *slab;
} named[] = {
    {"superficial", "ilm:ipl_inl-6"},
    {"deep", "ipl_inl-6:opl_onl+6"},
    {"avascular", "opl_onl+6:is_os"},
    {"choriocapillaris", "rpe+4:rpe+24"},
    {"retina", "ilm:rpe"},
    {"rnfl", "ilm:rnfl_gcl"},
    {"gcl+ipl", "rnfl_gcl:ipl_inl"},
};

static const char *slab_of_name(const char *text)
{
    for (unsigned i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        if (strcmp(text, named[i].name) == 0)
            return named[i].slab;
    return text;
}

/* A layer's name at the beginning of text; NULL: there is none, else what follows. */
static const char *read_layer(const char *text, enum oct_layer *layer)
{
    for (unsigned i = 0; i < OCT_N_LAYERS; i++) {
        const size_t n = strlen(oct_layer_names[i]);
        if (strncmp(text, oct_layer_names[i], n) == 0) {
            *layer = (enum oct_layer)i;
            return text + n;
        }
    }
    return NULL;
}

/* Reads up to `end`; NULL: it is no bound, else what follows `end`. */
static const char *read_bound(const char *text, char end, struct oct_slab_bound *bound)
{
    const char *at = read_layer(text, &bound->layer);
    char *behind;
    bound->offset_um = 0;
    if (!at)
        return NULL;
    if (*at == '+' || *at == '-') {
        if (strchr("0123456789.", at[1]) == NULL || at[1] == '\0')
            return NULL;
        bound->offset_um = strtod(at, &behind);
        if (behind == at || memchr(at, 'x', (size_t)(behind - at)) ||
            memchr(at, 'X', (size_t)(behind - at)))
            return NULL; /* of base 16 */
        at = behind;
    }
    if (*at != end || !(fabs(bound->offset_um) <= MOST_OFFSET_UM))
        return NULL;
    return at + 1;
}

enum oct_err oct_slab_parse(struct oct_slab *slab, const char *text, struct oct_error *err)
{
    struct oct_slab read = {.is_none = false};
    const char *at = read_bound(slab_of_name(text), ':', &read.first);
    if (!at || !read_bound(at, '\0', &read.last))
        return oct_fail(err, OCT_E_ARG,
                        "%s: no slab: LAYER[+-UM]:LAYER[+-UM] with the layers ilm, rnfl_gcl, "
                        "ipl_inl, inl_opl, opl_onl, is_os and rpe and up to 10000 um, as "
                        "ilm+10:ilm+40, or superficial, deep, avascular, choriocapillaris, "
                        "retina, rnfl, gcl+ipl",
                        text);
    /* Layers are in order: what begins no lower in the deeper layer ends above it. */
    if (read.first.layer >= read.last.layer && !(read.first.offset_um < read.last.offset_um))
        return oct_fail(err, OCT_E_ARG, "%s: the slab's first bound must lie above its last", text);
    *slab = read;
    return OCT_OK;
}

static void bound_text(const struct oct_slab_bound *bound, char text[32])
{
    if (bound->offset_um == 0)
        snprintf(text, 32, "%s", oct_layer_names[bound->layer]);
    else
        snprintf(text, 32, "%s%+.9g", oct_layer_names[bound->layer], bound->offset_um);
}

void oct_slab_text(const struct oct_slab *slab, char *text, unsigned text_bytes)
{
    char first[32], last[32];
    bound_text(&slab->first, first);
    bound_text(&slab->last, last);
    snprintf(text, text_bytes, "%s:%s", first, last);
}

static bool parse_slab(const struct oct_param *param, const char *text, void *value, char *why,
                       size_t why_bytes)
{
    struct oct_error err;
    (void)param;
    if (!text[0]) {
        memset(value, 0, sizeof(struct oct_slab));
        ((struct oct_slab *)value)->is_none = true;
        return true;
    }
    if (oct_slab_parse(value, text, &err) == OCT_OK)
        return true;
    snprintf(why, why_bytes, "%s", err.text);
    return false;
}

static void format_slab(const void *value, char *text, size_t text_bytes)
{
    const struct oct_slab *slab = value;
    text[0] = '\0';
    if (!slab->is_none)
        oct_slab_text(slab, text, (unsigned)text_bytes);
}

const struct oct_param_form oct_param_slab = {parse_slab, format_slab};

/* ---- means ---- */

/* px; NaN: not known. */
static double place(const struct oct_slab_bound *bound, double depth_um, uint32_t line,
                    const float *const position[OCT_N_LAYERS])
{
    const float *layer = position[bound->layer];
    const double offset = bound->offset_um == 0 ? 0 : bound->offset_um / depth_um;
    return layer ? (double)layer[line] + offset : NAN;
}

/* Pixel d reaches from d - 1 / 2 to d + 1 / 2. */
static double mean_between(const float *pixels, uint32_t depth, double first, double last)
{
    const double from = fmax(first, -0.5), to = fmin(last, depth - 0.5);
    double sum = 0, weight = 0;
    if (isnan(first) || isnan(last) || !(from < to))
        return NAN;
    const uint32_t end = (uint32_t)fmin(depth - 1.0, floor(to + 0.5));
    for (uint32_t d = (uint32_t)floor(from + 0.5); d <= end; d++) {
        const double share = fmin(to, d + 0.5) - fmax(from, d - 0.5);
        if (!isfinite(pixels[d]) || !(share > 0))
            continue;
        sum += share * (double)pixels[d];
        weight += share;
    }
    return weight > 0 ? sum / weight : NAN;
}

void oct_slab_project(const struct oct_slab *slab, const float *pixels, uint32_t n_lines,
                      uint32_t depth, double depth_um, const float *const position[OCT_N_LAYERS],
                      float *values)
{
    for (uint32_t j = 0; j < n_lines; j++) {
        const double first = place(&slab->first, depth_um, j, position);
        const double last = place(&slab->last, depth_um, j, position);
        values[j] = (float)mean_between(pixels + (size_t)j * depth, depth, first, last);
    }
}
