
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "viewer/app.h"
#include "viewer/draw/draw.h"
#include "viewer/input.h"
#include "viewer/model/picture.h"
#include "viewer/model/words.h"
#include "viewer/signals.h"
#include "viewer/snapshots.h"
#include "viewer/sound.h"

#include <SDL.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAME_NS (OCT_NS_PER_S / 60)
/* How often a window without news is drawn, to count the seconds of a silence, and looks for
 * signals. */
#define IDLE_NS (200 * OCT_NS_PER_MS)
/* How long the end of the program waits for snapshots that are being written. */
#define SNAPSHOTS_WAIT_S 10
/* And for a sound device that hangs. */
#define SOUND_WAIT_MS 500
/* Monitors that say otherwise do not know their size: a projector, a switch between computers. */
#define LEAST_DPI 60
#define MOST_DPI 400

struct window {
    SDL_Window *window;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_view_app app;
    struct oct_view_snapshots *snapshots;
    struct oct_view_sound *sound;
    struct oct_view_sounds sounds;
    bool sounds_on; /* as the settings said at the last turn */
    struct oct_view_input input;
    uint32_t news_event; /* pushed by the threads of the app */
    bool changed;        /* something is to be drawn anew */
    bool news;           /* the app has something, which its turn will take */
    bool typing;
    double text_pt;
    SDL_Cursor *cursor[OCT_N_POINTERS]; /* NULL: SDL has none; the pointer stays as it is */
    bool names_pseudonym;               /* view.snapshot_has_pseudonym */
    SDL_Rect windowed;                  /* where it was before the full screen */
};

/* A kiosk may have no window manager, and without one SDL's full screen moves nothing. So this sets
 * the window to the screen's place and size, and back to its own afterwards. */
static void toggle_full_screen(struct window *w)
{
    bool full = SDL_GetWindowFlags(w->window) & SDL_WINDOW_FULLSCREEN_DESKTOP;
    SDL_Rect *own = &w->windowed, screen;
    if (!full) {
        SDL_GetWindowPosition(w->window, &own->x, &own->y);
        SDL_GetWindowSize(w->window, &own->w, &own->h);
        if (SDL_GetDisplayBounds(SDL_GetWindowDisplayIndex(w->window), &screen) == 0) {
            SDL_SetWindowPosition(w->window, screen.x, screen.y);
            SDL_SetWindowSize(w->window, screen.w, screen.h);
        }
    }
    if (SDL_SetWindowFullscreen(w->window, full ? 0 : SDL_WINDOW_FULLSCREEN_DESKTOP) < 0)
        oct_view_model_say(&w->app.model, "full screen: %s", SDL_GetError());
    if (full) {
        SDL_SetWindowSize(w->window, own->w, own->h);
        SDL_SetWindowPosition(w->window, own->x, own->y);
    }
}

/* Letters have their size in points on the monitor where the window is now. */
static void set_text(struct window *w)
{
    float diagonal = 0, across = 0, down = 0;
    SDL_Rect screen = {0, 0, 0, 0};
    int display = SDL_GetWindowDisplayIndex(w->window);
    if (display >= 0)
        SDL_GetDisplayBounds(display, &screen);
    if (display < 0 || SDL_GetDisplayDPI(display, &diagonal, &across, &down) < 0 ||
        !(across >= LEAST_DPI && across <= MOST_DPI))
        across = (float)oct_view_layout_usual_dpi(screen.h);
    oct_draw_set_text(w->draw, w->text_pt, (double)across);
}

/* Returns pixels per unit of mouse and window, which on a dense screen is not one. */
static double pixel_ratio(const struct window *w)
{
    int width, height, pixels, rows;
    SDL_GetWindowSize(w->window, &width, &height);
    if (SDL_GetRendererOutputSize(w->renderer, &pixels, &rows) < 0 || width <= 0)
        return 1;
    return (double)pixels / width;
}

static void on_event(struct window *w, const SDL_Event *event)
{
    struct oct_view_model *model = &w->app.model;
    if (event->type == w->news_event) {
        w->news = true; /* taken once, when a frame is due: the newest of each topic */
        return;
    }
    if (event->type == SDL_RENDER_TARGETS_RESET || event->type == SDL_RENDER_DEVICE_RESET)
        oct_draw_forget(w->draw);
    if (event->type == SDL_WINDOWEVENT && event->window.event == SDL_WINDOWEVENT_DISPLAY_CHANGED)
        set_text(w);
    enum oct_view_pointer pointer = w->input.pointer;
    w->changed |= oct_view_input_take(&w->input, event, model, w->draw, pixel_ratio(w));
    if (w->input.pointer != pointer)
        SDL_SetCursor(w->cursor[w->input.pointer]);
    if (w->input.full_screen)
        toggle_full_screen(w);
    w->input.full_screen = false;
    const bool typing = model->typing || oct_view_exams_are_shown(model);
    if (typing != w->typing) {
        w->typing = typing;
        if (w->typing)
            SDL_StartTextInput();
        else
            SDL_StopTextInput();
    }
}

/* In a thread of the app or of the snapshots. SDL_PushEvent may be called from any. */
static void on_news(void *context)
{
    const struct window *w = context;
    SDL_Event event = {.type = w->news_event};
    SDL_PushEvent(&event);
}

/* ---- drawing ---- */

/* The picture as it came, in the contrast of the screen. */
static SDL_Surface *plain_picture(const struct oct_view_model *model)
{
    struct oct_view_upright up = oct_view_upright_of(&model->shown.header);
    SDL_Surface *surface = SDL_CreateRGBSurfaceWithFormat(0, (int)up.n_columns, (int)up.n_rows, 32,
                                                          SDL_PIXELFORMAT_ARGB8888);
    if (surface)
        oct_view_convert(&model->shown, &model->contrast, surface->pixels,
                         (size_t)surface->pitch / sizeof(uint32_t));
    return surface;
}

static SDL_Surface *whole_window(struct window *w)
{
    int width, height;
    SDL_GetRendererOutputSize(w->renderer, &width, &height);
    SDL_Surface *surface =
        SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_ARGB8888);
    if (surface && SDL_RenderReadPixels(w->renderer, NULL, SDL_PIXELFORMAT_ARGB8888,
                                        surface->pixels, surface->pitch) < 0) {
        SDL_FreeSurface(surface);
        surface = NULL;
    }
    return surface;
}

static void save(struct window *w, bool plain)
{
    struct oct_view_model *model = &w->app.model;
    struct oct_view_caption caption;
    struct oct_error why = {0};
    if (plain && !model->has_picture) {
        oct_view_model_say(model, "there is no picture to save yet");
        return;
    }
    SDL_Surface *surface = plain ? plain_picture(model) : whole_window(w);
    oct_view_caption_make(&caption, model, w->names_pseudonym, plain ? "picture" : "window");
    if (oct_view_snapshots_add(w->snapshots, surface, &caption, &why)) {
        oct_view_model_say(model, "%s", why.text);
        oct_log(OCT_LOG_ERROR, "%s", why.text);
    }
}

/* Says in the window what became of snapshots. */
static void take_snapshots(struct window *w)
{
    struct oct_view_snapshot_done done;
    while (oct_view_snapshots_take(w->snapshots, &done)) {
        oct_view_model_say(&w->app.model, "%s%s", done.code ? "" : "saved ", done.text);
        if (done.code)
            oct_log(OCT_LOG_ERROR, "%s", done.text);
        w->changed = true;
    }
}

/* Plays what is due, and one sound when the user asks for them; a failure is told once. */
static void play_sounds(struct window *w)
{
    struct oct_view_model *model = &w->app.model;
    unsigned due = oct_view_sounds_due(&w->sounds, model);
    struct oct_error why;
    if (model->settings.sound && !w->sounds_on)
        due |= OCT_SOUND_RECORD_BEGINS;
    w->sounds_on = model->settings.sound;
    if (w->sounds_on)
        oct_view_sound_play(w->sound, due);
    if (!oct_view_sound_take_fault(w->sound, &why))
        return;
    oct_view_model_say(model, "%s", why.text);
    oct_log(OCT_LOG_WARNING, "%s", why.text);
    w->changed = true;
}

static enum oct_err draw_window(struct window *w, struct oct_error *err)
{
    const bool saves = w->input.snapshot || w->input.snapshot_plain;
    w->app.model.hides_names = saves;
    enum oct_err code = oct_draw_frame(w->draw, &w->app.model, err);
    w->app.model.hides_names = false;
    if (code)
        return code;
    /* The pixels can be read after drawing and before presenting. */
    if (saves)
        save(w, w->input.snapshot_plain);
    w->input.snapshot = w->input.snapshot_plain = false;
    if (saves && (code = oct_draw_frame(w->draw, &w->app.model, err)))
        return code;
    oct_draw_dim(w->draw, &w->app.model);
    SDL_RenderPresent(w->renderer);
    oct_view_model_presented(&w->app.model, oct_clock_ns());
    return OCT_OK;
}

/* What is played back moves on by itself, twice in the time of a B-scan so that none is skipped. */
static uint64_t idle_of(const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    const double half_s = 0.5 / oct_view_playback_rate_hz(p);
    if (!p->active || !p->plays || half_s * (double)OCT_NS_PER_S > (double)IDLE_NS)
        return IDLE_NS;
    const uint64_t half_ns = (uint64_t)(half_s * (double)OCT_NS_PER_S);
    return half_ns > FRAME_NS ? half_ns : FRAME_NS;
}

static enum oct_err loop(struct window *w, struct oct_error *err)
{
    uint64_t due_ns = 0, idle_ns = 0; /* the next frame is drawn not before, and not after */
    enum oct_err code = OCT_OK;
    SDL_Event event;
    w->changed = true;
    while (!w->input.quit && !oct_signals_came()) {
        uint64_t now_ns = oct_clock_ns();
        uint64_t until_ns = w->changed || w->news ? due_ns : idle_ns;
        /* Rounded up: a wait of 0 ms would spin for the rest of a millisecond. */
        int wait_ms =
            until_ns <= now_ns ? 0 : (int)((until_ns - now_ns + OCT_NS_PER_MS - 1) / OCT_NS_PER_MS);
        int came = wait_ms > 0 ? SDL_WaitEventTimeout(&event, wait_ms) : SDL_PollEvent(&event);
        for (; came; came = SDL_PollEvent(&event))
            on_event(w, &event);
        now_ns = oct_clock_ns();
        if (now_ns < (w->changed || w->news ? due_ns : idle_ns))
            continue;
        w->news = false;
        take_snapshots(w);
        bool changed = oct_view_app_turn(&w->app);
        play_sounds(w);
        if (!changed && !w->changed && now_ns < idle_ns)
            continue;
        if ((code = draw_window(w, err)))
            break;
        w->changed = false;
        /* Frames keep their interval, unless one was missed by far. */
        due_ns = now_ns > due_ns + FRAME_NS ? now_ns + FRAME_NS : due_ns + FRAME_NS;
        idle_ns = now_ns + idle_of(&w->app.model);
    }
    return code;
}

/* ---- opening and closing ---- */

/* By itself SDL falls back to a driver that shows nothing, and libraries write to stderr on the way
 * there. So this tells it which displays there are. SDL_VIDEODRIVER in the environment wins. */
static bool has_display(void)
{
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    bool with_x11 = x11 && x11[0], with_wayland = wayland && wayland[0];
    SDL_SetHintWithPriority(SDL_HINT_VIDEODRIVER,
                            with_x11 ? with_wayland ? "x11,wayland" : "x11" : "wayland",
                            SDL_HINT_DEFAULT);
    return with_x11 || with_wayland || getenv("SDL_VIDEODRIVER");
}

/* Without --size the window takes the screen, less what the desktop keeps for itself. A window
 * manager makes room for the frame by maximizing; where there is none, the size does it. */
static void create_window(struct window *w, const struct oct_view_options *options,
                          const char *title)
{
    uint32_t flags = SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;
    SDL_Rect r = {SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, options->width,
                  options->height};
    if (!options->has_size && SDL_GetDisplayUsableBounds(0, &r) == 0)
        flags |= SDL_WINDOW_MAXIMIZED;
    w->window = SDL_CreateWindow(title, r.x, r.y, r.w, r.h, flags);
}

static enum oct_err open_window(struct window *w, const struct oct_view_options *options,
                                struct oct_error *err)
{
    static const SDL_SystemCursor cursors[OCT_N_POINTERS] = {
        SDL_SYSTEM_CURSOR_ARROW, SDL_SYSTEM_CURSOR_SIZEWE, SDL_SYSTEM_CURSOR_SIZENS};
    const char *x11 = getenv("DISPLAY");
    char title[256];
    oct_view_letters_set_locale();
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0");
    /* Drawing on the CPU by default: it is fast enough, looks the same everywhere, and leaves the
     * GPU to the engine. SDL_RENDER_DRIVER in the environment chooses otherwise. The second hint
     * keeps SDL from carrying the finished frame through OpenGL all the same. */
    SDL_SetHintWithPriority(SDL_HINT_RENDER_DRIVER, "software", SDL_HINT_DEFAULT);
    SDL_SetHintWithPriority(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0", SDL_HINT_DEFAULT);
    snprintf(title, sizeof(title), "octview %.200s",
             options->file ? options->file : options->endpoint);
    if (!has_display())
        SDL_SetError("no display (neither DISPLAY nor WAYLAND_DISPLAY is set)");
    else if (SDL_Init(SDL_INIT_VIDEO) == 0)
        create_window(w, options, title);
    if (w->window)
        w->renderer = SDL_CreateRenderer(w->window, -1, 0);
    if (!w->renderer)
        return oct_fail(err, OCT_E_IO,
                        "cannot open a window%s%s: %s; without a display use --headless --frames N "
                        "--screenshot FILE.png",
                        x11 && x11[0] ? " on DISPLAY " : "", x11 ? x11 : "", SDL_GetError());
    SDL_SetWindowMinimumSize(w->window, 320, 240);
    w->news_event = SDL_RegisterEvents(1);
    SDL_StopTextInput(); /* keys are commands until a text is asked for */
    oct_view_input_init(&w->input);
    for (int i = 0; i < OCT_N_POINTERS; i++)
        w->cursor[i] = SDL_CreateSystemCursor(cursors[i]);
    enum oct_err code = oct_draw_create(&w->draw, w->renderer, options->font, err);
    w->text_pt = options->config.view.text_pt;
    w->names_pseudonym = options->config.view.snapshot_has_pseudonym;
    if (code == OCT_OK)
        set_text(w);
    /* A user who starts it from a desktop sees no stderr. */
    if (code == OCT_OK && !oct_draw_has_text(w->draw))
        SDL_SetWindowTitle(w->window, "octview: no font found, no text (see octview --font)");
    return code;
}

static void close_window(struct window *w, bool ends_sdl)
{
    oct_draw_destroy(w->draw);
    for (int i = 0; i < OCT_N_POINTERS; i++)
        SDL_FreeCursor(w->cursor[i]);
    if (w->renderer)
        SDL_DestroyRenderer(w->renderer);
    if (w->window)
        SDL_DestroyWindow(w->window);
    if (ends_sdl)
        SDL_Quit();
}

enum oct_err oct_view_window(const struct oct_view_options *options, struct oct_error *err)
{
    struct window w = {0};
    struct oct_view_model *model = &w.app.model;
    enum oct_err code;
    if ((code = open_window(&w, options, err)) ||
        (code = oct_view_app_open(&w.app, options, on_news, &w, err)) ||
        (code = oct_view_snapshots_create(&w.snapshots, ".", on_news, &w, err)) ||
        (code = oct_view_sound_create(&w.sound, on_news, &w, err)))
        goto done;
    w.sounds_on = w.app.model.settings.sound;
    oct_view_model_tick(model, oct_clock_ns());
    if (model->settings.light != OCT_LIGHT_FULL)
        oct_view_model_say(model, "the window has less than its light: Ctrl+D changes that");
    if (options->full_screen)
        toggle_full_screen(&w);
    code = loop(&w, err);
    oct_view_app_remember(&w.app);
done:
    /* These threads push events into SDL, so they end before it does. */
    oct_view_snapshots_destroy(w.snapshots, SNAPSHOTS_WAIT_S);
    bool ends_sdl = oct_view_sound_destroy(w.sound, SOUND_WAIT_MS);
    oct_view_app_close(&w.app);
    close_window(&w, ends_sdl);
    return code;
}
