/* Small text files that other programs put beside their samples. Any thread. */
#ifndef OCT_FORMATS_INPUT_BESIDE_H
#define OCT_FORMATS_INPUT_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* The path with its last n_end characters replaced: malloc'd, NULL when memory runs out. */
char *oct_beside_name(const char *path, size_t n_end, const char *end);

/* Whether the path ends so, whatever the case of its letters, behind at least one character of the
 * file's name. */
bool oct_beside_ends(const char *path, const char *end);

/* A whole text, malloc'd, with a NUL behind it that *n_bytes (may be NULL) does not count. NULL:
 * there is no such plain file, it cannot be read, or it has more than `most` bytes. */
char *oct_beside_read(const char *path, size_t most, size_t *n_bytes);

#endif
