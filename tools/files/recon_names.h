/* Which recordings are reconstructed, and what each output is called: D/NAME.h5 for .../NAME.raw.
 * No state; any thread. */
#ifndef OCT_TOOLS_RECON_NAMES_H
#define OCT_TOOLS_RECON_NAMES_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct oct_recon_names {
    char **in, **out; /* [n], in the order in which they were given */
    unsigned n;
};

/* in[n] and, unless list is NULL, those of the file `list`, each of which ends with a NUL byte
 * ("-": of standard input). folder: where the outputs will be; it need not exist. OCT_E_ARG: none
 * at all, one that names no file, or two whose outputs would have one name: says which two.
 * OCT_E_IO: the list cannot be read; OCT_E_FORMAT: it has an empty name or ends within one. *names
 * is empty on error; the caller finishes it. */
enum oct_err oct_recon_names_init(struct oct_recon_names *names, const char *const *in, unsigned n,
                                  const char *list, const char *folder, struct oct_error *err);
void oct_recon_names_finish(struct oct_recon_names *names); /* of an empty one too */

/* Reads a whole file; *text is malloc'd, with a NUL behind it that *bytes does not count. At most
 * 1 GB. OCT_E_IO, OCT_E_NO_MEMORY. */
enum oct_err oct_recon_names_read(char **text, size_t *bytes, const char *path,
                                  struct oct_error *err);

/* Makes the folder, and those above it, where they are not there. OCT_E_IO. */
enum oct_err oct_recon_names_make_folder(const char *folder, struct oct_error *err);

#endif
