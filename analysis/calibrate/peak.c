#include "analysis/calibrate/peak.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define HALF_KERNEL 16 /* pixels to each side */
#define GOLDEN 0.61803398874989485
#define TOP_STEPS 40  /* of the golden section: 2 px to 1e-8 */
#define EDGE_STEPS 30 /* of the bisection: 1 px to 1e-9 */
#define LOBE_STEP_PX 0.25
#define CURVE_FLOOR 1e-5    /* of the top: the curve's error is below a tenth of that */
#define LEAST_CLEAR_PX 16.0 /* from the top; noise is measured farther away than that .. */
#define CLEAR_WIDTHS 8.0    /* .. and than so many widths */
#define LEAST_NOISE_PIXELS 8u

const struct oct_peak_search oct_peak_standard = {
    .first_px = OCT_PEAK_FIRST_PX, .n_lines = 1, .min_snr_db = OCT_PEAK_MIN_SNR_DB};

struct line {
    const float *value;
    int depth, first;
};

static double pixel(const struct line *line, int d)
{
    d = d < 0 ? 0 : d >= line->depth ? line->depth - 1 : d;
    return (double)line->value[d];
}

/* Blackman's and Harris's of four terms, by Chebyshev's polynomials: c is the cosine. */
static double window(double c)
{
    const double c2 = 2 * c * c - 1;
    return 0.35875 + 0.48829 * c + 0.14128 * c2 + 0.01168 * c * (2 * c2 - 1);
}

/* The curve at x: sinc under that window, its sum made 1. */
static double curve(const struct line *line, double x)
{
    const int from = (int)floor(x) - HALF_KERNEL + 1;
    double sum = 0, total = 0;
    for (int d = from; d < from + 2 * HALF_KERNEL; d++) {
        const double u = x - d, a = PI * u / HALF_KERNEL;
        if (fabs(u) < 1e-9)
            return pixel(line, d);
        /* sin(pi u) alternates from pixel to pixel: its size is common to all and cancels. */
        const double w = ((d - from) % 2 ? -1 : 1) / u * window(cos(a));
        sum += w * pixel(line, d);
        total += w;
    }
    return sum / total;
}

/* The top of the curve within a pixel of a local maximum, by golden section. */
static double top_near(const struct line *line, int d, double *top)
{
    double lo = d - 1, hi = d + 1;
    double a = hi - GOLDEN * (hi - lo), b = lo + GOLDEN * (hi - lo);
    double at_a = curve(line, a), at_b = curve(line, b);
    for (int i = 0; i < TOP_STEPS; i++) {
        if (at_a >= at_b) {
            hi = b;
            b = a;
            at_b = at_a;
            at_a = curve(line, a = hi - GOLDEN * (hi - lo));
        } else {
            lo = a;
            a = b;
            at_a = at_b;
            at_b = curve(line, b = lo + GOLDEN * (hi - lo));
        }
    }
    *top = fmax(at_a, at_b);
    return (lo + hi) / 2;
}

/* Where the curve falls to the level, from the top towards `step`; NaN: beyond the A-line. */
static double edge(const struct line *line, double from, double level, int step)
{
    int d = (int)(step > 0 ? ceil(from) : floor(from));
    double in = from, out;
    for (; d >= 0 && d < line->depth && pixel(line, d) > level; d += step)
        in = d;
    if (d < 0 || d >= line->depth)
        return NAN;
    out = d;
    for (int i = 0; i < EDGE_STEPS; i++) {
        const double middle = (in + out) / 2;
        *(curve(line, middle) > level ? &in : &out) = middle;
    }
    return (in + out) / 2;
}

static bool is_below(const struct line *line, int d, float v, double from, double to)
{
    return (d >= from && d <= to) || line->value[d] < v;
}

/* The brightest local maximum from `first` on outside [from, to], of which the pixels inside count
 * as dark; -1: there is none. */
static int brightest(const struct line *line, double from, double to)
{
    int best = -1;
    for (int d = line->first > 1 ? line->first : 1; d < line->depth - 1; d++) {
        const float v = line->value[d];
        if ((best >= 0 && v <= line->value[best]) || (d >= from && d <= to))
            continue;
        const bool rises = is_below(line, d - 1, v, from, to) || line->value[d - 1] == v;
        if (rises && is_below(line, d + 1, v, from, to))
            best = d;
    }
    return best;
}

/* The first local minimum outside the half width: of the curve in steps between the pixels, since a
 * null may lie between two, and of the pixels alone where the curve's own error matters. */
static double lobe_end(const struct line *line, double edge_px, double top, int side)
{
    double x = edge_px, value = curve(line, x);
    while (x > line->first && x < line->depth - 1 && value > CURVE_FLOOR * top) {
        const double next = curve(line, x + side * LOBE_STEP_PX);
        if (!(next < value))
            return x;
        value = next;
        x += side * LOBE_STEP_PX;
    }
    int d = (int)(side > 0 ? ceil(x) : floor(x));
    while (d + side >= 0 && d + side < line->depth && pixel(line, d + side) < pixel(line, d))
        d += side;
    return d;
}

/* ---- noise ---- */

/* How many of the values' bits, without the sign, are `bits` at most. */
static uint32_t count_to(const float *value, int n, uint32_t bits)
{
    uint32_t count = 0;
    for (int i = 0; i < n; i++) {
        uint32_t own;
        memcpy(&own, &value[i], sizeof(own));
        count += (own & 0x7fffffffu) <= bits;
    }
    return count;
}

/* The median of the pixels from `first` on outside [from, to], without memory: floats that are not
 * negative have the order of their bits. NaN: there are too few. */
static double median(const struct line *line, double from, double to)
{
    const double last = line->depth;
    const int before = (int)fmin(fmax(from, line->first), last);
    const int after = (int)fmin(fmax(to + 1, before), last);
    const int n_before = before - line->first, n_after = line->depth - after;
    const uint32_t n = (uint32_t)(n_before + n_after);
    if (n < LEAST_NOISE_PIXELS)
        return NAN;
    uint32_t lo = 0, hi = 0x7f7fffffu; /* the largest float */
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        const uint32_t count = count_to(line->value + line->first, n_before, middle) +
                               count_to(line->value + after, n_after, middle);
        if (2 * count >= n)
            hi = middle;
        else
            lo = middle + 1;
    }
    float value;
    memcpy(&value, &lo, sizeof(value));
    return (double)value;
}

static double noise_power(const struct line *line, double from, double to, uint32_t n_lines)
{
    const double below = n_lines > 1 ? pow(1 - 1 / (9.0 * n_lines), 3) : log(2);
    return median(line, from, to) / below;
}

/* ---- what follows from the peak ---- */

static double db(double ratio)
{
    return 10 * log10(ratio);
}

/* Noise alone is seldom above: four and a half deviations and the exponential tail. On the peak's
 * flank it adds to an amplitude that may be as large as its own. */
static double highest_noise(const struct oct_peak *peak, double at_px, uint32_t n_lines)
{
    const double alone = peak->floor * (1 + 4.5 / sqrt(n_lines) + 7.0 / n_lines);
    const double lobe_px = peak->lobe_last_px - peak->lobe_first_px;
    return fabs(at_px - peak->depth_px) < lobe_px ? 4 * alone : alone;
}

static void judge_rest(struct oct_peak *peak, const struct line *line, uint32_t n_lines)
{
    const double from = lobe_end(line, peak->left_px, peak->top, -1);
    const double to = lobe_end(line, peak->right_px, peak->top, 1);
    const int side = brightest(line, from, to);
    double lobe = 0, all = 0;
    peak->lobe_first_px = from;
    peak->lobe_last_px = to;
    peak->dynamic_range_db = peak->snr_db;
    if (side >= 0) {
        double top;
        peak->side_lobe_px = top_near(line, side, &top);
        top = fmax(top, pixel(line, side));
        peak->side_lobe_stands_out = top > highest_noise(peak, side, n_lines);
        if (top > 0)
            peak->side_lobe_db = db(top / peak->top);
        if (peak->side_lobe_stands_out)
            peak->dynamic_range_db = -peak->side_lobe_db;
    }
    for (int d = line->first; d < line->depth; d++) {
        const double above = pixel(line, d) - peak->floor;
        all += above;
        lobe += d >= from && d <= to ? above : 0;
    }
    peak->share = all > 0 ? fmin(fmax(lobe / all, 0), 1) : lobe > 0;
}

static enum oct_peak_state measure(struct oct_peak *peak, const struct line *line,
                                   const struct oct_peak_search *search)
{
    const uint32_t n_lines = search->n_lines ? search->n_lines : 1;
    const int best = brightest(line, INFINITY, INFINITY);
    /* The noise around a first, rough width is what the level of the halves stands on. */
    peak->floor = noise_power(line, best - LEAST_CLEAR_PX, best + LEAST_CLEAR_PX, n_lines);
    if (best < 0 || !(pixel(line, best) > 0))
        return OCT_PEAK_WEAK;
    double top;
    const double summit = top_near(line, best, &top);
    peak->depth_px = summit;
    peak->top = top;
    for (int pass = 0; pass < 2; pass++) {
        if (isnan(peak->floor))
            return OCT_PEAK_AT_END;
        const double level = peak->floor + (top - peak->floor) / 2;
        peak->snr_db = db(top / peak->floor);
        if (!(peak->snr_db >= search->min_snr_db))
            return OCT_PEAK_WEAK;
        const double left = edge(line, summit, level, -1);
        const double right = edge(line, summit, level, 1);
        if (isnan(left) || isnan(right))
            return OCT_PEAK_AT_END;
        const double clear = fmax(CLEAR_WIDTHS * (right - left), LEAST_CLEAR_PX);
        const double noise = noise_power(line, summit - clear, summit + clear, n_lines);
        peak->left_px = left;
        peak->right_px = right;
        peak->fwhm_px = right - left;
        peak->floor = isnan(noise) ? peak->floor : noise;
    }
    peak->depth_px = (peak->left_px + peak->right_px) / 2;
    peak->snr_db = db(top / peak->floor);
    judge_rest(peak, line, n_lines);
    return OCT_PEAK_FOUND;
}

static bool are_numbers(const float *intensity, uint32_t depth)
{
    for (uint32_t d = 0; d < depth; d++)
        if (!(intensity[d] >= 0 && isfinite(intensity[d])))
            return false;
    return true;
}

enum oct_peak_state oct_peak_find(struct oct_peak *peak, const float *intensity, uint32_t depth,
                                  const struct oct_peak_search *search)
{
    search = search ? search : &oct_peak_standard;
    *peak = (struct oct_peak){.state = OCT_PEAK_NO_NUMBERS,
                              .depth_px = NAN,
                              .top = NAN,
                              .fwhm_px = NAN,
                              .left_px = NAN,
                              .right_px = NAN,
                              .lobe_first_px = NAN,
                              .lobe_last_px = NAN,
                              .floor = NAN,
                              .snr_db = NAN,
                              .side_lobe_db = NAN,
                              .side_lobe_px = NAN,
                              .dynamic_range_db = NAN,
                              .share = NAN};
    if (depth < OCT_PEAK_LEAST_DEPTH || depth > INT32_MAX / 2 ||
        search->first_px > depth - OCT_PEAK_LEAST_DEPTH / 2 || !are_numbers(intensity, depth))
        return peak->state;
    const struct line line = {
        .value = intensity, .depth = (int)depth, .first = (int)search->first_px};
    peak->state = measure(peak, &line, search);
    if (peak->state != OCT_PEAK_FOUND)
        peak->fwhm_px = peak->left_px = peak->right_px = NAN;
    return peak->state;
}

const char *oct_peak_state_text(enum oct_peak_state state)
{
    switch (state) {
    case OCT_PEAK_FOUND:
        return "found";
    case OCT_PEAK_WEAK:
        return "no peak";
    case OCT_PEAK_AT_END:
        return "at the end of the A-line";
    case OCT_PEAK_NO_NUMBERS:
        break;
    }
    return "no numbers";
}
