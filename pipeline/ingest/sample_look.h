/* What the samples of one A-line look like. Pure; any thread. */
#ifndef OCT_PIPELINE_INGEST_SAMPLE_LOOK_H
#define OCT_PIPELINE_INGEST_SAMPLE_LOOK_H

#include "pipeline/wire/wire.h"

#include <stdbool.h>

enum oct_sample_fault {
    OCT_SAMPLES_FINE,
    OCT_SAMPLES_ZERO,    /* all of them */
    OCT_SAMPLES_STUCK,   /* all alike, and not zero */
    OCT_SAMPLES_FLOAT,   /* halves of 32-bit floats */
    OCT_SAMPLES_SWAPPED, /* high and low byte change places */
    OCT_N_SAMPLE_FAULTS
};
extern const char *const oct_sample_fault_names[OCT_N_SAMPLE_FAULTS];

struct oct_sample_look {
    uint16_t min, max;
    enum oct_sample_fault fault;
};

/* Looks at n samples of the format (u8 or u16, little-endian, at any address). Fewer than 64 are
 * too few to tell floats and swapped bytes by. Swapped bytes are told by the spectrum: read the
 * right way it is smooth, read the wrong way it is noise; a camera that delivers nothing but noise
 * is noise either way and is not blamed. */
struct oct_sample_look oct_samples_look(const void *samples, uint32_t n, uint16_t format);

/* Whether n numbers of so many 16-bit pieces, least significant first, have the halves of floats:
 * the uppermost 16 bits of each, without the sign, lie close to those of the number before, and the
 * lowest far from them. In a spectrum, or noise, both are samples like any other. Without zeros:
 * those are passed over, so that some among floats do not tear their upper halves apart. */
bool oct_samples_halves_differ(const void *samples, size_t n, size_t pieces, bool without_zeros);

#endif
