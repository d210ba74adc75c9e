/* The CUDA engine of the whole-pixel search on the stand-in for CUDA (test/cuda_host/): its numbers
 * and those of the CPU's, and what becomes of them when the device fails or hangs. */
#include "test/rig/cuda_faults.h"
#include "test/rig/match_suite.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define N OCT_MATCH_SCENE_PICTURES
#define HEIGHT 24u
#define WIDTH 32u
#if defined(__SANITIZE_THREAD__)
#define STRIDE 9u
#else
#define STRIDE 4u
#endif

static const struct oct_matcher_setup setup = {.height = HEIGHT,
                                               .width = WIDTH,
                                               .max_dy = 8,
                                               .max_dx = 8,
                                               .min_overlap = 0.3,
                                               .max_rows = 12,
                                               .max_radius = 4,
                                               .min_window_overlap = 0.5,
                                               .n_batch = N,
                                               .deadline_ms = PATIENCE_MS};

struct results {
    struct oct_match whole[N], windows[N];
};

static enum oct_err use(const struct oct_matcher_ops *ops, struct oct_matcher *m,
                        struct results *results, struct oct_error *err)
{
    const struct oct_match_window windows[N] = {
        {0, 4, 12, -4, 3, 4}, {1, 8, 10, 1, 1, 4}, {2, 9, 12, 4, -5, 4}};
    struct oct_match_scene scene;
    memset(results, 0, sizeof(*results));
    oct_match_scene_make(&scene, HEIGHT, WIDTH, false);
    enum oct_err e = ops->set_reference(m, &scene.g, err);
    if (!e)
        e = ops->load(m, scene.f, N, err);
    if (!e)
        e = ops->find(m, results->whole, err);
    if (!e)
        e = ops->look(m, windows, N, results->windows, err);
    oct_match_scene_finish(&scene);
    return e;
}

static void check_match(const struct oct_match *a, const struct oct_match *b)
{
    assert_int_equal(a->dy, b->dy);
    assert_int_equal(a->dx, b->dx);
    assert_true(isnan(a->significance) == isnan(b->significance));
    assert_true(!(fabsf(a->significance - b->significance) > 0.01f * a->significance));
    assert_true(fabsf(a->score - b->score) < 2e-6f);
}

static void check_same(const struct results *a, const struct results *b)
{
    for (unsigned i = 0; i < N; i++) {
        check_match(&a->whole[i], &b->whole[i]);
        check_match(&a->windows[i], &b->windows[i]);
        for (int k = 0; k < 9; k++) {
            const float x = a->windows[i].around[k / 3][k % 3];
            const float y = b->windows[i].around[k / 3][k % 3];
            assert_true(isnan(x) == isnan(y) && !(fabsf(x - y) > 2e-6f));
        }
    }
}

static void compute_on_cpu(struct results *results)
{
    struct oct_matcher *m;
    struct oct_error err;
    assert_int_equal(oct_matcher_cpu.create(&m, &setup, &err), OCT_OK);
    assert_int_equal(use(&oct_matcher_cpu, m, results, &err), OCT_OK);
    oct_matcher_cpu.destroy(m);
}

static void test_same_as_cpu(void **state)
{
    struct results wanted = {0}, results = {0};
    struct oct_matcher *m;
    struct oct_error err;
    compute_on_cpu(&wanted);
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_matcher_cuda.create(&m, &setup, &err), OCT_OK);
    assert_int_equal(use(&oct_matcher_cuda, m, &results, &err), OCT_OK);
    oct_matcher_cuda.destroy(m);
    oct_matcher_cuda.destroy(NULL);
    check_same(&results, &wanted);
    check_nothing_left();
}

/* The reference before stays, and the batch is not full: what it leaves out is not read. */
static void test_reference_without_contrast(void **state)
{
    struct oct_match_scene scene;
    struct oct_picture flat;
    struct oct_match match;
    struct oct_matcher *m;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    oct_match_scene_make(&scene, HEIGHT, WIDTH, false);
    assert_int_equal(oct_picture_init(&flat, HEIGHT, WIDTH, false, &err), OCT_OK);
    for (size_t i = 0; i < (size_t)HEIGHT * WIDTH; i++)
        flat.pixels[i] = 0.1f;
    assert_int_equal(oct_matcher_cuda.create(&m, &setup, &err), OCT_OK);
    assert_int_equal(oct_matcher_cuda.set_reference(m, &scene.g, &err), OCT_OK);
    assert_int_equal(oct_matcher_cuda.set_reference(m, &flat, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "contrast"));
    assert_int_equal(oct_matcher_cuda.load(m, scene.f, 1, &err), OCT_OK);
    assert_int_equal(oct_matcher_cuda.find(m, &match, &err), OCT_OK);
    assert_int_equal(match.dy, scene.dy[0]);
    assert_int_equal(match.dx, scene.dx[0]);
    oct_matcher_cuda.destroy(m);
    oct_picture_finish(&flat);
    oct_match_scene_finish(&scene);
    check_nothing_left();
}

static void test_no_device(void **state)
{
    const struct oct_matcher_ops *ops;
    struct oct_matcher *m;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    cuda_host_remove_driver();
    assert_int_equal(oct_matcher_select(&ops, &m, "cuda", &setup, &err), OCT_E_BACKEND);
    assert_null(m);
    assert_int_equal(oct_matcher_select(&ops, &m, "auto", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_matcher_cpu);
    ops->destroy(m);
    cuda_host_reset(1, (size_t)1 << 12); /* too small */
    assert_int_equal(oct_matcher_select(&ops, &m, "cuda", &setup, &err), OCT_E_NO_MEMORY);
    assert_int_equal(oct_matcher_select(&ops, &m, "auto", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_matcher_cpu);
    ops->destroy(m);
    check_nothing_left();
}

/* ---- faults ---- */

struct course {
    const struct oct_matcher_ops *ops;
    struct oct_matcher *matcher;
    struct results wanted;
};

static const char *running(const struct course *c)
{
    return c->ops == &oct_matcher_cpu ? "cpu" : c->ops->running(c->matcher);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_matcher_setup own = setup;
    struct oct_error err = {.text = ""};
    own.deadline_ms = deadline_ms;
    if (oct_matcher_select(&c->ops, &c->matcher, "auto", &own, &err))
        fail_msg("%s", err.text);
    return running(c);
}

static const char *use_course(void *context)
{
    struct course *c = context;
    struct results results;
    struct oct_error err = {.text = ""};
    if (use(c->ops, c->matcher, &results, &err))
        fail_msg("%s", err.text);
    check_same(&results, &c->wanted);
    return running(c);
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->matcher);
}

static void test_failures(void **state)
{
    struct course c = {.ops = NULL};
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    compute_on_cpu(&c.wanted);
    oct_cuda_course_run(&course, STRIDE); /* the last operations are of the windows */
}

static void test_hanging(void **state)
{
    struct course c = {.ops = NULL};
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    compute_on_cpu(&c.wanted);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 2);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 14);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_LATE, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"the CUDA engine finds what the CPU's finds", test_same_as_cpu, NULL, NULL, NULL},
        {"a reference without contrast is refused", test_reference_without_contrast, NULL, NULL,
         NULL},
        {"a machine without what it takes is left to the CPU", test_no_device, NULL, NULL, NULL},
        {"whatever fails, the CPU goes on", test_failures, NULL, NULL, NULL},
        {"a device that hangs is given up in time", test_hanging, NULL, NULL, NULL},
    };
    cuda_host_reset(1, MEMORY);
    int n_failed = oct_match_suite_run(&oct_matcher_cuda, PATIENCE_MS);
    n_failed += cmocka_run_group_tests_name("registration on CUDA", tests, NULL, NULL);
    return n_failed > 0;
}
