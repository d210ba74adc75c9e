/* Engines that come and go on one worker pool, among analyses. */
#include "kernels/engines.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"
#include "test/rig/workers_rig.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
enum { N_BSCANS = 30 };
#else
enum { N_BSCANS = 120 };
#endif

static const struct oct_scene_recipe recipes[] = {
    {.name = "always whole", .n_samples = 200, .n_lines = 7, .crop_last = 200},
    {.name = "shared out", .n_samples = 300, .n_lines = 41, .crop_last = 300},
};
enum { N_RECIPES = 2, N_DISPLAYS = 3 };
static struct oct_scene scenes[N_RECIPES];

static const struct oct_display displays[N_DISPLAYS] = {
    {.log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 30, .percentile_hi = 99},
    {.range = OCT_RANGE_AUTO},
    {.log = true, .range = OCT_RANGE_MANUAL, .hi = 60},
};

static int make_scenes(void **state)
{
    for (int i = 0; i < N_RECIPES; i++)
        if (!oct_scene_create(&scenes[i], &recipes[i], 7))
            return 1;
    return 0;
}

static int free_scenes(void **state)
{
    for (int i = 0; i < N_RECIPES; i++)
        oct_scene_finish(&scenes[i]);
    return 0;
}

/* An engine kept full by its own thread; every picture is compared with the same one alone. */
struct user {
    const struct oct_scene *scene;
    struct oct_workers *pool;
    unsigned n_bscans, n_engines; /* one after the other */
    bool leaves_early;            /* destroys engines with jobs in flight */
    pthread_t thread;
    uint8_t *alone[N_DISPLAYS];
};

#define MOST_SLOTS 64u

static void use_engine(struct user *u)
{
    const struct oct_engine_options options = {.workers = u->pool};
    static const struct oct_engine_ops *const ops = &oct_engine_cpu;
    struct oct_raw_frame in = oct_rig_input(u->scene);
    struct oct_slot slots[MOST_SLOTS];
    struct oct_rig rig;
    assert_true(oct_rig_open(&rig, ops, &options, u->scene, OCT_SAMPLE_U8));
    const unsigned depth = ops->depth(rig.engine);
    assert_in_range(depth, 1, MOST_SLOTS);
    for (unsigned i = 0; i < depth; i++)
        oct_slot_open(&slots[i], &rig);
    for (unsigned begun = 0, done = 0; done < u->n_bscans; done++) {
        for (; begun < u->n_bscans && begun - done < depth; begun++) {
            struct oct_slot *slot = &slots[begun % depth];
            struct oct_engine_job job = {
                .in = &in, .out = &slot->frame, .display = displays[begun % N_DISPLAYS]};
            oct_slot_refill(slot);
            slot->frame.info = (struct oct_bscan_info){.volume = begun}; /* no smoothing */
            assert_int_equal(ops->submit(rig.engine, &job, 1), OCT_OK);
        }
        if (u->leaves_early && 2 * done > u->n_bscans)
            break;
        const struct oct_slot *slot = &slots[done % depth];
        assert_ptr_equal(oct_rig_collect(&rig), &slot->frame);
        assert_memory_equal(slot->memory, u->alone[done % N_DISPLAYS], slot->bytes);
    }
    oct_rig_close(&rig);
    for (unsigned i = 0; i < depth; i++)
        oct_slot_close(&slots[i]);
}

static void *run_user(void *argument)
{
    struct user *u = argument;
    for (unsigned i = 0; i < u->n_engines; i++)
        use_engine(u);
    return NULL;
}

/* What each display gives with a pool of the engine's own. */
static void open_user(struct user *u, const struct oct_scene *scene, struct oct_workers *pool)
{
    const struct oct_engine_options options = {.n_threads = 1};
    struct oct_rig rig;
    struct oct_slot slot;
    *u = (struct user){.scene = scene, .pool = pool, .n_bscans = N_BSCANS, .n_engines = 1};
    assert_true(oct_rig_open(&rig, &oct_engine_cpu, &options, scene, OCT_SAMPLE_U8));
    oct_slot_open(&slot, &rig);
    for (unsigned d = 0; d < N_DISPLAYS; d++) {
        slot.frame.info.volume = d;
        oct_rig_run(&rig, scene, &displays[d], &slot);
        u->alone[d] = malloc(slot.bytes);
        assert_non_null(u->alone[d]);
        memcpy(u->alone[d], slot.memory, slot.bytes);
    }
    oct_slot_close(&slot);
    oct_rig_close(&rig);
}

static void start_user(struct user *u)
{
    assert_int_equal(pthread_create(&u->thread, NULL, run_user, u), 0);
}

static void close_user(struct user *u)
{
    assert_int_equal(pthread_join(u->thread, NULL), 0);
    for (unsigned d = 0; d < N_DISPLAYS; d++)
        free(u->alone[d]);
}

static void engines_on_one_pool_make_the_pictures_they_make_alone(void **state)
{
    for (unsigned n = 1; n <= 5; n += 2) {
        struct oct_workers *pool = open_pool(n);
        struct user users[2 * N_RECIPES];
        for (unsigned i = 0; i < 2 * N_RECIPES; i++)
            open_user(&users[i], &scenes[i % N_RECIPES], pool);
        for (unsigned i = 0; i < 2 * N_RECIPES; i++)
            start_user(&users[i]);
        for (unsigned i = 0; i < 2 * N_RECIPES; i++)
            close_user(&users[i]);
        oct_workers_destroy(pool);
    }
}

static void engines_and_analyses_come_and_go_while_others_work(void **state)
{
    static struct caller callers[N_CALLERS];
    atomic_bool stop = false;
    struct user users[3];
    struct oct_workers *pool = open_pool(3);
    for (unsigned i = 0; i < 3; i++)
        open_user(&users[i], &scenes[i % N_RECIPES], pool);
    users[1].n_bscans = users[2].n_bscans = 10;
    users[1].n_engines = users[2].n_engines = N_BSCANS / 6;
    users[2].leaves_early = true;
    start_callers(callers, pool, &stop);
    for (unsigned i = 0; i < 3; i++)
        start_user(&users[i]);
    for (unsigned i = 0; i < 3; i++)
        close_user(&users[i]);
    stop = true;
    join_callers(callers);
    oct_workers_destroy(pool);
}

static void an_engine_has_as_many_threads_as_the_pool_it_is_lent(void **state)
{
    struct oct_workers *pool = open_pool(3);
    const struct oct_engine_options options = {.n_threads = 7, .workers = pool};
    struct oct_rig rig;
    assert_true(oct_rig_open(&rig, &oct_engine_cpu, &options, &scenes[0], OCT_SAMPLE_U8));
    assert_non_null(strstr(oct_engine_cpu.describe(rig.engine), "3 threads"));
    oct_rig_close(&rig);
    oct_workers_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_on_one_pool_make_the_pictures_they_make_alone),
        cmocka_unit_test(engines_and_analyses_come_and_go_while_others_work),
        cmocka_unit_test(an_engine_has_as_many_threads_as_the_pool_it_is_lent),
    };
    return cmocka_run_group_tests_name("engines on one pool", tests, make_scenes, free_scenes) > 0;
}
