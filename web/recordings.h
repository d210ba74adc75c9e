/* The closed recordings of a folder, by their names alone: what is not among them cannot be opened,
 * so that no name leads out of the folder. No state; any thread; as long as the disk takes. */
#ifndef OCT_WEB_RECORDINGS_H
#define OCT_WEB_RECORDINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define OCT_WEB_MOST_RECORDINGS 200u

struct oct_web_recording {
    char name[NAME_MAX + 1];
    uint64_t bytes, time_s; /* of the last change */
};

/* Whether that may be the name of a closed recording; no disk is asked. */
bool oct_web_recordings_is_name(const char *name);

/* Fills the newest ones whose names have `of` in them, in letters of either case, the newest first;
 * returns how many. *n_all: how many there are. */
unsigned oct_web_recordings_list(const char *folder, const char *of,
                                 struct oct_web_recording list[OCT_WEB_MOST_RECORDINGS],
                                 unsigned *n_all);

/* Whether a closed recording of that folder has this name: a plain file, no link. */
bool oct_web_recordings_has(const char *folder, const char *name);

#endif
