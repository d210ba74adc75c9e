/* The CPU engine's detection against the oracle. */
#include "analysis/cells/find.h"
#include "kernels/device/workers.h"
#include "test/rig/cells_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 512

static const struct oct_cells_engine_ops *const cpu = &oct_cells_cpu_engine;

static struct oct_cells_engine *open(const struct oct_cells_params *params, uint32_t height,
                                     uint32_t width, struct oct_workers *workers)
{
    const struct oct_cells_engine_setup setup = {
        .height = height, .width = width, .params = *params, .workers = workers};
    struct oct_cells_engine *engine;
    must(cpu->create(&engine, &setup, &failure));
    return engine;
}

static unsigned look(struct oct_cells_engine *engine, const struct oct_picture *picture,
                     struct oct_cell cells[MOST])
{
    unsigned n;
    must(cpu->look(engine, picture, cells, MOST, &n, &failure));
    assert_true(n <= MOST);
    return n;
}

/* ---- against the oracle ---- */

#define H 210
#define W 290

static void compare_maps(struct oct_cells_engine *engine, const struct oct_cells_oracle *o)
{
    static float score[H * W];
    static uint8_t best[H * W];
    double worst = 0;
    unsigned n_best = 0;
    assert_int_equal(cpu->map(engine, score, best, NULL), OCT_OK);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            const size_t i = (size_t)y * W + x;
            const bool defined =
                x >= o->border && x + o->border < W && y >= o->border && y + o->border < H;
            assert_true(defined || (score[i] == 0 && best[i] == 255));
            if (!defined || fabs(o->score[i]) >= 10)
                continue;
            worst = fmax(worst, fabs((double)score[i] - o->score[i]));
            /* Of circles with equal scores roundings choose. */
            if (fabs(o->score[i]) - o->rival[i] > 2e-4) {
                assert_int_equal(best[i], o->best[i]);
                n_best++;
            }
        }
    assert_true(worst <= 2e-5);
    assert_true(n_best > (H - 2 * o->border) * (W - 2 * o->border) / 2);
}

static bool is_of(const struct oct_cells_params *p, double s)
{
    return p->polarity == OCT_CELLS_BOTH || (s > 0) == (p->polarity == OCT_CELLS_DARK);
}

/* Every clear peak of the oracle is found, and nothing that is clearly none. */
static void compare_peaks(const struct oct_cell *cells, unsigned n,
                          const struct oct_cells_oracle *o, const struct oct_cells_params *p)
{
    unsigned n_clear = 0, found = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t x = (uint32_t)cells[i].peak_x, y = (uint32_t)cells[i].peak_y;
        const double s = o->score[(size_t)y * W + x];
        assert_true(i == 0 ||
                    (uint32_t)cells[i - 1].peak_y * W + (uint32_t)cells[i - 1].peak_x < y * W + x);
        assert_true(is_of(p, s));
        assert_true(fabs(s) > p->threshold - 1e-4);
        assert_true(fabs(s) > oct_cells_oracle_around(o, p, x, y) - 1e-4);
        assert_true(fabs(s - (double)cells[i].score) < 1e-4 * fmax(1, s * s / 10));
    }
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            const double s = o->score[(size_t)y * W + x];
            if (!is_of(p, s) || fabs(s) < p->threshold + 1e-4 ||
                fabs(s) < oct_cells_oracle_around(o, p, x, y) + 1e-4)
                continue;
            n_clear++;
            for (unsigned i = 0; i < n; i++)
                found += cells[i].peak_x == (int32_t)x && cells[i].peak_y == (int32_t)y;
        }
    assert_int_equal(found, n_clear);
    assert_true(n_clear >= 5);
    assert_true(n - n_clear <= 1);
}

TEST(scores_are_those_of_the_definition)
{
    for (enum oct_cells_scene scene = 0; scene < OCT_CELLS_N_SCENES; scene++)
        for (unsigned boyer = 0; boyer < 2; boyer++) {
            struct oct_picture picture;
            struct oct_cells_params params;
            struct oct_cells_oracle oracle;
            struct oct_cell cells[MOST];
            (boyer ? oct_cells_params_boyer : oct_cells_params_octd)(&params, 10);
            if (boyer)
                params.threshold = 1.2;
            oct_cells_scene(&picture, H, W, 10, scene, 3);
            struct oct_cells_engine *engine = open(&params, H, W, NULL);
            oct_cells_oracle_init(&oracle, &picture, &params);
            const unsigned n = look(engine, &picture, cells);
            compare_maps(engine, &oracle);
            compare_peaks(cells, n, &oracle, &params);
            oct_cells_oracle_finish(&oracle);
            cpu->destroy(engine);
            oct_picture_finish(&picture);
        }
}

/* Other radii: the smallest, one whose circles do not step by whole pixels, a large one. */
TEST(all_radii_are_scored)
{
    static const double radii[] = {1.5, 2.5, 4.3, 40};
    for (unsigned i = 0; i < sizeof(radii) / sizeof(radii[0]); i++) {
        struct oct_picture picture;
        struct oct_cells_params params;
        struct oct_cells_oracle oracle;
        struct oct_cell cells[MOST];
        oct_cells_params_octd(&params, radii[i]);
        params.polarity = i % 2 ? OCT_CELLS_BOTH : OCT_CELLS_DARK;
        oct_cells_scene(&picture, H, W, radii[i], OCT_CELLS_SCENE_SLOPE, i);
        struct oct_cells_engine *engine = open(&params, H, W, NULL);
        oct_cells_oracle_init(&oracle, &picture, &params);
        assert_true(look(engine, &picture, cells) >= 1);
        compare_maps(engine, &oracle);
        oct_cells_oracle_finish(&oracle);
        cpu->destroy(engine);
        oct_picture_finish(&picture);
    }
}

/* ---- places ---- */

TEST(a_disk_is_where_it_is)
{
    double worst = 0, worst_radius = 0;
    for (unsigned i = 0; i < 24; i++) {
        struct oct_picture picture;
        struct oct_cells_params params;
        struct oct_cell cells[MOST];
        static const double radii[] = {2.5, 5, 10, 20};
        const double R = radii[i % 4];
        const struct oct_cells_disk disk = {100 + 0.137 * i, 90 + 0.71 * i, R * (0.9 + 0.02 * i),
                                            i % 2 ? 40 : -40};
        oct_cells_params_octd(&params, R);
        params.polarity = i % 2 ? OCT_CELLS_BRIGHT : OCT_CELLS_DARK;
        assert_int_equal(oct_picture_init(&picture, 200, 220, false, NULL), OCT_OK);
        for (size_t p = 0; p < 200 * 220; p++)
            picture.pixels[p] = 90;
        oct_cells_scene_disk(&picture, &disk);
        struct oct_cells_engine *engine = open(&params, 200, 220, NULL);
        assert_int_equal(look(engine, &picture, cells), 1);
        worst = fmax(worst, hypot(cells[0].x - disk.x, cells[0].y - disk.y));
        worst_radius = fmax(worst_radius, fabs(cells[0].radius - disk.radius));
        cpu->destroy(engine);
        oct_picture_finish(&picture);
    }
    assert_true(worst <= 0.03);
    assert_true(worst_radius <= 0.1);
}

/* The place of the top of the parabola through three values of S^2; 0 beside no score. */
static double top(const float *at, size_t step)
{
    const double a = pow((double)*(at - step), 2), b = pow((double)*at, 2);
    const double c = pow((double)at[step], 2);
    return a > 0 && c > 0 ? (a - c) / (2 * a - 4 * b + 2 * c) : 0;
}

/* The pixel of the peak, then its parabolas. */
TEST(simpler_refinements)
{
    static float score[H * W];
    static uint8_t best[H * W];
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell cells[2][MOST];
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_NOISE, 5);
    oct_cells_params_octd(&params, 10);
    for (unsigned i = 0; i < 2; i++) {
        params.refine = i ? OCT_CELLS_REFINE_PEAK : OCT_CELLS_REFINE_NONE;
        struct oct_cells_engine *engine = open(&params, H, W, NULL);
        const unsigned n = look(engine, &picture, cells[i]);
        assert_true(n > 4);
        assert_int_equal(cpu->map(engine, score, best, NULL), OCT_OK);
        for (unsigned j = 0; j < n; j++) {
            const struct oct_cell *cell = &cells[i][j];
            const size_t at = (size_t)cell->peak_y * W + (size_t)cell->peak_x;
            assert_true(cell->radius == 8 + 2 * best[at]);
            assert_true(cell->score == score[at]);
            assert_true(fabs(cell->x - cell->peak_x - (i ? top(score + at, 1) : 0)) < 1e-9);
            assert_true(fabs(cell->y - cell->peak_y - (i ? top(score + at, W) : 0)) < 1e-9);
        }
        cpu->destroy(engine);
    }
    oct_picture_finish(&picture);
}

/* ---- the same numbers ---- */

TEST(threads_change_nothing)
{
    static float score[3][H * W];
    static uint8_t best[3][H * W];
    struct oct_cell cells[3][MOST];
    unsigned n[3];
    struct oct_picture picture;
    struct oct_cells_params params;
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_NOISE, 9);
    oct_cells_params_octd(&params, 10);
    params.polarity = OCT_CELLS_BOTH;
    memset(cells, 0, sizeof(cells));
    for (unsigned i = 0; i < 3; i++) {
        struct oct_workers *workers = NULL;
        if (i > 0)
            assert_int_equal(oct_workers_create(&workers, i == 1 ? 2 : 5, NULL), OCT_OK);
        struct oct_cells_engine *engine = open(&params, H, W, workers);
        n[i] = look(engine, &picture, cells[i]);
        n[i] = look(engine, &picture, cells[i]);
        assert_int_equal(cpu->map(engine, score[i], best[i], NULL), OCT_OK);
        cpu->destroy(engine);
        oct_workers_destroy(workers);
        assert_int_equal(n[i], n[0]);
        assert_memory_equal(cells[i], cells[0], n[0] * sizeof(cells[0][0]));
        assert_memory_equal(score[i], score[0], sizeof(score[0]));
        assert_memory_equal(best[i], best[0], sizeof(best[0]));
    }
    assert_true(n[0] > 5);
    oct_picture_finish(&picture);
}

/* What the CPU chooses and plain C, of the same gradient. */
TEST(instruction_sets_agree)
{
    static const char *const names[] = {"plain", "avx2", "avx512"};
    static float score[3][H * W];
    static uint8_t best[3][H * W];
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cells_prepared prepared;
    static struct oct_cells_gicov gicov;
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_SLOPE, 4);
    oct_cells_params_octd(&params, 10);
    assert_true(oct_cells_prepared_init(&prepared, &params, H, W, NULL));
    oct_cells_prepare(&prepared, &picture);
    const struct oct_cells_slopes *g = &prepared.slopes;
    oct_cells_gicov_init(&gicov, &params, g->row, (size_t)(g->gy - g->gx));
    for (unsigned i = 0; i < 3; i++) {
        const struct oct_cells_scorer *scorer = oct_cells_scorer_select(names[i]);
        const struct oct_cells_part part = {22,          W - 22, 22,       H - 22,
                                            prepared.v0, W,      score[i], best[i]};
        if (!scorer)
            continue;
        scorer->run(&gicov, g->gx, &part);
        for (size_t p = 0; p < H * W; p++)
            assert_true(fabs((double)score[i][p] - (double)score[0][p]) < 2e-5 ||
                        fabsf(score[0][p]) > 10);
    }
    assert_non_null(oct_cells_scorer_select("auto"));
    assert_null(oct_cells_scorer_select("neon"));
    oct_cells_prepared_finish(&prepared);
    oct_picture_finish(&picture);
}

/* Two circles on the same pixels. */
TEST(the_first_of_equal_circles_is_best)
{
    static float score[H * W];
    static uint8_t best[H * W];
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell cells[MOST];
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_NOISE, 5);
    oct_cells_params_octd(&params, 10);
    params.first = 1.0001;
    params.last = 1.00012;
    params.step = 0.00001;
    struct oct_cells_engine *engine = open(&params, H, W, NULL);
    assert_true(look(engine, &picture, cells) > 4);
    assert_int_equal(cpu->map(engine, score, best, NULL), OCT_OK);
    for (unsigned i = 0; i < H * W; i++)
        assert_true(best[i] == 0 || (best[i] == 255 && score[i] == 0));
    cpu->destroy(engine);
    oct_picture_finish(&picture);
}

/* g = 1 at every sample of one circle: no variance. */
TEST(a_score_without_variance_is_a_number)
{
    enum { SIDE = 101, PLANE = 144 };
    static float values[SIDE * 3 * PLANE];
    static const char *const names[] = {"plain", "avx2", "avx512"};
    struct oct_cells_params params;
    static struct oct_cells_gicov gicov;
    float score;
    uint8_t best;
    const struct oct_cells_part part = {50, 51, 50, 51, 0, 1, &score, &best};
    oct_cells_params_octd(&params, 40);
    params.first = params.last = 1;
    oct_cells_gicov_init(&gicov, &params, 3 * PLANE, PLANE);
    for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
        const double t = 2 * 3.14159265358979323846 * i / OCT_CELLS_SAMPLES;
        const long x = 50 + lround(40 * cos(t)), y = 50 + lround(40 * sin(t));
        float *gx = values + y * 3 * PLANE + x;
        gx[0] = (float)cos(t);
        gx[PLANE] = (float)sin(t);
        gx[2 * PLANE] = 1;
    }
    for (unsigned i = 0; i < 3; i++) {
        const struct oct_cells_scorer *scorer = oct_cells_scorer_select(names[i]);
        if (!scorer)
            continue;
        scorer->run(&gicov, values, &part);
        assert_true(score > 1e5f && score < 1.01e6f);
        assert_int_equal(best, 0);
    }
}
