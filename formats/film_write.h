/* Films as files, picture by picture: AVI (uncompressed, RIFF of up to 2 GiB), TIFF stacks and
 * numpy's .npy [T][H][W]. The file has its name only when it is whole (whole_file.h).
 *
 *     create -> { add } -> publish or discard
 *
 * pictures.h reads each of them back. One thread uses a film at a time. */
#ifndef OCT_FORMATS_FILM_WRITE_H
#define OCT_FORMATS_FILM_WRITE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_film_format { OCT_FILM_AVI, OCT_FILM_TIFF, OCT_FILM_NPY };

enum oct_film_pixel {
    OCT_FILM_U8,  /* all formats */
    OCT_FILM_RGB, /* [3] u8, red first: AVI */
    OCT_FILM_U16, /* TIFF, .npy */
    OCT_FILM_F32, /* .npy */
};

struct oct_film_setup {
    enum oct_film_format format;
    enum oct_film_pixel pixel;
    uint32_t height, width; /* 1 to 16384 each */
    double fps;             /* of AVI: from 1e-6 to 1e6; no other format says it */
    uint64_t n_pictures;    /* how many will come, so that a film that is too long is refused before
                             * work begins, and a TIFF beyond 4 GiB becomes a BigTIFF; 0: unknown */
    bool force;
};

/* The format that a name's suffix stands for: .avi, .tif, .tiff, .npy. False: none of them. */
bool oct_film_format_of(const char *path, enum oct_film_format *format);

struct oct_film_file;

/* Makes the file beside its place. OCT_E_ARG: pixels that the format does not take, a size or a
 * rate out of range, n_pictures that do not fit an AVI; OCT_E_NO_MEMORY, and as
 * oct_whole_file_init. *film is NULL on error. */
enum oct_err oct_film_file_create(struct oct_film_file **film, const char *path,
                                  const struct oct_film_setup *setup, struct oct_error *err);

/* The next picture: [height][width] of setup.pixel. OCT_E_IO, OCT_E_NO_SPACE; OCT_E_ARG: the AVI
 * would become larger than 2 GiB, or a TIFF of unknown length larger than 4. After an error only
 * discard makes sense. */
enum oct_err oct_film_file_add(struct oct_film_file *film, const void *pixels,
                               struct oct_error *err);

/* Ends the film, closes, syncs and names the file. OCT_E_ARG: a film without pictures. On error
 * there is no file. Frees film in any case. */
enum oct_err oct_film_file_publish(struct oct_film_file *film, struct oct_error *err);
void oct_film_file_discard(struct oct_film_file *film); /* NULL is fine */

#endif
