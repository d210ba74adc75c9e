#define _GNU_SOURCE /* program_invocation_short_name */
#include "test/rig/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The section of that name, by the linker. */
extern const struct CMUnitTest __start_test_cases[], __stop_test_cases[];

int test_run(void)
{
    const char *within = getenv("TMPDIR");
    char top[4096], folder[4096], remove[4200];
    snprintf(folder, sizeof(folder), "%s/test.XXXXXX", within ? within : "/tmp");
    if (!getcwd(top, sizeof(top)) || !mkdtemp(folder) || chdir(folder))
        return 1;
    setenv("OCT_TOP", top, 0);
    const int n_failed = _cmocka_run_group_tests(program_invocation_short_name, __start_test_cases,
                                                 (size_t)(__stop_test_cases - __start_test_cases),
                                                 &test_group_setup ? test_group_setup : NULL,
                                                 &test_group_teardown ? test_group_teardown : NULL);
    snprintf(remove, sizeof(remove), "rm -rf '%s'", folder);
    return n_failed + (chdir(top) || system(remove));
}
