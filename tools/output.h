/* The file that a command makes: never its own input, replaced only with --force, and then only
 * once the new one is whole. */
#ifndef OCT_TOOLS_OUTPUT_H
#define OCT_TOOLS_OUTPUT_H

#include "pipeline/base/err.h"

#include <limits.h>
#include <stdbool.h>

struct oct_output {
    const char *path; /* as the user named it */
    bool force;
    char work[PATH_MAX]; /* where to write: `path`, or with force a name beside it */
};

/* Fills *output; nothing is made yet. `in` is the command's input. OCT_E_ARG: the two are the same
 * file, or the name is too long. OCT_E_IO: it exists already, and there is no force. */
enum oct_err oct_output_init(struct oct_output *output, const char *path, const char *in,
                             bool force, struct oct_error *err);

/* The file at `work` is whole: gives it its name. */
enum oct_err oct_output_publish(const struct oct_output *output, struct oct_error *err);

/* Removes what lies at `work` with this suffix ("", ".part") behind its name. */
void oct_output_discard(const struct oct_output *output, const char *suffix);

#endif
