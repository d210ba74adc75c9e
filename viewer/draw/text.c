/* Text. The linker leads a test to look at each text before it is drawn: no other file has it. */
#include "viewer/draw/canvas.h"

#include <SDL.h>
#include <SDL_ttf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES 384
#define N_SETS 128u /* a string's hash chooses its set */
#define N_WAYS 4u   /* strings a set holds; the one used longest ago is replaced */

struct entry {
    char string[MOST_BYTES];
    enum oct_text_size size;
    uint32_t rgb;
    SDL_Texture *texture; /* NULL: nothing remembered */
    int w, h;
    uint64_t used;
};

struct oct_text {
    SDL_Renderer *renderer;
    TTF_Font *font[OCT_TEXT_N_SIZES];
    int size_px[OCT_TEXT_N_SIZES];
    uint64_t n_drawn;
    struct entry entry[N_SETS][N_WAYS];
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

static enum oct_err open_fonts(struct oct_text *t, const char *font, struct oct_error *err)
{
    for (int i = 0; i < OCT_TEXT_N_SIZES; i++) {
        t->size_px[i] = 16;
        t->font[i] = font ? TTF_OpenFont(font, 16) : open_usual_font(16);
        if (!t->font[i] && font)
            return oct_fail(err, OCT_E_IO, "font %s: %s; the window has no text", font,
                            TTF_GetError());
        if (!t->font[i])
            return oct_fail(err, OCT_E_IO,
                            "no font found, the window has no text: install fonts-dejavu-core or "
                            "name one with --font FILE");
        TTF_SetFontHinting(t->font[i], TTF_HINTING_LIGHT);
    }
    return OCT_OK;
}

enum oct_err oct_text_create(struct oct_text **text, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err)
{
    *text = NULL;
    struct oct_text *t = calloc(1, sizeof(*t));
    if (!t)
        return oct_fail(err, OCT_E_NO_MEMORY, "font: out of memory");
    t->renderer = renderer;
    if (TTF_Init() < 0) {
        free(t);
        return oct_fail(err, OCT_E_IO, "font: %s; the window has no text", TTF_GetError());
    }
    enum oct_err code = open_fonts(t, font, err);
    if (code) {
        oct_text_destroy(t);
        return code;
    }
    *text = t;
    return OCT_OK;
}

/* Returns whether the height is another now. */
static bool set_size(struct oct_text *text, enum oct_text_size size, int px)
{
    if (px == text->size_px[size] || TTF_SetFontSize(text->font[size], px) != 0)
        return false;
    text->size_px[size] = px;
    return true;
}

void oct_text_set_size(struct oct_text *text, int normal_px, int large_px)
{
    const bool normal = set_size(text, OCT_TEXT_NORMAL, normal_px);
    const bool large = set_size(text, OCT_TEXT_LARGE, large_px);
    if (normal || large)
        oct_text_forget(text);
}

void oct_text_set_huge(struct oct_text *text, int huge_px)
{
    if (set_size(text, OCT_TEXT_HUGE, huge_px))
        oct_text_forget(text);
}

int oct_text_line_height(const struct oct_text *text, enum oct_text_size size)
{
    return TTF_FontLineSkip(text->font[size]);
}

static void render(struct oct_text *text, struct entry *e, enum oct_text_size size,
                   const char *string, uint32_t rgb)
{
    SDL_Color color = {(Uint8)(rgb >> 16), (Uint8)(rgb >> 8), (Uint8)rgb, 255};
    if (e->texture)
        SDL_DestroyTexture(e->texture);
    e->texture = NULL;
    SDL_Surface *surface = TTF_RenderUTF8_Blended(text->font[size], string, color);
    if (!surface)
        return;
    e->texture = SDL_CreateTextureFromSurface(text->renderer, surface);
    e->w = surface->w;
    e->h = surface->h;
    SDL_FreeSurface(surface);
    snprintf(e->string, sizeof(e->string), "%s", string);
    e->size = size;
    e->rgb = rgb;
}

/* FNV-1a. */
static unsigned set_of(const char *string, enum oct_text_size size, uint32_t rgb)
{
    uint32_t hash = 2166136261u ^ rgb ^ (uint32_t)size;
    for (; *string; string++)
        hash = (hash ^ (uint8_t)*string) * 16777619u;
    return (hash ^ hash >> 16) % N_SETS;
}

static struct entry *find_entry(struct oct_text *text, enum oct_text_size size, const char *string,
                                uint32_t rgb)
{
    struct entry *set = text->entry[set_of(string, size, rgb)], *oldest = set;
    for (unsigned i = 0; i < N_WAYS; i++) {
        if (set[i].texture && set[i].size == size && set[i].rgb == rgb &&
            strcmp(set[i].string, string) == 0)
            return &set[i];
        if (!set[i].texture || (oldest->texture && set[i].used < oldest->used))
            oldest = &set[i];
    }
    render(text, oldest, size, string, rgb);
    return oldest;
}

int oct_text_width(struct oct_text *text, enum oct_text_size size, const char *string)
{
    int w = 0;
    return TTF_SizeUTF8(text->font[size], string, &w, NULL) == 0 ? w : 0;
}

int oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y, const char *string,
                  uint32_t rgb)
{
    if (string[0] == '\0' || strlen(string) >= MOST_BYTES)
        return 0;
    struct entry *e = find_entry(text, size, string, rgb);
    e->used = ++text->n_drawn;
    if (!e->texture)
        return 0;
    SDL_RenderCopy(text->renderer, e->texture, NULL, &(SDL_Rect){x, y, e->w, e->h});
    return e->w;
}

void oct_text_forget(struct oct_text *text)
{
    for (unsigned i = 0; i < N_SETS; i++)
        for (unsigned k = 0; k < N_WAYS; k++) {
            if (text->entry[i][k].texture)
                SDL_DestroyTexture(text->entry[i][k].texture);
            text->entry[i][k].texture = NULL;
        }
}

void oct_text_destroy(struct oct_text *text)
{
    if (!text)
        return;
    oct_text_forget(text);
    for (int i = 0; i < OCT_TEXT_N_SIZES; i++)
        if (text->font[i])
            TTF_CloseFont(text->font[i]);
    TTF_Quit();
    free(text);
}
