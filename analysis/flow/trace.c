#include "analysis/flow/trace.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define NM_PER_UM 1e3
#define N_TAPS 16 /* of a shift by a part of a pixel */
#define BETA 6.0  /* of its Kaiser window */

enum { UPPER, LOWER, N_LAYERS };

/* What is kept of a B-scan: the depths of both layers, moved to where they are in the first. */
struct kept {
    float *re, *im; /* [n_kept], line by line, of each layer */
    uint8_t *came;  /* [M] */
};

struct oct_flow_trace {
    struct oct_flow_trace_setup setup;
    const struct oct_flow_kernels *k;
    double rho2[OCT_FLOW_LAGS];
    struct oct_flow_span *span; /* [N_LAYERS][M] */
    size_t *at;                 /* [N_LAYERS][M + 1] in what is kept */

    struct oct_flow_bscan bscan[2]; /* the newest, and the one before */
    unsigned newest;
    double lines, depth; /* what moves the newest onto the first */

    struct kept *kept; /* [n_kept]: of linked, all; else the reference and the newest */
    size_t n_kept, n_room;
    uint64_t n;                                 /* B-scans so far */
    double sum;                                 /* rad: the newest value */
    double power[N_LAYERS], n_powers[N_LAYERS]; /* of all that was kept */
};

/* ---- life ---- */

static size_t n_of_all(const struct oct_flow_trace *t)
{
    return t->at[N_LAYERS * (t->setup.n_lines + 1) - 1];
}

static void finish_kept(struct kept *k)
{
    free(k->re);
    free(k->came);
    *k = (struct kept){.re = NULL};
}

static bool init_kept(const struct oct_flow_trace *t, struct kept *k)
{
    const size_t n = n_of_all(t);
    k->re = calloc(2 * n + 1, sizeof(*k->re));
    k->im = k->re ? k->re + n : NULL;
    k->came = calloc(t->setup.n_lines, 1);
    return k->re && k->came;
}

/* Both layers of a line, or none. */
static bool lay_spans(struct oct_flow_trace *t, const struct oct_flow_span *upper,
                      const struct oct_flow_span *lower)
{
    const uint32_t m = t->setup.n_lines;
    const struct oct_flow_span *given[N_LAYERS] = {upper, lower};
    bool any = false;
    for (unsigned layer = 0; layer < N_LAYERS; layer++)
        for (uint32_t j = 0; j < m; j++) {
            struct oct_flow_span s = given[layer][j];
            s.first = s.first > 0 ? s.first : 0;
            s.end = s.end < (int32_t)t->setup.depth ? s.end : (int32_t)t->setup.depth;
            t->span[layer * m + j] = s;
        }
    size_t n = 0;
    for (unsigned layer = 0; layer < N_LAYERS; layer++) {
        for (uint32_t j = 0; j < m; j++) {
            const struct oct_flow_span u = t->span[j], l = t->span[m + j];
            const bool has_both = u.end > u.first && l.end > l.first;
            const struct oct_flow_span s = t->span[layer * m + j];
            t->at[layer * (m + 1) + j] = n;
            n += has_both ? (size_t)(s.end - s.first) : 0;
            any = any || has_both;
        }
        t->at[layer * (m + 1) + m] = n;
    }
    return any;
}

static bool alloc_trace(struct oct_flow_trace *t, struct oct_error *err)
{
    const size_t m = t->setup.n_lines;
    t->span = calloc(N_LAYERS * m, sizeof(*t->span));
    t->at = calloc(N_LAYERS * (m + 1), sizeof(*t->at));
    return t->span && t->at &&
           !oct_flow_bscan_init(&t->bscan[0], t->setup.n_lines, t->setup.depth, err) &&
           !oct_flow_bscan_init(&t->bscan[1], t->setup.n_lines, t->setup.depth, err);
}

enum oct_err oct_flow_trace_create(struct oct_flow_trace **trace,
                                   const struct oct_flow_trace_setup *setup,
                                   const struct oct_flow_span *upper,
                                   const struct oct_flow_span *lower, struct oct_error *err)
{
    struct oct_flow_trace *t = calloc(1, sizeof(*t));
    *trace = NULL;
    if (t) {
        t->setup = *setup;
        t->k = oct_flow_kernels_best();
    }
    if (!t || !alloc_trace(t, err)) {
        oct_flow_trace_destroy(t);
        return oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    }
    if (!lay_spans(t, upper, lower)) {
        oct_flow_trace_destroy(t);
        return oct_fail(err, OCT_E_ARG, "trace: no A-line has both layers");
    }
    *trace = t;
    return OCT_OK;
}

void oct_flow_trace_destroy(struct oct_flow_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_kept; i++)
        finish_kept(&t->kept[i]);
    free(t->kept);
    oct_flow_bscan_finish(&t->bscan[0]);
    oct_flow_bscan_finish(&t->bscan[1]);
    free(t->span);
    free(t->at);
    free(t);
}

/* ---- what is kept ---- */

static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 40; k++) {
        term *= x / 2 / k * (x / 2 / k);
        sum += term;
    }
    return sum;
}

/* x(d - part) = sum over i of taps[i] x[d + N_TAPS / 2 - 1 - i] of what turns by about half a
 * turn a depth; 0 <= part < 1. */
static void make_taps(double part, double taps[N_TAPS])
{
    for (int i = 0; i < N_TAPS; i++) {
        const int n = i - (N_TAPS / 2 - 1);
        const double x = n - part, u = x / (N_TAPS / 2.0);
        const double window = fabs(u) < 1 ? bessel_i0(BETA * sqrt(1 - u * u)) / bessel_i0(BETA) : 0;
        taps[i] = (n % 2 ? -1 : 1) * window * (fabs(x) > 1e-12 ? sin(PI * x) / (PI * x) : 1);
    }
}

static void keep_line(const struct oct_flow_trace *t, struct oct_flow_line from, ptrdiff_t whole,
                      const double taps[N_TAPS], unsigned layer, uint32_t j, struct kept *k)
{
    const ptrdiff_t depth = t->setup.depth;
    const size_t at = t->at[layer * (t->setup.n_lines + 1) + j];
    const size_t n = t->at[layer * (t->setup.n_lines + 1) + j + 1] - at;
    for (size_t d = 0; d < n; d++) {
        const ptrdiff_t centre = t->span[layer * t->setup.n_lines + j].first + (ptrdiff_t)d - whole;
        double re = 0, im = 0;
        for (int i = 0; i < N_TAPS; i++) {
            const ptrdiff_t x = centre + N_TAPS / 2 - 1 - i;
            if (x < 0 || x >= depth)
                continue;
            re += taps[i] * (double)from.re[x];
            im += taps[i] * (double)from.im[x];
        }
        k->re[at + d] = (float)re;
        k->im[at + d] = (float)im;
    }
}

/* Where the first one's layers are in the newest. */
static void keep(const struct oct_flow_trace *t, struct kept *k)
{
    const struct oct_flow_bscan *b = &t->bscan[t->newest];
    const ptrdiff_t whole = (ptrdiff_t)floor(t->depth);
    const int64_t lines = lround(t->lines);
    double taps[N_TAPS];
    make_taps(t->depth - (double)whole, taps);
    for (uint32_t j = 0; j < t->setup.n_lines; j++) {
        const int64_t from = (int64_t)j - lines;
        k->came[j] = from >= 0 && from < b->n_lines && b->power[from] > 0;
        for (unsigned layer = 0; layer < N_LAYERS && k->came[j]; layer++)
            keep_line(t, oct_flow_bscan_line(b, (uint32_t)from, 0), whole, taps, layer, j, k);
    }
}

static struct kept *room_for(struct oct_flow_trace *t, struct oct_error *err)
{
    const bool keeps_all = t->setup.reference == OCT_FLOW_LINKED && !t->setup.is_of_lines;
    if (!keeps_all && t->n_kept == 2)
        return &t->kept[1];
    if (t->n_kept == t->n_room) {
        const size_t n = t->n_room ? 2 * t->n_room : 2;
        struct kept *more = realloc(t->kept, n * sizeof(*more));
        if (more) {
            t->kept = more;
            t->n_room = n;
        }
    }
    if (t->n_kept == t->n_room || !init_kept(t, &t->kept[t->n_kept])) {
        oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
        return NULL;
    }
    return &t->kept[t->n_kept++];
}

/* ---- phases ---- */

static struct oct_flow_line line_of(const struct kept *k, size_t at)
{
    return (struct oct_flow_line){k->re + at, k->im + at};
}

/* Adds line j of `a` and line i of `b`: lower (a conj b) conj upper (a conj b), and the product of
 * their sizes. */
static void add_line(const struct oct_flow_trace *t, const struct kept *a, uint32_t j,
                     const struct kept *b, uint32_t i, double q[2])
{
    const size_t row = t->setup.n_lines + 1;
    float sum[N_LAYERS][2];
    if (!a->came[j] || !b->came[i])
        return;
    for (unsigned layer = 0; layer < N_LAYERS; layer++) {
        const size_t at = t->at[layer * row + j], n = t->at[layer * row + j + 1] - at;
        const size_t other = t->at[layer * row + i], m = t->at[layer * row + i + 1] - other;
        t->k->cross(line_of(a, at), line_of(b, other), (uint32_t)(n < m ? n : m), sum[layer]);
    }
    q[0] += (double)sum[LOWER][0] * (double)sum[UPPER][0] +
            (double)sum[LOWER][1] * (double)sum[UPPER][1];
    q[1] += (double)sum[LOWER][1] * (double)sum[UPPER][0] -
            (double)sum[LOWER][0] * (double)sum[UPPER][1];
}

static void compare(const struct oct_flow_trace *t, const struct kept *a, const struct kept *b,
                    double q[2])
{
    q[0] = q[1] = 0;
    for (uint32_t j = 0; j < t->setup.n_lines; j++)
        add_line(t, a, j, b, j, q);
}

static double nearest_turn(double rad, double to)
{
    return rad + 2 * PI * round((to - rad) / (2 * PI));
}

/* rad becomes nm. */
static double length_of(const struct oct_flow_trace *t, double rad)
{
    return isnan(t->setup.rad_um) ? rad : rad / t->setup.rad_um * NM_PER_UM;
}

/* The next value: q against the one before, or against the first. */
static double follow(struct oct_flow_trace *t, const double q[2])
{
    if (!(hypot(q[0], q[1]) > 0))
        return NAN;
    const double rad = atan2(q[1], q[0]);
    if (t->setup.reference == OCT_FLOW_PREVIOUS)
        t->sum += rad;
    else
        t->sum = nearest_turn(rad, t->sum);
    return length_of(t, t->sum);
}

/* ---- what the noise makes of it ---- */

/* Independent samples of n neighbouring depths. */
static double samples_of(const struct oct_flow_trace *t, size_t n)
{
    double sum = 0;
    for (size_t lag = 0; lag < n && lag < OCT_FLOW_LAGS; lag++)
        sum += (lag ? 2 : 1) * (double)(n - lag) * t->rho2[lag];
    return sum > 0 ? (double)n * (double)n / sum : 0;
}

struct light {
    double power, n, samples; /* sum of n values, as many independent ones */
};

/* Of a layer in A-lines first .. end - 1. */
static struct light light_of(const struct oct_flow_trace *t, const struct kept *k, unsigned layer,
                             uint32_t first, uint32_t end)
{
    const size_t *at = t->at + layer * (t->setup.n_lines + 1);
    struct light l = {0, 0, 0};
    for (uint32_t j = first; j < end; j++) {
        if (!k->came[j] || at[j + 1] == at[j])
            continue;
        for (size_t i = at[j]; i < at[j + 1]; i++)
            l.power += (double)(k->re[i] * k->re[i] + k->im[i] * k->im[i]);
        l.n += (double)(at[j + 1] - at[j]);
        l.samples += samples_of(t, at[j + 1] - at[j]);
    }
    return l;
}

/* Variance of the phase of a layer between two B-scans; n_lines: 1 of M-mode. */
static double variance_of(const struct oct_flow_trace *t, const struct kept *k, unsigned layer,
                          uint32_t first, uint32_t end, double noise)
{
    const struct light l = light_of(t, k, layer, first, end);
    const double snr = l.n > 0 ? l.power / l.n / noise - 1 : 0, g = snr / (1 + snr);
    return snr > 0 ? (1 - g * g) / (2 * l.samples * g * g) : INFINITY;
}

static double deviation(const struct oct_flow_trace *t, const struct kept *k, uint32_t first,
                        uint32_t end)
{
    return fabs(length_of(t, sqrt(variance_of(t, k, UPPER, first, end, t->setup.noise) +
                                  variance_of(t, k, LOWER, first, end, t->setup.noise))));
}

static void add_light(struct oct_flow_trace *t, const struct kept *k)
{
    for (unsigned layer = 0; layer < N_LAYERS; layer++) {
        const struct light l = light_of(t, k, layer, 0, t->setup.n_lines);
        t->power[layer] += l.power;
        t->n_powers[layer] += l.n;
    }
}

double oct_flow_trace_snr(const struct oct_flow_trace *t)
{
    double least = INFINITY;
    for (unsigned layer = 0; layer < N_LAYERS; layer++)
        if (t->n_powers[layer] > 0)
            least = fmin(least, t->power[layer] / t->n_powers[layer] / t->setup.noise - 1);
    return isfinite(least) ? fmax(least, 0) : NAN;
}

static void look_at_noise(struct oct_flow_trace *t)
{
    const struct oct_flow_bscan *b = &t->bscan[t->newest];
    uint32_t block;
    const double found = oct_flow_noise_find(&b, 1, &block);
    if (t->setup.rho2)
        memcpy(t->rho2, t->setup.rho2, sizeof(t->rho2));
    else
        oct_flow_noise_correlate(&b, 1, block, t->rho2);
    t->setup.noise = fmax(t->setup.noise > 0 ? t->setup.noise : found, 1e-12);
}

/* ---- a B-scan comes in ---- */

static enum oct_err take_in(struct oct_flow_trace *t, const float *values, struct oct_error *err)
{
    struct oct_flow_shift shift = {0, 0, 0};
    const struct oct_flow_bscan *before = &t->bscan[t->newest];
    t->newest = 1 - t->newest;
    oct_flow_bscan_put(&t->bscan[t->newest], values, t->setup.workers);
    if (t->n == 0) {
        look_at_noise(t);
        return OCT_OK;
    }
    if (t->setup.is_of_lines)
        return OCT_OK;
    const enum oct_err e =
        oct_flow_shift_find(before, &t->bscan[t->newest], t->setup.workers, &shift, err);
    t->lines += shift.lines;
    t->depth += shift.depth;
    return e;
}

/* M-mode: each A-line against the one before it, the last of the B-scan before to begin with, or
 * against the very first. */
static void follow_lines(struct oct_flow_trace *t, struct kept *now, const struct kept *reference,
                         double *nm, double *sd_nm)
{
    const bool is_first = t->setup.reference == OCT_FLOW_FIRST;
    for (uint32_t j = 0; j < t->setup.n_lines; j++) {
        const bool is_begin = t->n == 0 && j == 0;
        const struct kept *of = is_first || j == 0 ? reference : now;
        const uint32_t to = is_first || is_begin ? 0 : j == 0 ? t->setup.n_lines - 1 : j - 1;
        double q[2] = {0, 0};
        add_line(t, now, j, is_begin ? now : of, to, q);
        nm[j] = follow(t, q);
        sd_nm[j] = deviation(t, now, j, j + 1);
    }
}

static void swap_kept(struct oct_flow_trace *t)
{
    const struct kept first = t->kept[0];
    t->kept[0] = t->kept[1];
    t->kept[1] = first;
}

enum oct_err oct_flow_trace_put(struct oct_flow_trace *t, const float *values, double *nm,
                                double *sd_nm, struct oct_error *err)
{
    const bool is_linked = t->setup.reference == OCT_FLOW_LINKED && !t->setup.is_of_lines;
    enum oct_err e = take_in(t, values, err);
    struct kept *now = e ? NULL : room_for(t, err);
    if (!now)
        return e ? e : OCT_E_NO_MEMORY;
    keep(t, now);
    add_light(t, now);
    const struct kept *reference = &t->kept[0]; /* of the first one, itself */
    if (t->setup.is_of_lines) {
        follow_lines(t, now, reference, nm, sd_nm);
    } else {
        double q[2];
        compare(t, now, reference, q);
        *nm = is_linked ? NAN : follow(t, q);
        *sd_nm = deviation(t, now, 0, t->setup.n_lines);
    }
    if (t->setup.reference == OCT_FLOW_PREVIOUS && t->n_kept == 2)
        swap_kept(t);
    t->n++;
    return OCT_OK;
}

uint64_t oct_flow_trace_n(const struct oct_flow_trace *t)
{
    return t->n * (t->setup.is_of_lines ? t->setup.n_lines : 1);
}

/* ---- all pairs ---- */

struct block {
    const struct oct_flow_trace *t;
    size_t first;
    unsigned n;
    double *c; /* [n][n][2] */
};

static void compare_row(void *context, unsigned i, unsigned worker)
{
    const struct block *b = context;
    (void)worker;
    for (unsigned k = 0; k <= i; k++) {
        double *c = b->c + 2 * ((size_t)i * b->n + k);
        compare(b->t, &b->t->kept[b->first + i], &b->t->kept[b->first + k], c);
    }
}

/* |c| <= 1, and the upper half. */
static void normalise(const struct block *b)
{
    const size_t n = b->n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            double *c = b->c + 2 * (i * n + k), *other = b->c + 2 * (k * n + i);
            const double size = sqrt(b->c[2 * (i * n + i)] * b->c[2 * (k * n + k)]);
            c[0] = size > 0 ? c[0] / size : 0;
            c[1] = size > 0 ? c[1] / size : 0;
            other[0] = c[0];
            other[1] = -c[1];
        }
    for (size_t i = 0; i < n; i++) {
        b->c[2 * (i * n + i)] = 1;
        b->c[2 * (i * n + i) + 1] = 0;
    }
}

static enum oct_err link_block(struct block *b, double *phase, struct oct_error *err)
{
    b->c = calloc(2 * (size_t)b->n * b->n, sizeof(*b->c));
    if (!b->c)
        return oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    oct_workers_run(b->t->setup.workers, b->n, compare_row, b);
    normalise(b);
    const enum oct_err e = oct_flow_link(b->c, b->n, phase, err);
    free(b->c);
    return e;
}

/* Blocks go on where the one before is, in the mean over what both have. */
static void join_block(double *rad, size_t first, unsigned n, size_t n_known, double *phase)
{
    double sum = 0;
    for (unsigned i = 1; i < n; i++)
        phase[i] = nearest_turn(phase[i], phase[i - 1]);
    for (size_t i = first; i < n_known; i++)
        sum += rad[i] - phase[i - first];
    const double more = n_known > first ? sum / (double)(n_known - first) : 0;
    for (size_t i = n_known; i < first + n; i++)
        rad[i] = phase[i - first] + more;
}

enum oct_err oct_flow_trace_link(struct oct_flow_trace *t, double *nm, struct oct_error *err)
{
    double phase[OCT_FLOW_LINK_BLOCK];
    size_t n_known = 0;
    enum oct_err e = OCT_OK;
    for (size_t first = 0; n_known < t->n_kept && !e; first += OCT_FLOW_LINK_BLOCK / 2) {
        const size_t left = t->n_kept - first;
        struct block b = {.t = t, .first = first};
        b.n = left < OCT_FLOW_LINK_BLOCK ? (unsigned)left : OCT_FLOW_LINK_BLOCK;
        e = link_block(&b, phase, err);
        if (!e)
            join_block(nm, first, b.n, n_known, phase);
        n_known = first + b.n;
    }
    for (size_t i = 0; i < n_known && !e; i++)
        nm[i] = length_of(t, nm[i]);
    return e;
}
