/* The CUDA worker of analyses with a small task, and what goes wrong on its GPU, played by the
 * stand-in for CUDA (test/cuda_host/): the caller never waits longer than the deadline, what it
 * brought is its own again when do returns, and what a late thread leaves is freed.
 * AddressSanitizer sees what late threads touch. */
#include "test/rig/cuda_rig.h"
#include "test/rig/scale_task.h"
#include "test/rig/tap.h"

#include "kernels/device/cuda_choice.h"
#include "kernels/device/cuda_memory.h"
#include "kernels/device/cuda_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1000u
#if defined(__SANITIZE_THREAD__)
#define STRIDE 5u
#else
#define STRIDE 1u
#endif

static const struct scale_setup by_three = {.factor = 3, .n = N};

/* ---- a task ---- */

static struct scale_task make_task(uint32_t seed)
{
    uint32_t *in = malloc(N * sizeof(*in));
    assert_non_null(in);
    for (uint32_t i = 0; i < N; i++)
        in[i] = seed * 2654435761u + i;
    struct scale_task task = {.in = in, .out = calloc(N, sizeof(uint32_t))};
    assert_non_null(task.out);
    return task;
}

static void free_task(struct scale_task *task)
{
    free((void *)(uintptr_t)task->in);
    free(task->out);
    *task = (struct scale_task){.in = NULL};
}

static void check_task(const struct scale_task *task)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(task->out[i], 3 * task->in[i]);
        sum += 3 * task->in[i];
    }
    assert_int_equal(task->sum, sum);
}

/* One task; what it brought is given back at once, whatever became of it. */
static enum oct_err do_one(struct oct_cuda_tasks *tasks, uint32_t seed, struct oct_error *err)
{
    struct scale_task task = make_task(seed);
    *err = (struct oct_error){.text = ""};
    enum oct_err e = oct_cuda_tasks_do(tasks, &task, err);
    if (!e)
        check_task(&task);
    free_task(&task);
    return e;
}

static enum oct_err create(struct oct_cuda_tasks **tasks, const char *gpus, unsigned deadline_ms,
                           struct oct_error *err)
{
    *err = (struct oct_error){.text = ""};
    return oct_cuda_tasks_create(tasks, &scale_task_ops, gpus, deadline_ms, &by_three,
                                 sizeof(by_three), err);
}

static void check_no_task_left(void)
{
    check_nothing_left();
    assert_int_equal(scale_task_n_contexts(), 0);
}

static void let_tasks_go(void)
{
    let_go();
    check_no_task_left();
}

/* ---- a device that works ---- */

static void test_tasks(void **state)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(create(&tasks, NULL, PATIENCE_MS, &err), OCT_OK);
    assert_string_equal(oct_cuda_tasks_describe(tasks), "GPU 0: host stand-in 0");
    for (uint32_t seed = 0; seed < 20; seed++)
        assert_int_equal(do_one(tasks, seed, &err), OCT_OK);
    assert_int_equal(scale_task_n_contexts(), 1);
    oct_cuda_tasks_destroy(tasks);
    check_no_task_left();
    oct_cuda_tasks_destroy(NULL);
}

static void check_refusal(const char *gpus, const struct scale_setup *setup, enum oct_err code,
                          const char *word)
{
    struct oct_cuda_tasks *tasks = (struct oct_cuda_tasks *)&code;
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_cuda_tasks_create(&tasks, &scale_task_ops, gpus, PATIENCE_MS, setup,
                                           sizeof(*setup), &err),
                     code);
    assert_null(tasks);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, word));
    check_no_task_left();
}

static void test_choice_of_gpus(void **state)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    cuda_host_reset(2, MEMORY);
    assert_int_equal(create(&tasks, "1,0", PATIENCE_MS, &err), OCT_OK);
    assert_string_equal(oct_cuda_tasks_describe(tasks), "GPU 1: host stand-in 1");
    assert_int_equal(do_one(tasks, 1, &err), OCT_OK);
    assert_int_equal(cuda_host_n_launches(0), 0);
    assert_true(cuda_host_n_launches(1) > 0);
    oct_cuda_tasks_destroy(tasks);
    check_refusal("2", &by_three, OCT_E_CONFIG, "has 2 GPUs");
    check_refusal("0,0", &by_three, OCT_E_CONFIG, "twice");
    check_refusal("", &(struct scale_setup){.factor = 0, .n = N}, OCT_E_CONFIG, "factor is 0");
    cuda_host_reset(2, (size_t)1 << 20);
    check_refusal("", &(struct scale_setup){.factor = 1, .n = (size_t)1 << 19}, OCT_E_NO_MEMORY,
                  "no room for");
    cuda_host_remove_driver();
    check_refusal("", &by_three, OCT_E_BACKEND, "driver version is insufficient");
}

/* Whatever is wanted: the first device that has it, and the first one's reason if none has. */
static enum oct_err not_below(void *least, const struct oct_cuda_choice *choice,
                              struct oct_error *err)
{
    if (choice->devices[0] >= *(unsigned *)least)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY, "not on device %u", choice->devices[0]);
}

static void test_first_that_will_do(void **state)
{
    struct oct_cuda_choice choice;
    struct oct_error err = {.text = ""};
    unsigned least = 2;
    cuda_host_reset(3, MEMORY);
    assert_int_equal(oct_cuda_choose(&choice, "", not_below, &least, &err), OCT_OK);
    assert_int_equal(choice.n_gpus, 1);
    assert_int_equal(choice.devices[0], 2);
    assert_int_equal(oct_cuda_choose(&choice, "1,2", not_below, &least, &err), OCT_E_NO_MEMORY);
    assert_string_equal(err.text, "not on device 1");
    least = 3;
    assert_int_equal(oct_cuda_choose(&choice, NULL, not_below, &least, &err), OCT_E_NO_MEMORY);
    assert_string_equal(err.text, "not on device 0");
}

static void test_refused_task(void **state)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(create(&tasks, NULL, PATIENCE_MS, &err), OCT_OK);
    for (uint32_t seed = 0; seed < 5; seed++) {
        struct scale_task task = make_task(seed);
        task.refused = true;
        assert_int_equal(oct_cuda_tasks_do(tasks, &task, &err), OCT_E_ARG);
        assert_string_equal(err.text, "a task that is refused");
        assert_int_equal(task.sum, 0); /* nothing was given */
        free_task(&task);
        assert_int_equal(do_one(tasks, seed, &err), OCT_OK);
    }
    oct_cuda_tasks_destroy(tasks);
    check_no_task_left();
}

/* ---- a device that fails ---- */

/* Three tasks, of which the n-th call or operation fails. Returns whether one came to it. */
static bool run_with_fault(enum cuda_host_fault fault, unsigned n)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    cuda_host_set_fault(fault, n);
    enum oct_err e = create(&tasks, NULL, PATIENCE_MS, &err);
    for (uint32_t seed = 0; seed < 3 && !e; seed++)
        e = do_one(tasks, seed, &err);
    if (e) {
        assert_int_equal(e, OCT_E_BACKEND);
        assert_non_null(strstr(err.text, "launch failure"));
    }
    if (e && tasks) { /* and so for ever */
        assert_int_equal(do_one(tasks, 9, &err), OCT_E_BACKEND);
        assert_non_null(strstr(err.text, "launch failure"));
    }
    oct_cuda_tasks_destroy(tasks);
    check_no_task_left();
    return e != OCT_OK;
}

static void test_failures(void **state)
{
    unsigned n_hit = 0;
    assert_false(run_with_fault(CUDA_HOST_NO_FAULT, 0));
    const unsigned n_calls = cuda_host_n_calls(), n_operations = cuda_host_n_operations();
    for (unsigned n = 1; n <= n_calls; n += STRIDE)
        n_hit += run_with_fault(CUDA_HOST_CALL_FAILS, n);
    assert_true(n_hit > 3 * n_calls / 5 / STRIDE); /* not: those of destroy */
    n_hit = 0;
    for (unsigned n = 1; n <= n_operations; n += STRIDE)
        n_hit += run_with_fault(CUDA_HOST_WORK_FAILS, n);
    assert_true((n_hit + 2) * STRIDE > n_operations);
}

/* ---- a device that hangs, and comes back ---- */

/* The n-th call or operation of the second task. Returns whether that was given up. */
static bool run_hanging(enum cuda_host_fault fault, unsigned n)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(create(&tasks, NULL, DEADLINE_MS, &err), OCT_OK);
    assert_int_equal(do_one(tasks, 1, &err), OCT_OK);
    cuda_host_set_fault(fault, n);
    double begun = seconds();
    const bool given_up = do_one(tasks, 2, &err) != OCT_OK;
    if (given_up) {
        assert_int_equal(err.code, OCT_E_BACKEND);
        assert_non_null(strstr(err.text, "GPU 0 has not"));
        assert_true(seconds() - begun > DEADLINE_MS * 0.5e-3);
        assert_true(seconds() - begun < DEADLINE_MS * 4e-3 + 5);
        begun = seconds();
        assert_int_equal(do_one(tasks, 3, &err), OCT_E_BACKEND); /* at once */
        assert_true(seconds() - begun < DEADLINE_MS * 0.5e-3 + 1);
        assert_int_equal(scale_task_n_contexts(), 1); /* the device may still use it */
        assert_false(oct_cuda_memory_is_held());      /* and nothing that it was lent */
    }
    begun = seconds();
    oct_cuda_tasks_destroy(tasks);
    assert_true(seconds() - begun < DEADLINE_MS * 4e-3 + 5);
    let_tasks_go();
    return given_up;
}

static void test_hanging_work(void **state)
{
    for (unsigned n = 1; n <= 6; n += STRIDE) /* copy, clear, two kernels, copy, mark */
        assert_true(run_hanging(CUDA_HOST_WORK_HANGS, n));
}

static void test_hanging_calls(void **state)
{
    for (unsigned n = 1; n <= 5; n += STRIDE) { /* copy, clear, copy, mark, query */
        assert_true(run_hanging(CUDA_HOST_CALL_BLOCKS, n));
        assert_true(run_hanging(CUDA_HOST_CALL_LATE, n));
    }
}

/* The next worker in the process is as good as the first, while the one before still hangs. */
static void test_next_worker(void **state)
{
    struct oct_cuda_tasks *hanging, *tasks;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(create(&hanging, NULL, DEADLINE_MS, &err), OCT_OK);
    cuda_host_set_fault(CUDA_HOST_CALL_LATE, 2);
    assert_int_equal(do_one(hanging, 1, &err), OCT_E_BACKEND);
    oct_cuda_tasks_destroy(hanging);
    cuda_host_set_fault(CUDA_HOST_NO_FAULT, 0);
    assert_int_equal(create(&tasks, NULL, PATIENCE_MS, &err), OCT_OK);
    for (uint32_t seed = 0; seed < 3; seed++)
        assert_int_equal(do_one(tasks, seed, &err), OCT_OK);
    assert_int_equal(scale_task_n_contexts(), 2);
    oct_cuda_tasks_destroy(tasks);
    assert_int_equal(scale_task_n_contexts(), 1);
    let_tasks_go();
}

#if !defined(__SANITIZE_THREAD__) /* times mean nothing there */

static void test_slow_calls(void **state)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(create(&tasks, NULL, 1000, &err), OCT_OK);
    cuda_host_set_pace(300000); /* a task and the end take longer than the deadline */
    const double begun = seconds();
    assert_int_equal(do_one(tasks, 1, &err), OCT_OK);
    assert_true(seconds() - begun > 1);
    oct_cuda_tasks_destroy(tasks);
    check_no_task_left(); /* now: nobody was left behind */
}

#endif

/* ---- the end of a process ---- */

/* As the driver's exit handler does when a device hangs. */
static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static _Noreturn void end_with_a_hanging_device(void)
{
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    atexit(wait_for_ever);
    cuda_host_reset(1, MEMORY);
    if (create(&tasks, NULL, DEADLINE_MS, &err))
        _exit(1);
    cuda_host_set_fault(CUDA_HOST_CALL_BLOCKS, 1);
    if (do_one(tasks, 1, &err) != OCT_E_BACKEND)
        _exit(2);
    oct_cuda_tasks_destroy(tasks);
    printf("what was written");
    exit(7);
}

static void test_exit(void **state)
{
    char text[64] = "";
    int ends[2], status = 0;
    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        dup2(ends[1], STDOUT_FILENO);
        end_with_a_hanging_device();
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0;)
        length += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_non_null(strstr(text, "what was written"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: it forks while there are no threads. */
        {"a process ends though a device hangs", test_exit, NULL, NULL, NULL},
        {"tasks are done one after the other", test_tasks, NULL, NULL, NULL},
        {"the GPU is chosen by pipeline.gpus", test_choice_of_gpus, NULL, NULL, NULL},
        {"the first GPU that will do is taken", test_first_that_will_do, NULL, NULL, NULL},
        {"a task that is refused costs no other", test_refused_task, NULL, NULL, NULL},
        {"whatever fails, the caller hears of it and nothing is left", test_failures, NULL, NULL,
         NULL},
        {"work that does not end is given up in time", test_hanging_work, NULL, NULL, NULL},
        {"a call that comes late touches nothing of the caller's", test_hanging_calls, NULL, NULL,
         NULL},
        {"another worker starts beside one that hangs", test_next_worker, NULL, NULL, NULL},
#if !defined(__SANITIZE_THREAD__)
        {"a GPU that is slow at every call is not given up", test_slow_calls, NULL, NULL, NULL},
#endif
    };
    return cmocka_run_group_tests_name("tasks on GPUs", tests, NULL, NULL) > 0;
}
