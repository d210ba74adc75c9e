/* What a process may still take, by the limits that it is given. */
#include "pipeline/base/memory.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

TEST(it_is_some_and_less_than_the_machine_has)
{
    const char *limit = NULL;
    double kib = NAN;
    FILE *file = fopen("/proc/meminfo", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "MemTotal: %lf kB", &kib), 1);
    fclose(file);
    const double bytes = oct_memory_available_bytes(&limit);
    assert_true(bytes > 0 && bytes < kib * 1024);
    assert_non_null(limit);
}

TEST(a_limit_of_data_is_seen)
{
    struct rlimit before, limit;
    const char *which;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)1 << 20; /* less than is taken already, or little more */
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    const double bytes = oct_memory_available_bytes(&which);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_true(bytes >= 0 && bytes <= 1 << 20);
    assert_string_equal(which, "of the limit of data");
}
