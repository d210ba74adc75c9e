#include "viewer/model/layout.h"

#include <math.h>

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* Keeps the view within the picture's edges. */
static void keep_inside(struct oct_view_lens *lens)
{
    double half_x = 0.5 * lens->seen_x / lens->zoom, half_y = 0.5 * lens->seen_y / lens->zoom;

    lens->x = clamp(lens->x, half_x, 1 - half_x);
    lens->y = clamp(lens->y, half_y, 1 - half_y);
}

void oct_view_lens_init(struct oct_view_lens *lens)
{
    *lens = (struct oct_view_lens){1, 0.5, 0.5, 1, 1};
}

static double along(int start, int extent, double length, double share)
{
    double middle = start + extent / 2.0;

    if (length <= extent)
        return middle - length / 2;
    return clamp(middle - share * length, start + extent - length, start);
}

struct oct_view_rectf oct_view_lens_place(const struct oct_view_lens *lens,
                                          struct oct_view_rect area, double width, double height)
{
    struct oct_view_rectf r = {0, 0, width * lens->zoom, height * lens->zoom};

    r.x = along(area.x, area.w, r.w, lens->x);
    r.y = along(area.y, area.h, r.h, lens->y);
    if (lens->zoom == 1) {
        r.x = floor(r.x);
        r.y = floor(r.y);
    }
    return r;
}

void oct_view_lens_see(struct oct_view_lens *lens, struct oct_view_rect area,
                       struct oct_view_rectf place)
{
    lens->seen_x = place.w > 0 ? clamp(area.w * lens->zoom / place.w, 0, 1) : 1;
    lens->seen_y = place.h > 0 ? clamp(area.h * lens->zoom / place.h, 0, 1) : 1;
    keep_inside(lens);
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
    lens->x += x * lens->seen_x / lens->zoom;
    lens->y += y * lens->seen_y / lens->zoom;
    keep_inside(lens);
}
