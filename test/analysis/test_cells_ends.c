/* What the CPU engine says of the ends of snakes: scores, refined cells, fields. */
#include "analysis/cells/engine.h"
#include "kernels/device/workers.h"
#include "test/rig/cells_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define H 200
#define W 240
#define MOST 64

static const struct oct_cells_engine_ops *const cpu = &oct_cells_cpu_engine;

static struct oct_cells_engine *open(const struct oct_cells_params *params,
                                     struct oct_workers *workers)
{
    const struct oct_cells_engine_setup setup = {
        .height = H, .width = W, .params = *params, .keeps_fields = true, .workers = workers};
    struct oct_cells_engine *engine;
    must(cpu->create(&engine, &setup, &failure));
    return engine;
}

/* A snake beside every cell, and one at the corner of the picture. */
static unsigned start_at(const struct oct_cell *cells, unsigned n, struct oct_cell_start *starts)
{
    for (unsigned i = 0; i <= n; i++) {
        starts[i] = (struct oct_cell_start){
            .x = i < n ? cells[i].x + 2 : 5.5,
            .y = i < n ? cells[i].y - 0.75 : 4.25,
            .vx = -1,
            .is_dark = i < n && cells[i].score > 0,
        };
        for (unsigned k = 0; k < OCT_CELLS_SNAXELS; k++)
            starts[i].radii[k] = 8;
    }
    return n + 1;
}

/* The score of the polarity with the largest |S| within 1 px of the end, from the map. */
static float score_of(const float *score, const struct oct_cell_end *end, bool is_dark)
{
    float best = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const float s = score[y * W + x];
            if (pow(x - end->x, 2) + pow(y - end->y, 2) <= 1 && (s > 0) == is_dark &&
                fabsf(s) > fabsf(best))
                best = s;
        }
    return best;
}

TEST(ends_are_scored_and_refined)
{
    static float score[H * W];
    static uint8_t number[H * W];
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell cells[MOST];
    struct oct_cell_start starts[MOST + 1];
    struct oct_cell_end ends[MOST + 1], again[MOST + 1];
    unsigned n, n_near = 0;
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_SLOPE, 21);
    oct_cells_params_octd(&params, 10);
    params.polarity = OCT_CELLS_BOTH;
    struct oct_cells_engine *engine = open(&params, NULL);
    memset(ends, 0, sizeof(ends));
    memset(again, 0, sizeof(again));
    assert_int_equal(cpu->follow(engine, starts, 0, ends, NULL), OCT_E_STATE);
    assert_int_equal(cpu->look(engine, &picture, cells, MOST, &n, NULL), OCT_OK);
    assert_true(n > 4);
    const unsigned n_starts = start_at(cells, n, starts);
    assert_int_equal(cpu->follow(engine, starts, n_starts, ends, NULL), OCT_OK);
    assert_int_equal(cpu->map(engine, score, number, NULL), OCT_OK);
    for (unsigned i = 0; i < n_starts; i++) {
        assert_true(ends[i].defined);
        assert_true(ends[i].cell.score == score_of(score, &ends[i], starts[i].is_dark));
        if (ends[i].cell.score != 0)
            assert_true(score[ends[i].cell.peak_y * W + ends[i].cell.peak_x] == ends[i].cell.score);
        /* The edge that detection found, from the other side. */
        n_near += i < n && hypot(ends[i].cell.x - cells[i].x, ends[i].cell.y - cells[i].y) < 0.25 &&
                  fabs(ends[i].cell.radius - cells[i].radius) < 0.25;
    }
    assert_true(ends[n].cell.score == 0); /* where S is not defined */
    assert_true(n_near >= n / 2);
    /* A picture that is not searched has the same scores. */
    assert_int_equal(cpu->look(engine, &picture, NULL, 0, &n, NULL), OCT_OK);
    assert_int_equal(cpu->follow(engine, starts, n_starts, again, NULL), OCT_OK);
    assert_memory_equal(again, ends, n_starts * sizeof(ends[0]));
    cpu->destroy(engine);

    struct oct_workers *workers;
    assert_int_equal(oct_workers_create(&workers, 2, NULL), OCT_OK);
    engine = open(&params, workers);
    assert_int_equal(cpu->look(engine, &picture, NULL, 0, &n, NULL), OCT_OK);
    assert_int_equal(cpu->follow(engine, starts, n_starts, again, NULL), OCT_OK);
    assert_memory_equal(again, ends, n_starts * sizeof(ends[0]));
    cpu->destroy(engine);
    oct_workers_destroy(workers);
    oct_picture_finish(&picture);
}

/* Without refinement at the edge a cell is its snake. */
TEST(unrefined_ends_are_their_snakes)
{
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell cells[MOST];
    struct oct_cell_start starts[MOST + 1];
    struct oct_cell_end ends[MOST + 1];
    unsigned n;
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_SLOPE, 21);
    oct_cells_params_octd(&params, 10);
    params.refine = OCT_CELLS_REFINE_PEAK;
    struct oct_cells_engine *engine = open(&params, NULL);
    assert_int_equal(cpu->look(engine, &picture, cells, MOST, &n, NULL), OCT_OK);
    const unsigned n_starts = start_at(cells, n, starts);
    assert_int_equal(cpu->follow(engine, starts, n_starts, ends, NULL), OCT_OK);
    for (unsigned i = 0; i < n_starts; i++) {
        double radius = 0;
        for (unsigned k = 0; k < OCT_CELLS_SNAXELS; k++)
            radius += ends[i].radii[k];
        assert_true(ends[i].cell.x == ends[i].x && ends[i].cell.y == ends[i].y);
        assert_true(fabs(ends[i].cell.radius - radius / OCT_CELLS_SNAXELS) < 1e-12);
    }
    cpu->destroy(engine);
    oct_picture_finish(&picture);
}

TEST(fields_are_kept)
{
    struct oct_picture picture;
    struct oct_cells_params params;
    struct oct_cell cells[MOST];
    struct oct_cell_start starts[MOST + 1];
    struct oct_cell_end ends[MOST + 1];
    struct oct_cell_window window, expected;
    unsigned n;
    oct_cells_scene(&picture, H, W, 10, OCT_CELLS_SCENE_NOISE, 8);
    oct_cells_params_octd(&params, 10);
    float *field = calloc(oct_cell_window_most(&params), sizeof(*field));
    struct oct_cells_engine *engine = open(&params, NULL);
    assert_int_equal(cpu->look(engine, &picture, cells, MOST, &n, NULL), OCT_OK);
    assert_int_equal(cpu->field(engine, 0, &window, field, NULL), OCT_E_STATE);
    const unsigned n_starts = start_at(cells, n, starts);
    assert_int_equal(cpu->follow(engine, starts, n_starts, ends, NULL), OCT_OK);
    for (unsigned i = 0; i < n_starts; i++) {
        float least = INFINITY, most = -INFINITY;
        assert_int_equal(cpu->field(engine, i, &window, field, NULL), OCT_OK);
        assert_true(oct_cell_window_find(&params, H, W, starts[i].x, starts[i].y, &expected));
        assert_memory_equal(&window, &expected, sizeof(window));
        const int n_px = (window.u2 - window.u1 + 1) * (window.v2 - window.v1 + 1);
        for (int p = 0; p < n_px; p++) {
            least = fminf(least, field[p]);
            most = fmaxf(most, field[p]);
        }
        assert_true(least >= 0 && most <= 1 && most > least + 0.1f);
    }
    assert_int_equal(cpu->field(engine, n_starts, &window, field, NULL), OCT_E_STATE);
    cpu->destroy(engine);
    free(field);
    oct_picture_finish(&picture);
}

/* Near masked pixels there is no score. */
TEST(masked_ends_have_no_score)
{
    struct oct_picture scene, picture;
    struct oct_cells_params params;
    struct oct_cell cells[MOST];
    struct oct_cell_start starts[MOST + 1];
    struct oct_cell_end ends[MOST + 1];
    unsigned n, n_none = 0, n_some = 0;
    oct_cells_scene(&scene, H, W, 10, OCT_CELLS_SCENE_SLOPE, 21);
    oct_cells_params_octd(&params, 10);
    struct oct_cells_engine *engine = open(&params, NULL);
    assert_int_equal(cpu->look(engine, &scene, cells, MOST, &n, NULL), OCT_OK);
    const unsigned n_starts = start_at(cells, n, starts);
    assert_int_equal(oct_picture_init(&picture, H, W, true, NULL), OCT_OK);
    memcpy(picture.pixels, scene.pixels, sizeof(float) * H * W);
    for (unsigned i = 0; i < H * W; i++)
        picture.valid[i] = i % W > 60;
    assert_int_equal(cpu->look(engine, &picture, NULL, 0, &n, NULL), OCT_OK);
    assert_int_equal(cpu->follow(engine, starts, n_starts, ends, NULL), OCT_OK);
    for (unsigned i = 0; i + 1 < n_starts; i++) {
        assert_true(isfinite(ends[i].cell.x) && isfinite(ends[i].cell.score));
        if (ends[i].cell.x <= 80) {
            assert_true(ends[i].cell.score == 0);
            n_none++;
        }
        n_some += ends[i].cell.score != 0;
    }
    assert_true(n_none > 0 && n_some > 0);
    cpu->destroy(engine);
    oct_picture_finish(&scene);
    oct_picture_finish(&picture);
}
