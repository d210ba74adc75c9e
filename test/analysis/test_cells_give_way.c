/* Cells beside pictures: how often their pieces look whether any wait, which thread computes, and
 * that it makes no difference to what is found. */
#include "analysis/cells/engine.h"
#include "analysis/cells/live.h"
#include "kernels/device/workers.h"
#include "test/rig/pipeline_help.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST_THREADS = 3, MOST_CELLS = 4096, N_TRIES = 5 };
/* Of all work, what no step may take. */
#define SEARCH_SHARE (1 / 35.0)
#define SNAKE_SHARE (1 / 12.0)

/* ---- looks ---- */

/* A source of pictures that has none: it notes when workers ask. */
struct looks {
    struct oct_work_source source; /* first */
    double last_s[MOST_THREADS];   /* of each worker, by its own clock; below 0: it has not asked */
    double all_s, longest_s;       /* between two looks of a worker; by the pool's lock */
    struct oct_workers *pool;
};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool look(struct oct_work_source *source, unsigned worker)
{
    struct looks *l = (struct looks *)source;
    const double now_s = cpu_s(), step_s = now_s - l->last_s[worker];
    if (l->last_s[worker] >= 0) {
        l->all_s += step_s;
        l->longest_s = fmax(l->longest_s, step_s);
    }
    l->last_s[worker] = now_s;
    return false;
}

static void do_nothing(struct oct_work_source *source, unsigned worker)
{
    (void)source;
    (void)worker;
}

static const struct oct_work_ops ops = {.take = look, .run = do_nothing};

static void begin_looks(struct oct_workers *pool, struct looks *looks)
{
    *looks = (struct looks){.source = {.ops = &ops, .rank = OCT_WORK_PICTURES}, .pool = pool};
    for (unsigned i = 0; i < MOST_THREADS; i++)
        looks->last_s[i] = -1;
    oct_workers_add(pool, &looks->source);
}

/* The longest step as a share of all since the last call. */
static double take_share(struct looks *looks)
{
    pthread_mutex_lock(oct_workers_lock(looks->pool));
    const double share = looks->all_s > 0 ? looks->longest_s / looks->all_s : 1;
    looks->all_s = looks->longest_s = 0;
    pthread_mutex_unlock(oct_workers_lock(looks->pool));
    return share;
}

static struct oct_workers *open_pool(unsigned n_threads)
{
    struct oct_workers *pool;
    struct oct_error err = {.text = ""};
    if (oct_workers_create(&pool, n_threads, &err))
        fail_msg("%s", err.text);
    return pool;
}

/* ---- a wide picture ---- */

enum { WIDE = 1400, HIGH = 90 };

/* Disks of a radius of 10 px on noise; one in eight pixels of some rows is masked, or none. */
static void draw(struct oct_picture *p, bool is_masked)
{
    struct oct_error err = {.text = ""};
    struct dice dice = {5};
    if (oct_picture_init(p, HIGH, WIDE, is_masked, &err))
        fail_msg("%s", err.text);
    for (uint32_t y = 0; y < HIGH; y++)
        for (uint32_t x = 0; x < WIDE; x++) {
            const double far = hypot(x % 70 - 35.0, y - 45.0);
            p->pixels[y * WIDE + x] =
                (float)(80 + dice_below(&dice, 16) + floor(60 / (1 + exp(far - 10))));
            if (is_masked)
                p->valid[y * WIDE + x] = y > 4 || x % 8 != 0;
        }
}

struct found {
    struct oct_cell cells[MOST_CELLS];
    unsigned n;
    struct oct_cell_end end;
};

/* The largest share of a step in what `calls` computes, the best of some tries: other programs only
 * make steps longer. */
static double longest_share(struct oct_cells_engine *engine, const struct oct_picture *picture,
                            struct looks *looks, const struct oct_cell_start *start,
                            struct found *found)
{
    struct oct_error err = {.text = ""};
    double best = 1;
    for (unsigned i = 0; i < N_TRIES; i++) {
        enum oct_err e = OCT_OK;
        if (start)
            e = oct_cells_cpu_engine.look(engine, picture, found->cells, 0, &found->n, &err);
        take_share(looks);
        if (!e && start)
            e = oct_cells_cpu_engine.follow(engine, start, 1, &found->end, &err);
        else if (!e)
            e = oct_cells_cpu_engine.look(engine, picture, found->cells, MOST_CELLS, &found->n,
                                          &err);
        if (e)
            fail_msg("%s", err.text);
        best = fmin(best, take_share(looks));
    }
    return best;
}

static struct oct_cells_engine *open_engine(struct oct_workers *pool, double radius)
{
    struct oct_cells_engine_setup setup = {
        .height = HIGH, .width = WIDE, .workers = pool, .gpus = ""};
    struct oct_cells_engine *engine;
    struct oct_error err = {.text = ""};
    oct_cells_params_octd(&setup.params, radius);
    setup.params.stop = 1e-9; /* snakes take all the steps that they may */
    if (oct_cells_cpu_engine.create(&engine, &setup, &err))
        fail_msg("%s", err.text);
    return engine;
}

static void a_search_gives_way_all_along(void **state)
{
    static struct found found;
    (void)state;
    struct oct_workers *pool = open_pool(1);
    struct oct_cells_engine *engine = open_engine(pool, 10);
    struct looks looks;
    begin_looks(pool, &looks);
    for (int is_masked = 0; is_masked < 2; is_masked++) {
        struct oct_picture picture;
        draw(&picture, is_masked);
        const double share = longest_share(engine, &picture, &looks, NULL, &found);
        print_message("%s: the longest step is a %.0fth\n", is_masked ? "masked" : "whole",
                      1 / share);
        assert_true(found.n >= 10);
        assert_true(share < SEARCH_SHARE);
        oct_picture_finish(&picture);
    }
    oct_workers_remove(pool, &looks.source);
    oct_cells_cpu_engine.destroy(engine);
    oct_workers_destroy(pool);
}

/* One cell is one piece. */
static void a_snake_gives_way_all_along(void **state)
{
    static struct found found;
    struct oct_cell_start start = {.x = 311, .y = 43, .vx = 1};
    (void)state;
    struct oct_workers *pool = open_pool(1);
    struct oct_cells_engine *engine = open_engine(pool, 20);
    struct oct_picture picture;
    struct looks looks;
    draw(&picture, false);
    begin_looks(pool, &looks);
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        start.radii[i] = 18;
    const double share = longest_share(engine, &picture, &looks, &start, &found);
    print_message("%u sweeps, %u steps: the longest is a %.0fth\n", found.end.n_field,
                  found.end.n_snake, 1 / share);
    assert_true(found.end.defined && found.end.n_field > 50 && found.end.n_snake == 1000);
    assert_true(share < SNAKE_SHARE);
    oct_picture_finish(&picture);
    oct_workers_remove(pool, &looks.source);
    oct_cells_cpu_engine.destroy(engine);
    oct_workers_destroy(pool);
}

/* ---- live ---- */

enum { LINES = 240, DEPTH = 300, BSCANS = 48, N_BSCANS = 6 };

static const struct oct_cells_settings usual = {
    .enabled = true,
    .source = OCT_CELLS_OF_BSCAN,
    .radius_px = 8,
    .threshold = 1.8,
    .smooth = 0.2,
    .floor = 1,
    .detect_every = 2,
    .memory = 3,
    .min_frames = 1,
    .cpu = true,
    .enface = {.projection = OCT_PROJECTION_MEAN, .slab_first = 0.4, .slab_last = 0.6},
};

/* Disks that move to and fro on noise; some A-lines never came. */
static void draw_bscan(uint8_t *pixels, unsigned n, bool misses)
{
    struct dice dice = {n + 1};
    for (uint32_t j = 0; j < LINES; j++)
        for (uint32_t d = 0; d < DEPTH; d++) {
            const double far = hypot((j + 2 * n) % 80 - 40.0, d % 75 - 37.0);
            const double v = 80 + dice_below(&dice, 20) + 90 / (1 + exp(2 * (far - 8)));
            pixels[(size_t)j * DEPTH + d] = misses && j / 7 == 9 ? 0 : (uint8_t)v;
        }
}

struct live {
    uint8_t *tables; /* [N_BSCANS][bytes] */
    size_t bytes;
    double caller_s; /* of the pushing thread's own clock */
    unsigned n_rows;
};

/* B-scans of pixels three times as wide as deep: they are resampled. */
static void run_live(struct live *live, struct oct_workers *pool)
{
    static uint8_t pixels[LINES * DEPTH];
    const struct oct_image_form input = {.name = "bscan",
                                         .quantity = OCT_QUANTITY_INTENSITY_DB,
                                         .type = OCT_SAMPLE_U8,
                                         .rank = 2,
                                         .dims = {LINES, DEPTH},
                                         .spacing_um = {3, 2},
                                         .axes = {"line", "depth"}};
    const struct oct_analysis_setup setup = {.input = &input,
                                             .n_bscans = BSCANS,
                                             .spacing = {3, 2, 3},
                                             .line_rate_hz = 70000,
                                             .live = true,
                                             .settings = &usual,
                                             .workers = pool};
    struct oct_analysis *analysis;
    struct oct_image_form form;
    struct oct_error err = {.text = ""};
    if (oct_cells_analysis_cpu.create(&analysis, &setup, &form, &err))
        fail_msg("%s", err.text);
    *live = (struct live){.bytes = oct_image_form_bytes(&form)};
    live->tables = calloc(N_BSCANS, live->bytes);
    assert_non_null(live->tables);
    for (unsigned n = 0; n < N_BSCANS; n++) {
        struct oct_image_frame bscan = {.form = &input, .pixels = pixels, .hi = 60};
        bscan.info.number = bscan.info.id = bscan.info.bscan = n;
        bscan.info.missing_lines = n % 3 == 1 ? 7 : 0;
        bscan.info.time_ns = 1000000000 + n * UINT64_C(4000000);
        struct oct_image_frame result = {.form = &form, .pixels = live->tables + n * live->bytes};
        memcpy(result.dims, form.dims, sizeof(form.dims));
        draw_bscan(pixels, n, bscan.info.missing_lines > 0);
        const double begin_s = cpu_s();
        enum oct_err e = oct_cells_analysis_cpu.run.push(analysis, &bscan, &err);
        live->caller_s += cpu_s() - begin_s;
        if (!e)
            e = oct_cells_analysis_cpu.run.take(analysis, &result, &err);
        if (e)
            fail_msg("%s", err.text);
        live->n_rows += result.dims[0];
    }
    oct_cells_analysis_cpu.run.destroy(analysis);
}

static void the_workers_compute_and_find_the_same(void **state)
{
    struct live alone;
    (void)state;
    run_live(&alone, NULL);
    assert_true(alone.n_rows > 5 * N_BSCANS);
    for (unsigned n = 1; n <= MOST_THREADS; n++) {
        struct oct_workers *pool = open_pool(n);
        struct live beside;
        struct looks looks;
        begin_looks(pool, &looks);
        run_live(&beside, pool);
        oct_workers_remove(pool, &looks.source);
        print_message("%u workers: %.1f ms, the caller %.2f ms\n", n, looks.all_s * 1e3,
                      beside.caller_s * 1e3);
        assert_true(beside.caller_s < looks.all_s / 4);
        assert_memory_equal(beside.tables, alone.tables, N_BSCANS * alone.bytes);
        free(beside.tables);
        oct_workers_destroy(pool);
    }
    free(alone.tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_gives_way_all_along),
        cmocka_unit_test(a_snake_gives_way_all_along),
        cmocka_unit_test(the_workers_compute_and_find_the_same),
    };
    return cmocka_run_group_tests_name("cells give way", tests, NULL, NULL) > 0;
}
