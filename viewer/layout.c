#include "viewer/layout.h"

#include <math.h>

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

int oct_view_layout_text_px(int width, int height)
{
    /* A status line of a hundred letters, each about 0.6 of its height wide, fits 1280 pixels. */
    return larger(12, smaller(height / 40, width / 68));
}

void oct_view_layout_window(struct oct_view_layout *layout, int width, int height,
                            int status_height)
{
    layout->text_px = oct_view_layout_text_px(width, height);
    layout->margin = larger(2, layout->text_px / 2);
    status_height = larger(1, smaller(status_height, height - 1));
    layout->status = (struct oct_view_rect){0, height - status_height, width, status_height};
    layout->area =
        (struct oct_view_rect){0, 0, larger(1, width), larger(1, height - status_height)};
    int edge = layout->margin;
    if (layout->area.w > 4 * edge && layout->area.h > 4 * edge)
        layout->area = (struct oct_view_rect){edge, edge, layout->area.w - 2 * edge,
                                              layout->area.h - 2 * edge};
}

struct oct_view_rect oct_view_layout_fit(struct oct_view_rect area, double proportion, bool stretch)
{
    struct oct_view_rect fit = area;

    if (stretch || !(proportion > 0))
        return area;
    if (proportion * area.h > area.w)
        fit.h = larger(1, (int)lround(area.w / proportion));
    else
        fit.w = larger(1, (int)lround(area.h * proportion));
    fit.x = area.x + (area.w - fit.w) / 2;
    fit.y = area.y + (area.h - fit.h) / 2;
    return fit;
}

unsigned oct_view_layout_flow(const int *widths, unsigned n, int line_width, int gap, int *x,
                              unsigned *line)
{
    unsigned current = 0;
    int next_x = 0;

    for (unsigned i = 0; i < n; i++) {
        if (next_x > 0 && next_x + widths[i] > line_width) {
            current++;
            next_x = 0;
        }
        x[i] = next_x;
        line[i] = current;
        next_x += widths[i] + gap;
    }
    return n == 0 ? 0 : current + 1;
}
