#include "test/rig/flow_suite.h"

#include "analysis/flow/engine.h"
#include "kernels/device/cuda_device.h"
#include "pipeline/flow/frame.h"
#include "test/rig/flow_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_D 1e-4

static unsigned patience_ms, other_gpu; /* of the suite that runs */

/* ---- a group on both engines ---- */

struct group {
    struct oct_flow_engine_setup setup;
    struct oct_flow_optics optics;
    float *values; /* [R K][M][D][2] */
    uint64_t lost; /* bit i: B-scan i */
    float *pinned; /* the same; NULL: B-scans come from the host */
    unsigned gpu;  /* whose memory that is */
};

static void init_group(struct group *g, uint32_t n_lines, uint32_t depth, unsigned n_repeats,
                       unsigned n_places)
{
    *g = (struct group){.setup = {.place = {.n_lines = n_lines,
                                            .depth = depth,
                                            .n_repeats = n_repeats,
                                            .sigma_lines = 1,
                                            .sigma_depth = 3,
                                            .max_bulk = 0.3,
                                            .projection = 0.35,
                                            .projection_px = 8},
                                  .n_places = n_places,
                                  .deadline_ms = patience_ms}};
    assert_int_equal(oct_flow_optics_init(&g->optics, NULL, NULL, 1.36, false, NULL), OCT_OK);
}

static size_t n_values(const struct group *g)
{
    return (size_t)g->setup.place.n_lines * g->setup.place.depth;
}

static struct oct_flow_engine *open_engine(const struct oct_flow_engine_ops *ops, struct group *g)
{
    struct oct_flow_engine *engine;
    struct oct_error err = {.text = ""};
    g->setup.place.optics = &g->optics;
    if (ops->create(&engine, &g->setup, &err))
        fail_msg("%s", err.text);
    return engine;
}

static enum oct_err put_all(const struct oct_flow_engine_ops *ops, struct oct_flow_engine *engine,
                            const struct group *g)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < g->setup.place.n_repeats * g->setup.n_places && !e; i++) {
        float *at = g->values + 2 * i * n_values(g);
        float *pinned = g->pinned ? g->pinned + 2 * i * n_values(g) : NULL;
        struct oct_image_frame frame = {
            .complex_values = pinned ? NULL : at, .complex_device = pinned, .complex_gpu = g->gpu};
        if (i >= 64 || !(g->lost >> i & 1))
            e = ops->put(engine, i, &frame, NULL);
    }
    return e;
}

static void compare_maps(const char *what, const float *got, const float *wanted, size_t n,
                         double most, double most_of)
{
    for (size_t i = 0; i < n; i++) {
        const double a = (double)got[i], b = (double)wanted[i];
        if (isnan(a) != isnan(b) || fabs(a - b) > most + most_of * fabs(b))
            fail_msg("%s of voxel %zu is %g instead of %g", what, i, a, b);
    }
}

static void compare_number(const char *what, double got, double wanted, double most)
{
    if (isnan(got) != isnan(wanted) || fabs(got - wanted) > most)
        fail_msg("%s is %.9g instead of %.9g", what, got, wanted);
}

static void compare_places(const struct group *g, const struct oct_flow_found *got,
                           const struct oct_flow_found *wanted)
{
    for (unsigned r = 0; r < g->setup.place.n_repeats; r++)
        for (unsigned axis = 0; axis < 2; axis++)
            compare_number("a shift", got->shift[r][axis], wanted->shift[r][axis], 1e-4);
    compare_number("n0", got->noise, wanted->noise, 1e-5 * wanted->noise);
    compare_number("b", got->bulk, wanted->bulk, MOST_D);
    compare_number("SNR", got->snr_db, wanted->snr_db, 1e-3);
    compare_number("tissue", got->tissue, wanted->tissue, 1e-3);
    assert_int_equal(got->n_pairs, wanted->n_pairs);
    assert_int_equal(got->moved, wanted->moved);
    assert_int_equal(got->identical, wanted->identical);
    if (!wanted->z)
        return;
    compare_maps("d", got->d, wanted->d, n_values(g), MOST_D, 1e-5); /* far from 0..1: noise */
    compare_maps("intensity", got->intensity, wanted->intensity, n_values(g), 0, 1e-5);
    compare_maps("z", got->z, wanted->z, n_values(g), 2e-3, 1e-3);
    compare_maps("z less what is above", got->projected, wanted->projected, n_values(g), 1e-2,
                 1e-2);
}

/* Both find all places of a group; *all: what the CPU has found. */
static void find_on_both(struct group *g)
{
    const struct oct_flow_engine_ops *cpu = &oct_flow_engine_cpu, *cuda = &oct_flow_engine_cuda;
    struct group of_cpu = *g;
    of_cpu.pinned = NULL;
    struct oct_flow_engine *a = open_engine(cpu, &of_cpu), *b = open_engine(cuda, g);
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(put_all(cpu, a, &of_cpu), OCT_OK);
        assert_int_equal(put_all(cuda, b, g), OCT_OK);
        for (unsigned k = 0; k < g->setup.n_places; k++) {
            struct oct_flow_found wanted, got;
            assert_int_equal(cpu->find(a, k, NULL, &wanted, NULL), OCT_OK);
            assert_int_equal(cuda->find(b, k, NULL, &got, NULL), OCT_OK);
            compare_places(g, &got, &wanted);
        }
        cpu->clear(a);
        cuda->clear(b);
    }
    cpu->destroy(a);
    cuda->destroy(b);
}

static struct oct_flow_scene scene_of(unsigned n_repeats)
{
    return (struct oct_flow_scene){.n_lines = 37,
                                   .depth = 171,
                                   .n_repeats = n_repeats,
                                   .top = 40,
                                   .snr = 20,
                                   .noise = 1,
                                   .lines_shift = 1,
                                   .depth_shift = -2,
                                   .turns = true,
                                   .box = {12, 8, 70, 20},
                                   .tail = 0.7,
                                   .seed = 3 + n_repeats};
}

static void make_group(struct group *g, const struct oct_flow_scene *scene)
{
    init_group(g, scene->n_lines, scene->depth, scene->n_repeats, 1);
    g->values = oct_flow_scene_make(scene);
}

/* Pinned memory, which devices read where it lies. */
static void pin_values(struct group *g)
{
    const size_t bytes =
        2 * sizeof(float) * g->setup.place.n_repeats * g->setup.n_places * n_values(g);
    g->pinned = oct_cuda_pin(bytes);
    assert_non_null(g->pinned);
    memcpy(g->pinned, g->values, bytes);
}

static void close_group(struct group *g)
{
    free(g->values);
    if (g->pinned)
        oct_cuda_unpin(g->pinned);
}

/* ---- what it finds ---- */

static void finds_what_the_cpu_finds(void **state)
{
    (void)state;
    for (unsigned n_repeats = 2; n_repeats <= 8; n_repeats++) {
        const struct oct_flow_scene scene = scene_of(n_repeats);
        struct group g;
        make_group(&g, &scene);
        find_on_both(&g);
        pin_values(&g);
        g.setup.keeps = n_repeats % 2 == 0; /* they are read where they lie */
        g.setup.place.projection = 0;
        find_on_both(&g);
        close_group(&g);
    }
}

static void finds_it_of_any_size_and_window(void **state)
{
    static const struct {
        uint32_t n_lines, depth;
        double sigma[2];
    } of[] = {{16, 16, {0, 0}},   {17, 1100, {0.4, 1}}, {150, 40, {2.2, 7}},
              {260, 130, {1, 3}}, {40, 300, {21, 21}},  {64, 2300, {0, 2}}};
    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        struct oct_flow_scene scene = scene_of(3);
        struct group g;
        scene.n_lines = of[i].n_lines;
        scene.depth = of[i].depth;
        scene.top = scene.depth / 4;
        scene.box[0] = scene.box[2] = 0;
        scene.box[1] = scene.box[3] = 8;
        make_group(&g, &scene);
        g.setup.place.sigma_lines = of[i].sigma[0];
        g.setup.place.sigma_depth = of[i].sigma[1];
        find_on_both(&g);
        close_group(&g);
    }
}

/* Lines that never came, lost repeats, and B-scans without light. */
static void finds_it_with_what_is_missing(void **state)
{
    const struct oct_flow_scene scene = scene_of(5);
    (void)state;
    for (unsigned lost = 0; lost < 32; lost += 3) {
        struct group g;
        make_group(&g, &scene);
        g.lost = lost;
        for (unsigned i = 0; i < 12; i++) {
            const size_t line = (size_t)(i * 7 % 5) * scene.n_lines + i * 11 % scene.n_lines;
            for (size_t d = 0; d < 2 * scene.depth; d++)
                g.values[2 * line * scene.depth + d] = i % 3 ? NAN : 0;
        }
        if (lost % 2)
            memset(g.values + 2 * 2 * n_values(&g), 0, 2 * n_values(&g) * sizeof(float));
        find_on_both(&g);
        close_group(&g);
    }
}

static void knows_repeats_that_are_identical(void **state)
{
    const struct oct_flow_scene scene = scene_of(4);
    struct oct_flow_found found;
    struct group g;
    (void)state;
    make_group(&g, &scene);
    for (unsigned r = 1; r < 4; r++)
        memcpy(g.values + 2 * r * n_values(&g), g.values, 2 * n_values(&g) * sizeof(float));
    find_on_both(&g);
    struct oct_flow_engine *engine = open_engine(&oct_flow_engine_cuda, &g);
    assert_int_equal(put_all(&oct_flow_engine_cuda, engine, &g), OCT_OK);
    assert_int_equal(oct_flow_engine_cuda.find(engine, 0, NULL, &found, NULL), OCT_OK);
    assert_true(found.identical);
    oct_flow_engine_cuda.destroy(engine);
    close_group(&g);
}

/* Places in turn, more than one batch of them; the memory of another GPU. */
static void finds_places_in_turn(void **state)
{
    enum { N_PLACES = 67 };
    struct oct_flow_scene scene = scene_of(2);
    struct group g;
    (void)state;
    scene.n_lines = 18;
    scene.depth = 64;
    scene.top = 10;
    scene.box[0] = 4;
    scene.box[2] = 30;
    make_group(&g, &scene);
    g.setup.n_places = N_PLACES;
    g.lost = UINT64_C(1) << 5;
    g.gpu = other_gpu;
    g.setup.keeps = true; /* and are copied all the same, if they lie elsewhere */
    g.values = realloc(g.values, 2 * N_PLACES * 2 * n_values(&g) * sizeof(float));
    assert_non_null(g.values);
    for (unsigned k = 0; k < N_PLACES; k++) {
        scene.seed = k + 1;
        float *own = oct_flow_scene_make(&scene);
        for (size_t r = 0; r < 2; r++)
            memcpy(g.values + 2 * (r * N_PLACES + k) * n_values(&g), own + 2 * r * n_values(&g),
                   2 * n_values(&g) * sizeof(float));
        free(own);
    }
    pin_values(&g);
    find_on_both(&g);
    close_group(&g);
}

/* The bytes and floats of pictures: where d lies beside min_z, or between two bytes, engines may
 * differ by one. */
static void shows_of_depth(uint32_t depth)
{
    struct oct_flow_scene scene = scene_of(4);
    struct oct_flow_found found;
    struct group g;
    scene.depth = depth;
    make_group(&g, &scene);
    g.setup.shows = true;
    const size_t n = n_values(&g);
    float *values[2] = {malloc(n * sizeof(float)), malloc(n * sizeof(float))};
    uint8_t *bytes[2] = {malloc(n), malloc(n)};
    float rows[2][2][512];
    assert_true(g.setup.place.n_lines <= 512);
    const struct oct_flow_engine_ops *ops[2] = {&oct_flow_engine_cpu, &oct_flow_engine_cuda};
    for (unsigned i = 0; i < 2; i++) {
        struct oct_flow_engine *engine = open_engine(ops[i], &g);
        const struct oct_flow_show f32 = {.min_z = 3,
                                          .first = 9,
                                          .end = g.setup.place.depth - 3,
                                          .values = values[i],
                                          .row = rows[0][i]};
        const struct oct_flow_show u8 = {
            .min_z = 1, .first = 70, .end = 70, .bytes = bytes[i], .row = rows[1][i]};
        assert_int_equal(put_all(ops[i], engine, &g), OCT_OK);
        assert_int_equal(ops[i]->find(engine, 0, &f32, &found, NULL), OCT_OK);
        assert_int_equal(ops[i]->find(engine, 0, &u8, &found, NULL), OCT_OK);
        assert_null(found.z);
        ops[i]->destroy(engine);
    }
    uint32_t n_rows = 0;
    for (uint32_t j = 0; j < g.setup.place.n_lines; j++) {
        assert_int_equal(isnan(rows[0][0][j]), isnan(rows[0][1][j])); /* the line never came */
        n_rows += isnan(rows[0][0][j]) || fabs((double)(rows[0][0][j] - rows[0][1][j])) <
                                              1e-3 * (1 + fabs((double)rows[0][0][j]));
        assert_true(isnan(rows[1][0][j]) && isnan(rows[1][1][j])); /* of no depth */
    }
    assert_int_equal(n_rows, g.setup.place.n_lines);
    size_t n_flow = 0, n_other = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(isnan(values[0][i]), isnan(values[1][i]));
        n_flow += values[0][i] > 0;
        n_other += fabs((double)(values[0][i] - values[1][i])) > MOST_D;
        n_other += abs(bytes[0][i] - bytes[1][i]) > 1;
    }
    assert_true(n_flow > 100 && n_flow < n / 2);
    assert_true(n_other <= 2);
    for (unsigned i = 0; i < 2; i++) {
        free(values[i]);
        free(bytes[i]);
    }
    close_group(&g);
}

/* Values one at a time, four at a time, and eight bytes at a time. */
static void shows_what_the_cpu_shows(void **state)
{
    (void)state;
    for (uint32_t depth = 171; depth <= 176; depth += depth < 172 ? 1 : 4)
        shows_of_depth(depth);
}

/* ---- the suite ---- */

int oct_flow_suite_run(unsigned deadline_ms, unsigned gpu, bool large)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_it_with_what_is_missing),
        cmocka_unit_test(knows_repeats_that_are_identical),
        cmocka_unit_test(finds_places_in_turn),
        cmocka_unit_test(shows_what_the_cpu_shows),
    };
    const struct CMUnitTest more[] = {
        cmocka_unit_test(finds_what_the_cpu_finds),
        cmocka_unit_test(finds_it_of_any_size_and_window),
    };
    patience_ms = deadline_ms;
    other_gpu = gpu;
    const int n_failed = cmocka_run_group_tests_name("flow", tests, NULL, NULL);
    return large ? n_failed + cmocka_run_group_tests_name("flow, all sizes", more, NULL, NULL)
                 : n_failed;
}

/* ---- the independent reference ---- */

void oct_flow_suite_run_truth(unsigned deadline_ms,
                              void *(*truth)(const char *phantom, const char *array, size_t item,
                                             size_t *n))
{
    static const struct {
        const char *name;
        unsigned n_repeats;
    } phantom[] = {{"fixation_r4_10db", 4}, {"fixation_r2_10db", 2}, {"strong_r4_10db", 4}};
    patience_ms = deadline_ms;
    for (size_t i = 0; i < 3; i++) {
        size_t n;
        struct group g;
        init_group(&g, 96, 320, phantom[i].n_repeats, 1);
        g.values = truth(phantom[i].name, "B", sizeof(float), &n);
        if (!g.values)
            skip();
        assert_int_equal(n, 2 * phantom[i].n_repeats * n_values(&g));
        find_on_both(&g);
        close_group(&g);
    }
}
