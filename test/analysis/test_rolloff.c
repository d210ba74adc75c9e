/* Roll-off: a synthetic mirror that moves over the depth, of known width and known fall. */
#include "analysis/rolloff/mirror.h"
#include "analysis/rolloff/rolloff.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 64, D = 1024 };
static const double ZERO_DB = 70, DB_PER_PX = -0.02, FWHM = 7;

static const struct oct_rolloff_settings standard = {
    .enabled = true, .first_px = 20, .min_snr_db = 15, .refractive_index = 1.25};

struct rig {
    struct oct_suite_bscan bscan;
    struct oct_suite_result result;
    struct oct_analysis *analysis;
    bool linear;
    double crop_first, tilt_px, noise; /* noise: its mean power in an A-line */
    uint64_t seed, number;
};

static void open_rig(struct rig *r, bool linear, const struct oct_rolloff_settings *settings)
{
    const struct oct_suite_recipe recipe = {.n_lines = M,
                                            .depth = D,
                                            .n_bscans = 100,
                                            .type = OCT_SAMPLE_F32,
                                            .linear = linear,
                                            .live = true};
    struct oct_image_form form;
    *r = (struct rig){.linear = linear, .crop_first = settings->crop_first, .noise = 1, .seed = 5};
    oct_suite_bscan_open(&r->bscan, &recipe, OCT_STAGE_VALUES);
    struct oct_analysis_setup setup = oct_suite_setup(&r->bscan, &recipe, settings);
    setup.spacing.depth_um = 2; /* in tissue: 2.5 in air */
    must(oct_rolloff_cpu.create(&r->analysis, &setup, &form, &failure));
    oct_suite_result_open(&r->result, &form);
}

static void close_rig(struct rig *r)
{
    oct_rolloff_cpu.run.destroy(r->analysis);
    oct_suite_result_close(&r->result);
    oct_suite_bscan_close(&r->bscan);
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double peak_db_at(const struct rig *r, double depth_px)
{
    return ZERO_DB + DB_PER_PX * (depth_px + r->crop_first);
}

/* |mirror + noise|^2 of A-line j. */
static double intensity(struct rig *r, unsigned j, unsigned d, double depth_px, double peak_db)
{
    const double x = d - depth_px - r->tilt_px * ((double)j / (M - 1) - 0.5);
    const double mirror = sqrt(pow(10, peak_db / 10) * exp(-4 * log(2) * x * x / (FWHM * FWHM)));
    const double n = sqrt(-log(uniform(&r->seed)) * r->noise), a = 6.2831853 * uniform(&r->seed);
    const double re = mirror + n * cos(a), im = n * sin(a);
    return re * re + im * im;
}

static void put(struct rig *r, unsigned j, unsigned d, double value)
{
    r->bscan.frame.values[(size_t)j * D + d] =
        (float)(r->linear ? value : 10 * log10(fmax(value, 1e-12)));
}

static void draw(struct rig *r, double depth_px)
{
    for (unsigned j = 0; j < M; j++)
        for (unsigned d = 0; d < D; d++)
            put(r, j, d, intensity(r, j, d, depth_px, peak_db_at(r, depth_px)));
}

/* The numbers of the B-scan as it is drawn. */
static const double *look(struct rig *r)
{
    oct_suite_bscan_number(&r->bscan, r->number++, 100);
    must(oct_rolloff_cpu.run.push(r->analysis, &r->bscan.frame, &failure));
    assert_int_equal(
        oct_suite_take(&oct_rolloff_cpu, r->analysis, &r->bscan.frame.info, &r->result), OCT_OK);
    return r->result.frame.numbers;
}

static bool is_near(double got, double want, double most)
{
    if (fabs(got - want) <= most)
        return true;
    print_error("%.6f instead of %.6f +- %.6f\n", got, want, most);
    return false;
}

static void check_mirror(const struct rig *r, const double *n, double depth_px)
{
    assert_true(n[OCT_ROLLOFF_STATE] == OCT_MIRROR_FOUND);
    assert_true(is_near(n[OCT_ROLLOFF_DEPTH_PX], depth_px, 0.05));
    assert_true(is_near(n[OCT_ROLLOFF_DEPTH_UM], (depth_px + r->crop_first) * 2.5, 0.125));
    assert_true(is_near(n[OCT_ROLLOFF_FWHM_PX] / FWHM, 1, 0.01));
    assert_true(is_near(n[OCT_ROLLOFF_FWHM_UM] / FWHM / 2.5, 1, 0.01));
    assert_true(is_near(n[OCT_ROLLOFF_FWHM_TISSUE_UM] / FWHM / 2, 1, 0.01));
    assert_true(is_near(n[OCT_ROLLOFF_PEAK_DB], peak_db_at(r, depth_px), 0.05));
    assert_true(is_near(n[OCT_ROLLOFF_NOISE_DB], 10 * log10(r->noise), 0.2));
    assert_true(
        is_near(n[OCT_ROLLOFF_SNR_DB], n[OCT_ROLLOFF_PEAK_DB] - n[OCT_ROLLOFF_NOISE_DB], 0.05));
    assert_true(isnan(n[OCT_ROLLOFF_SIDE_LOBE_DB]));
}

static void move_mirror(struct rig *r)
{
    const double *n = NULL;
    unsigned moves = 0;
    for (double depth_px = 60.3; depth_px < 960; depth_px += 44.7) {
        draw(r, depth_px);
        n = look(r);
        check_mirror(r, n, depth_px);
        moves++;
    }
    assert_true(n[OCT_ROLLOFF_POINTS] == moves && r->result.frame.dims[0] == moves);
    assert_true(is_near(n[OCT_ROLLOFF_DB_PER_100PX] / (100 * DB_PER_PX), 1, 0.02));
    assert_true(is_near(n[OCT_ROLLOFF_DB_PER_MM] / (400 * DB_PER_PX), 1, 0.02));
    assert_true(is_near(n[OCT_ROLLOFF_ZERO_DB], ZERO_DB, 0.2));
    assert_true(is_near(n[OCT_ROLLOFF_MINUS_6DB_PX], 300 - r->crop_first, 6));
    assert_true(is_near(n[OCT_ROLLOFF_MINUS_6DB_UM], 750, 15));
    assert_true(n[OCT_ROLLOFF_RMS_DB] < 0.1);
    /* The table: the shallowest point first, as numbers of its B-scan. */
    const float *row = r->result.memory;
    assert_true(is_near((double)row[OCT_ROLLOFF_POINT_DEPTH_PX], 60.3, 0.05));
    assert_true(is_near((double)row[OCT_ROLLOFF_POINT_DEPTH_UM], (60.3 + r->crop_first) * 2.5, .2));
    assert_true(is_near((double)row[OCT_ROLLOFF_POINT_PEAK_DB], peak_db_at(r, 60.3), 0.05));
    assert_true(is_near((double)row[OCT_ROLLOFF_POINT_FWHM_UM], FWHM * 2.5, 0.2));
}

TEST(width_and_fall_are_recovered)
{
    static const struct {
        bool linear;
        double noise, tilt_px;
        uint32_t crop_first;
    } cases[] = {{true, 1e-3, 0, 0}, {false, 1e-3, 0, 0}, {true, 1, 0, 40}, {false, 3, 4, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig r;
        struct oct_rolloff_settings settings = standard;
        settings.crop_first = cases[i].crop_first;
        open_rig(&r, cases[i].linear, &settings);
        r.noise = cases[i].noise;
        r.tilt_px = cases[i].tilt_px;
        move_mirror(&r);
        const double tilt = r.result.frame.numbers[OCT_ROLLOFF_TILT_PX];
        assert_true(is_near(tilt, cases[i].tilt_px * 7 / 8, 0.2)); /* between middles of groups */
        close_rig(&r);
    }
}

/* Up and down again through the same places, less well aligned: the largest counts. */
TEST(the_largest_peak_of_a_depth_counts)
{
    struct rig r;
    open_rig(&r, true, &standard);
    for (int pass = 0; pass < 3; pass++)
        for (int k = 0; k < 5; k++) {
            const double depth_px = 100.4 + 150 * k, lost_db = pass == 1 ? 0 : 4 + pass + k % 3;
            for (unsigned i = 0; i < M * D; i++)
                put(&r, i / D, i % D,
                    intensity(&r, i / D, i % D, depth_px, peak_db_at(&r, depth_px) - lost_db));
            look(&r);
        }
    const double *n = r.result.frame.numbers;
    assert_true(n[OCT_ROLLOFF_POINTS] == 5);
    assert_true(is_near(n[OCT_ROLLOFF_DB_PER_100PX], 100 * DB_PER_PX, 0.04));
    /* Another acquisition, and the points are gone; one alone is no line. */
    oct_rolloff_cpu.run.reset(r.analysis);
    draw(&r, 500);
    n = look(&r);
    assert_true(n[OCT_ROLLOFF_POINTS] == 1 && isnan(n[OCT_ROLLOFF_DB_PER_100PX]));
    close_rig(&r);
}

static void check_none(struct rig *r, enum oct_mirror_state why)
{
    const double *n = look(r);
    assert_string_equal(oct_mirror_state_names[(int)n[OCT_ROLLOFF_STATE]],
                        oct_mirror_state_names[why]);
    for (int i = OCT_ROLLOFF_DEPTH_PX; i <= OCT_ROLLOFF_TILT_PX; i++)
        assert_true(isnan(n[i]));
    assert_true(n[OCT_ROLLOFF_POINTS] == 0 && r->result.frame.dims[0] == 0);
}

/* Four layers and speckle, as a retina has them. */
static void draw_retina(struct rig *r)
{
    static const struct {
        double at, db, width;
    } layers[] = {{300, 35, 40}, {350, 30, 60}, {500, 42, 8}, {530, 44, 14}};
    for (unsigned i = 0; i < M * D; i++) {
        double power = 1;
        for (int k = 0; k < 4; k++) {
            const double x = (i % D - layers[k].at) / layers[k].width;
            power += pow(10, layers[k].db / 10) * exp(-4 * log(2) * x * x);
        }
        put(r, i / D, i % D, -log(uniform(&r->seed)) * power);
    }
}

/* A clipped fringe: a line three times as deep, 12 dB lower. */
static void draw_clipped(struct rig *r, double depth_px)
{
    for (unsigned i = 0; i < M * D; i++)
        put(r, i / D, i % D,
            intensity(r, i / D, i % D, depth_px, 60) +
                intensity(r, i / D, i % D, 3 * depth_px, 48));
}

TEST(what_is_no_mirror_is_said)
{
    for (int linear = 0; linear < 2; linear++) {
        struct rig r;
        open_rig(&r, linear, &standard);
        for (unsigned i = 0; i < M * D; i++)
            put(&r, i / D, i % D, -log(uniform(&r.seed)));
        check_none(&r, OCT_MIRROR_WEAK);
        for (unsigned i = 0; i < M * D; i++)
            put(&r, i / D, i % D, 5);
        check_none(&r, OCT_MIRROR_WEAK);
        draw_retina(&r);
        check_none(&r, OCT_MIRROR_MANY);
        draw_clipped(&r, 210.3);
        check_none(&r, OCT_MIRROR_HARMONIC);
        draw(&r, D - 2.4);
        check_none(&r, OCT_MIRROR_AT_END);
        close_rig(&r);
    }
}

/* A line that never came is dark; one with a number that is none is left out as well. */
TEST(missing_lines_are_left_out)
{
    for (int linear = 0; linear < 2; linear++) {
        struct rig r;
        open_rig(&r, linear, &standard);
        draw(&r, 400.4);
        for (unsigned j = 0; j < M; j += 3)
            for (unsigned d = 0; d < D; d++)
                put(&r, j, d, 0);
        for (unsigned j = 0; j < M; j += 8) { /* in each group */
            r.bscan.frame.values[(j + 4) * D + 300] = NAN;
            r.bscan.frame.values[(j + 5) * D + 800] = INFINITY;
        }
        check_mirror(&r, look(&r), 400.4);
        oct_rolloff_cpu.run.reset(r.analysis);
        for (unsigned j = 1; j < M; j += 3)
            for (unsigned d = 0; d < D; d++)
                put(&r, j, d, 0);
        check_none(&r, OCT_MIRROR_MISSING);
        close_rig(&r);
    }
}

TEST(settings_change_between_bscans)
{
    struct rig r;
    struct oct_rolloff_settings settings = standard;
    open_rig(&r, true, &settings);
    draw(&r, 100);
    assert_true(look(&r)[OCT_ROLLOFF_STATE] == OCT_MIRROR_FOUND);
    settings.first_px = 150;
    must(oct_rolloff_cpu.run.configure(r.analysis, &settings, &failure));
    assert_true(look(&r)[OCT_ROLLOFF_STATE] == OCT_MIRROR_WEAK);
    settings = standard;
    settings.min_snr_db = 90;
    must(oct_rolloff_cpu.run.configure(r.analysis, &settings, &failure));
    assert_true(look(&r)[OCT_ROLLOFF_STATE] == OCT_MIRROR_WEAK);
    assert_false(oct_rolloff_cpu.run.is_at_rest(r.analysis));
    settings.enabled = false;
    must(oct_rolloff_cpu.run.configure(r.analysis, &settings, &failure));
    assert_true(oct_rolloff_cpu.run.is_at_rest(r.analysis));
    close_rig(&r);
}

int main(void)
{
    const struct oct_rolloff_settings wrong = {.enabled = true, .min_snr_db = 15};
    const struct oct_analysis_suite suite = {
        .ops = &oct_rolloff_cpu, .settings = &standard, .wrong_settings = &wrong};
    return oct_analysis_suite_run(&suite) + test_run();
}
