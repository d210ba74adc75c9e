/* Crisp text: letters drawn once at their exact size and kept as textures until they change. */
#ifndef OCT_VIEWER_TEXT_H
#define OCT_VIEWER_TEXT_H

#include "pipeline/err.h"

#include <stdint.h>

struct SDL_Renderer;
struct oct_text;

#define OCT_TEXT_SLOTS 48u

/* Finds a font: `font` if not NULL, else DejaVu Sans Mono or another fixed-width one in the usual
 * folders. OCT_E_IO: none that can be read, with what to install. The renderer is borrowed. */
enum oct_err oct_text_create(struct oct_text **text, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err);

/* Height of the letters from now on; cheap when it did not change. */
void oct_text_set_size(struct oct_text *text, int size_px);

int oct_text_line_height(const struct oct_text *text);
int oct_text_width(struct oct_text *text, const char *string);

/* Draws with the upper left corner at x, y. A slot (< OCT_TEXT_SLOTS) remembers its last string:
 * drawing the same one again costs a copy. rgb is 0xrrggbb; strings are UTF-8. */
void oct_text_draw(struct oct_text *text, unsigned slot, int x, int y, const char *string,
                   uint32_t rgb);

/* Throws the remembered textures away (the renderer lost them). */
void oct_text_forget(struct oct_text *text);

/* NULL is fine. Call it before the renderer is destroyed. */
void oct_text_destroy(struct oct_text *text);

#endif
