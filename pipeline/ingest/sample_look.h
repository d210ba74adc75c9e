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
    OCT_SAMPLES_SWAPPED, /* high and low byte change places; 12 bits packed: as Mono12Packed */
    OCT_N_SAMPLE_FAULTS
};
extern const char *const oct_sample_fault_names[OCT_N_SAMPLE_FAULTS];

struct oct_sample_look {
    uint16_t min, max;
    enum oct_sample_fault fault;
};

/* Looks at n samples of the format (u16 little-endian; at any address). Fewer than 64 are
 * too few to recognise floats and swapped bytes. Swapped bytes are recognised by the spectrum: in
 * the right order it is smooth, in the wrong order it is noise; a camera that delivers only noise
 * looks the same either way and is not reported. */
struct oct_sample_look oct_samples_look(const void *samples, uint32_t n, uint16_t format);

/* Whether n numbers of so many 16-bit pieces, least significant first, have the halves of floats:
 * the uppermost 16 bits of each, without the sign, lie close to those of the number before, and the
 * lowest far from them. In a spectrum, or noise, both are samples like any other. Zeros are
 * skipped, so that a few among floats do not separate their upper halves. */
bool oct_samples_halves_differ(const void *samples, size_t n, size_t pieces, bool without_zeros);

#endif
