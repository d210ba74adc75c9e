/* What a user names as pictures, as a list of files: folders and patterns become the files in them.
 * No state; any thread. */
#ifndef OCT_FORMATS_PATHS_H
#define OCT_FORMATS_PATHS_H

#include "pipeline/base/err.h"

struct oct_paths {
    char **path; /* [n], in order */
    unsigned n;
};

/* In the order of args, each of which becomes
 *   - itself, when there is a file of that name, or nothing that it could be a pattern of;
 *   - of a folder its PNG and TIFF files (by their names; none of its folders, nothing hidden), in
 *     natural order: img2 before img10. OCT_E_ARG: there is none; names what is there instead;
 *   - of a pattern of the shell (*, ?, [...]), in quotes, the files that match, in natural order.
 *     OCT_E_IO: there is none.
 * OCT_E_IO: a folder that cannot be read; OCT_E_NO_MEMORY. *paths is empty on error; the caller
 * finishes it. */
enum oct_err oct_paths_expand(struct oct_paths *paths, const char *const *args, unsigned n_args,
                              struct oct_error *err);
void oct_paths_finish(struct oct_paths *paths); /* of an empty one too */

/* Order of names as people count: runs of digits by their number. Less than 0: a before b; 0: the
 * same name. */
int oct_paths_compare(const char *a, const char *b);

#endif
