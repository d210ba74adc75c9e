/* What an HDF5 file is, in words, and which of its datasets can be shown: recordings, what octctl's
 * analyses wrote (results.h), files of other programs.
 *
 * Results say what they are in the attribute `kind` of their root. Older ones have none and are
 * known by their datasets, beside the attribute software. */
#ifndef OCT_FORMATS_CONTENTS_H
#define OCT_FORMATS_CONTENTS_H

#include "pipeline/base/err.h"
#include "pipeline/volume/array.h"

#include <stdbool.h>

struct oct_contents {
    const char *kind;  /* "recording", one of results.h ("layers", "cones"), "result" of one that is
                          not known here; "": of another program. Static */
    const char *words; /* "layers of the retina, by octctl surfaces"; static */
    bool is_result;    /* what octctl made of recordings or pictures */
    struct oct_volume_array_root root;
    /* All datasets of numbers but scales of axes. First those that can be shown, of two axes (a
     * picture) or three (pictures, one a row of the first axis); among them first what the file is
     * for. oct_volume_array_open reads any of them. A recording's /bscans is one, its spectra are
     * not. */
    struct oct_volume_array_entry *datasets; /* [n] */
    unsigned n, n_shown;                     /* n_shown <= n */
};

/* Fills *contents, which the caller finishes in any case. OCT_E_IO: cannot be opened; OCT_E_FORMAT:
 * not HDF5, damaged, or a folder or pipe; OCT_E_NO_MEMORY. */
enum oct_err oct_contents_look(struct oct_contents *contents, const char *path,
                               struct oct_error *err);
void oct_contents_finish(struct oct_contents *contents);

/* Reads every value of every dataset. *bytes: how many that were. The first that cannot be read is
 * the error. */
enum oct_err oct_contents_read(const struct oct_contents *contents, const char *path,
                               uint64_t *bytes, struct oct_error *err);

#endif
