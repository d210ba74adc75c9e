/* Which instruction set is chosen: the best, those below it, and nothing else. */
#include "pipeline/base/simd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[OCT_N_SIMD] = {"plain", "avx2", "avx512"};

static void auto_is_the_best_and_those_below_it_are_had(void **state)
{
    const enum oct_simd best = oct_simd_choose("auto");
    assert_true(best < OCT_N_SIMD);
    for (unsigned i = 0; i < OCT_N_SIMD; i++)
        assert_int_equal(oct_simd_choose(names[i]), i <= best ? i : OCT_N_SIMD);
}

static void what_is_no_set_is_told(void **state)
{
    assert_int_equal(oct_simd_choose("sse9"), OCT_N_SIMD);
    assert_int_equal(oct_simd_choose(""), OCT_N_SIMD);
}

/* By what the kernel says of the processor. */
static void the_processor_has_what_is_chosen(void **state)
{
    static char flags[1 << 14];
    FILE *file = fopen("/proc/cpuinfo", "r");
    assert_non_null(file);
    while (fgets(flags, sizeof(flags), file) && strncmp(flags, "flags", 5) != 0)
        ;
    fclose(file);
    const int has[OCT_N_SIMD] = {1, strstr(flags, " avx2") && strstr(flags, " fma"),
                                 strstr(flags, " avx512f") && strstr(flags, " avx512bw") &&
                                     strstr(flags, " avx512dq") && strstr(flags, " avx512vl")};
    for (unsigned i = 0; i < OCT_N_SIMD; i++)
        assert_int_equal(oct_simd_choose(names[i]) == i, (i < 2 || has[1]) && has[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_the_best_and_those_below_it_are_had),
        cmocka_unit_test(what_is_no_set_is_told),
        cmocka_unit_test(the_processor_has_what_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
