/* Entries of a ZIP archive from outside, by libzip, with bounds: an entry is stored or deflated,
 * says no more bytes than deflate can make of those it has, and all that are looked up have no more
 * together than the file. So nothing that is read grows beyond 1032 times the file, and entries
 * that share their bytes are found. One thread uses an archive at a time. */
#ifndef OCT_FORMATS_INPUT_ARCHIVE_H
#define OCT_FORMATS_INPUT_ARCHIVE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_archive;

struct oct_archive_entry {
    uint64_t index;
    uint64_t n_bytes; /* unpacked, as the archive says */
};

/* name: for messages, borrowed. OCT_E_FORMAT: it is no whole ZIP archive. *archive is NULL on
 * error. */
enum oct_err oct_archive_open(struct oct_archive **archive, const char *path, const char *name,
                              uint64_t file_bytes, struct oct_error *err);
void oct_archive_close(struct oct_archive *archive); /* NULL is fine */

/* "data\a" also finds "data/a" and the other way round. Not there: *found is false. OCT_E_FORMAT:
 * the entry breaks the bounds above. Each lookup counts; look an entry up once. */
enum oct_err oct_archive_find(struct oct_archive *archive, const char *entry_name,
                              struct oct_archive_entry *entry, bool *found, struct oct_error *err);

/* n bytes behind the first `skip` into bytes, the rest goes into its checksum alone. The caller
 * has compared both with entry->n_bytes. OCT_E_FORMAT: the entry is damaged. */
enum oct_err oct_archive_read(struct oct_archive *archive, const struct oct_archive_entry *entry,
                              uint64_t skip, void *bytes, uint64_t n, struct oct_error *err);

#endif
