/* Where things stand in the window: rectangles in pixels from sizes alone. No SDL, no
 * model: another arrangement of panels is another function here. */
#ifndef OCT_VIEWER_MODEL_LAYOUT_H
#define OCT_VIEWER_MODEL_LAYOUT_H

#include <stdbool.h>

struct oct_view_rect {
    int x, y, w, h;
};

/* Height of the letters for a window: readable at 1280x720, growing with it. */
int oct_view_layout_text_px(int width, int height);

#define OCT_VIEW_MOST_BUTTONS 24u

/* The whole window, from the top: header, panels, timeline, buttons, status line. A panel that is
 * not shown has no width. */
struct oct_view_layout {
    int text_px, large_px, margin;
    struct oct_view_rect header;  /* recording and label, full width */
    struct oct_view_rect area;    /* all panels together; never empty */
    struct oct_view_rect bscan;   /* for the B-scan; never empty */
    struct oct_view_rect colours; /* the colour bar, at its right */
    struct oct_view_rect enface, profile, spectrum;
    struct oct_view_rect timeline; /* full width less margins */
    struct oct_view_rect button[OCT_VIEW_MOST_BUTTONS];
    struct oct_view_rect buttons; /* full width */
    struct oct_view_rect status;  /* full width, at the bottom */
};

/* Computes the layout. status_height: of all lines of the status, margins included; n_panels: 1, 2
 * or 4. */
void oct_view_layout_window(struct oct_view_layout *layout, int width, int height,
                            int status_height, unsigned n_panels, unsigned n_buttons);

bool oct_view_rect_holds(struct oct_view_rect r, int x, int y);

/* Returns the largest rectangle of the picture's proportions (width / height), centred in the area,
 * at least one pixel; the whole area when stretched. */
struct oct_view_rect oct_view_layout_fit(struct oct_view_rect area, double proportion,
                                         bool stretch);

/* Breaks a row of n items into lines: item i gets x[i] and line[i]. Items keep their order, `gap`
 * apart; one wider than the line stands alone on its line. Returns the number of lines. */
unsigned oct_view_layout_flow(const int *widths, unsigned n, int line_width, int gap, int *x,
                              unsigned *line);

#endif
