/* Files of results of offline analyses: HDF5, contiguous datasets, opens with plain h5py.
 *
 *     create -> { attributes, datasets, rows } -> publish or discard
 *
 * Rows may be written in any order, so that a sequence streams: no dataset is held in memory. The
 * file has its name only when it is whole (whole_file.h). After the first failure every call does
 * nothing, and oct_results_publish says what it was.
 *
 * One thread uses a file at a time. */
#ifndef OCT_FORMATS_RESULTS_H
#define OCT_FORMATS_RESULTS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oct_results_type {
    OCT_RESULTS_F64,
    OCT_RESULTS_F32,
    OCT_RESULTS_U64,
    OCT_RESULTS_U32,
    OCT_RESULTS_U8,
    OCT_RESULTS_I64,
};
#define OCT_RESULTS_MOST_DATASETS 2048u
#define OCT_RESULTS_MOST_RANK 4u

struct oct_results;

/* Creates the file with the attributes software and kind, what it is: a name that contents.c has in
 * words ("layers"). *results is NULL on error; errors as those of oct_whole_file_init. */
enum oct_err oct_results_create(struct oct_results **results, const char *path, const char *kind,
                                bool force, struct oct_error *err);

/* A copy of the results at `path`, to which a group ("/tracks") is added; publish puts it in their
 * place. replace: the group may be there already, and is left out of the copy. OCT_E_IO: no such
 * file, or it cannot be copied; OCT_E_ARG: it has the group, and replace is false; OCT_E_FORMAT: no
 * HDF5, or damaged. *results is NULL on error. */
enum oct_err oct_results_amend(struct oct_results **results, const char *path, const char *group,
                               bool replace, struct oct_error *err);

/* Attributes of the file, or of a dataset or group that is there already; object NULL: of the file.
 * Text of other encodings is repaired. */
void oct_results_text(struct oct_results *results, const char *object, const char *name,
                      const char *text);
void oct_results_number(struct oct_results *results, const char *object, const char *name,
                        double value);
void oct_results_numbers(struct oct_results *results, const char *object, const char *name,
                         const double *values, size_t n);
void oct_results_count(struct oct_results *results, const char *object, const char *name,
                       uint64_t value);

/* Makes a dataset "/group/name" of rank 1..4 and returns its number; groups are made as needed.
 * unit becomes the attribute units; NULL: none. What is never written is NaN (floats) or 0. */
unsigned oct_results_dataset(struct oct_results *results, const char *name,
                             enum oct_results_type type, unsigned rank, const uint64_t *dims,
                             const char *unit);

/* A dataset of n texts, text(context, 0) .. text(context, n - 1), UTF-8 of any length; other
 * encodings are repaired. */
void oct_results_texts(struct oct_results *results, const char *name, uint64_t n,
                       const char *(*text)(const void *context, uint64_t i), const void *context);

/* Another name, "/group/name", of a dataset or group that is there already. */
void oct_results_link(struct oct_results *results, const char *name, const char *of);

/* What the axes of a dataset are, [rank] names ("bscan", "line", "depth", "row", "column") and um
 * from step to step (NaN: unknown), for h5py, Fiji and others too: pipeline/volume/hdf5_axes.h.
 * Axes whose spacing is known share scales /NAME_um, positions from 0. Once a dataset. */
void oct_results_axes(struct oct_results *results, unsigned dataset, const char *const *names,
                      const double *spacing_um);

/* values: the whole dataset, or rows first .. first + n - 1 of its first axis; of its own type. */
void oct_results_write(struct oct_results *results, unsigned dataset, const void *values);
void oct_results_write_rows(struct oct_results *results, unsigned dataset, uint64_t first,
                            uint64_t n, const void *values);

/* The failure, if there was one: long work may end early. */
enum oct_err oct_results_error(const struct oct_results *results, struct oct_error *err);

/* Closes, syncs and names the file. On error there is none. Frees results in any case; NULL is
 * fine. */
enum oct_err oct_results_publish(struct oct_results *results, struct oct_error *err);

/* The same under another name than that of oct_results_create, where nothing has it: for a file
 * that was begun before others and is published with them. */
enum oct_err oct_results_publish_as(struct oct_results *results, const char *path,
                                    struct oct_error *err);
void oct_results_discard(struct oct_results *results); /* NULL is fine */

#endif
