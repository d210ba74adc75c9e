/* Thickness, the ETDRS grid and the fovea against maps whose values are known by construction, and
 * slabs against sums by hand. */
#include "analysis/layers/measure/slab.h"
#include "analysis/layers/measure/thickness.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static void assert_near(double value, double expected, double within)
{
    if (!(fabs(value - expected) <= within))
        fail_msg("%.9g is not %.9g +- %g", value, expected, within);
}

static float *new_map(size_t n)
{
    float *map = malloc(n * sizeof(*map));
    assert_non_null(map);
    return map;
}

static void a_map_is_the_distance_in_um(void **state)
{
    const float upper[5] = {10, 20.5f, NAN, 30, 1}, lower[5] = {110, 60, 90, NAN, INFINITY};
    float um[5];
    assert_int_equal(oct_thickness_map(upper, lower, 5, 2.5, um), 2);
    assert_near(um[0], 250, 0);
    assert_near(um[1], 98.75, 1e-5);
    assert_true(isnan(um[2]) && isnan(um[3]) && isnan(um[4]));
}

/* ---- the ETDRS grid ---- */

static void sectors_lie_where_the_study_put_them(void **state)
{
    const struct {
        double right, up;
        enum oct_etdrs_sector sector; /* with nasal to the right */
    } cases[] = {
        {0, 0, OCT_ETDRS_CENTRE},
        {0.35, -0.35, OCT_ETDRS_CENTRE},
        {0, 0.51, OCT_ETDRS_INNER_SUPERIOR},
        {0.51, 0, OCT_ETDRS_INNER_NASAL},
        {0, -1.49, OCT_ETDRS_INNER_INFERIOR},
        {-1.49, 0, OCT_ETDRS_INNER_TEMPORAL},
        {0.9, 1, OCT_ETDRS_INNER_SUPERIOR},
        {1, 0.9, OCT_ETDRS_INNER_NASAL},
        {0, 1.51, OCT_ETDRS_OUTER_SUPERIOR},
        {2.99, 0, OCT_ETDRS_OUTER_NASAL},
        {-1.9, -2, OCT_ETDRS_OUTER_INFERIOR},
        {-2, -1.9, OCT_ETDRS_OUTER_TEMPORAL},
        {0, 3.01, OCT_ETDRS_N_SECTORS},
        {NAN, 0, OCT_ETDRS_N_SECTORS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(oct_etdrs_sector_at(cases[i].right, cases[i].up, true), cases[i].sector);
    assert_int_equal(oct_etdrs_sector_at(1, 0, false), OCT_ETDRS_INNER_TEMPORAL);
    assert_int_equal(oct_etdrs_sector_at(-2, 0, false), OCT_ETDRS_OUTER_NASAL);
    assert_string_equal(oct_etdrs_names[OCT_ETDRS_CENTRE], "centre");
    assert_string_equal(oct_etdrs_names[OCT_ETDRS_INNER_INFERIOR], "inner inferior");
    assert_string_equal(oct_etdrs_names[OCT_ETDRS_OUTER_TEMPORAL], "outer temporal");
}

/* 7 mm x 7 mm about the fovea, B-scans 50 um apart and A-lines 25; each place holds its sector's
 * number, counted from 100 on. */
enum { WIDE_V = 141, WIDE_M = 281 };
static const struct oct_etdrs_setup wide = {.n_bscans = WIDE_V,
                                            .n_lines = WIDE_M,
                                            .bscan_um = 50,
                                            .line_um = 25,
                                            .fovea_b = 70,
                                            .fovea_j = 140,
                                            .has_sides = true,
                                            .nasal_is_right = true};

static float *sector_map(const struct oct_etdrs_setup *s)
{
    float *map = new_map((size_t)s->n_bscans * s->n_lines);
    for (uint32_t b = 0; b < s->n_bscans; b++)
        for (uint32_t j = 0; j < s->n_lines; j++) {
            const double up = (s->fovea_b - b) * s->bscan_um / 1000;
            const double right = (j - s->fovea_j) * s->line_um / 1000;
            map[b * s->n_lines + j] =
                100.0f + (float)oct_etdrs_sector_at(right, s->superior_is_last ? -up : up,
                                                    s->nasal_is_right);
        }
    return map;
}

static void each_sector_has_its_own_mean(void **state)
{
    for (unsigned turn = 0; turn < 4; turn++) {
        struct oct_etdrs_setup s = wide;
        struct oct_etdrs e;
        s.nasal_is_right = turn & 1;
        s.superior_is_last = turn & 2;
        float *map = sector_map(&s);
        oct_etdrs_measure(&s, map, &e);
        for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
            /* An A-line at a border counts for both sides by its area. */
            assert_near(e.mean_um[i], 100 + i, 0.35);
            assert_near(e.covered[i], 1, 0.01);
        }
        free(map);
    }
}

/* A tilted map has at the centre its value there, and in the rings what the integral says: the
 * centroid of a ring's quarter is at 2 sqrt(2) / (3 pi / 2) ... (R^3 - r^3) / (R^2 - r^2). */
static void a_slope_has_the_means_of_its_integral(void **state)
{
    float *map = new_map((size_t)WIDE_V * WIDE_M);
    struct oct_etdrs e;
    for (uint32_t b = 0; b < WIDE_V; b++)
        for (uint32_t j = 0; j < WIDE_M; j++)
            map[b * WIDE_M + j] =
                (float)(300 + 20 * ((double)j - 140) * 0.025 - 8 * ((double)b - 70) * 0.05);
    oct_etdrs_measure(&wide, map, &e);
    const double quarter = 4 * sqrt(2) / (3 * PI);
    const double inner = quarter * (1.5 * 1.5 * 1.5 - 0.125) / (2.25 - 0.25);
    const double outer = quarter * (27 - 1.5 * 1.5 * 1.5) / (9 - 2.25);
    const double expected[OCT_ETDRS_N_SECTORS] = {300,
                                                  300 + 8 * inner,
                                                  300 + 20 * inner,
                                                  300 - 8 * inner,
                                                  300 - 20 * inner,
                                                  300 + 8 * outer,
                                                  300 + 20 * outer,
                                                  300 - 8 * outer,
                                                  300 - 20 * outer};
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++)
        assert_near(e.mean_um[i], expected[i], 0.05);
    free(map);
}

static void coverage_is_the_known_share_of_the_area(void **state)
{
    float *map = new_map((size_t)WIDE_V * WIDE_M);
    struct oct_etdrs e;
    for (uint32_t b = 0; b < WIDE_V; b++)
        for (uint32_t j = 0; j < WIDE_M; j++)
            map[b * WIDE_M + j] = j >= 140 ? 250.0f : NAN; /* from half an A-line left of it on */
    oct_etdrs_measure(&wide, map, &e);
    assert_near(e.covered[OCT_ETDRS_CENTRE], 0.5 + 0.0125 * 1 / (PI * 0.25), 0.005);
    assert_near(e.covered[OCT_ETDRS_OUTER_SUPERIOR], 0.5, 0.01);
    assert_near(e.covered[OCT_ETDRS_OUTER_NASAL], 1, 0.01);
    assert_true(e.covered[OCT_ETDRS_INNER_TEMPORAL] == 0);
    assert_true(isnan(e.mean_um[OCT_ETDRS_INNER_TEMPORAL]));
    assert_near(e.mean_um[OCT_ETDRS_CENTRE], 250, 1e-9);
    free(map);
}

/* A small field lies within the centre and covers its own area of it; a few B-scans far apart stand
 * for the area between them. */
static void small_fields_and_sparse_ones_are_measured(void **state)
{
    float map[30 * 40];
    struct oct_etdrs e;
    for (unsigned i = 0; i < 30 * 40; i++)
        map[i] = 200;
    struct oct_etdrs_setup s = {.n_bscans = 30,
                                .n_lines = 40,
                                .bscan_um = 10,
                                .line_um = 10,
                                .fovea_b = 14.5,
                                .fovea_j = 19.5};
    oct_etdrs_measure(&s, map, &e);
    assert_near(e.covered[OCT_ETDRS_CENTRE], 0.3 * 0.4 / (PI * 0.25), 1e-9);
    for (unsigned i = 1; i < OCT_ETDRS_N_SECTORS; i++)
        assert_true(isnan(e.mean_um[i]) && e.covered[i] == 0);
    s = (struct oct_etdrs_setup){.n_bscans = 30,
                                 .n_lines = 40,
                                 .bscan_um = 240,
                                 .line_um = 180,
                                 .fovea_b = 14.5,
                                 .fovea_j = 19.5};
    oct_etdrs_measure(&s, map, &e);
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++)
        assert_near(e.covered[i], 1, 0.02);
    s.fovea_j = -100;
    oct_etdrs_measure(&s, map, &e);
    assert_true(isnan(e.mean_um[OCT_ETDRS_CENTRE]));
}

/* ---- the fovea ---- */

static void fill_pit(float *map, uint32_t v, uint32_t m, const double um[2], const double at[2],
                     double depth_um, uint32_t *random)
{
    for (uint32_t b = 0; b < v; b++)
        for (uint32_t j = 0; j < m; j++) {
            const double y = (b - at[0]) * um[0], x = (j - at[1]) * um[1];
            const double r2 = (y * y + x * x) / (350.0 * 350.0);
            *random = *random * 1664525u + 1013904223u;
            const double noise = ((double)(*random >> 8) / (1 << 24) - 0.5) * 20;
            map[b * m + j] = (float)(330 - depth_um * exp(-r2) - 0.01 * x + noise);
        }
}

static void the_pit_is_found(void **state)
{
    static float map[240 * 240];
    uint32_t random = 5;
    double b, j;
    const double fine[2] = {10, 10}, at[2] = {100.4, 140.7};
    fill_pit(map, 240, 240, fine, at, 100, &random);
    assert_true(oct_thickness_fovea(map, 240, 240, 10, 10, &b, &j));
    assert_true(hypot(b - at[0], j - at[1]) * 10 < 60);
    /* Of two pits the deeper one. */
    const double shallow[2] = {190, 190};
    static float second[240 * 240];
    fill_pit(map, 240, 240, (const double[2]){8, 8}, (const double[2]){50, 50}, 100, &random);
    fill_pit(second, 240, 240, (const double[2]){8, 8}, shallow, 60, &random);
    for (unsigned i = 0; i < 240 * 240; i++)
        map[i] = fminf(map[i], second[i]);
    assert_true(oct_thickness_fovea(map, 240, 240, 8, 8, &b, &j));
    assert_true(hypot(b - 50, j - 50) * 8 < 60);
    /* Near a side of a small field, with a hole beside it. */
    const double small[2] = {2.5, 2.5}, near[2] = {100, 58};
    fill_pit(map, 240, 240, small, near, 100, &random);
    for (unsigned i = 0; i < 30; i++)
        memset(map + (120 + i) * 240 + 30, 0xff, 20 * sizeof(float)); /* NaN */
    assert_true(oct_thickness_fovea(map, 240, 240, 2.5, 2.5, &b, &j));
    assert_true(hypot(b - near[0], j - near[1]) * 2.5 < 60);
    /* B-scans far apart; a side of the field that is thinner than the pit. */
    const double coarse[2] = {120, 12}, middle[2] = {24.6, 300};
    fill_pit(map, 49, 600, coarse, middle, 100, &random);
    for (unsigned i = 0; i < 49; i++)
        for (unsigned k = 0; k < 60; k++)
            map[i * 600 + k] = 180.0f + (float)k;
    assert_true(oct_thickness_fovea(map, 49, 600, 120, 12, &b, &j));
    assert_true(hypot((b - middle[0]) * 120, (j - middle[1]) * 12) < 80);
}

static void no_pit_is_made_up(void **state)
{
    static float map[240 * 240];
    uint32_t random = 9;
    double b, j;
    const double um[2] = {10, 10}, outside[2] = {120, -60}, inside[2] = {120, 120};
    fill_pit(map, 240, 240, um, outside, 100, &random);
    assert_false(oct_thickness_fovea(map, 240, 240, 10, 10, &b, &j)); /* falls to one side */
    /* All in one cell, whatever the spacing. */
    assert_false(oct_thickness_fovea(map, 240, 240, 10, 1e-9, &b, &j));
    assert_false(oct_thickness_fovea(map, 240, 240, 1e-9, 10, &b, &j));
    fill_pit(map, 240, 240, um, inside, 0, &random);
    assert_false(oct_thickness_fovea(map, 240, 240, 10, 10, &b, &j)); /* noise on a slope */
    fill_pit(map, 240, 240, um, inside, -60, &random);
    assert_false(oct_thickness_fovea(map, 240, 240, 10, 10, &b, &j)); /* a hill */
    for (unsigned y = 0; y < 240; y++)                                /* a valley */
        for (unsigned x = 0; x < 240; x++)
            map[y * 240 + x] = 300.0f + 0.5f * fabsf((float)x - 120);
    assert_false(oct_thickness_fovea(map, 240, 240, 10, 10, &b, &j));
    memset(map, 0xff, sizeof(map));
    assert_false(oct_thickness_fovea(map, 240, 240, 10, 10, &b, &j));
}

/* ---- slabs ---- */

static void slabs_are_read_and_written(void **state)
{
    const struct {
        const char *given, *shortest;
        struct oct_slab slab;
    } right[] = {
        {"ilm:rpe", "ilm:rpe", {{OCT_LAYER_ILM, 0}, {OCT_LAYER_RPE, 0}, false}},
        {"ilm+10:ilm+40", "ilm+10:ilm+40", {{OCT_LAYER_ILM, 10}, {OCT_LAYER_ILM, 40}, false}},
        {"rpe-60.50:rpe+0", "rpe-60.5:rpe", {{OCT_LAYER_RPE, -60.5}, {OCT_LAYER_RPE, 0}, false}},
        {"ilm-.5:rpe+1e1", "ilm-0.5:rpe+10", {{OCT_LAYER_ILM, -0.5}, {OCT_LAYER_RPE, 10}, false}},
        {"rpe-300:ilm+50", "rpe-300:ilm+50", {{OCT_LAYER_RPE, -300}, {OCT_LAYER_ILM, 50}, false}},
    };
    static const char *const wrong[] = {
        "",
        "ilm",
        "ilm:",
        ":rpe",
        "ilm10:rpe",
        "ilm+:rpe",
        "ilm+10:rpe ",
        " ilm:rpe",
        "ilm+10:ilm+10",
        "ilm+40:ilm+10",
        "rpe:ilm",
        "ILM:RPE",
        "ilm+nan:rpe",
        "ilm+inf:rpe",
        "ilm+0x9:rpe",
        "ilm+1e9:rpe",
        "ilm+1:rpe:x",
        "nfl+10:rpe",
        "ilm+1um:rpe",
        "ilm+ 3:rpe",
    };
    struct oct_slab slab;
    struct oct_error err;
    char text[64];
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        assert_int_equal(oct_slab_parse(&slab, right[i].given, &err), OCT_OK);
        assert_int_equal(slab.first.layer, right[i].slab.first.layer);
        assert_int_equal(slab.last.layer, right[i].slab.last.layer);
        assert_true(slab.first.offset_um == right[i].slab.first.offset_um);
        assert_true(slab.last.offset_um == right[i].slab.last.offset_um);
        oct_slab_text(&slab, text, sizeof(text));
        assert_string_equal(text, right[i].shortest);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (oct_slab_parse(&slab, wrong[i], &err) != OCT_E_ARG)
            fail_msg("%s: is taken", wrong[i]);
    oct_slab_parse(&slab, right[0].given, NULL);
    oct_slab_text(&slab, text, 5);
    assert_string_equal(text, "ilm:");
}

static void slabs_are_means_of_parts_of_pixels(void **state)
{
    enum { M = 7, D = 8 };
    float pixels[M * D], values[M];
    for (unsigned i = 0; i < M * D; i++)
        pixels[i] = (float)((i % D) * (i % D)); /* 0 1 4 9 16 25 36 49 */
    const float ilm[M] = {1, 1.25f, NAN, -3, 6, -20, 2}, rpe[M] = {4, 5, 6, 7, 2, 6, INFINITY};
    const float *const both[OCT_N_LAYERS] = {[OCT_LAYER_ILM] = ilm, [OCT_LAYER_RPE] = rpe};
    const float *const only[OCT_N_LAYERS] = {[OCT_LAYER_ILM] = ilm};
    const struct oct_slab slab = {
        {OCT_LAYER_ILM, 5}, {OCT_LAYER_ILM, 15}, false}; /* 2 to 6 px below */
    pixels[4 * D + 7] = NAN;
    oct_slab_project(&slab, pixels, M, D, 2.5, only, values);
    /* From 3 to 7: half of 9 and of 49, all of 16, 25, 36. */
    assert_near(values[0], (4.5 + 16 + 25 + 36 + 24.5) / 4, 1e-5);
    /* From 3.25 to 7.25. */
    assert_near(values[1], (0.25 * 9 + 16 + 25 + 36 + 0.75 * 49) / 4, 1e-5);
    assert_true(isnan(values[2]));
    /* From -1 to 3: the picture begins at -0.5. */
    assert_near(values[3], (0 + 1 + 4 + 4.5) / 3.5, 1e-5);
    assert_true(isnan(values[4])); /* beyond 7.5, but for nothing */
    assert_true(isnan(values[5]));
    const struct oct_slab between = {{OCT_LAYER_ILM, 0}, {OCT_LAYER_RPE, 0}, false};
    oct_slab_project(&between, pixels, M, D, NAN, both, values); /* needs no um */
    assert_near(values[0], (0.5 + 4 + 9 + 8) / 3, 1e-5);
    assert_true(isnan(values[4])); /* not in order */
    assert_true(isnan(values[6]) || values[6] > 0);
    oct_slab_project(&between, pixels, M, D, 2.5, only, values);
    for (unsigned j = 0; j < M; j++)
        assert_true(isnan(values[j])); /* the RPE is not given */
    pixels[2] = NAN;
    pixels[3] = INFINITY;
    oct_slab_project(&between, pixels, M, D, 2.5, both, values);
    assert_near(values[0], (0.5 + 8) / 1, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_is_the_distance_in_um),
        cmocka_unit_test(sectors_lie_where_the_study_put_them),
        cmocka_unit_test(each_sector_has_its_own_mean),
        cmocka_unit_test(a_slope_has_the_means_of_its_integral),
        cmocka_unit_test(coverage_is_the_known_share_of_the_area),
        cmocka_unit_test(small_fields_and_sparse_ones_are_measured),
        cmocka_unit_test(the_pit_is_found),
        cmocka_unit_test(no_pit_is_made_up),
        cmocka_unit_test(slabs_are_read_and_written),
        cmocka_unit_test(slabs_are_means_of_parts_of_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
