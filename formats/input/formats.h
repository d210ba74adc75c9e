/* The formats, a row each of the table in find.c. Private to this room and its tests. */
#ifndef OCT_FORMATS_INPUT_FORMATS_H
#define OCT_FORMATS_INPUT_FORMATS_H

#include "formats/input/input.h"

extern const struct oct_input_ops oct_input_npy, oct_input_thorlabs, oct_input_octproz,
    oct_input_octview, oct_input_vortex, oct_input_hdf5;

#endif
