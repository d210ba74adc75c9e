#include "viewer/model/picture.h"

#include "pipeline/base/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool oct_view_make_room(void **buffer, size_t *capacity_bytes, size_t n_bytes)
{
    void *grown = n_bytes > *capacity_bytes ? malloc(n_bytes) : NULL;
    if (n_bytes <= *capacity_bytes || !grown)
        return n_bytes <= *capacity_bytes;
    free(*buffer);
    *buffer = grown;
    *capacity_bytes = n_bytes;
    return true;
}

/* ---- images of any topic ---- */

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
    if (!oct_view_make_room(&image->values, &image->capacity_bytes, n_bytes))
        return oct_fail(err, OCT_E_NO_MEMORY, "%.40s of %zu bytes: out of memory", header->dataset,
                        n_bytes);
    if (n_bytes > 0)
        memcpy(image->values, values, n_bytes);
    image->header = *header;
    return OCT_OK;
}

bool oct_view_image_is_table(const struct oct_image_header *header, uint32_t most_rows)
{
    return header->type == OCT_SAMPLE_F32 && header->rank == 2 && header->dims[1] > 0 &&
           header->n_labels == header->dims[1] && header->dims[0] <= most_rows;
}

bool oct_view_image_is_row(const struct oct_image_header *header)
{
    if (header->rank == 1)
        return header->type == OCT_SAMPLE_F32 && header->dims[0] > 0 &&
               header->n_labels == header->dims[0];
    return oct_view_image_is_table(header, 1);
}

void oct_view_image_finish(struct oct_view_image *image)
{
    free(image->values);
    memset(image, 0, sizeof(*image));
}

/* ---- pictures ---- */

size_t oct_view_picture_bytes(const struct oct_picture_header *header)
{
    const size_t pixel_bytes = header->sample_type == OCT_SAMPLE_U8    ? sizeof(uint8_t)
                               : header->sample_type == OCT_SAMPLE_F32 ? sizeof(float)
                                                                       : 0;
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
    if (!oct_view_make_room(&picture->pixels, &picture->capacity_bytes, n_bytes))
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "picture of %zu bytes: out of memory; publish smaller pictures", n_bytes);
    memcpy(picture->pixels, pixels, n_bytes);
    picture->header = *header;
    return OCT_OK;
}

double oct_view_picture_value(const struct oct_view_picture *picture, uint32_t line, uint32_t depth)
{
    const struct oct_picture_header *h = &picture->header;
    if (!picture->pixels || line >= h->n_lines || depth >= h->depth)
        return NAN;
    size_t i = (size_t)line * h->depth + depth;
    if (h->sample_type == OCT_SAMPLE_F32)
        return ((const float *)picture->pixels)[i];
    return h->lo + ((const uint8_t *)picture->pixels)[i] / 255.0 * (h->hi - h->lo);
}

/* ---- percentiles ---- */

#define N_BINS 1024u
#define LOOKED_AT 64u /* A-lines */

struct counts {
    uint32_t bin[N_BINS], total;
    double lo, step;
};

static void count_u8(const struct oct_view_picture *picture, uint32_t step, struct counts *counts)
{
    const struct oct_picture_header *h = &picture->header;
    counts->lo = h->lo;
    counts->step = (h->hi - h->lo) / 255.0;
    for (uint32_t line = 0; line < h->n_lines; line += step)
        for (uint32_t d = 0; d < h->depth; d++, counts->total++)
            counts->bin[((const uint8_t *)picture->pixels)[(size_t)line * h->depth + d]]++;
}

static void count_f32(const struct oct_view_picture *picture, uint32_t step, struct counts *counts)
{
    const struct oct_picture_header *h = &picture->header;
    double least = INFINITY, most = -INFINITY;
    for (uint32_t line = 0; line < h->n_lines; line += step)
        for (uint32_t d = 0; d < h->depth; d++) {
            double v = oct_view_picture_value(picture, line, d);
            least = isfinite(v) && v < least ? v : least;
            most = isfinite(v) && v > most ? v : most;
        }
    counts->lo = least;
    counts->step = most > least ? (most - least) / (N_BINS - 1) : 1;
    for (uint32_t line = 0; line < h->n_lines; line += step)
        for (uint32_t d = 0; d < h->depth; d++) {
            double v = (oct_view_picture_value(picture, line, d) - least) / counts->step;
            if (!(v >= 0 && v < N_BINS))
                continue;
            counts->bin[(unsigned)v]++;
            counts->total++;
        }
}

bool oct_view_picture_percentiles(const struct oct_view_picture *picture, double share_lo,
                                  double share_hi, double *lo, double *hi)
{
    struct counts counts = {0};
    uint32_t step = (picture->header.n_lines + LOOKED_AT - 1) / LOOKED_AT;
    if (!picture->pixels || step == 0)
        return false;
    if (picture->header.sample_type == OCT_SAMPLE_F32)
        count_f32(picture, step, &counts);
    else
        count_u8(picture, step, &counts);
    *lo = counts.lo + oct_histogram_percentile(counts.bin, N_BINS, share_lo) * counts.step;
    *hi = counts.lo + oct_histogram_percentile(counts.bin, N_BINS, share_hi) * counts.step;
    return counts.total > 0;
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

/* ---- spectra ---- */

enum oct_err oct_view_spectrum_set(struct oct_view_spectrum *spectrum, const char *json,
                                   size_t json_bytes, const void *samples, size_t n_bytes,
                                   struct oct_error *err)
{
    struct oct_spectrum_header header;
    void *buffer = spectrum->sample;
    enum oct_err code = oct_spectrum_decode(&header, json, json_bytes, n_bytes, err);
    if (code)
        return code;
    if (!oct_view_make_room(&buffer, &spectrum->capacity_bytes, n_bytes))
        return oct_fail(err, OCT_E_NO_MEMORY, "spectrum: out of memory");
    spectrum->sample = buffer;
    memcpy(spectrum->sample, samples, n_bytes);
    spectrum->n_samples = header.n_samples;
    spectrum->limit = header.limit;
    spectrum->n_saturated = header.n_saturated;
    spectrum->frame_num = header.frame_num;
    spectrum->line = header.line;
    return OCT_OK;
}

void oct_view_spectrum_finish(struct oct_view_spectrum *spectrum)
{
    free(spectrum->sample);
    memset(spectrum, 0, sizeof(*spectrum));
}
