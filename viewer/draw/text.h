/* Text. Letters are drawn once at their exact size and kept as textures as long as they are
 * used. */
#ifndef OCT_VIEWER_DRAW_TEXT_H
#define OCT_VIEWER_DRAW_TEXT_H

#include "pipeline/base/err.h"

#include <stdint.h>

struct SDL_Renderer;
struct oct_text;

enum oct_text_size {
    OCT_TEXT_NORMAL,
    OCT_TEXT_LARGE,
    OCT_TEXT_HUGE, /* to be read from two metres; its height is set by itself */
    OCT_TEXT_N_SIZES
};

/* Finds a font: `font` if not NULL, else DejaVu Sans Mono or another fixed-width one in the usual
 * folders. OCT_E_IO: none that can be read, with what to install. The renderer is borrowed. */
enum oct_err oct_text_create(struct oct_text **text, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err);

/* Sets the heights of the letters; cheap when they did not change. */
void oct_text_set_size(struct oct_text *text, int normal_px, int large_px);
void oct_text_set_huge(struct oct_text *text, int huge_px);

int oct_text_line_height(const struct oct_text *text, enum oct_text_size size);
int oct_text_width(struct oct_text *text, enum oct_text_size size, const char *string);

/* Draws with the upper left corner at x, y and returns the width. rgb is 0xrrggbb; strings are
 * UTF-8. A string that was drawn lately costs a copy only. */
int oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y, const char *string,
                  uint32_t rgb);

/* Throws the remembered textures away (the renderer lost them). */
void oct_text_forget(struct oct_text *text);

/* NULL is fine. Call it before the renderer is destroyed. */
void oct_text_destroy(struct oct_text *text);

#endif
