/* One dataset of numbers of an HDF5 file from any source, read as f32 or as it is: what other
 * programs keep their pictures and spectra in. Checked as recordings are (volume.h): a child
 * process looks at it first, and values in other files and foreign filters are refused.
 *
 * One thread uses an array at a time; different ones are independent. */
#ifndef OCT_PIPELINE_VOLUME_ARRAY_H
#define OCT_PIPELINE_VOLUME_ARRAY_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VOLUME_ARRAY_MAX_RANK 5

struct oct_volume_array_facts {
    unsigned rank; /* 1..5 */
    uint64_t dims[OCT_VOLUME_ARRAY_MAX_RANK];
    bool is_float, is_signed; /* as stored */
    unsigned value_bytes;
    unsigned memory_bytes;                     /* 1, 2, 4, 8: of a value as read_box gives it */
    uint64_t chunk[OCT_VOLUME_ARRAY_MAX_RANK]; /* extents of a chunk; 0: there are none */
    uint64_t place; /* of the first value in the file, where all lie there as in memory and in
                              order; 0: they do not */
    uint64_t stored_bytes;                        /* what the values take in the file */
    double spacing_um[OCT_VOLUME_ARRAY_MAX_RANK]; /* axis_spacing_um, element_size_um or
                                                     um, an attribute; NaN: unknown */
    char unit[32];                                /* the attribute units; "": unknown */
    char axes[OCT_VOLUME_ARRAY_MAX_RANK][16];     /* the attribute axis_names; "": unknown */
    double step;     /* the attribute step: what 1 stands for, in unit; NaN: there is none */
    char method[16]; /* an attribute of the file: how all was found; "": unknown */
};

struct oct_volume_array;

/* Longer ones are left out. */
struct oct_volume_array_name {
    char text[256];
};

/* The names of the datasets of numbers of `rank` axes that lie in the file itself, "/group/name",
 * sorted: the first `most` of them. *n: how many are listed. OCT_E_IO, OCT_E_FORMAT as below. */
enum oct_err oct_volume_array_list(const char *path, unsigned rank,
                                   struct oct_volume_array_name *names, unsigned most, unsigned *n,
                                   struct oct_error *err);

/* A dataset of numbers, as the file says before anything of it is read. */
struct oct_volume_array_entry {
    struct oct_volume_array_name name;
    unsigned rank; /* 1..5 */
    uint64_t dims[OCT_VOLUME_ARRAY_MAX_RANK];
    bool is_float, is_signed;
    unsigned value_bytes;
    bool is_scale; /* of another's axis, not values */
    /* As oct_volume_array_facts. */
    double spacing_um[OCT_VOLUME_ARRAY_MAX_RANK];
    char unit[32];
    char axes[OCT_VOLUME_ARRAY_MAX_RANK][16];
};

/* Attributes of the file itself; "": it has none, or one longer than this. Of octctl surfaces those
 * of /etdrs too. */
struct oct_volume_array_root {
    char software[64], kind[32], eye[8];
    char source_crc32c[16]; /* of the only source; "": there are more, or none is told */
    char input_crc32c[16];  /* of the file that a recording was reconstructed from */
    char *source;           /* the inputs, one a line; malloc'd, the caller frees it; NULL: none */
    double fovea_px[2];     /* B-scan, A-line; NaN: not told */
    char superior[8];
};

/* The same list, of any rank, with what each is. root: NULL, or filled. */
enum oct_err oct_volume_array_entries(const char *path, struct oct_volume_array_root *root,
                                      struct oct_volume_array_entry *entries, unsigned most,
                                      unsigned *n, struct oct_error *err);

/* dataset: "/group/name". *array is NULL on error. OCT_E_IO: the file cannot be opened;
 * OCT_E_FORMAT: it is not HDF5, has no such dataset, or the dataset cannot be read. */
enum oct_err oct_volume_array_open(struct oct_volume_array **array, const char *path,
                                   const char *dataset, struct oct_error *err);
void oct_volume_array_close(struct oct_volume_array *array); /* NULL is fine */

const struct oct_volume_array_facts *oct_volume_array_facts(const struct oct_volume_array *array);

/* Reads [dims[1]][dims[2]].. at `row` of the first axis, or the whole dataset; the caller has
 * checked the extents. */
enum oct_err oct_volume_array_read_row(struct oct_volume_array *array, uint64_t row, float *values,
                                       struct oct_error *err);
enum oct_err oct_volume_array_read(struct oct_volume_array *array, float *values,
                                   struct oct_error *err);

/* The whole dataset in double precision. */
enum oct_err oct_volume_array_read_f64(struct oct_volume_array *array, double *values,
                                       struct oct_error *err);

/* Reads the box of count values from `first` on along each axis, in this machine's order of bytes:
 * integers of memory_bytes with or without a sign, or floats of 4 or 8 bytes. OCT_E_ARG: beyond the
 * extents, or empty. */
enum oct_err oct_volume_array_read_box(struct oct_volume_array *array,
                                       const uint64_t first[OCT_VOLUME_ARRAY_MAX_RANK],
                                       const uint64_t count[OCT_VOLUME_ARRAY_MAX_RANK],
                                       void *values, struct oct_error *err);

#endif
