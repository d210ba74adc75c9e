/* Sequences of pictures as input of offline analyses: recordings of octd, HDF5 files of others,
 * what other devices exported (Spectralis .vol, DICOM), PNG, TIFF, AVI and numpy's .npy, one file
 * or many in the order given. Pictures are read one at a time, so that a sequence may be longer
 * than memory. One thread uses a sequence at a time.
 *
 * Accepted (docs/films.md): 8 and 16 bit and float grey, PNG and TIFF (single, stacks, tiled,
 * big-endian, compressed), colour whose channels are equal; uncompressed AVI; .npy of [T][H][W] or
 * [H][W]; /bscans of HDF5 files, or FILE.h5:/DATASET of two or three axes, of any type of numbers.
 * An alpha channel is left out. The resolution that PNG, TIFF and AVI files state is not taken for
 * a scale: it is that of a screen. */
#ifndef OCT_FORMATS_PICTURES_H
#define OCT_FORMATS_PICTURES_H

#include "analysis/enface/depths.h"
#include "analysis/param.h"
#include "numeric/picture.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_pictures_what {
    OCT_PICTURES_FRAMES,  /* pictures of every file; of a recording its B-scans */
    OCT_PICTURES_EN_FACE, /* a projection along the depth of each volume: [V][M] */
};

/* What an A-line of an en face picture becomes. Pixels that are not finite are left out, except for
 * OCT_PICTURES_OVER_PIXELS. */
enum oct_pictures_projection {
    OCT_PICTURES_OVER_PIXELS, /* the mean over the slab */
    OCT_PICTURES_OVER_ALL,    /* the mean over the whole depth */
    OCT_PICTURES_HIGHEST,     /* the maximum over the whole depth */
    OCT_PICTURES_OVER_SHARES, /* the same of what is finite, as octd's own en face */
};

struct oct_pictures_options {
    enum oct_pictures_what what;
    struct oct_span frames;                  /* FRAMES: of each file */
    enum oct_pictures_projection projection; /* of en face pictures */
    struct oct_depths slab;
    double um[2];     /* given by the user, dy and dx; 0: what the file says */
    double fps;       /* given by the user; 0: what the file says, or the camera's clock */
    bool has_invalid; /* pixels equal to `invalid` are masked */
    double invalid;
    const char *mask_path; /* a picture of the same size, 0: not valid; NULL: none */
    bool allow_sizes;      /* files may differ in size (cones of many files) */
    bool any_side;         /* pictures may be smaller than OCT_PICTURE_LEAST_SIDE */
    bool raw;              /* u8 of recordings as they lie in the file, not scaled to dB */
    bool keeps_whole; /* of files that end early the whole pictures; see oct_pictures_warning */
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

/* Whether another device exported the file: Spectralis .vol, DICOM. False when it cannot be
 * read. */
bool oct_pictures_are_of_device(const char *path);

/* Whether its pictures are the B-scans of a volume that knows itself: one of those, a recording of
 * octd or another HDF5 file. */
bool oct_pictures_is_volume(const char *path);

/* paths: [n_paths], read in this order; a folder is an error. All are copied. Opens each file once,
 * to know its size and number of pictures; the pictures of one file have one size. OCT_E_IO: cannot
 * be opened; OCT_E_FORMAT: not what it claims to be, truncated, colour, sizes that differ (names
 * both files), or a side of 0 or beyond OCT_PICTURE_MOST_SIDE; OCT_E_ARG: of no format that is
 * read, a side below OCT_PICTURE_LEAST_SIDE without any_side, or options that do not fit the
 * file. *pictures is NULL on error.
 *
 * An AVI, TIFF or .npy file that ends early is OCT_E_FORMAT, which says how many of its pictures
 * are whole; with keeps_whole those are read, as long as there is one. */
enum oct_err oct_pictures_open(struct oct_pictures **pictures, const char *const *paths,
                               unsigned n_paths, const struct oct_pictures_options *options,
                               struct oct_error *err);
void oct_pictures_close(struct oct_pictures *pictures); /* NULL is fine */

uint64_t oct_pictures_count(const struct oct_pictures *pictures);

/* With keeps_whole: one line that names the file that ends early and how many of its pictures are
 * used; NULL: every file was whole. A command prints it, and ends with status 1 after it has
 * written its results. Valid until close. */
const char *oct_pictures_warning(const struct oct_pictures *pictures);

/* Pictures a second, of those that are read: the user's, else that of the AVI files, if they all
 * say the same; NaN: unknown. */
double oct_pictures_fps(const struct oct_pictures *pictures);

/* When the rows of a picture were taken. */
struct oct_pictures_times {
    double *time_s; /* [height] of the rows, never falling; NULL: all at start_s */
    double start_s; /* of the picture; NaN: unknown */
    double *room;   /* what time_s points to; kept for the next call */
    uint32_t n_room;
};

/* The times of picture `frame`, in seconds since the first row of the sequence's first picture.
 * With options.fps: frame / fps. Of recordings: by the camera's clock, time_ns of /frames: of en
 * face pictures a row each B-scan, a B-scan that never came between its neighbours; of B-scans a
 * row each A-line, time_ns of the B-scan and on with scan.line_rate_hz of the embedded
 * configuration. A difference of clocks below 2^53 ns is exact before its one division by 1e9. Of
 * other files: frame / fps of the file. Unknown too where the clock runs backwards within a
 * recording or from one to the next (they are in another order, or of other clocks).
 *
 * *times is zeroed before the first call and may be used again for every other; finish it. Opens
 * the file unless it is that of the last picture read. OCT_E_ARG: no such picture; OCT_E_NO_MEMORY,
 * and as oct_pictures_open. time_s is NULL and start_s NaN on error. */
enum oct_err oct_pictures_times(struct oct_pictures *pictures, uint64_t frame,
                                struct oct_pictures_times *times, struct oct_error *err);
void oct_pictures_times_finish(struct oct_pictures_times *times);

/* The same sequence for another thread: a file open of its own, all else shared. Close it before
 * the first. OCT_E_NO_MEMORY; *other is NULL then. */
enum oct_err oct_pictures_share(struct oct_pictures **other, const struct oct_pictures *pictures,
                                struct oct_error *err);

/* The size of picture `frame`. */
void oct_pictures_size(const struct oct_pictures *pictures, uint64_t frame, uint32_t *height,
                       uint32_t *width);

/* The file of picture `frame`; valid until close. */
const char *oct_pictures_path(const struct oct_pictures *pictures, uint64_t frame);

/* Reads picture `frame` into *picture, which the caller finishes; NaN, infinities, the invalid
 * value, the mask's and missing A-lines are masked. Any order, but forwards is fastest. info may be
 * NULL. On error *picture is empty. */
enum oct_err oct_pictures_read(struct oct_pictures *pictures, uint64_t frame,
                               struct oct_picture *picture, struct oct_pictures_info *info,
                               struct oct_error *err);

/* Where the device found layer k (oct_volume_info.layers) in B-scan `frame` of what it exported:
 * depth_px[height], 0 in the middle of the first pixel; NaN: it found none. The file has layers,
 * and pictures are OCT_PICTURES_FRAMES. */
enum oct_err oct_pictures_layer(struct oct_pictures *pictures, uint64_t frame, unsigned k,
                                float *depth_px, struct oct_error *err);

#endif
