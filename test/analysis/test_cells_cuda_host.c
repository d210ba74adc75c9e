/* The CUDA engine of cells on the stand-in for CUDA (test/cuda_host/): its numbers, and what
 * becomes of them when the device fails or hangs. */
#include "test/gpu/cells_timing.h"
#include "test/rig/cell_judge.h"
#include "test/rig/cells_oracle.h"
#include "test/rig/cells_suite.h"
#include "test/rig/cuda_faults.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define HEIGHT 60u
#define WIDTH 70u
#define MOST 64
#define STARTS 5
#if defined(__SANITIZE_THREAD__)
#define STRIDE 9u
#else
#define STRIDE 3u
#endif

struct results {
    unsigned n;
    struct oct_cell cells[MOST];
    struct oct_cell_end ends[STARTS];
    float score[HEIGHT * WIDTH];
    uint8_t best[HEIGHT * WIDTH];
    double highest;
};

static struct oct_cells_engine_setup setup;
static struct oct_picture picture;

/* A picture, its snakes and its map, through any table. */
static enum oct_err use(const struct oct_cells_engine_ops *ops, struct oct_cells_engine *engine,
                        struct results *results, struct oct_error *err)
{
    struct oct_cell_start starts[STARTS];
    struct oct_cell_end end;
    enum oct_err e = ops->look(engine, &picture, results->cells, MOST, &results->n, err);
    if (e)
        return e;
    results->highest = ops->highest(engine);
    oct_cells_suite_starts(&setup, results->cells, results->n, starts, STARTS);
    e = ops->follow(engine, starts, STARTS, results->ends, err);
    if (!e)
        e = ops->map(engine, results->score, results->best, err);
    return e ? e : ops->follow(engine, starts, 1, &end, err);
}

static void check_same(const struct results *a, const struct results *b)
{
    oct_cells_suite_compare_cells(a->cells, a->n, b->cells, b->n);
    oct_cells_suite_compare_ends(a->ends, b->ends, STARTS);
    assert_true(fabs(a->highest - b->highest) <= 1e-4);
    for (size_t i = 0; i < (size_t)HEIGHT * WIDTH; i++)
        assert_true(fabsf(a->score[i] - b->score[i]) <= 1e-4f);
}

static void compute_on_cpu(struct results *results)
{
    struct oct_cells_engine *engine;
    must(oct_cells_cpu_engine.create(&engine, &setup, &failure));
    must(use(&oct_cells_cpu_engine, engine, results, &failure));
    oct_cells_cpu_engine.destroy(engine);
    assert_true(results->n > 1 && results->n <= MOST);
}

/* All that does not fit into little shared memory is computed from the device's. */
TEST(with_little_shared_memory)
{
    struct results wanted = {0}, results = {0};
    struct oct_cells_engine *engine;
    compute_on_cpu(&wanted);
    cuda_host_reset(1, MEMORY);
    cuda_host_set_shared_limit((size_t)12 << 10);
    must(oct_cells_cuda_engine.create(&engine, &setup, &failure));
    must(use(&oct_cells_cuda_engine, engine, &results, &failure));
    oct_cells_cuda_engine.destroy(engine);
    check_same(&results, &wanted);
    check_nothing_left();
}

/* Two runs give the same bytes. */
TEST(two_runs_give_the_same_bytes)
{
    struct results runs[2];
    memset(runs, 0, sizeof(runs));
    for (int i = 0; i < 2; i++) {
        struct oct_cells_engine *engine;
        cuda_host_reset(1, MEMORY);
        must(oct_cells_cuda_engine.create(&engine, &setup, &failure));
        must(use(&oct_cells_cuda_engine, engine, &runs[i], &failure));
        oct_cells_cuda_engine.destroy(engine);
    }
    assert_int_equal(memcmp(&runs[0], &runs[1], sizeof(runs[0])), 0);
}

/* Every step takes some time, the whole more than its longest. */
TEST(the_times_of_the_device)
{
    struct oct_cells_engine_setup small = {.height = 30, .width = 30};
    const struct oct_cell_start start = {.x = 15, .y = 15}; /* without radii: soon at its end */
    struct oct_picture scene;
    struct oct_cells_device_times t;
    struct oct_error err = {.text = ""};
    cuda_host_reset(1, MEMORY);
    oct_cells_params_octd(&small.params, 1.5);
    oct_cells_scene(&scene, small.height, small.width, 1.5, OCT_CELLS_SCENE_NOISE, 1);
    must(oct_cells_time_cuda(&small, 0, &scene, &start, 1, &t, &failure));
    assert_true(t.prepare_us > 0 && t.scores_us > 0 && t.peaks_us > 0 && t.snakes_us > 0);
    assert_true(t.frame_us > t.scores_us / 2); /* of a busy machine */
    check_nothing_left();
    cuda_host_remove_driver();
    assert_int_equal(oct_cells_time_cuda(&small, 0, &scene, &start, 1, &t, &err), OCT_E_BACKEND);
    oct_picture_finish(&scene);
}

TEST(a_machine_without_what_it_takes_is_left_to_the_cpu)
{
    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine *engine;
    struct oct_cells_engine_setup other = setup;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    other.gpus = "3";
    assert_int_equal(oct_cells_engine_select(&ops, &engine, "cuda", &other, &err), OCT_E_CONFIG);
    cuda_host_remove_driver();
    assert_int_equal(oct_cells_engine_select(&ops, &engine, "cuda", &setup, &err), OCT_E_BACKEND);
    assert_null(engine);
    assert_int_equal(oct_cells_engine_select(&ops, &engine, "auto", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_cells_cpu_engine);
    ops->destroy(engine);
    cuda_host_reset(1, (size_t)1 << 12); /* too small */
    assert_int_equal(oct_cells_engine_select(&ops, &engine, "cuda", &setup, &err), OCT_E_NO_MEMORY);
    assert_int_equal(oct_cells_engine_select(&ops, &engine, "auto", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_cells_cpu_engine);
    ops->destroy(engine);
    assert_int_equal(oct_cells_engine_select(&ops, &engine, "cpu", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_cells_cpu_engine);
    ops->destroy(engine);
    check_nothing_left();
}

/* ---- faults ---- */

struct course {
    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine *engine;
    struct results wanted;
};

static const char *running(const struct course *c)
{
    return c->ops == &oct_cells_cpu_engine ? "cpu" : c->ops->running(c->engine);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_cells_engine_setup own = setup;
    own.deadline_ms = deadline_ms;
    must(oct_cells_engine_select(&c->ops, &c->engine, "auto", &own, &failure));
    return running(c);
}

static const char *use_course(void *context)
{
    struct course *c = context;
    struct results results = {0};
    must(use(c->ops, c->engine, &results, &failure));
    check_same(&results, &c->wanted);
    return running(c);
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->engine);
}

TEST(whatever_fails_the_cpu_goes_on)
{
    struct course c = {.ops = NULL};
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    compute_on_cpu(&c.wanted);
    oct_cuda_course_run(&course, STRIDE); /* the last operations are of snakes and the map */
}

TEST(a_device_that_hangs_is_given_up_in_time)
{
    struct course c = {.ops = NULL};
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    compute_on_cpu(&c.wanted);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 3);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 20);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_BLOCKS, 5);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_LATE, 2);
}

TEST(a_static_texture_is_no_cell)
{
    struct cell_film_setup film;
    struct oct_cells_film_setup track = {.um = {NAN, NAN}, .backend = "cuda"};
    struct cell_judge judge;
    oct_cells_params_octd(&track.params, 5);
    cell_film_setup_default(&film);
    film.height = 90;
    film.width = 160;
    film.n_frames = 4;
    film.radius = 5;
    film.lane = 22;
    film.distance = 50;
    film.slowest = 1;
    film.fastest = 2;
    film.texture = 0.15;
    film.grain = 5;
    film.seed = 4;
    cell_judge_run(&judge, &film, &track, 0);
    print_message("precision %.3f, recall %.3f\n", judge.score.precision, judge.score.recall);
    assert_true(judge.score.precision >= 0.99 && judge.score.recall >= 0.99);
    cell_judge_finish(&judge);
}

int main(void)
{
    cuda_host_reset(1, MEMORY);
    setup = (struct oct_cells_engine_setup){
        .height = HEIGHT, .width = WIDTH, .deadline_ms = PATIENCE_MS};
    oct_cells_params_octd(&setup.params, 3);
    setup.params.polarity = OCT_CELLS_BOTH;
    oct_cells_scene(&picture, HEIGHT, WIDTH, 3, OCT_CELLS_SCENE_NOISE, 11);
    int n_failed = oct_cells_suite_run(&oct_cells_cuda_engine, PATIENCE_MS);
    n_failed += test_run();
    oct_picture_finish(&picture);
    return n_failed > 0;
}
