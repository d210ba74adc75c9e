/* The surface that all of viewer/draw draws on: its colours, its textures, and rectangles, lines
 * and text in them (canvas.c). One thread, SDL's. Included by viewer/draw alone. */
#ifndef OCT_VIEWER_DRAW_CANVAS_H
#define OCT_VIEWER_DRAW_CANVAS_H

#include "viewer/draw/draw.h"
#include "viewer/draw/text.h"
#include "viewer/model/picture.h"
#include "viewer/model/words.h"

#include <SDL.h>

/* Calm colours: a dark ground that leaves the picture the brightest thing in the room. */
#define RGB_GROUND 0x12161cu
#define RGB_AREA 0x1a2028u
#define RGB_BAR 0x222a34u
#define RGB_BUTTON 0x303b49u
#define RGB_PLAIN 0xd8dee6u
#define RGB_DIM 0x8a96a4u
#define RGB_GOOD 0x7fc8a0u
#define RGB_WARN 0xe6b866u
#define RGB_BAD 0xf08a7cu
#define RGB_RECORD 0xb3261eu
#define RGB_MEASURE 0x5cc8ffu
#define RGB_PLAYBACK 0x8fb4ffu
#define RGB_MARK 0xffe14du
#define RGB_CELL 0xff9a3cu
#define RGB_ILM 0x4be0d0u
#define RGB_RPE 0xff7ac8u

/* A picture as a texture, and what it holds. */
struct oct_draw_sheet {
    SDL_Texture *texture; /* NULL: none yet */
    unsigned n_columns, n_rows;
    uint64_t serial;
    struct oct_view_contrast contrast;
    bool dimmed;                 /* as old pictures are */
    struct oct_view_rectf place; /* of the picture, of which it holds a part; w 0: all of it */
};

struct oct_draw {
    SDL_Renderer *renderer;
    struct oct_text *text; /* NULL: no font */
    double points, dpi;    /* of letters, of the monitor */
    uint32_t sheet_format; /* SDL's, of 4 bytes with blue first */
    struct oct_view_layout layout;
    struct oct_draw_sheet bscan, enface, slice;
    const struct oct_view_enface *enface_of; /* what its sheet holds: octd's, or a recording's */
    struct oct_view_rect enface_rect, slice_rect; /* where they are drawn; w 0: nowhere */
    struct oct_view_rectf place;                  /* of the whole B-scan */
    struct oct_view_rect picture_rect;            /* of what is seen of it */
    double enface_lo, enface_hi;                  /* as drawn */
    int n_corner_lines; /* of words in the corner of the B-scan, of this frame */
    int veil_px;        /* thickness of the frame in the panel; 0: there is none */
};

enum oct_draw_cut { OCT_DRAW_CUT_END, OCT_DRAW_CUT_MIDDLE, OCT_DRAW_CUT_BEGINNING };

uint32_t oct_draw_tone(enum oct_view_tone tone);
void oct_draw_fill(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb, unsigned alpha);
/* Fills outer except inner, which lies within it and which other code draws: on a large screen,
 * writing pixels twice takes most of the time. */
void oct_draw_around(struct oct_draw *draw, struct oct_view_rect outer, struct oct_view_rect inner,
                     uint32_t rgb);
/* Stripes from the lower left to the upper right, within r: `thick` px wide, `apart` px from one to
 * the next, along the edge. */
void oct_draw_hatch(struct oct_draw *draw, struct oct_view_rect r, int thick, int apart,
                    uint32_t rgb, unsigned alpha);
void oct_draw_line(struct oct_draw *draw, double x0, double y0, double x1, double y1, uint32_t rgb,
                   unsigned alpha);
void oct_draw_frame_of(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb);
/* Leaves three eighths of each pixel's light. */
void oct_draw_darken(uint32_t *argb, unsigned n_columns, unsigned n_rows, size_t pitch_px);
#define OCT_DRAW_LABEL_SHADE 232 /* of 255: all inks have a contrast of 4.5 on white under it */
/* Draws letters on a shade that keeps them readable on any picture. */
void oct_draw_label(struct oct_draw *draw, int x, int y, const char *string, uint32_t rgb);
/* A line of words in the corner of the B-scan's panel, below those before it. */
void oct_draw_corner(struct oct_draw *draw, const char *string, uint32_t rgb);
/* Without a font: 0, and nothing is drawn. */
int oct_draw_text(struct oct_draw *draw, enum oct_text_size size, int x, int y, const char *string,
                  uint32_t rgb);
int oct_draw_text_width(struct oct_draw *draw, enum oct_text_size size, const char *string);
/* The width of so many normal letters; letters of the layout without a font. */
int oct_draw_letters_width(struct oct_draw *draw, unsigned n);
int oct_draw_line_height(const struct oct_draw *draw, enum oct_text_size size);
/* Replaces letters by an ellipsis until the text is at most `most_px` wide, and returns its width.
 * The text may become "" or the ellipsis alone. */
int oct_draw_text_fit(struct oct_draw *draw, enum oct_text_size size, char *text, size_t n_bytes,
                      int most_px, enum oct_draw_cut where);
void oct_draw_clip(struct oct_draw *draw, const struct oct_view_rect *r); /* NULL: none */
/* Makes the sheet's texture anew if its size is another. */
enum oct_err oct_draw_sheet_size(struct oct_draw *draw, struct oct_draw_sheet *sheet,
                                 unsigned n_columns, unsigned n_rows, struct oct_error *err);

#endif
