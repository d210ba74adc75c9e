/* Values of options that commands on pictures share. */
#ifndef OCT_TOOLS_PICTURE_OPTIONS_H
#define OCT_TOOLS_PICTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* --um "DX" or "DX,DY" as dy, dx: above 0, nothing behind. False: it is neither; um is not to be
 * used then. */
bool oct_picture_option_um(const char *text, double um[2]);

/* --en-face "A:B": depths with A < B. */
bool oct_picture_option_slab(const char *text, uint32_t *first, uint32_t *last);

/* "A:B": two finite numbers. */
bool oct_picture_option_pair(const char *text, double *first, double *second);

/* Whether the last argument is an output: it is named *.h5 or *.hdf5, and an input stands before
 * it. argv[0] is the command's name. */
bool oct_picture_option_has_out(int argc, char **argv);

/* IN... [OUT.h5]: *inputs is [*n_inputs], of argv; *out is NULL where there is none. */
void oct_picture_option_names(int argc, char **argv, const char *const **inputs, unsigned *n_inputs,
                              const char **out);

#endif
