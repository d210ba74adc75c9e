/* Folders on the disk: a name that was made, changed or removed is safe from a power cut only once
 * its folder is synced. No state; any thread; may take as long as the disk does. */
#ifndef OCT_PIPELINE_BASE_FOLDER_H
#define OCT_PIPELINE_BASE_FOLDER_H

#include "pipeline/base/err.h"

/* Returns OCT_OK also where the file system cannot sync folders (it promises no more). Else
 * OCT_E_IO with a message that begins with the folder. */
enum oct_err oct_folder_sync(const char *folder, struct oct_error *err);

/* The folder in which path lies; it need not exist (any more). OCT_E_NO_MEMORY too. */
enum oct_err oct_folder_sync_parent(const char *path, struct oct_error *err);

/* Returns the name of that folder, malloc'd; "." or "/" where path names none. NULL: no memory. */
char *oct_folder_of(const char *path);

#endif
