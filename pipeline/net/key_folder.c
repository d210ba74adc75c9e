#define _GNU_SOURCE /* st_mtim */
#include "pipeline/net/key_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".key"
#define ENDING_BYTES (sizeof(ENDING) - 1)

enum oct_err oct_key_folder_init(struct oct_key_folder *keys, struct oct_error *err)
{
    *keys = (struct oct_key_folder){.files = calloc(OCT_MOST_KEY_FILES, sizeof(*keys->files))};
    return keys->files ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "security: out of memory");
}

void oct_key_folder_finish(struct oct_key_folder *keys)
{
    free(keys->files);
    *keys = (struct oct_key_folder){0};
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct oct_key_file *)a)->name, ((const struct oct_key_file *)b)->name);
}

static int order_file(const void *name, const void *file)
{
    return strcmp(name, ((const struct oct_key_file *)file)->name);
}

const struct oct_key_file *oct_key_folder_find(const struct oct_key_folder *keys, const char *name)
{
    return keys->n ? bsearch(name, keys->files, keys->n, sizeof(*keys->files), order_file) : NULL;
}

static bool is_public_key_name(const char *name)
{
    size_t n = strlen(name);
    return n > ENDING_BYTES && n <= NAME_MAX && name[0] != '.' &&
           strcmp(name + n - ENDING_BYTES, ENDING) == 0;
}

/* Lists the names; reads no file. */
static enum oct_err list(struct oct_key_folder *keys, DIR *folder, const char *path,
                         struct oct_error *err)
{
    const struct dirent *entry;
    keys->n = 0;
    while (errno = 0, (entry = readdir(folder))) {
        if (!is_public_key_name(entry->d_name))
            continue;
        if (keys->n == OCT_MOST_KEY_FILES) {
            keys->listing = OCT_KEYS_TOO_MANY;
            return oct_fail_key(
                err, OCT_E_CONFIG, "security.allowed",
                "security.allowed: %s: more than %d keys: take out those that nobody "
                "uses",
                path, OCT_MOST_KEY_FILES);
        }
        struct oct_key_file *file = &keys->files[keys->n++];
        size_t n = strlen(entry->d_name) - ENDING_BYTES;
        memcpy(file->name, entry->d_name, n);
        file->name[n] = '\0';
    }
    if (errno) {
        keys->listing = OCT_KEYS_UNLISTED;
        return oct_fail_key_errno(err, OCT_E_IO, "security.allowed", errno,
                                  "security.allowed: %s: cannot list the folder of keys", path);
    }
    qsort(keys->files, keys->n, sizeof(*keys->files), by_name);
    return OCT_OK;
}

static DIR *open_folder(struct oct_key_folder *keys, const char *path, enum oct_err *code,
                        struct oct_error *err)
{
    DIR *folder;
    do
        folder = opendir(path);
    while (!folder && errno == EINTR);
    bool is_none = errno == ENOENT || errno == ENOTDIR;
    keys->listing = folder ? OCT_KEYS_LISTED : is_none ? OCT_KEYS_NO_FOLDER : OCT_KEYS_UNLISTED;
    if (!folder)
        *code = oct_fail_key_errno(err, is_none || errno == EACCES ? OCT_E_CONFIG : OCT_E_IO,
                                   "security.allowed", errno,
                                   "security.allowed: %s: cannot read the folder of keys", path);
    return folder;
}

/* ---- one file ---- */

static struct oct_file_mark mark_of(const struct stat *about)
{
    return (struct oct_file_mark){
        .device = (uint64_t)about->st_dev,
        .inode = (uint64_t)about->st_ino,
        .bytes = (uint64_t)about->st_size,
        .modified_ns = about->st_mtim.tv_sec * INT64_C(1000000000) + about->st_mtim.tv_nsec,
        .changed_ns = about->st_ctim.tv_sec * INT64_C(1000000000) + about->st_ctim.tv_nsec,
    };
}

static bool is_same(const struct oct_file_mark *a, const struct oct_file_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

/* Errors of this process (no descriptors, no memory), which say nothing about the file. */
static bool is_shortage(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

enum verdict { IS_GONE, IS_THERE };

/* Rule 3: no file can be opened; stat needs no descriptor. */
static enum verdict judge_unopened(struct oct_key_file *file, int folder, const char *path,
                                   const struct oct_key_file *before)
{
    struct stat about;
    if (fstatat(folder, path, &about, 0) != 0)
        return errno == ENOENT ? IS_GONE : IS_THERE;
    struct oct_file_mark mark = mark_of(&about);
    if (before && before->state == OCT_KEY_FILE_HOLDS && is_same(&mark, &before->mark))
        *file = *before;
    return IS_THERE;
}

/* Fills all but the name, which is given. folder: path is relative to it. */
static enum verdict judge_key_file(struct oct_key_file *file, int folder, const char *path,
                                   const struct oct_key_file *before, struct oct_error *why)
{
    struct stat about;
    file->state = OCT_KEY_FILE_UNREADABLE;
    file->key[0] = '\0';
    enum oct_err code = oct_curve_read_public_at(folder, path, file->key, &about, why);
    if (code == OCT_OK) {
        file->state = OCT_KEY_FILE_HOLDS;
        file->mark = mark_of(&about);
        return IS_THERE;
    }
    file->key[0] = '\0';
    if (code == OCT_E_FORMAT)
        file->state = OCT_KEY_FILE_NONE;
    else if (errno == ENOENT || errno == ENOTDIR)
        return IS_GONE;
    else if (is_shortage(errno))
        return judge_unopened(file, folder, path, before);
    return IS_THERE;
}

/* ---- the folder ---- */

/* folder: -1: it could not be opened. */
static int path_of(char path[PATH_MAX], int folder, const char *folder_path, const char *name)
{
    int n = folder < 0 ? snprintf(path, PATH_MAX, "%s/%s" ENDING, folder_path, name)
                       : snprintf(path, PATH_MAX, "%s" ENDING, name);
    return n < PATH_MAX ? 0 : -1;
}

enum oct_err oct_key_folder_read(struct oct_key_folder *keys, const struct oct_key_folder *before,
                                 const char *path,
                                 void (*complain)(void *context, const struct oct_key_file *file,
                                                  const char *text),
                                 void *context, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    DIR *open = open_folder(keys, path, &code, err);
    int folder = open ? dirfd(open) : -1;
    uint32_t n = 0;
    if (open)
        code = list(keys, open, path, err);
    const struct oct_key_folder *names = keys->listing == OCT_KEYS_LISTED ? keys : before;
    keys->n_unreadable = 0;
    for (uint32_t i = 0; i < names->n; i++) {
        struct oct_error why = {.text = "security.allowed: the path is too long"};
        struct oct_key_file *file = &keys->files[n]; /* n <= i: a name is copied before it is
                                                        overwritten */
        char file_path[PATH_MAX];
        if (file != &names->files[i])
            memcpy(file->name, names->files[i].name, sizeof(file->name));
        const struct oct_key_file *then = oct_key_folder_find(before, file->name);
        file->state = OCT_KEY_FILE_UNREADABLE;
        file->key[0] = '\0';
        if (path_of(file_path, folder, path, file->name) == 0 &&
            judge_key_file(file, folder < 0 ? AT_FDCWD : folder, file_path, then, &why) == IS_GONE)
            continue;
        n++;
        keys->n_unreadable += file->state == OCT_KEY_FILE_UNREADABLE;
        if (complain && file->state != OCT_KEY_FILE_HOLDS)
            complain(context, file, why.text);
    }
    keys->n = n;
    if (open)
        closedir(open);
    return code;
}
