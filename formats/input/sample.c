#include "formats/input/sample.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static double signed_of(uint64_t bits, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return (double)(int8_t)bits;
    case 2:
        return (double)(int16_t)bits;
    case 4:
        return (double)(int32_t)bits;
    default:
        return (double)(int64_t)bits;
    }
}

double oct_sample_decode(const struct oct_sample_kind *kind, const unsigned char *at)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < kind->bytes; i++)
        bits |= (uint64_t)at[kind->big_endian ? kind->bytes - 1 - i : i] << 8 * i;
    if (kind->kind == 'u')
        return (double)bits;
    if (kind->kind == 'i')
        return signed_of(bits, kind->bytes);
    const uint32_t low = (uint32_t)bits;
    float f32;
    double f64;
    memcpy(&f32, &low, sizeof(f32));
    memcpy(&f64, &bits, sizeof(f64));
    return kind->bytes == 4 ? (double)f32 : f64;
}

float oct_sample_to_float(double value)
{
    return fabs(value) > (double)FLT_MAX ? NAN : (float)value;
}
