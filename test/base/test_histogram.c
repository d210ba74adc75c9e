/* Percentiles of a histogram, against those of the sorted values. */
#include "test/rig/tap.h"

#include "pipeline/base/histogram.h"

TEST(a_percentile_is_the_first_bin_that_reaches_the_share)
{
    static const uint32_t counts[] = {0, 1, 0, 2, 1, 0}; /* values 1, 3, 3, 4 */
    static const struct {
        double share, bin;
    } cases[] = {{0, 1}, {0.1, 1}, {0.25, 1}, {0.26, 3}, {0.5, 3}, {0.75, 3}, {0.76, 4}, {1, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_true(oct_histogram_percentile(counts, 6, cases[i].share) == cases[i].bin);
}

TEST(an_empty_histogram_has_the_first_bin)
{
    static const uint32_t counts[4];
    assert_true(oct_histogram_percentile(counts, 4, 0.5) == 0);
    assert_true(oct_histogram_percentile(counts, 4, 1) == 0);
}

TEST(one_bin_has_every_share)
{
    static const uint32_t counts[] = {0, 0, 7};
    for (int i = 0; i <= 10; i++)
        assert_true(oct_histogram_percentile(counts, 3, i / 10.0) == 2);
}

/* Four bins of 2^31: the total exceeds 32 bits. */
TEST(a_total_beyond_32_bits_is_counted_whole)
{
    static const uint32_t counts[] = {UINT32_C(1) << 31, UINT32_C(1) << 31, UINT32_C(1) << 31,
                                      UINT32_C(1) << 31};
    assert_true(oct_histogram_percentile(counts, 4, 0.25) == 0);
    assert_true(oct_histogram_percentile(counts, 4, 0.6) == 2);
    assert_true(oct_histogram_percentile(counts, 4, 1) == 3);
}
