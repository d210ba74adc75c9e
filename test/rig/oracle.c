#include "test/rig/oracle.h"

#include "test/rig/oracle_exact.h"
#include "test/rig/oracle_sums.h"
#include "test/rig/oracle_window.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The inner sums only index by masked angles; checking each access would take minutes. */
#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

static const double two_pi = 6.283185307179586476925286766559;

struct taps {
    size_t first;
    size_t n;
    double weight[4];
};

struct tables {
    const struct oct_oracle_setup *setup;
    const uint16_t *spectra;
    const uint8_t *line_valid;
    double *b; /* [M][D][2] */
    size_t p1, p2, left, depth;
    double *cosine, *sine; /* [P2]: of 2 pi n / P2 */
    double *dc;            /* [N] */
    double *axis;          /* [P2]: lambda, or s */
    struct taps *taps;     /* [P2] */
    double *phase;         /* [P2][2] */
    double *place;         /* [N]: q_i of the exact sum */
    double *term;          /* [N][2]: w[i] phi(q_i) / N of it */
    double *flat;          /* [N]: what the window divides by the source, and its scale */
    atomic_size_t next;    /* line */
    atomic_bool out_of_memory;
};

/* What the lines side by side pass through. */
struct work {
    oct_oracle_lines *x;        /* [N] */
    oct_oracle_lines *spectrum; /* [P1/2 + 1][2] */
    oct_oracle_lines *u;        /* [P2] */
    oct_oracle_lines *v;        /* [P2][2] */
    oct_oracle_lines *z;        /* [P2][2]: what is summed, or the sums */
    oct_oracle_lines *shared;   /* [P2 / 32][2] */
};

static size_t padded(size_t n_samples)
{
    size_t p1 = 2048;
    while (p1 < n_samples)
        p1 *= 2;
    return p1;
}

size_t oct_oracle_upsampled(const struct oct_oracle_setup *setup)
{
    return 2 * padded(setup->n_samples);
}

size_t oct_oracle_depth(const struct oct_oracle_setup *setup)
{
    size_t last = setup->crop_last ? setup->crop_last : padded(setup->n_samples);
    return last - setup->crop_first;
}

/* Step 1: what is subtracted from every line that came. */
static void fill_dc(struct tables *t)
{
    const struct oct_oracle_setup *setup = t->setup;
    size_t n = setup->n_samples;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        size_t came = 0;
        for (size_t j = 0; j < setup->n_lines; j++) {
            if (!t->line_valid[j])
                continue;
            sum += t->spectra[j * n + i];
            came++;
        }
        for (size_t j = 0; j < setup->n_before * setup->n_lines; j++) {
            if (!setup->before_valid[j])
                continue;
            sum += setup->before[j * n + i];
            came++;
        }
        if (setup->dc == OCT_ORACLE_DC_FILE)
            t->dc[i] = setup->background[i];
        else
            t->dc[i] = setup->dc != OCT_ORACLE_DC_NONE && came ? sum / (double)came : 0;
    }
}

/* Step 4, first half: lambda[p] (or s[p]) at camera coordinate c = p * P1 / P2 - left. */
static double wavelength_at(const struct oct_oracle_setup *setup, double c)
{
    const double *w = setup->wavelengths_nm;
    double last = (double)setup->n_wavelengths - 2;
    double i = floor(c);
    if (i < 0)
        i = 0;
    if (i > last)
        i = last;
    size_t at = (size_t)i;
    return w[at] + (c - i) * (w[at + 1] - w[at]);
}

static double kmap_at(const struct oct_oracle_setup *setup, double c)
{
    const double *m = setup->kmap_px;
    size_t n = setup->n_kmap;
    bool rises = m[n - 1] > m[0];
    size_t at = 0;
    while (at < n - 2 && (rises ? c >= m[at + 1] : c <= m[at + 1]))
        at++;
    return ((double)at + (c - m[at]) / (m[at + 1] - m[at])) / (double)(n - 1);
}

static void fill_axis(struct tables *t)
{
    const struct oct_oracle_setup *setup = t->setup;
    for (size_t p = 0; p < t->p2; p++) {
        double c = (double)p * (double)t->p1 / (double)t->p2 - (double)t->left;
        if (setup->kmap_px)
            t->axis[p] = kmap_at(setup, c);
        else if (setup->n_wavelengths == t->p2)
            t->axis[p] = setup->wavelengths_nm[p];
        else
            t->axis[p] = wavelength_at(setup, c);
    }
}

/* The l with `target` between axis[l] and axis[l+1]. */
static size_t interval(const double *axis, size_t n, double target)
{
    bool rises = axis[n - 1] > axis[0];
    size_t low = 0, high = n - 1;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (rises ? axis[middle] <= target : axis[middle] >= target)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void fill_taps(struct tables *t)
{
    double begin = t->setup->kmap_px ? t->axis[0] : two_pi / t->axis[0];
    double end = t->setup->kmap_px ? t->axis[t->p2 - 1] : two_pi / t->axis[t->p2 - 1];
    for (size_t q = 0; q < t->p2; q++) {
        double k = begin + (end - begin) * (double)q / (double)(t->p2 - 1);
        double target = t->setup->kmap_px ? k : two_pi / k;
        size_t l = interval(t->axis, t->p2, target);
        struct taps *taps = &t->taps[q];
        taps->n = t->setup->cubic ? 4 : 2;
        taps->first = l;
        if (t->setup->cubic) {
            taps->first = l ? l - 1 : 0;
            if (taps->first > t->p2 - 4)
                taps->first = t->p2 - 4;
        }
        /* Lagrange through the nodes; with two of them that is the linear interpolation. */
        const double *node = t->axis + taps->first;
        for (size_t m = 0; m < taps->n; m++) {
            taps->weight[m] = 1;
            for (size_t o = 0; o < taps->n; o++)
                if (o != m)
                    taps->weight[m] *= (target - node[o]) / (node[m] - node[o]);
        }
    }
}

/* k (or s) at camera sample c. */
static double k_of_sample(const struct tables *t, size_t c)
{
    const struct oct_oracle_setup *setup = t->setup;
    if (setup->kmap_px)
        return kmap_at(setup, (double)c);
    if (setup->n_wavelengths == t->p2)
        return two_pi / setup->wavelengths_nm[(c + t->left) * t->p2 / t->p1];
    return two_pi / setup->wavelengths_nm[c];
}

/* k (or s) at both ends of the grid. */
static double k_begin(const struct tables *t)
{
    return t->setup->kmap_px ? t->axis[0] : two_pi / t->axis[0];
}

static double k_end(const struct tables *t)
{
    return t->setup->kmap_px ? t->axis[t->p2 - 1] : two_pi / t->axis[t->p2 - 1];
}

/* t of step 5's polynomial at step q of the grid, a real number: linear in k. */
static double dispersion_t(const struct tables *t, double q)
{
    double part = q / (double)(t->p2 - 1);
    if (!t->setup->over_spectrum)
        return 2 * part - 1;
    double low = k_of_sample(t, 0), high = k_of_sample(t, t->setup->n_samples - 1);
    double k = k_begin(t) + (k_end(t) - k_begin(t)) * part;
    return (2 * k - low - high) / (high - low);
}

static void fill_places(struct tables *t)
{
    for (size_t i = 0; i < t->setup->n_samples; i++)
        t->place[i] =
            (k_of_sample(t, i) - k_begin(t)) / (k_end(t) - k_begin(t)) * (double)(t->p2 - 1);
}

static double window_at(const struct tables *t, double q)
{
    return oct_oracle_window_at(t->setup, t->place, t->flat, q);
}

/* The polynomial of step 5. */
static void polynomial_phase(const struct tables *t, double q, double *phase)
{
    double at = dispersion_t(t, q);
    double theta = 0;
    for (int m = 2; m <= 5; m++)
        theta += t->setup->coefficient[m] * pow(at, m);
    phase[0] = cos(theta);
    phase[1] = -sin(theta);
}

/* Step 5. */
static void fill_phase(struct tables *t)
{
    for (size_t q = 0; q < t->p2; q++) {
        double *phase = t->phase + 2 * q;
        if (t->setup->dispersion) {
            phase[0] = t->setup->dispersion[2 * q];
            phase[1] = t->setup->dispersion[2 * q + 1];
        } else {
            polynomial_phase(t, (double)q, phase);
        }
        double window = window_at(t, (double)q);
        phase[0] *= window;
        phase[1] *= window;
    }
}

/* Section 6: what each sample is multiplied with. */
static void fill_terms(struct tables *t)
{
    const double *file = t->setup->dispersion;
    size_t n = t->setup->n_samples;
    for (size_t i = 0; i < n; i++) {
        double weight =
            fabs(oct_oracle_slope(t->place, n, i)) * window_at(t, t->place[i]) / (double)n;
        double *term = t->term + 2 * i;
        if (file) {
            size_t below = (size_t)fmin(floor(t->place[i]), (double)t->p2 - 2);
            double part = t->place[i] - (double)below;
            term[0] = (1 - part) * file[2 * below] + part * file[2 * below + 2];
            term[1] = (1 - part) * file[2 * below + 1] + part * file[2 * below + 3];
        } else {
            polynomial_phase(t, t->place[i], term);
        }
        term[0] *= weight;
        term[1] *= weight;
    }
}

static void load_lines(const struct tables *t, size_t line, struct work *w)
{
    size_t n = t->setup->n_samples;
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < OCT_ORACLE_SIDE; l++) {
            size_t j = line + l;
            bool came = j < t->setup->n_lines && t->line_valid[j];
            w->x[i][l] = came ? t->spectra[j * n + i] - t->dc[i] : 0;
        }
}

/* Steps 2 and 3. */
static void upsample_split(const struct tables *t, struct work *w)
{
    const size_t n = t->setup->n_samples, nyquist = t->p1 / 2;
    const struct oct_oracle_circle circle = {t->p2, t->cosine, t->sine};
    const struct oct_oracle_sum there = {t->p1, 32, t->left, t->left + n, 0, nyquist + 1, -1};
    const struct oct_oracle_sum back = {t->p2, 64, 0, nyquist + 1, 0, t->p2, 1};
    for (size_t i = 0; i < n; i++) {
        w->z[2 * (t->left + i)] = w->x[i];
        w->z[2 * (t->left + i) + 1] = (oct_oracle_lines){0};
    }
    oct_oracle_sum_split(&circle, &there, w->z, w->shared, w->spectrum);
    w->spectrum[0] *= 0.5; /* twice below */
    w->spectrum[2 * nyquist] *= 0.5;
    w->spectrum[2 * nyquist + 1] *= 0.5;
    oct_oracle_sum_split(&circle, &back, w->spectrum, w->shared, w->z);
    for (size_t p = 0; p < t->p2; p++)
        w->u[p] = w->z[2 * p] * (2 / (double)t->p1);
}

/* The same as it is written. The table is of P2 angles, so that 2 pi k n / P1 is entry 2 k n. */
UNCHECKED static void upsample_by_word(const struct tables *t, struct work *w)
{
    size_t mask = t->p2 - 1, nyquist = t->p1 / 2;
    for (size_t k = 0; k <= nyquist; k++) {
        oct_oracle_lines re = {0}, im = {0};
        for (size_t i = 0; i < t->setup->n_samples; i++) {
            size_t angle = (2 * k * (i + t->left)) & mask;
            re += w->x[i] * t->cosine[angle];
            im -= w->x[i] * t->sine[angle];
        }
        double keep = k == nyquist ? 0.5 : 1;
        w->spectrum[2 * k] = re * keep;
        w->spectrum[2 * k + 1] = im * keep;
    }
    for (size_t p = 0; p < t->p2; p++) {
        oct_oracle_lines sum = {0};
        for (size_t k = 1; k <= nyquist; k++) {
            size_t angle = (k * p) & mask;
            sum += w->spectrum[2 * k] * t->cosine[angle];
            sum -= w->spectrum[2 * k + 1] * t->sine[angle];
        }
        /* irfft divides by P2, the contract multiplies by P2 / P1. */
        w->u[p] = (w->spectrum[0] + sum * 2.0) / (double)t->p1;
    }
}

/* Steps 4 (second half) and 5. */
static void resample(const struct tables *t, struct work *w)
{
    for (size_t q = 0; q < t->p2; q++) {
        const struct taps *taps = &t->taps[q];
        oct_oracle_lines sum = {0};
        for (size_t m = 0; m < taps->n; m++)
            sum += w->u[taps->first + m] * taps->weight[m];
        w->v[2 * q] = sum * t->phase[2 * q];
        w->v[2 * q + 1] = sum * t->phase[2 * q + 1];
    }
}

/* Step 6 but for its factor. */
UNCHECKED static void transform_by_word(const struct tables *t, const struct work *w,
                                        oct_oracle_lines *sums)
{
    size_t mask = t->p2 - 1;
    for (size_t i = 0; i < t->depth; i++) {
        size_t d = t->setup->crop_first + i;
        oct_oracle_lines re = {0}, im = {0};
        for (size_t q = 0; q < t->p2; q++) {
            double c = t->cosine[(d * q) & mask], s = t->sine[(d * q) & mask];
            re += w->v[2 * q] * c + w->v[2 * q + 1] * s;
            im += w->v[2 * q + 1] * c - w->v[2 * q] * s;
        }
        sums[2 * i] = re;
        sums[2 * i + 1] = im;
    }
}

static void transform_split(const struct tables *t, struct work *w, oct_oracle_lines *sums)
{
    const size_t first = t->setup->crop_first;
    const struct oct_oracle_circle circle = {t->p2, t->cosine, t->sine};
    const struct oct_oracle_sum split = {t->p2, 32, 0, t->p2, first, first + t->depth, -1};
    oct_oracle_sum_split(&circle, &split, w->v, w->shared, sums);
}

/* Step 6's factor. */
static void keep(const struct tables *t, size_t line, const oct_oracle_lines *sums)
{
    for (size_t i = 0; i < 2 * t->depth; i++)
        for (size_t l = 0; l < OCT_ORACLE_SIDE && line + l < t->setup->n_lines; l++)
            t->b[2 * (line + l) * t->depth + i] = sums[i][l] / (double)t->setup->n_samples;
}

static void work_on(const struct tables *t, size_t line, struct work *w)
{
    load_lines(t, line, w);
    if (t->setup->by_word)
        upsample_by_word(t, w);
    else
        upsample_split(t, w);
    resample(t, w);
    if (t->setup->by_word)
        transform_by_word(t, w, w->z);
    else
        transform_split(t, w, w->z);
    keep(t, line, w->z);
}

static void *work_on_lines(void *arg)
{
    struct tables *t = arg;
    struct work w = {
        .x = oct_oracle_lines_alloc(t->setup->n_samples),
        .spectrum = oct_oracle_lines_alloc(t->p1 + 2),
        .u = oct_oracle_lines_alloc(t->p2),
        .v = oct_oracle_lines_alloc(2 * t->p2),
        .z = oct_oracle_lines_alloc(2 * t->p2),
        .shared = oct_oracle_lines_alloc(2 * t->p2 / 32),
    };
    if (w.x && w.spectrum && w.u && w.v && w.z && w.shared) {
        for (;;) {
            size_t line = atomic_fetch_add(&t->next, OCT_ORACLE_SIDE);
            if (line >= t->setup->n_lines)
                break;
            work_on(t, line, &w);
        }
    } else {
        atomic_store(&t->out_of_memory, true);
    }
    free(w.x);
    free(w.spectrum);
    free(w.u);
    free(w.v);
    free(w.z);
    free(w.shared);
    return NULL;
}

/* Steps 2 to 7 as the contract's table has them. */
static bool through_the_grid(struct tables *t)
{
    t->cosine = malloc(t->p2 * sizeof(double));
    t->sine = malloc(t->p2 * sizeof(double));
    t->taps = malloc(t->p2 * sizeof(struct taps));
    t->phase = malloc(t->p2 * 2 * sizeof(double));
    if (!t->cosine || !t->sine || !t->taps || !t->phase)
        return false;
    for (size_t n = 0; n < t->p2; n++) {
        t->cosine[n] = cos(two_pi * (double)n / (double)t->p2);
        t->sine[n] = sin(two_pi * (double)n / (double)t->p2);
    }
    fill_taps(t);
    fill_phase(t);
    oct_oracle_on_all_cores(work_on_lines, t);
    return true;
}

static bool as_exact_sum(struct tables *t)
{
    const size_t n = t->setup->n_samples, n_lines = t->setup->n_lines;
    double *x = malloc(n_lines * n * sizeof(double));
    bool done = false;
    t->term = malloc(2 * n * sizeof(double));
    if (t->term && x) {
        fill_terms(t);
        for (size_t i = 0; i < n_lines * n; i++)
            x[i] = t->line_valid[i / n] ? t->spectra[i] - t->dc[i % n] : 0;
        const struct oct_oracle_exact exact = {.n = n,
                                               .n_lines = n_lines,
                                               .first = t->setup->crop_first,
                                               .depth = t->depth,
                                               .p2 = (double)t->p2,
                                               .place = t->place,
                                               .term = t->term,
                                               .x = x};
        done = oct_oracle_sum_exactly(&exact, t->b);
    }
    free(x);
    return done;
}

bool oct_oracle_complex(const struct oct_oracle_setup *setup, const uint16_t *spectra,
                        const uint8_t *line_valid, double *b)
{
    size_t p1 = padded(setup->n_samples), p2 = 2 * p1;
    struct tables t = {
        .setup = setup,
        .spectra = spectra,
        .line_valid = line_valid,
        .b = b,
        .p1 = p1,
        .p2 = p2,
        .left = (p1 - setup->n_samples) / 2,
        .depth = oct_oracle_depth(setup),
        .dc = malloc(setup->n_samples * sizeof(double)),
        .axis = calloc(p2, sizeof(double)),
        .place = malloc(setup->n_samples * sizeof(double)),
        .flat = malloc(setup->n_samples * sizeof(double)),
    };
    bool done = false;
    if (t.dc && t.axis && t.place && t.flat) {
        fill_dc(&t);
        fill_axis(&t);
        fill_places(&t);
        if (oct_oracle_has_window(setup))
            oct_oracle_fill_window(setup, t.place, t.flat);
        done = (setup->nufft ? as_exact_sum(&t) : through_the_grid(&t)) &&
               !atomic_load(&t.out_of_memory);
    }
    free(t.cosine);
    free(t.sine);
    free(t.dc);
    free(t.axis);
    free(t.taps);
    free(t.phase);
    free(t.place);
    free(t.term);
    free(t.flat);
    return done;
}

bool oct_oracle_intensity(const struct oct_oracle_setup *setup, const uint16_t *spectra,
                          const uint8_t *line_valid, double *intensity)
{
    const size_t n = setup->n_lines * oct_oracle_depth(setup);
    double *b = malloc(2 * n * sizeof(double));
    const bool done = b && oct_oracle_complex(setup, spectra, line_valid, b);
    for (size_t i = 0; done && i < n; i++)
        intensity[i] = b[2 * i] * b[2 * i] + b[2 * i + 1] * b[2 * i + 1];
    free(b);
    return done;
}
