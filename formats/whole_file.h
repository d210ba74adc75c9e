/* A file that appears under its name only when it is whole: it is written under a name beside it,
 * synced and renamed. Killed meanwhile, a program leaves that other name (PATH.new.PID) at most.
 *
 *     init -> { write to .work } -> publish or discard
 *     open -> { put } -> end                                 (the same with a stream of its own)
 *
 * Several are published together or not at all (init_of_all, publish_all); killed meanwhile, a
 * program may leave PATH.all.PID, which is whole, and PATH.old.PID, which had the name before. */
#ifndef OCT_FORMATS_WHOLE_FILE_H
#define OCT_FORMATS_WHOLE_FILE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct oct_whole_file {
    char *path;   /* as the user named it */
    char *work;   /* where to write */
    char *old;    /* has what had the name, while several are published; else NULL */
    bool force;   /* may replace what has that name */
    FILE *stream; /* of .work, where it was opened; else NULL */
};

/* Whether a program may make `path`: OCT_E_IO: it exists and there is no force, or there is
 * no such folder; OCT_E_CONFIG: it is a folder or a device, or the very file that one of
 * inputs[n_inputs] names (NULL entries are left out). */
enum oct_err oct_whole_file_may(const char *path, bool force, const char *const *inputs,
                                unsigned n_inputs, struct oct_error *err);

/* Checks the same without inputs and removes a file of the other name that is left. Nothing is made
 * yet. On error *file is empty. OCT_E_NO_MEMORY too. */
enum oct_err oct_whole_file_init(struct oct_whole_file *file, const char *path, bool force,
                                 struct oct_error *err);

/* The same, and opens .work for writing: by put, or by stdio, whose errors `end` finds. */
enum oct_err oct_whole_file_open(struct oct_whole_file *file, const char *path, bool force,
                                 struct oct_error *err);
enum oct_err oct_whole_file_put(struct oct_whole_file *file, const void *bytes, size_t n,
                                struct oct_error *err);
/* Goes back to the first byte. */
enum oct_err oct_whole_file_rewind(struct oct_whole_file *file, struct oct_error *err);

/* Closes the stream, if there is one, and publishes; where e is not OCT_OK, discards and returns
 * e. */
enum oct_err oct_whole_file_end(struct oct_whole_file *file, enum oct_err e, struct oct_error *err);

/* As init, of a file that is published with others: .work is PATH.all.PID, so that what is written
 * there may itself have been begun as PATH.new.PID. */
enum oct_err oct_whole_file_init_of_all(struct oct_whole_file *file, const char *path, bool force,
                                        struct oct_error *err);

/* The file at .work is whole, and closed: gives it its name and finishes *file. On error nothing
 * has changed under the name, and the file at .work is removed. Without force a file that has
 * appeared meanwhile stays: OCT_E_IO. */
enum oct_err oct_whole_file_publish(struct oct_whole_file *file, struct oct_error *err);

/* The same of all n files, of which empty ones are left out. On error what had the names before has
 * them again, and no file at .work is left. Finishes all in any case. */
enum oct_err oct_whole_file_publish_all(struct oct_whole_file *files, unsigned n,
                                        struct oct_error *err);

/* Removes the file at .work and finishes *file; of an empty one too. */
void oct_whole_file_discard(struct oct_whole_file *file);

#endif
