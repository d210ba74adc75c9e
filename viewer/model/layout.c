#include "viewer/model/layout.h"

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

static void place_buttons(struct oct_view_layout *l, unsigned n)
{
    int gap = l->margin / 2, width = l->buttons.w - 2 * l->margin + gap;

    n = n < OCT_VIEW_MOST_BUTTONS ? n : OCT_VIEW_MOST_BUTTONS;
    for (unsigned i = 0; i < n; i++) {
        int x0 = width * (int)i / (int)n, x1 = width * (int)(i + 1) / (int)n;
        l->button[i] =
            (struct oct_view_rect){l->buttons.x + l->margin + x0, l->buttons.y + gap / 2,
                                   larger(1, x1 - x0 - gap), larger(1, l->buttons.h - gap)};
    }
}

static void place_panels(struct oct_view_layout *l, unsigned n_panels)
{
    struct oct_view_rect a = l->area;
    int gap = l->margin, left = a.w, top = a.h;

    if (n_panels >= 2)
        left = larger(1, (a.w - gap) * 6 / 10);
    if (n_panels >= 4)
        top = larger(1, (a.h - gap) * 6 / 10);
    int right = larger(1, a.w - left - gap), bottom = larger(1, a.h - top - gap);
    l->bscan = (struct oct_view_rect){a.x, a.y, left, top};
    if (n_panels >= 2)
        l->enface = (struct oct_view_rect){a.x + left + gap, a.y, right, top};
    if (n_panels >= 4) {
        l->profile = (struct oct_view_rect){a.x, a.y + top + gap, left, bottom};
        l->spectrum = (struct oct_view_rect){a.x + left + gap, a.y + top + gap, right, bottom};
    }
    int bar = 5 * l->text_px;
    if (l->bscan.w > 5 * bar && l->bscan.h > bar) {
        l->bscan.w -= bar;
        l->colours = (struct oct_view_rect){l->bscan.x + l->bscan.w, l->bscan.y, bar, l->bscan.h};
    }
}

void oct_view_layout_window(struct oct_view_layout *layout, int width, int height,
                            int status_height, unsigned n_panels, unsigned n_buttons)
{
    int text = oct_view_layout_text_px(width, height);

    *layout = (struct oct_view_layout){.text_px = text, .large_px = text * 3 / 2};
    int edge = layout->margin = larger(2, text / 2);
    status_height = larger(1, smaller(status_height, height - 1));
    layout->status = (struct oct_view_rect){0, height - status_height, width, status_height};
    int left = height - status_height, strip = left / 6;
    layout->header = (struct oct_view_rect){0, 0, width, smaller(layout->large_px * 2, strip)};
    int buttons = smaller(text * 13 / 5, strip), timeline = smaller(text * 5 / 2, strip);
    layout->buttons = (struct oct_view_rect){0, left - buttons, width, buttons};
    place_buttons(layout, n_buttons);
    int bottom = layout->buttons.y - timeline;
    layout->timeline = (struct oct_view_rect){edge, bottom, larger(1, width - 2 * edge), timeline};
    int top = layout->header.h;
    layout->area = (struct oct_view_rect){0, top, larger(1, width), larger(1, bottom - top)};
    if (layout->area.w > 4 * edge && layout->area.h > 4 * edge)
        layout->area = (struct oct_view_rect){edge, top + edge / 2, layout->area.w - 2 * edge,
                                              layout->area.h - edge};
    place_panels(layout, n_panels);
}

bool oct_view_rect_holds(struct oct_view_rect r, int x, int y)
{
    return x >= r.x && y >= r.y && x < r.x + r.w && y < r.y + r.h;
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
