/* Sequences of pictures as input of offline analyses: recordings of octd, HDF5 files of others, PNG
 * and TIFF, one file or many in the order given. Pictures are read one at a time, so that a
 * sequence may be longer than memory. One thread uses a sequence at a time.
 *
 * Accepted: 8 and 16 bit and float grey, PNG and TIFF (single, stacks, tiled, big-endian,
 * compressed), colour whose channels are equal; /bscans of HDF5 files, or FILE.h5:/DATASET of two
 * or three axes, of any type of numbers. An alpha channel is left out. The resolution that PNG and
 * TIFF files state is not taken for a scale: it is that of a screen. */
#ifndef OCT_FORMATS_PICTURES_H
#define OCT_FORMATS_PICTURES_H

#include "analysis/correlate/picture.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_pictures_what {
    OCT_PICTURES_FRAMES,  /* every picture of every file; of a recording its B-scans */
    OCT_PICTURES_BSCAN,   /* B-scan number `bscan` of each recording */
    OCT_PICTURES_EN_FACE, /* the mean over slab_first <= depth < slab_last of each volume: [V][M] */
};

struct oct_pictures_options {
    enum oct_pictures_what what;
    uint64_t bscan;
    uint32_t slab_first, slab_last;
    double um[2];     /* given by the user, dy and dx; 0: what the file says */
    bool has_invalid; /* pixels equal to `invalid` are masked */
    double invalid;
    const char *mask_path; /* a picture of the same size, 0: not valid; NULL: none */
    bool allow_sizes;      /* files may differ in size (cones of many files) */
    bool raw;              /* u8 of recordings as they lie in the file, not scaled to dB */
};

struct oct_pictures_info {
    uint64_t frame;   /* counted over the whole sequence from 0 */
    const char *path; /* its file; valid until close */
    uint64_t index;   /* of the picture within its file */
    uint64_t time_ns; /* 0: unknown */
    double um[2];     /* size of a pixel, dy and dx; NaN: unknown */
    unsigned bits;    /* of a sample: 8, 16; 32: float */
    bool is_db;       /* values are dB */
    bool is_integer;  /* every pixel is an integer from 0 to 65535 */
};

struct oct_pictures;

/* paths: [n_paths], read in this order; a folder is an error. All are copied. Opens each file once,
 * to know its size and number of pictures; the pictures of one file have one size. OCT_E_IO: cannot
 * be opened; OCT_E_FORMAT: not what it claims to be, truncated, colour, sizes that differ (names
 * both files), or a side outside OCT_PICTURE_LEAST_SIDE .. OCT_PICTURE_MOST_SIDE; OCT_E_ARG:
 * options that do not fit the file. *pictures is NULL on error. */
enum oct_err oct_pictures_open(struct oct_pictures **pictures, const char *const *paths,
                               unsigned n_paths, const struct oct_pictures_options *options,
                               struct oct_error *err);
void oct_pictures_close(struct oct_pictures *pictures); /* NULL is fine */

uint64_t oct_pictures_count(const struct oct_pictures *pictures);

/* The same sequence for another thread: a file open of its own, all else shared. Close it before
 * the first. OCT_E_NO_MEMORY; *other is NULL then. */
enum oct_err oct_pictures_share(struct oct_pictures **other, const struct oct_pictures *pictures,
                                struct oct_error *err);

/* The size of picture `frame`. */
void oct_pictures_size(const struct oct_pictures *pictures, uint64_t frame, uint32_t *height,
                       uint32_t *width);

/* Reads picture `frame` into *picture, which the caller finishes; NaN, infinities, the invalid
 * value, the mask's and missing A-lines are masked. Any order, but forwards is fastest. info may be
 * NULL. On error *picture is empty. */
enum oct_err oct_pictures_read(struct oct_pictures *pictures, uint64_t frame,
                               struct oct_picture *picture, struct oct_pictures_info *info,
                               struct oct_error *err);

#endif
