/* The files of `octctl synth`: a file gets its name when it is whole; until then it is
 * NAME.synth. */
#ifndef OCT_TOOLS_SYNTH_FILES_H
#define OCT_TOOLS_SYNTH_FILES_H

#include "pipeline/base/err.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum oct_err oct_synth_join(char path[PATH_MAX], const char *stem, const char *suffix,
                            struct oct_error *err);

/* Refuses a name that is taken. Removes what a killed synth left under the temporary names. */
enum oct_err oct_synth_claim(const char *path, char temporary[PATH_MAX], struct oct_error *err);

/* Gives a temporary file its name. */
enum oct_err oct_synth_publish(const char *temporary, const char *path, struct oct_error *err);

/* Removes the temporary files of a volume or of a truth file. */
void oct_synth_discard(const char *temporary);

/* A new file of plain samples; *fd is the caller's to close. */
enum oct_err oct_synth_samples_open(int *fd, const char *path, struct oct_error *err);

/* Appends n samples, little-endian on any machine. `samples` is used up: its bytes may be
 * swapped. */
enum oct_err oct_synth_samples_write(int fd, const char *path, uint16_t *samples, size_t n,
                                     struct oct_error *err);

#endif
