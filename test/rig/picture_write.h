/* One picture as a file of its own: grey PNG of 8 or 16 bits, TIFF of f32. Whole or not at all
 * (whole_file.h). Any thread. */
#ifndef OCT_TEST_RIG_PICTURE_WRITE_H
#define OCT_TEST_RIG_PICTURE_WRITE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* pixels: u8 or u16 (bits 8 or 16) [height][width]. OCT_E_IO, OCT_E_NO_SPACE, OCT_E_NO_MEMORY;
 * and as oct_whole_file_init. */
enum oct_err oct_picture_write_png(const char *path, bool force, uint32_t height, uint32_t width,
                                   unsigned bits, const void *pixels, struct oct_error *err);

/* pixels: [height][width]; NaN stays NaN. */
enum oct_err oct_picture_write_tiff(const char *path, bool force, uint32_t height, uint32_t width,
                                    const float *pixels, struct oct_error *err);

#endif
