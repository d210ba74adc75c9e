#include "test/rig/cuda_faults.h"

#include "test/rig/tap.h"

#include <string.h>

void oct_cuda_course_fault(const struct oct_cuda_course *course, enum cuda_host_fault fault,
                           unsigned n)
{
    cuda_host_reset(1, MEMORY);
    cuda_host_set_fault(fault, n);
    const bool begun = strcmp(course->open(course->context, PATIENCE_MS), "cuda") == 0;
    const char *running = course->use(course->context);
    if (fault == CUDA_HOST_NO_FAULT)
        assert_true(begun);
    if (begun && fault != CUDA_HOST_CALL_FAILS) /* which may be one of close */
        assert_string_equal(running, fault == CUDA_HOST_NO_FAULT ? "cuda" : "cpu");
    course->close(course->context);
    check_nothing_left();
}

void oct_cuda_course_run(const struct oct_cuda_course *course, unsigned stride)
{
    oct_cuda_course_fault(course, CUDA_HOST_NO_FAULT, 0);
    const unsigned n_calls = cuda_host_n_calls(), n_operations = cuda_host_n_operations();
    assert_true(n_calls > 50 && n_operations > 25);
    for (unsigned n = 1; n <= n_calls; n += stride + n / 5)
        oct_cuda_course_fault(course, CUDA_HOST_CALL_FAILS, n);
    for (unsigned n = 1; n <= n_operations; n += stride + n / 8)
        oct_cuda_course_fault(course, CUDA_HOST_WORK_FAILS, n);
    for (unsigned n = n_operations; n > n_operations - 11; n -= 2)
        oct_cuda_course_fault(course, CUDA_HOST_WORK_FAILS, n);
}

void oct_cuda_course_hang(const struct oct_cuda_course *course, enum cuda_host_fault fault,
                          unsigned n)
{
    cuda_host_reset(1, MEMORY);
    assert_string_equal(course->open(course->context, DEADLINE_MS), "cuda");
    cuda_host_set_fault(fault, n);
    const double begun = seconds();
    assert_string_equal(course->use(course->context), "cpu");
    course->close(course->context);
    assert_true(seconds() - begun < DEADLINE_MS * 8e-3 + 10);
    let_go();
}
