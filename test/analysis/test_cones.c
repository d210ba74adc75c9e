/* Cone spacing: lattices of known spacing, a living eye with known figures, and pictures without a
 * ring. The oracle of the whitening is direct and in double precision. */
#include "analysis/cones/live.h"
#include "analysis/cones/map.h"
#include "analysis/cones/square.h"
#include "analysis/cones/whiten.h"
#include "analysis/enface/enface.h"
#include "formats/pictures.h"
#include "kernels/device/workers.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/mosaic.h"
#include "test/rig/tap.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct oct_cones_result find(const struct oct_picture *picture, bool is_db)
{
    struct oct_error err = {.text = ""};
    struct oct_cones *cones;
    struct oct_cones_result result;
    const struct oct_cones_setup setup = {.height = picture->height,
                                          .width = picture->width,
                                          .is_db = is_db,
                                          .masked = picture->valid != NULL};
    if (oct_cones_create(&cones, &setup, &err) || oct_cones_find(cones, picture, &result, &err))
        fail_msg("%s", err.text);
    oct_cones_destroy(cones);
    return result;
}

static struct oct_cones_result find_in(const struct oct_cone_mosaic *mosaic)
{
    struct oct_picture picture = oct_mosaic_make(mosaic, false);
    struct oct_cones_result result = find(&picture, false);
    oct_picture_finish(&picture);
    return result;
}

static struct oct_cone_mosaic mosaic_of(double spacing, uint32_t height, uint32_t width)
{
    return (struct oct_cone_mosaic){.height = height,
                                    .width = width,
                                    .spacing_y = spacing,
                                    .spacing_x = spacing,
                                    .angle = 0.3,
                                    .seed = 1};
}

/* ---- spacings that are known ---- */

static void perfect_lattices_are_measured(void **state)
{
    static const double spacings[] = {4.6, 6, 8.1, 11.3, 16, 23, 40};
    for (size_t i = 0; i < sizeof(spacings) / sizeof(spacings[0]); i++) {
        uint32_t side = (uint32_t)fmax(120, spacings[i] * 8);
        struct oct_cone_mosaic m = mosaic_of(spacings[i], side, side + 10);
        struct oct_cones_result r = find_in(&m);
        print_message("# %.2f px: %.3f, %.3f\n", spacings[i], r.spacing_px, r.strength);
        assert_true(r.found && fabs(r.spacing_px / spacings[i] - 1) < 0.002);
        assert_true(fabs(r.ring_spacing_px / spacings[i] - 1) < 0.02);
        assert_true(r.strength > 0.2);
    }
}

static void cones_that_differ_are_measured(void **state)
{
    double sum = 0, most = 0, ring_sum = 0, ring_most = 0;
    enum { N = 24 };
    for (unsigned i = 0; i < N; i++) {
        double spacing = 5 * pow(3, i / (double)N);
        struct oct_cone_mosaic m = mosaic_of(spacing, 110 + i % 7, 150);
        m.jitter = 0.05 + 0.07 * (i % 5) / 4;
        m.brightness = 0.3;
        m.shade = i % 3;
        m.angle = 0.1 * i;
        m.seed = 100 + i;
        struct oct_cones_result r = find_in(&m);
        assert_true(r.found);
        sum += fabs(r.spacing_px / spacing - 1) / N;
        most = fmax(most, fabs(r.spacing_px / spacing - 1));
        ring_sum += fabs(r.ring_spacing_px / spacing - 1) / N;
        ring_most = fmax(ring_most, fabs(r.ring_spacing_px / spacing - 1));
    }
    print_message("# mean error %.2f %%, largest %.2f %%; of the ring %.2f %%, %.2f %%\n",
                  100 * sum, 100 * most, 100 * ring_sum, 100 * ring_most);
    assert_true(sum < 0.003 && most < 0.01);
    assert_true(ring_sum < 0.015 && ring_most < 0.05);
}

static void light_and_direction_change_nothing(void **state)
{
    struct oct_cone_mosaic m = mosaic_of(9.3, 128, 140);
    m.jitter = 0.08;
    struct oct_picture p = oct_mosaic_make(&m, false), turned = oct_mosaic_make(&m, false);
    struct oct_cones_result r = find(&p, false);
    assert_int_equal(oct_picture_transpose(&turned, NULL), OCT_OK);
    struct oct_cones_result t = find(&turned, false);
    assert_true(fabs(t.spacing_px - r.spacing_px) < 1e-3 && fabs(t.strength - r.strength) < 1e-4);
    for (size_t i = 0; i < (size_t)p.height * p.width; i++)
        p.pixels[i] *= 37;
    t = find(&p, false);
    assert_true(fabs(t.spacing_px - r.spacing_px) < 1e-3 && fabs(t.strength - r.strength) < 1e-4);
    /* Of dB pictures an offset is a gain. */
    for (size_t i = 0; i < (size_t)p.height * p.width; i++)
        p.pixels[i] = 10 * log10f(p.pixels[i]);
    r = find(&p, true);
    for (size_t i = 0; i < (size_t)p.height * p.width; i++)
        p.pixels[i] = 3 * p.pixels[i] - 120;
    t = find(&p, true);
    assert_true(r.found && fabs(t.spacing_px - r.spacing_px) < 1e-3);
    assert_true(fabs(r.spacing_px / 9.3 - 1) < 0.02);
    oct_picture_finish(&p);
    oct_picture_finish(&turned);
}

static void masked_pixels_do_not_count(void **state)
{
    struct oct_cone_mosaic m = mosaic_of(8.4, 140, 130);
    m.jitter = 0.06;
    struct oct_picture p = oct_mosaic_make(&m, true);
    struct oct_cones_result before = find(&p, false), after[2];
    for (int which = 0; which < 2; which++) {
        /* A band, a quarter, and single pixels; what lies there is huge, or no number. */
        for (uint32_t y = 0; y < p.height; y++)
            for (uint32_t x = 0; x < p.width; x++) {
                size_t i = (size_t)y * p.width + x;
                p.valid[i] =
                    !(y >= 60 && y < 67) && !(y < 50 && x < 60) && (x * 7 + y * 13) % 41 != 0;
                if (!p.valid[i])
                    p.pixels[i] = which ? NAN : (float)(1e6 * (double)(i % 9));
            }
        after[which] = find(&p, false);
    }
    assert_true(before.found && after[0].found);
    assert_true(fabs(after[0].spacing_px / before.spacing_px - 1) < 0.01);
    assert_true(after[0].spacing_px == after[1].spacing_px);
    oct_picture_finish(&p);
}

/* A picture of a living eye, ../shared/data/ao_mosaic; false: it is not there. */
static bool read_eye(const char *number, struct oct_picture *picture)
{
    const char *top = getenv("OCT_TOP");
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    struct oct_error err = {.text = ""};
    struct oct_pictures *pictures;
    char name[PATH_MAX];
    const char *path = name;
    snprintf(name, sizeof(name), "%s/../shared/data/ao_mosaic/confocal_%s.tif", top ? top : ".",
             number);
    if (access(path, R_OK) != 0) {
        print_message("# skipped: %s is not there\n", path);
        return false;
    }
    if (oct_pictures_open(&pictures, &path, 1, &options, &err) ||
        oct_pictures_read(pictures, 0, picture, NULL, &err))
        fail_msg("%s", err.text);
    oct_pictures_close(pictures);
    return true;
}

/* As an atrophy, a fold or the corner of a canvas: grey, with noise of a fiftieth of the light. */
static void a_place_without_cones_has_none(void **state)
{
    struct oct_cone_mosaic m = mosaic_of(9, 200, 200);
    m.jitter = 0.07;
    m.brightness = 0.3;
    struct oct_picture p = oct_mosaic_make(&m, false);
    struct oct_picture noise = oct_mosaic_noise(200, 200, 3);
    struct oct_cones_setup setup = {.height = 200, .width = 200};
    struct oct_cones *cones;
    struct oct_cones_result whole = find(&p, false), r;
    unsigned n_within = 0;
    for (int y = 0; y < 200; y++)
        for (int x = 0; x < 200; x++)
            if (hypot(y - 100, x - 100) < 50)
                p.pixels[y * 200 + x] = 0.4f + 0.02f * (noise.pixels[y * 200 + x] - 10);
    assert_int_equal(oct_cones_create(&cones, &setup, NULL), OCT_OK);
    assert_int_equal(oct_cones_find(cones, &p, &r, NULL), OCT_OK);
    struct oct_cone_place *places = oct_cones_take_places(cones);
    for (uint32_t i = 0; i < r.count.n; i++)
        n_within += hypot(places[i].y - 100, places[i].x - 100) < 44;
    print_message("# %u in an area of %.0f cones; %.3f px, %.3f in the whole mosaic\n", n_within,
                  3.14159 * 44 * 44 * whole.count.per_px2, r.spacing_px, whole.spacing_px);
    assert_true(n_within <= 2);
    assert_true(fabs(r.spacing_px / whole.spacing_px - 1) < 0.01);
    free(places);
    oct_cones_destroy(cones);
    oct_picture_finish(&noise);
    oct_picture_finish(&p);
}

/* The ring's figures are those of ../shared/data/README.md, of rows and columns 200 to 455, the
 * count's are from scipy's Laplacian of Gaussian and Voronoi cells, by the rules of whiten.h and
 * count.h. */
static void living_eyes_give_the_known_figures(void **state)
{
    static const struct {
        const char *number;
        double ring, strength, spacing, n;
    } known[] = {
        {"0069", 9.47, 0.125, 9.522, 813},   {"0070", 10.75, 0.154, 10.922, 623},
        {"0071", 12.00, 0.129, 12.334, 485}, {"0072", 13.31, 0.089, 13.474, 405},
        {"0075", 13.25, 0.061, 12.961, 437},
    };
    enum { FIRST = 200, SIDE = 256 };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct oct_picture whole, part;
        if (!read_eye(known[i].number, &whole))
            skip();
        assert_int_equal(oct_picture_init(&part, SIDE, SIDE, false, NULL), OCT_OK);
        for (size_t y = 0; y < SIDE; y++)
            memcpy(part.pixels + y * SIDE, whole.pixels + (FIRST + y) * whole.width + FIRST,
                   SIDE * sizeof(float));
        struct oct_cones_result r = find(&part, false);
        print_message("# %s: %.3f px, %u cones; ring %.3f px, %.4f\n", known[i].number,
                      r.spacing_px, r.count.n, r.ring_spacing_px, r.strength);
        assert_true(fabs(r.spacing_px / known[i].spacing - 1) < 0.003);
        assert_true(fabs(r.count.n / known[i].n - 1) < 0.01);
        assert_true(fabs(r.ring_spacing_px / known[i].ring - 1) < 0.005);
        assert_true(fabs(r.strength - known[i].strength) < 0.003);
        oct_picture_finish(&whole);
        oct_picture_finish(&part);
    }
}

/* ---- pictures of a split detector ---- */

/* What lies reach pixels ahead along (cos, sin), less what lies behind, on that grey, with
 * noise; both in its standard deviations. */
static struct oct_picture split_of(const struct oct_picture *from, double angle, double reach,
                                   double grey, double noise)
{
    struct oct_picture to;
    const int dy = (int)lrint(reach * sin(angle)), dx = (int)lrint(reach * cos(angle));
    const int far = (int)ceil(reach), h = (int)from->height - 2 * far;
    const int w = (int)from->width - 2 * far;
    double sum = 0;
    assert_int_equal(oct_picture_init(&to, (uint32_t)h, (uint32_t)w, false, NULL), OCT_OK);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            const float *at = from->pixels + (y + far) * (int)from->width + x + far;
            const float d = at[dy * (int)from->width + dx] - at[-dy * (int)from->width - dx];
            to.pixels[y * w + x] = d;
            sum += (double)(d * d);
        }
    const double sd = sqrt(sum / (h * w));
    struct oct_picture dots = oct_mosaic_noise((uint32_t)h, (uint32_t)w, 7);
    for (int i = 0; i < h * w; i++)
        to.pixels[i] += (float)(sd * (grey + noise * ((double)dots.pixels[i] - 10)));
    oct_picture_finish(&dots);
    return to;
}

static void pairs_of_light_and_dark_have_no_spacing(void **state)
{
    static const double spacings[] = {6, 9, 14, 24};
    for (int i = 0; i < 48; i++) {
        struct oct_cone_mosaic m = mosaic_of(spacings[i % 4], 220, 200);
        m.jitter = 0.04 * (i / 16);
        m.angle = 0.1 * i;
        m.seed = (uint64_t)i;
        struct oct_picture p = oct_mosaic_make(&m, false);
        struct oct_picture split =
            split_of(&p, 0.7 * i, 0.2 * m.spacing_x, 4 + 8 * (i % 2), 0.2 * (i % 3));
        struct oct_cones_result r = find(&p, false), s = find(&split, false);
        assert_true(r.found && !r.is_split);
        assert_true(!s.found && isnan(s.spacing_px));
        assert_true(s.is_split || s.seen_strength < s.needed || isnan(s.seen_px));
        if (i / 16 == 0)
            assert_true(s.is_split);
        oct_picture_finish(&p);
        oct_picture_finish(&split);
    }
}

/* All crops of a picture of a living eye: none is taken for split; of their differences all. */
static void judge_crops(const struct oct_picture *whole, uint32_t side, double reach, unsigned n[3])
{
    struct oct_picture part;
    assert_int_equal(oct_picture_init(&part, side, side, false, NULL), OCT_OK);
    for (uint32_t y = 0; y + side <= whole->height; y += side)
        for (uint32_t x = 0; x + side <= whole->width; x += side) {
            for (size_t row = 0; row < side; row++)
                memcpy(part.pixels + row * side, whole->pixels + (y + row) * whole->width + x,
                       side * sizeof(float));
            struct oct_picture split = split_of(&part, 0, reach, 4 + 8 * (n[0] % 2), 0.3);
            struct oct_cones_result r = find(&part, false), s = find(&split, false);
            assert_false(r.is_split);
            assert_false(s.found);
            n[0]++;
            n[1] += r.found;
            n[2] += s.is_split;
            oct_picture_finish(&split);
        }
    oct_picture_finish(&part);
}

static void living_eyes_are_not_split(void **state)
{
    static const char *const numbers[] = {"0069", "0070", "0071", "0072", "0075"};
    unsigned n[3] = {0};
    for (size_t i = 0; i < 5; i++) {
        struct oct_picture whole;
        if (!read_eye(numbers[i], &whole))
            skip();
        judge_crops(&whole, 256, 2, n);
        judge_crops(&whole, 128, 2, n);
        oct_picture_finish(&whole);
    }
    print_message("# %u crops: %u have a ring, %u of their differences are split\n", n[0], n[1],
                  n[2]);
    assert_true(n[0] > 100 && n[1] > n[0] / 2 && n[2] > n[0] / 2);
}

/* ---- no ring ---- */

static void noise_and_random_points_have_no_ring(void **state)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        uint32_t height = 64 + (uint32_t)(seed * 17 % 90), width = 64 + (uint32_t)(seed * 29 % 90);
        struct oct_picture p = seed % 2
                                   ? oct_mosaic_noise(height, width, seed)
                                   : oct_mosaic_points(height, width, 5 + (double)(seed % 9), seed);
        struct oct_cones_result r = find(&p, false);
        assert_false(r.found);
        assert_true(isnan(r.spacing_px) && isnan(r.strength));
        /* Of 100 cells 0.06 is needed, of fewer more. */
        const double few = 0.6 * r.seen_px / sqrt((double)height * width);
        if (!isnan(r.seen_px))
            assert_true(fabs(r.needed - fmax(0.06, few)) < 1e-12 && r.seen_strength < r.needed);
        oct_picture_finish(&p);
    }
}

static void what_cannot_be_measured_is_refused(void **state)
{
    struct oct_error err = {.text = ""};
    struct oct_cones *cones;
    struct oct_cones_result r;
    static const struct oct_cones_setup wrong[] = {
        {.height = 15, .width = 100},
        {.height = 100, .width = 100, .least_px = 1},
        {.height = 100, .width = 100, .least_px = 9, .most_px = 8},
        {.height = 100, .width = 100, .most_px = 90},
        {.height = 100, .width = 100, .least_px = NAN},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(oct_cones_create(&cones, &wrong[i], &err), OCT_E_ARG);
        assert_null(cones);
        assert_true(strlen(err.text) > 10);
    }
    struct oct_cone_mosaic m = mosaic_of(8, 100, 100);
    struct oct_picture p = oct_mosaic_make(&m, true);
    const struct oct_cones_setup setup = {.height = 100, .width = 100, .masked = true};
    assert_int_equal(oct_cones_create(&cones, &setup, &err), OCT_OK);
    memset(p.valid + 900, 0, 100 * 100 - 900);
    assert_int_equal(oct_cones_find(cones, &p, &r, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "9.0 %"));
    memset(p.valid, 1, 100 * 100);
    for (size_t i = 0; i < 100 * 100; i++)
        p.pixels[i] = 7;
    assert_int_equal(oct_cones_find(cones, &p, &r, &err), OCT_E_ARG);
    assert_string_equal(err.text, "no contrast");
    assert_false(r.found);
    oct_cones_destroy(cones);
    oct_picture_finish(&p);
}

/* ---- whitening ---- */

enum { OH = 38, OW = 45 };

static int mirrored(int i, int n)
{
    while (i < 0 || i >= n)
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

static int compare_doubles(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* e by its definition, all kernels out to 6 sigma; NaN near 0.3 sqrt(m), as m is of blocks. */
static void whiten_directly(const float *u, double sigma, double *e)
{
    static double log_u[OH][OW], power[OH * OW], sorted[OH * OW];
    const int reach = (int)(6 * sigma), far = (int)(6 * 8 * sigma);
    for (int y = 0; y < OH; y++)
        for (int x = 0; x < OW; x++) {
            double sum = 0;
            for (int dy = -reach; dy <= reach; dy++)
                for (int dx = -reach; dx <= reach; dx++) {
                    double r2 = (dy * dy + dx * dx) / (sigma * sigma);
                    sum += exp(-r2 / 2) * (r2 - 2) *
                           (double)u[mirrored(y + dy, OH) * OW + mirrored(x + dx, OW)];
                }
            log_u[y][x] = -sum;
        }
    for (int y = 0; y < OH; y++)
        for (int x = 0; x < OW; x++) {
            double sum = 0, weight = 0;
            for (int dy = -far; dy <= far; dy++)
                for (int dx = -far; dx <= far; dx++) {
                    double w = exp(-(dy * dy + dx * dx) / (128 * sigma * sigma));
                    double v = log_u[mirrored(y + dy, OH)][mirrored(x + dx, OW)];
                    sum += w * v * v;
                    weight += w;
                }
            power[y * OW + x] = sum / weight;
        }
    memcpy(sorted, power, sizeof(power));
    qsort(sorted, OH * OW, sizeof(sorted[0]), compare_doubles);
    const double m = sorted[OH * OW / 2], least = 0.16 * m;
    for (int k = 0; k < OH * OW; k++) {
        const double v = log_u[k / OW][k % OW], share = v / (0.3 * sqrt(m));
        e[k] = v * (power[k] < least ? power[k] / pow(least, 1.5) : 1 / sqrt(power[k]));
        if (share > 0 && share < 1.1)
            e[k] = share < 0.9 ? 0 : NAN;
    }
}

static void whitening_is_what_its_equation_says(void **state)
{
    static const double sigmas[] = {0.9, 1.3};
    struct oct_picture p = oct_mosaic_noise(OH, OW, 5);
    struct oct_whitener *w;
    float e[OH * OW];
    static double direct[OH * OW];
    assert_int_equal(oct_whitener_create(&w, OH, OW, NULL), OCT_OK);
    for (int y = 0; y < OH; y++) /* the left is weaker than the right, and its end far weaker */
        for (int x = 0; x < OW; x++)
            p.pixels[y * OW + x] *= x < 6 ? 0.05f : 1 + (float)x / 10;
    for (size_t i = 0; i < 2; i++) {
        double most = 0;
        whiten_directly(p.pixels, sigmas[i], direct);
        assert_true(oct_whitener_run(w, p.pixels, NULL, sigmas[i], false, e));
        unsigned n = 0;
        for (int k = 0; k < OH * OW; k++) {
            assert_true(isfinite(e[k]));
            n += isnan(direct[k]) ? 0 : 1;
            most = isnan(direct[k]) ? most : fmax(most, fabs((double)e[k] - direct[k]));
        }
        assert_true(n > 0.9 * OH * OW);
        print_message("# sigma %.1f: largest difference %.4f\n", sigmas[i], most);
        assert_true(most < 0.04); /* of values about 1; the average is formed on blocks */
    }
    oct_whitener_destroy(w);
    oct_picture_finish(&p);
}

/* ---- maps ---- */

static void tiles_tell_where_cones_stand_closer(void **state)
{
    struct oct_cone_mosaic m = mosaic_of(6, 150, 300);
    struct oct_picture two[2];
    struct oct_workers *workers;
    struct oct_error err = {.text = ""};
    two[0] = oct_mosaic_make(&m, false);
    m.spacing_x = m.spacing_y = 10;
    two[1] = oct_mosaic_make(&m, false);
    for (size_t y = 0; y < 150; y++) { /* 6 on the left, 10 on the right; and the other way round */
        float half[150];
        memcpy(half, two[0].pixels + y * 300 + 150, sizeof(half));
        memcpy(two[0].pixels + y * 300 + 150, two[1].pixels + y * 300 + 150, sizeof(half));
        memcpy(two[1].pixels + y * 300 + 150, half, sizeof(half));
    }
    assert_int_equal(oct_workers_create(&workers, 2, &err), OCT_OK);
    struct oct_cones_result r[2][2][2][4];
    for (int pool = 0; pool < 2; pool++) {
        const struct oct_cones_map_setup setup = {.finder = {.height = 150, .width = 300},
                                                  .tile = 90,
                                                  .step = 60,
                                                  .workers = pool ? workers : NULL};
        struct oct_cones_map *map;
        uint32_t rows, columns;
        struct oct_error why[2];
        assert_int_equal(oct_cones_map_create(&map, &setup, &err), OCT_OK);
        oct_cones_map_size(map, &rows, &columns);
        assert_int_equal(rows, 2);
        assert_int_equal(columns, 4);
        assert_int_equal(oct_cones_map_run(map, two, 2, &r[pool][0][0][0], NULL, why, &err),
                         OCT_OK);
        oct_cones_map_destroy(map);
    }
    for (int y = 0; y < 2; y++) {
        assert_true(fabs(r[0][0][y][0].spacing_px / 6 - 1) < 0.02);
        assert_true(fabs(r[0][0][y][3].spacing_px / 10 - 1) < 0.02);
        assert_true(fabs(r[0][1][y][0].spacing_px / 10 - 1) < 0.02);
        assert_true(fabs(r[0][1][y][3].spacing_px / 6 - 1) < 0.02);
    }
    for (int i = 0; i < 16; i++) /* whoever computed it */
        assert_true((&r[0][0][0][0])[i].spacing_px == (&r[1][0][0][0])[i].spacing_px ||
                    !(&r[0][0][0][0])[i].found);
    oct_workers_destroy(workers);
    oct_picture_finish(&two[0]);
    oct_picture_finish(&two[1]);
}

static void the_picture_without_contrast_is_named(void **state)
{
    struct oct_cone_mosaic m = mosaic_of(8, 80, 80);
    struct oct_picture three[3];
    struct oct_cones_result r[3];
    struct oct_error err = {.text = ""};
    struct oct_cones_map *map;
    struct oct_error why[3];
    for (int i = 0; i < 3; i++)
        three[i] = oct_mosaic_make(&m, false);
    memset(three[1].pixels, 0, 80 * 80 * sizeof(float));
    struct oct_cones_map_setup setup = {.finder = {.height = 80, .width = 80}};
    assert_int_equal(oct_cones_map_create(&map, &setup, &err), OCT_OK);
    assert_int_equal(oct_cones_map_run(map, three, 3, r, NULL, why, &err), OCT_OK);
    assert_true(r[0].found && !r[1].found && r[2].found);
    assert_true(why[0].code == OCT_OK && why[1].code == OCT_E_ARG && why[2].code == OCT_OK);
    assert_string_equal(why[1].text, "no contrast");
    oct_cones_map_destroy(map);
    setup.tile = 80; /* of a map it is a tile without a ring */
    assert_int_equal(oct_cones_map_create(&map, &setup, &err), OCT_OK);
    assert_int_equal(oct_cones_map_run(map, three, 3, r, NULL, why, &err), OCT_OK);
    assert_true(r[0].found && !r[1].found && r[2].found && why[1].code == OCT_OK);
    oct_cones_map_destroy(map);
    setup.tile = 81;
    assert_int_equal(oct_cones_map_create(&map, &setup, &err), OCT_E_ARG);
    for (int i = 0; i < 3; i++)
        oct_picture_finish(&three[i]);
}

/* ---- live ---- */

static void pixels_become_square(void **state)
{
    struct oct_square s;
    oct_square_plan(&s, 20, 90, 7.5, 2);
    assert_int_equal(s.merge_x, 2);
    assert_int_equal(s.merge_y, 1);
    assert_true(s.um == 4 && s.scale_x == 1 && s.scale_y == 1.875);
    assert_int_equal(s.out_width, 45);
    assert_int_equal(s.out_height, 36); /* 19 * 1.875 = 35.6 */
    struct oct_picture out;
    float values[20 * 90], merged[20 * 90];
    assert_int_equal(oct_picture_init(&out, s.out_height, s.out_width, true, NULL), OCT_OK);
    for (int i = 0; i < 20 * 90; i++) /* a plane: 3 um a value down, 1 um across */
        values[i] = i / 90 == 11 ? NAN : (float)(i / 90 * 7.5 / 3 + i % 90 * 2);
    oct_square_run(&s, values, merged, &out);
    for (uint32_t y = 0; y < s.out_height; y++)
        for (uint32_t x = 0; x < s.out_width; x++) {
            double row = y / s.scale_y;
            bool there = !(row > 10 && row < 12);
            assert_int_equal(out.valid[y * s.out_width + x], there);
            /* Beside the gap and the border a neighbour is missing, and the curve is not a line. */
            if (row > 1 && row < 18 && fabs(row - 11) > 2)
                assert_true(fabs((double)out.pixels[y * s.out_width + x] -
                                 (row * 7.5 / 3 + x * 4 + 1)) < 1e-4);
        }
    oct_picture_finish(&out);
    oct_square_plan(&s, 30, 30, 2, 2.001);
    assert_int_equal(s.out_height, 30);
    assert_int_equal(s.out_width, 30);
}

enum { M = 96, V = 130, D = 8 };
static const struct oct_enface_settings slab = {OCT_PROJECTION_MEAN, 0.5, 0.75};

/* Two volumes: a mosaic in the slab of depths 4 and 5, something brighter above it. The row of the
 * second. */
static void scan(const struct oct_picture *seen, const struct oct_spacing *spacing, float *row)
{
    struct oct_error err = {.text = ""};
    struct oct_suite_recipe recipe = {
        .n_lines = M, .depth = D, .n_bscans = V, .type = OCT_SAMPLE_F32, .live = true};
    struct oct_suite_bscan b;
    struct oct_suite_result result;
    struct oct_image_form form;
    struct oct_analysis *a;
    oct_suite_bscan_open(&b, &recipe, OCT_STAGE_PICTURES);
    struct oct_analysis_setup setup = oct_suite_setup(&b, &recipe, &slab);
    setup.spacing = *spacing;
    if (oct_cones_cpu.create(&a, &setup, &form, &err))
        fail_msg("%s", err.text);
    oct_suite_result_open(&result, &form);
    unsigned n = 0;
    for (uint64_t i = 0; i < 2 * V; i++) {
        for (size_t j = 0; j < M; j++)
            for (size_t d = 0; d < D; d++)
                ((float *)b.memory)[j * D + d] = d == 4 || d == 5
                                                     ? 20 + 10 * log10f(seen->pixels[i % V * M + j])
                                                     : 60.0f + (float)d;
        oct_suite_bscan_number(&b, i, V);
        assert_int_equal(oct_cones_cpu.run.push(a, &b.frame, &err), OCT_OK);
        while (oct_suite_take(&oct_cones_cpu, a, &b.frame.info, &result) == OCT_OK) {
            assert_int_equal(i % V, V - 1);
            assert_int_equal(result.frame.info.bscan, V - 1);
            n++;
        }
    }
    assert_int_equal(n, 2);
    memcpy(row, result.memory, OCT_CONES_N_COLUMNS * sizeof(float));
    oct_cones_cpu.run.destroy(a);
    oct_suite_result_close(&result);
    oct_suite_bscan_close(&b);
}

static void a_volume_has_the_spacing_of_its_slab(void **state)
{
    float row[OCT_CONES_N_COLUMNS];
    /* 5 um between cones; B-scans 0.5 um apart, A-lines 0.8 um. */
    struct oct_cone_mosaic m = mosaic_of(0, V, M);
    m.spacing_y = 5 / 0.5;
    m.spacing_x = 5 / 0.8;
    m.jitter = 0.05;
    struct oct_picture p = oct_mosaic_make(&m, false);
    scan(&p, &(struct oct_spacing){0.5, 0.8, NAN}, row);
    print_message("# %.2f px, %.3f um, %.0f/mm2, %.3f\n", (double)row[OCT_CONES_SPACING_PX],
                  (double)row[OCT_CONES_SPACING_UM], (double)row[OCT_CONES_PER_MM2],
                  (double)row[OCT_CONES_STRENGTH]);
    assert_true(fabs((double)row[OCT_CONES_SPACING_UM] / 5 - 1) < 0.02);
    assert_true(fabs((double)row[OCT_CONES_SPACING_PX] * 0.5 / 5 - 1) < 0.02);
    double um = (double)row[OCT_CONES_SPACING_UM];
    assert_true(fabs((double)row[OCT_CONES_ROWS_UM] / (um * sqrt(0.75)) - 1) < 1e-5);
    assert_true(fabs((double)row[OCT_CONES_PER_MM2] / (1e6 / (um * um * sqrt(0.75))) - 1) < 1e-5);
    assert_true(row[OCT_CONES_STRENGTH] > 0.1f);
    /* Without a scale, pixels that may not be square say nothing. */
    scan(&p, &(struct oct_spacing){NAN, 0.8, NAN}, row);
    for (int i = 0; i < OCT_CONES_N_COLUMNS; i++)
        assert_true(isnan(row[i]));
    oct_picture_finish(&p);
    p = oct_mosaic_noise(V, M, 3);
    scan(&p, &(struct oct_spacing){0.5, 0.8, NAN}, row);
    for (int i = 0; i < OCT_CONES_N_COLUMNS; i++)
        assert_true(isnan(row[i]));
    oct_picture_finish(&p);
}

int main(void)
{
    static const struct oct_enface_settings wrong = {OCT_PROJECTION_SLAB, 0.6, 0.4};
    const struct oct_analysis_suite suite = {
        .ops = &oct_cones_cpu, .settings = &slab, .wrong_settings = &wrong};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfect_lattices_are_measured),
        cmocka_unit_test(cones_that_differ_are_measured),
        cmocka_unit_test(light_and_direction_change_nothing),
        cmocka_unit_test(masked_pixels_do_not_count),
        cmocka_unit_test(a_place_without_cones_has_none),
        cmocka_unit_test(living_eyes_give_the_known_figures),
        cmocka_unit_test(pairs_of_light_and_dark_have_no_spacing),
        cmocka_unit_test(living_eyes_are_not_split),
        cmocka_unit_test(noise_and_random_points_have_no_ring),
        cmocka_unit_test(what_cannot_be_measured_is_refused),
        cmocka_unit_test(whitening_is_what_its_equation_says),
        cmocka_unit_test(tiles_tell_where_cones_stand_closer),
        cmocka_unit_test(the_picture_without_contrast_is_named),
        cmocka_unit_test(pixels_become_square),
        cmocka_unit_test(a_volume_has_the_spacing_of_its_slab),
    };
    int failed = oct_analysis_suite_run(&suite);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
