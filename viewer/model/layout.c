#include "viewer/model/layout.h"

#include <math.h>

#define POINTS_PER_INCH 72.0
#define USUAL_HEIGHT_INCH 13.5 /* of a screen of 27 inches */
/* The B-scan's standard share of the panels' width, or of their height. */
#define STANDARD_SHARE 0.64
/* Of the header, at most, for the patient's buttons. */
#define PATIENT_SHARE 0.45
/* Of a button, in 96ths of the size of letters of 12 points: 44 pixels at 96 dots an inch. */
#define TARGET(text_px) ((text_px)*11 / 4)

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

int oct_view_layout_text_px(double points, double dpi, int width, int height)
{
    /* A line of a hundred letters, each about 0.6 of its height wide, and 36 lines. */
    int most = smaller(height / 36, width / 68);
    double wanted = points * dpi / POINTS_PER_INCH;
    return larger(12, wanted < most ? (int)lround(wanted) : most);
}

double oct_view_layout_usual_dpi(int rows)
{
    return fmax(96, rows / USUAL_HEIGHT_INCH);
}

/* ---- buttons ---- */

/* Sets the widths of a row's n buttons of `room` pixels in all: equal ones, whatever their
 * labels, so that they stay where they are; beside a field, which takes all that is left, what
 * they need. */
static void share_row(const struct oct_view_button_room *const *item, unsigned n, int room,
                      int *width)
{
    int needed = 0;
    bool has_field = false;
    for (unsigned i = 0; i < n; i++) {
        needed += item[i]->width;
        has_field |= item[i]->is_field;
    }
    for (unsigned i = 0; i < n; i++) {
        int equal = room * (int)(i + 1) / (int)n - room * (int)i / (int)n;
        width[i] = equal;
        if (has_field && needed > room)
            width[i] = (int)((double)item[i]->width * room / needed);
        else if (has_field)
            width[i] = item[i]->width + (item[i]->is_field ? room - needed : 0);
    }
}

static void place_row(struct oct_view_layout *l, const struct oct_view_contents *c,
                      enum oct_view_button_row which, struct oct_view_rect row, int gap)
{
    const struct oct_view_button_room *item[OCT_VIEW_MOST_BUTTONS];
    unsigned index[OCT_VIEW_MOST_BUTTONS], n = 0;
    int width[OCT_VIEW_MOST_BUTTONS], x = row.x;
    for (unsigned i = 0; i < c->n_buttons && i < OCT_VIEW_MOST_BUTTONS; i++)
        if (c->button[i].row == which) {
            item[n] = &c->button[i];
            index[n++] = i;
        }
    share_row(item, n, row.w - gap * ((int)n - 1), width);
    for (unsigned i = 0; i < n; i++) {
        l->button[index[i]] = (struct oct_view_rect){x, row.y, larger(1, width[i]), row.h};
        x += width[i] + gap;
    }
}

static void place_header(struct oct_view_layout *l, const struct oct_view_contents *c, int height)
{
    const int gap = l->margin, most = (int)(PATIENT_SHARE * c->width);
    const int inset = larger(1, height / 24);
    bool has_field = false;
    int width = 0;
    for (unsigned i = 0; i < c->n_buttons && i < OCT_VIEW_MOST_BUTTONS; i++)
        if (c->button[i].row == OCT_BUTTONS_PATIENT) {
            width += c->button[i].width + gap;
            has_field |= c->button[i].is_field;
        }
    width = has_field ? most : smaller(width, most);
    l->header = (struct oct_view_rect){0, 0, c->width, height};
    l->recording = (struct oct_view_rect){0, 0, larger(1, c->width - width), height};
    if (width == 0)
        return;
    l->patient = (struct oct_view_rect){l->recording.w, 0, width, height};
    place_row(l, c, OCT_BUTTONS_PATIENT,
              (struct oct_view_rect){l->patient.x, inset, larger(1, width - l->margin),
                                     larger(1, height - 2 * inset)},
              gap);
}

/* ---- panels ---- */

static double share_of(double set)
{
    return set > 0 ? clamp(set, OCT_VIEW_LEAST_SHARE, OCT_VIEW_MOST_SHARE) : STANDARD_SHARE;
}

/* Width of the column with the colour bar and the guide; 0: the panel has no room for it. */
static int column_of(const struct oct_view_layout *l, int width, int height)
{
    int column = 5 * l->text_px;
    return width > 5 * column && height > column ? column : 0;
}

/* The area of a picture of these proportions in a panel. */
static double seen_area(double w, double h, double proportion)
{
    return fmin(w, h * proportion) * fmin(h, w / proportion);
}

/* Whether both pictures are larger with the en face picture below. The divider's place does not
 * matter: the panels would change about while it is dragged. */
static bool should_stack(const struct oct_view_layout *l, const struct oct_view_contents *c)
{
    const struct oct_view_rect a = l->area;
    const double w = a.w - l->margin, h = a.h - l->margin, p = c->proportion;
    const double q = c->enface_proportion > 0 ? c->enface_proportion : 1;
    double across = STANDARD_SHARE * w, deep = STANDARD_SHARE * h;
    if (!(p > 0) || !isfinite(p) || !isfinite(q) || w < 8 || h < 8)
        return false;
    double beside_w = across - column_of(l, (int)across, a.h),
           above_w = a.w - column_of(l, a.w, (int)deep);
    double beside = c->fills ? beside_w * a.h : seen_area(beside_w, a.h, p);
    double above = c->fills ? above_w * deep : seen_area(above_w, deep, p);
    return above + seen_area(a.w, h - deep, q) > beside + seen_area(w - across, a.h, q);
}

/* Part i of n of a strip, along x; or along y. */
static struct oct_view_rect part_of(struct oct_view_rect strip, int gap, int i, int n, bool down)
{
    const int length = (down ? strip.h : strip.w) + gap;
    const int begin = length * i / n, extent = larger(1, length * (i + 1) / n - begin - gap);
    return down ? (struct oct_view_rect){strip.x, strip.y + begin, strip.w, extent}
                : (struct oct_view_rect){strip.x + begin, strip.y, extent, strip.h};
}

static void place_stacked(struct oct_view_layout *l, const struct oct_view_contents *c)
{
    const struct oct_view_rect a = l->area;
    const int gap = l->margin, top = larger(1, (int)(share_of(c->divider.stacked) * (a.h - gap)));
    const struct oct_view_rect strip = {a.x, a.y + top + gap, a.w, larger(1, a.h - top - gap)};
    const int n = c->n_panels >= 4 ? 3 : c->has_slice ? 2 : 1;
    l->bscan = (struct oct_view_rect){a.x, a.y, a.w, top};
    l->divider = (struct oct_view_rect){a.x, a.y + top, a.w, gap};
    l->enface = part_of(strip, gap, 0, n, false);
    if (n == 3)
        l->profile = part_of(strip, gap, 1, n, false);
    if (n > 1)
        *(c->has_slice ? &l->slice : &l->spectrum) = part_of(strip, gap, n - 1, n, false);
}

static void place_beside(struct oct_view_layout *l, const struct oct_view_contents *c)
{
    const struct oct_view_rect a = l->area;
    const int gap = l->margin, left = larger(1, (int)(share_of(c->divider.beside) * (a.w - gap)));
    const int top = c->n_panels >= 4 ? larger(1, (a.h - gap) * 6 / 10) : a.h;
    const int bottom = larger(1, a.h - top - gap), below = a.y + top + gap;
    const struct oct_view_rect right = {a.x + left + gap, a.y, larger(1, a.w - left - gap), top};
    const struct oct_view_rect last = {right.x, below, right.w, bottom};
    l->bscan = (struct oct_view_rect){a.x, a.y, left, top};
    l->divider = (struct oct_view_rect){a.x + left, a.y, gap, a.h};
    l->enface = right;
    if (c->n_panels >= 4) {
        l->profile = (struct oct_view_rect){a.x, below, left, bottom};
        *(c->has_slice ? &l->slice : &l->spectrum) = last;
    } else if (c->has_slice) {
        l->enface = part_of(right, gap, 0, 2, true);
        l->slice = part_of(right, gap, 1, 2, true);
    }
}

/* Below the thickness; beside it where that leaves no height for both. */
static void place_fibres(struct oct_view_layout *l)
{
    const struct oct_view_rect all = l->angiogram;
    const int gap = l->margin, profile = larger(7 * l->text_px, all.h / 4);
    if (all.h > 2 * profile) {
        l->angiogram.h -= profile + gap;
        l->fibres = (struct oct_view_rect){all.x, all.y + l->angiogram.h + gap, all.w, profile};
    } else if (all.w > 40 * l->text_px && all.h > 5 * l->text_px) {
        l->angiogram = part_of(all, gap, 0, 2, false);
        l->fibres = part_of(all, gap, 1, 2, false);
    }
}

/* Takes its place from the en face picture, so that both are as large as can be, and alike; the
 * slabs stand below both. */
static void place_angiogram(struct oct_view_layout *l, const struct oct_view_contents *c)
{
    const double q = c->enface_proportion > 0 ? c->enface_proportion : 1;
    const int strip = TARGET(l->text_px), gap = l->margin;
    struct oct_view_rect all = l->enface;
    bool has_slabs = false;
    for (unsigned i = 0; i < c->n_buttons && i < OCT_VIEW_MOST_BUTTONS; i++)
        has_slabs |= c->button[i].row == OCT_BUTTONS_SLABS;
    if (has_slabs && all.h > 3 * strip) {
        all.h -= strip + gap;
        l->slabs = (struct oct_view_rect){all.x, all.y + all.h + gap, all.w, strip};
        place_row(l, c, OCT_BUTTONS_SLABS, l->slabs, gap);
    }
    const bool down = seen_area(all.w, all.h / 2., q) > seen_area(all.w / 2., all.h, q);
    l->enface = part_of(all, l->margin, 0, 2, down);
    l->angiogram = part_of(all, l->margin, 1, 2, down);
    if (c->has_fibres)
        place_fibres(l);
}

static void place_panels(struct oct_view_layout *l, const struct oct_view_contents *c)
{
    l->bscan = l->area;
    l->is_stacked = c->n_panels >= 2 && should_stack(l, c);
    if (l->is_stacked)
        place_stacked(l, c);
    else if (c->n_panels >= 2)
        place_beside(l, c);
    if (c->has_angiogram && l->enface.w > 0)
        place_angiogram(l, c);
    int column = column_of(l, l->bscan.w, l->bscan.h);
    if (column == 0)
        return;
    l->bscan.w -= column;
    l->colours = (struct oct_view_rect){l->bscan.x + l->bscan.w, l->bscan.y, column, l->bscan.h};
    if (c->guide_height > 0 && c->guide_height <= l->colours.h * 2 / 3) {
        l->guide = l->colours;
        l->guide.h = c->guide_height;
        l->colours.y += c->guide_height;
        l->colours.h -= c->guide_height;
    }
    if (c->has_speeds) {
        l->speeds = part_of(l->colours, l->margin, 1, 2, true);
        l->colours = part_of(l->colours, l->margin, 0, 2, true);
    }
}

static void place_list(struct oct_view_layout *l, const struct oct_view_contents *c)
{
    const struct oct_view_rect a = l->area;
    const int w = smaller(c->list_width, a.w), row = TARGET(l->text_px);
    const unsigned most = (unsigned)larger(1, a.h / row - 1);
    l->row_height = row;
    l->n_rows = c->list_rows < most ? c->list_rows : most;
    l->list = (struct oct_view_rect){a.x + a.w - w, a.y, w, ((int)l->n_rows + 1) * row};
}

int oct_view_layout_row_at(const struct oct_view_layout *layout, int x, int y)
{
    const struct oct_view_rect r = layout->list;
    return r.w > 0 && oct_view_rect_holds(r, x, y) ? (y - r.y) / layout->row_height - 1
                                                   : (int)layout->n_rows;
}

double oct_view_layout_share_at(const struct oct_view_layout *layout, double x, double y)
{
    const struct oct_view_rect a = layout->area;
    const double gap = layout->margin;
    double share =
        layout->is_stacked ? (y - a.y - gap / 2) / (a.h - gap) : (x - a.x - gap / 2) / (a.w - gap);
    return share >= OCT_VIEW_LEAST_SHARE ? fmin(share, OCT_VIEW_MOST_SHARE) : OCT_VIEW_LEAST_SHARE;
}

void oct_view_layout_window(struct oct_view_layout *layout, const struct oct_view_contents *c)
{
    int text = c->text_px, width = c->width;
    *layout = (struct oct_view_layout){.text_px = text, .large_px = text * 3 / 2};
    int edge = layout->margin = larger(2, text / 2);
    int status = larger(1, smaller(c->status_height, c->height - 1));
    layout->status = (struct oct_view_rect){0, c->height - status, width, status};
    int left = c->height - status, strip = left / 6;
    place_header(layout, c, smaller(TARGET(text) + edge / 4, strip));
    int buttons = smaller(TARGET(text) + edge / 4, strip), timeline = smaller(text * 7 / 4, strip);
    layout->buttons = (struct oct_view_rect){0, left - buttons, width, buttons};
    place_row(layout, c, OCT_BUTTONS_BELOW,
              (struct oct_view_rect){edge, layout->buttons.y + edge / 8,
                                     larger(1, width - 2 * edge), larger(1, buttons - edge / 4)},
              edge);
    int bottom = layout->buttons.y - timeline, top = layout->header.h;
    layout->timeline = (struct oct_view_rect){edge, bottom, larger(1, width - 2 * edge), timeline};
    int banner = smaller(larger(0, c->banner_height), larger(0, (bottom - top) / 3));
    layout->banner = (struct oct_view_rect){edge, top, larger(1, width - 2 * edge), banner};
    top += banner;
    layout->area = (struct oct_view_rect){0, top, larger(1, width), larger(1, bottom - top)};
    if (layout->area.w > 4 * edge && layout->area.h > 4 * edge)
        layout->area = (struct oct_view_rect){edge, top + edge / 2, layout->area.w - 2 * edge,
                                              layout->area.h - edge};
    if (c->list_width > 0)
        place_list(layout, c);
    place_panels(layout, c);
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

/* ---- the lens ---- */

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
