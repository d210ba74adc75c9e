/* What tests of films share: files of bytes made by hand, and sequences that must open or
 * must be refused. One thread. */
#ifndef OCT_TEST_RIG_FILM_RIG_H
#define OCT_TEST_RIG_FILM_RIG_H

#include "formats/pictures.h"

#include <stddef.h>
#include <stdint.h>

/* A file that grows in memory; chunks of RIFF nest. */
struct film_bytes {
    unsigned char bytes[1 << 17];
    size_t n;
};
void film_put(struct film_bytes *file, const void *bytes, size_t n);
void film_put_u16(struct film_bytes *file, uint32_t value);
void film_put_u32(struct film_bytes *file, uint32_t value);
size_t film_chunk_begin(struct film_bytes *file, const char *name); /* returns where it begins */
size_t film_list_begin(struct film_bytes *file, const char *list, const char *kind);
void film_chunk_end(struct film_bytes *file, size_t begin); /* sets its size, pads to 2 */
void film_set_u32(struct film_bytes *file, size_t at, uint32_t value);
/* Writes the first n bytes. */
void film_write(const struct film_bytes *file, const char *path, size_t n);

/* options NULL: all pictures of a file, no more. */
struct oct_pictures *film_open(const char *path, const struct oct_pictures_options *options);
/* Reads a picture, which the caller finishes. */
void film_read(struct oct_pictures *pictures, uint64_t frame, struct oct_picture *picture,
               struct oct_pictures_info *info);
/* Opening it, or reading its first picture, fails with this code and a text that names the file
 * and says this. */
void film_refused(const char *path, const struct oct_pictures_options *options, enum oct_err code,
                  const char *says);

#endif
