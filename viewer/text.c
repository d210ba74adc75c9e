#include "viewer/text.h"

#include <SDL.h>
#include <SDL_ttf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOT_TEXT_BYTES 256

struct slot {
    char string[SLOT_TEXT_BYTES];
    uint32_t rgb;
    SDL_Texture *texture; /* NULL: nothing remembered */
    int w, h;
};

struct oct_text {
    SDL_Renderer *renderer;
    TTF_Font *font;
    int size_px;
    struct slot slots[OCT_TEXT_SLOTS];
};

/* Where distributions and people put fonts; a leading ~ is the home folder. */
static const char *const font_paths[] = {
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
    "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
    "/usr/share/fonts/dejavu/DejaVuSansMono.ttf",
    "/usr/share/fonts/TTF/DejaVuSansMono.ttf",
    "/usr/local/share/fonts/DejaVuSansMono.ttf",
    "~/.local/share/fonts/DejaVuSansMono.ttf",
    "~/.fonts/DejaVuSansMono.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationMono-Regular.ttf",
    "/usr/share/fonts/truetype/liberation2/LiberationMono-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansMono-Regular.ttf",
    "/usr/share/fonts/truetype/freefont/FreeMono.ttf",
    "/usr/share/fonts/truetype/ubuntu/UbuntuMono-R.ttf",
};

static TTF_Font *open_usual_font(int size_px)
{
    const char *home = getenv("HOME");
    char path[1024];

    for (size_t i = 0; i < sizeof(font_paths) / sizeof(font_paths[0]); i++) {
        if (font_paths[i][0] == '~')
            snprintf(path, sizeof(path), "%s%s", home ? home : "", font_paths[i] + 1);
        else
            snprintf(path, sizeof(path), "%s", font_paths[i]);
        TTF_Font *font = access(path, R_OK) == 0 ? TTF_OpenFont(path, size_px) : NULL;
        if (font)
            return font;
    }
    return NULL;
}

enum oct_err oct_text_create(struct oct_text **text, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    const int size_px = 16;

    *text = NULL;
    struct oct_text *t = calloc(1, sizeof(*t));
    if (!t)
        return oct_fail(err, OCT_E_NO_MEMORY, "font: out of memory");
    t->renderer = renderer;
    t->size_px = size_px;
    if (TTF_Init() < 0) {
        code = oct_fail(err, OCT_E_IO, "font: %s; the window has no text", TTF_GetError());
        free(t);
        return code;
    }
    t->font = font ? TTF_OpenFont(font, size_px) : open_usual_font(size_px);
    if (!t->font && font)
        code = oct_fail(err, OCT_E_IO, "font %s: %s; the window has no text", font, TTF_GetError());
    else if (!t->font)
        code = oct_fail(err, OCT_E_IO,
                        "no font found, the window has no text: install fonts-dejavu-core or name "
                        "one with --font FILE");
    if (code) {
        oct_text_destroy(t);
        return code;
    }
    TTF_SetFontHinting(t->font, TTF_HINTING_LIGHT);
    *text = t;
    return OCT_OK;
}

void oct_text_set_size(struct oct_text *text, int size_px)
{
    if (size_px == text->size_px || TTF_SetFontSize(text->font, size_px) < 0)
        return;
    text->size_px = size_px;
    oct_text_forget(text);
}

int oct_text_line_height(const struct oct_text *text)
{
    return TTF_FontLineSkip(text->font);
}

int oct_text_width(struct oct_text *text, const char *string)
{
    int w = 0;

    return TTF_SizeUTF8(text->font, string, &w, NULL) == 0 ? w : 0;
}

static void render(struct oct_text *text, struct slot *slot, const char *string, uint32_t rgb)
{
    SDL_Color color = {(Uint8)(rgb >> 16), (Uint8)(rgb >> 8), (Uint8)rgb, 255};

    if (slot->texture)
        SDL_DestroyTexture(slot->texture);
    slot->texture = NULL;
    SDL_Surface *surface = TTF_RenderUTF8_Blended(text->font, string, color);
    if (!surface)
        return;
    slot->texture = SDL_CreateTextureFromSurface(text->renderer, surface);
    slot->w = surface->w;
    slot->h = surface->h;
    SDL_FreeSurface(surface);
    snprintf(slot->string, sizeof(slot->string), "%s", string);
    slot->rgb = rgb;
}

void oct_text_draw(struct oct_text *text, unsigned slot, int x, int y, const char *string,
                   uint32_t rgb)
{
    if (slot >= OCT_TEXT_SLOTS || string[0] == '\0' || strlen(string) >= SLOT_TEXT_BYTES)
        return;
    struct slot *s = &text->slots[slot];
    if (!s->texture || s->rgb != rgb || strcmp(s->string, string) != 0)
        render(text, s, string, rgb);
    if (s->texture)
        SDL_RenderCopy(text->renderer, s->texture, NULL, &(SDL_Rect){x, y, s->w, s->h});
}

void oct_text_forget(struct oct_text *text)
{
    for (unsigned i = 0; i < OCT_TEXT_SLOTS; i++) {
        if (text->slots[i].texture)
            SDL_DestroyTexture(text->slots[i].texture);
        text->slots[i].texture = NULL;
    }
}

void oct_text_destroy(struct oct_text *text)
{
    if (!text)
        return;
    oct_text_forget(text);
    if (text->font)
        TTF_CloseFont(text->font);
    TTF_Quit();
    free(text);
}
