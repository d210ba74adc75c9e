/* What geometry and plan refuse, and that they say which key it is. */
#include "pipeline/plan/plan.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 64
#define P2 4096

/* A good lab; each test spoils one thing. */
struct lab {
    struct oct_geometry geometry;
    struct oct_calibration cal;
    struct oct_chain chain;
    double wavelengths[P2], kmap[64], dispersion[2 * P2], background[N];
};

static int open_lab(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    struct oct_error err;
    if (!lab || oct_geometry_init(&lab->geometry, N, 8, 2, 0, P2 / 4, OCT_SAMPLE_U8, &err))
        return -1;
    for (int i = 0; i < P2; i++) {
        lab->wavelengths[i] = 800 + 0.01 * i;
        lab->dispersion[2 * i] = 1;
    }
    for (int i = 0; i < 64; i++)
        lab->kmap[i] = 1.01 * i;
    lab->cal.wavelengths_nm = lab->wavelengths;
    lab->cal.n_wavelengths = N;
    *state = lab;
    return 0;
}

static int close_lab(void **state)
{
    free(*state);
    return 0;
}

static void use_kmap(struct lab *lab, size_t n)
{
    lab->cal.wavelengths_nm = NULL;
    lab->cal.n_wavelengths = 0;
    lab->cal.kmap_px = lab->kmap;
    lab->cal.n_kmap = n;
}

static void accept(const struct lab *lab)
{
    struct oct_error err = {.text = ""};
    struct oct_plan *plan = NULL;
    const struct oct_chain chain = {.dc = lab->chain.dc, .interpolation = OCT_INTERPOLATION_CUBIC};
    if (oct_plan_create(&plan, &lab->geometry, &lab->cal, &chain, &err))
        fail_msg("refused: %s", err.text);
    assert_non_null(plan);
    for (size_t q = 0; q < P2; q++) {
        assert_true(plan->tap_first[q] + plan->n_taps <= P2);
        for (unsigned t = 0; t < plan->n_taps; t++)
            assert_true(isfinite(plan->weight[t * P2 + q]));
    }
    oct_plan_destroy(plan);
}

static void check_message(const struct oct_error *err, const char *key)
{
    assert_int_equal(err->code, OCT_E_CONFIG);
    if (!strstr(err->text, key))
        fail_msg("'%s' does not name %s", err->text, key);
    if (!strstr(err->key, key))
        fail_msg("'%s' blames '%s', not %s", err->text, err->key, key);
    assert_int_equal(strncmp(err->text, err->key, strcspn(err->key, " ")), 0);
    assert_null(strchr(err->text, '\n'));
}

static void refuse(const struct lab *lab, const char *key)
{
    static const enum oct_interpolation all[] = {OCT_INTERPOLATION_LINEAR, OCT_INTERPOLATION_CUBIC,
                                                 OCT_INTERPOLATION_NUFFT};
    for (int i = 0; i < 3; i++) {
        struct oct_error err = {.text = ""};
        struct oct_plan *plan = (struct oct_plan *)&err;
        const struct oct_chain chain = {.dc = lab->chain.dc, .interpolation = all[i]};
        enum oct_err e = oct_plan_create(&plan, &lab->geometry, &lab->cal, &chain, &err);
        if (e != OCT_E_CONFIG)
            fail_msg("%s: not refused (%d)", key, e);
        assert_null(plan);
        check_message(&err, key);
        assert_int_equal(oct_plan_create(&plan, &lab->geometry, &lab->cal, &chain, NULL),
                         OCT_E_CONFIG);
    }
}

static void refuse_geometry(uint32_t n_samples, uint32_t n_lines, uint32_t n_bscans, uint32_t first,
                            uint32_t last, const char *key)
{
    struct oct_error err = {.text = ""};
    struct oct_geometry geometry;
    assert_int_equal(oct_geometry_init(&geometry, n_samples, n_lines, n_bscans, first, last,
                                       OCT_SAMPLE_U8, &err),
                     OCT_E_CONFIG);
    check_message(&err, key);
}

TEST(impossible_geometries_are_refused_by_key)
{
    refuse_geometry(0, 10, 1, 0, 0, "camera.samples");
    refuse_geometry(1, 1, 1, 0, 0, "camera.samples");
    refuse_geometry(3, 10, 1, 0, 0, "camera.samples");
    refuse_geometry((1u << 17) + 1, 10, 1, 0, 0, "camera.samples");
    refuse_geometry(UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 0, "camera.samples");
    refuse_geometry(832, 0, 1, 0, 0, "scan.lines");
    refuse_geometry(832, UINT32_MAX, 1, 0, 0, "scan.lines");
    refuse_geometry(1u << 17, 1u << 16, 1, 0, 0, "scan.lines");
    refuse_geometry(832, 240, 0, 0, 0, "scan.bscans");
    refuse_geometry(832, 240, UINT32_MAX, 0, 0, "scan.bscans");
    refuse_geometry(832, 240, 1, 0, 2049, "pipeline.crop_last");
    refuse_geometry(832, 240, 1, 0, UINT32_MAX, "pipeline.crop_last");
    refuse_geometry(832, 240, 1, 100, 100, "pipeline.crop_first");
    refuse_geometry(832, 240, 1, 101, 100, "pipeline.crop_first");
    refuse_geometry(832, 240, 1, 2048, 0, "pipeline.crop_first");
    refuse_geometry(832, 240, 1, UINT32_MAX, 0, "pipeline.crop_first");
}

TEST(geometry_follows_the_contract)
{
    static const uint32_t expected[][4] = {/* N, P1, left, D uncropped */
                                           {832, 2048, 608, 2048},
                                           {1023, 2048, 512, 2048},
                                           {2048, 2048, 0, 2048},
                                           {2049, 4096, 1023, 4096},
                                           {4, 2048, 1022, 2048}};
    for (size_t i = 0; i < 5; i++) {
        struct oct_geometry g;
        assert_int_equal(oct_geometry_init(&g, expected[i][0], 3, 2, 0, 0, OCT_SAMPLE_F32, NULL),
                         OCT_OK);
        assert_int_equal(g.padded, expected[i][1]);
        assert_int_equal(g.upsampled, 2 * expected[i][1]);
        assert_int_equal(g.left, expected[i][2]);
        assert_int_equal(g.depth, expected[i][3]);
        assert_int_equal(oct_geometry_spectra_bytes(&g), (size_t)expected[i][0] * 3 * 2);
        assert_int_equal(oct_geometry_image_bytes(&g), (size_t)expected[i][3] * 3 * 4);
    }
    struct oct_geometry g;
    assert_int_equal(oct_geometry_init(&g, 832, 240, 240, 2047, 2048, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(g.depth, 1);
}

#define LAB_TEST(name) TEST_WITH(name, open_lab, close_lab)

LAB_TEST(good_labs_are_accepted)
{
    struct lab *lab = *state;
    accept(lab);
    lab->cal.n_wavelengths = P2;
    accept(lab);
    lab->cal.dispersion = lab->dispersion;
    lab->cal.n_dispersion = P2;
    accept(lab);
    lab->chain.dc = OCT_DC_FILE;
    lab->cal.background = lab->background;
    lab->cal.n_background = N;
    accept(lab);
    use_kmap(lab, 2);
    accept(lab);
    lab->chain.dc = OCT_DC_NONE;
    lab->geometry.n_lines = 1;
    accept(lab);
    oct_plan_destroy(NULL);
}

LAB_TEST(a_plan_keeps_its_own_calibration)
{
    struct lab *lab = *state;
    struct oct_plan *plan;
    lab->cal.coefficient[2] = 3;
    assert_int_equal(oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, NULL), OCT_OK);
    double first = lab->wavelengths[0];
    memset(lab->wavelengths, 0, sizeof(lab->wavelengths));
    assert_int_equal(plan->calibration.n_wavelengths, N);
    assert_true(plan->calibration.wavelengths_nm[0] == first);
    assert_true(plan->calibration.coefficient[2] == 3);
    oct_plan_destroy(plan);
}

LAB_TEST(neither_wavelengths_nor_k_map_is_refused)
{
    struct lab *lab = *state;
    lab->cal.wavelengths_nm = NULL;
    lab->cal.n_wavelengths = 0;
    refuse(lab, "calibration.wavelengths");
}

LAB_TEST(both_wavelengths_and_k_map_are_refused)
{
    struct lab *lab = *state;
    lab->cal.kmap_px = lab->kmap;
    lab->cal.n_kmap = 64;
    refuse(lab, "calibration.kmap");
}

LAB_TEST(a_wrong_number_of_wavelengths_is_refused)
{
    struct lab *lab = *state;
    static const size_t wrong[] = {1, 2, N - 1, N + 1, P2 / 2, P2 - 1};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        lab->cal.n_wavelengths = wrong[i];
        refuse(lab, "calibration.wavelengths");
    }
}

LAB_TEST(wavelengths_that_turn_or_stand_still_are_refused)
{
    struct lab *lab = *state;
    double keep = lab->wavelengths[20];
    lab->wavelengths[20] = lab->wavelengths[19];
    refuse(lab, "calibration.wavelengths");
    lab->wavelengths[20] = lab->wavelengths[18];
    refuse(lab, "calibration.wavelengths");
    lab->wavelengths[20] = keep;
    lab->wavelengths[0] = 900; /* falls once, then rises */
    refuse(lab, "calibration.wavelengths");
    lab->wavelengths[0] = lab->wavelengths[1];
    refuse(lab, "calibration.wavelengths");
    lab->wavelengths[0] = 799;
    lab->wavelengths[N - 1] = 799;
    refuse(lab, "calibration.wavelengths");
    lab->wavelengths[N - 1] = 900;
    lab->wavelengths[P2 - 1] = 1;
    lab->cal.n_wavelengths = P2;
    refuse(lab, "calibration.wavelengths");
}

LAB_TEST(wavelengths_that_are_not_positive_are_refused)
{
    struct lab *lab = *state;
    for (int i = 0; i < P2; i++)
        lab->wavelengths[i] = i;
    refuse(lab, "calibration.wavelengths");
    lab->cal.n_wavelengths = P2;
    refuse(lab, "calibration.wavelengths");
    for (int i = 0; i < P2; i++)
        lab->wavelengths[i] = -800 - i;
    refuse(lab, "calibration.wavelengths");
}

/* 992 pixels of padding on each side at 1 nm a pixel reach below zero, though the camera's own 64
 * wavelengths are fine. Contract step 4: positive over all P2 positions. */
LAB_TEST(wavelengths_that_turn_negative_in_the_padding_are_refused)
{
    struct lab *lab = *state;
    for (int i = 0; i < N; i++)
        lab->wavelengths[i] = 800 + i;
    refuse(lab, "calibration.wavelengths");
    for (int i = 0; i < N; i++)
        lab->wavelengths[i] = 900 - i;
    refuse(lab, "calibration.wavelengths");
    for (int i = 0; i < N; i++)
        lab->wavelengths[i] = 1000 + i; /* 1000 - 992 = 8 nm: odd, but positive */
    accept(lab);
}

/* Strictly monotonic as given, but halfway between two neighbours there is no double left. */
LAB_TEST(wavelengths_too_close_to_tell_apart_are_refused)
{
    struct lab *lab = *state;
    lab->wavelengths[20] = nextafter(lab->wavelengths[19], 1e9);
    refuse(lab, "calibration.wavelengths");
}

/* 2 pi / lambda must be a number, and so must the weights that follow from it. */
LAB_TEST(wavelengths_beyond_all_measure_are_refused)
{
    struct lab *lab = *state;
    for (int i = 0; i < P2; i++)
        lab->wavelengths[i] = 1e-320 * (i + 1);
    lab->cal.n_wavelengths = P2;
    refuse(lab, "calibration.wavelengths");
    lab->cal.n_wavelengths = N;
    for (int i = 0; i < N; i++)
        lab->wavelengths[i] = 1.5e308 * (i + 1) / N;
    refuse(lab, "calibration.wavelengths");
}

/* A file in other units, or of wave numbers, is told which it looks like. */
LAB_TEST(wavelengths_that_are_no_nanometres_are_refused)
{
    struct lab *lab = *state;
    static const struct {
        double scale, power; /* of 850 nm and on */
        const char *says;    /* "": refused without a guess; NULL: accepted */
    } cases[] = {
        {1e-3, 1, "looks like micrometres"},
        {1e-9, 1, "looks like metres"},
        {10, 1, "looks like angstrom"},
        {1e7, -1, "wave numbers in 1/cm"},
        {6.283185307, -1, "wave numbers in rad/nm"},
        {6283.185307, -1, "wave numbers in rad/um"},
        {6283185307, -1, "wave numbers in rad/m"},
        {1e-4, 1, ""},
        {200.0 / 850, 1, NULL},
        {199.9 / 850, 1, ""},
        {2995.0 / 850, 1, NULL},
        {3001.0 / 850, 1, ""},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct oct_error err = {.text = ""};
        struct oct_plan *plan;
        for (int i = 0; i < N; i++)
            lab->wavelengths[i] = cases[k].scale * pow(850 + 0.01 * i, cases[k].power);
        enum oct_err e = oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, &err);
        if (e != (cases[k].says ? OCT_E_CONFIG : OCT_OK) ||
            (e && (!strstr(err.text, cases[k].says) || !strstr(err.text, "calibration.kmap"))))
            fail_msg("case %zu: %d, %s", k, e, err.text);
        oct_plan_destroy(plan);
    }
    static const struct {
        double first, step;
        const char *says; /* NULL: no guess */
    } lines[] = {
        {0, 1, "pixel numbers: nanometres are wanted, or give calibration.kmap"},
        {1, 1, "pixel numbers: nanometres are wanted, or give calibration.kmap"},
        {N, -1, "pixel numbers: nanometres are wanted, or give calibration.kmap"},
        {0.5, 1, NULL},
        {1, 1.001, NULL},      /* its middle alone would be in rad/um */
        {40000, 1000, NULL},   /* the ends fit no unit together */
        {3001, 1, "angstrom"}, /* within one unit, and counted by chance */
    };
    for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++) {
        struct oct_error err = {.text = ""};
        struct oct_plan *plan;
        for (int i = 0; i < N; i++)
            lab->wavelengths[i] = lines[k].first + lines[k].step * i;
        assert_int_equal(oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, &err),
                         OCT_E_CONFIG);
        if (lines[k].says ? !strstr(err.text, lines[k].says)
                          : strstr(err.text, "looks like") || strstr(err.text, "pixel numbers"))
            fail_msg("line %zu: %s", k, err.text);
    }
    for (int i = 0; i < P2; i++) /* of P2 values, what the camera does not see is free */
        lab->wavelengths[i] = 150 + 0.75 * i;
    lab->cal.n_wavelengths = P2;
    accept(lab);
}

LAB_TEST(k_maps_that_make_no_axis_are_refused)
{
    struct lab *lab = *state;
    use_kmap(lab, 1);
    refuse(lab, "calibration.kmap");
    use_kmap(lab, 64);
    lab->kmap[7] = lab->kmap[6];
    refuse(lab, "calibration.kmap");
    lab->kmap[7] = lab->kmap[5];
    refuse(lab, "calibration.kmap");
    lab->kmap[7] = NAN;
    refuse(lab, "calibration.kmap");
    lab->kmap[7] = INFINITY;
    refuse(lab, "calibration.kmap");
    lab->kmap[0] = -1.7e308; /* s hardly moves over the whole camera */
    lab->kmap[1] = 1.7e308;
    use_kmap(lab, 2);
    refuse(lab, "calibration.kmap");
}

LAB_TEST(a_wrong_number_of_dispersion_values_is_refused)
{
    struct lab *lab = *state;
    lab->cal.dispersion = lab->dispersion;
    static const size_t wrong[] = {1, N, P2 / 2, P2 - 1};
    for (size_t i = 0; i < 4; i++) {
        lab->cal.n_dispersion = wrong[i];
        refuse(lab, "calibration.dispersion");
    }
}

LAB_TEST(numbers_that_are_not_finite_are_refused)
{
    struct lab *lab = *state;
    lab->cal.coefficient[3] = NAN;
    refuse(lab, "calibration.dispersion");
    lab->cal.coefficient[3] = INFINITY;
    refuse(lab, "calibration.dispersion");
    lab->cal.coefficient[3] = 0;
    lab->cal.dispersion = lab->dispersion;
    lab->cal.n_dispersion = P2;
    lab->dispersion[2 * P2 - 1] = NAN;
    refuse(lab, "calibration.dispersion");
    lab->dispersion[2 * P2 - 1] = 1e300; /* a double that is no float */
    refuse(lab, "calibration.dispersion");
    lab->dispersion[2 * P2 - 1] = 0;
    lab->wavelengths[N - 1] = INFINITY;
    refuse(lab, "calibration.wavelengths");
    lab->wavelengths[N - 1] = NAN;
    refuse(lab, "calibration.wavelengths");
}

static struct oct_plan *plan_over_spectrum(struct lab *lab)
{
    struct oct_plan *plan;
    struct oct_error err = {.text = ""};
    lab->cal.dispersion_over = OCT_DISPERSION_OVER_SPECTRUM;
    if (oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, &err))
        fail_msg("refused: %s", err.text);
    return plan;
}

/* The lab's coefficients over its own samples: theta at sample 0 is that of t = -1, at sample N - 1
 * that of t = 1. A k map of one slope puts the samples 2 * left steps from the grid's start. */
LAB_TEST(coefficients_may_run_over_the_cameras_samples)
{
    struct lab *lab = *state;
    const double first = P2 / 2 - N, last = first + 2 * (N - 1);
    lab->cal.coefficient[2] = 8;
    lab->cal.coefficient[3] = 1;
    use_kmap(lab, 64);
    for (int falling = 0; falling < 2; falling++) { /* t follows the samples, either way */
        for (int i = 0; i < 64; i++)
            lab->kmap[i] = falling ? 70 - 1.01 * i : 1.01 * i;
        struct oct_plan *plan = plan_over_spectrum(lab);
        assert_true(fabs(plan->q_minus - first) < 1e-6 && fabs(plan->q_plus - last) < 1e-6);
        assert_true(fabs(oct_plan_theta(plan, (uint32_t)first) - 7) < 1e-6);
        assert_true(fabs(oct_plan_theta(plan, (uint32_t)last) - 9) < 1e-6);
        /* goes on beyond them: t = 3 is one span further */
        assert_true(fabs(oct_plan_theta(plan, (uint32_t)(2 * last - first)) - (72 + 27)) < 1e-5);
        oct_plan_destroy(plan);
    }
    lab->cal.dispersion_over = OCT_DISPERSION_OVER_GRID;
    struct oct_plan *plan;
    assert_int_equal(oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, NULL), OCT_OK);
    assert_true(oct_plan_theta(plan, 0) == 7 && oct_plan_theta(plan, P2 - 1) == 9);
    oct_plan_destroy(plan);
}

LAB_TEST(samples_without_a_step_in_k_have_no_dispersion_of_their_own)
{
    struct lab *lab = *state;
    static const double kmap[] = {-1, -0.5, 70};
    lab->cal.dispersion_over = OCT_DISPERSION_OVER_SPECTRUM;
    memcpy(lab->kmap, kmap, sizeof(kmap));
    use_kmap(lab, 3); /* nearly all of k before the first sample */
    lab->kmap[0] = -0.5000001;
    refuse(lab, "calibration.dispersion_over");
}

LAB_TEST(one_line_cannot_be_its_own_background)
{
    struct lab *lab = *state;
    lab->geometry.n_lines = 1;
    refuse(lab, "pipeline.dc");
    lab->chain.dc = OCT_DC_RUNNING; /* that of a volume may be, where it has several */
    lab->geometry.n_bscans = 1;
    refuse(lab, "scan.bscans");
    lab->geometry.n_bscans = 2;
    accept(lab);
}

LAB_TEST(a_missing_or_wrong_background_is_refused)
{
    struct lab *lab = *state;
    lab->chain.dc = OCT_DC_FILE;
    refuse(lab, "calibration.background");
    lab->cal.background = lab->background;
    lab->cal.n_background = N - 1;
    refuse(lab, "calibration.background");
    lab->cal.n_background = N;
    lab->background[5] = NAN;
    refuse(lab, "calibration.background");
    lab->background[5] = 1e300;
    refuse(lab, "calibration.background");
    lab->background[5] = 100;
    accept(lab);
}

LAB_TEST(a_calibration_is_copied_deeply)
{
    struct lab *lab = *state;
    struct oct_calibration copy;
    lab->cal.background = lab->background;
    lab->cal.n_background = N;
    lab->cal.dispersion = lab->dispersion;
    lab->cal.n_dispersion = P2;
    assert_int_equal(oct_calibration_copy(&copy, &lab->cal), OCT_OK);
    assert_ptr_not_equal(copy.wavelengths_nm, lab->wavelengths);
    assert_memory_equal(copy.wavelengths_nm, lab->wavelengths, N * sizeof(double));
    assert_memory_equal(copy.dispersion, lab->dispersion, 2 * P2 * sizeof(double));
    assert_memory_equal(copy.background, lab->background, N * sizeof(double));
    assert_null(copy.kmap_px);
    oct_calibration_finish(&copy);
    assert_null(copy.wavelengths_nm);
    assert_int_equal(copy.n_wavelengths, 0);
}

/* Whether a plan of the lab is the same as `other`. */
static bool is_same(const struct lab *lab, const struct oct_plan *other)
{
    struct oct_error err = {.text = ""};
    struct oct_plan *plan = NULL;
    if (oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, &err))
        fail_msg("refused: %s", err.text);
    const bool same = oct_plan_is_same(plan, other);
    assert_true(same == oct_plan_is_same(other, plan));
    oct_plan_destroy(plan);
    return same;
}

LAB_TEST(plans_of_uneven_scans_turn_the_same_bscans)
{
    struct lab *lab = *state;
    struct oct_plan *plan[2] = {NULL};
    struct oct_scan scan = {.pattern = OCT_SCAN_RASTER_BOTH, .n_bscans = 7, .delay_lines = 0.25};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(oct_plan_create(&plan[i], &lab->geometry, &lab->cal, &lab->chain, NULL),
                         OCT_OK);
        assert_int_equal(oct_plan_set_scan(plan[i], &scan, NULL), OCT_OK);
    }
    assert_true(oct_plan_is_same(plan[0], plan[1]));
    scan.first_bscan = 1; /* the others come backwards */
    assert_int_equal(oct_plan_set_scan(plan[1], &scan, NULL), OCT_OK);
    assert_false(oct_plan_is_same(plan[0], plan[1]));
    oct_plan_destroy(plan[0]);
    oct_plan_destroy(plan[1]);
}

/* That a plan of the lab with one thing changed is another, and the same when it is put back. */
#define EXPECT_OTHER(lab, plan, member, value)                                                     \
    do {                                                                                           \
        const __typeof__((lab)->member) before = (lab)->member;                                    \
        (lab)->member = (value);                                                                   \
        assert_false(is_same(lab, plan));                                                          \
        (lab)->member = before;                                                                    \
        assert_true(is_same(lab, plan));                                                           \
    } while (0)

LAB_TEST(plans_are_the_same_by_what_they_were_made_of)
{
    struct lab *lab = *state;
    struct oct_plan *plan = NULL;
    for (int i = 0; i < N; i++)
        lab->background[i] = 100;
    lab->cal.background = lab->background;
    lab->cal.n_background = N;
    lab->cal.coefficient[2] = 3;
    assert_int_equal(oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, NULL), OCT_OK);
    EXPECT_OTHER(lab, plan, geometry.n_lines, 9);
    EXPECT_OTHER(lab, plan, geometry.sample_type, OCT_SAMPLE_F32);
    EXPECT_OTHER(lab, plan, geometry.crop_first, 1);
    EXPECT_OTHER(lab, plan, geometry.crop_last, 100);
    EXPECT_OTHER(lab, plan, cal.coefficient[2], 3.5);
    EXPECT_OTHER(lab, plan, cal.dispersion_over, OCT_DISPERSION_OVER_SPECTRUM);
    EXPECT_OTHER(lab, plan, wavelengths[5], 800.051);
    EXPECT_OTHER(lab, plan, background[63], 1);
    EXPECT_OTHER(lab, plan, cal.n_background, 0);
    EXPECT_OTHER(lab, plan, cal.n_wavelengths, P2);
    EXPECT_OTHER(lab, plan, chain.dc, OCT_DC_NONE);
    EXPECT_OTHER(lab, plan, chain.interpolation, OCT_INTERPOLATION_CUBIC);
    EXPECT_OTHER(lab, plan, chain.accuracy_db, -50);
    EXPECT_OTHER(lab, plan, chain.shaping.window, OCT_WINDOW_HANN);
    lab->geometry.n_bscans = 77; /* which only the running mean looks at */
    assert_true(is_same(lab, plan));
    oct_plan_destroy(plan);
    lab->chain.dc = OCT_DC_RUNNING;
    assert_int_equal(oct_plan_create(&plan, &lab->geometry, &lab->cal, &lab->chain, NULL), OCT_OK);
    EXPECT_OTHER(lab, plan, geometry.n_bscans, 78);
    EXPECT_OTHER(lab, plan, chain.dc_bscans, 5);
    oct_plan_destroy(plan);
}
