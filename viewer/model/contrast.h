/* Contrast: which values are black and white, and how pixels become colours. It acts on what was
 * received: a u8 pixel is first turned back into its value by the picture's own limits
 * (value = lo + pixel / 255 * (hi - lo)), an f32 pixel is the value. A value's level is its place
 * between lo and hi, 0..255; the level, bent by gamma, is looked up in the palette. Pure. */
#ifndef OCT_VIEWER_MODEL_CONTRAST_H
#define OCT_VIEWER_MODEL_CONTRAST_H

#include "viewer/model/palette.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
