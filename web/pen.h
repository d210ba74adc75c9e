/* octview's pen (viewer/draw/pen.h) for a browser: what overlays draw becomes a list, which the
 * page draws over the picture, and words. All of octview's overlays draw with it as they are.
 *
 * Lists are of a picture of OCT_WEB_PEN_SIDE by OCT_WEB_PEN_SIDE, whatever its own size is:
 *
 *   "draw":  [[RGB, ALPHA, FILLS, [X, Y, X, Y, ...]], ...]  a line from place to place, in tenths;
 *                                          FILLS: a rectangle X, Y, WIDTH, HEIGHT
 *   "texts": [[X, Y, WIDTH, HEIGHT, TEXT, RGB], ...]        in the middle of that room
 *   "words": [[TEXT, RGB], ...]                             in the corner, line by line
 *
 * One thread. What there is no room for is left out. */
#ifndef OCT_WEB_PEN_H
#define OCT_WEB_PEN_H

#include "pipeline/base/json_text.h"
#include "viewer/draw/pen.h"

#define OCT_WEB_PEN_SIDE 1000

struct oct_draw *oct_web_pen_create(void); /* NULL: no memory */
void oct_web_pen_destroy(struct oct_draw *draw);

/* Adds the three members of the B-scan; of the picture from above. */
void oct_web_pen_bscan(struct oct_draw *draw, const struct oct_view_model *model,
                       struct oct_json_text *t);
void oct_web_pen_enface(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_json_text *t);

#endif
