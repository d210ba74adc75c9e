/* Colours for levels 0 (black) to 255 (white). Pure. */
#ifndef OCT_VIEWER_MODEL_PALETTE_H
#define OCT_VIEWER_MODEL_PALETTE_H

#include <stdint.h>

enum oct_view_palette {
    OCT_PALETTE_GREY,
    OCT_PALETTE_INVERTED,
    OCT_PALETTE_UNIFORM, /* perceptually uniform */
    OCT_N_PALETTES
};

extern const char *const oct_view_palette_names[]; /* NULL-terminated */

uint32_t oct_view_palette_argb(enum oct_view_palette palette, uint8_t level);

#endif
