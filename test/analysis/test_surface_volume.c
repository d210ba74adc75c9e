/* ILM and RPE of volumes: jumps, blinks, shadows and real steps, on bands that lie where they are
 * told to. */
#include "test/rig/tap.h"

#include "analysis/layers/find/volume.h"
#include "kernels/device/workers.h"
#include "test/rig/layered_eye.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 16u
#define M 160u
#define D 320u
#define DEPTH_UM 2.0

struct volume {
    double ilm[N][M], rpe[N][M]; /* NaN: noise */
    float *pixels;               /* [N][M][D] */
    bool masked;                 /* the first 8 A-lines of each B-scan */
    uint32_t n_reads[N];
    uint64_t done, all;
    int fails_at; /* B-scan; -1: none */
};

/* Jumps by up to 20 px from B-scan to B-scan. */
static void volume_init(struct volume *v, bool jumps)
{
    memset(v, 0, sizeof(*v));
    v->fails_at = -1;
    for (uint32_t b = 0; b < N; b++) {
        const struct oct_layered_eye eye = {M, D, DEPTH_UM, b + 1};
        double jump = jumps ? 10 * sin(2.4 * b) + (b > 8 ? 9 : 0) - 12 : -10;
        oct_layered_pit(&eye, jump, v->ilm[b], v->rpe[b]);
    }
    v->pixels = malloc((size_t)N * M * D * sizeof(float));
}

static void volume_draw(struct volume *v)
{
    for (uint32_t b = 0; b < N; b++) {
        const struct oct_layered_eye eye = {M, D, DEPTH_UM, b + 1};
        oct_layered_draw(&eye, v->ilm[b], v->rpe[b], v->pixels + (size_t)b * M * D);
    }
}

static enum oct_err read_bscan(void *context, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    struct volume *v = context;

    if ((int)b == v->fails_at)
        return oct_fail(err, OCT_E_IO, "the disk is gone");
    enum oct_err e = oct_picture_init(picture, M, D, v->masked, err);
    if (e)
        return e;
    v->n_reads[b]++;
    memcpy(picture->pixels, v->pixels + (size_t)b * M * D, (size_t)M * D * sizeof(float));
    if (v->masked)
        memset(picture->valid, 0, 8 * D);
    return OCT_OK;
}

static void progress(void *context, uint64_t done, uint64_t all)
{
    struct volume *v = context;

    assert_true(done >= v->done && done <= all && (v->all == 0 || v->all == all));
    v->done = done;
    v->all = all;
}

static enum oct_err run(struct volume *v, const struct oct_surfaces_setup *more,
                        struct oct_surfaces *found, struct oct_error *err)
{
    struct oct_surfaces_setup setup = *more;
    const struct oct_volume_source source = {
        .context = v, .n_bscans = N, .read = read_bscan, .progress = progress};

    setup.n_lines = M;
    setup.depth = D;
    oct_trace_params_default(&setup.trace);
    setup.trace.depth_um = DEPTH_UM;
    setup.trace.line_um = 5;
    setup.bscan_um = 10;
    setup.backend = "cpu";
    v->done = v->all = 0;
    return oct_surfaces_find(&setup, &source, found, err);
}

static void find(struct volume *v, bool align, const uint8_t *skip, struct oct_surfaces *found)
{
    const struct oct_surfaces_setup setup = {.align = align, .skip = skip};
    struct oct_error err;

    if (run(v, &setup, found, &err))
        fail_msg("%s", err.text);
    assert_true(v->done == v->all && v->all > 0);
}

static uint32_t count(const struct oct_surfaces *s, int layer, uint32_t b, uint32_t first,
                      uint32_t last)
{
    uint32_t n = 0;

    for (uint32_t j = first; j < last; j++)
        n += isnan(s->position[layer][(size_t)b * M + j]) ? 0 : 1;
    return n;
}

/* The largest error of A-lines of a B-scan but for a common one, px. */
static double largest_error(const struct oct_surfaces *s, int layer, uint32_t b,
                            const double truth[M], uint32_t first, uint32_t last)
{
    static const double common[OCT_N_LAYERS] = {[OCT_LAYER_ILM] = -1.5, [OCT_LAYER_RPE] = 0};
    double most = 0;

    for (uint32_t j = first; j < last; j++) {
        double d = (double)s->position[layer][(size_t)b * M + j] - truth[j] - common[layer];
        most = isnan(d) ? most : fmax(most, fabs(d));
    }
    return most;
}

static void expect_layers_within(const struct volume *v, const struct oct_surfaces *s, uint32_t b,
                                 double most_px)
{
    double ilm = largest_error(s, OCT_LAYER_ILM, b, v->ilm[b], 0, M);
    double rpe = largest_error(s, OCT_LAYER_RPE, b, v->rpe[b], 0, M);

    if (!(ilm < 2 && rpe < most_px && count(s, OCT_LAYER_ILM, b, 0, M) >= M - 8 &&
          count(s, OCT_LAYER_RPE, b, 0, M) >= M - 8))
        fail_msg("B-scan %u: %.1f and %.1f px, %u and %u A-lines", b, ilm, rpe,
                 count(s, OCT_LAYER_ILM, b, 0, M), count(s, OCT_LAYER_RPE, b, 0, M));
}

static void expect_layers(const struct volume *v, const struct oct_surfaces *s, uint32_t b)
{
    expect_layers_within(v, s, b, 3.5);
}

/* ---- the eye moves ---- */

static void jumps_are_followed_and_told(void **state)
{
    struct volume v;
    struct oct_surfaces s;

    volume_init(&v, true);
    volume_draw(&v);
    for (int align = 0; align < 2; align++) {
        uint64_t n_found[OCT_N_LAYERS] = {0};
        find(&v, align, NULL, &s);
        assert_true(s.n_bscans == N && s.n_lines == M);
        for (uint32_t b = 0; b < N; b++) {
            double undone = s.shift_px[b] - s.shift_px[0] + v.ilm[b][0] - v.ilm[0][0];
            expect_layers(&v, &s, b);
            assert_int_equal(s.fate[b], OCT_VOLUME_USED);
            assert_true(align ? fabs(undone) < 1 : s.shift_px[b] == 0);
            for (int layer = 0; layer < OCT_N_LAYERS; layer++)
                n_found[layer] += count(&s, layer, b, 0, M);
        }
        assert_memory_equal(n_found, s.n_found, sizeof(n_found));
        oct_surfaces_finish(&s);
        assert_null(s.fate);
    }
    free(v.pixels);
}

static void blinks_are_not_found_and_what_is_beside_them_is(void **state)
{
    struct volume v;
    struct oct_surfaces s;

    volume_init(&v, true);
    for (uint32_t j = 0; j < M; j++) {
        v.ilm[5][j] = v.ilm[6][j] = NAN;
        if (j >= 60)
            v.ilm[7][j] = NAN;
    }
    volume_draw(&v);
    for (int align = 0; align < 2; align++) {
        find(&v, align, NULL, &s);
        for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
            assert_int_equal(count(&s, layer, 5, 0, M) + count(&s, layer, 6, 0, M), 0);
            assert_int_equal(count(&s, layer, 7, 65, M), 0);
        }
        assert_true(count(&s, OCT_LAYER_ILM, 7, 0, 60) >= 55);
        assert_true(count(&s, OCT_LAYER_RPE, 7, 0, 60) >= 55);
        for (uint32_t b = 0; b < N; b++)
            if (b < 5 || b > 7)
                expect_layers(&v, &s, b);
        if (align)
            assert_int_equal(s.fate[5], OCT_VOLUME_BLANK);
        oct_surfaces_finish(&s);
    }
    free(v.pixels);
}

static void skipped_bscans_are_not_read(void **state)
{
    struct volume v;
    struct oct_surfaces s;
    const uint8_t skip[N] = {[3] = 1, [15] = 1};

    volume_init(&v, false);
    volume_draw(&v);
    find(&v, true, skip, &s);
    for (uint32_t b = 0; b < N; b++) {
        assert_int_equal(s.fate[b], skip[b] ? OCT_VOLUME_SKIPPED : OCT_VOLUME_USED);
        assert_true(skip[b] ? v.n_reads[b] == 0 : v.n_reads[b] > 1);
        if (skip[b])
            assert_int_equal(count(&s, OCT_LAYER_ILM, b, 0, M), 0);
        else
            expect_layers(&v, &s, b);
    }
    oct_surfaces_finish(&s);
    free(v.pixels);
}

/* ---- what neighbours know ---- */

/* In B-scan 8 the RPE's band is faint and the choroid has a bright band 40 px deeper; the first
 * pass goes there, as a trace of the B-scan alone shows. */
static void dazzle(struct volume *v, uint32_t b)
{
    float *pixels = v->pixels + (size_t)b * M * D;

    for (uint32_t j = 50; j < 110; j++)
        for (int d = (int)v->rpe[b][j] - 12; d < (int)v->rpe[b][j] + 40; d++)
            pixels[j * D + (uint32_t)d] += d < (int)v->rpe[b][j]         ? -5
                                           : d >= (int)v->rpe[b][j] + 25 ? 16
                                                                         : 0;
}

static void neighbours_hold_a_layer_that_jumps(void **state)
{
    struct volume v;
    struct oct_surfaces s;
    struct oct_trace_setup setup = {.n_lines = M, .depth = D};
    struct oct_trace *trace;
    struct oct_error err;
    float position[OCT_N_LAYERS][M], quality[OCT_N_LAYERS][M];
    struct oct_traced traced = {.path = {NULL}};
    uint32_t n_off = 0;

    volume_init(&v, true);
    volume_draw(&v);
    dazzle(&v, 8);
    oct_trace_params_default(&setup.params);
    setup.params.depth_um = DEPTH_UM;
    setup.params.line_um = 5;
    assert_int_equal(oct_trace_create(&trace, &setup, &err), OCT_OK);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        traced.position[layer] = position[layer];
        traced.quality[layer] = quality[layer];
    }
    oct_trace_run(trace, v.pixels + (size_t)8 * M * D, NULL, NULL, &traced);
    for (uint32_t j = 50; j < 110; j++)
        n_off += fabs((double)position[OCT_LAYER_RPE][j] - v.rpe[8][j]) > 15;
    assert_true(n_off > 30);
    oct_trace_destroy(trace);
    find(&v, true, NULL, &s);
    for (uint32_t b = 0; b < N; b++)
        if (b != 8)
            expect_layers(&v, &s, b);
    double left = largest_error(&s, OCT_LAYER_RPE, 8, v.rpe[8], 0, M);
    if (left > 8 || count(&s, OCT_LAYER_RPE, 8, 0, M) < M - 10)
        fail_msg("B-scan 8: %.1f px, %u A-lines", left, count(&s, OCT_LAYER_RPE, 8, 0, M));
    oct_surfaces_finish(&s);
    free(v.pixels);
}

/* Drusen in B-scan 8 alone and from B-scan 11 on. */
static void a_real_step_stays(void **state)
{
    struct volume v;
    struct oct_surfaces s;

    volume_init(&v, false);
    for (uint32_t b = 8; b < N; b++)
        for (uint32_t j = 0; (b == 8 || b > 10) && j < M; j++) {
            double u = ((double)j - 80) / 14;
            v.rpe[b][j] -= 22 * exp(-0.5 * u * u);
        }
    volume_draw(&v);
    for (int align = 0; align < 2; align++) {
        find(&v, align, NULL, &s);
        for (uint32_t b = 0; b < N; b++)
            expect_layers_within(&v, &s, b, b == 10 ? 6.5 : 3.5); /* 10: flat between drusen */
        oct_surfaces_finish(&s);
    }
    free(v.pixels);
}

/* ---- ends ---- */

static void a_volume_without_a_retina_has_no_layers(void **state)
{
    struct volume v;
    struct oct_surfaces s;

    for (int black = 0; black < 2; black++) {
        volume_init(&v, false);
        for (uint32_t b = 0; b < N; b++)
            for (uint32_t j = 0; j < M; j++)
                v.ilm[b][j] = NAN;
        volume_draw(&v);
        if (black)
            memset(v.pixels, 0, (size_t)N * M * D * sizeof(float));
        find(&v, true, NULL, &s);
        assert_true(s.n_found[0] == 0 && s.n_found[1] == 0);
        for (uint32_t b = 0; b < N; b++)
            assert_true(s.shift_px[b] == 0 || s.fate[b] == OCT_VOLUME_USED);
        oct_surfaces_finish(&s);
        free(v.pixels);
    }
}

static void any_number_of_threads_finds_the_same(void **state)
{
    struct volume v;
    struct oct_surfaces one, many;
    struct oct_workers *workers;
    struct oct_error err;

    volume_init(&v, true);
    volume_draw(&v);
    v.masked = true;
    dazzle(&v, 8);
    find(&v, true, NULL, &one);
    for (uint32_t b = 0; b < N; b++)
        assert_int_equal(count(&one, OCT_LAYER_ILM, b, 0, 8), 0);
    assert_int_equal(oct_workers_create(&workers, 3, &err), OCT_OK);
    const struct oct_surfaces_setup setup = {.align = true, .workers = workers};
    assert_int_equal(run(&v, &setup, &many, &err), OCT_OK);
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        assert_memory_equal(one.position[layer], many.position[layer], sizeof(float) * N * M);
        assert_memory_equal(one.quality[layer], many.quality[layer], sizeof(float) * N * M);
    }
    oct_surfaces_finish(&one);
    oct_surfaces_finish(&many);
    oct_workers_destroy(workers);
    free(v.pixels);
}

static void what_cannot_be_is_refused(void **state)
{
    struct volume v;
    struct oct_surfaces s;
    struct oct_error err;
    struct oct_surfaces_setup setup = {.n_lines = M, .depth = D, .backend = "cpu"};
    struct oct_volume_source source = {.context = &v, .n_bscans = N, .read = read_bscan};

    volume_init(&v, false);
    volume_draw(&v);
    oct_trace_params_default(&setup.trace);
    setup.depth = D - 1;
    assert_int_equal(oct_surfaces_find(&setup, &source, &s, &err), OCT_E_ARG);
    setup.depth = D;
    setup.trace.least_um = -1;
    assert_int_equal(oct_surfaces_find(&setup, &source, &s, &err), OCT_E_ARG);
    setup.trace.least_um = 100;
    v.fails_at = 9;
    assert_int_equal(oct_surfaces_find(&setup, &source, &s, &err), OCT_E_IO);
    assert_true(!s.position[0] && !s.fate && s.n_bscans == 0);
    free(v.pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jumps_are_followed_and_told),
        cmocka_unit_test(blinks_are_not_found_and_what_is_beside_them_is),
        cmocka_unit_test(skipped_bscans_are_not_read),
        cmocka_unit_test(neighbours_hold_a_layer_that_jumps),
        cmocka_unit_test(a_real_step_stays),
        cmocka_unit_test(a_volume_without_a_retina_has_no_layers),
        cmocka_unit_test(any_number_of_threads_finds_the_same),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
