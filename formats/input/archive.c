#include "formats/input/archive.h"

#include <stdlib.h>
#include <string.h>

#include <zip.h>

#define MOST_RATIO 1032u /* of deflate */
#define SLACK_BYTES 1024u

struct oct_archive {
    zip_t *zip;
    const char *name;
    uint64_t file_bytes, n_packed; /* of the entries that were looked up */
};

enum oct_err oct_archive_open(struct oct_archive **archive, const char *path, const char *name,
                              uint64_t file_bytes, struct oct_error *err)
{
    int code = 0;
    *archive = NULL;
    struct oct_archive *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", name);
    a->name = name;
    a->file_bytes = file_bytes;
    a->zip = zip_open(path, ZIP_RDONLY, &code);
    if (!a->zip) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const enum oct_err e = oct_fail(
            err, OCT_E_FORMAT, "%s: cannot be read as a ZIP archive: %s: it was cut, or damaged",
            name, zip_error_strerror(&error));
        zip_error_fini(&error);
        free(a);
        return e;
    }
    *archive = a;
    return OCT_OK;
}

void oct_archive_close(struct oct_archive *archive)
{
    if (!archive)
        return;
    zip_discard(archive->zip);
    free(archive);
}

static zip_int64_t locate(const struct oct_archive *a, const char *entry_name)
{
    zip_int64_t index = zip_name_locate(a->zip, entry_name, 0);
    char *other = index < 0 ? strdup(entry_name) : NULL;
    if (other) {
        for (char *c = other; *c; c++)
            *c = *c == '\\' ? '/' : *c == '/' ? '\\' : *c;
        index = zip_name_locate(a->zip, other, 0);
    }
    free(other);
    return index;
}

enum oct_err oct_archive_find(struct oct_archive *archive, const char *entry_name,
                              struct oct_archive_entry *entry, bool *found, struct oct_error *err)
{
    const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    zip_stat_t about;
    const zip_int64_t index = locate(archive, entry_name);
    *found = index >= 0;
    if (index < 0)
        return OCT_OK;
    if (zip_stat_index(archive->zip, (zip_uint64_t)index, 0, &about) != 0 ||
        (about.valid & wanted) != wanted)
        return oct_fail(err, OCT_E_FORMAT, "%s: %s: the archive does not say its size",
                        archive->name, entry_name);
    if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %s: packed by method %u: only stored and deflated entries are read",
                        archive->name, entry_name, (unsigned)about.comp_method);
    if (about.comp_size > archive->file_bytes - archive->n_packed ||
        (about.size > SLACK_BYTES && (about.size - SLACK_BYTES) / MOST_RATIO > about.comp_size))
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: %s: the archive says more bytes than it can have: it is damaged, or made to "
            "do harm",
            archive->name, entry_name);
    archive->n_packed += about.comp_size;
    *entry = (struct oct_archive_entry){(uint64_t)index, about.size};
    return OCT_OK;
}

static enum oct_err refuse(const struct oct_archive *a, const struct oct_archive_entry *entry,
                           const char *why, struct oct_error *err)
{
    const char *entry_name = zip_get_name(a->zip, entry->index, 0);
    return oct_fail(err, OCT_E_FORMAT, "%s: %s: cannot be unpacked: %s", a->name,
                    entry_name ? entry_name : "an entry", why);
}

/* To bytes, or nowhere. */
static bool unpack(zip_file_t *file, void *bytes, uint64_t n)
{
    char nowhere[16384] = {0};
    for (uint64_t done = 0; done < n;) {
        const uint64_t most = bytes ? n - done : sizeof(nowhere);
        const uint64_t part = n - done < most ? n - done : most;
        const zip_int64_t got = zip_fread(file, bytes ? (char *)bytes + done : nowhere, part);
        if (got <= 0)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

enum oct_err oct_archive_read(struct oct_archive *archive, const struct oct_archive_entry *entry,
                              uint64_t skip, void *bytes, uint64_t n, struct oct_error *err)
{
    zip_file_t *file = zip_fopen_index(archive->zip, entry->index, 0);
    if (!file)
        return refuse(archive, entry, zip_strerror(archive->zip), err);
    enum oct_err e = OCT_OK;
    char end;
    if (!unpack(file, NULL, skip) || !unpack(file, bytes, n) ||
        !unpack(file, NULL, entry->n_bytes - skip - n) || zip_fread(file, &end, 1) != 0)
        e = refuse(archive, entry, zip_error_strerror(zip_file_get_error(file)), err);
    zip_fclose(file);
    return e;
}
