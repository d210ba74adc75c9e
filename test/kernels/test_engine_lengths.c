/* The CPU engine with B-scans of every length: it shares them out in different ways, and nothing
 * of that may show. What each way computes is the oracle's business (test_engine_cpu.c). */
#include "kernels/engines.h"
#include "kernels/recon/stages.h"
#include "test/rig/engine_rig.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 200, D = 60, N_JOBS = 70, N_INPUTS = 7, MOST_IN_FLIGHT = 128 };

/* 1 line; whole at any time; the longest of those; whole or in pieces; in pieces; the last piece
 * of one line. */
static const uint32_t lengths[] = {1, 2, 9, 16, 17, 60, 256, 257, 301};
enum { N_LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

struct result {
    uint8_t *pixels;
    double lo, hi;
};

struct bench {
    struct oct_scene scene; /* the calibration alone */
    struct oct_raw_frame input[N_INPUTS];
    struct oct_rig rig;
    unsigned depth;
    struct oct_slot slots[MOST_IN_FLIGHT];
    struct oct_raw_frame in[MOST_IN_FLIGHT];
    atomic_ullong n_released; /* two threads: B-scans whose slot may be used again */
};

/* Lines that are missing make some B-scans quick: those behind overtake slow ones. */
static void make_inputs(struct bench *b, uint32_t n_lines)
{
    uint64_t random = n_lines;
    for (unsigned i = 0; i < N_INPUTS; i++) {
        struct oct_raw_frame *in = &b->input[i];
        *in = (struct oct_raw_frame){.spectra = calloc((size_t)n_lines * N, sizeof(uint16_t)),
                                     .line_valid = malloc(n_lines)};
        assert_true(in->spectra && in->line_valid);
        for (uint32_t j = 0; j < n_lines; j++) {
            in->line_valid[j] = i == 3 ? 0 : i == 4 ? j == n_lines / 2 : i == 5 ? j % 3 != 1 : 1;
            for (uint32_t k = 0; in->line_valid[j] && k < N; k++)
                in->spectra[(size_t)j * N + k] =
                    (uint16_t)(oct_random_uniform(&random) * (100 << i));
        }
    }
}

static void open_bench(struct bench *b, uint32_t n_lines)
{
    const struct oct_scene_recipe recipe = {.name = "lengths",
                                            .n_samples = N,
                                            .n_lines = 2,
                                            .crop_last = D,
                                            .dispersion = OCT_DISPERSION_COEFFICIENTS};
    memset(b, 0, sizeof(*b));
    assert_true(oct_scene_create(&b->scene, &recipe, 1));
    b->scene.recipe.n_lines = n_lines;
    if (n_lines == 1)
        b->scene.recipe.dc = OCT_DC_NONE; /* one line is its own mean */
    make_inputs(b, n_lines);
}

static void close_bench(struct bench *b)
{
    for (unsigned i = 0; i < N_INPUTS; i++) {
        free(b->input[i].spectra);
        free(b->input[i].line_valid);
    }
    oct_scene_finish(&b->scene);
}

static bool start(struct bench *b, const struct oct_engine_options *options,
                  enum oct_sample_type type)
{
    if (!oct_rig_open(&b->rig, &oct_engine_cpu, options, &b->scene, type))
        return false;
    b->depth = oct_engine_cpu.depth(b->rig.engine);
    assert_in_range(b->depth, 1, MOST_IN_FLIGHT);
    for (unsigned i = 0; i < b->depth; i++)
        oct_slot_open(&b->slots[i], &b->rig);
    return true;
}

static void stop(struct bench *b)
{
    oct_rig_close(&b->rig);
    for (unsigned i = 0; i < b->depth; i++)
        oct_slot_close(&b->slots[i]);
}

/* Mostly percentiles, which remember what came before; now and then something else between. */
static struct oct_display display_of(uint64_t id)
{
    if (id % 8 == 5)
        return (struct oct_display){.range = OCT_RANGE_AUTO};
    if (id % 8 == 6)
        return (struct oct_display){.log = true, .range = OCT_RANGE_MANUAL, .lo = 5, .hi = 65};
    return (struct oct_display){.log = id % 2 == 0,
                                .range = OCT_RANGE_PERCENTILE,
                                .percentile_lo = 20,
                                .percentile_hi = 99,
                                .smoothing_bscans = 3};
}

static struct oct_bscan_info info_of(uint64_t id)
{
    return (struct oct_bscan_info){.id = id, .acquisition = id >= 50, .volume = id / 13};
}

static enum oct_err submit(struct bench *b, uint64_t id)
{
    unsigned at = (unsigned)(id % b->depth);
    b->in[at] = b->input[id % N_INPUTS];
    b->in[at].info = info_of(id);
    struct oct_engine_job job = {
        .in = &b->in[at], .out = &b->slots[at].frame, .display = display_of(id)};
    return oct_engine_cpu.submit(b->rig.engine, &job, 1);
}

static void prepare(struct bench *b, uint64_t id)
{
    struct oct_slot *slot = &b->slots[id % b->depth];
    oct_slot_refill(slot);
    slot->frame.info = info_of(id);
}

static void keep(struct result *r, const struct oct_slot *slot)
{
    *r = (struct result){malloc(slot->bytes), slot->frame.lo, slot->frame.hi};
    assert_non_null(r->pixels);
    memcpy(r->pixels, slot->memory, slot->bytes);
}

static void compare(const struct result *r, const struct oct_slot *slot, uint64_t id,
                    const char *how)
{
    bool alike = memcmp(&r->lo, &slot->frame.lo, sizeof(double)) == 0 &&
                 memcmp(&r->hi, &slot->frame.hi, sizeof(double)) == 0 &&
                 memcmp(r->pixels, slot->memory, slot->bytes) == 0;
    if (!alike)
        fail_msg("B-scan %u is another %s: limits %.17g %.17g instead of %.17g %.17g", (unsigned)id,
                 how, slot->frame.lo, slot->frame.hi, r->lo, r->hi);
}

/* All jobs with up to `most` in flight, more or fewer by chance; kept or compared. */
static void run_all(struct bench *b, struct result *results, bool first, unsigned most,
                    const char *how)
{
    uint64_t in = 0, out = 0, random = most;
    while (out < N_JOBS) {
        uint64_t upto = 1 + (uint64_t)(oct_random_uniform(&random) * most);
        for (; in < N_JOBS && in - out < (upto < b->depth ? upto : b->depth); in++) {
            prepare(b, in);
            assert_int_equal(submit(b, in), OCT_OK);
        }
        for (uint64_t n = 1 + (uint64_t)(oct_random_uniform(&random) * (double)(in - out));
             n > 0 && out < in; n--, out++) {
            struct oct_slot *slot = &b->slots[out % b->depth];
            assert_ptr_equal(oct_rig_collect(&b->rig), &slot->frame);
            assert_int_equal(slot->frame.info.id, out);
            if (first)
                keep(&results[out], slot);
            else
                compare(&results[out], slot, out, how);
            oct_slot_check(slot);
        }
    }
}

static const struct {
    unsigned n_threads, most;
    const char *how;
} ways[] = {
    {1, 1, "one by one, one thread"},        {3, 1, "one by one, three threads"},
    {1, 999, "many at once, one thread"},    {2, 3, "some at once, two threads"},
    {2, 999, "many at once, two threads"},   {3, 999, "many at once, three threads"},
    {7, 999, "many at once, seven threads"},
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static void run_length(uint32_t n_lines, const char *simd, enum oct_sample_type type)
{
    struct result results[N_JOBS] = {{NULL, 0, 0}};
    struct bench b;
    open_bench(&b, n_lines);
    for (unsigned w = 0; w < N_WAYS; w++) {
        const struct oct_engine_options options = {.n_threads = ways[w].n_threads, .simd = simd};
        if (!start(&b, &options, type))
            break;
        run_all(&b, results, w == 0, ways[w].most, ways[w].how);
        stop(&b);
    }
    for (unsigned i = 0; i < N_JOBS; i++)
        free(results[i].pixels);
    close_bench(&b);
}

static void every_length_gives_the_same_bytes_whoever_does_it(void **state)
{
    for (unsigned i = 0; i < N_LENGTHS; i++)
        run_length(lengths[i], "auto", OCT_SAMPLE_U8);
}

static void so_does_it_in_floats_and_with_every_instruction_set(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    for (unsigned i = 0; i < 3; i++) {
        run_length(9, sets[i], OCT_SAMPLE_F32);
        run_length(60, sets[i], OCT_SAMPLE_F32);
        run_length(60, sets[i], OCT_SAMPLE_U8);
    }
    run_length(257, "auto", OCT_SAMPLE_F32);
}

static void short_bscans_fly_in_numbers_and_long_ones_do_not(void **state)
{
    static const struct {
        uint32_t n_lines;
        unsigned n_threads, least, most;
    } wanted[] = {
        {1, 2, 32, 64},  {10, 2, 24, 64}, {60, 2, 6, 16}, {240, 2, 4, 4},
        {300, 16, 4, 4}, {60, 64, 16, 40}}; /* histograms of 64 KiB: not more than 64 MiB of them */
    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const struct oct_engine_options options = {.n_threads = wanted[i].n_threads,
                                                   .simd = "auto"};
        struct bench b;
        open_bench(&b, wanted[i].n_lines);
        assert_true(start(&b, &options, OCT_SAMPLE_U8));
        assert_in_range(b.depth, wanted[i].least, wanted[i].most);
        for (unsigned id = 0; id < b.depth; id++)
            assert_int_equal(submit(&b, id), OCT_OK);
        const struct oct_engine_job more = {
            .in = &b.input[0], .out = &b.slots[0].frame, .display = display_of(0)};
        assert_int_equal(oct_engine_cpu.submit(b.rig.engine, &more, 1), OCT_E_AGAIN);
        for (unsigned id = 0; id < b.depth; id++)
            assert_ptr_equal(oct_rig_collect(&b.rig), &b.slots[id].frame);
        stop(&b);
        close_bench(&b);
    }
}

static void an_engine_full_of_short_bscans_can_be_destroyed(void **state)
{
    for (unsigned round = 0; round < 60; round++) {
        const struct oct_engine_options options = {.n_threads = 1 + round % 3, .simd = "auto"};
        struct bench b;
        open_bench(&b, lengths[round % N_LENGTHS]);
        assert_true(start(&b, &options, round % 2 ? OCT_SAMPLE_U8 : OCT_SAMPLE_F32));
        for (unsigned id = 0; id < b.depth; id++)
            assert_int_equal(submit(&b, id), OCT_OK);
        for (unsigned id = 0; id < round % 4; id++)
            assert_ptr_equal(oct_rig_collect(&b.rig), &b.slots[id].frame);
        stop(&b); /* frees what the jobs were working on */
        close_bench(&b);
    }
}

enum { N_MANY = 1500 };

static void *submit_many(void *argument)
{
    struct bench *b = argument;
    for (uint64_t id = 0; id < N_MANY;) {
        bool is_free = id < atomic_load(&b->n_released) + b->depth;
        enum oct_err e = is_free ? submit(b, id) : OCT_E_AGAIN;
        if (e != OCT_OK && e != OCT_E_AGAIN)
            return b;
        id += e == OCT_OK;
        /* Pauses in which all workers fall asleep. */
        if (e == OCT_E_AGAIN || id % 16 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

static void no_bscan_is_left_lying_while_workers_sleep(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        const struct oct_engine_options options = {.n_threads = 1 + i, .simd = "auto"};
        struct bench b;
        pthread_t thread;
        void *failed;
        open_bench(&b, lengths[1 + i]);
        assert_true(start(&b, &options, OCT_SAMPLE_U8));
        assert_int_equal(pthread_create(&thread, NULL, submit_many, &b), 0);
        for (uint64_t id = 0; id < N_MANY; id++) {
            assert_ptr_equal(oct_rig_collect(&b.rig), &b.slots[id % b.depth].frame);
            atomic_store(&b.n_released, id + 1);
        }
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        stop(&b);
        close_bench(&b);
    }
}

/* ---- the DC line of a B-scan ---- */

enum { N_SUMS = 259 };

static void check_mean(const struct oct_stages *stages, const uint32_t *sums, uint32_t n_lines)
{
    static _Alignas(64) float whole[N_SUMS + 1], rest[N_SUMS + 1];
    whole[N_SUMS] = rest[N_SUMS] = 7;
    stages->mean(whole, rest, sums, n_lines, N_SUMS);
    for (unsigned i = 0; i < N_SUMS; i++) {
        double value = n_lines ? (double)sums[i] / n_lines : 0;
        float right[2] = {(float)(int64_t)value, (float)(value - (double)(int64_t)value)};
        if (memcmp(&whole[i], &right[0], sizeof(float)) ||
            memcmp(&rest[i], &right[1], sizeof(float)))
            fail_msg("%s: %u / %u is not %g and %g", stages->name, sums[i], n_lines,
                     (double)whole[i], (double)rest[i]);
    }
    assert_true(whole[N_SUMS] == 7 && rest[N_SUMS] == 7);
}

static void the_mean_is_the_same_bits_with_every_instruction_set(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    static const uint32_t n_lines[] = {0, 1, 2, 3, 7, 10, 60, 239, 240, 4096, 65535, 65536};
    static _Alignas(64) uint32_t sums[N_SUMS];
    uint64_t random = 5;
    for (unsigned s = 0; s < 3; s++) {
        const struct oct_stages *stages = oct_stages_select(sets[s]);
        for (unsigned k = 0; stages && k < sizeof(n_lines) / sizeof(n_lines[0]); k++) {
            uint32_t most = 65535 * n_lines[k]; /* 2^32 - 65536 for the largest */
            for (unsigned i = 0; i < N_SUMS; i++)
                sums[i] = (uint32_t)(oct_random_uniform(&random) * most);
            sums[0] = 0;
            sums[1] = most;
            sums[2] = n_lines[k] * 4095; /* a constant column */
            check_mean(stages, sums, n_lines[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_gives_the_same_bytes_whoever_does_it),
        cmocka_unit_test(so_does_it_in_floats_and_with_every_instruction_set),
        cmocka_unit_test(short_bscans_fly_in_numbers_and_long_ones_do_not),
        cmocka_unit_test(an_engine_full_of_short_bscans_can_be_destroyed),
        cmocka_unit_test(no_bscan_is_left_lying_while_workers_sleep),
        cmocka_unit_test(the_mean_is_the_same_bits_with_every_instruction_set),
    };
    return cmocka_run_group_tests_name("B-scans of every length", tests, NULL, NULL);
}
