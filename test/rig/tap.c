#define _GNU_SOURCE /* program_invocation_short_name */
#include "test/rig/tap.h"

#include <errno.h>

/* The section of that name, by the linker. */
extern const struct CMUnitTest __start_test_cases[], __stop_test_cases[];

int test_run(void)
{
    return _cmocka_run_group_tests(program_invocation_short_name, __start_test_cases,
                                   (size_t)(__stop_test_cases - __start_test_cases),
                                   &test_group_setup ? test_group_setup : NULL,
                                   &test_group_teardown ? test_group_teardown : NULL);
}
