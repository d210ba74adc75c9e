/* Where things stand in the window, and where a zoomed picture lies in its panel: rectangles in
 * pixels from sizes alone. No SDL, no model: another arrangement of panels is another function
 * here. */
#ifndef OCT_VIEWER_MODEL_LAYOUT_H
#define OCT_VIEWER_MODEL_LAYOUT_H

#include <stdbool.h>

struct oct_view_rect {
    int x, y, w, h;
};

struct oct_view_rectf {
    double x, y, w, h;
};

/* Height in pixels of letters of so many points (1/72 inch) on a monitor of so many dots an inch.
 * They do not outgrow a small window, whose lines would have no room, and are 12 pixels at
 * least. */
int oct_view_layout_text_px(double points, double dpi, int width, int height);

/* Dots an inch of a screen of so many rows that does not say how large it is: taken as one of 27
 * inches, and as 96 at least. */
double oct_view_layout_usual_dpi(int rows);

#define OCT_VIEW_MOST_BUTTONS 24u
#define OCT_VIEW_LEAST_SHARE 0.25
#define OCT_VIEW_MOST_SHARE 0.85

/* How much of the panels' room the B-scan has, along the line from it to the en face picture: the
 * user's, between the two limits above, or 0: the standard. */
struct oct_view_divider {
    double beside, stacked;
};

/* Where a button stands: below the pictures, in the header, below the angiogram. */
enum oct_view_button_row {
    OCT_BUTTONS_BELOW,
    OCT_BUTTONS_PATIENT,
    OCT_BUTTONS_SLABS,
    OCT_N_BUTTON_ROWS
};

/* What a button needs. */
struct oct_view_button_room {
    enum oct_view_button_row row;
    bool is_field; /* it takes what the others of its row leave */
    int width;     /* of its label and its margins */
};

/* What a window holds. */
struct oct_view_contents {
    int width, height; /* of the window */
    int text_px;
    int status_height;        /* of all lines of the status, margins included */
    int banner_height;        /* of all alarms; 0: there is none */
    int guide_height;         /* of the guide's words above the colour bar; 0: it is not shown */
    unsigned n_panels;        /* 1, 2 or 4 */
    double proportion;        /* of the tissue in the B-scan, width over height; NaN: not known */
    double enface_proportion; /* of that in the en face picture; NaN: taken as a square */
    bool fills;               /* the B-scan fills its panel, whatever its proportions */
    bool has_speeds;          /* a scale of velocities stands below the colour bar */
    bool has_angiogram;       /* or, in playback, the thickness: beside the en face picture, or
                                 below it */
    bool has_fibres;          /* a profile stands below the thickness */
    int list_width;           /* of the day's patients, or exams; 0: they are not shown */
    unsigned list_rows;       /* that they would fill */
    bool has_slice; /* playback: a second cut through the volume, where there are panels */
    struct oct_view_divider divider;
    unsigned n_buttons;
    struct oct_view_button_room button[OCT_VIEW_MOST_BUTTONS];
};

/* The whole window, from the top: header, alarms, panels, timeline, buttons, status line. A panel
 * that is not shown has no width, an absent strip no height. */
struct oct_view_layout {
    int text_px, large_px, margin;
    struct oct_view_rect header;    /* full width */
    struct oct_view_rect recording; /* its left part: the words on recording */
    struct oct_view_rect patient;   /* its right part: the patient's buttons; w 0: there are none */
    struct oct_view_rect banner;    /* alarms, full width less margins; h 0: none */
    struct oct_view_rect area;      /* all panels together; never empty */
    struct oct_view_rect bscan;     /* for the B-scan; never empty */
    struct oct_view_rect guide;     /* at its right, above the colour bar; w 0: none */
    struct oct_view_rect colours;   /* the colour bar, at its right */
    struct oct_view_rect speeds;    /* below it; w 0: none */
    struct oct_view_rect enface, profile, spectrum;
    struct oct_view_rect angiogram; /* or thickness; w 0: none */
    struct oct_view_rect fibres;    /* the profile below the thickness, or beside it; w 0: none */
    struct oct_view_rect slabs;     /* the buttons below it; w 0: none, or no room */
    struct oct_view_rect slice;     /* playback, in the place of the spectrum or by the en face */
    struct oct_view_rect divider;  /* what the mouse drags, between B-scan and en face; w 0: none */
    bool is_stacked;               /* en face below the B-scan: the divider moves up and down */
    struct oct_view_rect timeline; /* full width less margins; in playback the slider's */
    struct oct_view_rect button[OCT_VIEW_MOST_BUTTONS]; /* both rows */
    struct oct_view_rect buttons;                       /* the row below, full width */
    /* The day's patients, or exams, over the panels at the right; w 0: they are not shown. Below a
     * title as high as a row stand n_rows of row_height, as high as a button each. */
    struct oct_view_rect list;
    int row_height;
    unsigned n_rows;
    struct oct_view_rect status; /* full width, at the bottom */

    /* Set by drawing: the whole B-scan, of which its panel shows a part when it is zoomed, and the
     * part of the panel that shows it (all of it without a picture); en face picture, slice and
     * thickness as they lie in their panels (w 0: they are not shown). */
    struct oct_view_rectf place;
    struct oct_view_rect picture, enface_at, slice_at, thickness_at;
    int compare_x; /* of a list of exams: from here on one is compared */
};

/* Computes the layout. The en face picture stands at the right of the B-scan, or below it where
 * both are seen larger so (a wide scan): by the area of the B-scan plus that of the en face
 * picture. */
void oct_view_layout_window(struct oct_view_layout *layout,
                            const struct oct_view_contents *contents);

/* The share that brings the divider's middle to a place of the window, within the limits. */
double oct_view_layout_share_at(const struct oct_view_layout *layout, double x, double y);

/* The row of the list at a place of the window, from 0; n_rows: none; -1: the title. */
int oct_view_layout_row_at(const struct oct_view_layout *layout, int x, int y);

bool oct_view_rect_holds(struct oct_view_rect r, int x, int y);

/* Returns the largest rectangle of the picture's proportions (width / height), centred in the area,
 * at least one pixel; the whole area when stretched. */
struct oct_view_rect oct_view_layout_fit(struct oct_view_rect area, double proportion,
                                         bool stretch);

/* Breaks a row of n items into lines: item i gets x[i] and line[i]. Items keep their order, `gap`
 * apart; one wider than the line stands alone on its line. Returns the number of lines. */
unsigned oct_view_layout_flow(const int *widths, unsigned n, int line_width, int gap, int *x,
                              unsigned *line);

/* ---- zoom and pan ---- */

#define OCT_VIEW_MOST_ZOOM 32.0

/* x, y: the place of the picture in the middle of the area, as shares of its width and height. */
struct oct_view_lens {
    double zoom, x, y;     /* zoom >= 1 */
    double seen_x, seen_y; /* shares of the picture that the area shows at zoom 1; 1: all of it */
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
