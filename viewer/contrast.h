/* Contrast: which values are black and white, and how pixels become grey. It acts on what was
 * received: a u8 pixel is first turned back into its value by the picture's own limits
 * (value = lo + pixel / 255 * (hi - lo)), an f32 pixel is the value. Pure. */
#ifndef OCT_VIEWER_CONTRAST_H
#define OCT_VIEWER_CONTRAST_H

#include <stdbool.h>
#include <stdint.h>

struct oct_view_contrast {
    bool log;      /* values are dB, else counts^2: the size of a step follows from it */
    bool follows;  /* lo and hi follow the published limits */
    double lo, hi; /* black and white; lo < hi */
    double published_lo, published_hi; /* of the picture that is shown; lo < hi */
};

void oct_view_contrast_init(struct oct_view_contrast *contrast, bool log);

/* A picture with these limits is now shown. Limits that are no range are mended: it stays true
 * that lo < hi and all are finite. */
void oct_view_contrast_publish(struct oct_view_contrast *contrast, double lo, double hi);

/* Moves the middle of the range and changes its width (in the pictures' unit); from now on the
 * limits are the user's. */
void oct_view_contrast_move(struct oct_view_contrast *contrast, double level, double width);

/* One press of a key: 1 dB, or a fortieth of the published range where values are linear. */
double oct_view_contrast_step(const struct oct_view_contrast *contrast);

/* On: back to the published limits, and with them from now on. Off: the limits stay as they are. */
void oct_view_contrast_follow(struct oct_view_contrast *contrast, bool follows);

/* Grey 0..255 of a value; NaN is black. */
uint8_t oct_view_contrast_grey(const struct oct_view_contrast *contrast, double value);

/* Grey of each of the 256 u8 pixels of the shown picture. */
void oct_view_contrast_table(const struct oct_view_contrast *contrast, uint8_t table[256]);

#endif
