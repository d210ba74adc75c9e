#include "analysis/calibrate/fringe.h"

#include "kernels/device/fftw_planner.h"
#include "numeric/order.h"

#include <complex.h> /* before fftw3.h: its complex is the language's */
#include <fftw3.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define LEAST_FULL_SCALE 255u /* a maximum of 2^b - 1, from here on, is one */
#define MOST_SATURATED 1e-3   /* of all samples */
#define DC_CYCLES 8.0         /* over the camera: the source has these in any case */
#define MAIN_SHARE 0.03       /* of the peak's power: the fringe's own interval */
#define BAND_SHARE 1e-4       /* ... and its band, where noise does not hide it */
#define GAP_CYCLES 4.0        /* a dip of the interval so narrow is the source's shape */
#define TOGETHER 0.6          /* correlation of two envelopes */
#define NYQUIST_SHARE 0.03    /* of the peak's power in the last part of the spectrum */
#define NYQUIST_PART 0.015
#define VARYING_SHARE 0.1 /* of the fringe's power must vary to be taken for all of it */
#define SLOW_SHARE 0.003  /* of the source's power varies: more than a source flickers */
#define NOISE_SHARE 0.1   /* of the envelope's square */
#define DARK_SHARE 1e-4   /* of its largest: darker samples have no weight */
#define LEAST_SIGMA 0.3   /* of a Gaussian; less does not smooth */
#define REACH 4.0         /* standard deviations */

/* What the steps share. P points of transform, P/2 + 1 bins; bin b has b N / P cycles. */
struct finder {
    struct oct_fringe *fringe;
    const uint16_t *lines;
    const double *background;
    uint32_t n_lines, n, p, n_bins, dc_least; /* dc_least: bin of DC_CYCLES */
    double a_cycle;                           /* bins */
    fftw_plan forward, backward;              /* line to bins, full to full */
    double *line;                             /* [P] */
    double complex *bins, *full;              /* [P/2 + 1], [P] */
    double complex *sum, *last;               /* [P/2 + 1] the average, and the one before */
    double *power;                            /* [P/2 + 1] what the fringe is looked for in */
    double *raw, *scratch;                    /* [P/2 + 1] */
    double floor, peak;                       /* of `power` */
    uint32_t peak_bin, dc_bin;
    bool varies_slowly;             /* as a fringe at depth zero does */
    uint32_t main_first, main_last; /* bins of the fringe's own interval */
    uint32_t band_first, band_last;
};

/* ---- life ---- */

void oct_fringe_finish(struct oct_fringe *f)
{
    free(f->source); /* owns all arrays */
    *f = (struct oct_fringe){.n_samples = 0};
}

static bool fringe_has_memory(struct oct_fringe *f, uint32_t n_samples, uint32_t n_lines)
{
    double **const arrays[] = {&f->source,   &f->mean,   &f->re,      &f->im,        &f->phase,
                               &f->envelope, &f->weight, &f->average, &f->background};
    const size_t n = n_samples, n_arrays = sizeof(arrays) / sizeof(*arrays);
    double *all = calloc(n_arrays * n, sizeof(*all));
    *f = (struct oct_fringe){.n_samples = n_samples, .n_lines = n_lines};
    for (size_t i = 0; i < n_arrays && all; i++)
        *arrays[i] = all + i * n;
    return all;
}

static bool finder_alloc(struct finder *s)
{
    s->p = 256;
    while (s->p < 2 * s->n)
        s->p *= 2;
    s->n_bins = s->p / 2 + 1;
    s->a_cycle = (double)s->p / s->n;
    s->dc_least = (uint32_t)(DC_CYCLES * s->a_cycle);
    s->line = fftw_alloc_real(s->p);
    s->full = fftw_alloc_complex(s->p);
    s->bins = fftw_alloc_complex(3 * (size_t)s->n_bins);
    s->power = calloc(3 * (size_t)s->n_bins, sizeof(double));
    if (!s->line || !s->bins || !s->full || !s->power)
        return false;
    s->sum = s->bins + s->n_bins;
    s->last = s->sum + s->n_bins;
    s->raw = s->power + s->n_bins;
    s->scratch = s->raw + s->n_bins;
    oct_fftw_planner_lock();
    s->forward = fftw_plan_dft_r2c_1d((int)s->p, s->line, s->bins, FFTW_ESTIMATE);
    s->backward = fftw_plan_dft_1d((int)s->p, s->full, s->full, FFTW_BACKWARD, FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return s->forward && s->backward;
}

static void finder_finish(struct finder *s)
{
    oct_fftw_planner_lock();
    fftw_destroy_plan(s->forward); /* NULL is fine */
    fftw_destroy_plan(s->backward);
    oct_fftw_planner_unlock();
    fftw_free(s->line);
    fftw_free(s->full);
    fftw_free(s->bins); /* owns sum and last */
    free(s->power);     /* owns raw and scratch */
}

/* ---- saturation ---- */

static enum oct_err fringe_fault(struct finder *s, enum oct_fringe_fault which)
{
    s->fringe->fault = which;
    return OCT_E_FORMAT;
}

static enum oct_err check_saturation(struct finder *s, unsigned bits, struct oct_error *err)
{
    const size_t n = (size_t)s->n_lines * s->n;
    const uint32_t full = (1u << bits) - 1;
    uint32_t most = 0;
    size_t n_full = 0;
    for (size_t i = 0; i < n; i++)
        most = s->lines[i] > most ? s->lines[i] : most;
    if (most < full && (most < LEAST_FULL_SCALE || (most & (most + 1)) != 0))
        return OCT_OK;
    for (size_t i = 0; i < n; i++)
        n_full += s->lines[i] == most;
    if ((double)n_full < MOST_SATURATED * (double)n)
        return OCT_OK;
    return oct_fail(err, fringe_fault(s, OCT_FRINGE_SATURATED),
                    "saturated: %.2g %% of its samples are at %u counts; take it again with less "
                    "light or a shorter exposure",
                    100 * (double)n_full / (double)n, most);
}

/* ---- detect ---- */

static double sample(const struct finder *s, uint32_t line, uint32_t i)
{
    const double counts = s->lines[(size_t)line * s->n + i];
    return s->background ? counts - s->background[i] : counts;
}

static double hann(uint32_t i, uint32_t n)
{
    return 0.5 - 0.5 * cos(2 * PI * (i + 0.5) / n);
}

static double norm2(double complex z)
{
    return creal(z) * creal(z) + cimag(z) * cimag(z);
}

/* The spectrum of one line under Hann's window, its mean taken off. */
static void transform_windowed(struct finder *s, uint32_t line)
{
    double mean = 0, weight = 0;
    memset(s->line, 0, s->p * sizeof(double));
    for (uint32_t i = 0; i < s->n; i++) {
        mean += hann(i, s->n) * sample(s, line, i);
        weight += hann(i, s->n);
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->line[i] = hann(i, s->n) * (sample(s, line, i) - mean / weight);
    fftw_execute(s->forward);
}

static void smooth_bins(struct finder *s, double *power)
{
    const uint32_t half = (uint32_t)ceil(s->a_cycle / 2);
    memcpy(s->scratch, power, s->n_bins * sizeof(double));
    for (uint32_t b = 0; b < s->n_bins; b++) {
        const uint32_t from = b > half ? b - half : 0;
        const uint32_t to = b + half < s->n_bins ? b + half : s->n_bins - 1;
        double sum = 0;
        for (uint32_t k = from; k <= to; k++)
            sum += s->scratch[k];
        power[b] = sum / (to - from + 1);
    }
}

/* The lower quartile from the source's bins on: a fringe fills less than three quarters. */
static double floor_of(struct finder *s, const double *power)
{
    const uint32_t n = s->n_bins - s->dc_least;
    memcpy(s->scratch, power + s->dc_least, n * sizeof(double));
    oct_doubles_sort(s->scratch, n);
    return fmax(s->scratch[n / 4], 1e-30);
}

static uint32_t largest_bin(const double *power, uint32_t from, uint32_t end)
{
    uint32_t at = from;
    for (uint32_t b = from; b < end; b++)
        if (power[b] > power[at])
            at = b;
    return at;
}

/* Where the source's own spectrum ends: the minimum after which power rises fourfold, or where it
 * has sunk into the floor. The lines' means are gone: from the source's highest bin on. */
static uint32_t end_of_dc(const struct finder *s, const double *power, double floor)
{
    uint32_t least = largest_bin(power, 0, s->dc_least);
    for (uint32_t b = least + 1; b < s->n_bins; b++) {
        if (power[b] < power[least])
            least = b;
        if (power[b] > 4 * power[least] || power[least] <= 2 * floor)
            break;
    }
    return least > s->dc_least ? least : s->dc_least;
}

/* Power of the lines, and of what varies from line to line. */
static void measure_power(struct finder *s)
{
    const double n = s->n_lines;
    memset(s->sum, 0, s->n_bins * sizeof(*s->sum));
    for (uint32_t j = 0; j < s->n_lines; j++) {
        transform_windowed(s, j);
        for (uint32_t b = 0; b < s->n_bins; b++) {
            s->raw[b] += norm2(s->bins[b]) / n;
            s->sum[b] += s->bins[b] / n;
        }
    }
    for (uint32_t b = 0; b < s->n_bins; b++)
        s->power[b] = n > 1 ? fmax(0, s->raw[b] - norm2(s->sum[b])) * n / (n - 1) : 0;
    smooth_bins(s, s->raw);
    smooth_bins(s, s->power);
}

/* Whether what varies does so slowly over the camera. */
static bool is_slow(struct finder *s)
{
    double varying = 0, all = 0;
    for (uint32_t b = 0; b < s->dc_least; b++) {
        varying += s->power[b];
        all += s->raw[b];
    }
    return varying > SLOW_SHARE * all && varying > 20 * floor_of(s, s->power) * s->dc_least;
}

/* Decides which of the two the fringe is looked for in. */
static void choose_power(struct finder *s)
{
    s->varies_slowly = is_slow(s);
    const uint32_t dc = end_of_dc(s, s->raw, floor_of(s, s->raw));
    const double raw_peak = s->raw[largest_bin(s->raw, dc, s->n_bins)];
    s->dc_bin = s->dc_least;
    if (s->n_lines < 4 ||
        s->power[largest_bin(s->power, s->dc_bin, s->n_bins)] < VARYING_SHARE * raw_peak) {
        memcpy(s->power, s->raw, s->n_bins * sizeof(double));
        s->dc_bin = dc;
    }
    s->floor = floor_of(s, s->power);
    s->peak_bin = largest_bin(s->power, s->dc_bin, s->n_bins);
    s->peak = s->power[s->peak_bin];
    s->fringe->contrast_db = 10 * log10(s->peak / s->floor);
}

/* From bin `at` to both sides while power is above `least`, over gaps of a few cycles. */
static void interval(const struct finder *s, uint32_t at, double least, uint32_t *first,
                     uint32_t *last)
{
    const uint32_t gap = (uint32_t)(GAP_CYCLES * s->a_cycle);
    *first = *last = at;
    for (uint32_t b = at; b > s->dc_bin && *first - b <= gap; b--)
        if (s->power[b - 1] > least)
            *first = b - 1;
    for (uint32_t b = at; b + 1 < s->n_bins && b - *last <= gap; b++)
        if (s->power[b + 1] > least)
            *last = b + 1;
}

/* A part of the spectrum, and its power. */
struct part {
    uint32_t first, last;
    double power;
};

/* That about bin `at`: a deep fringe is broader and lower than a shallow one as strong. */
static struct part part_about(const struct finder *s, uint32_t at)
{
    struct part part = {.power = 0};
    interval(s, at, fmax(0.1 * s->power[at], 2 * s->floor), &part.first, &part.last);
    for (uint32_t b = part.first; b <= part.last; b++)
        part.power += s->power[b];
    return part;
}

/* |the first line, of this part of the spectrum alone|, over the camera: [N]. */
static void part_envelope(struct finder *s, const struct part *part, double *envelope)
{
    transform_windowed(s, 0);
    memset(s->full, 0, s->p * sizeof(*s->full));
    memcpy(s->full + part->first, s->bins + part->first,
           (part->last + 1 - part->first) * sizeof(*s->full));
    fftw_execute(s->backward);
    for (uint32_t i = 0; i < s->n; i++)
        envelope[i] = sqrt(norm2(s->full[i]));
}

/* Whether both parts come from the same camera samples. Of one chirped fringe each frequency has
 * its own, and a source with two humps makes two parts of one fringe. */
static bool stand_together(struct finder *s, const struct part *a, const struct part *b)
{
    double *x = s->fringe->re, *y = s->fringe->im; /* not filled yet */
    double xx = 0, xy = 0, yy = 0;
    part_envelope(s, a, x);
    part_envelope(s, b, y);
    for (uint32_t i = 0; i < s->n; i++) {
        xx += x[i] * x[i];
        xy += x[i] * y[i];
        yy += y[i] * y[i];
    }
    return xy > TOGETHER * sqrt(xx * yy);
}

/* Outward from bin b: where the fringe's flank ends, the minimum before power rises fourfold. */
static uint32_t end_of_flank(const struct finder *s, uint32_t b, int step)
{
    uint32_t least = b;
    while (b > s->dc_bin && b + 1 < s->n_bins && s->power[b] <= 4 * s->power[least]) {
        if (s->power[b] < s->power[least])
            least = b;
        b = step > 0 ? b + 1 : b - 1;
    }
    return least;
}

static bool is_harmonic(const struct finder *s, uint32_t b, unsigned h)
{
    return b >= 0.95 * h * s->main_first && b <= 1.05 * h * s->main_last;
}

/* The largest power outside the fringe's own interval with its flanks, and its harmonics; n_bins:
 * there is none. */
static uint32_t second_bin(const struct finder *s)
{
    const uint32_t first = end_of_flank(s, s->main_first, -1),
                   last = end_of_flank(s, s->main_last, 1);
    uint32_t at = s->n_bins;
    for (uint32_t b = s->dc_bin + 1; b < s->n_bins; b++)
        if ((b < first || b > last) && !is_harmonic(s, b, 2) && !is_harmonic(s, b, 3) &&
            (at == s->n_bins || s->power[b] > s->power[at]))
            at = b;
    return at;
}

static enum oct_err check_second(struct finder *s, struct oct_error *err)
{
    const uint32_t second = second_bin(s);
    if (second == s->n_bins || s->power[second] <= 10 * s->floor)
        return OCT_OK;
    const struct part main = part_about(s, s->peak_bin), other = part_about(s, second);
    const bool apart = other.first > main.last || other.last < main.first;
    const double db = 10 * log10(other.power / main.power);
    if (!apart || db < OCT_FRINGE_SECOND_DB || !stand_together(s, &main, &other))
        return OCT_OK;
    return oct_fail(err, fringe_fault(s, OCT_FRINGE_TWO),
                    "two fringes: of %.0f and %.0f cycles over the camera, %.1f dB between them; "
                    "block the second reflector",
                    s->peak_bin / s->a_cycle, second / s->a_cycle, fabs(db));
}

/* What the spectrum's shape says against the recording. */
static enum oct_err check_spectrum(struct finder *s, struct oct_error *err)
{
    struct oct_fringe *f = s->fringe;
    interval(s, s->peak_bin, fmax(MAIN_SHARE * s->peak, 2 * s->floor), &s->main_first,
             &s->main_last);
    f->cycles = 0.5 * (s->main_first + s->main_last) / s->a_cycle;
    if (f->contrast_db < OCT_FRINGE_LEAST_CONTRAST_DB && !s->varies_slowly)
        return oct_fail(
            err, fringe_fault(s, OCT_FRINGE_NONE),
            "no fringe: nothing is %.0f dB above the noise of its spectrum (the most is "
            "%.1f dB); is the mirror in place, and neither at zero delay nor too "
            "deep?",
            OCT_FRINGE_LEAST_CONTRAST_DB, f->contrast_db);
    if (f->contrast_db < OCT_FRINGE_LEAST_CONTRAST_DB || f->cycles < OCT_FRINGE_LEAST_CYCLES ||
        s->peak_bin <= s->dc_bin + 1)
        return oct_fail(err, fringe_fault(s, OCT_FRINGE_SLOW),
                        "depth zero: its fringe has less than the %.0f cycles over the camera that "
                        "separate it from the source; move the mirror away from zero delay",
                        OCT_FRINGE_LEAST_CYCLES);
    const uint32_t tail = (uint32_t)((1 - NYQUIST_PART) * s->n_bins);
    const double at_end = s->power[largest_bin(s->power, tail, s->n_bins)];
    if (at_end > fmax(NYQUIST_SHARE * s->peak, 10 * s->floor))
        return oct_fail(
            err, fringe_fault(s, OCT_FRINGE_ALIASED),
            "fringe beyond Nyquist: it has more than half a cycle a sample in a part of "
            "the camera; move the mirror closer to zero delay");
    return check_second(s, err);
}

/* The band: where the fringe is seen, and a third more to both sides. */
static void choose_band(struct finder *s)
{
    uint32_t first, last;
    interval(s, s->peak_bin, fmax(BAND_SHARE * s->peak, 2 * s->floor), &first, &last);
    const uint32_t more = (uint32_t)((last - first) / 3.0 + 8 * s->a_cycle);
    s->band_first = first > s->dc_bin + more ? first - more : s->dc_bin;
    s->band_last = last + more < s->n_bins - 1 ? last + more : s->n_bins - 2;
}

/* ---- average ---- */

/* out[i] = sum_j g(i - j) in[j] / sum_j g(i - j), j over the n values there are, g of standard
 * deviation sigma; not in place. sigma below 0.3: a copy. g: room for n + 1. */
static void smooth_line(const double *in, double *out, uint32_t n, double sigma, double *g)
{
    const uint32_t half = sigma >= LEAST_SIGMA ? (uint32_t)fmin(n, ceil(REACH * sigma)) : 0;
    g[0] = 1;
    for (uint32_t d = 1; d <= half; d++)
        g[d] = exp(-0.5 * (d / sigma) * (d / sigma));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = i > half ? i - half : 0, to = i + half < n ? i + half : n - 1;
        double sum = 0, all = 0;
        for (uint32_t j = from; j <= to; j++) {
            const double w = g[j > i ? j - i : i - j];
            sum += w * in[j];
            all += w;
        }
        out[i] = sum / all;
    }
}

/* The mean line, and the source: the mean line without what is as quick as the fringe. */
static void find_source(struct finder *s)
{
    struct oct_fringe *f = s->fringe;
    const double slowest = s->main_first / (double)s->p; /* cycles a sample */
    for (uint32_t j = 0; j < s->n_lines; j++)
        for (uint32_t i = 0; i < s->n; i++)
            f->mean[i] += sample(s, j, i) / s->n_lines;
    smooth_line(f->mean, f->source, s->n, 3 / (2 * PI * slowest), s->line);
    for (uint32_t i = 0; i < s->n; i++)
        f->background[i] = f->source[i] + (s->background ? s->background[i] : 0);
}

static void transform_line(struct finder *s, uint32_t line)
{
    memset(s->line, 0, s->p * sizeof(double));
    for (uint32_t i = 0; i < s->n; i++)
        s->line[i] = sample(s, line, i) - s->fringe->source[i];
    fftw_execute(s->forward);
}

/* The average over all lines, each turned so that it agrees with the one before. Returns what the
 * average holds of the band's power. */
static double average_turned(struct finder *s)
{
    double all = 0, kept = 0;
    memcpy(s->last, s->sum, s->n_bins * sizeof(*s->sum));
    memset(s->sum, 0, s->n_bins * sizeof(*s->sum));
    for (uint32_t j = 0; j < s->n_lines; j++) {
        double complex product = 0;
        transform_line(s, j);
        for (uint32_t b = s->band_first; b <= s->band_last; b++) {
            product += s->bins[b] * conj(s->last[b]);
            all += norm2(s->bins[b]);
        }
        const double size = cabs(product);
        const double complex turn = size > 0 ? product / size : 1;
        for (uint32_t b = 0; b < s->n_bins; b++)
            s->sum[b] += s->bins[b] * conj(turn) / s->n_lines;
    }
    for (uint32_t b = s->band_first; b <= s->band_last; b++)
        kept += norm2(s->sum[b]) * s->n_lines;
    return all > 0 ? kept / all : 0;
}

/* The first reference is the first line, then twice the average. */
static void average_lines(struct finder *s)
{
    transform_line(s, 0);
    memcpy(s->sum, s->bins, s->n_bins * sizeof(*s->sum));
    average_turned(s);
    s->fringe->coherence = fmin(1, average_turned(s));
}

/* 1 within the band, falling to 0 over its outer eighths. */
static double taper(const struct finder *s, uint32_t b)
{
    const double edge = (s->band_last - s->band_first) / 8.0;
    const double inside = fmin(b - s->band_first + 1.0, s->band_last - b + 1.0);
    return inside >= edge ? 1 : 0.5 - 0.5 * cos(PI * inside / edge);
}

/* The average as a line, and noise by the median power of its bins outside of the band. */
static void find_average(struct finder *s)
{
    struct oct_fringe *f = s->fringe;
    uint32_t n = 0;
    memset(s->full, 0, s->p * sizeof(*s->full));
    for (uint32_t b = 0; b < s->n_bins; b++) {
        const double once = b == 0 || b + 1 == s->n_bins ? 1 : 2;
        s->full[b] = once * s->sum[b] / s->p;
        if (b >= s->dc_bin && (b < s->band_first || b > s->band_last))
            s->scratch[n++] = norm2(s->sum[b]);
    }
    fftw_execute(s->backward);
    for (uint32_t i = 0; i < s->n; i++)
        f->average[i] = creal(s->full[i]);
    oct_doubles_sort(s->scratch, n);
    /* The median of an exponential variable is ln 2 of its mean. */
    f->noise_counts = n > 0 ? sqrt(s->scratch[n / 2] / log(2) / s->n) : 0;
}

static void find_analytic(struct finder *s)
{
    memset(s->full, 0, s->p * sizeof(*s->full));
    for (uint32_t b = s->band_first; b <= s->band_last; b++)
        s->full[b] = 2 * taper(s, b) / s->p * s->sum[b];
    fftw_execute(s->backward);
    for (uint32_t i = 0; i < s->n; i++) {
        s->fringe->re[i] = creal(s->full[i]);
        s->fringe->im[i] = cimag(s->full[i]);
    }
}

/* ---- phase ---- */

static uint32_t brightest_sample(const struct oct_fringe *f)
{
    uint32_t peak = 0;
    for (uint32_t i = 0; i < f->n_samples; i++)
        peak = f->envelope[i] > f->envelope[peak] ? i : peak;
    return peak;
}

/* Samples that count: bright enough, and above the noise. */
static void weigh_samples(struct oct_fringe *f, double noise2)
{
    const uint32_t peak = brightest_sample(f);
    const double most = f->envelope[peak];
    const double least = fmax(DARK_SHARE * most * most, noise2 / NOISE_SHARE);
    double sum = 0;
    f->first = f->last = peak;
    for (uint32_t i = 0; i < f->n_samples; i++) {
        const double power = f->envelope[i] * f->envelope[i];
        f->weight[i] = power > least ? power : 0;
        sum += f->weight[i];
        if (f->weight[i] > 0) {
            f->first = i < f->first ? i : f->first;
            f->last = i > f->last ? i : f->last;
        }
    }
    for (uint32_t i = 0; i < f->n_samples; i++)
        f->weight[i] /= sum > 0 ? sum : 1;
}

/* The phase of (re, im), unwrapped from the brightest sample to both sides, plus the model. */
static void unwrap(struct oct_fringe *f, const double *re, const double *im, const double *model)
{
    const int64_t peak = brightest_sample(f), n = f->n_samples;
    f->phase[peak] = atan2(im[peak], re[peak]);
    for (int step = -1; step <= 1; step += 2)
        for (int64_t i = peak + step; i >= 0 && i < n; i += step) {
            const double now = atan2(im[i], re[i]), before = f->phase[i - step];
            f->phase[i] = now - 2 * PI * round((now - before) / (2 * PI));
        }
    for (uint32_t i = 0; i < f->n_samples; i++)
        f->phase[i] += model[i];
}

/* What the phase is taken from: F, or 2 x with im NULL. */
struct signal {
    const double *re, *im;
    double factor;
    double phase_px, envelope_px; /* the Gaussians that smooth it */
};

#define WORK_ARRAYS 6 /* of N + 1 samples, for take_phase() and those who call it */

static double *work_alloc(const struct oct_fringe *f, struct oct_error *err)
{
    double *work = malloc(WORK_ARRAYS * ((size_t)f->n_samples + 1) * sizeof(*work));
    if (!work)
        oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a fringe of %u samples", f->n_samples);
    return work;
}

/* Phase, envelope and weight by a model. Uses five arrays of work. */
static void take_phase(struct oct_fringe *f, const struct signal *from, const double *model,
                       double *work)
{
    const uint32_t n = f->n_samples;
    double *re = work, *im = re + n, *smooth_re = im + n, *smooth_im = smooth_re + n;
    double *g = smooth_im + n;
    for (uint32_t i = 0; i < n; i++) {
        const double c = from->factor * cos(model[i]), s = from->factor * sin(model[i]);
        const double imaginary = from->im ? from->im[i] : 0;
        re[i] = from->re[i] * c + imaginary * s;
        im[i] = imaginary * c - from->re[i] * s;
    }
    smooth_line(re, smooth_re, n, from->envelope_px, g);
    smooth_line(im, smooth_im, n, from->envelope_px, g);
    for (uint32_t i = 0; i < n; i++)
        f->envelope[i] = hypot(smooth_re[i], smooth_im[i]);
    smooth_line(re, smooth_re, n, from->phase_px, g);
    smooth_line(im, smooth_im, n, from->phase_px, g);
    weigh_samples(f,
                  4 * f->noise_counts * f->noise_counts / fmax(1, 2 * sqrt(PI) * from->phase_px));
    unwrap(f, smooth_re, smooth_im, model);
}

/* Takes off the average what is left of it, without the fringe, when it is smoothed. */
static void take_off_source(struct oct_fringe *f, double *work)
{
    const uint32_t n = f->n_samples;
    for (uint32_t i = 0; i < n; i++)
        work[i] = f->average[i] - f->envelope[i] * cos(f->phase[i]);
    smooth_line(work, work + n, n, 3 * n / (2 * PI * f->cycles), work + 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++)
        f->average[i] -= work[n + i];
}

/* What the source leaves lies as far below the fringe as that has cycles, the negative frequencies
 * twice as far, and of a deep fringe twice as far as it lies below Nyquist. */
enum oct_err oct_fringe_refine(struct oct_fringe *f, const double *model, struct oct_error *err)
{
    const double n = f->n_samples, a_turn = 3 * n / (2 * PI);
    const double from_negative = 2 * fmin(f->cycles, fmax(1, n / 2 - f->cycles));
    const struct signal signal = {
        .re = f->average,
        .factor = 2,
        .phase_px = fmin(n / 30, fmax(n / 100, a_turn / fmin(f->cycles, from_negative))),
        .envelope_px = fmin(n / 60, fmax(n / 300, a_turn / from_negative))};
    double *work = work_alloc(f, err);
    if (!work)
        return OCT_E_NO_MEMORY;
    take_phase(f, &signal, model, work);
    take_off_source(f, work);
    free(work);
    return OCT_OK;
}

/* Phase, envelope and weight from re and im, by a first model: a straight line through the main
 * interval's middle, so that no step between samples comes near half a turn. */
static enum oct_err find_phase(struct finder *s, struct oct_error *err)
{
    struct oct_fringe *f = s->fringe;
    const double middle = (s->main_first + s->main_last) / 2.0 / s->p; /* cycles a sample */
    const double width = (s->main_last - s->main_first) / (double)s->p;
    const double px = 0.5 / (2 * PI * fmax(width, 1e-3));
    const struct signal signal = {
        .re = f->re, .im = f->im, .factor = 1, .phase_px = px, .envelope_px = px};
    double *work = work_alloc(f, err);
    if (!work)
        return OCT_E_NO_MEMORY;
    double *model = work + (WORK_ARRAYS - 1) * ((size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n; i++)
        model[i] = 2 * PI * middle * i;
    take_phase(f, &signal, model, work);
    free(work);
    return OCT_OK;
}

/* ---- all of it ---- */

static enum oct_err find_fringe(struct finder *s, unsigned bits, struct oct_error *err)
{
    const bool has_fringe = fringe_has_memory(s->fringe, s->n, s->n_lines);
    if (!has_fringe || !finder_alloc(s))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a fringe of %u samples", s->n);
    enum oct_err e = check_saturation(s, bits, err);
    if (e)
        return e;
    measure_power(s);
    choose_power(s);
    e = check_spectrum(s, err);
    if (e)
        return e;
    choose_band(s);
    find_source(s);
    average_lines(s);
    find_average(s);
    find_analytic(s);
    return find_phase(s, err);
}

enum oct_err oct_fringe_find(struct oct_fringe *fringe, const uint16_t *lines, uint32_t n_lines,
                             uint32_t n_samples, const double *background, unsigned bits,
                             struct oct_error *err)
{
    struct finder s = {.fringe = fringe,
                       .lines = lines,
                       .background = background,
                       .n_lines = n_lines,
                       .n = n_samples};
    *fringe = (struct oct_fringe){.n_samples = 0};
    if (n_samples < OCT_FRINGE_LEAST_SAMPLES || n_lines < 1)
        return oct_fail(err, OCT_E_ARG, "%u lines of %u samples: a fringe needs a line of %u",
                        n_lines, n_samples, OCT_FRINGE_LEAST_SAMPLES);
    const enum oct_err e = find_fringe(&s, bits, err);
    finder_finish(&s);
    return e;
}
