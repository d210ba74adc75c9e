/* Which instruction set is chosen: the best, those below it, and nothing else. */
#include "pipeline/base/simd.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <string.h>

static const char *const names[OCT_N_SIMD] = {"plain", "avx2", "avx512"};

TEST(auto_is_the_best_and_those_below_it_are_had)
{
    const enum oct_simd best = oct_simd_choose("auto");
    assert_true(best < OCT_N_SIMD);
    for (unsigned i = 0; i < OCT_N_SIMD; i++)
        assert_int_equal(oct_simd_choose(names[i]), i <= best ? i : OCT_N_SIMD);
}

TEST(what_is_no_set_is_told)
{
    assert_int_equal(oct_simd_choose("sse9"), OCT_N_SIMD);
    assert_int_equal(oct_simd_choose(""), OCT_N_SIMD);
}

/* By what the kernel says of the processor. */
TEST(the_processor_has_what_is_chosen)
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
