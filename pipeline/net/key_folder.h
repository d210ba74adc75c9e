/* A folder of public keys, NAME.key each, as it was when it was last read.
 *
 * Access is judged file by file, so that one unreadable file does not affect the others, and so
 * that a key is allowed only by a file that was seen to hold it:
 *
 *   1. A file that is not there any more is gone, whatever else fails.
 *   2. A file that cannot be read now lets nobody in, whatever it held before.
 *   3. Where only this process is short of something (descriptors, memory), so that no file can be
 *      opened, one of which stat says that it is the one that was read, unchanged, holds what it
 *      held.
 *   4. Without the listing (it fails, or there are more files than OCT_MOST_KEY_FILES) the files
 *      that are known are looked at by their names, as above; no other is taken.
 *
 * One thread at a time. Nothing is allocated but by init, and what opendir(3) takes. */
#ifndef OCT_PIPELINE_NET_KEY_FOLDER_H
#define OCT_PIPELINE_NET_KEY_FOLDER_H

#include "pipeline/net/curve.h"

#include <limits.h>
#include <stdint.h>

/* Files whose names end in ".key", whatever they hold. */
#define OCT_MOST_KEY_FILES 4096

enum oct_key_file_state {
    OCT_KEY_FILE_HOLDS,      /* a key */
    OCT_KEY_FILE_NONE,       /* was read: it holds no key */
    OCT_KEY_FILE_UNREADABLE, /* cannot be read now: its content is unknown */
};

/* Identifies a file and its content: another file, or the same after a write, has another mark. */
struct oct_file_mark {
    uint64_t device, inode, bytes;
    int64_t modified_ns, changed_ns;
};

struct oct_key_file {
    char name[NAME_MAX + 1];       /* without ".key" */
    char key[OCT_CURVE_KEY_BYTES]; /* Z85; "": it holds none */
    enum oct_key_file_state state;
    struct oct_file_mark mark; /* if it holds a key */
};

enum oct_key_listing {
    OCT_KEYS_LISTED,
    OCT_KEYS_NO_FOLDER, /* there is none of this name */
    OCT_KEYS_UNLISTED,  /* it cannot be listed now */
    OCT_KEYS_TOO_MANY,  /* files */
};

struct oct_key_folder {
    struct oct_key_file *files; /* [OCT_MOST_KEY_FILES], n of them used, in the order of strcmp */
    uint32_t n;
    uint32_t n_unreadable; /* of these */
    enum oct_key_listing listing;
};

/* OCT_E_NO_MEMORY. An empty folder. */
enum oct_err oct_key_folder_init(struct oct_key_folder *keys, struct oct_error *err);

/* One of zeros is fine. */
void oct_key_folder_finish(struct oct_key_folder *keys);

/* Reads the folder at `path`. before: as it was when it was last read (empty: never). For each file
 * that holds no key or cannot be read calls complain(context, file, text) (NULL: does not), at
 * every reading. Errors say why there is no complete listing: OCT_E_CONFIG for a folder that does
 * not exist or has too many files, OCT_E_IO; `keys` is filled nevertheless, by rule 4. */
enum oct_err oct_key_folder_read(struct oct_key_folder *keys, const struct oct_key_folder *before,
                                 const char *path,
                                 void (*complain)(void *context, const struct oct_key_file *file,
                                                  const char *text),
                                 void *context, struct oct_error *err);

/* The file of that name; NULL: there is none. */
const struct oct_key_file *oct_key_folder_find(const struct oct_key_folder *keys, const char *name);

#endif
