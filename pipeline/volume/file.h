/* The operating system's side of a recording being written: names, space, bytes, syncing.
 *
 *     draft (no name) -> PATH.part -> PATH
 *
 * A draft has no name (O_TMPFILE), so that a process killed while it writes the metadata leaves no
 * file behind. On file systems without such files the draft is PATH.part.new.PID. No step ever
 * replaces an existing file. One thread at a time. */
#ifndef OCT_PIPELINE_VOLUME_FILE_H
#define OCT_PIPELINE_VOLUME_FILE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Direct I/O moves whole blocks: offset, length and memory are multiples of this. */
#define OCT_VOLUME_BLOCK_BYTES 4096u

struct oct_volume_file {
    char *path;    /* the final name */
    char *part;    /* path.part */
    char *folder;  /* of both */
    char *draft;   /* the draft's name where it must have one, else NULL */
    int fd;        /* buffered, -1: none */
    int direct_fd; /* O_DIRECT, -1: this file system has none */
};

/* Opens the draft. OCT_E_IO when path or path.part exists or the folder cannot be written. In any
 * case oct_volume_file_close must follow. */
enum oct_err oct_volume_file_draft(struct oct_volume_file *file, const char *path,
                                   struct oct_error *err);

/* Reserves `bytes` and sets the length. OCT_E_NO_SPACE says how much is wanted and free. What is
 * not written reads as zeros. */
enum oct_err oct_volume_file_reserve(struct oct_volume_file *file, uint64_t bytes,
                                     struct oct_error *err);

/* Syncs the draft, names it PATH.part, syncs the folder, opens the direct descriptor. */
enum oct_err oct_volume_file_publish(struct oct_volume_file *file, struct oct_error *err);

/* Writes all bytes at offset. `direct` asks for O_DIRECT: then offset, bytes and data must be
 * multiples of OCT_VOLUME_BLOCK_BYTES; it falls back to the page cache where it must. */
enum oct_err oct_volume_file_write(struct oct_volume_file *file, const void *data, size_t bytes,
                                   uint64_t offset, bool direct, struct oct_error *err);

/* A column of a table in the file: a value a row, little-endian. */
struct oct_volume_column_form {
    const char *name; /* "/frames/sequence" */
    size_t bytes;     /* of a value: 1, 4, 8 */
    size_t at;        /* offset of the value in the struct of a row */
    bool is_float;
};

/* Writes the column of n rows, whose structs lie `stride` bytes apart, side by side at offset. */
enum oct_err oct_volume_file_write_column(struct oct_volume_file *file,
                                          const struct oct_volume_column_form *column,
                                          const void *rows, size_t stride, size_t n,
                                          uint64_t offset, struct oct_error *err);

/* fdatasync: covers both descriptors. */
enum oct_err oct_volume_file_sync(struct oct_volume_file *file, struct oct_error *err);

/* Gives the disk back what [start, end) takes, as far as it is whole blocks: nothing was written
 * there, and it reads as zeros before, after and meanwhile; length and offsets stay (a hole is
 * punched: ext4, XFS, Btrfs, tmpfs, GFS2, NFS 4.2, SMB 3). Other file systems, and runs shorter
 * than 64 KiB, keep it. */
void oct_volume_file_give_back(struct oct_volume_file *file, uint64_t start, uint64_t end);

/* The same of a dataset's rows that are not used[n_rows]. */
void oct_volume_file_give_back_rows(struct oct_volume_file *file, uint64_t start, size_t row_bytes,
                                    const uint8_t *used, uint32_t n_rows);

/* PATH.part gets its final name; syncs the folder. OCT_E_IO when PATH has appeared meanwhile. */
enum oct_err oct_volume_file_rename(struct oct_volume_file *file, struct oct_error *err);

/* Closes the descriptors, removes a draft never published, frees the names. */
void oct_volume_file_close(struct oct_volume_file *file);

#endif
