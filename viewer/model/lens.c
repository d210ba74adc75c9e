#include "viewer/model/lens.h"

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* Keeps the view within the picture's edges. */
static void keep_inside(struct oct_view_lens *lens)
{
    double half = 0.5 / lens->zoom;

    lens->x = clamp(lens->x, half, 1 - half);
    lens->y = clamp(lens->y, half, 1 - half);
}

void oct_view_lens_init(struct oct_view_lens *lens)
{
    *lens = (struct oct_view_lens){1, 0.5, 0.5};
}

static double along(int start, int extent, double length, double share)
{
    double middle = start + extent / 2.0;

    if (length <= extent)
        return middle - length / 2;
    return clamp(middle - share * length, start + extent - length, start);
}

struct oct_view_rectf oct_view_lens_place(const struct oct_view_lens *lens,
                                          struct oct_view_rect area, double proportion,
                                          bool stretch)
{
    struct oct_view_rect fit = oct_view_layout_fit(area, proportion, stretch);
    struct oct_view_rectf r = {0, 0, fit.w * lens->zoom, fit.h * lens->zoom};

    if (lens->zoom == 1)
        return (struct oct_view_rectf){fit.x, fit.y, fit.w, fit.h};
    r.x = along(area.x, area.w, r.w, lens->x);
    r.y = along(area.y, area.h, r.h, lens->y);
    return r;
}

void oct_view_lens_zoom(struct oct_view_lens *lens, double factor, double x, double y)
{
    double zoom = clamp(lens->zoom * factor, 1, OCT_VIEW_MOST_ZOOM);

    lens->x = x + (lens->x - x) * lens->zoom / zoom;
    lens->y = y + (lens->y - y) * lens->zoom / zoom;
    lens->zoom = zoom;
    keep_inside(lens);
}

void oct_view_lens_pan(struct oct_view_lens *lens, double x, double y)
{
    lens->x += x / lens->zoom;
    lens->y += y / lens->zoom;
    keep_inside(lens);
}
