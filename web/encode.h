/* Pictures as browsers take them: JPEG, which loses a little, and PNG, which loses nothing.
 *
 * One thread an encoder. */
#ifndef OCT_WEB_ENCODE_H
#define OCT_WEB_ENCODE_H

#include "pipeline/base/err.h"
#include "viewer/model/model.h"

struct oct_web_encoder;

struct oct_web_encoder *oct_web_encoder_create(void); /* NULL: no memory */
void oct_web_encoder_destroy(struct oct_web_encoder *encoder);

/* What is encoded. */
enum oct_web_form {
    OCT_WEB_GREY,
    OCT_WEB_COLOUR, /* something is tinted */
    OCT_WEB_WIDE,   /* of 16 bits the lower ones in green, the upper ones in red */
};

/* A picture as it is encoded: [height][width] pixels, in the encoder until its next picture. */
struct oct_web_pixels {
    enum oct_web_form form;
    unsigned width, height;
    unsigned bytes; /* a pixel: 1, or 4: blue, green, red, nothing */
    void *pixels;
};

/* Upright, most_side px a side at most (0: as large as octview shows it), values between the
 * limits of the shown picture grey; with the flow of the model over it where tints. False: no
 * memory. */
bool oct_web_pixels_of_bscan(struct oct_web_encoder *encoder, const struct oct_view_model *model,
                             const struct oct_view_picture *picture, unsigned most_side, bool tints,
                             struct oct_web_pixels *pixels);

/* Each pixel of the picture: of u8 as it came; of f32 wide, 1 (lo) .. 65535 (hi), 0: NaN. */
bool oct_web_pixels_whole(struct oct_web_encoder *encoder, const struct oct_view_picture *picture,
                          double *lo, double *hi, struct oct_web_pixels *pixels);

/* A picture from above, one row a B-scan. */
bool oct_web_pixels_of_enface(struct oct_web_encoder *encoder, const struct oct_view_enface *e,
                              unsigned most_side, struct oct_web_pixels *pixels);

/* The most bytes that either makes of a picture; both return how many they wrote, 0: failed.
 * A wide picture becomes no JPEG. quality: 1 .. 100. */
size_t oct_web_encode_most(const struct oct_web_pixels *pixels);
size_t oct_web_encode_jpeg(struct oct_web_encoder *encoder, const struct oct_web_pixels *pixels,
                           int quality, unsigned char *bytes, size_t room);
size_t oct_web_encode_png(const struct oct_web_pixels *pixels, unsigned char *bytes, size_t room);

#endif
