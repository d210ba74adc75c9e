#include "viewer/picture.h"

#include <stdlib.h>
#include <string.h>

size_t oct_view_picture_bytes(const struct oct_picture_header *header)
{
    size_t pixel_bytes;

    if (header->sample_type == OCT_SAMPLE_U8)
        pixel_bytes = sizeof(uint8_t);
    else if (header->sample_type == OCT_SAMPLE_F32)
        pixel_bytes = sizeof(float);
    else
        return 0;
    if (header->n_lines == 0 || header->depth == 0 ||
        header->depth > OCT_MAX_BSCAN_SAMPLES / header->n_lines)
        return 0;
    return (size_t)header->n_lines * header->depth * pixel_bytes;
}

enum oct_err oct_view_picture_set(struct oct_view_picture *picture,
                                  const struct oct_picture_header *header, const void *pixels,
                                  size_t n_bytes, struct oct_error *err)
{
    size_t wanted_bytes = oct_view_picture_bytes(header);

    if (wanted_bytes == 0 || wanted_bytes != n_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "picture of %u x %u pixels: %zu bytes came, %zu are needed; check the "
                        "publisher",
                        header->n_lines, header->depth, n_bytes, wanted_bytes);
    if (n_bytes > picture->capacity_bytes) {
        void *grown = malloc(n_bytes);
        if (!grown)
            return oct_fail(err, OCT_E_NO_MEMORY,
                            "picture of %zu bytes: out of memory; publish smaller pictures",
                            n_bytes);
        free(picture->pixels);
        picture->pixels = grown;
        picture->capacity_bytes = n_bytes;
    }
    memcpy(picture->pixels, pixels, n_bytes);
    picture->header = *header;
    return OCT_OK;
}

void oct_view_picture_swap(struct oct_view_picture *a, struct oct_view_picture *b)
{
    struct oct_view_picture kept = *a;
    *a = *b;
    *b = kept;
}

void oct_view_picture_finish(struct oct_view_picture *picture)
{
    free(picture->pixels);
    memset(picture, 0, sizeof(*picture));
}
