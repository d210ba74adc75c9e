/* Zoom and pan: where a picture lies in an area of the window, and back from the window into the
 * picture. Pure. */
#ifndef OCT_VIEWER_MODEL_LENS_H
#define OCT_VIEWER_MODEL_LENS_H

#include "viewer/model/layout.h"

#define OCT_VIEW_MOST_ZOOM 32.0

/* x, y: the place of the picture in the middle of the area, as shares of its width and height. */
struct oct_view_lens {
    double zoom, x, y;     /* zoom >= 1 */
    double seen_x, seen_y; /* shares of the picture that the area shows at zoom 1; 1: all of it */
};

struct oct_view_rectf {
    double x, y, w, h;
};

void oct_view_lens_init(struct oct_view_lens *lens);

/* Returns where the whole picture lies, which is `width` by `height` at zoom 1. One larger than the
 * area reaches beyond it, and the area cuts it. At zoom 1 it begins at a whole pixel. */
struct oct_view_rectf oct_view_lens_place(const struct oct_view_lens *lens,
                                          struct oct_view_rect area, double width, double height);

/* Notes how much of the picture the area shows, by where oct_view_lens_place put it: the view moves
 * within its edges. */
void oct_view_lens_see(struct oct_view_lens *lens, struct oct_view_rect area,
                       struct oct_view_rectf place);

/* Zooms by a factor. The place (x, y) of the picture, in shares, stays where it is in the
 * window. */
void oct_view_lens_zoom(struct oct_view_lens *lens, double factor, double x, double y);

/* Moves the view by shares of what is seen. */
void oct_view_lens_pan(struct oct_view_lens *lens, double x, double y);

#endif
