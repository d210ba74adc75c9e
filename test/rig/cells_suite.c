#include "test/rig/cells_suite.h"

#include "test/rig/cells_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 97, WIDTH = 131, N = HEIGHT * WIDTH, MOST = 4096, STARTS = 14 };

struct suite {
    const struct oct_cells_engine_ops *ops;
    unsigned deadline_ms;
};

/* One picture through both engines. */
struct pair {
    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine_setup setup;
    struct oct_cells_engine *engine, *cpu;
    struct oct_cell cells[MOST], wanted[MOST];
    unsigned n, n_wanted;
};

static void make_engine(const struct oct_cells_engine_ops *ops, struct oct_cells_engine **engine,
                        const struct oct_cells_engine_setup *setup)
{
    must(ops->create(engine, setup, &failure));
}

static struct pair *open(const struct suite *suite, const struct oct_cells_params *params,
                         uint32_t height, uint32_t width)
{
    struct pair *p = calloc(1, sizeof(*p));
    assert_non_null(p);
    p->ops = suite->ops;
    p->setup = (struct oct_cells_engine_setup){.height = height,
                                               .width = width,
                                               .params = *params,
                                               .keeps_fields = true,
                                               .deadline_ms = suite->deadline_ms};
    make_engine(p->ops, &p->engine, &p->setup);
    make_engine(&oct_cells_cpu_engine, &p->cpu, &p->setup);
    return p;
}

static void close(struct pair *p)
{
    p->ops->destroy(p->engine);
    oct_cells_cpu_engine.destroy(p->cpu);
    free(p);
}

/* ---- comparing ---- */

static void compare_cell(const struct oct_cell *a, const struct oct_cell *b, unsigned i)
{
    const double scale = fmax(pow(fabs((double)b->score) / 10, 3), 1);
    if (a->peak_x != b->peak_x || a->peak_y != b->peak_y || !(fabs(a->x - b->x) <= 0.01) ||
        !(fabs(a->y - b->y) <= 0.01) || !(fabs(a->radius - b->radius) <= 0.01) ||
        !(fabs((double)a->score - (double)b->score) <= 1e-4 * scale))
        fail_msg("cell %u: peak %d %d, %.4f %.4f, radius %.4f, score %.6f; not peak %d %d, %.4f "
                 "%.4f, radius %.4f, score %.6f",
                 i, a->peak_x, a->peak_y, a->x, a->y, a->radius, (double)a->score, b->peak_x,
                 b->peak_y, b->x, b->y, b->radius, (double)b->score);
}

void oct_cells_suite_compare_cells(const struct oct_cell *cells, unsigned n,
                                   const struct oct_cell *wanted, unsigned n_wanted)
{
    assert_int_equal(n, n_wanted);
    for (unsigned i = 0; i < n && i < MOST; i++)
        compare_cell(&cells[i], &wanted[i], i);
}

static unsigned apart(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

void oct_cells_suite_compare_ends(const struct oct_cell_end *ends,
                                  const struct oct_cell_end *wanted, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct oct_cell_end *a = &ends[i], *b = &wanted[i];
        assert_int_equal(a->defined, b->defined);
        assert_int_equal(a->left, b->left);
        if (!(fabs(a->x - b->x) <= 0.01) || !(fabs(a->y - b->y) <= 0.01) ||
            apart(a->n_field, b->n_field) > 1 || apart(a->n_snake, b->n_snake) > 1)
            fail_msg("snake %u: %.5f %.5f after %u and %u, not %.5f %.5f after %u and %u", i, a->x,
                     a->y, a->n_field, a->n_snake, b->x, b->y, b->n_field, b->n_snake);
        for (unsigned k = 0; k < OCT_CELLS_SNAXELS; k++)
            assert_true(fabs(a->radii[k] - b->radii[k]) <= 0.01);
        compare_cell(&a->cell, &b->cell, i);
    }
}

static void compare_maps(struct pair *p)
{
    const size_t n = (size_t)p->setup.height * p->setup.width;
    float *score = calloc(2 * n, sizeof(*score));
    uint8_t *best = calloc(2 * n, 1);
    unsigned n_best = 0;
    assert_true(score && best);
    assert_int_equal(p->ops->map(p->engine, score, best, NULL), OCT_OK);
    assert_int_equal(oct_cells_cpu_engine.map(p->cpu, score + n, best + n, NULL), OCT_OK);
    for (size_t i = 0; i < n; i++) {
        const double own = (double)score[i], wanted = (double)score[n + i];
        if (!(fabs(own - wanted) <= 1e-4 * fmax(pow(fabs(wanted) / 10, 3), 1)))
            fail_msg("score at %zu: %.7g, not %.7g", i, own, wanted);
        assert_int_equal(best[i] == 255, best[n + i] == 255);
        n_best += best[i] != best[n + i];
    }
    assert_true(n_best <= n / 1000); /* of circles with equal scores roundings choose */
    free(score);
    free(best);
}

/* ---- both engines ---- */

static void look(struct pair *p, const struct oct_picture *picture, unsigned most)
{
    struct oct_error err = {.text = ""};
    memset(p->cells, 0, sizeof(p->cells));
    must(p->ops->look(p->engine, picture, p->cells, most, &p->n, &failure));
    must(oct_cells_cpu_engine.look(p->cpu, picture, p->wanted, most, &p->n_wanted, &failure));
    const unsigned n = p->n < most ? p->n : most;
    assert_int_equal(p->n, p->n_wanted);
    oct_cells_suite_compare_cells(p->cells, n, p->wanted, n);
    const double highest = oct_cells_cpu_engine.highest(p->cpu);
    assert_true(fabs(p->ops->highest(p->engine) - highest) <= 1e-4 * fmax(pow(highest / 10, 3), 1));
    if (most > 0)
        compare_maps(p);
    else
        assert_int_equal(p->ops->map(p->engine, NULL, NULL, &err), OCT_E_STATE);
}

static void compare_fields(struct pair *p, unsigned n)
{
    const size_t most = oct_cell_window_most(&p->setup.params);
    float *field = calloc(2 * most, sizeof(*field));
    assert_non_null(field);
    for (unsigned i = 0; i < n; i++) {
        struct oct_cell_window own, wanted;
        assert_int_equal(p->ops->field(p->engine, i, &own, field, NULL), OCT_OK);
        assert_int_equal(oct_cells_cpu_engine.field(p->cpu, i, &wanted, field + most, NULL),
                         OCT_OK);
        assert_int_equal(memcmp(&own, &wanted, sizeof(own)), 0);
        const size_t pixels = (size_t)(own.u2 - own.u1 + 1) * (size_t)(own.v2 - own.v1 + 1);
        for (size_t k = 0; k < pixels; k++)
            if (!(fabsf(field[k] - field[most + k]) <= 2e-6f))
                fail_msg("field %u, %zu: %.8f, not %.8f", i, k, (double)field[k],
                         (double)field[most + k]);
    }
    assert_int_equal(p->ops->field(p->engine, n, &(struct oct_cell_window){0}, field, NULL),
                     OCT_E_STATE);
    free(field);
}

void oct_cells_suite_starts(const struct oct_cells_engine_setup *setup,
                            const struct oct_cell *cells, unsigned n_cells,
                            struct oct_cell_start *starts, unsigned n)
{
    static const double flows[10][2] = {{1, 1},  {1, 0},    {0, -1},  {-1, 0}, {0, 0},
                                        {-1, 1}, {2, -0.5}, {-3, -1}, {0, 1},  {8e-10, 8e-10}};
    const double radius = setup->params.radius;
    for (unsigned i = 0; i < n; i++) {
        struct oct_cell_start *s = &starts[i];
        *s = (struct oct_cell_start){.vx = flows[i % 10][0], .vy = flows[i % 10][1]};
        s->x = n_cells ? cells[i % n_cells].x + 0.3 * (i % 5) : 20.25;
        s->y = n_cells ? cells[i % n_cells].y - 0.2 * (i % 3) : 30.5;
        s->is_dark = n_cells && cells[i % n_cells].score > 0;
        s->mean_dy = 0.1 * (i % 4);
        for (unsigned k = 0; k < OCT_CELLS_SNAXELS; k++)
            s->radii[k] = radius * (0.9 + 0.01 * k);
    }
    starts[n - 1].x = -100; /* no window */
    starts[n - 2].x = 0.5;  /* half a window, a snake that leaves it */
    starts[n - 3].x = setup->width - radius;
    starts[n - 3].y = setup->height - radius;
}

static void follow(struct pair *p)
{
    struct oct_cell_start starts[STARTS];
    struct oct_cell_end ends[STARTS], wanted[STARTS];
    oct_cells_suite_starts(&p->setup, p->wanted, p->n_wanted, starts, STARTS);
    must(p->ops->follow(p->engine, starts, STARTS, ends, &failure));
    must(oct_cells_cpu_engine.follow(p->cpu, starts, STARTS, wanted, &failure));
    oct_cells_suite_compare_ends(ends, wanted, STARTS);
    assert_true(!ends[STARTS - 1].defined && ends[STARTS - 2].left && ends[0].defined);
    compare_fields(p, STARTS);
}

/* ---- tests ---- */

static void scenes(void **state)
{
    const struct suite *suite = *state;
    for (int boyer = 0; boyer < 2; boyer++) {
        struct oct_cells_params params;
        if (boyer)
            oct_cells_params_boyer(&params, 5);
        else
            oct_cells_params_octd(&params, 5);
        params.polarity = OCT_CELLS_BOTH;
        struct pair *p = open(suite, &params, HEIGHT, WIDTH);
        for (int scene = 0; scene < (int)OCT_CELLS_N_SCENES; scene++) {
            struct oct_picture picture;
            oct_cells_scene(&picture, HEIGHT, WIDTH, 5, (enum oct_cells_scene)scene, 7);
            look(p, &picture, MOST);
            assert_true(p->n > 3);
            if (scene != OCT_CELLS_SCENE_FLAT) /* without noise directions are those of roundings */
                follow(p);
            oct_picture_finish(&picture);
        }
        close(p);
    }
}

/* Snakes are followed in pictures that were not searched. */
static void follow_without_a_map(const struct suite *suite, double radius)
{
    struct oct_cells_params params;
    struct oct_picture picture;
    oct_cells_params_octd(&params, radius);
    oct_cells_scene(&picture, HEIGHT, WIDTH, radius, OCT_CELLS_SCENE_NOISE, 3);
    struct pair *p = open(suite, &params, HEIGHT, WIDTH);
    look(p, &picture, MOST);
    struct oct_cell *found = malloc(sizeof(p->wanted));
    const unsigned n = p->n_wanted;
    memcpy(found, p->wanted, sizeof(p->wanted));
    look(p, &picture, 0);
    memcpy(p->wanted, found, sizeof(p->wanted));
    p->n_wanted = n;
    follow(p);
    free(found);
    oct_picture_finish(&picture);
    close(p);
}

/* Windows of up to 561 and of up to 2145 px. */
static void without_a_map(void **state)
{
    follow_without_a_map(*state, 4);
    follow_without_a_map(*state, 8);
}

static void masks(void **state)
{
    struct oct_cells_params params;
    struct oct_picture picture;
    oct_cells_params_octd(&params, 4);
    oct_cells_scene(&picture, HEIGHT, WIDTH, 4, OCT_CELLS_SCENE_NOISE, 5);
    struct pair *p = open(*state, &params, HEIGHT, WIDTH);
    look(p, &picture, MOST);
    const unsigned n_whole = p->n;
    picture.valid = malloc(N);
    memset(picture.valid, 1, N);
    for (size_t i = 0; i < N; i++) {
        const size_t x = i % WIDTH, y = i / WIDTH;
        picture.valid[i] = !(y >= 40 && y < 43) && x != 100;
        if (x > 20 && x < 23 && y < 60)
            picture.pixels[i] = x == 21 ? NAN : INFINITY;
    }
    look(p, &picture, MOST);
    assert_true(p->n > 0 && p->n < n_whole);
    follow(p);
    memset(picture.valid, 0, N);
    look(p, &picture, MOST);
    assert_int_equal(p->n, 0);
    free(picture.valid);
    picture.valid = NULL;
    for (size_t i = 0; i < N; i++)
        picture.pixels[i] = 7;
    look(p, &picture, MOST);
    assert_int_equal(p->n, 0);
    oct_picture_finish(&picture);
    close(p);
}

/* More peaks than come at once; all ways to refine. */
static void many_peaks(void **state)
{
    struct oct_cells_params params;
    struct oct_picture picture;
    assert_int_equal(oct_picture_init(&picture, HEIGHT, WIDTH, false, NULL), OCT_OK);
    uint32_t random = 9;
    for (size_t i = 0; i < N; i++)
        picture.pixels[i] = (float)oct_cells_scene_normal(&random);
    oct_cells_params_octd(&params, 1.5);
    params.polarity = OCT_CELLS_BOTH;
    params.threshold = 0.05;
    params.spacing = 0.7;
    for (int refine = 0; refine < (int)OCT_CELLS_N_REFINES; refine++) {
        params.refine = (enum oct_cells_refine)refine;
        params.floor = refine == OCT_CELLS_REFINE_PEAK ? 0 : 1;
        params.smooth = refine == OCT_CELLS_REFINE_NONE ? 0 : 0.3;
        struct pair *p = open(*state, &params, HEIGHT, WIDTH);
        look(p, &picture, MOST);
        assert_true(p->n > 600 && p->n < MOST);
        look(p, &picture, 13);
        assert_true(p->n > 600);
        close(p);
    }
    oct_picture_finish(&picture);
}

/* Rows of one value each have scores of one value: all are peaks, or every third. */
static void ties(void **state)
{
    struct oct_cells_params params;
    struct oct_picture picture;
    unsigned n_peaks = 0;
    assert_int_equal(oct_picture_init(&picture, HEIGHT, WIDTH, false, NULL), OCT_OK);
    uint32_t random = 9;
    for (size_t i = 0; i < N; i++)
        picture.pixels[i] =
            i % WIDTH ? picture.pixels[i - 1] : (float)oct_cells_scene_normal(&random);
    oct_cells_params_octd(&params, 4);
    params.polarity = OCT_CELLS_BOTH;
    params.threshold = 0.05;
    params.refine = OCT_CELLS_REFINE_NONE;
    for (int merges = 0; merges < 2; merges++) {
        params.merges = merges;
        struct pair *p = open(*state, &params, HEIGHT, WIDTH);
        look(p, &picture, MOST);
        assert_true(merges ? p->n > 0 && p->n < n_peaks / 2 : p->n > 100);
        n_peaks = p->n;
        close(p);
    }
    oct_picture_finish(&picture);
}

/* Windows and circles beyond what shared memory holds. */
static void large_cells(void **state)
{
    enum { SIDE = 230 };
    struct oct_cells_params params;
    struct oct_picture picture;
    oct_cells_params_octd(&params, 50);
    params.first = 1;
    params.last = 1.2;
    assert_int_equal(oct_picture_init(&picture, SIDE, SIDE, false, NULL), OCT_OK);
    uint32_t random = 9;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        picture.pixels[i] = (float)(20 + 3 * oct_cells_scene_normal(&random));
    const struct oct_cells_disk disk = {.x = 113.3, .y = 118.8, .radius = 52, .height = 30};
    oct_cells_scene_disk(&picture, &disk);
    struct pair *p = open(*state, &params, SIDE, SIDE);
    look(p, &picture, MOST);
    assert_true(p->n > 0);
    struct oct_cell_start start = {.x = 110, .y = 120, .vx = 1};
    struct oct_cell_end end, wanted;
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        start.radii[i] = 50;
    assert_int_equal(p->ops->follow(p->engine, &start, 1, &end, NULL), OCT_OK);
    assert_int_equal(oct_cells_cpu_engine.follow(p->cpu, &start, 1, &wanted, NULL), OCT_OK);
    oct_cells_suite_compare_ends(&end, &wanted, 1);
    compare_fields(p, 1);
    oct_picture_finish(&picture);
    close(p);
}

static void misuse(void **state)
{
    const struct suite *suite = *state;
    const struct oct_cells_engine_ops *ops = suite->ops;
    struct oct_cells_engine_setup setup = {.height = HEIGHT, .width = WIDTH};
    struct oct_cell_start start = {.x = 50, .y = 50};
    struct oct_cells_engine *engine;
    struct oct_picture picture;
    struct oct_cell_end end;
    struct oct_cell cell;
    struct oct_error err;
    unsigned n = 7;
    oct_cells_params_octd(&setup.params, 4);
    setup.deadline_ms = suite->deadline_ms;
    make_engine(ops, &engine, &setup);
    assert_int_equal(ops->follow(engine, &start, 1, &end, &err), OCT_E_STATE);
    assert_int_equal(ops->map(engine, NULL, NULL, &err), OCT_E_STATE);
    assert_int_equal(ops->field(engine, 0, NULL, NULL, &err), OCT_E_STATE);
    assert_int_equal(oct_picture_init(&picture, HEIGHT, WIDTH - 1, false, &err), OCT_OK);
    assert_int_equal(ops->look(engine, &picture, &cell, 1, &n, &err), OCT_E_ARG);
    assert_int_equal(n, 0);
    oct_picture_finish(&picture);
    ops->destroy(engine);
    ops->destroy(NULL);
    setup.params.threshold = 0;
    assert_int_equal(ops->create(&engine, &setup, &err), OCT_E_ARG);
    assert_null(engine);
}

int oct_cells_suite_run(const struct oct_cells_engine_ops *ops, unsigned deadline_ms)
{
    struct suite suite = {ops, deadline_ms};
    const struct CMUnitTest tests[] = {
        {"cells and snakes of scenes, both profiles", scenes, NULL, NULL, &suite},
        {"snakes in a picture that was not searched", without_a_map, NULL, NULL, &suite},
        {"masks, and pictures without contrast", masks, NULL, NULL, &suite},
        {"more peaks than come at once", many_peaks, NULL, NULL, &suite},
        {"peaks of one height", ties, NULL, NULL, &suite},
        {"cells too large for shared memory", large_cells, NULL, NULL, &suite},
        {"calls out of order", misuse, NULL, NULL, &suite},
    };
    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
