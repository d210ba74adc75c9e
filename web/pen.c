#include "web/pen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE OCT_WEB_PEN_SIDE
#define TENTHS 10
#define MOST_PATHS 4096u
#define MOST_PLACES 32768u
#define MOST_TEXTS 64u
/* Of letters, in the list's own pixels. */
#define LETTER_WIDTH 13
#define LETTER_HEIGHT 24

struct path {
    uint32_t rgb;
    unsigned alpha, first, n; /* places */
    bool fills;               /* two places: corner, size */
};

struct written {
    struct oct_view_rect at; /* w 0: words in the corner */
    uint32_t rgb;
    char text[OCT_VIEW_TEXT_BYTES];
};

struct place {
    int x, y; /* tenths */
};

struct oct_draw {
    struct oct_view_layout layout;
    unsigned n_paths, n_places, n_texts;
    struct path paths[MOST_PATHS];
    struct place places[MOST_PLACES];
    struct place from, to; /* of the last line */
    struct written texts[MOST_TEXTS];
};

struct oct_draw *oct_web_pen_create(void)
{
    const struct oct_view_rect all = {0, 0, SIDE, SIDE};
    struct oct_draw *draw = calloc(1, sizeof(*draw));
    if (draw)
        draw->layout = (struct oct_view_layout){.text_px = LETTER_HEIGHT,
                                                .large_px = LETTER_HEIGHT * 3 / 2,
                                                .margin = LETTER_HEIGHT / 3,
                                                .bscan = all,
                                                .enface = all,
                                                .place = {0, 0, SIDE, SIDE},
                                                .picture = all};
    return draw;
}

void oct_web_pen_destroy(struct oct_draw *draw)
{
    free(draw);
}

/* ---- the pen ---- */

const struct oct_view_layout *oct_draw_layout(const struct oct_draw *draw)
{
    return &draw->layout;
}

uint32_t oct_draw_tone(enum oct_view_tone tone)
{
    static const uint32_t rgb[] = {RGB_PLAIN, RGB_DIM, RGB_GOOD, RGB_WARN, RGB_BAD};
    return rgb[tone];
}

static struct place place_at(double x, double y)
{
    return (struct place){(int)lround(x * TENTHS), (int)lround(y * TENTHS)};
}

static bool is_same(struct place a, struct place b)
{
    return a.x == b.x && a.y == b.y;
}

static void add_path(struct oct_draw *draw, struct path path, struct place a, struct place b)
{
    if (draw->n_paths == MOST_PATHS || draw->n_places + 2 > MOST_PLACES)
        return;
    path.first = draw->n_places;
    path.n = 2;
    draw->paths[draw->n_paths++] = path;
    draw->places[draw->n_places++] = a;
    draw->places[draw->n_places++] = b;
}

/* A line that goes on where the one before ended belongs to it. One just below another of its
 * colour makes that thicker, which the page does by itself. */
void oct_draw_line(struct oct_draw *draw, double x0, double y0, double x1, double y1, uint32_t rgb,
                   unsigned alpha)
{
    const struct place a = place_at(x0, y0), b = place_at(x1, y1);
    struct path *last = draw->n_paths ? &draw->paths[draw->n_paths - 1] : NULL;
    const bool is_alike = last && !last->fills && last->rgb == rgb && last->alpha == alpha;
    const struct place above[2] = {{a.x, a.y - TENTHS}, {b.x, b.y - TENTHS}};
    if (is_alike && is_same(above[0], draw->from) && is_same(above[1], draw->to))
        return;
    draw->from = a;
    draw->to = b;
    if (!is_alike || !is_same(draw->places[draw->n_places - 1], a) ||
        draw->n_places == MOST_PLACES) {
        add_path(draw, (struct path){.rgb = rgb, .alpha = alpha}, a, b);
        return;
    }
    draw->places[draw->n_places++] = b;
    last->n++;
}

void oct_draw_fill(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb, unsigned alpha)
{
    if (r.w > 0 && r.h > 0)
        add_path(draw, (struct path){.rgb = rgb, .alpha = alpha, .fills = true}, place_at(r.x, r.y),
                 place_at(r.w, r.h));
}

void oct_draw_box(struct oct_draw *draw, int x, int y, int w, int h, uint32_t rgb)
{
    oct_draw_fill(draw, (struct oct_view_rect){x, y, w, h}, rgb, 255);
}

void oct_draw_frame_of(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb)
{
    const int right = r.x + r.w, bottom = r.y + r.h;
    oct_draw_line(draw, r.x, r.y, right, r.y, rgb, 255);
    oct_draw_line(draw, right, r.y, right, bottom, rgb, 255);
    oct_draw_line(draw, right, bottom, r.x, bottom, rgb, 255);
    oct_draw_line(draw, r.x, bottom, r.x, r.y, rgb, 255);
}

/* The page cuts at the picture's edges. */
void oct_draw_clip(struct oct_draw *draw, const struct oct_view_rect *r)
{
    (void)draw;
    (void)r;
}

int oct_draw_letters_width(struct oct_draw *draw, unsigned n)
{
    (void)draw;
    return (int)n * LETTER_WIDTH;
}

int oct_draw_line_height(const struct oct_draw *draw, enum oct_text_size size)
{
    return size == OCT_TEXT_NORMAL ? draw->layout.text_px : draw->layout.large_px;
}

int oct_draw_text_width(struct oct_draw *draw, enum oct_text_size size, const char *string)
{
    const unsigned n = (unsigned)strlen(string);
    return oct_draw_letters_width(draw, n) * oct_draw_line_height(draw, size) / LETTER_HEIGHT;
}

static void write_text(struct oct_draw *draw, struct oct_view_rect at, const char *string,
                       uint32_t rgb)
{
    if (draw->n_texts == MOST_TEXTS || !string[0])
        return;
    struct written *w = &draw->texts[draw->n_texts++];
    w->at = at;
    w->rgb = rgb;
    snprintf(w->text, sizeof(w->text), "%s", string);
}

int oct_draw_text(struct oct_draw *draw, enum oct_text_size size, int x, int y, const char *string,
                  uint32_t rgb)
{
    const int w = oct_draw_text_width(draw, size, string);
    write_text(draw, (struct oct_view_rect){x, y, w, oct_draw_line_height(draw, size)}, string,
               rgb);
    return w;
}

void oct_draw_corner(struct oct_draw *draw, const char *string, uint32_t rgb)
{
    write_text(draw, (struct oct_view_rect){0, 0, 0, 0}, string, rgb);
}

void oct_draw_words_below(struct oct_draw *draw, struct oct_view_rect r, int line,
                          const char *string, uint32_t rgb)
{
    (void)r;
    (void)line;
    oct_draw_corner(draw, string, rgb);
}

/* The words in the corner stand beside the list: nothing is drawn among them. */
struct oct_view_rect oct_draw_corner_room(struct oct_draw *draw, int width)
{
    (void)draw;
    (void)width;
    return (struct oct_view_rect){0, 0, 0, 0};
}

/* Marks and calipers are each browser's own (page/measure.js): the model of octweb has none. */
void oct_draw_marks(struct oct_draw *draw, const struct oct_view_model *model)
{
    (void)draw;
    (void)model;
}

/* ---- lists ---- */

static void item_u64(struct oct_json_text *t, uint64_t value)
{
    oct_json_separate(t);
    oct_json_u64(t, value);
}

static void item_int(struct oct_json_text *t, int value)
{
    char digits[16];
    snprintf(digits, sizeof(digits), "%d", value);
    oct_json_separate(t);
    oct_json_raw(t, digits);
}

static void write_path(struct oct_json_text *t, const struct oct_draw *draw, const struct path *p)
{
    oct_json_separate(t);
    oct_json_raw(t, "[");
    item_u64(t, p->rgb);
    item_u64(t, p->alpha);
    item_u64(t, p->fills);
    oct_json_separate(t);
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < p->n; i++) {
        item_int(t, draw->places[p->first + i].x);
        item_int(t, draw->places[p->first + i].y);
    }
    oct_json_raw(t, "]]");
}

static void write_written(struct oct_json_text *t, const struct written *w)
{
    oct_json_separate(t);
    oct_json_raw(t, "[");
    if (w->at.w > 0) {
        item_int(t, w->at.x);
        item_int(t, w->at.y);
        item_int(t, w->at.w);
        item_int(t, w->at.h);
    }
    oct_json_separate(t);
    oct_json_string(t, w->text);
    item_u64(t, w->rgb);
    oct_json_raw(t, "]");
}

static void end_lists(struct oct_draw *draw, struct oct_json_text *t)
{
    oct_json_key(t, "draw");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < draw->n_paths; i++)
        write_path(t, draw, &draw->paths[i]);
    oct_json_raw(t, "]");
    for (int corner = 0; corner < 2; corner++) {
        oct_json_key(t, corner ? "words" : "texts");
        oct_json_raw(t, "[");
        for (unsigned i = 0; i < draw->n_texts; i++)
            if ((draw->texts[i].at.w == 0) == (corner == 1))
                write_written(t, &draw->texts[i]);
        oct_json_raw(t, "]");
    }
}

static void begin_lists(struct oct_draw *draw)
{
    draw->n_paths = draw->n_places = draw->n_texts = 0;
}

void oct_web_pen_bscan(struct oct_draw *draw, const struct oct_view_model *model,
                       struct oct_json_text *t)
{
    begin_lists(draw);
    for (size_t i = 0; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->draw)
            oct_view_overlays[i]->draw(draw, model);
    end_lists(draw, t);
}

void oct_web_pen_enface(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_json_text *t)
{
    int line = 1;
    begin_lists(draw);
    for (size_t i = 0; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->draw_enface)
            line += oct_view_overlays[i]->draw_enface(draw, model, draw->layout.enface, line);
    end_lists(draw, t);
}
