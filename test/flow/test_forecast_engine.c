/* The forecast of an engine, by a clock of the test's own: it goes on when the engine computes. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/forecast.h"
#include "test/rig/tap.h"

#include <time.h>

#define MS UINT64_C(1000000)

enum { N = 4, M = 20, DEPTH = 4, BUDGET_MS = 60 };

struct oct_engine {
    struct oct_image_frame *jobs[DEPTH]; /* a circle: begin .. end - 1 */
    uint64_t begin, end;
    uint64_t job_ns;
    uint64_t slow_from_ns, slow_to_ns; /* between them a job takes three times as long */
};

static uint64_t now_ns = 1000 * MS;

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000u),
                              .tv_nsec = (long)(now_ns % 1000000000u)};
    return 0;
}

static unsigned depth(const struct oct_engine *e)
{
    (void)e;
    return DEPTH;
}

static unsigned one(const struct oct_engine *e)
{
    (void)e;
    return 1;
}

static enum oct_err submit(struct oct_engine *e, const struct oct_engine_job *jobs, unsigned n)
{
    assert_int_equal(n, 1);
    assert_true(e->end - e->begin < DEPTH);
    e->jobs[e->end++ % DEPTH] = jobs[0].out;
    return OCT_OK;
}

static enum oct_err collect(struct oct_engine *e, uint64_t timeout_us, struct oct_image_frame **out)
{
    (void)timeout_us;
    assert_true(e->begin < e->end);
    *out = e->jobs[e->begin++ % DEPTH];
    (*out)->status = OCT_OK;
    now_ns += e->job_ns * (now_ns >= e->slow_from_ns && now_ns < e->slow_to_ns ? 3 : 1);
    return OCT_OK;
}

static const struct oct_engine_ops ops = {
    .name = "test", .depth = depth, .max_batch = one, .submit = submit, .collect = collect};

/* A-lines a second, and how long finding out took. */
static double forecast(struct oct_engine *e, uint64_t *took_ns)
{
    const struct oct_calibration cal = {.wavelengths_nm = (double[]){800, 800.01, 800.02, 800.03},
                                        .n_wavelengths = N};
    const struct oct_display display = {.log = true};
    const uint64_t begun_ns = now_ns;
    struct oct_geometry g;
    struct oct_plan *plan;
    assert_int_equal(oct_geometry_init(&g, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &oct_chain_thesis, NULL), OCT_OK);
    double hz = oct_forecast_engine(&ops, e, plan, &display, BUDGET_MS * 1000);
    *took_ns = now_ns - begun_ns;
    assert_int_equal(e->begin, e->end); /* all is back */
    oct_plan_destroy(plan);
    return hz;
}

static void a_machine_that_is_busy_for_a_moment_is_not_called_slow(void **state)
{
    /* Within the first, the second and the third trial: a sixth of all the time. */
    static const uint64_t at_ms[] = {5, 28, 48};
    for (unsigned i = 0; i < sizeof(at_ms) / sizeof(at_ms[0]); i++) {
        struct oct_engine e = {.job_ns = MS,
                               .slow_from_ns = now_ns + at_ms[i] * MS,
                               .slow_to_ns = now_ns + (at_ms[i] + 10) * MS};
        uint64_t took_ns;
        assert_float_equal(forecast(&e, &took_ns), M * 1000.0f, 1);
        assert_true(took_ns <= (BUDGET_MS + 1 + DEPTH) * MS);
    }
    struct oct_engine slow = {.job_ns = MS,
                              .slow_to_ns = UINT64_MAX}; /* always: that is its rate */
    uint64_t took_ns;
    assert_float_equal(forecast(&slow, &took_ns), M * 1000.0f / 3, 1);
}

static void three_trials_take_no_longer_than_one(void **state)
{
    /* What is in flight at the end is waited for, once: from 1 ms a B-scan to more than all. */
    static const uint64_t job_ms[] = {1, 2, 5, 10, 20, 50, 100};
    for (unsigned i = 0; i < sizeof(job_ms) / sizeof(job_ms[0]); i++) {
        struct oct_engine e = {.job_ns = job_ms[i] * MS};
        uint64_t took_ns;
        double hz = forecast(&e, &took_ns);
        assert_float_equal(hz, M * 1000.0f / (float)job_ms[i], 1);
        assert_true(took_ns <= (BUDGET_MS + (1 + DEPTH) * job_ms[i]) * MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_that_is_busy_for_a_moment_is_not_called_slow),
        cmocka_unit_test(three_trials_take_no_longer_than_one),
    };
    return cmocka_run_group_tests_name("the forecast of an engine", tests, NULL, NULL);
}
