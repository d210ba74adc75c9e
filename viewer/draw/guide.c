/* The guide: the number beside the picture, its parts under the pointer, the lines between which
 * tissue should lie, and an arrow that says which way to move. */
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>

/* From these numbers on a picture is good, or fair. */
#define GOOD 7
#define FAIR 4

static enum oct_view_tone tone_of(double index)
{
    return index >= GOOD ? OCT_TONE_GOOD : index >= FAIR ? OCT_TONE_WARN : OCT_TONE_BAD;
}

/* ---- the number, of segments: as large as wanted, and without a font ---- */

/* Fills the segments of a digit, from the top clockwise and then the middle, one a bit. */
static void draw_digit(struct oct_draw *draw, struct oct_view_rect r, unsigned segments,
                       uint32_t rgb)
{
    const int thick = r.w / 4 > 1 ? r.w / 4 : 1, half = (r.h + thick) / 2;
    const int right = r.x + r.w - thick, middle = r.y + (r.h - thick) / 2;
    const struct oct_view_rect at[7] = {
        {r.x, r.y, r.w, thick},       {right, r.y, thick, half},
        {right, middle, thick, half}, {r.x, r.y + r.h - thick, r.w, thick},
        {r.x, middle, thick, half},   {r.x, r.y, thick, half},
        {r.x, middle, r.w, thick},
    };
    for (unsigned i = 0; i < 7; i++)
        if (segments >> i & 1u)
            oct_draw_fill(draw, at[i], rgb, 255);
}

/* 0 to 19, of which a 1 before another is as narrow as it is; below 0: a dash. */
static void draw_number(struct oct_draw *draw, struct oct_view_rect r, int number, uint32_t rgb)
{
    static const unsigned digits[10] = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};
    const int width = r.h * 5 / 9, gap = width / 3, one = width / 4 > 1 ? width / 4 : 1;
    struct oct_view_rect at = {r.x + (r.w - width) / 2, r.y, width, r.h};
    if (number >= 10) {
        at.x += (one + gap) / 2;
        oct_draw_box(draw, at.x - gap - one, r.y, one, r.h, rgb);
    }
    draw_digit(draw, at, number < 0 ? 0x40 : digits[number % 10], rgb);
}

static int number_height(const struct oct_draw *draw)
{
    return oct_draw_layout(draw)->text_px * 4;
}

int oct_draw_guide_height(const struct oct_draw *draw, const struct oct_view_model *model)
{
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    return model->settings.guide && model->has_picture
               ? 2 * line + number_height(draw) + 3 * oct_draw_layout(draw)->margin
               : 0;
}

/* The word below the number: the part that costs most. */
static const char *word_of(const struct oct_view_model *model)
{
    const struct oct_view_guide *g = &model->guide;
    enum oct_view_guide_part worst = OCT_GUIDE_SIGNAL;
    for (unsigned i = 0; i < OCT_GUIDE_N_PARTS; i++) /* a NaN is not less */
        if (g->part[i] < g->part[worst])
            worst = (enum oct_view_guide_part)i;
    return g->number >= GOOD ? "good" : oct_view_guide_part_name(worst);
}

static void draw_middle(struct oct_draw *draw, struct oct_view_rect r, int y, const char *words,
                        uint32_t rgb)
{
    const int w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, words);
    oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + (r.w - w) / 2, y, words, rgb);
}

void oct_draw_guide(struct oct_draw *draw, const struct oct_view_model *model)
{
    const bool has_number = oct_view_guide_has_number(model);
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL),
              margin = oct_draw_layout(draw)->margin;
    const uint32_t rgb = has_number ? oct_draw_tone(tone_of(model->guide.number)) : RGB_DIM;
    struct oct_view_rect r = oct_draw_layout(draw)->guide;
    char words[64];
    if (!model->settings.guide || !model->has_picture)
        return;
    if (r.w == 0) { /* a window without the room for it */
        snprintf(words, sizeof(words), "quality %d: %s", model->guide.number, word_of(model));
        if (has_number)
            oct_draw_corner(draw, words, rgb);
        return;
    }
    draw_middle(draw, r, r.y, "quality", RGB_DIM);
    const struct oct_view_rect number = {r.x, r.y + line + margin / 2, r.w, number_height(draw)};
    draw_number(draw, number, has_number ? model->guide.number : -1, rgb);
    draw_middle(draw, r, number.y + number.h + margin / 2, has_number ? word_of(model) : "", rgb);
}

/* ---- over the picture ---- */

static void draw_dashes(struct oct_draw *draw, double share, uint32_t rgb)
{
    const struct oct_view_rect r = oct_draw_layout(draw)->picture;
    const int dash = oct_draw_layout(draw)->text_px, thick = dash / 7 > 1 ? dash / 7 : 1;
    const int y =
        (int)lround(oct_draw_layout(draw)->place.y + share * oct_draw_layout(draw)->place.h) -
        thick / 2;
    for (int x = r.x; x < r.x + r.w; x += 2 * dash)
        oct_draw_fill(draw, (struct oct_view_rect){x, y, dash, thick}, rgb, 170);
}

/* Pointing up, its tip at the top of r; or down. Row by row. */
static void draw_arrow(struct oct_draw *draw, struct oct_view_rect r, bool up, uint32_t rgb)
{
    const int head = r.h / 2;
    for (int i = 0; i < r.h; i++) {
        const int w = i < head ? r.w * (i + 1) / head : r.w * 2 / 5;
        oct_draw_box(draw, r.x + (r.w - w) / 2, up ? r.y + i : r.y + r.h - 1 - i, w, 1, rgb);
    }
}

/* Tissue that is too low is brought up by coming closer. The arrow stands where there is none:
 * above what is too low, below what is too high. */
static void draw_move(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_guide *g = &model->guide;
    const bool up = g->move == OCT_GUIDE_CLOSER;
    const struct oct_view_rect r = oct_draw_layout(draw)->picture;
    const int margin = oct_draw_layout(draw)->margin,
              line = oct_draw_line_height(draw, OCT_TEXT_LARGE);
    const double from = up ? 0 : g->measured.sight.bottom, to = up ? g->measured.sight.top : 1;
    const int top =
        (int)fmax(oct_draw_layout(draw)->place.y + from * oct_draw_layout(draw)->place.h, r.y);
    const int bottom =
        (int)fmin(oct_draw_layout(draw)->place.y + to * oct_draw_layout(draw)->place.h, r.y + r.h);
    char words[OCT_VIEW_GUIDE_TEXT_BYTES];
    oct_view_guide_move_text(model, words);
    const int room = bottom - top - line - 3 * margin;
    const int h =
        room < 6 * oct_draw_layout(draw)->text_px ? room : 6 * oct_draw_layout(draw)->text_px;
    const int w = oct_draw_text_width(draw, OCT_TEXT_LARGE, words), middle = r.x + r.w / 2;
    const int y = (top + bottom - h - margin - line) / 2;
    if (h > oct_draw_layout(draw)->text_px)
        draw_arrow(draw, (struct oct_view_rect){middle - h * 2 / 5, y, h * 4 / 5, h}, up, RGB_WARN);
    const struct oct_view_rect ground = {middle - w / 2 - margin, y + (h > 0 ? h + margin : 0),
                                         w + 2 * margin, line};
    oct_draw_fill(draw, ground, RGB_GROUND, 200);
    oct_draw_text(draw, OCT_TEXT_LARGE, middle - w / 2, ground.y, words, RGB_WARN);
}

void oct_draw_guide_lines(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_guide *g = &model->guide;
    const uint32_t rgb = g->move == OCT_GUIDE_STAY ? RGB_GOOD : RGB_WARN;
    if (!oct_view_guide_leads(model))
        return;
    oct_draw_clip(draw, &oct_draw_layout(draw)->picture);
    draw_dashes(draw, g->upper, rgb);
    draw_dashes(draw, g->lower, rgb);
    if (g->move != OCT_GUIDE_STAY)
        draw_move(draw, model);
    oct_draw_clip(draw, NULL);
}

/* ---- under the pointer ---- */

struct tip_line {
    char text[2 * OCT_VIEW_GUIDE_TEXT_BYTES];
    uint32_t rgb;
};

static unsigned list_parts(const struct oct_view_model *model,
                           struct tip_line lines[2 * OCT_GUIDE_N_PARTS + 1])
{
    const struct oct_view_guide *g = &model->guide;
    char text[OCT_VIEW_GUIDE_TEXT_BYTES], remedy[OCT_VIEW_GUIDE_TEXT_BYTES];
    unsigned n = 0;
    snprintf(lines[n].text, sizeof(lines[n].text), "quality %d of 10: 10 x its parts", g->number);
    lines[n++].rgb = RGB_PLAIN;
    for (unsigned i = 0; i < OCT_GUIDE_N_PARTS; i++) {
        const enum oct_view_guide_part part = (enum oct_view_guide_part)i;
        const bool known = !isnan(g->part[part]);
        char share[8] = " -  ";
        oct_view_guide_part_text(model, part, text, remedy);
        if (known)
            snprintf(share, sizeof(share), "%.2f", g->part[part]);
        snprintf(lines[n].text, sizeof(lines[n].text), "%-6s %s  %s",
                 oct_view_guide_part_name(part), share, text);
        lines[n++].rgb = known ? oct_draw_tone(tone_of(10 * g->part[part])) : RGB_DIM;
        if (!remedy[0])
            continue;
        snprintf(lines[n].text, sizeof(lines[n].text), "             %s", remedy);
        lines[n++].rgb = RGB_PLAIN;
    }
    return n;
}

void oct_draw_guide_tip(struct oct_draw *draw, const struct oct_view_model *model)
{
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL),
              margin = oct_draw_layout(draw)->margin;
    struct tip_line lines[2 * OCT_GUIDE_N_PARTS + 1];
    int width = 0;
    if (!model->guide.pointed || oct_draw_layout(draw)->guide.w == 0 ||
        !oct_view_guide_has_number(model))
        return;
    const unsigned n = list_parts(model, lines);
    for (unsigned i = 0; i < n; i++) {
        const int w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, lines[i].text);
        width = w > width ? w : width;
    }
    const struct oct_view_rect r = {oct_draw_layout(draw)->guide.x - width - 3 * margin,
                                    oct_draw_layout(draw)->guide.y, width + 2 * margin,
                                    (int)n * line + 2 * margin};
    oct_draw_fill(draw, r, RGB_BAR, 255);
    oct_draw_frame_of(draw, r, RGB_DIM);
    for (unsigned i = 0; i < n; i++)
        oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + margin, r.y + margin + (int)i * line,
                      lines[i].text, lines[i].rgb);
}
