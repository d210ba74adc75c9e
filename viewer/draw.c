#include "viewer/draw.h"

#include "pipeline/log.h"
#include "viewer/convert.h"
#include "viewer/status.h"
#include "viewer/text.h"

#include <SDL.h>
#include <string.h>

/* Calm colours: a dark ground that leaves the picture the brightest thing in the room. */
#define RGB_GROUND 0x12161cu
#define RGB_AREA 0x1a2028u
#define RGB_BAR 0x222a34u
#define RGB_PLAIN 0xd8dee6u
#define RGB_DIM 0x8a96a4u
#define RGB_GOOD 0x7fc8a0u
#define RGB_WARN 0xe6b866u
#define RGB_BAD 0xf08a7cu

/* Which remembered texts belong to whom. */
enum {
    SLOT_STATUS = 0,
    SLOT_NOTICE = SLOT_STATUS + OCT_VIEW_MAX_PHRASES,
    SLOT_MESSAGE = SLOT_NOTICE + 2,
    SLOT_HELP,
};

struct oct_draw {
    SDL_Renderer *renderer;
    struct oct_text *text; /* NULL: no font */
    SDL_Texture *picture;  /* upright; NULL: none yet */
    struct oct_view_upright upright;
    uint64_t serial; /* what the texture holds: picture ... */
    double lo, hi;   /* ... and contrast */
    struct oct_view_rect picture_rect;
};

static uint32_t tone_rgb(enum oct_view_tone tone)
{
    static const uint32_t rgb[] = {
        [OCT_VIEW_PLAIN] = RGB_PLAIN, [OCT_VIEW_DIM] = RGB_DIM, [OCT_VIEW_GOOD] = RGB_GOOD,
        [OCT_VIEW_WARN] = RGB_WARN,   [OCT_VIEW_BAD] = RGB_BAD,
    };
    return rgb[tone];
}

static void fill(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb, unsigned alpha)
{
    SDL_SetRenderDrawBlendMode(draw->renderer,
                               alpha == 255 ? SDL_BLENDMODE_NONE : SDL_BLENDMODE_BLEND);
    SDL_SetRenderDrawColor(draw->renderer, (Uint8)(rgb >> 16), (Uint8)(rgb >> 8), (Uint8)rgb,
                           (Uint8)alpha);
    SDL_RenderFillRect(draw->renderer, &(SDL_Rect){r.x, r.y, r.w, r.h});
}

/* ---- the picture ---- */

static enum oct_err make_texture(struct oct_draw *draw, struct oct_view_upright upright,
                                 struct oct_error *err)
{
    if (draw->picture)
        SDL_DestroyTexture(draw->picture);
    draw->picture =
        SDL_CreateTexture(draw->renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_STREAMING,
                          (int)upright.n_columns, (int)upright.n_rows);
    if (!draw->picture)
        return oct_fail(err, OCT_E_IO,
                        "drawing a picture of %u x %u: %s; SDL_RENDER_DRIVER=software may help",
                        upright.n_columns, upright.n_rows, SDL_GetError());
    SDL_SetTextureBlendMode(draw->picture, SDL_BLENDMODE_NONE);
    SDL_SetTextureScaleMode(draw->picture, SDL_ScaleModeLinear);
    draw->upright = upright;
    draw->serial = 0;
    return OCT_OK;
}

static enum oct_err update_texture(struct oct_draw *draw, const struct oct_view_model *model,
                                   struct oct_error *err)
{
    struct oct_view_upright upright = oct_view_upright_of(&model->shown.header);
    void *pixels;
    int pitch_bytes;
    enum oct_err code;

    if (!draw->picture || upright.n_columns != draw->upright.n_columns ||
        upright.n_rows != draw->upright.n_rows)
        if ((code = make_texture(draw, upright, err)))
            return code;
    if (draw->serial == model->serial && draw->lo == model->contrast.lo &&
        draw->hi == model->contrast.hi)
        return OCT_OK;
    if (SDL_LockTexture(draw->picture, NULL, &pixels, &pitch_bytes) < 0)
        return oct_fail(err, OCT_E_IO, "drawing: %s", SDL_GetError());
    oct_view_convert(&model->shown, &model->contrast, pixels,
                     (size_t)pitch_bytes / sizeof(uint32_t));
    SDL_UnlockTexture(draw->picture);
    draw->serial = model->serial;
    draw->lo = model->contrast.lo;
    draw->hi = model->contrast.hi;
    return OCT_OK;
}

static enum oct_err draw_picture(struct oct_draw *draw, const struct oct_view_model *model,
                                 struct oct_view_rect area, struct oct_error *err)
{
    const struct oct_picture_header *header = &model->shown.header;
    enum oct_err code;

    draw->picture_rect = area;
    fill(draw, area, RGB_AREA, 255);
    if (!model->has_picture)
        return OCT_OK;
    if ((code = update_texture(draw, model, err)))
        return code;
    struct oct_view_rect r =
        oct_view_layout_fit(area, (double)header->n_lines / header->depth, model->stretch);
    SDL_RenderCopy(draw->renderer, draw->picture, NULL, &(SDL_Rect){r.x, r.y, r.w, r.h});
    draw->picture_rect = r;
    return OCT_OK;
}

/* ---- words ---- */

struct status_line {
    struct oct_view_phrase phrases[OCT_VIEW_MAX_PHRASES];
    int x[OCT_VIEW_MAX_PHRASES];
    unsigned line[OCT_VIEW_MAX_PHRASES];
    unsigned n, n_lines;
    int line_height, margin;
};

static void arrange_status(struct oct_draw *draw, const struct oct_view_model *model, int width,
                           int text_px, struct status_line *status)
{
    int widths[OCT_VIEW_MAX_PHRASES] = {0};

    status->n = oct_view_status(model, status->phrases);
    status->margin = text_px / 2;
    status->line_height = draw->text ? oct_text_line_height(draw->text) : text_px;
    if (draw->text)
        for (unsigned i = 0; i < status->n; i++)
            widths[i] = oct_text_width(draw->text, status->phrases[i].text);
    /* The state's lamp stands before the first phrase. */
    widths[0] += text_px;
    status->n_lines = oct_view_layout_flow(widths, status->n, width - 2 * status->margin,
                                           text_px * 3 / 2, status->x, status->line);
}

static void draw_status(struct oct_draw *draw, struct oct_view_rect bar, int text_px,
                        const struct status_line *status)
{
    int top = bar.y + status->margin / 2;
    int lamp = text_px * 2 / 3;

    fill(draw, bar, RGB_BAR, 255);
    fill(draw,
         (struct oct_view_rect){bar.x + status->margin, top + (status->line_height - lamp) / 2,
                                lamp, lamp},
         tone_rgb(status->phrases[0].tone), 255);
    if (!draw->text)
        return;
    for (unsigned i = 0; i < status->n; i++)
        oct_text_draw(draw->text, SLOT_STATUS + i,
                      bar.x + status->margin + status->x[i] + (i == 0 ? text_px : 0),
                      top + (int)status->line[i] * status->line_height, status->phrases[i].text,
                      tone_rgb(status->phrases[i].tone));
}

/* A band across the area with centred lines, a stripe in the first one's tone at its left. */
static void draw_band(struct oct_draw *draw, struct oct_view_rect band,
                      const struct oct_view_phrase *lines, unsigned n, unsigned slot, int margin)
{
    fill(draw, band, RGB_BAR, 224);
    fill(draw, (struct oct_view_rect){band.x, band.y, margin / 2, band.h}, tone_rgb(lines[0].tone),
         255);
    if (!draw->text)
        return;
    for (unsigned i = 0; i < n; i++) {
        int x = band.x + (band.w - oct_text_width(draw->text, lines[i].text)) / 2;
        oct_text_draw(draw->text, slot + i, x < band.x + margin ? band.x + margin : x,
                      band.y + margin + (int)i * oct_text_line_height(draw->text), lines[i].text,
                      tone_rgb(lines[i].tone));
    }
}

static struct oct_view_rect band_of(const struct oct_draw *draw, struct oct_view_rect area,
                                    unsigned n_lines, int margin)
{
    int line_height = draw->text ? oct_text_line_height(draw->text) : 2 * margin;

    area.h = (int)n_lines * line_height + 2 * margin;
    return area;
}

/* The notice: in the middle of an empty window, else at the top of the picture. */
static void draw_notice(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_view_rect area, int margin)
{
    struct oct_view_phrase lines[2];
    unsigned n = oct_view_notice(model, lines);

    if (n == 0)
        return;
    struct oct_view_rect band = band_of(draw, area, n, margin);
    if (!model->has_picture)
        band.y = area.y + (area.h - band.h) / 2;
    draw_band(draw, band, lines, n, SLOT_NOTICE, margin);
}

/* Over the lower edge of the picture, which so stays where it is. */
static void draw_message(struct oct_draw *draw, const struct oct_view_model *model,
                         struct oct_view_rect area, int margin)
{
    struct oct_view_phrase line = {.tone = OCT_VIEW_PLAIN};

    if (!model->message[0])
        return;
    SDL_strlcpy(line.text, model->message, sizeof(line.text));
    struct oct_view_rect band = band_of(draw, area, 1, margin);
    band.y = area.y + area.h - band.h;
    draw_band(draw, band, &line, 1, SLOT_MESSAGE, margin);
}

static void draw_help(struct oct_draw *draw, struct oct_view_rect area, int margin)
{
    if (!draw->text)
        return;
    int line_height = oct_text_line_height(draw->text), key_width = 0, width = 0;
    for (size_t i = 0; i < oct_view_n_keys; i++) {
        int key = oct_text_width(draw->text, oct_view_keys[i].key);
        int meaning = oct_text_width(draw->text, oct_view_keys[i].meaning);
        key_width = key > key_width ? key : key_width;
        width = meaning > width ? meaning : width;
    }
    width += key_width + 5 * margin;
    int height = (int)oct_view_n_keys * line_height + 2 * margin;
    struct oct_view_rect box = {area.x + (area.w - width) / 2, area.y + (area.h - height) / 2,
                                width, height};
    box.x = box.x < 0 ? 0 : box.x;
    box.y = box.y < 0 ? 0 : box.y;
    fill(draw, box, RGB_GROUND, 232);
    for (size_t i = 0; i < oct_view_n_keys; i++) {
        int y = box.y + margin + (int)i * line_height;
        unsigned slot = SLOT_HELP + 2 * (unsigned)i;
        oct_text_draw(draw->text, slot, box.x + margin, y, oct_view_keys[i].key, RGB_GOOD);
        oct_text_draw(draw->text, slot + 1, box.x + 4 * margin + key_width, y,
                      oct_view_keys[i].meaning, RGB_PLAIN);
    }
}

/* ---- the whole ---- */

enum oct_err oct_draw_create(struct oct_draw **draw, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err)
{
    struct oct_error no_font;

    *draw = SDL_calloc(1, sizeof(**draw));
    if (!*draw)
        return oct_fail(err, OCT_E_NO_MEMORY, "drawing: out of memory");
    (*draw)->renderer = renderer;
    if (oct_text_create(&(*draw)->text, renderer, font, &no_font))
        oct_log(OCT_LOG_WARNING, "%s", no_font.text);
    return OCT_OK;
}

enum oct_err oct_draw_frame(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err)
{
    struct status_line status;
    struct oct_view_layout layout;
    int width, height;
    enum oct_err code;

    if (SDL_GetRendererOutputSize(draw->renderer, &width, &height) < 0)
        return oct_fail(err, OCT_E_IO, "drawing: %s", SDL_GetError());
    int text_px = oct_view_layout_text_px(width, height);
    if (draw->text)
        oct_text_set_size(draw->text, text_px);
    arrange_status(draw, model, width, text_px, &status);
    oct_view_layout_window(&layout, width, height,
                           (int)status.n_lines * status.line_height + status.margin);
    fill(draw, (struct oct_view_rect){0, 0, width, height}, RGB_GROUND, 255);
    if ((code = draw_picture(draw, model, layout.area, err)))
        return code;
    draw_notice(draw, model, layout.area, layout.margin);
    draw_message(draw, model, layout.area, layout.margin);
    if (model->help)
        draw_help(draw, layout.area, layout.margin);
    draw_status(draw, layout.status, text_px, &status);
    return OCT_OK;
}

struct oct_view_rect oct_draw_picture_rect(const struct oct_draw *draw)
{
    return draw->picture_rect;
}

void oct_draw_forget(struct oct_draw *draw)
{
    if (draw->picture)
        SDL_DestroyTexture(draw->picture);
    draw->picture = NULL;
    if (draw->text)
        oct_text_forget(draw->text);
}

void oct_draw_destroy(struct oct_draw *draw)
{
    if (!draw)
        return;
    oct_draw_forget(draw);
    oct_text_destroy(draw->text);
    SDL_free(draw);
}
