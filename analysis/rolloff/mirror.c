#include "analysis/rolloff/mirror.h"

#include "analysis/calibrate/peak.h"
#include "numeric/order.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GROUPS 8u
#define LEAST_LINES 8u        /* of a group, where there are as many */
#define HARMONIC_DB (-35.0)   /* a camera cut off by a twentieth makes as much */
#define MISSING_POWER 1.5e-12 /* counts^2: -120 dB, and what rounding adds */

const char *const oct_mirror_state_names[OCT_MIRROR_N_STATES] = {
    [OCT_MIRROR_FOUND] = "mirror",      [OCT_MIRROR_WEAK] = "weak",
    [OCT_MIRROR_AT_END] = "at_end",     [OCT_MIRROR_MANY] = "many",
    [OCT_MIRROR_HARMONIC] = "harmonic", [OCT_MIRROR_MISSING] = "missing",
};

static double db(double ratio)
{
    return 10 * log10(ratio);
}

/* ---- the mean A-line of a group ---- */

/* Makes intensities of an A-line; false: it is missing, or holds what is no number. */
static bool take_line(const struct oct_mirror_setup *s, const float *values, float *line)
{
    const float octaves_per_db = 0.33219280948873623f;
    float most = 0;
    if (s->is_db)
        for (uint32_t d = 0; d < s->depth; d++)
            line[d] = exp2f(values[d] * octaves_per_db);
    else
        memcpy(line, values, s->depth * sizeof(*line));
    for (uint32_t d = 0; d < s->depth; d++) {
        if (!(line[d] >= 0 && isfinite(line[d])))
            return false;
        most = line[d] > most ? line[d] : most;
    }
    return (double)most > MISSING_POWER;
}

/* Returns how many of the A-lines are in the mean, which replaces `line`. */
static uint32_t average(const struct oct_mirror_setup *s, const float *values, uint32_t first,
                        uint32_t last, double *sums, float *line)
{
    uint32_t n = 0;
    memset(sums, 0, s->depth * sizeof(*sums));
    for (uint32_t j = first; j < last; j++) {
        if (!take_line(s, values + (size_t)j * s->depth, line))
            continue;
        n++;
        for (uint32_t d = 0; d < s->depth; d++)
            sums[d] += (double)line[d];
    }
    for (uint32_t d = 0; d < s->depth && n > 0; d++)
        line[d] = (float)(sums[d] / n);
    return n;
}

/* ---- one group ---- */

static bool is_harmonic(const struct oct_peak *p, double crop_first)
{
    const double depth = p->depth_px + crop_first, side = p->side_lobe_px + crop_first;
    if (!p->side_lobe_stands_out || p->side_lobe_db < HARMONIC_DB)
        return false;
    for (int times = 2; times <= 3; times++)
        if (fabs(side - times * depth) < times * p->fwhm_px)
            return true;
    return false;
}

static enum oct_mirror_state judge(const struct oct_peak *p, const struct oct_mirror_setup *s)
{
    if (p->state != OCT_PEAK_FOUND)
        return p->state == OCT_PEAK_AT_END ? OCT_MIRROR_AT_END : OCT_MIRROR_WEAK;
    if (is_harmonic(p, s->crop_first))
        return OCT_MIRROR_HARMONIC;
    return p->share < OCT_PEAK_MIRROR_SHARE ? OCT_MIRROR_MANY : OCT_MIRROR_FOUND;
}

/* ---- all groups ---- */

/* Of the member at `offset` of n peaks, without NaN; NaN where half of them have none. */
static double median(const struct oct_peak *peaks, unsigned n, size_t offset)
{
    double values[MOST_GROUPS];
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++) {
        memcpy(&values[m], (const unsigned char *)&peaks[i] + offset, sizeof(*values));
        m += isnan(values[m]) ? 0 : 1;
    }
    return 2 * m < n ? NAN : oct_doubles_median(values, m);
}

#define MEDIAN(member) median(peaks, n, offsetof(struct oct_peak, member))

static void combine(struct oct_mirror *mirror, struct oct_peak *peaks, unsigned n)
{
    double least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < n; i++) {
        least = fmin(least, peaks[i].depth_px);
        most = fmax(most, peaks[i].depth_px);
        if (!peaks[i].side_lobe_stands_out)
            peaks[i].side_lobe_db = peaks[i].side_lobe_px = NAN;
    }
    mirror->depth_px = MEDIAN(depth_px);
    mirror->peak_db = db(MEDIAN(top));
    mirror->noise_db = db(MEDIAN(floor));
    mirror->fwhm_px = MEDIAN(fwhm_px);
    mirror->snr_db = MEDIAN(snr_db);
    mirror->side_lobe_db = MEDIAN(side_lobe_db);
    mirror->side_lobe_px = MEDIAN(side_lobe_px);
    mirror->dynamic_range_db = MEDIAN(dynamic_range_db);
    mirror->tilt_px = most - least;
}

/* FOUND where half of the groups agree, else what most of them say. */
static enum oct_mirror_state vote(const unsigned counts[OCT_MIRROR_N_STATES], unsigned n_groups)
{
    enum oct_mirror_state most = OCT_MIRROR_WEAK;
    if (2 * counts[OCT_MIRROR_MISSING] > n_groups)
        return OCT_MIRROR_MISSING;
    if (2 * counts[OCT_MIRROR_FOUND] >= n_groups - counts[OCT_MIRROR_MISSING])
        return OCT_MIRROR_FOUND;
    for (int i = OCT_MIRROR_WEAK; i < OCT_MIRROR_N_STATES; i++)
        if (i != OCT_MIRROR_MISSING && counts[i] > counts[most])
            most = (enum oct_mirror_state)i;
    return most;
}

void oct_mirror_measure(struct oct_mirror *mirror, const struct oct_mirror_setup *setup,
                        const float *values, double *sums, float *line)
{
    struct oct_peak peaks[MOST_GROUPS];
    unsigned n = 0, counts[OCT_MIRROR_N_STATES] = {0};
    uint32_t n_groups = setup->n_lines / LEAST_LINES;
    n_groups = n_groups < 1 ? 1 : n_groups > MOST_GROUPS ? MOST_GROUPS : n_groups;
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t first = (uint32_t)((uint64_t)setup->n_lines * g / n_groups);
        const uint32_t last = (uint32_t)((uint64_t)setup->n_lines * (g + 1) / n_groups);
        const uint32_t n_came = average(setup, values, first, last, sums, line);
        enum oct_mirror_state state = OCT_MIRROR_MISSING;
        if (n_came > 0 && 2 * n_came >= last - first) {
            const struct oct_peak_search search = {setup->first_px, n_came, setup->min_snr_db};
            oct_peak_find(&peaks[n], line, setup->depth, &search);
            state = judge(&peaks[n], setup);
            n += state == OCT_MIRROR_FOUND;
        }
        counts[state]++;
    }
    *mirror =
        (struct oct_mirror){vote(counts, n_groups), NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (mirror->state == OCT_MIRROR_FOUND)
        combine(mirror, peaks, n);
}
