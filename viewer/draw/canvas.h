/* The surface that all of viewer/draw draws on, and its textures. Included by viewer/draw alone. */
#ifndef OCT_VIEWER_DRAW_CANVAS_H
#define OCT_VIEWER_DRAW_CANVAS_H

#include "viewer/draw/pen.h"

#include <SDL.h>

struct oct_text;

/* A picture as a texture, and what it holds. */
struct oct_draw_sheet {
    SDL_Texture *texture; /* NULL: none yet */
    unsigned n_columns, n_rows;
    uint64_t serial;
    struct oct_view_contrast contrast;
    bool dimmed;                 /* as old pictures are */
    uint64_t flow;               /* serial of that which colours it; 0: none does */
    struct oct_view_rectf place; /* of the picture, of which it holds a part; w 0: all of it */
};

/* A picture from above, of which rows that change are drawn anew. */
struct oct_draw_above {
    struct oct_draw_sheet sheet;
    const struct oct_view_enface *of; /* what it holds: octd's, or a recording's */
    double lo, hi;                    /* as drawn */
};

struct oct_draw {
    SDL_Renderer *renderer;
    struct oct_text *text; /* NULL: no font */
    double points, dpi;    /* of letters, of the monitor */
    uint32_t sheet_format; /* SDL's, of 4 bytes with blue first */
    struct oct_view_layout layout;
    struct oct_draw_sheet bscan, slice, before, trace, thumbs;
    struct oct_draw_above enface, angiogram;
    int n_corner_lines; /* of words in the corner of the B-scan, of this frame */
    int veil_px;        /* thickness of the frame in the panel; 0: there is none */
};

/* Draws what changed of a picture from above into its sheet. */
enum oct_err oct_draw_above_update(struct oct_draw *draw, struct oct_draw_above *above,
                                   const struct oct_view_enface *e,
                                   const struct oct_view_contrast *c, struct oct_error *err);
/* Where such a picture lies in its panel. What is round in the eye is round here, however the
 * B-scan lies. bscans: of a row. */
struct oct_view_rect oct_draw_above_fit(const struct oct_draw *draw,
                                        const struct oct_view_model *model,
                                        struct oct_view_rect area, const struct oct_view_enface *e,
                                        double bscans);
/* Playback: B-scan and slice on the one that lies in r. */
void oct_draw_above_cross(struct oct_draw *draw, const struct oct_view_model *model,
                          struct oct_view_rect r);

/* Playback: the nerve fibre layer of the shown B-scan. Below the map, which lies in `map`, a column
 * of the one is a column of the other. */
void oct_draw_fibres(struct oct_draw *draw, const struct oct_view_model *model,
                     struct oct_view_rect map);

/* Leaves three eighths of each pixel's light. */
void oct_draw_darken(uint32_t *argb, unsigned n_columns, unsigned n_rows, size_t pitch_px);
/* Makes the sheet's texture anew if its size is another. */
enum oct_err oct_draw_sheet_size(struct oct_draw *draw, struct oct_draw_sheet *sheet,
                                 unsigned n_columns, unsigned n_rows, struct oct_error *err);
/* Whether it holds that picture in those colours. lock: notes that it will, and gives the pixels to
 * be written until SDL_UnlockTexture. */
bool oct_draw_sheet_has(const struct oct_draw_sheet *sheet, uint64_t serial,
                        const struct oct_view_contrast *contrast);
enum oct_err oct_draw_sheet_lock(struct oct_draw_sheet *sheet, uint64_t serial,
                                 const struct oct_view_contrast *contrast, uint32_t **pixels,
                                 size_t *pitch_px, struct oct_error *err);

/* ---- text: letters are drawn once at their exact size, and kept as textures while used ---- */

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
