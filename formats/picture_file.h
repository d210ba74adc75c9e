/* One file of pictures, whatever its format; what pictures.c reads a sequence through. Private to
 * this room.
 *
 * One thread uses a file at a time; different ones are independent. */
#ifndef OCT_FORMATS_PICTURE_FILE_H
#define OCT_FORMATS_PICTURE_FILE_H

#include "formats/pictures.h"
#include "formats/volumes.h"

struct oct_picture_file_facts {
    uint64_t n_pictures; /* at least 1; of a file that ends early those that are whole */
    uint32_t height, width;
    double fps;         /* 0: unknown */
    bool is_cut;        /* the file ends early */
    uint64_t n_claimed; /* then: pictures that it should have; 0: unknown */
    bool has_clock;
    uint64_t first_ns, last_ns; /* the camera's clock at the first row and the last one */
    /* Of the whole array that the pictures are cut from, [B-scan][A-line][depth] where it has 3
     * axes; 0: there is none. um: of the last axes; dims are not set. */
    unsigned n_axes;
    struct oct_volume_info volume;
};

/* An open file: what the struct of each format begins with. */
struct oct_picture_file {
    const struct oct_picture_file_ops *ops;
    char *path; /* as the user named it */
    int fd;     /* -1: not held (oct_picture_file_hold) */
    uint64_t file_bytes;
};

struct oct_picture_file_ops {
    size_t bytes; /* of the format's struct, which begins with struct oct_picture_file */

    /* Reads headers alone; the rest of the struct comes in zeroed, and close follows on error too.
     * The sides are checked before anything of their size is allocated (oct_picture_file_check). */
    enum oct_err (*open)(struct oct_picture_file *file, const struct oct_pictures_options *options,
                         struct oct_picture_file_facts *facts, struct oct_error *err);
    void (*close)(struct oct_picture_file *file); /* what the format keeps */

    /* Fills pixels ([height][width]); those that are not valid become NaN. Sets time_ns, um, bits
     * and is_db of *info, which comes in as of a file that says nothing. */
    enum oct_err (*read)(struct oct_picture_file *file, uint64_t index, float *pixels,
                         struct oct_pictures_info *info, struct oct_error *err);

    /* When the rows of a picture were taken, in seconds since origin_ns: fills times->time_s, which
     * has room for the height, or makes it NULL, and start_s. Called where facts have a clock. */
    void (*times)(const struct oct_picture_file *file, uint64_t index, uint64_t origin_ns,
                  struct oct_pictures_times *times);

    /* Where the device found its layer k in B-scan `index`: depth_px[height], 0 in the middle of
     * the first pixel; NaN: not found. Called where facts have layers. */
    enum oct_err (*layer)(struct oct_picture_file *file, uint64_t index, unsigned k,
                          float *depth_px, struct oct_error *err);
};

/* *file is NULL on error. */
enum oct_err oct_picture_file_open(struct oct_picture_file **file,
                                   const struct oct_picture_file_ops *ops, const char *path,
                                   const struct oct_pictures_options *options,
                                   struct oct_picture_file_facts *facts, struct oct_error *err);
void oct_picture_file_close(struct oct_picture_file *file); /* NULL is fine */

extern const struct oct_picture_file_ops oct_picture_file_png, oct_picture_file_tiff,
    oct_picture_file_hdf5, oct_picture_file_avi, oct_picture_file_npy, oct_picture_file_vol,
    oct_picture_file_dicom, oct_picture_file_enface;

/* By its content, whatever its name. OCT_E_ARG: it is none; OCT_E_IO. */
enum oct_err oct_picture_file_choose(const struct oct_picture_file_ops **ops, const char *path,
                                     struct oct_error *err);

/* The first bytes of a file, zeros behind its end. Errors as of oct_picture_file_descriptor. */
#define OCT_PICTURE_FILE_START_BYTES 132u
enum oct_err oct_picture_file_start(const char *path,
                                    unsigned char start[OCT_PICTURE_FILE_START_BYTES],
                                    struct oct_error *err);

/* Of a file that another device exported; NULL: it begins as none. */
const struct oct_picture_file_ops *
oct_picture_file_of_device(const unsigned char start[OCT_PICTURE_FILE_START_BYTES]);

/* OCT_E_FORMAT: a side of 0, or beyond OCT_PICTURE_MOST_SIDE. */
enum oct_err oct_picture_file_check(const char *path, uint64_t height, uint64_t width,
                                    struct oct_error *err);

/* Opens for reading. OCT_E_IO: it cannot be, or is no plain file (a folder, a pipe); *fd is -1. */
enum oct_err oct_picture_file_descriptor(int *fd, const char *path, struct oct_error *err);

/* Opens file->path so, for file->fd, and sets file_bytes. */
enum oct_err oct_picture_file_hold(struct oct_picture_file *file, struct oct_error *err);

/* Reads n bytes from `offset` of a file that is held. OCT_E_IO; OCT_E_FORMAT: it ends before. */
enum oct_err oct_picture_file_read_at(const struct oct_picture_file *file, uint64_t offset,
                                      void *bytes, size_t n, struct oct_error *err);

/* Said of a picture whose channels differ. */
#define OCT_PICTURE_FILE_COLOUR                                                                    \
    "a colour picture; convert it to grey (its red, green and blue differ at x %u, y %u)"

#endif
