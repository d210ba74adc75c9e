/* The chain for one pair of A-lines, with each instruction set: what a line becomes must not depend
 * on the line that travels with it. The oracle cannot see that: beside a bright line it grants a
 * dark one the bright one's rounding noise. */
#include "kernels/recon/line.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

enum { N = 832, D = 1024, N_SETS = 3 };
static const char *const sets[N_SETS] = {"plain", "avx2", "avx512"};

struct bench {
    struct oct_scene scene;
    struct oct_plan *plan;
    uint16_t bright[N], dark[N];
};

static const enum oct_interpolation ways[] = {OCT_INTERPOLATION_LINEAR, OCT_INTERPOLATION_NUFFT};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static void open_bench(struct bench *b, enum oct_interpolation interpolation)
{
    const struct oct_scene_recipe recipe = {.name = "pair",
                                            .n_samples = N,
                                            .n_lines = 1,
                                            .crop_last = D,
                                            .dc = OCT_DC_NONE,
                                            .interpolation = interpolation};
    struct oct_error err;
    assert_true(oct_scene_create(&b->scene, &recipe, 1));
    assert_int_equal(oct_scene_plan(&b->scene, OCT_SAMPLE_F32, &b->plan, &err), OCT_OK);
    for (int i = 0; i < N; i++) { /* 30000 counts and 4: 77 dB apart */
        b->bright[i] = (uint16_t)(30000 + 30000 * sin(0.31 * i));
        b->dark[i] = (uint16_t)(4 + 4 * sin(0.83 * i));
    }
}

static void close_bench(struct bench *b)
{
    oct_plan_destroy(b->plan);
    oct_scene_finish(&b->scene);
}

static void reconstruct(const struct bench *b, const char *simd, const uint16_t *first,
                        const uint16_t *second, float *value[2])
{
    struct oct_line_chain chain;
    struct oct_line_scratch scratch;
    struct oct_error err;
    const struct oct_line_pair pair = {
        .line = {first, second}, .value = {value[0], value[1]}, .log = true};

    assert_int_equal(oct_line_chain_init(&chain, b->plan, oct_stages_select(simd), NULL, &err),
                     OCT_OK);
    assert_int_equal(oct_line_scratch_init(&scratch, &chain, &err), OCT_OK);
    oct_line_reconstruct(&chain, &scratch, &pair);
    oct_line_scratch_finish(&scratch);
    oct_line_chain_finish(&chain);
}

static void check_alone(const struct bench *b, const char *set)
{
    static float alone[2][D], beside[2][D], unused[D];
    reconstruct(b, set, b->bright, NULL, (float *[2]){alone[0], unused});
    reconstruct(b, set, b->dark, NULL, (float *[2]){alone[1], unused});
    for (int turned = 0; turned < 2; turned++) {
        const uint16_t *first = turned ? b->dark : b->bright;
        const uint16_t *second = turned ? b->bright : b->dark;
        reconstruct(b, set, first, second, (float *[2]){beside[turned], beside[!turned]});
        assert_memory_equal(beside[0], alone[0], sizeof(alone[0]));
        assert_memory_equal(beside[1], alone[1], sizeof(alone[1]));
    }
}

static void a_dark_line_comes_out_as_if_alone(void **state)
{
    struct bench b;

    for (int way = 0; way < N_WAYS; way++) {
        open_bench(&b, ways[way]);
        for (int i = 0; i < N_SETS; i++)
            if (oct_stages_select(sets[i]))
                check_alone(&b, sets[i]);
        close_bench(&b);
    }
}

static void check_nothing(const struct bench *b, const struct oct_stages *stages)
{
    static float value[2][D], whole[N], rest[N];
    struct oct_line_chain chain;
    struct oct_line_scratch scratch;
    struct oct_error err;
    const struct oct_line_pair pair = {.line = {b->bright, b->bright},
                                       .value = {value[0], value[1]},
                                       .whole = whole,
                                       .rest = rest,
                                       .log = true};
    for (int i = 0; i < N; i++)
        whole[i] = (float)b->bright[i];
    memset(value, 0, sizeof(value));
    assert_int_equal(oct_line_chain_init(&chain, b->plan, stages, NULL, &err), OCT_OK);
    assert_int_equal(oct_line_scratch_init(&scratch, &chain, &err), OCT_OK);
    oct_line_reconstruct(&chain, &scratch, &pair);
    for (int d = 0; d < D; d++)
        assert_true(fabsf(value[0][d] + 120) < 1e-4f && fabsf(value[1][d] + 120) < 1e-4f);
    oct_line_scratch_finish(&scratch);
    oct_line_chain_finish(&chain);
}

/* A camera's test pattern after dc=bscan. */
static void lines_of_nothing_come_out_at_the_floor(void **state)
{
    struct bench b;

    for (int way = 0; way < N_WAYS; way++) {
        open_bench(&b, ways[way]);
        for (int i = 0; i < N_SETS; i++)
            if (oct_stages_select(sets[i]))
                check_nothing(&b, oct_stages_select(sets[i]));
        close_bench(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_dark_line_comes_out_as_if_alone),
                                       cmocka_unit_test(lines_of_nothing_come_out_at_the_floor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
