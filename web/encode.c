#include "web/encode.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <turbojpeg.h>

struct oct_web_encoder {
    tjhandle jpeg;
    void *scratch;
    size_t scratch_bytes;
};

struct oct_web_encoder *oct_web_encoder_create(void)
{
    struct oct_web_encoder *encoder = calloc(1, sizeof(*encoder));
    if (encoder && !(encoder->jpeg = tjInitCompress())) {
        free(encoder);
        return NULL;
    }
    return encoder;
}

void oct_web_encoder_destroy(struct oct_web_encoder *encoder)
{
    if (!encoder)
        return;
    tjDestroy(encoder->jpeg);
    free(encoder->scratch);
    free(encoder);
}

/* ---- pixels ---- */

static bool make(struct oct_web_encoder *encoder, struct oct_web_pixels *p)
{
    const size_t n = (size_t)p->width * p->height * p->bytes;
    p->pixels = NULL;
    if (n == 0 || !oct_view_make_room(&encoder->scratch, &encoder->scratch_bytes, n))
        return false;
    p->pixels = encoder->scratch;
    return true;
}

/* The largest size of these proportions with sides of that many pixels at most. */
static void fit(unsigned *width, unsigned *height, unsigned most_side)
{
    const unsigned longer = *width > *height ? *width : *height;
    if (most_side == 0 || longer <= most_side)
        return;
    *width = (unsigned)fmax(1, round((double)*width * most_side / longer));
    *height = (unsigned)fmax(1, round((double)*height * most_side / longer));
}

bool oct_web_pixels_of_bscan(struct oct_web_encoder *encoder, const struct oct_view_model *model,
                             const struct oct_view_picture *picture, unsigned most_side, bool tints,
                             struct oct_web_pixels *pixels)
{
    const struct oct_picture_header *h = &picture->header;
    struct oct_view_contrast contrast;
    *pixels = (struct oct_web_pixels){tints ? OCT_WEB_COLOUR : OCT_WEB_GREY, h->n_lines, h->depth,
                                      4, NULL};
    fit(&pixels->width, &pixels->height,
        most_side && most_side < OCT_VIEW_MAX_SIDE_PX ? most_side : OCT_VIEW_MAX_SIDE_PX);
    if (!make(encoder, pixels))
        return false;
    const struct oct_view_part part = {(int)pixels->width,
                                       (int)pixels->height,
                                       0,
                                       (double)h->n_lines / pixels->width,
                                       0,
                                       (double)h->depth / pixels->height};
    oct_view_contrast_init(&contrast, model->contrast.log);
    oct_view_contrast_publish(&contrast, model->shown.header.lo, model->shown.header.hi);
    oct_view_convert_part(picture, &contrast, &part, pixels->pixels, pixels->width);
    if (tints)
        oct_view_flow_tint(model, &part, pixels->pixels, pixels->width);
    return true;
}

static void find_range(const float *value, size_t n, double *lo, double *hi)
{
    float least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (isfinite(value[i])) {
            least = fminf(least, value[i]);
            most = fmaxf(most, value[i]);
        }
    *lo = least <= most ? (double)least : 0;
    *hi = least < most ? (double)most : *lo + 1;
}

bool oct_web_pixels_whole(struct oct_web_encoder *encoder, const struct oct_view_picture *picture,
                          double *lo, double *hi, struct oct_web_pixels *pixels)
{
    const struct oct_picture_header *h = &picture->header;
    const bool is_u8 = h->sample_type == OCT_SAMPLE_U8;
    const unsigned m = h->n_lines, d = h->depth;
    *lo = h->lo;
    *hi = h->hi;
    *pixels =
        (struct oct_web_pixels){is_u8 ? OCT_WEB_GREY : OCT_WEB_WIDE, m, d, is_u8 ? 1 : 4, NULL};
    if (!make(encoder, pixels))
        return false;
    if (is_u8) {
        const uint8_t *from = picture->pixels;
        uint8_t *to = pixels->pixels;
        for (size_t j = 0; j < m; j++)
            for (size_t i = 0; i < d; i++)
                to[i * m + j] = from[j * d + i];
        return true;
    }
    const float *from = picture->pixels;
    uint32_t *to = pixels->pixels;
    find_range(from, (size_t)m * d, lo, hi);
    const double step = 65534 / (*hi - *lo);
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < d; i++) {
            const double v = (double)from[j * d + i];
            to[i * m + j] = (isfinite(v) ? (uint32_t)lround(1 + (v - *lo) * step) : 0) << 8;
        }
    return true;
}

bool oct_web_pixels_of_enface(struct oct_web_encoder *encoder, const struct oct_view_enface *e,
                              unsigned most_side, struct oct_web_pixels *pixels)
{
    struct oct_view_contrast contrast;
    *pixels = (struct oct_web_pixels){OCT_WEB_GREY, e->n_columns, e->n_rows, 1, NULL};
    fit(&pixels->width, &pixels->height, most_side);
    if (!make(encoder, pixels))
        return false;
    oct_view_contrast_init(&contrast, true);
    oct_view_contrast_publish(&contrast, e->lo, e->hi);
    uint8_t *to = pixels->pixels;
    for (unsigned y = 0; y < pixels->height; y++) {
        const float *row =
            oct_view_enface_row(e, (uint32_t)((uint64_t)y * e->n_rows / pixels->height));
        for (unsigned x = 0; x < pixels->width; x++)
            *to++ = oct_view_contrast_level(
                &contrast, (double)row[(uint64_t)x * e->n_columns / pixels->width]);
    }
    return true;
}

/* ---- bytes ---- */

static png_image png_of(const struct oct_web_pixels *p)
{
    return (png_image){.version = PNG_IMAGE_VERSION,
                       .width = p->width,
                       .height = p->height,
                       .format = p->bytes == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
                       .flags = PNG_IMAGE_FLAG_FAST};
}

size_t oct_web_encode_most(const struct oct_web_pixels *pixels)
{
    const png_image image = png_of(pixels);
    const size_t png = PNG_IMAGE_PNG_SIZE_MAX(image);
    const size_t jpeg = tjBufSize((int)pixels->width, (int)pixels->height, TJSAMP_444);
    return png > jpeg ? png : jpeg;
}

size_t oct_web_encode_jpeg(struct oct_web_encoder *encoder, const struct oct_web_pixels *pixels,
                           int quality, unsigned char *bytes, size_t room)
{
    const bool is_grey = pixels->form == OCT_WEB_GREY;
    unsigned long n = room;
    if (tjCompress2(encoder->jpeg, pixels->pixels, (int)pixels->width, 0, (int)pixels->height,
                    pixels->bytes == 1 ? TJPF_GRAY : TJPF_BGRX, &bytes, &n,
                    is_grey ? TJSAMP_GRAY : TJSAMP_420, quality,
                    TJFLAG_NOREALLOC | TJFLAG_FASTDCT) != 0)
        return 0;
    return n;
}

/* Three bytes a pixel take the place of the four, in place. */
static void pack_rgb(const struct oct_web_pixels *pixels)
{
    const uint32_t *from = pixels->pixels;
    uint8_t *to = pixels->pixels;
    for (size_t i = 0; i < (size_t)pixels->width * pixels->height; i++) {
        const uint32_t argb = from[i];
        to[3 * i] = (uint8_t)(argb >> 16);
        to[3 * i + 1] = (uint8_t)(argb >> 8);
        to[3 * i + 2] = (uint8_t)argb;
    }
}

size_t oct_web_encode_png(const struct oct_web_pixels *pixels, unsigned char *bytes, size_t room)
{
    png_image image = png_of(pixels);
    png_alloc_size_t n = room;
    if (pixels->bytes == 4)
        pack_rgb(pixels);
    return png_image_write_to_memory(&image, bytes, &n, 0, pixels->pixels, 0, NULL) ? n : 0;
}
