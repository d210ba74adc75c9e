/* What octctl recon and octctl batch have in common. No state; any thread. */
#ifndef OCT_TOOLS_RECON_H
#define OCT_TOOLS_RECON_H

#include "pipeline/base/err.h"

#include <stdbool.h>

/* The recordings to reconstruct and their outputs: D/NAME.h5 for .../NAME.raw. */
struct oct_recon_names {
    char **in, **out; /* [n], in the order in which they were given */
    unsigned n;
};

/* in[n] and, unless list is NULL, those of the file `list`, each of which ends with a NUL byte
 * ("-": of standard input). folder: where the outputs will be; it need not exist. OCT_E_ARG: none
 * at all, one that names no file, or two whose outputs would have one name: says which two.
 * OCT_E_IO: the list cannot be read; OCT_E_FORMAT: it has an empty name or ends within one. The
 * caller finishes *names in any case. */
enum oct_err oct_recon_names_init(struct oct_recon_names *names, const char *const *in, unsigned n,
                                  const char *list, const char *folder, struct oct_error *err);
void oct_recon_names_finish(struct oct_recon_names *names); /* of an empty one too */

/* Makes the folder, and those above it, where they are not there. OCT_E_IO. */
enum oct_err oct_recon_make_folder(const char *folder, struct oct_error *err);

/* Whether `path` is a volume with B-scans, which only whole ones are under their names. */
bool oct_recon_is_there(const char *path);

#endif
