/* A folder of files that appears under its name only when it is whole: the files are written into a
 * folder beside it, synced, and the folder is renamed. Killed meanwhile, a program leaves that
 * other folder (PATH.new.PID) at most.
 *
 *     init -> { write files into .work } -> publish or discard
 *
 * With force it takes the place of a folder that was made like this one, and of no other: all of it
 * are plain files, one has the name of `mark`, and the others end in `suffix`. */
#ifndef OCT_FORMATS_WHOLE_FOLDER_H
#define OCT_FORMATS_WHOLE_FOLDER_H

#include "pipeline/base/err.h"

#include <stdbool.h>

struct oct_whole_folder {
    char *path; /* as the user named it, without slashes at its end */
    char *work; /* where to write */
    const char *mark, *suffix;
    bool force;
};

/* Whether a program may make the folder `path`. OCT_E_IO: it exists, and there is no force, or it
 * cannot be made there; OCT_E_ARG: it is no such folder. */
enum oct_err oct_whole_folder_may(const char *path, bool force, const char *mark,
                                  const char *suffix, struct oct_error *err);

/* Checks the same and makes the folder .work, empty. mark and suffix outlive *folder, which is
 * empty on error. */
enum oct_err oct_whole_folder_init(struct oct_whole_folder *folder, const char *path, bool force,
                                   const char *mark, const char *suffix, struct oct_error *err);

/* .work/NAME, malloc'd; NULL: out of memory. */
char *oct_whole_folder_file(const struct oct_whole_folder *folder, const char *name);

/* Its files are whole, and closed: gives the folder its name and finishes *folder. On error nothing
 * has changed under the name, and the folder .work is removed. */
enum oct_err oct_whole_folder_publish(struct oct_whole_folder *folder, struct oct_error *err);

/* Removes the folder .work and finishes *folder; of an empty one too. */
void oct_whole_folder_discard(struct oct_whole_folder *folder);

#endif
