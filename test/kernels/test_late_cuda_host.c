/* A GPU that comes back late, played by the stand-in for CUDA (test/cuda_host/): the engine was
 * given up, its jobs handed back, its session gone and another one in its place. AddressSanitizer
 * sees what the late threads touch. And one that is slow or stands still with its whole machine,
 * which must not be given up. */
#define _DEFAULT_SOURCE /* mincore */
#include "kernels/engines.h"
#include "test/cuda_host/cuda_host.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include "kernels/device/cuda_memory.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/ring.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY ((size_t)1 << 30)
#define N_JOBS 2u
#define MINUTE_US 60000000u
#if defined(__SANITIZE_THREAD__)
#define STRIDE 4u /* kernels take seconds then */
#define DEADLINE_MS 4000
#else
#define STRIDE 1u
#define DEADLINE_MS 150
#endif

static const struct oct_scene_recipe recipe = {
    .name = "late", .n_samples = 120, .n_lines = 3, .crop_last = 90};
static struct oct_scene scene;

static int make_scene(void **state)
{
    return oct_scene_create(&scene, &recipe, 5) ? 0 : 1;
}

static int free_scene(void **state)
{
    oct_scene_finish(&scene);
    return 0;
}

/* ---- frames whose parts can be given back one by one ---- */

struct lent {
    struct oct_raw_frame *in[N_JOBS];
    struct oct_image_frame *out[N_JOBS];
    size_t bytes; /* of block: all values, then all spectra, then all pictures */
    unsigned char *block;
};

static void lend(struct lent *lent, const struct oct_plan *plan)
{
    const size_t spectra = oct_geometry_spectra_bytes(&plan->geometry);
    const size_t picture = oct_geometry_image_bytes(&plan->geometry);
    const size_t values = picture * sizeof(float);
    lent->bytes = N_JOBS * (values + spectra + picture);
    lent->block = oct_cuda_memory.alloc(lent->bytes, NULL);
    assert_non_null(lent->block);
    for (unsigned i = 0; i < N_JOBS; i++) {
        lent->in[i] = calloc(1, sizeof(*lent->in[i]));
        lent->out[i] = calloc(1, sizeof(*lent->out[i]));
        lent->in[i]->line_valid = calloc(recipe.n_lines, 1);
        lent->in[i]->line_valid[0] = 1; /* lines are missing, so that the mask is looked at */
        lent->in[i]->spectra = (uint16_t *)(void *)(lent->block + N_JOBS * values + i * spectra);
        lent->out[i]->pixels = lent->block + N_JOBS * (values + spectra) + i * picture;
        lent->out[i]->values = (float *)(void *)(lent->block + i * values);
        memcpy(lent->in[i]->spectra, scene.spectra, spectra);
    }
}

static void free_headers(struct lent *lent)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        free(lent->in[i]->line_valid);
        free(lent->in[i]);
        free(lent->out[i]);
    }
}

/* ---- sessions ---- */

static void open_engine(struct oct_rig *rig, const char *kernels, unsigned deadline_ms)
{
    const struct oct_engine_options options = {
        .cuda = kernels, .max_batch = N_JOBS, .n_streams = 2, .deadline_ms = deadline_ms};
    assert_true(oct_rig_open(rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
}

/* All jobs as one batch; returns how many of them are lost. */
static unsigned run_batch(struct oct_rig *rig, const struct lent *lent)
{
    const struct oct_display display = {
        .log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 20, .percentile_hi = 99};
    struct oct_engine_job jobs[N_JOBS];
    unsigned n_lost = 0;
    for (unsigned i = 0; i < N_JOBS; i++)
        jobs[i] =
            (struct oct_engine_job){.in = lent->in[i], .out = lent->out[i], .display = display};
    assert_int_equal(rig->ops->submit(rig->engine, jobs, N_JOBS), OCT_OK);
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct oct_image_frame *done = NULL;
        assert_int_equal(rig->ops->collect(rig->engine, MINUTE_US, &done), OCT_OK);
        assert_ptr_equal(done, lent->out[i]);
        n_lost += done->status != OCT_OK;
    }
    return n_lost;
}

static void wait_until_nothing_left(void)
{
    for (int i = 0; i < 1000 && (cuda_host_bytes_in_use() || cuda_host_n_objects()); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(cuda_host_bytes_in_use(), 0);
    assert_int_equal(cuda_host_n_objects(), 0);
}

/* The n-th call of a batch is late. Returns whether the engine was given up for it. */
static bool run_late(const char *kernels, unsigned n)
{
    struct oct_rig rig;
    struct lent lent;
    cuda_host_reset(1, MEMORY);
    open_engine(&rig, kernels, DEADLINE_MS);
    lend(&lent, rig.plan);
    cuda_host_set_fault(CUDA_HOST_CALL_LATE, n);
    const bool given_up = run_batch(&rig, &lent) > 0;
    free_headers(&lent); /* theirs were handed back */
    oct_rig_close(&rig);
    const uint64_t begun = oct_clock_ns();
    oct_cuda_memory.release(lent.block, lent.bytes);
    assert_true(oct_clock_ns() - begun < UINT64_C(2000000000)); /* waits for nobody */
    if (given_up) {
        cuda_host_set_fault(CUDA_HOST_NO_FAULT, 0); /* the late call stays away */
        open_engine(&rig, kernels, MINUTE_US / 1000);
        lend(&lent, rig.plan);
        assert_int_equal(run_batch(&rig, &lent), 0);
        free_headers(&lent);
        oct_rig_close(&rig);
        oct_cuda_memory.release(lent.block, lent.bytes);
    }
    cuda_host_reset(1, MEMORY); /* now it comes back */
    wait_until_nothing_left();
    return given_up;
}

static void test_late_calls(void **state)
{
    static const char *const kernels[] = {"fused", "plain"};
    for (int k = 0; k < 2; k++) {
        unsigned n_given_up = 0;
        for (unsigned n = 1; n <= 12; n += STRIDE)
            n_given_up += run_late(kernels[k], n);
        assert_true(n_given_up > 8 / STRIDE);
    }
}

/* ---- memory ---- */

static void test_plain_rings(void **state)
{
    struct oct_ring *ring;
    struct oct_error err;
    bool pinned;
    cuda_host_reset(1, MEMORY);
    cuda_host_set_pinning(false);
    assert_int_equal(oct_ring_create(&ring, 3, 4096, &oct_cuda_memory, &pinned, &err), OCT_OK);
    unsigned char *memory = oct_ring_payload(ring, 0);
    oct_cuda_memory_hold();
    oct_ring_destroy(ring);
    memset(memory, 1, (size_t)3 * 4096); /* as a late copy would */
    oct_cuda_memory_let_go();
    wait_until_nothing_left();
}

static bool is_mapped(unsigned char *memory)
{
    unsigned char pages;
    return mincore(memory, 4096, &pages) == 0;
}

/* Pinned or not, the memory is whole, says which it is, and goes back where it came from. */
static void test_refused_pinning(void **state)
{
    const size_t bytes = 10000;
    for (int pins = 0; pins < 2; pins++) {
        bool pinned = !pins;
        cuda_host_reset(1, MEMORY);
        cuda_host_set_pinning(pins);
        unsigned char *memory = oct_cuda_memory.alloc(bytes, &pinned);
        assert_non_null(memory);
        assert_int_equal(pinned, pins);
        assert_int_equal((uintptr_t)memory % 4096, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
        assert_int_equal(cuda_host_bytes_in_use(), pins ? bytes : 0);
        if (!pins) {
            oct_cuda_memory_hold();
            oct_cuda_memory.release(memory, bytes);
            assert_true(is_mapped(memory));
            oct_cuda_memory_let_go();
            for (int i = 0; i < 1000 && is_mapped(memory); i++)
                nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            assert_false(is_mapped(memory));
            memory = oct_cuda_memory.alloc(bytes, NULL);
        }
        oct_cuda_memory.release(memory, bytes);
        assert_true(pins || !is_mapped(memory)); /* nobody held it: at once */
        assert_int_equal(cuda_host_bytes_in_use(), 0);
    }
    oct_cuda_memory.release(NULL, 0);
}

/* A mapping of another's: pinned where it is, and unmapped only when no device may use it. */
static void test_adopted(void **state)
{
    const size_t bytes = 8192;
    for (int pins = 0; pins < 2; pins++) {
        cuda_host_reset(1, MEMORY);
        cuda_host_set_pinning(pins);
        unsigned char *memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        memory[5000] = 7;
        assert_int_equal(oct_cuda_memory.adopt(memory, bytes), pins);
        assert_int_equal(memory[5000], 7);
        assert_int_equal(cuda_host_bytes_in_use(), pins ? bytes : 0);
        if (!pins) { /* still its owner's */
            munmap(memory, bytes);
            continue;
        }
        oct_cuda_memory_hold();
        oct_cuda_memory.release(memory, bytes);
        assert_true(is_mapped(memory) && memory[5000] == 7);
        oct_cuda_memory_let_go();
        wait_until_nothing_left();
        for (int i = 0; i < 1000 && is_mapped(memory); i++)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        assert_false(is_mapped(memory));
    }
}

/* The second B-scan lies in shared memory, its picture in a reader's own buffer: above the first at
 * some distance, yet no copy takes both. */
static void test_batch_of_several_memories(void **state)
{
    struct oct_rig rig;
    struct lent lent;
    const size_t bytes = 1u << 20;
    cuda_host_reset(1, MEMORY);
    open_engine(&rig, "fused", MINUTE_US / 1000);
    lend(&lent, rig.plan);
    unsigned char *others[2];
    for (int k = 0; k < 2; k++) {
        others[k] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(others[k] > lent.block && oct_cuda_memory.adopt(others[k], bytes));
    }
    assert_int_equal(run_batch(&rig, &lent), 0);
    const size_t picture = oct_geometry_image_bytes(&rig.plan->geometry);
    memcpy(others[0], lent.in[1]->spectra, oct_geometry_spectra_bytes(&rig.plan->geometry));
    memcpy(others[1] + picture, lent.out[1]->pixels, picture); /* as it is to be */
    lent.in[1]->spectra = (uint16_t *)(void *)others[0];
    lent.out[1]->pixels = others[1];
    assert_int_equal(run_batch(&rig, &lent), 0);
    assert_memory_equal(others[1], others[1] + picture, picture);
    free_headers(&lent);
    oct_rig_close(&rig);
    oct_cuda_memory.release(lent.block, lent.bytes);
    for (int k = 0; k < 2; k++)
        oct_cuda_memory.release(others[k], bytes);
    wait_until_nothing_left();
}

static void test_pinned_rings(void **state)
{
    struct oct_ring *ring;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_ring_create(&ring, 3, 4096, &oct_cuda_memory, NULL, &err), OCT_OK);
    unsigned char *memory = oct_ring_payload(ring, 0);
    oct_cuda_memory_hold();
    oct_cuda_memory_hold();
    oct_ring_destroy(ring);
    oct_cuda_memory_let_go();
    memset(memory, 1, (size_t)3 * 4096);
    assert_true(cuda_host_bytes_in_use() >= (size_t)3 * 4096);
    oct_cuda_memory_let_go();
    wait_until_nothing_left();
}

/* ---- healthy, but slow ---- */

#if !defined(__SANITIZE_THREAD__) /* which is so slow itself that times mean nothing */

#define PATIENT_MS 1000

static void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static void test_slow_calls(void **state)
{
    struct oct_rig rig;
    struct lent lent;
    cuda_host_reset(1, MEMORY);
    open_engine(&rig, "fused", PATIENT_MS);
    lend(&lent, rig.plan);
    cuda_host_set_pace(PATIENT_MS / 7 * 1000); /* a batch and the end take longer than patience */
    const uint64_t begun = oct_clock_ns();
    assert_int_equal(run_batch(&rig, &lent), 0);
    assert_true(oct_clock_ns() - begun > PATIENT_MS * UINT64_C(1000000));
    oct_rig_close(&rig);
    cuda_host_set_pace(0);
    free_headers(&lent);
    oct_cuda_memory.release(lent.block, lent.bytes);
    assert_int_equal(cuda_host_bytes_in_use(), 0); /* now: nobody was left behind */
    assert_int_equal(cuda_host_n_objects(), 0);
}

/* Brings the late call back after 25 short sleeps: a machine that stands still ends one at most. */
static void *bring_back(void *argument)
{
    (void)argument;
    for (int i = 0; i < 25; i++)
        sleep_ms(20);
    cuda_host_reset(1, MEMORY);
    return NULL;
}

static pid_t stop_for_a_while(void)
{
    const pid_t me = getpid(), child = fork();
    if (child != 0)
        return child;
    sleep_ms(100);
    kill(me, SIGSTOP);
    sleep_ms(5 * PATIENT_MS / 2);
    kill(me, SIGCONT);
    _exit(0);
}

static void test_machine_stands_still(void **state)
{
    const struct oct_display display = {.log = true, .range = OCT_RANGE_MANUAL, .hi = 60};
    struct oct_rig rig;
    struct lent lent;
    pthread_t thread;
    cuda_host_reset(1, MEMORY);
    open_engine(&rig, "fused", PATIENT_MS);
    lend(&lent, rig.plan);
    cuda_host_set_fault(CUDA_HOST_CALL_LATE, 1);
    struct oct_engine_job job = {.in = lent.in[0], .out = lent.out[0], .display = display};
    assert_int_equal(rig.ops->submit(rig.engine, &job, 1), OCT_OK);
    const pid_t child = stop_for_a_while();
    assert_int_equal(pthread_create(&thread, NULL, bring_back, NULL), 0);
    const uint64_t begun = oct_clock_ns();
    oct_rig_close(&rig);
    assert_true(oct_clock_ns() - begun > PATIENT_MS * UINT64_C(2000000));
    assert_int_equal(cuda_host_n_objects(), 0); /* the engine ended, late as it was */
    pthread_join(thread, NULL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    free_headers(&lent);
    oct_cuda_memory.release(lent.block, lent.bytes);
    wait_until_nothing_left();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a call that comes back late touches nothing that was given back", test_late_calls, NULL,
         NULL, NULL},
        {"memory that the driver refuses to pin is plain, and says so", test_refused_pinning, NULL,
         NULL, NULL},
        {"what a GPU has adopted is unmapped when no device may use it", test_adopted, NULL, NULL,
         NULL},
        {"a batch may lie in several memories", test_batch_of_several_memories, NULL, NULL, NULL},
        {"plain rings stay while a device may use them", test_plain_rings, NULL, NULL, NULL},
        {"pinned rings are given back when the last device lets go", test_pinned_rings, NULL, NULL,
         NULL},
#if !defined(__SANITIZE_THREAD__)
        {"a GPU that is slow at every call is not given up", test_slow_calls, NULL, NULL, NULL},
        {"a machine that stands still is no GPU that hangs", test_machine_stands_still, NULL, NULL,
         NULL},
#endif
    };
    return cmocka_run_group_tests_name("late GPUs", tests, make_scene, free_scene) > 0;
}
