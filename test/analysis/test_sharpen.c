/* Dispersion found by sharpness: known coefficients come back from scenes of several kinds, noise
 * is refused, the range's end is told, and what is found is what a plan takes. The published
 * spectra (../shared/data) are sharpened as well as their published phase does. */
#include "analysis/calibrate/sharpen.h"

#include "pipeline/plan/grid.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { N = 832, M = 96, MOST_REFLECTORS = 60 };

struct scene {
    struct oct_calibration cal;
    struct oct_geometry geometry;
    struct oct_plan *plan;
    double q[N], t[N], source[N];
    uint16_t spectra[M * N];
    struct dice dice;
};

static double uniform(struct dice *dice)
{
    return (double)(dice_roll(dice) >> 11) / 9007199254740992.0;
}

/* About normal, of variance 1. */
static double noise(struct dice *dice)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(dice);
    return sum;
}

/* A spectrometer with an uneven k map and a source that falls to the ends. */
static void open_scene(struct scene *s, const struct oct_chain *chain)
{
    struct oct_k_grid grid;
    s->dice = (struct dice){7};
    s->cal.n_kmap = 64;
    s->cal.kmap_px = malloc(s->cal.n_kmap * sizeof(double));
    assert_non_null(s->cal.kmap_px);
    for (size_t m = 0; m < s->cal.n_kmap; m++) {
        const double u = (double)m / (double)(s->cal.n_kmap - 1);
        s->cal.kmap_px[m] = (N - 1) * (u + 0.08 * u * (1 - u));
    }
    assert_int_equal(oct_geometry_init(&s->geometry, N, M, 1, 0, 0, OCT_SAMPLE_F32, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&s->plan, &s->geometry, &s->cal, chain, NULL), OCT_OK);
    assert_int_equal(oct_k_grid_init(&grid, &s->geometry, &s->cal, NULL), OCT_OK);
    for (uint32_t i = 0; i < N; i++)
        s->q[i] = oct_k_grid_place(&grid, 2 * (s->geometry.left + i));
    oct_k_grid_finish(&grid);
    for (uint32_t i = 0; i < N; i++) {
        s->t[i] = 2 * (s->q[i] - s->q[0]) / (s->q[N - 1] - s->q[0]) - 1;
        s->source[i] = exp(-s->t[i] * s->t[i] * 2.5);
    }
}

static void close_scene(struct scene *s)
{
    oct_plan_destroy(s->plan);
    oct_calibration_finish(&s->cal);
    free(s);
}

static struct scene *new_scene(void)
{
    struct scene *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    open_scene(s, &oct_chain_thesis);
    return s;
}

struct reflectors {
    unsigned n;
    double depth[MOST_REFLECTORS], size[MOST_REFLECTORS], phase[MOST_REFLECTORS];
};

static void add_reflector(struct reflectors *r, double depth, double size, struct dice *dice)
{
    assert_true(r->n < MOST_REFLECTORS);
    r->depth[r->n] = depth;
    r->size[r->n] = size;
    r->phase[r->n++] = 2 * PI * uniform(dice);
}

/* Counts of one A-line: a dark level, the source's light, fringes and noise. */
static void write_line(struct scene *s, uint32_t line, const struct reflectors *r, double a2,
                       double a3, double noise_counts)
{
    for (uint32_t i = 0; i < N; i++) {
        const double theta = s->t[i] * s->t[i] * (a2 + a3 * s->t[i]);
        double x = 3000 + 12000 * s->source[i] + noise_counts * noise(&s->dice);
        for (unsigned k = 0; k < r->n; k++)
            x += r->size[k] * s->source[i] *
                 cos(2 * PI * r->depth[k] * s->q[i] / s->geometry.upsampled + theta + r->phase[k]);
        s->spectra[line * N + i] = (uint16_t)lrint(fmin(fmax(x, 0), 65535));
    }
}

/* Layers of speckle, one of them thin and bright, bowed as those of an eye. */
static void write_retina(struct scene *s, double a2, double a3, double noise_counts)
{
    static const struct {
        double from, to, size;
        int n;
    } layers[] = {{200, 212, 300, 10}, {260, 320, 120, 14}, {382, 384, 500, 2}, {400, 560, 90, 20}};
    for (uint32_t j = 0; j < M; j++) {
        struct reflectors r = {.n = 0};
        for (size_t k = 0; k < sizeof(layers) / sizeof(layers[0]); k++)
            for (int n = 0; n < layers[k].n; n++)
                add_reflector(&r,
                              layers[k].from + (layers[k].to - layers[k].from) * uniform(&s->dice) +
                                  20 * sin(j / 30.0),
                              layers[k].size * (0.3 + uniform(&s->dice)), &s->dice);
        write_line(s, j, &r, a2, a3, noise_counts);
    }
}

/* A tilted plate: two faces. */
static void write_plate(struct scene *s, double a2, double a3, double noise_counts)
{
    for (uint32_t j = 0; j < M; j++) {
        struct reflectors r = {.n = 0};
        add_reflector(&r, 150 + 1.7 * j, 800, &s->dice);
        add_reflector(&r, 420 + 1.7 * j, 300, &s->dice);
        write_line(s, j, &r, a2, a3, noise_counts);
    }
}

static void sharpen(const struct scene *s, uint32_t limit, double most_a2,
                    struct oct_sharpen_result *result)
{
    struct oct_sharpen_setup setup = oct_sharpen_standard;
    struct oct_sharpen *sharpen;
    setup.plan = s->plan;
    setup.n_bscans = 1;
    setup.limit = limit;
    setup.most_a2 = most_a2;
    setup.most_a3 = 12;
    assert_int_equal(oct_sharpen_create(&sharpen, &setup, NULL), OCT_OK);
    oct_sharpen_add(sharpen, s->spectra, NULL);
    assert_int_equal(oct_sharpen_run(sharpen, NULL, result, NULL), OCT_OK);
    oct_sharpen_destroy(sharpen);
}

static void expect_near(double is, double wanted, double most_off, const char *what)
{
    if (!(fabs(is - wanted) <= most_off))
        fail_msg("%s is %.4f, not within %.4f of %.4f", what, is, most_off, wanted);
}

TEST(known_coefficients_come_back)
{
    static const struct {
        void (*write)(struct scene *s, double a2, double a3, double noise_counts);
        double a2, a3, noise_counts, most_off[2];
    } cases[] = {
        {write_plate, 25, -6, 30, {0.1, 0.2}},
        {write_retina, 18, 5, 30, {0.36, 0.4}},
        {write_retina, -31, -3, 100, {0.62, 0.7}},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct scene *s = new_scene();
        struct oct_sharpen_result r;
        cases[k].write(s, cases[k].a2, cases[k].a3, cases[k].noise_counts);
        sharpen(s, 0, 40, &r);
        print_message("case %zu: a2 %.3f +- %.3f, a3 %.3f +- %.3f, agreement %.3f, S %.2f -> %.2f, "
                      "width %.3f -> %.3f px\n",
                      k, r.remaining[0], r.error[0], r.remaining[1], r.error[1], r.agreement,
                      r.before, r.after, r.width_before_px, r.width_after_px);
        assert_int_equal(r.state, OCT_SHARPEN_FOUND);
        expect_near(r.remaining[0], cases[k].a2, cases[k].most_off[0], "a2");
        expect_near(r.remaining[1], cases[k].a3, cases[k].most_off[1], "a3");
        assert_true(r.after > 1.5 * r.before);
        close_scene(s);
    }
}

TEST(what_has_no_structure_is_refused)
{
    struct scene *s = new_scene();
    struct oct_sharpen_result r;
    const struct reflectors none = {.n = 0};
    for (uint32_t j = 0; j < M; j++)
        write_line(s, j, &none, 0, 0, 100);
    sharpen(s, 0, 40, &r);
    print_message("noise: agreement %.3f, S %.3f -> %.3f\n", r.agreement, r.before, r.after);
    assert_int_equal(r.state, OCT_SHARPEN_NOTHING);
    assert_true(r.agreement < 0.2);
    expect_near(r.before, 2, 0.1, "S of noise");
    close_scene(s);
}

TEST(the_end_of_the_range_is_told)
{
    struct scene *s = new_scene();
    struct oct_sharpen_result r;
    write_plate(s, 25, 0, 30);
    sharpen(s, 0, 20, &r);
    assert_int_equal(r.state, OCT_SHARPEN_AT_BOUND);
    close_scene(s);
}

TEST(saturated_lines_are_left_out)
{
    struct scene *s = new_scene();
    struct oct_sharpen_result r;
    write_plate(s, 10, 2, 30);
    for (uint32_t j = 0; j < 10; j++)
        s->spectra[7 * j * N + 400] = 40000;
    sharpen(s, 40000, 20, &r);
    assert_int_equal(r.n_saturated, 10);
    assert_int_equal(r.n_lines, M - 10);
    assert_int_equal(r.state, OCT_SHARPEN_FOUND);
    close_scene(s);
}

/* With what was found as the plan's dispersion nothing remains, whichever way it is written. */
TEST(what_is_found_is_what_a_plan_takes)
{
    struct scene *s = new_scene();
    struct oct_sharpen_dispersion d;
    struct oct_sharpen_result r;
    struct oct_calibration cal;
    write_plate(s, 20, 4, 30);
    s->cal.coefficient[2] = 30; /* a base that is wrong, over the grid */
    s->cal.coefficient[4] = -3;
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(oct_calibration_copy(&cal, &s->cal), OCT_OK);
        if (kind == 2) { /* as a file: that base's phase */
            cal.n_dispersion = s->geometry.upsampled;
            cal.dispersion = calloc(2 * cal.n_dispersion, sizeof(double));
            for (uint32_t q = 0; q < cal.n_dispersion; q++) {
                cal.dispersion[2 * q] = cos(oct_plan_theta(s->plan, q));
                cal.dispersion[2 * q + 1] = -sin(oct_plan_theta(s->plan, q));
            }
        }
        oct_plan_destroy(s->plan);
        assert_int_equal(oct_plan_create(&s->plan, &s->geometry, &cal, &oct_chain_thesis, NULL),
                         OCT_OK);
        sharpen(s, 0, 60, &r);
        assert_int_equal(r.state, OCT_SHARPEN_FOUND);
        assert_true(hypot(r.remaining[0], r.remaining[1]) > 3);
        assert_int_equal(oct_sharpen_combine(s->plan, r.remaining, &d, NULL), OCT_OK);
        assert_int_equal(d.is_table, kind == 2);
        if (kind == 2) {
            memcpy(cal.dispersion, d.table, 2 * cal.n_dispersion * sizeof(double));
            free(d.table);
        } else {
            cal.dispersion_over = kind ? OCT_DISPERSION_OVER_SPECTRUM : OCT_DISPERSION_OVER_GRID;
            memcpy(cal.coefficient, kind ? d.over_spectrum : d.over_grid, sizeof(cal.coefficient));
        }
        oct_plan_destroy(s->plan);
        assert_int_equal(oct_plan_create(&s->plan, &s->geometry, &cal, &oct_chain_thesis, NULL),
                         OCT_OK);
        const double sharp = r.after;
        sharpen(s, 0, 20, &r);
        expect_near(r.before / sharp, 1, 0.01, "sharpness with it, over that found");
        expect_near(r.remaining[0], 0, 0.1, "what remains of a2");
        expect_near(r.remaining[1], 0, 0.2, "what remains of a3");
        oct_calibration_finish(&cal);
        oct_plan_destroy(s->plan);
        assert_int_equal(oct_plan_create(&s->plan, &s->geometry, &s->cal, &oct_chain_thesis, NULL),
                         OCT_OK);
    }
    close_scene(s);
}

TEST(a_search_can_be_cancelled)
{
    struct scene *s = new_scene();
    struct oct_sharpen_setup setup = oct_sharpen_standard;
    struct oct_sharpen *sharpen_it;
    struct oct_sharpen_result r;
    atomic_bool cancelled = true;
    write_plate(s, 10, 2, 30);
    setup.plan = s->plan;
    setup.n_bscans = 1;
    assert_int_equal(oct_sharpen_create(&sharpen_it, &setup, NULL), OCT_OK);
    assert_int_equal(oct_sharpen_run(sharpen_it, NULL, &r, NULL), OCT_E_ARG); /* no lines */
    oct_sharpen_add(sharpen_it, s->spectra, NULL);
    assert_int_equal(oct_sharpen_run(sharpen_it, &cancelled, &r, NULL), OCT_E_STATE);
    oct_sharpen_destroy(sharpen_it);
    close_scene(s);
}

/* ---- the published spectra ---- */

/* Beside the checkout; without OCT_TOP that is the working folder. */
static const char *data_path(const char *name)
{
    static char path[4096];
    const char *top = getenv("OCT_TOP");
    snprintf(path, sizeof(path), "%s/../shared/data/%s", top ? top : ".", name);
    return path;
}

enum { PLATE_LINES = 1049, PLATE_SAMPLES = 1024 };

static struct oct_plan *published_plan(bool with_phase)
{
    struct oct_calibration cal = {.n_kmap = 0};
    struct oct_geometry g;
    struct oct_plan *plan;
    assert_int_equal(oct_calibration_read_table(data_path("sd2019_kmap.txt"), 1, &cal.kmap_px,
                                                &cal.n_kmap, NULL),
                     OCT_OK);
    if (with_phase)
        assert_int_equal(oct_calibration_read_table(data_path("sd2019_dispersion.txt"), 2,
                                                    &cal.dispersion, &cal.n_dispersion, NULL),
                         OCT_OK);
    assert_int_equal(
        oct_geometry_init(&g, PLATE_SAMPLES, PLATE_LINES, 1, 0, 0, OCT_SAMPLE_F32, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &oct_chain_thesis, NULL), OCT_OK);
    oct_calibration_finish(&cal);
    return plan;
}

static void sharpen_published(const uint16_t *spectra, bool with_phase,
                              struct oct_sharpen_result *r)
{
    struct oct_sharpen_setup setup = oct_sharpen_standard;
    struct oct_sharpen *sharpen_it;
    struct oct_plan *plan = published_plan(with_phase);
    setup.plan = plan;
    setup.n_bscans = 1;
    setup.most_a2 = 40;
    setup.most_a3 = 12;
    assert_int_equal(oct_sharpen_create(&sharpen_it, &setup, NULL), OCT_OK);
    oct_sharpen_add(sharpen_it, spectra, NULL);
    assert_int_equal(oct_sharpen_run(sharpen_it, NULL, r, NULL), OCT_OK);
    oct_sharpen_destroy(sharpen_it);
    oct_plan_destroy(plan);
}

/* The width of the plate's line with the phase found from it alone, and with the published one. */
TEST(the_published_plate_is_as_thin_as_with_its_published_phase)
{
    static const char *const names[] = {"plate", "pdms", "wood"};
    const size_t n = (size_t)PLATE_LINES * PLATE_SAMPLES;
    uint16_t *spectra = malloc(n * sizeof(*spectra));
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        struct oct_sharpen_result alone, published;
        char raw[16];
        snprintf(raw, sizeof(raw), "%s.raw", names[k]);
        const char *path = data_path(raw);
        FILE *file = fopen(path, "rb");
        if (!file) {
            free(spectra);
            print_message("%s is absent: not tested\n", path);
            skip();
            return;
        }
        assert_int_equal(fseek(file, 552, SEEK_SET), 0);
        assert_int_equal(fread(spectra, sizeof(*spectra), n, file), n);
        fclose(file);
        sharpen_published(spectra, false, &alone);
        sharpen_published(spectra, true, &published);
        print_message("%s: b2 %.3f b3 %.3f, S %.2f -> %.2f, published %.2f; width %.3f -> %.3f px, "
                      "published %.3f px\n",
                      names[k], alone.remaining[0], alone.remaining[1], alone.before, alone.after,
                      published.before, alone.width_before_px, alone.width_after_px,
                      published.width_before_px);
        assert_int_equal(alone.state, OCT_SHARPEN_FOUND);
        assert_true(alone.width_after_px <= 1.05 * published.width_before_px);
        assert_true(alone.after >= 0.97 * published.before);
    }
    free(spectra);
}
