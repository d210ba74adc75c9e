/* Random numbers by counter: every number is a hash of the seed and of what it is for (scatterer,
 * A-line, sample), so it does not depend on which thread asks, or in which order. */
#ifndef OCT_SYNTH_RANDOM_H
#define OCT_SYNTH_RANDOM_H

#include <math.h>
#include <stdint.h>

#define OCT_PI 3.14159265358979323846

/* What a stream of numbers is for: keeps the parts of the model independent of each other. */
enum oct_stream {
    OCT_STREAM_EYE = 1,
    OCT_STREAM_MOTION,
    OCT_STREAM_CONES,
    OCT_STREAM_VESSELS,
    OCT_STREAM_SCATTER,
    OCT_STREAM_TEXTURE,
    OCT_STREAM_CAMERA,
    OCT_STREAM_NOISE,
    OCT_STREAM_CELL_PATHS,
    OCT_STREAM_CELL_FILM,
    OCT_STREAM_DRUSEN,
    OCT_STREAM_BLINKS,
    OCT_STREAM_FLOW,
};

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t oct_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t oct_hash(uint64_t seed, enum oct_stream stream, int64_t a, int64_t b)
{
    uint64_t h = oct_mix64(seed + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)stream);

    h = oct_mix64(h + UINT64_C(0xd1342543de82ef95) * (uint64_t)a);
    return oct_mix64(h + UINT64_C(0xaf251af3b0f025b5) * (uint64_t)b);
}

/* Uniform in [0, 1). */
static inline double oct_uniform(uint64_t hash)
{
    return (double)(hash >> 11) * 0x1p-53;
}

/* Standard normal (Box-Muller). */
static inline double oct_normal(uint64_t hash)
{
    double u = 1.0 - oct_uniform(hash);
    double v = oct_uniform(oct_mix64(hash ^ UINT64_C(0x9e3779b97f4a7c15)));

    return sqrt(-2.0 * log(u)) * cos(2.0 * OCT_PI * v);
}

/* Smooth value noise in -1..1 over a lattice of unit spacing; `plane` selects one of many. */
float oct_noise2(uint64_t seed, int64_t plane, double x, double y);

#endif
