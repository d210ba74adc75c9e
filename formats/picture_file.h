/* One file of pictures, whatever its format; what pictures.c reads a sequence through. Private to
 * this room.
 *
 * One thread uses a file at a time; different ones are independent. */
#ifndef OCT_FORMATS_PICTURE_FILE_H
#define OCT_FORMATS_PICTURE_FILE_H

#include "formats/pictures.h"

struct oct_picture_file_facts {
    uint64_t n_pictures; /* at least 1 */
    uint32_t height, width;
};

struct oct_picture_file_ops {
    /* *file is NULL on error. Reads headers alone. The sides are checked before anything of their
     * size is allocated (oct_picture_file_check). */
    enum oct_err (*open)(void **file, const char *path, const struct oct_pictures_options *options,
                         struct oct_picture_file_facts *facts, struct oct_error *err);
    void (*close)(void *file); /* NULL is fine */

    /* Fills pixels ([height][width]); those that are not valid become NaN. Sets time_ns, um, bits
     * and is_db of *info, which comes in as of a file that says nothing. */
    enum oct_err (*read)(void *file, uint64_t index, float *pixels, struct oct_pictures_info *info,
                         struct oct_error *err);
};

extern const struct oct_picture_file_ops oct_picture_file_png, oct_picture_file_tiff,
    oct_picture_file_hdf5;

/* OCT_E_FORMAT: a side outside OCT_PICTURE_LEAST_SIDE .. OCT_PICTURE_MOST_SIDE. */
enum oct_err oct_picture_file_check(const char *path, uint64_t height, uint64_t width,
                                    struct oct_error *err);

/* Opens for reading. OCT_E_IO: it cannot be, or is no plain file (a folder, a pipe); *fd is -1. */
enum oct_err oct_picture_file_descriptor(int *fd, const char *path, struct oct_error *err);

/* Said of a picture whose channels differ. */
#define OCT_PICTURE_FILE_COLOUR                                                                    \
    "a colour picture; convert it to grey (its red, green and blue differ at x %u, y %u)"

#endif
