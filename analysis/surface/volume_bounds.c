#include "analysis/surface/volume_parts.h"

#include "analysis/surface/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BESIDE 3u    /* B-scans on each side */
#define REACH_UM 100.0    /* within which they are looked for */
#define NEAR_UM 30.0      /* and taken, if one is there */
#define LINE_STEP_UM 10.0 /* A-lines to the left and right that count as well */
#define HALF_UM 6.0 /* of the space between the bounds, beside the spread of what they come from */
#define MOST_SPREAD_UM 40.0
#define TRUSTED 1.25F       /* of the quality that an A-line needs */
#define AS_SURE 0.8F        /* of the quality of what was found without bounds */
#define SAME_UM 2.0         /* positions that agree */
#define BOUNDED_QUALITY 0.6 /* of min_quality: a path within bounds finds less in noise */
#define N_BESIDE (2 * MOST_BESIDE)

/* ---- memory ---- */

enum oct_err oct_surfaces_scratch_init(struct oct_surfaces_scratch *scratch,
                                       const struct oct_surfaces_setup *setup,
                                       struct oct_error *err)
{
    struct oct_trace_setup trace = {
        .n_lines = setup->n_lines, .depth = setup->depth, .params = setup->trace};
    size_t m = setup->n_lines;

    memset(scratch, 0, sizeof(*scratch));
    enum oct_err e = oct_trace_create(&scratch->first, &trace, err);
    trace.params.min_quality *= BOUNDED_QUALITY;
    e = e ? e : oct_trace_create(&scratch->second, &trace, err);
    if (e)
        return e;
    bool failed = false;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        float **of[] = {&scratch->least[layer], &scratch->most[layer], &scratch->position[layer],
                        &scratch->quality[layer]};
        for (int i = 0; i < 4; i++) {
            *of[i] = malloc(m * sizeof(float));
            failed = failed || !*of[i];
        }
    }
    scratch->values = malloc(OCT_N_LAYERS * m * sizeof(float));
    scratch->line_valid = malloc(m);
    if (failed || !scratch->values || !scratch->line_valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the layers of %zu A-lines", m);
    return OCT_OK;
}

void oct_surfaces_scratch_finish(struct oct_surfaces_scratch *scratch)
{
    oct_trace_destroy(scratch->first);
    oct_trace_destroy(scratch->second);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        free(scratch->least[layer]);
        free(scratch->most[layer]);
        free(scratch->position[layer]);
        free(scratch->quality[layer]);
    }
    free(scratch->values);
    free(scratch->line_valid);
}

/* ---- bounds ---- */

bool oct_surfaces_is_aligned(const struct oct_surfaces *surfaces, uint32_t b)
{
    return surfaces->fate[b] == OCT_VOLUME_USED || surfaces->fate[b] == OCT_VOLUME_NEW;
}

/* The quality of a place that is trusted. */
static float trusted(const struct oct_surfaces_setup *setup, int layer)
{
    return TRUSTED * (float)setup->trace.min_quality *
           (layer == OCT_LAYER_RPE ? OCT_TRACE_RPE_BENEATH : 1);
}

static bool is_trusted(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                       int layer, size_t at)
{
    return !isnan(s->position[layer][at]) && s->quality[layer][at] >= trusted(setup, layer);
}

/* How much deeper B-scan b lies than what `other` says with the shifts of both: the median over
 * their A-lines and layers. Without enough of them 0 where both are aligned, else NaN. */
static float offset_to(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                       uint32_t b, uint32_t other, float *values)
{
    uint32_t m = s->n_lines;
    float shift = (float)(s->shift_px[other] - s->shift_px[b]);
    size_t n = 0;

    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < m; j++) {
            size_t own = (size_t)b * m + j, its = (size_t)other * m + j;
            if (is_trusted(setup, s, layer, own) && is_trusted(setup, s, layer, its))
                values[n++] = s->position[layer][own] - s->position[layer][its] - shift;
        }
    if (n >= m / 2)
        return oct_trace_select(values, n, n / 2);
    return oct_surfaces_is_aligned(s, b) && oct_surfaces_is_aligned(s, other) ? 0 : NAN;
}

struct beside {
    uint32_t bscan;
    float shift; /* of its positions, into B-scan b's pixels */
};

/* The nearest B-scans on both sides that say something. */
static uint32_t find_beside(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                            uint32_t b, float *values, struct beside beside[N_BESIDE])
{
    double um = setup->bscan_um > 0 ? setup->bscan_um : setup->trace.line_um;
    uint32_t n = 0, reach = (uint32_t)fmin(fmax(REACH_UM / um, 1), s->n_bscans);
    uint32_t most = (uint32_t)fmin(fmax(NEAR_UM / um, 1), MOST_BESIDE);

    for (int side = -1; side <= 1; side += 2)
        for (uint32_t k = 1, found = 0; k <= reach && found < most; k++) {
            int64_t other = (int64_t)b + side * (int64_t)k;
            if (other < 0 || other >= s->n_bscans)
                break;
            float offset = offset_to(setup, s, b, (uint32_t)other, values);
            if (isnan(offset) || s->fate[other] == OCT_VOLUME_BLANK ||
                s->fate[other] == OCT_VOLUME_SKIPPED)
                continue;
            beside[n++] = (struct beside){(uint32_t)other,
                                          (float)(s->shift_px[other] - s->shift_px[b]) + offset};
            found++;
        }
    return n;
}

static bool bound_line(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                       int layer, uint32_t line, const struct beside *beside, uint32_t n_beside,
                       struct oct_surfaces_scratch *scratch)
{
    float values[3 * N_BESIDE];
    double depth_um = setup->trace.depth_um;
    int step = (int)fmax(1, LINE_STEP_UM / setup->trace.line_um);
    size_t n = 0;

    scratch->least[layer][line] = scratch->most[layer][line] = NAN;
    for (uint32_t k = 0; k < n_beside; k++)
        for (int side = -1; side <= 1; side++) {
            int64_t j = (int64_t)line + side * step;
            size_t at = (size_t)beside[k].bscan * s->n_lines + (size_t)j;
            if (j >= 0 && j < s->n_lines && is_trusted(setup, s, layer, at))
                values[n++] = s->position[layer][at] + beside[k].shift;
        }
    if (n < 3)
        return false;
    float low = oct_trace_select(values, n, n / 5);
    float high = oct_trace_select(values, n, n - 1 - n / 5);
    float middle = oct_trace_select(values, n, n / 2);
    float half = (float)(HALF_UM / depth_um) +
                 fminf(0.5F * (high - low), (float)(MOST_SPREAD_UM / depth_um));
    scratch->least[layer][line] = middle - half;
    scratch->most[layer][line] = middle + half;
    return true;
}

bool oct_surfaces_bound(const struct oct_surfaces_setup *setup, const struct oct_surfaces *surfaces,
                        uint32_t b, struct oct_surfaces_scratch *scratch)
{
    struct beside beside[N_BESIDE];
    uint32_t n = find_beside(setup, surfaces, b, scratch->values, beside), n_bounded = 0;

    for (int layer = 0; n && layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < surfaces->n_lines; j++)
            n_bounded += bound_line(setup, surfaces, layer, j, beside, n, scratch);
    return n_bounded > 0;
}

/* ---- both passes ---- */

/* A stretch of A-lines where the passes differ: what is found between bounds counts where nothing
 * else was found, or where it is trusted or as sure. Where a step is real, next to nothing is found
 * between bounds, and the step stays. */
static void merge_stretch(const struct oct_surfaces_setup *setup, struct oct_surfaces *s, int layer,
                          size_t at, uint32_t first, uint32_t last,
                          const struct oct_surfaces_scratch *scratch)
{
    double old = 0, new = 0;
    uint32_t n_old = 0, n_new = 0;

    for (uint32_t j = first; j < last; j++) {
        n_old += isnan(s->position[layer][at + j]) ? 0 : 1;
        n_new += isnan(scratch->position[layer][j]) ? 0 : 1;
        old += isnan(s->position[layer][at + j]) ? 0 : (double)s->quality[layer][at + j];
        new += isnan(scratch->position[layer][j]) ? 0 : (double)scratch->quality[layer][j];
    }
    double enough = n_old ? fmin((double)AS_SURE * old / n_old, (double)trusted(setup, layer)) : 0;
    if (!n_new || new / n_new < enough)
        return;
    for (uint32_t j = first; j < last; j++)
        if (!isnan(scratch->position[layer][j])) {
            s->position[layer][at + j] = scratch->position[layer][j];
            s->quality[layer][at + j] = scratch->quality[layer][j];
        }
}

void oct_surfaces_merge(const struct oct_surfaces_setup *setup, struct oct_surfaces *surfaces,
                        uint32_t b, const struct oct_surfaces_scratch *scratch)
{
    uint32_t m = surfaces->n_lines;
    size_t at = (size_t)b * m;
    float same = (float)fmax(SAME_UM / setup->trace.depth_um, 1);

    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        uint32_t first = 0;
        bool differs = false;
        for (uint32_t j = 0; j <= m; j++) {
            bool now = false;
            if (j < m) {
                float a = surfaces->position[layer][at + j], c = scratch->position[layer][j];
                now = isnan(a) != isnan(c) || fabsf(a - c) > same;
            }
            if (differs && !now)
                merge_stretch(setup, surfaces, layer, at, first, j, scratch);
            if (now && !differs)
                first = j;
            differs = now;
        }
    }
}
