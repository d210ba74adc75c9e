#include "test/rig/oracle.h"

#include "test/rig/oracle_window.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Lines that go through the sums together: as many as a vector holds of what this is compiled for.
 * More are slower, since gcc takes them through memory. */
#if defined(__AVX512F__)
#define SIDE_BY_SIDE 8
#elif defined(__AVX2__)
#define SIDE_BY_SIDE 4
#else
#define SIDE_BY_SIDE 2
#endif
#define MAX_THREADS 16
#define TURNS 32 /* depths from one evaluation of sine and cosine to the next */

/* The inner sums only index by masked angles; checking each access would take minutes. */
#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

static const double two_pi = 6.283185307179586476925286766559;

/* One value of each of the lines side by side. */
typedef double lines_value __attribute__((vector_size(SIDE_BY_SIDE * sizeof(double))));

struct taps {
    size_t first;
    size_t n;
    double weight[4];
};

struct tables {
    const struct oct_oracle_setup *setup;
    const uint16_t *spectra;
    const uint8_t *line_valid;
    double *intensity;
    size_t p1, p2, left, depth;
    double *cosine, *sine; /* [P2]: of 2 pi n / P2 */
    double *dc;            /* [N] */
    double *axis;          /* [P2]: lambda, or s */
    struct taps *taps;     /* [P2] */
    double *phase;         /* [P2][2] */
    double *place;         /* [N]: q_i of the exact sum */
    double *term;          /* [N][2]: w[i] phi(q_i) / N of it */
    double *x;             /* [M][N], with the exact sum */
    double *flat;          /* [N]: what the window divides by the source, and its scale */
    atomic_size_t next;    /* line; depth of the exact sum */
    atomic_bool out_of_memory;
};

/* What the lines side by side pass through. */
struct work {
    lines_value *x;        /* [N] */
    lines_value *spectrum; /* [P1/2 + 1][2] */
    lines_value *u;        /* [P2] */
    lines_value *v;        /* [P2][2] */
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
        for (size_t l = 0; l < SIDE_BY_SIDE; l++) {
            size_t j = line + l;
            bool came = j < t->setup->n_lines && t->line_valid[j];
            w->x[i][l] = came ? t->spectra[j * n + i] - t->dc[i] : 0;
        }
}

/* Steps 2 and 3. The table is of P2 angles, so that 2 pi k n / P1 is entry 2 k n. */
UNCHECKED static void upsample(const struct tables *t, struct work *w)
{
    size_t mask = t->p2 - 1, nyquist = t->p1 / 2;
    for (size_t k = 0; k <= nyquist; k++) {
        lines_value re = {0}, im = {0};
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
        lines_value sum = {0};
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
        lines_value sum = {0};
        for (size_t m = 0; m < taps->n; m++)
            sum += w->u[taps->first + m] * taps->weight[m];
        w->v[2 * q] = sum * t->phase[2 * q];
        w->v[2 * q + 1] = sum * t->phase[2 * q + 1];
    }
}

/* Steps 6, 7 and 8 without the log. */
UNCHECKED static void transform(const struct tables *t, size_t line, const struct work *w)
{
    size_t mask = t->p2 - 1;
    for (size_t i = 0; i < t->depth; i++) {
        size_t d = t->setup->crop_first + i;
        lines_value re = {0}, im = {0};
        for (size_t q = 0; q < t->p2; q++) {
            double c = t->cosine[(d * q) & mask], s = t->sine[(d * q) & mask];
            re += w->v[2 * q] * c + w->v[2 * q + 1] * s;
            im += w->v[2 * q + 1] * c - w->v[2 * q] * s;
        }
        re /= (double)t->setup->n_samples;
        im /= (double)t->setup->n_samples;
        for (size_t l = 0; l < SIDE_BY_SIDE && line + l < t->setup->n_lines; l++)
            t->intensity[(line + l) * t->depth + i] = re[l] * re[l] + im[l] * im[l];
    }
}

/* x as the exact sum takes it. */
static void fill_lines(const struct tables *t)
{
    size_t n = t->setup->n_samples;
    for (size_t j = 0; j < t->setup->n_lines; j++)
        for (size_t i = 0; i < n; i++)
            t->x[j * n + i] = t->line_valid[j] ? t->spectra[j * n + i] - t->dc[i] : 0;
}

/* Section 6 of one line and depth, turned: [N][2], the line's terms at that depth. Several sums
 * side by side, as a compiler may not reorder them itself. */
UNCHECKED static double sum_exactly(const double *x, const double *turned, size_t n)
{
    double re[8] = {0}, im[8] = {0};
    for (size_t i = 0; i < n; i++) {
        re[i % 8] += x[i] * turned[2 * i];
        im[i % 8] += x[i] * turned[2 * i + 1];
    }
    for (size_t s = 1; s < 8; s++) {
        re[0] += re[s];
        im[0] += im[s];
    }
    return re[0] * re[0] + im[0] * im[0];
}

/* The terms at depth d, [N][2] in turned, and in step what turns them on by one depth. */
static void begin_turning(const struct tables *t, double d, double *turned, double *step)
{
    double p2 = (double)t->p2;
    for (size_t i = 0; i < t->setup->n_samples; i++) {
        double angle = two_pi * fmod(d * t->place[i], p2) / p2;
        double c = cos(angle), s = sin(angle);
        turned[2 * i] = t->term[2 * i] * c + t->term[2 * i + 1] * s;
        turned[2 * i + 1] = t->term[2 * i + 1] * c - t->term[2 * i] * s;
        step[2 * i] = cos(two_pi * t->place[i] / p2);
        step[2 * i + 1] = -sin(two_pi * t->place[i] / p2);
    }
}

UNCHECKED static void turn_on(double *turned, const double *step, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double re = turned[2 * i], im = turned[2 * i + 1];
        turned[2 * i] = re * step[2 * i] - im * step[2 * i + 1];
        turned[2 * i + 1] = re * step[2 * i + 1] + im * step[2 * i];
    }
}

/* All lines at TURNS depths: between them the terms are turned on, which is cheaper than sine and
 * cosine and loses less than TURNS roundings. */
static void transform_exactly(const struct tables *t, size_t from, double *turned)
{
    size_t n = t->setup->n_samples;
    double *step = turned + 2 * n;
    begin_turning(t, (double)(t->setup->crop_first + from), turned, step);
    for (size_t at = from; at < from + TURNS && at < t->depth; at++) {
        for (size_t j = 0; j < t->setup->n_lines; j++)
            t->intensity[j * t->depth + at] = sum_exactly(t->x + j * n, turned, n);
        turn_on(turned, step, n);
    }
}

static void *work_on_depths(void *arg)
{
    struct tables *t = arg;
    double *turned = malloc(4 * t->setup->n_samples * sizeof(double));
    size_t from;
    if (!turned)
        atomic_store(&t->out_of_memory, true);
    while (turned && (from = atomic_fetch_add(&t->next, TURNS)) < t->depth)
        transform_exactly(t, from, turned);
    free(turned);
    return NULL;
}

static lines_value *values_alloc(size_t n)
{
    return aligned_alloc(sizeof(lines_value), n * sizeof(lines_value));
}

static void *work_on_lines(void *arg)
{
    struct tables *t = arg;
    struct work w = {
        .x = values_alloc(t->setup->n_samples),
        .spectrum = values_alloc(t->p1 + 2),
        .u = values_alloc(t->p2),
        .v = values_alloc(2 * t->p2),
    };
    if (w.x && w.spectrum && w.u && w.v) {
        for (;;) {
            size_t line = atomic_fetch_add(&t->next, SIDE_BY_SIDE);
            if (line >= t->setup->n_lines)
                break;
            load_lines(t, line, &w);
            upsample(t, &w);
            resample(t, &w);
            transform(t, line, &w);
        }
    } else {
        atomic_store(&t->out_of_memory, true);
    }
    free(w.x);
    free(w.spectrum);
    free(w.u);
    free(w.v);
    return NULL;
}

static void work_on_all_cores(struct tables *t, void *(*work)(void *))
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[MAX_THREADS];
    long n_threads = 0;
    while (n_threads < n_cores - 1 && n_threads < MAX_THREADS &&
           pthread_create(&threads[n_threads], NULL, work, t) == 0)
        n_threads++;
    work(t);
    while (n_threads > 0)
        pthread_join(threads[--n_threads], NULL);
}

/* Steps 2 to 8 as the contract's table has them. */
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
    work_on_all_cores(t, work_on_lines);
    return true;
}

static bool as_exact_sum(struct tables *t)
{
    size_t n = t->setup->n_samples;
    t->term = malloc(2 * n * sizeof(double));
    t->x = malloc(t->setup->n_lines * n * sizeof(double));
    if (!t->term || !t->x)
        return false;
    fill_terms(t);
    fill_lines(t);
    work_on_all_cores(t, work_on_depths);
    return true;
}

bool oct_oracle_intensity(const struct oct_oracle_setup *setup, const uint16_t *spectra,
                          const uint8_t *line_valid, double *intensity)
{
    size_t p1 = padded(setup->n_samples), p2 = 2 * p1;
    struct tables t = {
        .setup = setup,
        .spectra = spectra,
        .line_valid = line_valid,
        .intensity = intensity,
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
    free(t.x);
    free(t.flat);
    return done;
}
