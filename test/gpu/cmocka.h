/* As much of cmocka as the engine suite uses, for GPU machines that do not have it. TAP output. The
 * build puts this folder on the include path only there. */
#ifndef OCT_TEST_GPU_CMOCKA_H
#define OCT_TEST_GPU_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    int (*setup_func)(void **state);
    int (*teardown_func)(void **state);
    void *initial_state;
};

__attribute__((weak)) jmp_buf oct_small_cmocka_out; /* 1: failed, 2: skipped */

static inline void oct_small_cmocka_fail(const char *file, int line, const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    printf("# %s:%d: ", file, line);
    vprintf(what, arguments);
    printf("\n");
    va_end(arguments);
    longjmp(oct_small_cmocka_out, 1);
}

#define fail_msg(...) oct_small_cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define skip() longjmp(oct_small_cmocka_out, 2)
#define assert_true(c) ((c) ? (void)0 : fail_msg("%s", #c))
#define assert_false(c) ((c) ? fail_msg("not wanted: %s", #c) : (void)0)
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b)                                                                     \
    ((long long)(a) == (long long)(b)                                                              \
         ? (void)0                                                                                 \
         : fail_msg("%s is %lld, not %lld", #a, (long long)(a), (long long)(b)))
#define assert_in_range(v, lo, hi)                                                                 \
    assert_true((unsigned long long)(v) >= (unsigned long long)(lo) &&                             \
                (unsigned long long)(v) <= (unsigned long long)(hi))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define assert_string_equal(a, b) assert_true(strcmp(a, b) == 0)

#define cmocka_unit_test(function)                                                                 \
    {                                                                                              \
        .name = #function, .test_func = function                                                   \
    }

int oct_small_cmocka_run(const char *group, const struct CMUnitTest *tests, size_t n);

#define cmocka_run_group_tests_name(group, tests, setup, teardown)                                 \
    oct_small_cmocka_run(group, tests, sizeof(tests) / sizeof((tests)[0]))
#define _cmocka_run_group_tests(group, tests, n, setup, teardown)                                  \
    oct_small_cmocka_run(group, tests, n)

#endif
