/* Phase traces: layers that move by known nanometres in tissue that drifts by pixels. */
#include "analysis/flow/trace.h"
#include "kernels/device/workers.h"
#include "synth/random.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { M = 32, D = 160, T = 40, N_WAVES = 24, MOST = 300 };
static const struct oct_flow_span upper = {30, 50}, lower = {90, 110};
static const double rad_um = -2 * 7.48 * 1.36;

/* ---- scenes ---- */

struct scene {
    unsigned n;          /* B-scans */
    double snr;          /* of both layers, over noise of power 1; INFINITY: no noise */
    double drift_px;     /* deeper, a B-scan */
    double amplitude_nm; /* of lower against upper: a sine of 20 values a period */
    bool is_of_lines;    /* all A-lines look at one point; the sine runs over them */
    uint64_t seed;
};

static double movement(const struct scene *s, double t)
{
    return s->amplitude_nm * sin(2 * PI * t / 20);
}

/* Speckle of one layer: waves of the band, from 0.3 to 0.7 turns a depth, that its place moves. */
static void add_layer(const struct scene *s, unsigned layer, unsigned t, uint32_t j, double phase,
                      float *line)
{
    const struct oct_flow_span span = layer ? lower : upper;
    const double drift = s->drift_px * t, size = sqrt((isfinite(s->snr) ? s->snr : 1) / N_WAVES);
    const uint64_t seed = s->seed * 1000 + layer * 100 + (s->is_of_lines ? 0 : j);
    for (int d = 0; d < D; d++) {
        if (d < span.first - 8 + (int)drift || d >= span.end + 8 + (int)drift)
            continue;
        for (unsigned k = 0; k < N_WAVES; k++) {
            const double turn = 2 * PI * oct_uniform(oct_mix64(seed * 64 + k)) + phase -
                                2 * PI * (0.3 + 0.4 * (k + 0.5) / N_WAVES) * (d - drift);
            line[2 * d] += (float)(size * cos(turn));
            line[2 * d + 1] += (float)(size * sin(turn));
        }
    }
}

static float *make(const struct scene *s)
{
    float *values = calloc((size_t)s->n * M * D * 2, sizeof(*values)), *line = values;
    assert_non_null(values);
    for (unsigned t = 0; t < s->n; t++)
        for (uint32_t j = 0; j < M; j++, line += 2 * D) {
            const uint64_t seed = s->seed * 7777 + t * 100 + j;
            const double bulk = s->is_of_lines ? 0.1 * j : 6 * oct_uniform(oct_mix64(seed));
            const double time = s->is_of_lines ? (double)t * M + j : t;
            add_layer(s, 0, t, j, bulk, line);
            add_layer(s, 1, t, j, bulk + rad_um * movement(s, time) * 1e-3, line);
            for (unsigned i = 0; i < 2 * D && isfinite(s->snr); i++)
                line[i] += (float)(sqrt(0.5) * oct_normal(oct_mix64(seed * 1000003 + i)));
        }
    return values;
}

static struct oct_flow_trace *open_trace(const struct scene *s, enum oct_flow_reference reference,
                                         struct oct_workers *workers)
{
    /* Noise is white here. */
    static const double rho2[OCT_FLOW_LAGS] = {1};
    struct oct_flow_span spans[2][M];
    struct oct_flow_trace *trace;
    for (uint32_t j = 0; j < M; j++) {
        spans[0][j] = upper;
        spans[1][j] = lower;
    }
    const struct oct_flow_trace_setup setup = {.n_lines = M,
                                               .depth = D,
                                               .is_of_lines = s->is_of_lines,
                                               .reference = reference,
                                               .rad_um = rad_um,
                                               .rho2 = rho2,
                                               .workers = workers};
    assert_int_equal(oct_flow_trace_create(&trace, &setup, spans[0], spans[1], NULL), OCT_OK);
    return trace;
}

struct outcome {
    double nm[MOST * M], sd[M];
    double rms, told;
};

static void run(const struct scene *s, enum oct_flow_reference reference,
                struct oct_workers *workers, struct outcome *o)
{
    float *values = make(s);
    struct oct_flow_trace *trace = open_trace(s, reference, workers);
    const size_t step = s->is_of_lines ? M : 1;
    double sum = 0, mean = 0;
    for (unsigned t = 0; t < s->n; t++)
        assert_int_equal(oct_flow_trace_put(trace, values + (size_t)t * M * D * 2, o->nm + t * step,
                                            o->sd, NULL),
                         OCT_OK);
    const size_t n = oct_flow_trace_n(trace);
    assert_int_equal(n, s->n * step);
    if (reference == OCT_FLOW_LINKED)
        assert_int_equal(oct_flow_trace_link(trace, o->nm, NULL), OCT_OK);
    for (size_t i = 0; i < n; i++)
        mean += (o->nm[i] - movement(s, (double)i)) / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += pow(o->nm[i] - movement(s, (double)i) - mean, 2);
    o->rms = sqrt(sum / (double)n);
    o->told = o->sd[0];
    oct_flow_trace_destroy(trace);
    free(values);
}

static bool is_within(const char *what, double got, double least, double most)
{
    if (got >= least && got <= most)
        return true;
    print_error("%s: %.6f instead of %.6f to %.6f\n", what, got, least, most);
    return false;
}

/* ---- tests ---- */

/* Without noise: 50.0 +- 0.5 nm, deeper is positive; 400 nm turn the phase by more than pi. */
static void movement_is_as_it_was(void **state)
{
    static struct outcome o;
    for (unsigned reference = 0; reference < 3; reference++) {
        struct scene s = {.n = T, .snr = INFINITY, .amplitude_nm = 50, .seed = 1};
        run(&s, (enum oct_flow_reference)reference, NULL, &o);
        assert_true(is_within("peak", o.nm[5] - o.nm[0], 49.5, 50.5));
        assert_true(is_within("rms", o.rms, 0, 0.1));
        s.amplitude_nm = 400;
        run(&s, (enum oct_flow_reference)reference, NULL, &o);
        assert_true(is_within("peak of many turns", o.nm[5] - o.nm[0], 399, 401));
    }
}

/* Two layers that drift by parts of a pixel, with their speckle. */
static void drift_drops_out(void **state)
{
    static struct outcome o;
    for (unsigned reference = 0; reference < 3; reference++) {
        const struct scene s = {
            .n = T, .snr = INFINITY, .amplitude_nm = 50, .drift_px = 0.37, .seed = 2};
        run(&s, (enum oct_flow_reference)reference, NULL, &o);
        assert_true(is_within("rms", o.rms, 0, 0.7));
    }
}

/* The noise of single values: by the told deviation, of which the first value has as much. */
static void noise_is_as_told(void **state)
{
    static struct outcome o;
    static const double snr_db[] = {10, 20, 30};
    for (unsigned i = 0; i < 3; i++)
        for (unsigned reference = 0; reference < 3; reference++) {
            double rms = 0, told = 0;
            for (unsigned k = 0; k < 3; k++) {
                const struct scene s = {
                    .n = T, .snr = pow(10, snr_db[i] / 10), .amplitude_nm = 150, .seed = 30 + k};
                run(&s, (enum oct_flow_reference)reference, NULL, &o);
                rms += o.rms / 3;
                told += o.told / 3;
            }
            /* Against one B-scan, whose own noise is in all values alike: half the variance. */
            assert_true(is_within("rms over told", rms / (told * sqrt(0.5)), 0.7, 1.3));
        }
}

static void lines_of_one_point_have_a_value_each(void **state)
{
    static struct outcome o;
    for (unsigned reference = 0; reference < 2; reference++) {
        const struct scene s = {
            .n = 4, .snr = INFINITY, .amplitude_nm = 80, .is_of_lines = true, .seed = 4};
        run(&s, (enum oct_flow_reference)reference, NULL, &o);
        assert_true(is_within("rms", o.rms, 0, 0.1));
        assert_true(is_within("peak", o.nm[45] - o.nm[40], 79, 81));
    }
}

/* More than a block, by any number of threads. */
static void blocks_are_joined(void **state)
{
    static struct outcome one, two;
    struct oct_workers *workers;
    const struct scene s = {.n = MOST, .snr = 100, .amplitude_nm = 150, .seed = 5};
    assert_int_equal(oct_workers_create(&workers, 2, NULL), OCT_OK);
    run(&s, OCT_FLOW_LINKED, NULL, &one);
    run(&s, OCT_FLOW_LINKED, workers, &two);
    assert_memory_equal(one.nm, two.nm, MOST * sizeof(double));
    assert_true(is_within("rms over told", one.rms / one.told, 0.3, 1));
    oct_workers_destroy(workers);
}

/* Where neighbours agree and what lies far apart does not, linking beats both others. */
static void links_are_better_than_the_first_alone(void **state)
{
    enum { N = 60 };
    double *c = calloc((size_t)N * N * 2, sizeof(*c)), phase[N], linked = 0, first = 0;
    assert_non_null(c);
    for (int i = 0; i < N; i++)
        for (int k = 0; k <= i; k++) {
            const double size = i == k ? 1 : 0.2 + 0.7 * exp(-(i - k) / 8.0);
            const double noise = i == k ? 0
                                        : sqrt((1 - size * size) / (60 * size * size)) *
                                              oct_normal(oct_mix64((uint64_t)(i * N + k)));
            const double truth = 0.1 * (i - k) + noise;
            c[2 * (i * N + k)] = c[2 * (k * N + i)] = size * cos(truth);
            c[2 * (i * N + k) + 1] = size * sin(truth);
            c[2 * (k * N + i) + 1] = -size * sin(truth);
        }
    assert_int_equal(oct_flow_link(c, N, phase, NULL), OCT_OK);
    for (int i = 1; i < N; i++) {
        const double alone = atan2(c[2 * i * N + 1], c[2 * i * N]);
        linked += pow(remainder(phase[i] - 0.1 * i, 2 * PI), 2);
        first += pow(remainder(alone - 0.1 * i, 2 * PI), 2);
    }
    assert_true(is_within("linked over first", sqrt(linked / first), 0, 0.7));
    free(c);
}

static void layers_that_are_nowhere_are_refused(void **state)
{
    const struct oct_flow_trace_setup setup = {.n_lines = M, .depth = D, .rad_um = rad_um};
    struct oct_flow_span none[M] = {{0, 0}}, some[M];
    struct oct_flow_trace *trace;
    for (uint32_t j = 0; j < M; j++)
        some[j] = upper;
    assert_int_equal(oct_flow_trace_create(&trace, &setup, some, none, NULL), OCT_E_ARG);
    assert_null(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(movement_is_as_it_was),
        cmocka_unit_test(drift_drops_out),
        cmocka_unit_test(noise_is_as_told),
        cmocka_unit_test(lines_of_one_point_have_a_value_each),
        cmocka_unit_test(blocks_are_joined),
        cmocka_unit_test(links_are_better_than_the_first_alone),
        cmocka_unit_test(layers_that_are_nowhere_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
