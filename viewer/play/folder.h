/* The recordings of a folder, in the order in which people count: scan2.h5 before scan10.h5. No
 * state; any thread. */
#ifndef OCT_VIEWER_PLAY_FOLDER_H
#define OCT_VIEWER_PLAY_FOLDER_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether there is something of that name; PATH.part: a recording that is still being written. */
bool oct_play_folder_has(const char *path);
bool oct_play_folder_is_written(const char *path);

/* Writes into `found` the recording that stands `by` places after (before: negative) `path` in the
 * order of its folder; path itself need not be there. Files that are still being written have
 * another name and do not count. OCT_E_IO: the folder cannot be read; OCT_E_STATE: there is none
 * there: path is the first or the last one. */
enum oct_err oct_play_folder_neighbour(const char *path, int by, char *found, size_t found_bytes,
                                       struct oct_error *err);

/* The how many-th path is among n; both 0 where the folder cannot be read. */
void oct_play_folder_place(const char *path, unsigned *place, unsigned *n);

#endif
