/* The latency histogram against a sorted array. */
#include "pipeline/base/latency.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>

#define MOST 20000u

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Never too small, and too large by at most a 32nd. */
static void expect_near(uint64_t told, uint64_t right)
{
    if (told < right || told - right > right / 32)
        fail_msg("told %llu, right is %llu", (unsigned long long)told, (unsigned long long)right);
}

static void compare(uint64_t *values, size_t n)
{
    struct oct_latency *latency = calloc(1, sizeof(*latency));
    assert_non_null(latency);
    for (size_t i = 0; i < n; i++)
        oct_latency_add(latency, values[i]);
    struct oct_latency_summary s = oct_latency_summarise(latency);
    qsort(values, n, sizeof(*values), by_size);
    assert_int_equal(s.n, n);
    assert_int_equal(s.max_us, values[n - 1]);
    expect_near(s.p50_us, values[(n * 50 + 99) / 100 - 1]);
    expect_near(s.p99_us, values[(n * 99 + 99) / 100 - 1]);
    assert_true(s.p50_us <= s.p99_us && s.p99_us <= s.max_us);
    free(latency);
}

TEST(percentiles_are_those_of_a_sorted_array_within_a_32nd)
{
    static uint64_t values[MOST];
    struct dice dice = {11};
    for (unsigned bits = 1; bits <= 32; bits++) { /* from 0..1 us to 0..71 minutes */
        for (size_t i = 0; i < MOST; i++)
            values[i] = dice_roll(&dice) >> (64 - 1 - dice_below(&dice, bits));
        compare(values, MOST);
    }
}

TEST(every_number_of_values_has_its_percentiles)
{
    static uint64_t values[300];
    struct dice dice = {12};
    for (size_t n = 1; n <= 300; n++) {
        for (size_t i = 0; i < n; i++)
            values[i] = dice_below(&dice, 100000);
        compare(values, n);
    }
}

TEST(every_value_alone_is_told_exactly)
{
    for (uint64_t value = 0; value <= UINT32_MAX; value += 1 + value / 50) {
        uint64_t one = value;
        compare(&one, 1);
    }
    for (unsigned bit = 6; bit < 32; bit++)
        for (int step = -1; step <= 1; step++) {
            uint64_t one = ((uint64_t)1 << bit) + (uint64_t)(int64_t)step;
            compare(&one, 1);
        }
}

TEST(values_beyond_the_last_bucket_count_and_the_largest_is_kept)
{
    struct oct_latency *latency = calloc(1, sizeof(*latency));
    assert_non_null(latency);
    oct_latency_add(latency, 5);
    oct_latency_add(latency, UINT64_MAX);
    oct_latency_add(latency, (uint64_t)UINT32_MAX + 1);
    struct oct_latency_summary s = oct_latency_summarise(latency);
    assert_int_equal(s.n, 3);
    assert_true(s.max_us == UINT64_MAX);
    assert_true(s.p50_us >= UINT32_MAX && s.p99_us >= UINT32_MAX);
    free(latency);
}

TEST(empty_and_reset_give_zeros)
{
    struct oct_latency *latency = calloc(1, sizeof(*latency));
    assert_non_null(latency);
    for (int round = 0; round < 2; round++) {
        struct oct_latency_summary s = oct_latency_summarise(latency);
        assert_true(s.n == 0 && s.p50_us == 0 && s.p99_us == 0 && s.max_us == 0);
        for (uint64_t value = 1; value; value <<= 1)
            oct_latency_add(latency, value);
        assert_int_equal(oct_latency_summarise(latency).n, 64);
        oct_latency_reset(latency);
    }
    free(latency);
}
