/* Reading HDF5 files from any source: every property is checked before it is used. Called under the
 * lock of hdf5_lock.h. Included by the volume files of this room only. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_READ_H
#define OCT_PIPELINE_VOLUME_HDF5_READ_H

#include "pipeline/base/err.h"
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_lock.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_HDF5_MAX_RANK 5

/* A file from outside as libhdf5 reads it, in memory (hdf5_image.h). No lock is taken on the file:
 * it may be read while it is written (volume.h). */
struct oct_hdf5_source {
    int fd;
    uint64_t file_bytes;
    struct oct_hdf5_image image;
    hid_t file;
};

/* look(name) is what a child process does before (hdf5_probe.h); NULL: this is that child. *source
 * comes in zeroed; oct_hdf5_source_close must follow in any case. OCT_E_IO; OCT_E_FORMAT: no plain
 * file, not HDF5, damaged. */
enum oct_err oct_hdf5_source_open(struct oct_hdf5_source *source, const char *path,
                                  void (*look)(const char *name), const char *name,
                                  struct oct_error *err);
void oct_hdf5_source_close(struct oct_hdf5_source *source);

struct oct_hdf5_array {
    const char *path; /* of the file; borrowed, as is name */
    const char *name;
    hid_t dataset; /* negative: the file has no such array */
    hid_t type;
    bool is_float; /* else integer */
    bool is_signed;
    size_t value_bytes;
    unsigned rank;
    uint64_t dims[OCT_HDF5_MAX_RANK];
};

/* Opens the dataset `name`. Not there: OCT_OK with dataset < 0. rank 0: any from 1 to
 * OCT_HDF5_MAX_RANK. OCT_E_FORMAT: it is not a dataset of `rank` axes of integers or floats, lies
 * in another file in part (external link, external storage, virtual dataset), is packed with a
 * filter that libhdf5 itself lacks, or has chunks larger than 1 GiB. oct_hdf5_array_close must
 * follow in any case. */
enum oct_err oct_hdf5_array_open(struct oct_hdf5_array *array, hid_t file, const char *path,
                                 const char *name, unsigned rank, struct oct_error *err);
void oct_hdf5_array_close(struct oct_hdf5_array *array);

/* Where values of memory_type lie in the file as they are; 0: they must go through libhdf5. */
uint64_t oct_hdf5_array_place(const struct oct_hdf5_array *array, hid_t memory_type,
                              uint64_t file_bytes);

/* Reads everything, row v (all of [v][...]), or of row v the n items
 * [v][first .. first + n - 1][...], converted to memory_type. The caller has checked the
 * extents. */
enum oct_err oct_hdf5_array_read(const struct oct_hdf5_array *array, hid_t memory_type,
                                 void *values, struct oct_error *err);
enum oct_err oct_hdf5_array_read_row(const struct oct_hdf5_array *array, uint64_t v,
                                     hid_t memory_type, void *values, struct oct_error *err);
enum oct_err oct_hdf5_array_read_part(const struct oct_hdf5_array *array, uint64_t v,
                                      uint64_t first, uint64_t n, hid_t memory_type, void *values,
                                      struct oct_error *err);

/* The box of count values from `first` on along each of its axes. */
enum oct_err oct_hdf5_array_read_selected(const struct oct_hdf5_array *array, const hsize_t *first,
                                          const hsize_t *count, hid_t memory_type, void *values,
                                          struct oct_error *err);

/* An attribute; n: its values. */
struct oct_hdf5_attribute {
    hid_t id, type, space;
    hssize_t n;
};

/* False: the object has none of this name, or it cannot be read. oct_hdf5_attribute_close must
 * follow in any case. */
bool oct_hdf5_attribute_open(struct oct_hdf5_attribute *attribute, hid_t object, const char *name);
void oct_hdf5_attribute_close(struct oct_hdf5_attribute *attribute);

/* Whether the object has an attribute that is one integer: *value is it then. */
bool oct_hdf5_count(hid_t object, const char *name, uint64_t *value);

/* Whether it has an attribute of n floats: values are they then. */
bool oct_hdf5_floats(hid_t object, const char *name, double *values, unsigned n);

/* Returns a string attribute of an object (the file stands for its root group), of fixed or
 * variable length: malloc'd, NUL-terminated; NULL where it is absent, is no string, or is longer
 * than max_bytes. The text is UTF-8. Bytes of any other encoding become '?', so that recordings of
 * other programs, or old ones, can still be read. */
char *oct_hdf5_text(hid_t object, const char *name, size_t max_bytes);

/* Reads the attribute axis_spacing_um of an object, n <= OCT_HDF5_MAX_RANK floats, or where it has
 * none element_size_um, as other programs write, or um; what is absent, not above 0 or not finite
 * is NaN. */
void oct_hdf5_spacing(hid_t object, double *spacing_um, unsigned n);

#endif
