#include "pipeline/ingest/sample_look.h"

#include <stdlib.h>

#define LEAST_SAMPLES 64
/* Steps from sample to sample over the range of the line, on average: a third for noise. */
#define NOISY 0.2
#define SMOOTH 0.05
#define ROUGHER 4
#define FARTHER 8.0 /* times, halves of floats from each other */

const char *const oct_sample_fault_names[OCT_N_SAMPLE_FAULTS] = {
    [OCT_SAMPLES_FINE] = "fine",
    [OCT_SAMPLES_ZERO] = "zero",
    [OCT_SAMPLES_STUCK] = "stuck",
    [OCT_SAMPLES_FLOAT] = "float",
    [OCT_SAMPLES_SWAPPED] = "byte_swapped",
};

static uint16_t sample_at(const unsigned char *bytes, uint32_t i, uint16_t format)
{
    if (format == OCT_LINES_U8)
        return bytes[i];
    if (format == OCT_LINES_12P && i % 2 == 0)
        return (uint16_t)(bytes[i / 2 * 3] | (bytes[i / 2 * 3 + 1] & 15) << 8);
    if (format == OCT_LINES_12P)
        return (uint16_t)(bytes[i / 2 * 3 + 1] >> 4 | bytes[i / 2 * 3 + 2] << 4);
    return (uint16_t)(bytes[2 * (uint64_t)i] | bytes[2 * (uint64_t)i + 1] << 8);
}

/* The sample as it would be in the other order: big-endian, or packed as GigE Vision's
 * Mono12Packed: upper eight bits, the lower four of both, upper eight bits. */
static uint16_t swapped_at(const unsigned char *bytes, uint32_t i, uint16_t format)
{
    const uint16_t x = sample_at(bytes, i, format);
    if (format != OCT_LINES_12P)
        return (uint16_t)(x << 8 | x >> 8);
    const unsigned char *pair = bytes + i / 2 * 3;
    return (uint16_t)(i % 2 == 0 ? pair[0] << 4 | (pair[1] & 15) : pair[2] << 4 | pair[1] >> 4);
}

/* The result of one pass over the line. */
struct run {
    uint16_t min, max;
    uint64_t steps; /* sum of |x[i] - x[i - 1]| */
};

static void run_begin(struct run *run, uint16_t x)
{
    *run = (struct run){.min = x, .max = x};
}

static void run_add(struct run *run, uint16_t before, uint16_t x)
{
    run->min = x < run->min ? x : run->min;
    run->max = x > run->max ? x : run->max;
    run->steps += x > before ? (uint64_t)(x - before) : (uint64_t)(before - x);
}

static double roughness(const struct run *run, uint32_t n)
{
    return run->max > run->min ? (double)run->steps / (run->max - run->min) / (n - 1) : 0;
}

static bool is_zero(const unsigned char *number, size_t pieces)
{
    for (size_t i = 0; i < 2 * pieces; i++)
        if (number[i])
            return false;
    return true;
}

bool oct_samples_halves_differ(const void *samples, size_t n, size_t pieces, bool without_zeros)
{
    double within = 0, between = 0;
    int before = -1;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *number = (const unsigned char *)samples + 2 * i * pieces;
        if (without_zeros && is_zero(number, pieces))
            continue;
        int lowest = sample_at(number, 0, OCT_LINES_U16);
        int uppermost = sample_at(number, (uint32_t)pieces - 1, OCT_LINES_U16);
        between += before < 0 ? 0 : abs((uppermost & 0x7fff) - before);
        within += abs(uppermost - lowest);
        before = uppermost & 0x7fff;
    }
    return within > FARTHER * between;
}

/* Upper halves of floats from 1 to 65535 lie between 0x3f80 and 0x4780, those of zeros are zero;
 * lower halves are any bits. */
static bool looks_float(const unsigned char *bytes, uint32_t n, const struct run *as_is)
{
    uint32_t n_upper = 0;
    if (as_is->max < 0x3f80)
        return false;
    for (uint32_t i = 1; i < n; i += 2) {
        uint16_t upper = sample_at(bytes, i, OCT_LINES_U16);
        if (upper != 0 && (upper < 0x3f80 || upper > 0x4780))
            return false;
        n_upper += upper != 0;
    }
    return n_upper > n / 4 && roughness(as_is, n) > NOISY &&
           oct_samples_halves_differ(bytes, n / 2, 2, true);
}

struct oct_sample_look oct_samples_look(const void *samples, uint32_t n, uint16_t format)
{
    const unsigned char *bytes = samples;
    struct run as_is = {0}, other = {0};
    uint16_t before = 0, other_before = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t x = sample_at(bytes, i, format), y = swapped_at(bytes, i, format);
        if (i == 0) {
            run_begin(&as_is, x);
            run_begin(&other, y);
        } else {
            run_add(&as_is, before, x);
            run_add(&other, other_before, y);
        }
        before = x;
        other_before = y;
    }
    struct oct_sample_look look = {as_is.min, as_is.max, OCT_SAMPLES_FINE};
    if (as_is.min == as_is.max)
        look.fault = as_is.max == 0 ? OCT_SAMPLES_ZERO : OCT_SAMPLES_STUCK;
    else if (n < LEAST_SAMPLES || format == OCT_LINES_U8)
        return look;
    else if (format == OCT_LINES_U16 && looks_float(bytes, n, &as_is))
        look.fault = OCT_SAMPLES_FLOAT;
    else if (roughness(&other, n) < SMOOTH && roughness(&as_is, n) > ROUGHER * roughness(&other, n))
        look.fault = OCT_SAMPLES_SWAPPED;
    return look;
}
