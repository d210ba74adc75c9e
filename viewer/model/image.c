#include "viewer/model/picture.h"

#include <stdlib.h>
#include <string.h>

size_t oct_view_image_bytes(const struct oct_image_header *header)
{
    uint64_t n = 1;

    if (header->rank < 1 || header->rank > OCT_IMAGE_MAX_RANK ||
        (header->type != OCT_SAMPLE_U8 && header->type != OCT_SAMPLE_F32))
        return SIZE_MAX;
    for (unsigned i = header->rank; i-- > 0;) {
        if (header->dims[i] == 0 && i > 0)
            return SIZE_MAX;
        n *= header->dims[i]; /* both factors are below 2^32 */
        if (n > OCT_MAX_BSCAN_SAMPLES)
            return SIZE_MAX;
    }
    return (size_t)n * (header->type == OCT_SAMPLE_F32 ? sizeof(float) : sizeof(uint8_t));
}

enum oct_err oct_view_image_set(struct oct_view_image *image, const struct oct_image_header *header,
                                const void *values, size_t n_bytes, struct oct_error *err)
{
    if (oct_view_image_bytes(header) != n_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "%.40s: %zu bytes of values came, its shape says otherwise; check the "
                        "publisher",
                        header->dataset, n_bytes);
    if (n_bytes > image->capacity_bytes) {
        void *grown = malloc(n_bytes);
        if (!grown)
            return oct_fail(err, OCT_E_NO_MEMORY, "%.40s of %zu bytes: out of memory",
                            header->dataset, n_bytes);
        free(image->values);
        image->values = grown;
        image->capacity_bytes = n_bytes;
    }
    if (n_bytes > 0)
        memcpy(image->values, values, n_bytes);
    image->header = *header;
    return OCT_OK;
}

void oct_view_image_swap(struct oct_view_image *a, struct oct_view_image *b)
{
    struct oct_view_image kept = *a;
    *a = *b;
    *b = kept;
}

void oct_view_image_finish(struct oct_view_image *image)
{
    free(image->values);
    memset(image, 0, sizeof(*image));
}
