/* How sure each A-line is of a border: how much brighter the tissue on its bright side is than on
 * its dark side, over how much that would be by chance.
 *
 * A path goes from one chance maximum to the next, so the step at the border itself says little in
 * noise. Of the ILM what counts is the tissue below, for as far as the retina is thick, against
 * the vitreous above; of the RPE the bands of RPE and photoreceptors against the outer nuclear
 * layer and the choroid: both are far longer along the depth than what a path can choose. Of the
 * borders between them the step itself counts. Evidence is averaged over wide windows of A-lines
 * along the path, and over narrow ones, by which a layer ends where it ends. */
#include "analysis/layers/find/trace_parts.h"

#include <stdlib.h>
#include <string.h>

#define NARROW_SHARE 0.6F       /* of the quality that narrow windows must reach */
#define NARROW_SHARE_OUTER 0.3F /* and of the bands that vessels shade */
#define SEGMENT_UM 14.0         /* of an A-line, by which noise is measured, */
#define SPECKLE_UM 6.0          /* and along the B-scan: nearer A-lines are alike */
#define FIXED 0.10F             /* nepers that a pattern of the camera makes */
#define MOST_QUALITY 10.0F
#define INNER_WIDE_UM 100.0  /* Steps between layers are less than those of the pair, and reach */
#define INNER_NARROW_UM 40.0 /* farther: the windows of those, to both sides, */
#define INNER_SHARE 0.3F     /* and the share that the narrow one must reach. */
#define INNER_FIXED 0.05F    /* FIXED, of layers next to each other */
#define LIKE_GAIN 2.0F       /* of what tells IPL/INL and OPL/ONL apart: they are no surer */
#define PAIR_GAIN 1.5F       /* noise makes less of what is measured over so much of the depth */
/* As sure as a segment of so many micrometres. */
#define ILM_UM 50.0F
#define RPE_UM 30.0F
#define STEP_UM 7.0F
#define REGION_SURE_UM 40.0F
#define LEAST_VITREOUS_UM 40.0F /* of the picture above an ILM */
#define THIN 1.2F               /* of the least thickness: what is thinner all about is no retina */
#define OVER_CHOROID 1.5F     /* weight of the RPE's step to the choroid against that to the ONL */
#define REGION_UM 300.0       /* along the B-scan to both sides, that must look like a retina, */
#define REGION_GAIN 2.5F      /* and how sure it must be for a border to be as sure */
#define DEEP_UM 100.0F        /* below the RPE nothing outshines it, */
#define DEEP_WINDOW_UM 60.0F  /* over so much, */
#define ABOVE_WINDOW_UM 30.0F /* nor anything above the ILM the tissue below it */
#define N_ABOVE 10            /* of such windows */
#define DISC_UM 450.0         /* A disc is so wide at least; */
#define DISC_EACH_UM 150.0    /* its cup is, and its walls together are; and */
#define DISC_REST_UM 100.0    /* what in it looks like a retina by chance is narrower. */
#define DISC_TOP_UM 60.0F     /* of tissue below the ILM its cup has none. */
#define DISC_HALF_UM 50.0     /* Light is averaged over so much to both sides, */
#define DISC_SHARE 0.3F /* and less than this share of what is usual in the picture is nothing, */
#define DISC_USUAL_UM 300.0 /* where that is known of so much of it. */

static float sum_of(const float *x, int n)
{
    float parts[8] = {0}, sum = 0;
    int i = 0;

    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            parts[k] += x[i + k];
    for (; i < n; i++)
        sum += x[i];
    for (int k = 0; k < 8; k++)
        sum += parts[k];
    return sum;
}

/* The mean light of a part of an A-line, about a border; NaN: outside the picture. */
static float mean_light(const struct oct_trace *trace, uint32_t j, float at, float from_um,
                        float to_um)
{
    const float um = (float)trace->setup.params.depth_um;
    int first = (int)lroundf(at + from_um / um), end = (int)lroundf(at + to_um / um);

    first = first < 0 ? 0 : first;
    end = end > (int)trace->setup.depth ? (int)trace->setup.depth : end;
    if (end <= first)
        return NAN;
    return sum_of(trace->light + (size_t)j * trace->setup.depth + first, end - first) /
           (float)(end - first);
}

/* The vitreous near the ILM or far above it, whichever is brighter. */
static float vitreous_light(const struct oct_trace *trace, uint32_t j)
{
    const float at = trace->path[OCT_LAYER_ILM][j];
    const float near = mean_light(trace, j, at, -40, -6), far = mean_light(trace, j, at, -120, -40);

    return isnan(far) ? near : fmaxf(near, far);
}

/* The retina against the vitreous. */
static float ilm_evidence(const struct oct_trace *trace, uint32_t j)
{
    const float um = (float)trace->setup.params.depth_um, at = trace->path[OCT_LAYER_ILM][j];
    const float thick = (trace->path[OCT_LAYER_RPE][j] - at) * um;

    return mean_light(trace, j, at, 3, thick) - vitreous_light(trace, j);
}

/* The outer nuclear layer, of what lies below the ILM. */
static float outer_light(const struct oct_trace *trace, uint32_t j)
{
    const float um = (float)trace->setup.params.depth_um, at = trace->path[OCT_LAYER_RPE][j];
    const float ilm = (trace->path[OCT_LAYER_ILM][j] - at) * um + 15;

    return mean_light(trace, j, at, fminf(fmaxf(ilm, -125), -80), -70);
}

/* The bands of the RPE and the photoreceptors against the outer nuclear layer and the choroid. */
static float rpe_evidence(const struct oct_trace *trace, uint32_t j)
{
    const float at = trace->path[OCT_LAYER_RPE][j];

    return mean_light(trace, j, at, -42, -2) -
           0.5F * (outer_light(trace, j) + mean_light(trace, j, at, 8, 60));
}

/* The layers on both sides of a border, as far as they reach; below fibres all are darker. */
static float step_evidence(const struct oct_trace *trace, enum oct_layer layer, uint32_t j)
{
    const float at = trace->path[layer][j], um = (float)trace->setup.params.depth_um;
    const float top = fmaxf(-14, (trace->path[layer - 1][j] - at) * um + 1);
    const float low =
        layer == OCT_LAYER_RNFL_GCL ? 14 : fminf(14, (trace->path[layer + 1][j] - at) * um - 1);
    const float above = mean_light(trace, j, at, top, -1), under = mean_light(trace, j, at, 1, low);

    return layer == OCT_LAYER_INL_OPL || layer == OCT_LAYER_IS_OS ? under - above : above - under;
}

/* The standard deviation of segments of A-lines, from what differs between A-lines that are not
 * neighbours but near. */
static float segment_noise(struct oct_trace *trace)
{
    const struct oct_trace_params *p = &trace->setup.params;
    const uint32_t m = trace->setup.n_lines;
    const uint32_t lag = oct_trace_rounded(ceil(SPECKLE_UM / p->line_um), 1, m - 1);
    /* No shorter than a cell, of which `sorted` holds all. */
    const uint32_t n_px =
        oct_trace_rounded(SEGMENT_UM / p->depth_um, trace->grid.depth, trace->setup.depth);
    const uint32_t stride = m / 128 + 1;
    size_t n = 0;

    for (uint32_t j = 0; j + lag < m; j += stride) {
        if (!oct_trace_has_line(trace, j) || !oct_trace_has_line(trace, j + lag))
            continue;
        for (int d = 0; d + (int)n_px <= (int)trace->setup.depth; d += (int)n_px) {
            const float *light = trace->light + (size_t)j * trace->setup.depth + d;
            const float *other = light + (size_t)lag * trace->setup.depth;
            const float difference = sum_of(light, (int)n_px) - sum_of(other, (int)n_px);
            trace->sorted[n++] = fabsf(difference) / (float)n_px;
        }
    }
    return n ? oct_trace_select(trace->sorted, n, n / 2) * 1.4826F / sqrtf(2) : INFINITY;
}

/* The mean over 2 half + 1 A-lines, of those that are there. */
static void average(const struct oct_trace *trace, const float *steps, uint32_t half, float *to)
{
    int n = (int)trace->setup.n_lines, h = (int)half;
    double sum = 0;
    int count = 0;

    for (int k = -h; k < n; k++) {
        int in = k + h, out = k - h - 1;
        if (in < n && oct_trace_has_line(trace, (uint32_t)in)) {
            sum += (double)steps[in];
            count++;
        }
        if (out >= 0 && oct_trace_has_line(trace, (uint32_t)out)) {
            sum -= (double)steps[out];
            count--;
        }
        if (k >= 0)
            to[k] = count ? (float)(sum / count) : 0;
    }
}

/* Of a window of 2 half + 1 A-lines, of what is as sure as a segment of so many micrometres. */
static float window_noise(const struct oct_trace *trace, float noise, uint32_t half, float um,
                          float fixed)
{
    const double line_um = trace->setup.params.line_um;
    const double n = fmax((2 * half + 1) * line_um / fmax(line_um, SPECKLE_UM), 1);

    return sqrtf(noise * noise / (float)n * (float)SEGMENT_UM / um + fixed * fixed);
}

/* What is measured of a part of each A-line, over REGION_UM to both sides; NaN: it lies outside the
 * picture. to may be trace->line2. */
static void region_light(struct oct_trace *trace, int layer, float from_um, float to_um, float *to)
{
    const uint32_t m = trace->setup.n_lines;
    const uint32_t half = oct_trace_rounded(REGION_UM / trace->setup.params.line_um, 4, m);
    uint32_t n_seen = 0;

    for (uint32_t j = 0; j < m; j++) {
        const float x = mean_light(trace, j, trace->path[layer][j], from_um, to_um);
        n_seen += isnan(x) ? 0 : 1;
        trace->line[j] = isnan(x) ? trace->dark : x;
    }
    average(trace, trace->line, half, to);
    for (uint32_t j = 0; n_seen < m / 2 && j < m; j++)
        to[j] = NAN;
}

/* The brightest of bands above the ILM, level with it; NaN: none lies in the picture. */
static void brightest_above(struct oct_trace *trace, float *most)
{
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        most[j] = NAN;
    for (int k = 0; k < N_ABOVE; k++) {
        const float to = -8 - (float)k * ABOVE_WINDOW_UM;
        region_light(trace, OCT_LAYER_ILM, to - ABOVE_WINDOW_UM, to, trace->line2);
        for (uint32_t j = 0; j < trace->setup.n_lines; j++)
            most[j] = fmaxf(most[j], trace->line2[j]);
    }
}

/* The brightest between two distances from a border. */
static float brightest_light(const struct oct_trace *trace, uint32_t j, float at, float from_um,
                             float end_um)
{
    float most = trace->dark;

    for (float from = from_um; from + DEEP_WINDOW_UM <= end_um; from += DEEP_WINDOW_UM)
        most = oct_trace_greater(mean_light(trace, j, at, from, from + DEEP_WINDOW_UM), most);
    return most;
}

/* The brightest that lies deeper than the choroid begins, level or not. */
static float deepest_light(const struct oct_trace *trace, uint32_t j)
{
    const float at = trace->path[OCT_LAYER_RPE][j], um = (float)trace->setup.params.depth_um;
    return brightest_light(trace, j, at, DEEP_UM, ((float)trace->setup.depth - at) * um);
}

/* Lowers region to what a difference of light is worth. */
static void lower_region(struct oct_trace *trace, const float *bright, const float *dark,
                         float share, float *region)
{
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        region[j] = fminf(region[j], share * (bright[j] - dark[j]));
}

/* How sure it is that there is a retina about each A-line, in what chance makes: the least of what
 * its inner layers are brighter than all that lies above, its pigment epithelium and its
 * photoreceptors than the outer nuclear layer, the first than the choroid and all that lies deeper,
 * and the choroid than the vitreous; nothing where it is thin. */
static void judge_region(struct oct_trace *trace, float noise, float *region)
{
    const uint32_t m = trace->setup.n_lines;
    const uint32_t half = oct_trace_rounded(REGION_UM / trace->setup.params.line_um, 4, m);
    const float chance = window_noise(trace, noise, half, REGION_SURE_UM, FIXED);
    float *a = trace->beside[0], *b = trace->beside[1];

    for (uint32_t j = 0; j < m; j++)
        region[j] = INFINITY;
    brightest_above(trace, b);
    for (uint32_t j = 0; j < m; j++) /* without a vitreous there is no ILM */
        b[j] = isnan(b[j]) ? INFINITY : b[j];
    region_light(trace, OCT_LAYER_ILM, 3, 60, a);
    lower_region(trace, a, b, 1, region);
    region_light(trace, OCT_LAYER_ILM, -90, -8, b);
    region_light(trace, OCT_LAYER_RPE, 8, 60, a);
    lower_region(trace, a, b, 4, region);
    region_light(trace, OCT_LAYER_RPE, -42, -2, b);
    lower_region(trace, b, a, OVER_CHOROID, region);
    for (uint32_t j = 0; j < m; j++)
        trace->line[j] = deepest_light(trace, j);
    average(trace, trace->line, half, a);
    lower_region(trace, b, a, 1, region);
    for (uint32_t j = 0; j < m; j++)
        trace->line[j] = fmaxf(outer_light(trace, j), trace->dark); /* a NaN is less */
    average(trace, trace->line, half, a);
    lower_region(trace, b, a, 1, region);
    region_light(trace, OCT_LAYER_RPE, -62, -22, b);
    lower_region(trace, b, a, 1.5F, region);
    const float thin = THIN * (float)(trace->setup.params.least_um / trace->setup.params.depth_um);
    for (uint32_t j = 0; j < m; j++)
        trace->line[j] = trace->path[OCT_LAYER_RPE][j] - trace->path[OCT_LAYER_ILM][j];
    average(trace, trace->line, half, a);
    for (uint32_t j = 0; j < m; j++)
        region[j] = isnan(region[j]) || a[j] < thin ? 0 : region[j] / chance;
}

static bool has_pair(const struct oct_trace *trace, const struct oct_traced *result, uint32_t j)
{
    const float least = (float)trace->setup.params.min_quality;
    return result->quality[OCT_LAYER_ILM][j] >= least && result->quality[OCT_LAYER_RPE][j] >= least;
}

/* The upper quartile of what is measured of the A-lines of which ILM and RPE are found, as many of
 * them may lie in a disc; NaN: there are few. */
static float usual(struct oct_trace *trace, const float *measured, const struct oct_traced *result)
{
    size_t n = 0;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        if (has_pair(trace, result, j))
            trace->sorted[n++] = measured[j];
    const bool is_enough = (double)n * trace->setup.params.line_um >= DISC_USUAL_UM;
    return is_enough ? oct_trace_select(trace->sorted, n, n - 1 - n / 4) : NAN;
}

/* The brightest that lies between the layers just below the ILM and the choroid. */
static float brightest_below(const struct oct_trace *trace, uint32_t j)
{
    const float at = trace->path[OCT_LAYER_ILM][j], um = (float)trace->setup.params.depth_um;
    const float thick = (trace->path[OCT_LAYER_RPE][j] - at) * um;
    return brightest_light(trace, j, at, DISC_TOP_UM, thick + DEEP_UM);
}

/* What each A-line has of a retina, averaged over a few: tissue just below the ILM's path and
 * anywhere below it, and an outer nuclear layer that is darker than the bands below it. */
static void measure_tissue(struct oct_trace *trace, float *tissue, float *below, float *bands)
{
    const uint32_t m = trace->setup.n_lines;
    const uint32_t half = oct_trace_rounded(DISC_HALF_UM / trace->setup.params.line_um, 1, m);

    for (uint32_t j = 0; j < m; j++) {
        const float at = trace->path[OCT_LAYER_ILM][j], above = vitreous_light(trace, j);
        const float x = mean_light(trace, j, at, 3, DISC_TOP_UM) - above;
        trace->line[j] = isnan(x) ? 0 : x;
        bands[j] = isnan(x) ? 0 : brightest_below(trace, j) - above;
    }
    average(trace, trace->line, half, tissue);
    average(trace, bands, half, below);
    for (uint32_t j = 0; j < m; j++) {
        const float x = mean_light(trace, j, trace->path[OCT_LAYER_RPE][j], -42, -2);
        const float dark = outer_light(trace, j);
        trace->line[j] = isnan(x) || isnan(dark) ? 0 : x - dark;
    }
    average(trace, trace->line, half, bands);
}

/* A stretch of A-lines in which there is no retina. */
struct stretch {
    uint32_t first, end;              /* 0, 0: none */
    uint32_t n_cup, n_bare, n_behind; /* that look like a retina behind its end */
};

/* A disc has both. A wide pit of a fovea has no tissue below the ILM either, but bands all along;
 * an atrophy has tissue, but no bands; in a dense shadow all is dark, and such A-lines do not
 * count. */
static bool is_disc(const struct stretch *s, double line_um)
{
    return (s->end - s->first) * line_um >= DISC_UM && s->n_cup * line_um >= DISC_EACH_UM &&
           s->n_bare * line_um >= DISC_EACH_UM;
}

/* Within the opening of the optic disc there are no layers: the path of the ILM crosses its cup in
 * the vitreous, with the bottom of the cup for bands; the others run along its walls, where tissue
 * is bright all along the depth. */
static void leave_out_disc(struct oct_trace *trace, const struct oct_traced *result)
{
    const double um = trace->setup.params.line_um;
    const uint32_t m = trace->setup.n_lines;
    float *tissue = trace->beside[0], *below = trace->line2, *bands = trace->beside[1];
    struct stretch s = {.end = 0};

    measure_tissue(trace, tissue, below, bands);
    const float least_tissue = DISC_SHARE * usual(trace, tissue, result);
    const float least_bands = DISC_SHARE * usual(trace, bands, result);
    trace->n_disc = 0;
    for (uint32_t j = 0; j <= m; j++) {
        const bool came = j < m && oct_trace_has_line(trace, j);
        const bool is_empty = came && tissue[j] < least_tissue;
        const bool is_bare = came && bands[j] < least_bands;
        const bool is_dark = came && below[j] < least_tissue;
        if (is_empty || is_bare) {
            s.first = s.end ? s.first : j;
            s.end = j + 1;
            s.n_behind = 0;
            s.n_cup += is_empty && !is_dark;
            s.n_bare += is_bare && !is_dark;
        }
        s.n_behind += came && !is_empty && !is_bare && has_pair(trace, result, j);
        if (j < m && s.n_behind * um < DISC_REST_UM)
            continue;
        for (uint32_t i = s.first; is_disc(&s, um) && i < s.end; i++) {
            for (int layer = 0; layer < OCT_N_LAYERS; layer++)
                result->quality[layer][i] = 0;
            trace->n_disc += oct_trace_has_line(trace, i);
        }
        s = (struct stretch){.end = 0};
    }
}

/* Of one border. */
static void judge_layer(struct oct_trace *trace, int layer, float noise, const float *region,
                        float *quality)
{
    const bool is_ilm = layer == OCT_LAYER_ILM, is_rpe = layer == OCT_LAYER_RPE;
    const float um = is_ilm ? ILM_UM : is_rpe ? RPE_UM : STEP_UM;
    const bool is_inner = layer >= OCT_LAYER_RNFL_GCL && layer <= OCT_LAYER_OPL_ONL;
    const double line_um = trace->setup.params.line_um;
    const uint32_t most = trace->setup.n_lines / 5;
    const uint32_t half_wide =
        is_inner ? oct_trace_rounded(INNER_WIDE_UM / line_um, 5, most) : trace->wide;
    const uint32_t half_narrow =
        is_inner ? oct_trace_rounded(INNER_NARROW_UM / line_um, 1, most) : trace->narrow;
    const float share = is_inner                   ? INNER_SHARE
                        : layer >= OCT_LAYER_IS_OS ? NARROW_SHARE_OUTER
                                                   : NARROW_SHARE;
    const float fixed = is_inner ? INNER_FIXED : FIXED;
    const float wide = window_noise(trace, noise, half_wide, um, fixed);
    const float narrow = window_noise(trace, noise, half_narrow, um, fixed) * share;
    const float gain = is_ilm || is_rpe ? PAIR_GAIN : 1;
    float *steps = trace->line;

    const float top = is_ilm ? LEAST_VITREOUS_UM / (float)trace->setup.params.depth_um : 0;
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float x = is_ilm   ? ilm_evidence(trace, j)
                  : is_rpe ? rpe_evidence(trace, j)
                           : step_evidence(trace, layer, j);
        steps[j] = isfinite(x) && trace->path[layer][j] >= top ? x : 0;
    }
    average(trace, steps, half_wide, quality);
    average(trace, steps, half_narrow, trace->line2);
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float q = fminf(quality[j] / wide, trace->line2[j] / narrow);
        q = gain * fminf(q, REGION_GAIN * region[j]);
        q = q > 0 && oct_trace_has_line(trace, j) ? q : 0;
        quality[j] = q < MOST_QUALITY ? q : MOST_QUALITY;
    }
}

/* Where neither ILM nor RPE is seen no layer between them is: its wide windows reach beyond its
 * end. */
static void bound_inner_layers(const struct oct_trace *trace, const struct oct_traced *result)
{
    for (int layer = OCT_LAYER_RNFL_GCL; layer <= OCT_LAYER_OPL_ONL; layer++)
        for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
            const float pair =
                fmaxf(result->quality[OCT_LAYER_ILM][j], result->quality[OCT_LAYER_RPE][j]);
            result->quality[layer][j] = fminf(result->quality[layer][j], pair);
        }
}

/* At IPL/INL and at OPL/ONL alike bright tissue ends: which of the two a step is can be told only
 * where another border below the fibres is seen. */
static void bound_like_borders(const struct oct_trace *trace, const struct oct_traced *result)
{
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float *upper = &result->quality[OCT_LAYER_IPL_INL][j];
        float *lower = &result->quality[OCT_LAYER_OPL_ONL][j];
        const float between = result->quality[OCT_LAYER_INL_OPL][j], was = *upper;

        *upper = fminf(*upper, LIKE_GAIN * fmaxf(between, *lower));
        *lower = fminf(*lower, LIKE_GAIN * fmaxf(between, was));
    }
}

void oct_trace_judge(struct oct_trace *trace, const struct oct_traced *result)
{
    const float noise = segment_noise(trace), *ilm = trace->path[OCT_LAYER_ILM];

    judge_region(trace, noise, trace->region);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        float *quality = result->quality[layer];
        judge_layer(trace, layer, noise, trace->region, quality);
        for (uint32_t j = 0; layer > 0 && j < trace->setup.n_lines; j++)
            if (trace->path[layer][j] <= ilm[j]) /* in the pit it is the ILM */
                quality[j] = result->quality[OCT_LAYER_ILM][j];
    }
    bound_like_borders(trace, result);
    bound_inner_layers(trace, result);
    leave_out_disc(trace, result);
}
