/* Detection in pictures that are small, flat, saturated or masked, and its settings. */
#include "analysis/cells/find.h"
#include "test/rig/cells_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define H 210
#define W 250
#define MOST 256

static const struct oct_cells_engine_ops *const cpu = &oct_cells_cpu_engine;

static struct oct_cells_engine *open(const struct oct_cells_params *params, uint32_t height,
                                     uint32_t width)
{
    const struct oct_cells_engine_setup setup = {
        .height = height, .width = width, .params = *params};
    struct oct_cells_engine *engine;
    must(cpu->create(&engine, &setup, &failure));
    return engine;
}

static unsigned look(struct oct_cells_engine *engine, const struct oct_picture *picture,
                     struct oct_cell *cells, unsigned most)
{
    unsigned n;
    must(cpu->look(engine, picture, cells, most, &n, &failure));
    return n;
}

/* ---- settings ---- */

static void refuse(const struct oct_cells_params *params, uint32_t height, uint32_t width,
                   const char *says)
{
    const struct oct_cells_engine_setup setup = {
        .height = height, .width = width, .params = *params};
    struct oct_cells_engine *engine;
    struct oct_error err = {0};
    assert_int_equal(cpu->create(&engine, &setup, &err), OCT_E_ARG);
    assert_null(engine);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

TEST(what_cannot_be_is_refused)
{
    struct oct_cells_params good, bad;
    oct_cells_params_octd(&good, 10);
    assert_int_equal(oct_cells_border(&good), 22);
    assert_int_equal(oct_cells_params_check(&good, 45, 45, NULL), OCT_OK);
    refuse(&good, 44, 100, "45 x 45");
    refuse(&good, 100, 44, "45 x 45");
    refuse(&good, 100, 16385, "16384");
#define REFUSE(assignment, says) bad = good, bad.assignment, refuse(&bad, 9000, 9000, says)
    REFUSE(radius = 1.4, "1.5");
    REFUSE(radius = 201, "200");
    REFUSE(radius = NAN, "1.5");
    REFUSE(last = 0.7, "0.8 to 0.7");
    REFUSE(step = 0, "steps of 0");
    REFUSE(step = 0.001, "32");
    REFUSE(first = 0.05, "1 px");
    REFUSE(last = INFINITY, "inf");
    REFUSE(threshold = 0, "0.01 to 1000");
    REFUSE(threshold = NAN, "0.01 to 1000");
    REFUSE(smooth = -1, "0 to 4");
    REFUSE(floor = NAN, "floor");
    REFUSE(spacing = -1, "spacing");
    REFUSE(polarity = OCT_CELLS_N_POLARITIES, "polarity");
    REFUSE(detect_every = 0, "detect_every");
    REFUSE(max_step = -1, "step");
    REFUSE(stop = NAN, "stop");
}

TEST(circles_are_the_list)
{
    static const double expected[] = {8, 10, 12, 14, 16, 18, 20};
    struct oct_cells_params params;
    double radius[OCT_CELLS_MOST_CIRCLES];
    oct_cells_params_boyer(&params, 10);
    assert_int_equal(oct_cells_circles(&params, radius), 7);
    for (unsigned k = 0; k < 7; k++)
        assert_true(radius[k] == expected[k]);
    params.last = params.first;
    assert_int_equal(oct_cells_circles(&params, radius), 1);
    params.first = 1;
    params.last = 4.1;
    params.step = 0.1;
    assert_int_equal(oct_cells_circles(&params, radius), 32);
    params.last = 4.2;
    assert_int_equal(oct_cells_circles(&params, radius), 0);
}

/* ---- small pictures, and calls out of order ---- */

TEST(the_smallest_picture_has_one_score)
{
    static float score[45 * 45];
    static uint8_t best[45 * 45];
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell cell;
    const struct oct_cells_disk disk = {22, 22, 10, 50};
    oct_cells_params_octd(&params, 10);
    assert_int_equal(oct_picture_init(&picture, 45, 45, false, NULL), OCT_OK);
    memset(picture.pixels, 0, sizeof(score));
    struct oct_cells_engine *engine = open(&params, 45, 45);
    assert_int_equal(look(engine, &picture, &cell, 1), 0);
    oct_cells_scene_disk(&picture, &disk);
    assert_int_equal(look(engine, &picture, &cell, 1), 1);
    assert_int_equal(cell.peak_x, 22);
    assert_true(hypot(cell.x - 22, cell.y - 22) < 0.03);
    assert_int_equal(cpu->map(engine, score, best, NULL), OCT_OK);
    for (unsigned i = 0; i < 45 * 45; i++)
        assert_true((score[i] != 0) == (i == 22 * 45 + 22) && (best[i] == 255) == (score[i] == 0));
    assert_true(cpu->highest(engine) == fabs((double)cell.score));

    assert_int_equal(look(engine, &picture, NULL, 0), 0);
    assert_int_equal(cpu->map(engine, score, best, NULL), OCT_E_STATE);
    picture.width = 44;
    unsigned n;
    assert_int_equal(cpu->look(engine, &picture, &cell, 1, &n, NULL), OCT_E_ARG);
    cpu->destroy(engine);
    cpu->destroy(NULL);
    oct_picture_finish(&picture);
}

/* More cells than room: the first ones, and how many there are. */
TEST(the_first_cells_are_given)
{
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell all[MOST], some[MOST];
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_NOISE, 2);
    oct_cells_params_octd(&params, 10);
    struct oct_cells_engine *engine = open(&params, H, W);
    const unsigned n = look(engine, &picture, all, MOST);
    assert_true(n > 4);
    memset(some, 0xee, sizeof(some));
    assert_int_equal(look(engine, &picture, some, 3), n);
    assert_memory_equal(some, all, 3 * sizeof(all[0]));
    assert_int_equal(*(uint8_t *)&some[3], 0xee);
    cpu->destroy(engine);
    oct_picture_finish(&picture);
}

/* ---- little to see ---- */

/* No cell, no NaN, and the next picture is searched as ever. */
static void nothing_is_found_in(struct oct_cells_engine *engine, const struct oct_picture *picture)
{
    static float score[H * W];
    static uint8_t best[H * W];
    struct oct_cell cells[MOST];
    assert_int_equal(look(engine, picture, cells, MOST), 0);
    assert_int_equal(cpu->map(engine, score, best, NULL), OCT_OK);
    for (unsigned i = 0; i < H * W; i++)
        assert_true(isfinite(score[i]));
    assert_true(isfinite(cpu->highest(engine)));
}

TEST(empty_pictures_have_no_cells)
{
    for (unsigned boyer = 0; boyer < 2; boyer++) {
        struct oct_picture picture, scene, empty;
        struct oct_cells_params params;
        struct oct_cell first[MOST], again[MOST];
        (boyer ? oct_cells_params_boyer : oct_cells_params_octd)(&params, 10);
        params.threshold = 1.2;
        oct_cells_scene(&scene, H, W, 10, OCT_CELLS_SCENE_NOISE, 2);
        assert_int_equal(oct_picture_init(&picture, H, W, false, NULL), OCT_OK);
        assert_int_equal(oct_picture_init(&empty, H, W, true, NULL), OCT_OK);
        struct oct_cells_engine *engine = open(&params, H, W);
        const unsigned n = look(engine, &scene, first, MOST);
        static const float values[] = {0, 255, 65535, -3.7f, 3e38f, NAN, INFINITY};
        for (unsigned v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
            for (unsigned i = 0; i < H * W; i++)
                picture.pixels[i] = values[v];
            nothing_is_found_in(engine, &picture);
            assert_true(cpu->highest(engine) == 0);
        }
        memcpy(empty.pixels, scene.pixels, sizeof(float) * H * W);
        memset(empty.valid, 0, H * W);
        nothing_is_found_in(engine, &empty);
        /* A slope has gradients, all of them alike. */
        for (unsigned i = 0; i < H * W; i++)
            picture.pixels[i] = (float)(i % W + 3 * (i / W));
        nothing_is_found_in(engine, &picture);
        assert_int_equal(look(engine, &scene, again, MOST), n);
        assert_memory_equal(first, again, n * sizeof(first[0]));
        cpu->destroy(engine);
        oct_picture_finish(&picture);
        oct_picture_finish(&scene);
        oct_picture_finish(&empty);
    }
}

/* Scores do not know the scale, down to the smallest floats and up to the largest. */
TEST(any_scale_gives_the_same_cells)
{
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell first[MOST], again[MOST];
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_SLOPE, 6);
    oct_cells_params_octd(&params, 10);
    struct oct_cells_engine *engine = open(&params, H, W);
    const unsigned n = look(engine, &picture, first, MOST);
    assert_true(n > 4);
    static const int exponents[] = {-140, -60, 60, 119};
    for (unsigned e = 0; e < 4; e++) {
        for (unsigned i = 0; i < H * W; i++)
            picture.pixels[i] = ldexpf(picture.pixels[i], exponents[e]);
        assert_int_equal(look(engine, &picture, again, MOST), n);
        assert_memory_equal(first, again, n * sizeof(first[0]));
        for (unsigned i = 0; i < H * W; i++)
            picture.pixels[i] = ldexpf(picture.pixels[i], -exponents[e]);
    }
    /* A large pedestal: whole numbers lose nothing. */
    for (unsigned i = 0; i < H * W; i++)
        picture.pixels[i] += 60000;
    assert_int_equal(look(engine, &picture, again, MOST), n);
    assert_memory_equal(first, again, n * sizeof(first[0]));
    cpu->destroy(engine);
    oct_picture_finish(&picture);
}

/* ---- masks ---- */

static double to_masked(const struct oct_picture *picture, double x, double y)
{
    double least = INFINITY;
    for (uint32_t v = 0; v < picture->height; v++)
        for (uint32_t u = 0; u < picture->width; u++)
            if (!picture->valid[(size_t)v * picture->width + u])
                least = fmin(least, hypot(u - x, v - y));
    return least;
}

/* A missing row, a corner, some single pixels. */
static void mask_parts(struct oct_picture *picture)
{
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            picture->valid[(size_t)y * W + x] =
                y != 60 && !(x > 200 && y > 150) && !(x == 50 && y == 140);
}

TEST(cells_keep_away_from_masks)
{
    struct oct_picture scene, picture;
    struct oct_cells_params params;
    struct oct_cell whole[MOST], cells[MOST], other[MOST];
    unsigned n_far = 0;
    oct_cells_scene(&scene, H, W, 7, OCT_CELLS_SCENE_NOISE, 12);
    oct_cells_params_octd(&params, 7);
    params.floor = 0; /* which the masked pixels change */
    assert_int_equal(oct_picture_init(&picture, H, W, true, NULL), OCT_OK);
    memcpy(picture.pixels, scene.pixels, sizeof(float) * H * W);
    mask_parts(&picture);
    for (unsigned i = 0; i < H * W; i++)
        picture.pixels[i] = picture.valid[i] ? picture.pixels[i] : NAN;
    struct oct_cells_engine *engine = open(&params, H, W);
    const unsigned n_whole = look(engine, &scene, whole, MOST);
    const unsigned n = look(engine, &picture, cells, MOST);
    assert_true(n > 4 && n < n_whole);
    for (unsigned i = 0; i < n; i++)
        assert_true(to_masked(&picture, cells[i].x, cells[i].y) > 14);
    /* What is far from all of it is found as without it, but for the level that was subtracted. */
    for (unsigned i = 0; i < n_whole; i++) {
        if (to_masked(&picture, whole[i].x, whole[i].y) < 3 * 14)
            continue;
        n_far++;
        unsigned same = 0;
        for (unsigned j = 0; j < n; j++)
            same += cells[j].peak_x == whole[i].peak_x && cells[j].peak_y == whole[i].peak_y &&
                    fabs(cells[j].x - whole[i].x) < 1e-3;
        assert_int_equal(same, 1);
    }
    assert_true(n_far >= 2);
    /* What is masked does not count, and without a mask NaN is one. */
    for (unsigned i = 0; i < H * W; i++)
        picture.pixels[i] = picture.valid[i] ? picture.pixels[i] : 1e9f;
    assert_int_equal(look(engine, &picture, other, MOST), n);
    assert_memory_equal(other, cells, n * sizeof(cells[0]));
    for (unsigned i = 0; i < H * W; i++)
        scene.pixels[i] = picture.valid[i] ? scene.pixels[i] : i % 2 ? NAN : -INFINITY;
    assert_int_equal(look(engine, &scene, other, MOST), n);
    assert_memory_equal(other, cells, n * sizeof(cells[0]));
    cpu->destroy(engine);
    oct_picture_finish(&scene);
    oct_picture_finish(&picture);
}

static double highest_of(const struct oct_picture *picture, const float *score, double reach)
{
    double highest = 0;
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            if ((double)score[y * W + x] < -highest && to_masked(picture, x, y) > reach)
                highest = -(double)score[y * W + x];
    return highest;
}

/* The highest score is not that of a cell beside a masked pixel; and a cell whose place, not its
 * peak, is near one is left out too. */
TEST(masks_are_judged_by_peak_and_place)
{
    static float score[H * W];
    static uint8_t best[H * W];
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell whole[MOST], cells[MOST];
    unsigned strongest = 0, n_tried = 0;
    oct_cells_scene(&picture, H, W, 7, OCT_CELLS_SCENE_NOISE, 12);
    picture.valid = malloc((size_t)H * W);
    assert_non_null(picture.valid);
    memset(picture.valid, 1, (size_t)H * W);
    oct_cells_params_octd(&params, 7);
    struct oct_cells_engine *engine = open(&params, H, W);
    const unsigned n = look(engine, &picture, whole, MOST);
    for (unsigned i = 1; i < n; i++)
        strongest = whole[i].score < whole[strongest].score ? i : strongest;
    picture.valid[whole[strongest].peak_y * W + whole[strongest].peak_x + 13] = 0;
    look(engine, &picture, cells, MOST);
    assert_int_equal(cpu->map(engine, score, best, NULL), OCT_OK);
    assert_true(cpu->highest(engine) == highest_of(&picture, score, 14));
    assert_true(cpu->highest(engine) < highest_of(&picture, score, 0));

    for (unsigned i = 0; i < n; i++)
        for (int p = 0; p < 29 * 29; p++) {
            const int x = whole[i].peak_x + p % 29 - 14, y = whole[i].peak_y + p / 29 - 14;
            if (x < 0 || y < 0 || x >= W || y >= H ||
                hypot(whole[i].peak_x - x, whole[i].peak_y - y) <= 14 ||
                hypot(whole[i].x - x, whole[i].y - y) > 13.9)
                continue;
            memset(picture.valid, 1, (size_t)H * W);
            picture.valid[y * W + x] = 0;
            const unsigned n_left = look(engine, &picture, cells, MOST);
            for (unsigned j = 0; j < n_left; j++)
                assert_true(hypot(cells[j].x - x, cells[j].y - y) > 14);
            n_tried++;
            break;
        }
    assert_true(n_tried > 2);
    cpu->destroy(engine);
    oct_picture_finish(&picture);
}

TEST(masked_pixels_are_filled_along_columns)
{
    enum { SIDE = 16 };
    struct oct_picture picture;
    struct oct_cells_mask mask;
    float pixels[SIDE * SIDE];
    assert_int_equal(oct_picture_init(&picture, SIDE, SIDE, true, NULL), OCT_OK);
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        const unsigned x = i % SIDE, y = i / SIDE;
        picture.pixels[i] = (float)i;
        picture.valid[i] = !(y >= 4 && y < 9) && !(x == 3 && y < 12) && x != 7 && x != 8;
        pixels[i] = picture.valid[i] ? (float)i : NAN;
    }
    assert_true(oct_cells_mask_init(&mask, SIDE, SIDE, 1.5));
    oct_cells_mask_set(&mask, &picture);
    assert_true(mask.any && !mask.is_empty);
    oct_cells_mask_fill(&mask, pixels, SIDE);
    for (unsigned y = 0; y < SIDE; y++)
        for (unsigned x = 0; x < SIDE; x++) {
            const unsigned u = x == 7 ? 6 : x == 8 ? 9 : x;
            const unsigned v = u == 3 && y < 12 ? 12 : y < 4 || y >= 9 ? y : y <= 6 ? 3 : 9;
            assert_true(pixels[y * SIDE + x] == (float)(v * SIDE + u));
            const bool near = to_masked(&picture, x, y) <= 1.5;
            assert_int_equal(mask.near[y * SIDE + x], near);
            assert_int_equal(oct_cells_mask_is_near(&mask, x + 0.25, y - 0.125),
                             to_masked(&picture, x + 0.25, y - 0.125) <= 1.5);
        }
    oct_cells_mask_finish(&mask);
    oct_picture_finish(&picture);
}

/* ---- peaks and the floor ---- */

/* expected: their pixels, x and y. */
static unsigned find(const struct oct_cells_params *params, const float *score,
                     const int32_t (*expected)[2])
{
    struct oct_cells_peaks peaks;
    assert_true(oct_cells_peaks_init(&peaks, params, H, W));
    assert_int_equal(oct_cells_peaks_find(&peaks, score, NULL, NULL), OCT_OK);
    for (unsigned i = 0; expected && i < peaks.n; i++) {
        assert_int_equal(peaks.cells[i].peak_x, expected[i][0]);
        assert_int_equal(peaks.cells[i].peak_y, expected[i][1]);
    }
    oct_cells_peaks_finish(&peaks);
    return peaks.n;
}

TEST(plateaus_are_one_peak_or_all)
{
    static float score[H * W];
    struct oct_cells_params octd, boyer;
    oct_cells_params_octd(&octd, 10);
    oct_cells_params_boyer(&boyer, 10);
    for (unsigned y = 0; y < 3; y++)
        for (unsigned x = 0; x < 3; x++)
            score[(100 + y) * W + 80 + x] = -2;
    score[130 * W + 80] = -2; /* farther than 12 px: a peak of its own */
    score[130 * W + 92] = 2.5f;
    score[100 * W + 150] = -1.8f; /* not above the threshold, which is no float: 1.79999995 */
    score[22 * W + 22] = -3;      /* the first and the last pixel with a score */
    score[(H - 23) * W + W - 23] = -3;
    const int32_t expected[][2] = {{22, 22}, {80, 100}, {W - 23, H - 23}};
    assert_int_equal(find(&octd, score, expected), 3);
    assert_int_equal(find(&boyer, score, NULL), 9 + 3);
    octd.polarity = OCT_CELLS_DARK;
    assert_int_equal(find(&octd, score, NULL), 1);
    octd.polarity = OCT_CELLS_BRIGHT;
    octd.spacing = 1.1; /* 11 px: the dark one no longer outdoes (80, 130) */
    assert_int_equal(find(&octd, score, NULL), 4);
    octd.spacing = 5; /* reaches beyond the border */
    assert_int_equal(find(&octd, score, NULL), 2);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

TEST(the_median_is_exact)
{
    enum { M = 37, N = 41 };
    static float values[3 * M * N], all[2 * M * N], scratch[2 * M * N + N];
    static uint8_t valid[M * N];
    uint32_t random = 77;
    const struct oct_cells_slopes g = {values, values + N, 3 * N, M, N};
    for (unsigned round = 0; round < 12; round++) {
        size_t n = 0;
        for (unsigned i = 0; i < M * N; i++) {
            const size_t at = i / N * (3 * N) + i % N;
            const double scale = ldexp(1, (int)(round * 9) - 50);
            for (unsigned c = 0; c < 2; c++) {
                const double v = oct_cells_scene_normal(&random) * scale;
                /* Ties in some rounds, denormal numbers in others. */
                values[at + c * N] = (float)(round % 3 == 2 ? floor(v / scale * 2) : v);
            }
            valid[i] = round % 2 == 0 || oct_cells_scene_normal(&random) < 0.5;
            for (unsigned c = 0; c < 2 && valid[i]; c++)
                all[n++] = fabsf(values[at + c * N]);
        }
        qsort(all, n, sizeof(float), ascending);
        const double expected = ((double)all[n / 2 - 1] + (double)all[n / 2]) / 2;
        assert_true(oct_cells_median(&g, round % 2 ? valid : NULL, scratch) == expected);
        memset(valid, 0, sizeof(valid));
        assert_true(oct_cells_median(&g, valid, scratch) == 0);
    }
}

/* What bounds of the median are taken from may lie above it or below all of it. */
TEST(a_sample_that_misleads_costs_no_exactness)
{
    enum { M = 100, N = 200, STEP = 2 * M * N / 8192 + 1 };
    static float values[2 * M * N], all[2 * M * N], scratch[2 * M * N + N];
    const struct oct_cells_slopes g = {values, values + N, 2 * N, M, N};
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < 2 * M * N; i++)
            all[i] = values[i] =
                (float)(i * 7919 % 9973) + (i % STEP == 0 ? k ? 1e6f : 1e-3f : 1e3f);
        qsort(all, 2 * M * N, sizeof(float), ascending);
        assert_true(oct_cells_median(&g, NULL, scratch) ==
                    ((double)all[M * N - 1] + (double)all[M * N]) / 2);
    }
}
