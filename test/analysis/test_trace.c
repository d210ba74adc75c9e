/* The layers of single B-scans: a synthetic retina with its truth, bands that lie where they are
 * told to, and pictures that have no layers. */
#include "test/rig/tap.h"

#include "analysis/layers/find/trace.h"
#include "test/rig/layered_eye.h"
#include "test/rig/synth_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define M 200u
#define D 400u
#define DEPTH_UM 2.0
#define LINE_UM 5.0

struct found {
    uint32_t n_both;
    float *position[OCT_N_LAYERS], *quality[OCT_N_LAYERS];
    uint32_t n_lines;
};

static const int pair[] = {OCT_LAYER_ILM, OCT_LAYER_RPE};

static struct oct_trace *open_trace_of(double unit_db, uint32_t n_lines, uint32_t depth,
                                       double depth_um, double line_um)
{
    struct oct_trace_setup setup = {.n_lines = n_lines, .depth = depth};
    struct oct_trace *trace;
    struct oct_error err;

    oct_trace_params_default(&setup.params);
    setup.params.depth_um = depth_um;
    setup.params.line_um = line_um;
    setup.params.unit_db = unit_db;
    if (oct_trace_create(&trace, &setup, &err))
        fail_msg("%s", err.text);
    return trace;
}

static struct oct_trace *open_trace(uint32_t n_lines, uint32_t depth, double depth_um,
                                    double line_um)
{
    return open_trace_of(1, n_lines, depth, depth_um, line_um);
}

static struct found find(struct oct_trace *trace, uint32_t n_lines, const float *pixels,
                         const uint8_t *valid, const struct oct_trace_bounds *bounds)
{
    struct found f = {.n_lines = n_lines};
    struct oct_traced traced = {.path = {NULL}};

    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        traced.position[layer] = f.position[layer] = malloc(n_lines * sizeof(float));
        traced.quality[layer] = f.quality[layer] = malloc(n_lines * sizeof(float));
    }
    f.n_both = oct_trace_run(trace, pixels, valid, bounds, &traced);
    return f;
}

static void drop(struct found *f)
{
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        free(f->position[layer]);
        free(f->quality[layer]);
    }
}

static uint32_t count(const struct found *f, int layer, uint32_t first, uint32_t last)
{
    uint32_t n = 0;

    for (uint32_t j = first; j < last; j++)
        n += isnan(f->position[layer][j]) ? 0 : 1;
    return n;
}

/* An eye of bands, its layers and its picture. */
struct eye {
    struct oct_layered_eye eye;
    double ilm[M], rpe[M];
    float *pixels;
};

static void draw(struct eye *e, uint64_t seed, double shift_px)
{
    e->eye = (struct oct_layered_eye){M, D, DEPTH_UM, seed};
    oct_layered_pit(&e->eye, shift_px, e->ilm, e->rpe);
    e->pixels = malloc((size_t)M * D * sizeof(float));
    oct_layered_draw(&e->eye, e->ilm, e->rpe, e->pixels);
}

/* Rms and largest error of the A-lines first to last - 1 that are found. */
static void expect_layers(const struct eye *e, const struct found *f, uint32_t first, uint32_t last)
{
    const double *truth[] = {e->ilm, e->rpe};
    static const double most_bias[] = {3, 3};

    for (int i = 0; i < 2; i++) {
        const int layer = pair[i];
        double sum = 0, squares = 0, n = 0;
        for (uint32_t j = first; j < last; j++) {
            double d = (double)f->position[layer][j] - truth[i][j];
            if (isnan(d))
                continue;
            sum += d;
            squares += d * d;
            n++;
        }
        double bias = sum / n, rms = sqrt(squares / n - bias * bias);
        if (!(n > 0 && fabs(bias) < most_bias[i] && rms < 1.5))
            fail_msg("%s: bias %.2f px, rms %.2f px, %.0f A-lines", oct_layer_names[layer], bias,
                     rms, n);
    }
}

/* ---- a retina with its truth ---- */

struct errors {
    double n, sum, squares, lost;
};

static void add_error(struct errors *e, double d)
{
    e->lost += isnan(d);
    if (isnan(d))
        return;
    e->n++;
    e->sum += d;
    e->squares += d * d;
}

static void expect_errors(const char *what, const struct errors *e, double rms, double bias,
                          double lost)
{
    double mean = e->sum / e->n, sd = sqrt(e->squares / e->n - mean * mean);

    print_message("# %s: bias %+.2f, rms %.2f about it, %.2f %% lost\n", what, mean, sd,
                  100 * e->lost / (e->n + e->lost));
    assert_true(fabs(mean) < bias && sd < rms && e->lost <= lost * (e->n + e->lost));
}

/* Where a border of the synthetic eye lies: its light changes fastest beside the centre of the
 * bands of ILM, IS/OS and RPE (px, measured in the mean of a volume's light along each). */
static const struct {
    enum oct_surface surface;
    double beside_px, rms_px, bias_px, lost;
} synthetic[OCT_N_LAYERS] = {
    [OCT_LAYER_ILM] = {OCT_SURFACE_ILM, -1.9, 0.6, 1.2, 0.005},
    [OCT_LAYER_RNFL_GCL] = {OCT_SURFACE_NFL_GCL, 0, 2.2, 0.8, 0.01},
    [OCT_LAYER_IPL_INL] = {OCT_SURFACE_IPL_INL, 0, 4, 2, 0.02},
    [OCT_LAYER_INL_OPL] = {OCT_SURFACE_INL_OPL, 0, 2, 1, 0.5},
    [OCT_LAYER_OPL_ONL] = {OCT_SURFACE_OPL_ONL, 0, 1.6, 0.8, 0.05},
    [OCT_LAYER_IS_OS] = {OCT_SURFACE_ISOS, -2.2, 0.6, 0.5, 0.005},
    [OCT_LAYER_RPE] = {OCT_SURFACE_RPE, 2.6, 1.2, 1.5, 0.005},
};

static void trace_scene(struct oct_trace *trace, const struct synth_scene *s, uint32_t bscan,
                        struct errors errors[OCT_N_LAYERS])
{
    float mean[SYNTH_N_SAMPLES];
    float *pixels = malloc((size_t)SYNTH_N_LINES * SYNTH_DEPTH * sizeof(float));

    synth_bscan_mean(s, bscan, mean);
    for (uint32_t j = 0; j < SYNTH_N_LINES; j++)
        synth_reconstruct(s, bscan, j, mean, 0, SYNTH_DEPTH, pixels + (size_t)j * SYNTH_DEPTH);
    for (size_t i = 0; i < (size_t)SYNTH_N_LINES * SYNTH_DEPTH; i++)
        pixels[i] = 10 * log10f(pixels[i]);
    struct found f = find(trace, SYNTH_N_LINES, pixels, NULL, NULL);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < SYNTH_N_LINES; j++) {
            const double ilm = synth_surface(s, OCT_SURFACE_ILM, bscan, j);
            const double truth = synth_surface(s, synthetic[layer].surface, bscan, j);
            const double zone = synth_surface(s, OCT_SURFACE_ISOS, bscan, j);
            /* In the pit the inner layers are hardly there. */
            if (layer == OCT_LAYER_ILM || layer >= OCT_LAYER_IS_OS || zone > ilm + 170)
                add_error(&errors[layer],
                          (double)f.position[layer][j] - truth - synthetic[layer].beside_px);
        }
    drop(&f);
    free(pixels);
}

static void the_layers_of_a_retina_lie_where_the_truth_says(void **state)
{
    struct errors errors[OCT_N_LAYERS] = {{0}};

    for (uint64_t seed = 1; seed <= 3; seed++) {
        const struct oct_retina_params params =
            synth_params(SYNTH_N_SAMPLES, SYNTH_N_LINES, SYNTH_N_BSCANS, seed);
        struct synth_scene *s = synth_scene_open(&params, SYNTH_FIRST_BSCAN, 2);
        struct oct_trace *trace =
            open_trace(SYNTH_N_LINES, SYNTH_DEPTH, s->facts->axial_um / 1.36, 2.5);
        for (uint32_t b = 0; b < 2; b++)
            trace_scene(trace, s, b, errors);
        oct_trace_destroy(trace);
        synth_scene_close(s);
    }
    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        expect_errors(oct_layer_names[layer], &errors[layer], synthetic[layer].rms_px,
                      synthetic[layer].bias_px, synthetic[layer].lost);
}

/* Layers below an ILM that is level with the ellipsoid zone; the ganglion cells' thickness changes
 * by half to both sides. */
struct inner_eye {
    double fibre_px, ganglion_px, inl_px, opl_px, zone_px;
    double fibre_light, ganglion_light;
};
static const struct inner_eye usual_eye = {12, 32, 16, 11, 250, 0.6, 0.15};

/* With speckle. */
static float *draw_inner_layers(const struct inner_eye *eye, double border[OCT_N_LAYERS][M])
{
    const double light[] = {0.004, eye->fibre_light, eye->ganglion_light, 0.04, 0.14, 0.02, 0.5,
                            0.1}; /* vitreous.. */
    float *pixels = malloc((size_t)M * D * sizeof(float));
    uint64_t dice = 5;
    for (uint32_t j = 0; j < M; j++) {
        const double share = 1 - 0.5 * cos(j * 6.2832 / M);
        const double thick[OCT_LAYER_IS_OS] = {0, eye->fibre_px, share * eye->ganglion_px,
                                               eye->inl_px, eye->opl_px};
        border[OCT_LAYER_IS_OS][j] = eye->zone_px;
        border[OCT_LAYER_RPE][j] = eye->zone_px + 18;
        border[OCT_LAYER_ILM][j] = 130;
        for (int k = OCT_LAYER_RNFL_GCL; k < OCT_LAYER_IS_OS; k++)
            border[k][j] = border[k - 1][j] + thick[k];
        for (uint32_t d = 0; d < D; d++) {
            int tissue = 0;
            while (tissue < OCT_N_LAYERS && d > border[tissue][j])
                tissue++;
            pixels[(size_t)j * D + d] =
                (float)(10 * log10(-light[tissue] * log(oct_layered_uniform(&dice)) + 1e-9));
        }
    }
    return pixels;
}

/* The borders below the ganglion cells move against the ellipsoid zone by a row from column to
 * column. */
static void inner_layers_move_against_the_outer_ones(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, 5);
    struct errors errors[OCT_N_LAYERS] = {{0}};
    double border[OCT_N_LAYERS][M];
    float *pixels = draw_inner_layers(&usual_eye, border);
    struct found f = find(trace, M, pixels, NULL, NULL);
    for (int k = 0; k < OCT_N_LAYERS; k++) {
        for (uint32_t j = 0; j < M; j++)
            add_error(&errors[k], (double)f.position[k][j] - border[k][j] - 0.5);
        expect_errors(oct_layer_names[k], &errors[k], 0.5, 0.8, 0.02);
    }
    drop(&f);
    free(pixels);
    oct_trace_destroy(trace);
}

/* About the disc fibres are thick and bright and all below them is thin: 90 um, then 36, 16 and 20
 * um and an outer nuclear layer of 70 um. */
static void thick_fibres_leave_the_layers_below_them_where_they_are(void **state)
{
    const struct inner_eye eye = {45, 18, 8, 10, 246, 1, 0.12};
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, 5);
    struct errors errors[OCT_N_LAYERS] = {{0}};
    double border[OCT_N_LAYERS][M];
    float *pixels = draw_inner_layers(&eye, border);
    struct found f = find(trace, M, pixels, NULL, NULL);
    for (int k = 0; k < OCT_N_LAYERS; k++) {
        for (uint32_t j = 0; j < M; j++)
            add_error(&errors[k], (double)f.position[k][j] - border[k][j] - 0.5);
        const bool is_hard = k == OCT_LAYER_IPL_INL; /* of 18 um of ganglion cells, too */
        expect_errors(oct_layer_names[k], &errors[k], is_hard ? 3 : 1, is_hard ? 2 : 1,
                      is_hard ? 0.2 : 0.05);
    }
    drop(&f);
    free(pixels);
    oct_trace_destroy(trace);
}

/* Fibres of 15 um, 4.6 dB brighter than all down to IPL/INL. */
static void thin_fibres_end_where_they_do(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, 5);
    double border[OCT_N_LAYERS][M], sum = 0;
    const struct inner_eye eye = {15 / DEPTH_UM, 32, 16, 11, 250, 0.6, 0.21};
    float *pixels = draw_inner_layers(&eye, border);
    struct found f = find(trace, M, pixels, NULL, NULL);
    unsigned n = 0;
    for (uint32_t j = 0; j < M; j++) {
        const double off =
            (double)f.position[OCT_LAYER_RNFL_GCL][j] - border[OCT_LAYER_RNFL_GCL][j] - 0.5;
        n += isnan(off) ? 0 : 1;
        sum += isnan(off) ? 0 : fabs(off);
    }
    print_message("# %.2f px off in %u of %u A-lines\n", sum / n, n, M);
    assert_true(n > 0.9 * M && sum / n < 2);
    drop(&f);
    free(pixels);
    oct_trace_destroy(trace);
}

/* Where bounds are farther from the border than windows at full resolution reach (8 px), its path
 * goes there all the same, to the nearest slope, and without them it is what it was. */
static void bounds_hold_for_inner_layers_too(void **state)
{
    static const float above[] = {[OCT_LAYER_IPL_INL] = -13, [OCT_LAYER_OPL_ONL] = -14};
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, 5);
    double border[OCT_N_LAYERS][M];
    float *pixels = draw_inner_layers(&usual_eye, border), least[M], most[M], path[OCT_N_LAYERS][M];
    float position[OCT_N_LAYERS][M], quality[OCT_N_LAYERS][M];
    struct found before = find(trace, M, pixels, NULL, NULL);
    for (int k = OCT_LAYER_IPL_INL; k <= OCT_LAYER_OPL_ONL; k += 2) {
        struct oct_trace_bounds bounds = {.least = {NULL}};
        struct oct_traced traced;
        uint32_t n_within = 0;
        bounds.least[k] = least;
        bounds.most[k] = most;
        for (int i = 0; i < OCT_N_LAYERS; i++) {
            traced.position[i] = position[i];
            traced.quality[i] = quality[i];
            traced.path[i] = path[i];
        }
        for (uint32_t j = 0; j < M; j++) {
            least[j] = (float)border[k][j] - above[k] - 3;
            most[j] = least[j] + 6;
        }
        oct_trace_run(trace, pixels, NULL, &bounds, &traced);
        for (uint32_t j = 0; j < M; j++)
            n_within += path[k][j] >= least[j] - 2.5F && path[k][j] <= most[j] + 2.5F;
        print_message("# %s: %u of %u A-lines within bounds\n", oct_layer_names[k], n_within, M);
        assert_true(n_within >= M * 9 / 10);
    }
    struct found after = find(trace, M, pixels, NULL, NULL);
    for (int k = 0; k < OCT_N_LAYERS; k++)
        assert_memory_equal(before.position[k], after.position[k], M * sizeof(float));
    drop(&before);
    drop(&after);
    free(pixels);
    oct_trace_destroy(trace);
}

/* Errors of the RPE but for their mean: rms of the A-lines beside a druse, largest on it. */
static void wide_field_errors(struct oct_trace *trace, uint64_t seed, double lift_px, double *rms,
                              double *largest)
{
    struct eye e = {.eye = {M, D, DEPTH_UM, seed}};
    double sum = 0, squares = 0, n = 0;

    oct_layered_pit(&e.eye, 0, e.ilm, e.rpe);
    for (uint32_t j = 0; j < M; j++) {
        double u = ((double)j - 140) / 8;
        e.rpe[j] -= lift_px * exp(-0.5 * u * u);
    }
    e.pixels = malloc((size_t)M * D * sizeof(float));
    oct_layered_draw(&e.eye, e.ilm, e.rpe, e.pixels);
    struct found f = find(trace, M, e.pixels, NULL, NULL);
    for (uint32_t j = 0; j < 110; j++) {
        double d = (double)f.position[OCT_LAYER_RPE][j] - e.rpe[j];
        sum += d;
        squares += d * d;
        n++;
    }
    *rms = sqrt(squares / n - sum / n * sum / n);
    *largest = 0;
    for (uint32_t j = 115; j < 165; j++)
        *largest = fmax(*largest, fabs((double)f.position[OCT_LAYER_RPE][j] - e.rpe[j] - sum / n));
    drop(&f);
    free(e.pixels);
}

static void speckle_does_not_bend_the_rpe_and_drusen_do(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, 12.5);
    double worst = 0, worst_druse = 0;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        double rms, largest;
        wide_field_errors(trace, seed, seed % 2 ? 20 : 10, &rms, &largest);
        worst = fmax(worst, isnan(rms) ? INFINITY : rms);
        worst_druse = fmax(worst_druse, isnan(largest) ? INFINITY : largest);
    }
    print_message("# RPE in a wide field: rms %.2f px at most, on drusen off by %.1f px\n", worst,
                  worst_druse);
    assert_true(worst < 0.4 && worst_druse < 3);
    oct_trace_destroy(trace);
}

/* ---- no layers ---- */

enum noise { WHITE, SPECKLE, CUT_OFF, WIDE_SPECKLE, N_NOISES };

static void make_noise(enum noise kind, uint32_t n_lines, uint32_t depth, uint64_t seed,
                       float *pixels)
{
    uint64_t random = seed;
    size_t n = (size_t)n_lines * depth;

    for (size_t i = 0; i < n; i++) {
        double u = oct_layered_uniform(&random), v = oct_layered_uniform(&random);
        double speckle = 10 * log10(-log(u) + 1e-12);
        double bytes = floor((speckle + 4.5) / 12.5 * 255);
        pixels[i] = (float)(kind == WHITE     ? sqrt(-2 * log(u)) * cos(6.283185307 * v)
                            : kind == CUT_OFF ? fmin(fmax(bytes, 0), 255)
                                              : speckle);
    }
    /* A beam wider than the distance of the A-lines. */
    for (size_t i = n; kind == WIDE_SPECKLE && i-- > 2 * (size_t)depth;)
        pixels[i] = (pixels[i] + pixels[i - depth] + pixels[i - 2 * (size_t)depth]) / 3;
}

static void nothing_is_found_in_noise(void **state)
{
    static const struct {
        uint32_t n_lines, depth;
        double depth_um, line_um;
    } sizes[] = {{240, 512, 1.05, 2.5}, {128, 496, 3.9, 11}, {64, 400, 2.5, 5},
                 {300, 200, 2.5, 25},   {32, 200, 4, 6},     {16, 1000, 1.5, 5}};
    float *pixels = malloc((size_t)240 * 512 * sizeof(float));
    float most[OCT_N_LAYERS] = {0};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint32_t m = sizes[s].n_lines;
        struct oct_trace *trace =
            open_trace(m, sizes[s].depth, sizes[s].depth_um, sizes[s].line_um);
        for (uint64_t seed = 0; seed < 10 * N_NOISES; seed++) {
            make_noise(seed % N_NOISES, m, sizes[s].depth, 1000 * seed + s, pixels);
            struct found f = find(trace, m, pixels, NULL, NULL);
            for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
                for (uint32_t j = 0; j < m; j++)
                    most[layer] = fmaxf(most[layer], f.quality[layer][j]);
                if (count(&f, layer, 0, m))
                    fail_msg("%s in noise of kind %u, %u A-lines, seed %u: quality %.1f",
                             oct_layer_names[layer], (unsigned)(seed % N_NOISES), m, (unsigned)seed,
                             (double)most[layer]);
            }
            drop(&f);
        }
        oct_trace_destroy(trace);
    }
    print_message("# largest quality in noise: %.1f, %.1f\n", (double)most[OCT_LAYER_ILM],
                  (double)most[OCT_LAYER_RPE]);
    free(pixels);
}

/* Sides and pixels at their limits. */
static void the_largest_and_the_smallest_pictures_are_searched(void **state)
{
    static const struct {
        uint32_t n_lines, depth;
        double depth_um, line_um;
    } sizes[] = {{200, 16384, 2, 5}, {16, 16384, 1e-3, 1e-3}, {16384, 16, 1e3, 1e4},
                 {16, 16, 100, 1},   {64, 4096, 0.05, 100},   {300, 64, 30, 0.01}};
    float *pixels = malloc((size_t)200 * 16384 * sizeof(float));

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct oct_trace *trace =
            open_trace(sizes[s].n_lines, sizes[s].depth, sizes[s].depth_um, sizes[s].line_um);
        make_noise(SPECKLE, sizes[s].n_lines, sizes[s].depth, s, pixels);
        for (size_t i = 0; i < (size_t)sizes[s].n_lines * sizes[s].depth; i++)
            pixels[i] += i % sizes[s].depth > sizes[s].depth / 3 ? 10 : 0;
        struct found f = find(trace, sizes[s].n_lines, pixels, NULL, NULL);
        for (uint32_t j = 0; j < sizes[s].n_lines; j++)
            for (int layer = 0; layer < OCT_N_LAYERS; layer++)
                assert_true(f.quality[layer][j] >= 0 && f.quality[layer][j] <= 10);
        drop(&f);
        oct_trace_destroy(trace);
    }
    free(pixels);
}

static void nothing_is_found_in_flat_pictures(void **state)
{
    static const float values[] = {0, 3.7F, -120, NAN, INFINITY, -INFINITY};
    float *pixels = malloc((size_t)M * D * sizeof(float));
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);

    for (size_t k = 0; k < 3 * sizeof(values) / sizeof(values[0]); k++) {
        for (size_t i = 0; i < (size_t)M * D; i++)
            pixels[i] = values[k / 3];
        if (k % 3 == 1)
            pixels[50 * D + 200] = 255; /* a single pixel */
        for (size_t i = 0; k % 3 == 2 && i < D; i++)
            pixels[70 * D + i] = 255; /* a single A-line */
        struct found f = find(trace, M, pixels, NULL, NULL);
        assert_int_equal(f.n_both, 0);
        for (int layer = 0; layer < OCT_N_LAYERS; layer++)
            assert_int_equal(count(&f, layer, 0, M), 0);
        drop(&f);
    }
    free(pixels);
    oct_trace_destroy(trace);
}

/* ---- parts of a retina ---- */

static void half_a_retina_is_half_found(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);

    for (int side = 0; side < 2; side++) {
        struct eye e;
        draw(&e, 3, 0);
        for (uint32_t j = 0; j < M / 2; j++)
            e.ilm[side ? j : M - 1 - j] = NAN;
        oct_layered_draw(&e.eye, e.ilm, e.rpe, e.pixels);
        struct found f = find(trace, M, e.pixels, NULL, NULL);
        uint32_t first = side ? M / 2 : 0;
        for (int i = 0; i < 2; i++) {
            assert_true(count(&f, pair[i], first, first + M / 2) >= M / 2 - 3);
            assert_true(count(&f, pair[i], 0, M) <= M / 2 + 3);
        }
        expect_layers(&e, &f, first, first + M / 2);
        drop(&f);
        free(e.pixels);
    }
    oct_trace_destroy(trace);
}

static void an_ilm_above_the_picture_is_no_guess(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);

    for (double cut = 160; cut < 230; cut += 10) { /* the ILM's lowest place is at 145 */
        struct eye e;
        draw(&e, 5, -cut);
        struct found f = find(trace, M, e.pixels, NULL, NULL);
        if (count(&f, OCT_LAYER_ILM, 0, M))
            fail_msg("cut by %.0f px: %u A-lines have an ILM", cut, count(&f, OCT_LAYER_ILM, 0, M));
        drop(&f);
        free(e.pixels);
    }
    oct_trace_destroy(trace);
}

static void missing_lines_and_pixels_are_left_out(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);
    uint8_t valid[M];
    struct eye e;

    draw(&e, 7, 0);
    memset(valid, 1, sizeof(valid));
    memset(valid + 90, 0, 12);
    for (uint32_t j = 0; j < M; j++)
        for (uint32_t d = 0; d < D; d++)
            if (!valid[j] || (d * 7 + j * 13) % 41 == 0)
                e.pixels[j * D + d] = (d + j) % 2 ? NAN : INFINITY;
    struct found f = find(trace, M, e.pixels, valid, NULL);
    assert_int_equal(f.n_both, M - 12);
    for (uint32_t j = 90; j < 102; j++)
        for (int layer = 0; layer < OCT_N_LAYERS; layer++)
            assert_true(isnan(f.position[layer][j]) && f.quality[layer][j] == 0);
    expect_layers(&e, &f, 0, M);
    drop(&f);
    free(e.pixels);
    oct_trace_destroy(trace);
}

static void what_no_brightness_can_be_does_no_harm(void **state)
{
    static const float wild[] = {1e38F, -1e38F, 3.4e38F, 1e20F, -2e15F, 1e30F, NAN, INFINITY};
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);

    for (size_t kind = 0; kind <= sizeof(wild) / sizeof(wild[0]); kind++) {
        struct eye e;
        draw(&e, 7, 0);
        for (uint32_t j = 0; j < M; j++)
            for (uint32_t d = 0; d < D; d++)
                if ((d * 7 + j * 13) % 97 == 0)
                    e.pixels[j * D + d] =
                        wild[kind < sizeof(wild) / sizeof(wild[0]) ? kind : (d + j) % 8];
        struct found f = find(trace, M, e.pixels, NULL, NULL);
        if (f.n_both != M)
            fail_msg("%g: %u of %u A-lines have both layers", (double)wild[kind % 8], f.n_both, M);
        expect_layers(&e, &f, 0, M);
        drop(&f);
        free(e.pixels);
    }
    oct_trace_destroy(trace);
}

/* Gaps are 150 um: 30 A-lines. */
static void narrow_shadows_are_crossed_and_wide_ones_are_not(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);

    for (uint32_t width = 10; width <= 64; width += 18) {
        struct eye e;
        double truth[M];
        draw(&e, 9, 0);
        memcpy(truth, e.ilm, sizeof(truth));
        for (uint32_t j = 60; j < 60 + width; j++)
            e.ilm[j] = NAN;
        oct_layered_draw(&e.eye, e.ilm, e.rpe, e.pixels);
        memcpy(e.ilm, truth, sizeof(truth));
        struct found f = find(trace, M, e.pixels, NULL, NULL);
        if (width < 30)
            assert_int_equal(f.n_both, M);
        else
            assert_true(f.n_both >= M - width - 2 && f.n_both <= M - width + 8);
        expect_layers(&e, &f, 0, 60);
        drop(&f);
        free(e.pixels);
    }
    oct_trace_destroy(trace);
}

/* A retina with something in its middle. */
enum middle { NOTHING, DISC, PIT, HIDDEN, DARK };
#define WIDE_LINES 500u
#define WIDE_DEPTH 400u
#define WIDE_DEPTH_UM 3.2
#define OPENING_UM 800.0 /* half of a disc's */

/* The light z um above the lower border of the RPE, r um from the middle. The INL is 2.4 dB darker
 * than the OPL. */
static double light_of_middle(enum middle middle, double r, double z)
{
    const double near = fmin(fmax((r - 350) / 600, 0), 1), inner = middle == PIT ? near : 1;

    if (middle == DISC && r < OPENING_UM) {
        const double cup = fmin((OPENING_UM - r) / 400, 1);
        const double above = 250 - 450 * cup * cup * (3 - 2 * cup) - z;
        return above < 0 ? 0.004 : 0.3 * exp(-above / 250);
    }
    if (middle == HIDDEN && r < 300 && z < 145)
        return 0.006;
    if (middle == DARK && r < 300)
        return 0.004 + 0.05 * light_of_middle(NOTHING, r, z);
    return z < 0                   ? 0.15 * exp(z / 150)
           : z < 38                ? 0.5
           : z < 145               ? 0.02
           : z < 145 + 30 * inner  ? 0.07
           : z < 145 + 65 * inner  ? 0.04
           : z < 145 + 130 * inner ? 0.15
           : z < 145 + 165 * inner ? 0.5
                                   : 0.004;
}

/* The shares of a border that are found within radius_um of the middle, and outside. */
struct shares {
    double in, out;
};

static struct shares shares_of(const struct found *f, int layer, double line_um, double radius_um)
{
    const uint32_t first = WIDE_LINES / 2 - (uint32_t)(radius_um / line_um) + 1;
    const uint32_t last = WIDE_LINES - first;
    const uint32_t in = count(f, layer, first, last), all = count(f, layer, 0, WIDE_LINES);

    print_message("# %s: %u of %u within %g um, %u of %u outside\n", oct_layer_names[layer], in,
                  last - first, radius_um, all - in, 2 * first);
    return (struct shares){(double)in / (last - first), (double)(all - in) / (2 * first)};
}

static struct found find_around(enum middle middle, double line_um, double unit_db,
                                const uint8_t *valid)
{
    struct oct_trace *trace =
        open_trace_of(unit_db, WIDE_LINES, WIDE_DEPTH, WIDE_DEPTH_UM, line_um);
    float *pixels = malloc((size_t)WIDE_LINES * WIDE_DEPTH * sizeof(float));
    uint64_t dice = 3;

    for (uint32_t i = 0; i < WIDE_LINES * WIDE_DEPTH; i++) {
        const double x = line_um * ((double)(i / WIDE_DEPTH) - WIDE_LINES / 2);
        const double z = 800 - WIDE_DEPTH_UM * (i % WIDE_DEPTH) - 0.08 * x;
        const double light = light_of_middle(middle, fabs(x), z);
        pixels[i] = (float)(10 * log10(-light * log(oct_layered_uniform(&dice)) + 1e-9));
    }
    struct found f = find(trace, WIDE_LINES, pixels, valid, NULL);
    free(pixels);
    oct_trace_destroy(trace);
    return f;
}

/* Also where it is more than half of the picture. */
static void the_disc_has_no_layers(void **state)
{
    for (double line_um = 12; line_um > 3; line_um -= 4) {
        struct found f = find_around(DISC, line_um, 1, NULL);
        for (int k = 0; k < OCT_N_LAYERS; k++)
            assert_true(shares_of(&f, k, line_um, OPENING_UM).in < 0.025); /* its rim */
        assert_true(shares_of(&f, OCT_LAYER_ILM, line_um, OPENING_UM + 120).out > 0.95);
        assert_true(shares_of(&f, OCT_LAYER_RPE, line_um, OPENING_UM + 120).out > 0.95);
        drop(&f);
    }
}

/* A wide pit has no tissue below the ILM, even where A-lines are missing beside it; a haemorrhage
 * hides the bands; in a dense shadow all is dark, and the ILM is seen. */
static void what_is_no_disc_keeps_its_layers(void **state)
{
    uint8_t valid[WIDE_LINES];
    memset(valid, 1, sizeof(valid));
    struct found f = find_around(PIT, 12, 1, NULL);
    assert_true(shares_of(&f, OCT_LAYER_ILM, 12, 600).in > 0.97);
    assert_true(shares_of(&f, OCT_LAYER_INL_OPL, 12, 1000).out > 0.9);
    drop(&f);
    memset(valid + WIDE_LINES / 2 + 30, 0, 40);
    f = find_around(PIT, 12, 1, valid);
    assert_true(count(&f, OCT_LAYER_ILM, 0, WIDE_LINES) >= WIDE_LINES - 40 - 5);
    drop(&f);
    f = find_around(HIDDEN, 12, 1, NULL);
    assert_true(shares_of(&f, OCT_LAYER_ILM, 12, 300).in > 0.8);
    drop(&f);
    f = find_around(DARK, 12, NAN, NULL);
    assert_true(shares_of(&f, OCT_LAYER_ILM, 12, 300).in > 0.8);
    drop(&f);
}

static void tilted_retinas_are_followed(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);

    for (int side = -1; side <= 1; side += 2) {
        struct eye e;
        draw(&e, 11, 0);
        for (uint32_t j = 0; j < M; j++) { /* 12 degrees fit into the picture */
            e.ilm[j] += side * 0.5 * ((double)j - M / 2);
            e.rpe[j] += side * 0.5 * ((double)j - M / 2);
        }
        oct_layered_draw(&e.eye, e.ilm, e.rpe, e.pixels);
        struct found f = find(trace, M, e.pixels, NULL, NULL);
        assert_true(f.n_both >= M - 4);
        expect_layers(&e, &f, 0, M);
        drop(&f);
        free(e.pixels);
    }
    oct_trace_destroy(trace);
}

/* What disturbs: a tilt, shadows, a line in the vitreous, a lid over some A-lines, specks. */
static void disturb(struct eye *e, uint64_t *random)
{
    const double tilt = oct_layered_uniform(random) - 0.5, where = oct_layered_uniform(random);
    const uint32_t shadow = (uint32_t)(where * (M - 40));
    const uint32_t lid = (uint32_t)(oct_layered_uniform(random) * 60);

    for (uint32_t j = 0; j < M; j++) {
        e->ilm[j] += tilt * ((double)j - M / 2);
        e->rpe[j] += tilt * ((double)j - M / 2);
        if (j < lid && lid < 20)
            e->ilm[j] = NAN;
    }
    oct_layered_draw(&e->eye, e->ilm, e->rpe, e->pixels);
    for (uint32_t j = 0; j < M; j++)
        for (uint32_t d = 0; d < D; d++) {
            float *pixel = &e->pixels[j * D + d];
            if (j >= shadow && j < shadow + 10 && d > e->ilm[j] + 10)
                *pixel -= 12; /* a vessel */
            if (fabs((double)d - (e->ilm[j] - 30)) < 1.5)
                *pixel += 9; /* the detached vitreous */
            if ((j * 37 + d * 11) % 1009 == 0)
                *pixel += 25;
        }
}

static void expect_order(const struct found *f, float *const path[OCT_N_LAYERS], uint64_t seed)
{
    for (uint32_t j = 0; j < M; j++) {
        float least = -INFINITY;
        for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
            const float at = f->position[layer][j];
            if (at < least || (layer > 0 && path[layer][j] < path[layer - 1][j]) ||
                (!isnan(at) && fabsf(at - path[layer][j]) > 1e-4F))
                fail_msg("seed %u, A-line %u: %s out of order", (unsigned)seed, j,
                         oct_layer_names[layer]);
            least = isnan(at) ? least : at;
        }
    }
}

static void borders_are_in_order_whatever_disturbs(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);
    uint64_t random = 5, n_both = 0;
    enum { EYES = 200 };

    for (uint64_t seed = 0; seed < EYES; seed++) {
        struct eye e;
        struct found f = {.n_lines = M};
        struct oct_traced traced;
        draw(&e, seed, 0);
        disturb(&e, &random);
        for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
            traced.position[layer] = f.position[layer] = malloc(M * sizeof(float));
            traced.quality[layer] = f.quality[layer] = malloc(M * sizeof(float));
            traced.path[layer] = malloc(M * sizeof(float));
        }
        n_both += oct_trace_run(trace, e.pixels, NULL, NULL, &traced);
        expect_order(&f, traced.path, seed);
        for (int layer = 0; layer < OCT_N_LAYERS; layer++)
            free(traced.path[layer]);
        drop(&f);
        free(e.pixels);
    }
    print_message("# %.1f %% of the A-lines have both\n", 100.0 * (double)n_both / (EYES * M));
    assert_true(n_both > EYES * M * 85 / 100);
    oct_trace_destroy(trace);
}

/* ---- what the numbers depend on ---- */

static void zero_and_unit_of_the_brightness_do_not_matter(void **state)
{
    struct oct_trace *trace = open_trace_of(NAN, M, D, DEPTH_UM, LINE_UM), *other;
    struct eye e;

    other = open_trace_of(NAN, M, D, DEPTH_UM, LINE_UM);
    draw(&e, 13, 0);
    struct found a = find(trace, M, e.pixels, NULL, NULL);
    struct found same = find(other, M, e.pixels, NULL, NULL);
    assert_int_equal(a.n_both, M);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        assert_memory_equal(a.position[layer], same.position[layer], M * sizeof(float));
        assert_memory_equal(a.quality[layer], same.quality[layer], M * sizeof(float));
    }
    for (size_t i = 0; i < (size_t)M * D; i++)
        e.pixels[i] = 8 * e.pixels[i] - 512;
    struct found b = find(trace, M, e.pixels, NULL, NULL);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < M; j++) {
            assert_true(isnan(a.position[layer][j]) == isnan(b.position[layer][j]) &&
                        !(fabsf(a.position[layer][j] - b.position[layer][j]) >= 0.1F));
            assert_true(fabsf(a.quality[layer][j] - b.quality[layer][j]) < 0.1F);
        }
    drop(&a);
    drop(&b);
    drop(&same);
    free(e.pixels);
    oct_trace_destroy(trace);
    oct_trace_destroy(other);
}

static void bounds_hold_the_layers(void **state)
{
    struct oct_trace *trace = open_trace(M, D, DEPTH_UM, LINE_UM);
    float least[M], most[M], none[M];
    struct eye e;

    draw(&e, 15, 0);
    struct found a = find(trace, M, e.pixels, NULL, NULL);
    for (uint32_t j = 0; j < M; j++) { /* half of them about the photoreceptors' band */
        none[j] = NAN;
        least[j] = j < 50 ? NAN : (float)e.rpe[j] - (j < 100 ? 8 : 40);
        most[j] = j < 50 ? NAN : (float)e.rpe[j] + (j < 100 ? 8 : -12);
    }
    const struct oct_trace_bounds no_bounds = {.least = {[OCT_LAYER_ILM] = none},
                                               .most = {[OCT_LAYER_RPE] = none}};
    const struct oct_trace_bounds bounds = {
        .least = {[OCT_LAYER_RPE] = least},
        .most = {[OCT_LAYER_ILM] = none, [OCT_LAYER_RPE] = most}};
    struct found b = find(trace, M, e.pixels, NULL, &no_bounds);
    struct found c = find(trace, M, e.pixels, NULL, &bounds);
    for (int i = 0; i < 2; i++) {
        const int layer = pair[i];
        assert_memory_equal(a.position[layer], b.position[layer], M * sizeof(float));
        for (uint32_t j = 0; j < 85; j++)
            assert_true(fabsf(a.position[layer][j] - c.position[layer][j]) < 1);
    }
    /* The RPE's step is not there. */
    assert_int_equal(count(&c, OCT_LAYER_RPE, 115, M), 0);
    assert_int_equal(count(&c, OCT_LAYER_ILM, 0, 85), 85);
    drop(&a);
    drop(&b);
    drop(&c);
    free(e.pixels);
    oct_trace_destroy(trace);
}

static void what_cannot_be_is_refused(void **state)
{
    struct oct_trace *trace;
    struct oct_error err;
    struct oct_trace_setup right = {.n_lines = 16, .depth = 16}, wrong;

    oct_trace_params_default(&right.params);
    assert_int_equal(oct_trace_create(&trace, &right, &err), OCT_OK); /* too small for a retina */
    float pixels[256] = {0};
    struct found f = find(trace, 16, pixels, NULL, NULL);
    assert_int_equal(f.n_both, 0);
    drop(&f);
    oct_trace_destroy(trace);
    oct_trace_destroy(NULL);
    for (int k = 0; k < 10; k++) {
        wrong = right;
        wrong.n_lines = k == 0 ? 15 : 16;
        wrong.depth = k == 1 ? 15 : 16;
        wrong.params.depth_um = k == 2 ? -1 : 2;
        wrong.params.least_um = k == 3 ? 700 : 100;
        wrong.params.max_slope = k == 4 ? 0 : 1;
        wrong.params.price = k == 5 ? -1 : 0.1;
        wrong.params.gap_um = k == 6 ? NAN : 100;
        wrong.params.most_um = k == 7 ? INFINITY : 600;
        wrong.params.line_um = k == 8 ? 1e-4 : k == 9 ? 2e4 : 5;
        assert_int_equal(oct_trace_create(&trace, &wrong, &err), OCT_E_ARG);
        assert_null(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layers_of_a_retina_lie_where_the_truth_says),
        cmocka_unit_test(inner_layers_move_against_the_outer_ones),
        cmocka_unit_test(thin_fibres_end_where_they_do),
        cmocka_unit_test(thick_fibres_leave_the_layers_below_them_where_they_are),
        cmocka_unit_test(bounds_hold_for_inner_layers_too),
        cmocka_unit_test(speckle_does_not_bend_the_rpe_and_drusen_do),
        cmocka_unit_test(nothing_is_found_in_noise),
        cmocka_unit_test(the_largest_and_the_smallest_pictures_are_searched),
        cmocka_unit_test(nothing_is_found_in_flat_pictures),
        cmocka_unit_test(half_a_retina_is_half_found),
        cmocka_unit_test(an_ilm_above_the_picture_is_no_guess),
        cmocka_unit_test(missing_lines_and_pixels_are_left_out),
        cmocka_unit_test(what_no_brightness_can_be_does_no_harm),
        cmocka_unit_test(narrow_shadows_are_crossed_and_wide_ones_are_not),
        cmocka_unit_test(the_disc_has_no_layers),
        cmocka_unit_test(what_is_no_disc_keeps_its_layers),
        cmocka_unit_test(tilted_retinas_are_followed),
        cmocka_unit_test(borders_are_in_order_whatever_disturbs),
        cmocka_unit_test(zero_and_unit_of_the_brightness_do_not_matter),
        cmocka_unit_test(bounds_hold_the_layers),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
