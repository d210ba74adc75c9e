#include "analysis/layers/find/sequence.h"

#include "analysis/layers/find/pixels.h"
#include "analysis/layers/find/trace_parts.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_UM 10.0       /* whose means are compared where a course is sought */
#define REACH_UM 15.0      /* along the B-scan: what an eye moves between two */
#define LEAST_CONTRAST 0.5 /* of a course, as a share of that where it was found */
#define LEAST_FOUND 0.8    /* of the A-lines of the B-scan before */
#define LEAST_SHARE 8u     /* 1 / n of the A-lines make a course */
#define N_COMPARED 64u     /* A-lines of a course */
#define N_KEPT 2u          /* courses */
enum { NEWEST, FIRST };    /* of them: FIRST of its volume */

/* The contrast along a course moved by whole pixels: below the ILM less above it, plus above the
 * RPE's border less below it, of some N_COMPARED A-lines. */
struct fit {
    int shift; /* px, that of the greatest contrast */
    double contrast;
    bool found; /* false: the course lies outside the picture, or is not known */
};

/* A B-scan that had layers. */
struct kept {
    float *course[OCT_N_LAYERS]; /* [n_lines] px, gaps are filled; NaN: not known */
    uint64_t volume;
    uint32_t bscan;
    uint32_t n_found, n_lines; /* A-lines with both layers, and those that came */
    double contrast;           /* along it */
    bool any;
};

/* A way to trace a B-scan, and what it gave. */
struct way {
    struct oct_traced layers;
    struct oct_sequence_layers found; /* of it */
};

struct oct_layer_sequence {
    struct oct_image_form input;
    uint32_t n_lines, depth;
    double bscan_um, line_um, depth_um; /* as taken where they are not known */
    struct oct_trace *trace;

    float *memory, *pixels;
    uint8_t *line_valid;
    double *prefix;                   /* [depth + 1] sums of a line's pixels above a depth */
    double *sums;                     /* [2 most_shift + 1] of the contrast by shift, */
    uint32_t *counts;                 /* and of how many A-lines */
    uint32_t most_shift, side, reach; /* px; A-lines to each side */
    struct way ways[2];               /* with bounds and without */
    float *least[OCT_N_LAYERS], *most[OCT_N_LAYERS];
    struct kept kept[N_KEPT];
    unsigned n_since_check;
    struct oct_bscan_info newest; /* run last */
    bool any;
    uint32_t n_came; /* A-lines of it */
};

/* ---- the picture ---- */

static void bring_in(struct oct_layer_sequence *s, const struct oct_image_frame *bscan)
{
    struct oct_surface_pixels shown;
    oct_surface_pixels_begin(&shown, &s->input, bscan);
    s->n_came = 0;
    for (uint32_t j = 0; j < s->n_lines; j++) {
        oct_surface_pixels_brightness(&shown, j, s->pixels + (size_t)j * s->depth);
        s->line_valid[j] = oct_surface_pixels_came(&shown, j);
        s->n_came += s->line_valid[j];
    }
}

/* ---- a course ---- */

/* Gaps of at most most_gap A-lines between positions that are known become straight lines. */
static void fill_course(float *position, uint32_t n_lines, uint32_t most_gap)
{
    uint32_t before = n_lines; /* the newest that is known */
    for (uint32_t j = 0; j < n_lines; j++) {
        if (isnan(position[j]))
            continue;
        const uint32_t n = before < j ? j - before : 0;
        for (uint32_t i = 1; i < n && n - 1 <= most_gap; i++)
            position[before + i] =
                position[before] + (position[j] - position[before]) * (float)i / (float)n;
        before = j;
    }
}

/* prefix[d]: the sum of the finite pixels above d. */
static void sum_up(const float *pixels, uint32_t depth, double *prefix)
{
    double sum = 0;
    prefix[0] = 0;
    for (uint32_t d = 0; d < depth; d++) {
        sum += isfinite(pixels[d]) ? (double)pixels[d] : 0;
        prefix[d + 1] = sum;
    }
}

/* The sum of `side` pixels from z on, less that of those before it. */
static double step_at(const double *prefix, int64_t z, int64_t side)
{
    return prefix[z + side] - 2 * prefix[z] + prefix[z - side];
}

static void add_line(struct oct_layer_sequence *s, const int64_t place[OCT_N_LAYERS],
                     uint32_t most_shift)
{
    const int64_t side = s->side, most = most_shift;
    for (int64_t i = -most; i <= most; i++) {
        const int64_t ilm = place[OCT_LAYER_ILM] + i, rpe = place[OCT_LAYER_RPE] + i;
        if (ilm < side || rpe < side || ilm + side > s->depth || rpe + side > s->depth)
            continue;
        s->sums[i + most] += step_at(s->prefix, ilm, side) - step_at(s->prefix, rpe, side);
        s->counts[i + most]++;
    }
}

/* The greatest mean among shifts at which half of the A-lines or more lie in the picture; of equals
 * the smallest shift. */
static struct fit choose(const double *sums, const uint32_t *counts, uint32_t most_shift,
                         uint32_t n_added, uint32_t side)
{
    struct fit fit = {.found = false};
    for (uint32_t i = 0; i < 2 * most_shift + 1; i++) {
        const int s = (int)((i + 1) / 2) * (i % 2 ? 1 : -1);
        const uint32_t n = counts[s + (int)most_shift];
        if (n == 0 || 2 * n < n_added)
            continue;
        const double contrast = sums[s + (int)most_shift] / ((double)n * side);
        if (!fit.found || contrast > fit.contrast)
            fit = (struct fit){.shift = s, .contrast = contrast, .found = true};
    }
    return fit;
}

/* Of all shifts up to most_shift. */
static struct fit find_course(struct oct_layer_sequence *s, float *const course[OCT_N_LAYERS],
                              uint32_t most_shift)
{
    const uint32_t step = (s->n_lines + N_COMPARED - 1) / N_COMPARED;
    const size_t n_shifts = 2 * (size_t)most_shift + 1;
    uint32_t n_added = 0;
    memset(s->sums, 0, n_shifts * sizeof(*s->sums));
    memset(s->counts, 0, n_shifts * sizeof(*s->counts));
    for (uint32_t j = step / 2; j < s->n_lines; j += step) {
        const float ilm = course[OCT_LAYER_ILM][j], rpe = course[OCT_LAYER_RPE][j];
        if (isnan(ilm) || isnan(rpe) || !s->line_valid[j])
            continue;
        const int64_t place[OCT_N_LAYERS] = {
            [OCT_LAYER_ILM] = (int64_t)ceilf(ilm), [OCT_LAYER_RPE] = (int64_t)ceilf(rpe)};
        sum_up(s->pixels + (size_t)j * s->depth, s->depth, s->prefix);
        add_line(s, place, most_shift);
        n_added++;
    }
    return choose(s->sums, s->counts, most_shift, n_added, s->side);
}

/* Where a layer that is moved by `shift` px may be in each A-line: `slack` px beyond what it is in
 * the A-lines up to `reach` away. NaN: anywhere. */
static void bound_course(const float *position, uint32_t n_lines, double shift, double slack,
                         uint32_t reach, float *least, float *most)
{
    for (uint32_t j = 0; j < n_lines; j++) {
        const uint32_t first = j > reach ? j - reach : 0;
        const uint32_t end = j + reach < n_lines ? j + reach + 1 : n_lines;
        float lowest = position[j], highest = position[j];
        for (uint32_t i = first; i < end; i++) {
            lowest = position[i] < lowest ? position[i] : lowest;
            highest = position[i] > highest ? position[i] : highest;
        }
        least[j] = (float)((double)lowest + shift - slack);
        most[j] = (float)((double)highest + shift + slack);
    }
}

/* ---- the B-scan before ---- */

static double apart_um(const struct oct_layer_sequence *s, const struct kept *kept,
                       const struct oct_bscan_info *info)
{
    return fabs((double)info->bscan - (double)kept->bscan) * s->bscan_um;
}

/* NULL: none that lies near. */
static const struct kept *find_kept(const struct oct_layer_sequence *s,
                                    const struct oct_bscan_info *info)
{
    const struct kept *kept = &s->kept[NEWEST], *first = &s->kept[FIRST];
    if (first->any && first->volume != info->volume &&
        apart_um(s, first, info) < apart_um(s, kept, info))
        kept = first;
    return kept->any && apart_um(s, kept, info) <= OCT_SEQUENCE_APART_UM ? kept : NULL;
}

/* False: its course is nowhere in the picture. */
static bool set_bounds(struct oct_layer_sequence *s, const struct kept *kept,
                       const struct oct_bscan_info *info)
{
    const struct fit fit = find_course(s, kept->course, s->most_shift);
    if (!fit.found || !(fit.contrast >= LEAST_CONTRAST * kept->contrast))
        return false;
    const double slack_um =
        OCT_SEQUENCE_SLACK_UM + OCT_SEQUENCE_SLACK_SLOPE * apart_um(s, kept, info);
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
        bound_course(kept->course[layer], s->n_lines, fit.shift, fmax(slack_um / s->depth_um, 3),
                     s->reach, s->least[layer], s->most[layer]);
    return true;
}

/* ---- with bounds and without ---- */

static struct way *trace(struct oct_layer_sequence *s, bool bounded, unsigned n_traces)
{
    const struct oct_trace_bounds bounds = {
        .least =
            {[OCT_LAYER_ILM] = s->least[OCT_LAYER_ILM], [OCT_LAYER_RPE] = s->least[OCT_LAYER_RPE]},
        .most = {
            [OCT_LAYER_ILM] = s->most[OCT_LAYER_ILM], [OCT_LAYER_RPE] = s->most[OCT_LAYER_RPE]}};
    struct way *way = &s->ways[bounded ? 0 : 1];
    const float *ilm = way->layers.position[OCT_LAYER_ILM];
    const float *rpe = way->layers.position[OCT_LAYER_RPE];
    const uint8_t *line_valid = s->n_came < s->n_lines ? s->line_valid : NULL;
    double sum = 0;
    way->found.bounded = bounded;
    way->found.n_traces = n_traces;
    way->found.n_found =
        oct_trace_run(s->trace, s->pixels, line_valid, bounded ? &bounds : NULL, &way->layers);
    for (uint32_t j = 0; j < s->n_lines; j++)
        sum += isnan(rpe[j] - ilm[j]) ? 0 : (double)rpe[j] - (double)ilm[j];
    way->found.thickness_px = way->found.n_found ? sum / way->found.n_found : NAN;
    return way;
}

/* Of both layers, over the A-lines that have them. */
static double strength_of(const struct oct_layer_sequence *s, const struct way *way)
{
    const struct oct_traced *l = &way->layers;
    double sum = 0;
    for (uint32_t j = 0; j < s->n_lines; j++)
        if (!isnan(l->position[OCT_LAYER_ILM][j]) && !isnan(l->position[OCT_LAYER_RPE][j]))
            sum += (double)fminf(l->quality[OCT_LAYER_ILM][j], l->quality[OCT_LAYER_RPE][j]);
    return sum;
}

/* Whether the bounds have lost what the B-scan before had. */
static bool lost_layers(const struct oct_layer_sequence *s, const struct way *way,
                        const struct kept *kept)
{
    return (double)way->found.n_found * kept->n_lines <
           LEAST_FOUND * (double)kept->n_found * s->n_came;
}

/* The way that holds. */
static const struct way *trace_bscan(struct oct_layer_sequence *s,
                                     const struct oct_bscan_info *info)
{
    const struct kept *kept = find_kept(s, info);
    if (!kept || !set_bounds(s, kept, info)) {
        s->n_since_check = 0;
        return trace(s, false, 1);
    }
    struct way *bounded = trace(s, true, 1);
    const bool is_check = ++s->n_since_check >= OCT_SEQUENCE_CHECK;
    if (!is_check && !lost_layers(s, bounded, kept))
        return bounded;
    struct way *free_of = trace(s, false, 2);
    bounded->found.n_traces = 2;
    const bool holds = is_check ? strength_of(s, bounded) >= strength_of(s, free_of)
                                : bounded->found.n_found >= free_of->found.n_found;
    s->n_since_check = 0;
    if (is_check && !holds)
        s->kept[FIRST].any = false; /* it may be where the course went wrong */
    return holds ? bounded : free_of;
}

/* ---- what is kept for the next ---- */

static void copy_kept(const struct oct_layer_sequence *s, struct kept *to, const struct kept *from)
{
    const struct kept own = *to;
    *to = *from;
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
        to->course[layer] =
            memcpy(own.course[layer], from->course[layer], s->n_lines * sizeof(*own.course[layer]));
}

static void keep(struct oct_layer_sequence *s, const struct oct_bscan_info *info,
                 const struct way *way)
{
    struct kept *newest = &s->kept[NEWEST];
    if (way->found.n_found == 0 || way->found.n_found < s->n_lines / LEAST_SHARE)
        return;
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++) {
        float *position = newest->course[layer];
        memcpy(position, way->layers.position[layer], s->n_lines * sizeof(*position));
        fill_course(position, s->n_lines, (uint32_t)(OCT_SEQUENCE_GAP_UM / s->line_um));
    }
    newest->volume = info->volume;
    newest->bscan = info->bscan;
    newest->n_found = way->found.n_found;
    newest->n_lines = s->n_came;
    newest->contrast = find_course(s, newest->course, 0).contrast;
    newest->any = true;
    if (!s->kept[FIRST].any || s->kept[FIRST].volume != info->volume)
        copy_kept(s, &s->kept[FIRST], newest);
}

const struct oct_sequence_layers *oct_layer_sequence_run(struct oct_layer_sequence *s,
                                                         const struct oct_image_frame *bscan)
{
    bring_in(s, bscan);
    const struct way *way = trace_bscan(s, &bscan->info);
    keep(s, &bscan->info, way);
    s->newest = bscan->info;
    s->any = true;
    return &way->found;
}

bool oct_layer_sequence_has_turn(const struct oct_layer_sequence *s,
                                 const struct oct_bscan_info *info, unsigned every)
{
    return !s->any || info->volume != s->newest.volume ||
           info->bscan / every != s->newest.bscan / every;
}

void oct_layer_sequence_reset(struct oct_layer_sequence *s)
{
    s->kept[NEWEST].any = s->kept[FIRST].any = s->any = false;
    s->n_since_check = 0;
}

/* ---- life ---- */

static double or_else(double um, double otherwise)
{
    return um > 0 && isfinite(um) ? um : otherwise;
}

static enum oct_err open_trace(struct oct_layer_sequence *s,
                               const struct oct_layer_sequence_setup *setup, struct oct_error *err)
{
    struct oct_trace_setup trace_setup = {.n_lines = s->n_lines, .depth = s->depth};
    oct_trace_params_default(&trace_setup.params);
    trace_setup.params.depth_um = setup->spacing.depth_um;
    trace_setup.params.line_um = setup->spacing.line_um;
    trace_setup.params.unit_db = 1; /* pixels.h */
    trace_setup.params.least_um = setup->least_um;
    trace_setup.params.most_um = setup->most_um;
    trace_setup.params.min_quality = setup->min_quality;
    const enum oct_err e = oct_trace_create(&s->trace, &trace_setup, err);
    return e == OCT_E_ARG ? OCT_E_CONFIG : e; /* the configuration's fault here */
}

static enum oct_err take_memory(struct oct_layer_sequence *s, struct oct_error *err)
{
    /* Positions and qualities of both ways, the limits, and the courses. */
    const size_t n_rows = OCT_N_LAYERS * (2 * 2 + 2 + N_KEPT);
    const size_t n_shifts = 2 * (size_t)s->most_shift + 1, m = s->n_lines;
    s->memory = malloc(n_rows * m * sizeof(*s->memory));
    s->pixels = oct_aligned_alloc(64, m * s->depth, sizeof(*s->pixels));
    s->line_valid = malloc(m);
    s->prefix = malloc(((size_t)s->depth + 1) * sizeof(*s->prefix));
    s->sums = malloc(n_shifts * sizeof(*s->sums));
    s->counts = malloc(n_shifts * sizeof(*s->counts));
    if (!s->memory || !s->pixels || !s->line_valid || !s->prefix || !s->sums || !s->counts)
        return oct_fail(err, OCT_E_NO_MEMORY, "surfaces: out of memory");
    float *row = s->memory;
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++) {
        for (unsigned i = 0; i < 2; i++, row += 2 * m) {
            struct way *way = &s->ways[i];
            way->found.position[layer] = way->layers.position[layer] = row;
            way->found.quality[layer] = way->layers.quality[layer] = row + m;
        }
        for (unsigned i = 0; i < N_KEPT; i++, row += m)
            s->kept[i].course[layer] = row;
        s->least[layer] = row;
        s->most[layer] = row + m;
        row += 2 * m;
    }
    return OCT_OK;
}

void oct_layer_sequence_destroy(struct oct_layer_sequence *s)
{
    if (!s)
        return;
    oct_trace_destroy(s->trace);
    free(s->memory);
    free(s->pixels);
    free(s->line_valid);
    free(s->prefix);
    free(s->sums);
    free(s->counts);
    free(s);
}

enum oct_err oct_layer_sequence_create(struct oct_layer_sequence **sequence,
                                       const struct oct_layer_sequence_setup *setup,
                                       struct oct_error *err)
{
    *sequence = NULL;
    struct oct_layer_sequence *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "surfaces: out of memory");
    s->input = *setup->input;
    s->n_lines = s->input.dims[0];
    s->depth = s->input.dims[1];
    s->bscan_um = or_else(setup->spacing.bscan_um, OCT_SEQUENCE_BSCAN_UM);
    s->line_um = or_else(setup->spacing.line_um, OCT_TRACE_LINE_UM);
    s->depth_um = or_else(setup->spacing.depth_um, OCT_TRACE_DEPTH_UM);
    s->side = oct_trace_rounded(SIDE_UM / s->depth_um, 2, s->depth / 4);
    s->reach = oct_trace_rounded(REACH_UM / s->line_um, 1, s->n_lines);
    s->most_shift = oct_trace_rounded(OCT_SEQUENCE_MOST_SHIFT_UM / s->depth_um, 1, s->depth);
    enum oct_err e = open_trace(s, setup, err);
    if (!e)
        e = take_memory(s, err);
    if (e) {
        oct_layer_sequence_destroy(s);
        return e;
    }
    *sequence = s;
    return OCT_OK;
}
