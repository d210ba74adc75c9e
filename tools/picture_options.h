/* Values of options that commands share: one grammar, read in one place (octctl help conventions).
 * `text` NULL: the option was not given, and nothing is stored. Those that return int return 0, or
 * the exit status once they have said what is wrong on stderr. `command`: its name. */
#ifndef OCT_TOOLS_PICTURE_OPTIONS_H
#define OCT_TOOLS_PICTURE_OPTIONS_H

#include "analysis/enface/depths.h"
#include "analysis/param.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* --pixel-um: micrometres from one sample to the next, the fastest axis first: X[,Y] of pictures,
 * D[,L[,B]] of volumes, of which "-" is as it is. um: [n_axes], the fastest axis last; axes that
 * are not given stay as they are, but Y, which is X. */
int oct_picture_pixel_um(const char *command, const char *text, unsigned n_axes, double *um);

/* For struct oct_option's from_was: of "B,L,D" "D,L,B". */
char *oct_picture_axes_reverse(const char *text);

/* --slab. */
int oct_picture_slab(const char *command, const char *text, struct oct_depths *slab);

/* The same of cells, whose plain numbers up to 1 were shares. */
int oct_picture_slab_of_cells(const char *command, const char *text, struct oct_depths *slab);

/* --frames, --lines: "A:B[:STEP]", whole numbers with A < B. */
int oct_picture_span(const char *command, const char *option, const char *text,
                     struct oct_span *span);

/* The option of commands that read films; `slab`: what was given for --slab, or NULL. */
int oct_picture_frames(const char *command, const char *text, const char *slab,
                       struct oct_span *frames);
#define OCT_PICTURE_FRAMES(values, member)                                                         \
    "--frames", "A:B[:STEP]", "of each file from frame A to just before B, every STEP-th (all)",   \
        OCT_OPTION_TEXT, .at = offsetof(values, member)

/* For struct oct_option's from_was: of "N" "N:N+1". */
char *oct_picture_one_frame(const char *text);

/* --roi X,Y,W,H. */
int oct_picture_roi(const char *command, const char *text, struct oct_region *roi);

/* --eye, whatever its case: *eye becomes "OD" or "OS", or "" of "none" if that is allowed. */
int oct_picture_eye(const char *command, const char *text, bool may_be_none, const char **eye);

/* --skip "3,7-9" of n pictures, from 0: *skip becomes [n], 1: left out; the caller frees it; NULL
 * where nothing is given. OCT_E_CONFIG: it is no such list; OCT_E_ARG: there are not so many. */
enum oct_err oct_picture_skip(const char *text, uint64_t n, uint8_t **skip, struct oct_error *err);

/* "A:B": two finite numbers. */
bool oct_picture_option_pair(const char *text, double *first, double *second);

/* Whether the last argument is an output: it is named *.h5 or *.hdf5, and an input stands before
 * it. argv[0] is the command's name. */
bool oct_picture_option_has_out(int argc, char **argv);

#endif
