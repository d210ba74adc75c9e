/* What comes: an image of any topic, a picture (a B-scan), a spectrum; and how a picture becomes
 * what a screen shows. Pure; no SDL. */
#ifndef OCT_VIEWER_MODEL_PICTURE_H
#define OCT_VIEWER_MODEL_PICTURE_H

#include "pipeline/base/err.h"
#include "pipeline/flow/spectrum.h"
#include "pipeline/wire/image_header.h"
#include "pipeline/wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes a buffer hold n_bytes; what is in it may be lost. False: there is no memory, and it is as
 * it was. */
bool oct_view_make_room(void **buffer, size_t *capacity_bytes, size_t n_bytes);

/* One received image of any topic but `bscan` and `spectrum`: header and values, in a buffer that
 * grows and is reused. Images move between subscriber, app and model by swapping whole structs. A
 * zeroed struct is none. */

struct oct_view_image {
    struct oct_image_header header;
    void *values; /* row-major [dims[0]]..[dims[rank - 1]], u8 or f32 by header.type; owned */
    size_t capacity_bytes;
    uint64_t arrival_ns; /* by the viewer's clock; 0: none came */
};

/* Bytes of the values that a header announces; SIZE_MAX when it announces none that we could hold
 * (at most OCT_MAX_BSCAN_SAMPLES values). 0: an image without rows. */
size_t oct_view_image_bytes(const struct oct_image_header *header);

/* Fills the image from a decoded header and the bytes of the values (copied). OCT_E_FORMAT when
 * their size is not what the header announces: the last check before values are trusted.
 * OCT_E_NO_MEMORY. On error the image is as it was. arrival_ns is the caller's. */
enum oct_err oct_view_image_set(struct oct_view_image *image, const struct oct_image_header *header,
                                const void *values, size_t n_bytes, struct oct_error *err);

/* Whether it is a table of labelled f32 numbers, of so many rows at most; or one row of them, or
 * none. */
bool oct_view_image_is_table(const struct oct_image_header *header, uint32_t most_rows);
bool oct_view_image_is_row(const struct oct_image_header *header);

/* Frees the values and zeroes the struct. */
void oct_view_image_finish(struct oct_view_image *image);

/* One received picture: header and pixels, in a buffer that grows and is reused.
 *
 * Pictures move between the subscriber, the model and the window by swapping whole structs, never
 * by copying pixels. A zeroed struct is an empty picture. */

struct oct_view_picture {
    struct oct_picture_header header;
    void *pixels; /* [n_lines][depth], u8 or f32 by header.sample_type; owned, malloc'd */
    size_t capacity_bytes;
    uint64_t arrival_ns; /* when all of it had arrived, by the viewer's clock */
};

/* Bytes of the pixels that a header announces; 0 when it announces none that we could hold. */
size_t oct_view_picture_bytes(const struct oct_picture_header *header);

/* Fills the picture from a decoded header and the bytes of the image part (copied). OCT_E_FORMAT
 * when their size is not what the header announces: the last check before pixels are trusted. On
 * error the picture is as it was. */
enum oct_err oct_view_picture_set(struct oct_view_picture *picture,
                                  const struct oct_picture_header *header, const void *pixels,
                                  size_t n_bytes, struct oct_error *err);

/* The value (dB or counts^2) of a pixel; NaN beyond the picture. */
double oct_view_picture_value(const struct oct_view_picture *picture, uint32_t line,
                              uint32_t depth);

/* Finds two percentiles (shares 0..1) of the values; where there are many A-lines, of some of them.
 * False: the picture has no finite value. */
bool oct_view_picture_percentiles(const struct oct_view_picture *picture, double share_lo,
                                  double share_hi, double *lo, double *hi);

void oct_view_picture_swap(struct oct_view_picture *a, struct oct_view_picture *b);

/* Frees the pixels and zeroes the struct. */
void oct_view_picture_finish(struct oct_view_picture *picture);

/* One A-line as the camera saw it: the stream's topic "spectrum" (docs/streams.md). */

/* A zeroed struct is none. */
struct oct_view_spectrum {
    uint16_t *sample; /* [n_samples]; owned */
    size_t capacity_bytes;
    uint32_t n_samples;
    uint32_t limit;       /* the largest sample a camera of these bits gives */
    uint64_t n_saturated; /* samples of the whole B-scan that reached it */
    uint64_t frame_num;
    uint32_t line;       /* of the B-scan */
    uint64_t arrival_ns; /* 0: none came */
};

/* Fills it from a message's header and payload, both untrusted. OCT_E_FORMAT says what is wrong;
 * then it is as it was. The caller sets arrival_ns. */
enum oct_err oct_view_spectrum_set(struct oct_view_spectrum *spectrum, const char *json,
                                   size_t json_bytes, const void *samples, size_t n_bytes,
                                   struct oct_error *err);

void oct_view_spectrum_finish(struct oct_view_spectrum *spectrum);

/* Colours for levels 0 (black) to 255 (white). Pure. */

enum oct_view_palette {
    OCT_PALETTE_GREY,
    OCT_PALETTE_INVERTED,
    OCT_PALETTE_UNIFORM,                /* perceptually uniform */
    OCT_N_PALETTES,                     /* of those that a user chooses; and of changes: */
    OCT_PALETTE_CHANGE = OCT_N_PALETTES /* from blue (thinner) over white to red */
};

extern const char *const oct_view_palette_names[]; /* NULL-terminated */

uint32_t oct_view_palette_argb(enum oct_view_palette palette, uint8_t level);

/* Contrast: which values are black and white, and how pixels become colours. It acts on what was
 * received: a u8 pixel is first turned back into its value by the picture's own limits
 * (value = lo + pixel / 255 * (hi - lo)), an f32 pixel is the value. A value's level is its place
 * between lo and hi, 0..255; the level, bent by gamma, is looked up in the palette. Pure. */

#define OCT_VIEW_LEAST_GAMMA 0.25
#define OCT_VIEW_MOST_GAMMA 4.0

enum oct_view_range {
    OCT_CONTRAST_PUBLISHED, /* lo and hi follow the published limits */
    OCT_CONTRAST_AUTO,      /* they follow percentiles of the pictures */
    OCT_CONTRAST_MANUAL,    /* they are the user's */
};

struct oct_view_contrast {
    bool log; /* values are dB, else counts^2: the size of a step follows from it */
    enum oct_view_range range;
    double lo, hi; /* black and white; lo < hi */
    double gamma;  /* above 1: middle tones darker */
    enum oct_view_palette palette;
    double published_lo, published_hi; /* of the picture that is shown; lo < hi */
};

void oct_view_contrast_init(struct oct_view_contrast *contrast, bool log);

/* A picture with these limits is now shown. Limits that are no range are replaced, so
 * that lo < hi holds and all are finite. */
void oct_view_contrast_publish(struct oct_view_contrast *contrast, double lo, double hi);

/* With OCT_CONTRAST_AUTO, moves lo and hi the share `pace` (1: all) of the way to these limits. */
void oct_view_contrast_adapt(struct oct_view_contrast *contrast, double lo, double hi, double pace);

/* This and the functions below set OCT_CONTRAST_MANUAL. Moves the middle of the range and changes
 * its width (in the pictures' unit). */
void oct_view_contrast_move(struct oct_view_contrast *contrast, double level, double width);

/* Moves one limit; it keeps at least the narrowest range of distance from the other. */
void oct_view_contrast_move_lo(struct oct_view_contrast *contrast, double by);
void oct_view_contrast_move_hi(struct oct_view_contrast *contrast, double by);

/* One press of a key: 1 dB, or a fortieth of the published range where values are linear. */
double oct_view_contrast_step(const struct oct_view_contrast *contrast);

void oct_view_contrast_set_range(struct oct_view_contrast *contrast, enum oct_view_range range);

void oct_view_contrast_set_gamma(struct oct_view_contrast *contrast, double gamma);

/* Level 0..255 of a value, before gamma; NaN is 0. */
uint8_t oct_view_contrast_level(const struct oct_view_contrast *contrast, double value);

/* ARGB of each of the 256 levels. */
void oct_view_contrast_colours(const struct oct_view_contrast *contrast, uint32_t argb[256]);

/* ARGB of each of the 256 u8 pixels of the shown picture. */
void oct_view_contrast_table(const struct oct_view_contrast *contrast, uint32_t argb[256]);

/* From a picture as it lies on the wire to what a screen shows: upright, ARGB. No SDL. */

/* A picture with sides beyond this is thinned out (every step-th line, every step-th pixel):
 * no screen shows more, and many renderers hold no larger texture. */
#define OCT_VIEW_MAX_SIDE_PX 4096u

/* The upright picture: n_columns A-lines side by side, n_rows depths, depth downward. */
struct oct_view_upright {
    unsigned n_columns, n_rows;
    unsigned column_step, row_step; /* 1 unless thinned out */
};

struct oct_view_upright oct_view_upright_of(const struct oct_picture_header *header);

/* Transposes [n_lines][depth] into argb [n_rows][n_columns], rows `pitch_px` pixels apart. The
 * contrast must have been told the picture's limits (oct_view_contrast_publish). */
void oct_view_convert(const struct oct_view_picture *picture,
                      const struct oct_view_contrast *contrast, uint32_t *argb, size_t pitch_px);

/* The same for a part, magnified: screen pixel (x, y) of width x height shows the pixel of A-line
 * line0 + (x + 1/2) * lines_px and depth depth0 + (y + 1/2) * depth_px, none of them thinned out.
 * What lies beyond the picture's edges shows its edge. */
struct oct_view_part {
    int width, height;
    double line0, lines_px, depth0, depth_px;
};
void oct_view_convert_part(const struct oct_view_picture *picture,
                           const struct oct_view_contrast *contrast,
                           const struct oct_view_part *part, uint32_t *argb, size_t pitch_px);

#endif
