/* Order, parabolas, pictures and samples against what the definitions say. */
#include "numeric/order.h"
#include "numeric/parabola.h"
#include "numeric/picture.h"
#include "numeric/samples.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 300u

static void fill(float *values, size_t n, uint32_t seed, unsigned n_different)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(oct_oracle_random(&seed) % n_different) - (float)n_different / 3;
}

/* By definition: less than it are at most `rank`, less or equal more than `rank`. */
static bool has_rank(const float *values, size_t n, float value, size_t rank)
{
    size_t n_less = 0, n_equal = 0;
    for (size_t i = 0; i < n; i++) {
        n_less += values[i] < value;
        n_equal += values[i] == value;
    }
    return n_less <= rank && rank < n_less + n_equal;
}

TEST(ranks_are_those_of_the_sorted_values)
{
    float values[N], sorted[N], selected[N];
    double doubles[N];
    const unsigned different[] = {1, 2, 7, 100000};
    for (size_t n = 1; n <= N; n = n < 12 ? n + 1 : 3 * n - 5)
        for (unsigned d = 0; d < 4; d++) {
            fill(values, n, (uint32_t)n * 5 + d, different[d]);
            memcpy(sorted, values, sizeof(values));
            oct_floats_sort(sorted, n);
            for (size_t i = 0; i < n; i++)
                doubles[i] = (double)values[i] * 1e-300; /* no float has it */
            oct_doubles_sort(doubles, n);
            for (size_t rank = 0; rank < n; rank++) {
                assert_true(has_rank(values, n, sorted[rank], rank));
                assert_true(doubles[rank] == (double)sorted[rank] * 1e-300);
                memcpy(selected, values, sizeof(values));
                assert_true(oct_floats_select(selected, n, rank) == sorted[rank]);
            }
        }
}

TEST(a_median_is_the_middle_or_the_mean_of_both)
{
    float odd[] = {3, -1, 7}, even[] = {9, 1, 4, 2}, with_infinity[] = {INFINITY, 1, 2};
    double doubles[] = {0.25, 8, 0.5, 0.125};
    assert_true(oct_floats_median(odd, 3) == 3);
    assert_true(oct_floats_median(even, 4) == 3);
    assert_true(oct_floats_median(with_infinity, 3) == 2);
    assert_true(oct_doubles_median(doubles, 4) == 0.375);
    assert_true(isnan(oct_floats_median(NULL, 0)) && isnan(oct_doubles_median(NULL, 0)));
}

TEST(a_parabola_has_its_top_where_it_is)
{
    for (double top = -0.45; top <= 0.46; top += 0.05)
        for (double bend = 0.01; bend < 200; bend *= 3) {
            double v[3];
            for (int i = 0; i < 3; i++)
                v[i] = 2 - bend * (i - 1 - top) * (i - 1 - top);
            assert_true(fabs(oct_parabola_top(v[0], v[1], v[2]) - top) < 1e-11);
        }
    assert_true(oct_parabola_top(0, 5, 9) == 0.5 && oct_parabola_top(9, 5, 0) == -0.5);
    assert_true(oct_parabola_top(1, 1, 1) == 0 && oct_parabola_top(3, 1, 2) == 0);
    assert_true(oct_parabola_top(NAN, 1, 0) == 0 && oct_parabola_top(0, NAN, 0) == 0);
}

/* ---- pictures ---- */

static void make(struct oct_picture *p, uint32_t height, uint32_t width, double mean, bool masked)
{
    uint32_t random = height * 31 + width;
    assert_int_equal(oct_picture_init(p, height, width, masked, NULL), OCT_OK);
    for (size_t i = 0; i < (size_t)height * width; i++) {
        p->pixels[i] = (float)(mean + oct_oracle_random(&random) % 1000 / 10.0);
        if (masked && oct_oracle_random(&random) % 5 == 0) {
            p->valid[i] = 0;
            p->pixels[i] = NAN;
        }
    }
}

TEST(statistics_are_those_of_long_sums)
{
    const uint32_t sides[][2] = {{1, 1}, {3, 5}, {16, 16}, {41, 67}};
    for (unsigned s = 0; s < 4; s++)
        for (unsigned masked = 0; masked < 2; masked++)
            for (double mean = 0; mean <= 60000; mean += 60000) {
                struct oct_picture p;
                struct oct_picture_statistics is;
                long double sum = 0, squares = 0, n = 0, least = INFINITY, most = -INFINITY;
                make(&p, sides[s][0], sides[s][1], mean, masked);
                const size_t n_pixels = (size_t)p.height * p.width;
                p.pixels[0] = 7;
                if (masked)
                    p.valid[0] = 1;
                oct_picture_look(&p, &is);
                for (size_t i = 0; i < n_pixels; i++)
                    if (oct_picture_is_valid(&p, i)) {
                        const long double v = (long double)p.pixels[i];
                        sum += v;
                        n++;
                        least = v < least ? v : least;
                        most = v > most ? v : most;
                    }
                for (size_t i = 0; i < n_pixels; i++)
                    if (oct_picture_is_valid(&p, i))
                        squares += ((long double)p.pixels[i] - sum / n) *
                                   ((long double)p.pixels[i] - sum / n);
                assert_true(is.n_valid == (uint64_t)n);
                assert_true(fabs(is.mean - (double)(sum / n)) <= 1e-12 * (1 + mean));
                assert_true(fabs(is.variance - (double)(squares / n)) <=
                            1e-9 * (double)(squares / n));
                assert_true(is.least == (double)least && is.most == (double)most);
                oct_picture_finish(&p);
            }
}

TEST(what_is_not_finite_is_masked)
{
    struct oct_picture p;
    make(&p, 4, 4, 0, false);
    assert_int_equal(oct_picture_mask_not_finite(&p, NULL), OCT_OK);
    assert_null(p.valid);
    p.pixels[5] = NAN;
    p.pixels[9] = -INFINITY;
    assert_int_equal(oct_picture_mask_not_finite(&p, NULL), OCT_OK);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(oct_picture_is_valid(&p, i), i != 5 && i != 9);
    oct_picture_finish(&p);
}

TEST(a_copy_is_equal_and_a_transpose_has_its_mask)
{
    for (unsigned masked = 0; masked < 2; masked++) {
        struct oct_picture p, copy;
        make(&p, 5, 9, 3, masked);
        assert_int_equal(oct_picture_copy(&copy, &p, NULL), OCT_OK);
        assert_memory_equal(copy.pixels, p.pixels, 45 * sizeof(float));
        assert_int_equal(copy.valid != NULL, masked);
        assert_int_equal(oct_picture_transpose(&copy, NULL), OCT_OK);
        assert_true(copy.height == 9 && copy.width == 5);
        for (size_t y = 0; y < 5; y++)
            for (size_t x = 0; x < 9; x++) {
                assert_memory_equal(&copy.pixels[x * 5 + y], &p.pixels[y * 9 + x], sizeof(float));
                assert_int_equal(oct_picture_is_valid(&copy, x * 5 + y),
                                 oct_picture_is_valid(&p, y * 9 + x));
            }
        oct_picture_finish(&copy);
        oct_picture_finish(&p);
    }
}

/* Mono12p by its definition, at every length of lines and every address; nothing is read or written
 * beyond (the memory ends there). */
TEST(samples_of_12_bits_packed_are_those_of_the_definition)
{
    uint32_t seed = 9;
    for (size_t n = 0; n <= 70; n += 2)
        for (size_t shift = 0; shift < 3; shift++) {
            uint8_t *memory = malloc(shift + n / 2 * 3 + 1), *bytes = memory + shift;
            uint16_t *samples = malloc(n * sizeof(*samples) + 1);
            assert_true(memory && samples);
            for (size_t i = 0; i < n / 2 * 3; i++)
                bytes[i] = (uint8_t)oct_oracle_random(&seed);
            assert_int_equal(oct_samples_bytes(OCT_LINES_12P, n), n / 2 * 3);
            oct_samples_unpack(samples, bytes, n, OCT_LINES_12P);
            for (size_t i = 0; i < n; i += 2) {
                const uint8_t *b = bytes + i / 2 * 3;
                assert_int_equal(samples[i], b[0] | (b[1] & 15) << 8);
                assert_int_equal(samples[i + 1], b[1] >> 4 | b[2] << 4);
            }
            assert_int_equal(oct_samples_pack(samples, samples, n, OCT_LINES_12P), 0);
            assert_memory_equal(samples, bytes, n / 2 * 3);
            free(memory);
            free(samples);
        }
}

TEST(samples_beyond_the_bits_are_counted)
{
    const uint16_t samples[] = {0, 255, 256, 4095, 4096, 65535};
    uint16_t back[6];
    uint8_t bytes[12];
    assert_int_equal(oct_samples_pack(bytes, samples, 6, OCT_LINES_U8), 4);
    oct_samples_unpack(back, bytes, 6, OCT_LINES_U8);
    assert_int_equal(back[1], 255);
    assert_int_equal(back[2], 0);
    assert_int_equal(oct_samples_pack(bytes, samples, 6, OCT_LINES_12P), 2);
    oct_samples_unpack(back, bytes, 6, OCT_LINES_12P);
    assert_int_equal(back[3], 4095);
    assert_int_equal(back[4], 0);
    assert_int_equal(oct_samples_pack(bytes, samples, 6, OCT_LINES_U16), 0);
    assert_memory_equal(bytes, samples, sizeof(samples));
    assert_false(oct_samples_fit(OCT_LINES_12P, 7));
    assert_true(oct_samples_fit(OCT_LINES_U8, 7));
}
