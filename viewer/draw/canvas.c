/* Fills, lines, letters. */
#include "viewer/draw/canvas.h"

#include <math.h>

uint32_t oct_draw_tone(enum oct_view_tone tone)
{
    static const uint32_t rgb[] = {
        [OCT_TONE_PLAIN] = RGB_PLAIN, [OCT_TONE_DIM] = RGB_DIM, [OCT_TONE_GOOD] = RGB_GOOD,
        [OCT_TONE_WARN] = RGB_WARN,   [OCT_TONE_BAD] = RGB_BAD,
    };
    return rgb[tone];
}

static void set_colour(struct oct_draw *draw, uint32_t rgb, unsigned alpha)
{
    SDL_SetRenderDrawBlendMode(draw->renderer,
                               alpha == 255 ? SDL_BLENDMODE_NONE : SDL_BLENDMODE_BLEND);
    SDL_SetRenderDrawColor(draw->renderer, (Uint8)(rgb >> 16), (Uint8)(rgb >> 8), (Uint8)rgb,
                           (Uint8)alpha);
}

void oct_draw_fill(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb, unsigned alpha)
{
    set_colour(draw, rgb, alpha);
    SDL_RenderFillRect(draw->renderer, &(SDL_Rect){r.x, r.y, r.w, r.h});
}

void oct_draw_box(struct oct_draw *draw, int x, int y, int w, int h, uint32_t rgb)
{
    oct_draw_fill(draw, (struct oct_view_rect){x, y, w, h}, rgb, 255);
}

void oct_draw_around(struct oct_draw *draw, struct oct_view_rect outer, struct oct_view_rect inner,
                     uint32_t rgb, unsigned alpha)
{
    int right = inner.x + inner.w, bottom = inner.y + inner.h;
    struct oct_view_rect bands[] = {
        {outer.x, outer.y, outer.w, inner.y - outer.y},
        {outer.x, bottom, outer.w, outer.y + outer.h - bottom},
        {outer.x, inner.y, inner.x - outer.x, inner.h},
        {right, inner.y, outer.x + outer.w - right, inner.h},
    };
    for (size_t i = 0; i < sizeof(bands) / sizeof(bands[0]); i++)
        if (bands[i].w > 0 && bands[i].h > 0)
            oct_draw_fill(draw, bands[i], rgb, alpha);
}

/* Lines are as thick as the strokes of letters, to be seen from as far. */
void oct_draw_line(struct oct_draw *draw, double x0, double y0, double x1, double y1, uint32_t rgb,
                   unsigned alpha)
{
    int n = draw->layout.text_px / 10 + 1;
    bool steep = fabs(y1 - y0) > fabs(x1 - x0);
    set_colour(draw, rgb, alpha);
    for (int i = 0; i < n; i++) {
        int d = i - n / 2;
        SDL_RenderDrawLine(draw->renderer, (int)floor(x0) + (steep ? d : 0),
                           (int)floor(y0) + (steep ? 0 : d), (int)floor(x1) + (steep ? d : 0),
                           (int)floor(y1) + (steep ? 0 : d));
    }
}

void oct_draw_mark_line(struct oct_draw *draw, double x0, double y0, double x1, double y1,
                        uint32_t rgb)
{
    const bool steep = fabs(y1 - y0) > fabs(x1 - x0);
    const int dx = steep ? 1 : 0, dy = steep ? 0 : 1; /* of the dark ones a pixel is seen */
    oct_draw_line(draw, x0 - dx, y0 - dy, x1 - dx, y1 - dy, RGB_GROUND, 255);
    oct_draw_line(draw, x0 + dx, y0 + dy, x1 + dx, y1 + dy, RGB_GROUND, 255);
    oct_draw_line(draw, x0, y0, x1, y1, rgb, 255);
}

void oct_draw_hatch(struct oct_draw *draw, struct oct_view_rect r, int thick, int apart,
                    uint32_t rgb, unsigned alpha)
{
    oct_draw_clip(draw, &r);
    set_colour(draw, rgb, alpha);
    for (int x = r.x - r.h; x < r.x + r.w; x += apart)
        for (int i = 0; i < thick; i++)
            SDL_RenderDrawLine(draw->renderer, x + i, r.y + r.h - 1, x + i + r.h - 1, r.y);
    oct_draw_clip(draw, NULL);
}

void oct_draw_frame_of(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb)
{
    set_colour(draw, rgb, 255);
    SDL_RenderDrawRect(draw->renderer, &(SDL_Rect){r.x, r.y, r.w, r.h});
}

int oct_draw_text(struct oct_draw *draw, enum oct_text_size size, int x, int y, const char *string,
                  uint32_t rgb)
{
    return draw->text ? oct_text_draw(draw->text, size, x, y, string, rgb) : 0;
}

int oct_draw_text_width(struct oct_draw *draw, enum oct_text_size size, const char *string)
{
    return draw->text ? oct_text_width(draw->text, size, string) : 0;
}

int oct_draw_letters_width(struct oct_draw *draw, unsigned n)
{
    int ten = oct_draw_text_width(draw, OCT_TEXT_NORMAL, "0000000000");
    return ((int)n * (ten > 0 ? ten : 6 * draw->layout.text_px) + 9) / 10;
}

/* Returns the bytes of the first n letters of UTF-8; a byte that is no UTF-8 counts as a letter. */
static size_t bytes_of_letters(const char *text, size_t n)
{
    size_t at = 0;
    for (; n > 0 && text[at]; n--)
        for (at++; ((unsigned char)text[at] & 0xc0) == 0x80;)
            at++;
    return at;
}

static void cut(const char *all, size_t n_letters, size_t n_kept, enum oct_draw_cut where,
                char *text, size_t n_bytes)
{
    size_t n_first = where == OCT_DRAW_CUT_END      ? n_kept
                     : where == OCT_DRAW_CUT_MIDDLE ? n_kept / 2
                                                    : 0;
    SDL_snprintf(text, n_bytes, "%.*s\u2026%s", (int)bytes_of_letters(all, n_first), all,
                 all + bytes_of_letters(all, n_letters - (n_kept - n_first)));
}

int oct_draw_text_fit(struct oct_draw *draw, enum oct_text_size size, char *text, size_t n_bytes,
                      int most_px, enum oct_draw_cut where)
{
    char all[OCT_VIEW_TEXT_BYTES + 8];
    int w = oct_draw_text_width(draw, size, text);
    size_t n_letters = 0, least = 0;
    if (w <= most_px)
        return w;
    SDL_strlcpy(all, text, sizeof(all));
    for (size_t at = 0; all[at]; n_letters++)
        at += bytes_of_letters(all + at, 1);
    /* The most letters that fit, by halves. */
    for (size_t most = n_letters; least < most;) {
        size_t n = least + (most - least + 1) / 2;
        cut(all, n_letters, n, where, text, n_bytes);
        if (oct_draw_text_width(draw, size, text) <= most_px)
            least = n;
        else
            most = n - 1;
    }
    cut(all, n_letters, least, where, text, n_bytes);
    w = oct_draw_text_width(draw, size, text);
    if (w > most_px)
        text[0] = '\0';
    return w > most_px ? 0 : w;
}

int oct_draw_line_height(const struct oct_draw *draw, enum oct_text_size size)
{
    if (draw->text)
        return oct_text_line_height(draw->text, size);
    return size == OCT_TEXT_LARGE ? draw->layout.large_px : draw->layout.text_px;
}

void oct_draw_darken(uint32_t *argb, unsigned n_columns, unsigned n_rows, size_t pitch_px)
{
    for (unsigned row = 0; row < n_rows; row++)
        for (unsigned c = 0; c < n_columns; c++) {
            uint32_t *pixel = &argb[row * pitch_px + c];
            uint32_t quarter = *pixel >> 2 & 0x3f3f3fu, eighth = *pixel >> 3 & 0x1f1f1fu;
            *pixel = (*pixel & 0xff000000u) | (quarter + eighth);
        }
}

void oct_draw_label(struct oct_draw *draw, int x, int y, const char *string, uint32_t rgb)
{
    int margin = draw->layout.margin / 2, w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, string);
    if (w == 0)
        return;
    oct_draw_fill(draw,
                  (struct oct_view_rect){x - margin, y, w + 2 * margin,
                                         oct_draw_line_height(draw, OCT_TEXT_NORMAL)},
                  RGB_GROUND, OCT_DRAW_LABEL_SHADE);
    oct_draw_text(draw, OCT_TEXT_NORMAL, x, y, string, rgb);
}

void oct_draw_words_in(struct oct_draw *draw, struct oct_view_rect row, const char *words,
                       uint32_t rgb)
{
    char text[OCT_VIEW_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s", words);
    oct_draw_text_fit(draw, OCT_TEXT_NORMAL, text, sizeof(text), row.w, OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_NORMAL, row.x,
                  row.y + (row.h - oct_draw_line_height(draw, OCT_TEXT_NORMAL)) / 2, text, rgb);
}

void oct_draw_words_below(struct oct_draw *draw, struct oct_view_rect r, int line,
                          const char *string, uint32_t rgb)
{
    oct_draw_label(draw, r.x + draw->layout.margin,
                   r.y + line * oct_draw_line_height(draw, OCT_TEXT_NORMAL) +
                       draw->layout.margin / 2,
                   string, rgb);
}

struct oct_view_rect oct_draw_corner_room(struct oct_draw *draw, int width)
{
    const struct oct_view_rect r = draw->layout.bscan;
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), margin = draw->layout.margin;
    const int inset = margin + draw->veil_px, most = r.w - 2 * inset;
    const struct oct_view_rect room = {r.x + inset, r.y + inset + draw->n_corner_lines++ * line,
                                       width < most ? width : most, line};
    const int edge = margin / 2;
    oct_draw_fill(draw, (struct oct_view_rect){room.x - edge, room.y, room.w + 2 * edge, line},
                  RGB_GROUND, OCT_DRAW_LABEL_SHADE);
    return room;
}

void oct_draw_corner(struct oct_draw *draw, const char *string, uint32_t rgb)
{
    const struct oct_view_rect r = draw->layout.bscan;
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    oct_draw_clip(draw, &r);
    oct_draw_label(draw, r.x + draw->layout.margin + draw->veil_px,
                   r.y + draw->layout.margin + draw->veil_px + draw->n_corner_lines++ * line,
                   string, rgb);
    oct_draw_clip(draw, NULL);
}

void oct_draw_clip(struct oct_draw *draw, const struct oct_view_rect *r)
{
    if (r)
        SDL_RenderSetClipRect(draw->renderer, &(SDL_Rect){r->x, r->y, r->w, r->h});
    else
        SDL_RenderSetClipRect(draw->renderer, NULL);
}

enum oct_err oct_draw_sheet_size(struct oct_draw *draw, struct oct_draw_sheet *sheet,
                                 unsigned n_columns, unsigned n_rows, struct oct_error *err)
{
    if (sheet->texture && n_columns == sheet->n_columns && n_rows == sheet->n_rows)
        return OCT_OK;
    if (sheet->texture)
        SDL_DestroyTexture(sheet->texture);
    sheet->texture = SDL_CreateTexture(draw->renderer, draw->sheet_format,
                                       SDL_TEXTUREACCESS_STREAMING, (int)n_columns, (int)n_rows);
    if (!sheet->texture)
        return oct_fail(err, OCT_E_IO,
                        "drawing a picture of %u x %u: %s; SDL_RENDER_DRIVER=software may help",
                        n_columns, n_rows, SDL_GetError());
    SDL_SetTextureBlendMode(sheet->texture, SDL_BLENDMODE_NONE);
    SDL_SetTextureScaleMode(sheet->texture, SDL_ScaleModeLinear);
    sheet->n_columns = n_columns;
    sheet->n_rows = n_rows;
    sheet->serial = 0;
    return OCT_OK;
}

bool oct_draw_sheet_has(const struct oct_draw_sheet *sheet, uint64_t serial,
                        const struct oct_view_contrast *contrast)
{
    const struct oct_view_contrast *c = &sheet->contrast;
    return sheet->serial == serial && c->lo == contrast->lo && c->hi == contrast->hi &&
           c->gamma == contrast->gamma && c->palette == contrast->palette;
}

enum oct_err oct_draw_sheet_lock(struct oct_draw_sheet *sheet, uint64_t serial,
                                 const struct oct_view_contrast *contrast, uint32_t **pixels,
                                 size_t *pitch_px, struct oct_error *err)
{
    int pitch_bytes;
    void *locked;
    if (SDL_LockTexture(sheet->texture, NULL, &locked, &pitch_bytes) < 0)
        return oct_fail(err, OCT_E_IO, "drawing: %s", SDL_GetError());
    *pixels = locked;
    *pitch_px = (size_t)pitch_bytes / sizeof(uint32_t);
    sheet->serial = serial;
    sheet->contrast = *contrast;
    return OCT_OK;
}
