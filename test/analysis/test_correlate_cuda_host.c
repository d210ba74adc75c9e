/* The CUDA engine of correlations on the stand-in for CUDA (test/cuda_host/): its numbers, and what
 * becomes of them when the device fails or hangs. */
#include "test/gpu/correlate_timing.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/correlate_suite.h"
#include "test/rig/cuda_faults.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define SIDE 16u
#define RADIUS 7u
#define N_SHIFTS ((size_t)(2 * RADIUS + 1) * (2 * RADIUS + 1))
#if defined(__SANITIZE_THREAD__)
#define STRIDE 7u
#else
#define STRIDE 3u
#endif

static const struct oct_correlator_setup setup = {.height = SIDE,
                                                  .width = SIDE,
                                                  .g_height = SIDE,
                                                  .g_width = SIDE,
                                                  .max_dy = RADIUS,
                                                  .max_dx = RADIUS,
                                                  .norm = OCT_CORRELATION_ZNCC,
                                                  .min_overlap = 0.3,
                                                  .n_batch = 2};

/* A reference and two pictures through any table. */
static enum oct_err use(const struct oct_correlator_ops *ops, struct oct_correlator *c, float *c2d,
                        struct oct_error *err)
{
    struct oct_picture f[2], g;
    unsigned which;
    oct_oracle_picture(&f[0], SIDE, SIDE, OCT_ORACLE_U8, 1);
    oct_oracle_picture(&f[1], SIDE, SIDE, OCT_ORACLE_DB, 2);
    oct_oracle_picture(&g, SIDE, SIDE, OCT_ORACLE_U16, 3);
    memset(c2d, 0, 2 * N_SHIFTS * sizeof(float));
    enum oct_err e = ops->set_reference(c, &g, err);
    oct_picture_finish(&g); /* it was lent for the call alone */
    if (!e)
        e = ops->run(c, f, 2, c2d, &which, err);
    for (unsigned i = 0; i < 2; i++)
        oct_picture_finish(&f[i]); /* whatever became of it, it is the caller's again */
    return e;
}

static void check_same(const float *c2d, const float *wanted)
{
    for (size_t i = 0; i < 2 * N_SHIFTS; i++)
        if (isnan(c2d[i]) != isnan(wanted[i]) || fabsf(c2d[i] - wanted[i]) > 2e-6f)
            fail_msg("%zu: %.9g, not %.9g", i, (double)c2d[i], (double)wanted[i]);
}

static void compute_on_cpu(float *wanted)
{
    struct oct_correlator *c;
    must(oct_correlator_cpu.create(&c, &setup, &failure));
    must(use(&oct_correlator_cpu, c, wanted, &failure));
    oct_correlator_cpu.destroy(c);
}

TEST(the_cuda_engine_gives_the_cpus_numbers)
{
    struct oct_correlator_setup alone = setup;
    struct oct_correlator *c;
    float c2d[2 * N_SHIFTS], wanted[2 * N_SHIFTS];
    alone.deadline_ms = PATIENCE_MS;
    compute_on_cpu(wanted);
    cuda_host_reset(1, MEMORY);
    must(oct_correlator_cuda.create(&c, &alone, &failure));
    must(use(&oct_correlator_cuda, c, c2d, &failure));
    oct_correlator_cuda.destroy(c);
    oct_correlator_cuda.destroy(NULL);
    check_same(c2d, wanted);
    check_nothing_left();
}

TEST(a_machine_without_what_it_takes_is_refused)
{
    struct oct_correlator_setup other = setup;
    struct oct_correlator *c = (struct oct_correlator *)&other;
    const struct oct_correlator_ops *ops;
    struct oct_error err;
    char why[200];
    cuda_host_reset(1, MEMORY);
    cuda_host_set_cufft(false);
    assert_int_equal(oct_correlator_cuda.create(&c, &setup, &err), OCT_E_BACKEND);
    assert_null(c);
    assert_non_null(strstr(err.text, "cuFFT"));
    cuda_host_reset(1, MEMORY);
    cuda_host_set_cufft(true);
    other.gpus = "3";
    assert_int_equal(oct_correlator_cuda.create(&c, &other, &err), OCT_E_CONFIG);
    cuda_host_reset(1, (size_t)1 << 12);
    assert_int_equal(oct_correlator_cuda.create(&c, &setup, &err), OCT_E_NO_MEMORY);
    assert_int_equal(oct_correlator_select(&ops, &c, "cuda", &setup, why, sizeof(why), &err),
                     OCT_E_NO_MEMORY);
    assert_int_equal(oct_correlator_select(&ops, &c, "auto", &setup, why, sizeof(why), &err),
                     OCT_OK);
    assert_ptr_equal(ops, &oct_correlator_cpu);
    ops->destroy(c);
    assert_int_equal(oct_correlator_select(&ops, &c, "cpu", &setup, why, sizeof(why), &err),
                     OCT_OK);
    assert_string_equal(why, "correlation on cpu: asked for");
    ops->destroy(c);
    cuda_host_remove_driver();
    assert_int_equal(oct_correlator_cuda.create(&c, &setup, &err), OCT_E_BACKEND);
    check_nothing_left();
}

/* ---- faults ---- */

struct course {
    const struct oct_correlator_ops *ops;
    struct oct_correlator *correlator;
    float wanted[2 * N_SHIFTS];
};

static const char *running(const struct course *c)
{
    return c->ops == &oct_correlator_cpu ? "cpu" : c->ops->running(c->correlator);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_correlator_setup own = setup;
    char why[200];
    own.deadline_ms = deadline_ms;
    must(oct_correlator_select(&c->ops, &c->correlator, "auto", &own, why, sizeof(why), &failure));
    return running(c);
}

static const char *use_course(void *context)
{
    struct course *c = context;
    float c2d[2 * N_SHIFTS];
    must(use(c->ops, c->correlator, c2d, &failure));
    check_same(c2d, c->wanted);
    return running(c);
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->correlator);
}

TEST(whatever_fails_the_cpu_goes_on_with_the_same_numbers)
{
    struct course c = {.ops = NULL};
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    compute_on_cpu(c.wanted);
    oct_cuda_course_run(&course, STRIDE);
}

/* The n-th operation after create does not end. */
static void check_hanging(enum cuda_host_fault fault, unsigned n)
{
    struct oct_correlator_setup strict = setup;
    struct oct_correlator *c;
    struct oct_error err = {.text = ""};
    float c2d[2 * N_SHIFTS];
    strict.deadline_ms = DEADLINE_MS;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_correlator_cuda.create(&c, &strict, &err), OCT_OK);
    cuda_host_set_fault(fault, n);
    double begun = seconds();
    assert_int_equal(use(&oct_correlator_cuda, c, c2d, &err), OCT_E_BACKEND);
    assert_true(seconds() - begun < DEADLINE_MS * 4e-3 + 5);
    assert_int_equal(use(&oct_correlator_cuda, c, c2d, &err), OCT_E_BACKEND);
    begun = seconds();
    oct_correlator_cuda.destroy(c);
    assert_true(seconds() - begun < DEADLINE_MS * 4e-3 + 5);
    let_go();
}

TEST(a_device_that_hangs_is_given_up_in_time)
{
    check_hanging(CUDA_HOST_WORK_HANGS, 2);  /* of the reference */
    check_hanging(CUDA_HOST_WORK_HANGS, 12); /* of the pictures */
    check_hanging(CUDA_HOST_CALL_BLOCKS, 3);
    check_hanging(CUDA_HOST_CALL_LATE, 1);
}

/* What the benchmark times; the times themselves are the host's. */
TEST(the_benchmarks_times_are_taken)
{
    struct oct_correlate_times t;
    struct oct_error err = {.text = ""};
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_correlate_time_cuda(&setup, 0, &t, &err), OCT_OK);
    assert_true(t.height >= SIDE + RADIUS && t.width >= SIDE + RADIUS && t.width % 2 == 0);
    assert_true(t.best_height >= SIDE + RADIUS && t.best_width >= SIDE + RADIUS);
    assert_true(t.pair_us > 0 && t.pair_us < 1e6 && t.own_pair_us > 0 && t.own_pair_us < 1e6);
    assert_true(t.kernels_us > 0 && t.copies_us > 0 && t.copies_us < 1e6);
    check_nothing_left();
    cuda_host_set_fault(CUDA_HOST_WORK_FAILS, 30);
    assert_int_equal(oct_correlate_time_cuda(&setup, 0, &t, &err), OCT_E_BACKEND);
    check_nothing_left();
}

int main(void)
{
    cuda_host_reset(1, MEMORY);
    int n_failed = oct_correlate_suite_run(&oct_correlator_cuda, PATIENCE_MS, false);
    n_failed += test_run();
    return n_failed > 0;
}
