/* One sample as a file keeps it. Any thread. */
#ifndef OCT_FORMATS_INPUT_SAMPLE_H
#define OCT_FORMATS_INPUT_SAMPLE_H

#include <stdbool.h>

struct oct_sample_kind {
    char kind;      /* 'u' and 'i': integers without and with a sign; 'f': IEEE 754 */
    unsigned bytes; /* 1, 2, 4, 8; of 'f' 4, 8 */
    bool big_endian;
};

double oct_sample_decode(const struct oct_sample_kind *kind, const unsigned char *at);

/* Rounded once; NaN: beyond what a float holds. */
float oct_sample_to_float(double value);

#endif
