#include "viewer/window.h"

#include "pipeline/log.h"
#include "viewer/clock.h"
#include "viewer/draw.h"
#include "viewer/png.h"
#include "viewer/signals.h"
#include "viewer/subscriber.h"

#include <SDL.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAME_NS (OCT_NS_PER_S / 60)
/* With nothing new the window still counts the seconds of a silence and looks for signals. */
#define IDLE_NS (200 * OCT_NS_PER_MS)
#define FAST_STEPS 5

struct window {
    SDL_Window *window;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_subscriber *subscriber;
    struct oct_view_model model;
    struct oct_view_picture spare; /* swapped with the subscriber and the model */
    uint32_t news_event;           /* pushed by the subscriber's thread */
    bool snapshot, quit, changed;
    uint64_t n_bad_logged;
};

/* ---- keys and mouse ---- */

static enum oct_view_action action_of(SDL_Keycode key)
{
    switch (key) {
    case SDLK_SPACE:
        return OCT_VIEW_PAUSE;
    case SDLK_a:
        return OCT_VIEW_AUTO_CONTRAST;
    case SDLK_LEFT:
        return OCT_VIEW_LEVEL_DOWN;
    case SDLK_RIGHT:
        return OCT_VIEW_LEVEL_UP;
    case SDLK_UP:
        return OCT_VIEW_WINDOW_WIDER;
    case SDLK_DOWN:
        return OCT_VIEW_WINDOW_CLOSER;
    case SDLK_r:
        return OCT_VIEW_RESET_CONTRAST;
    case SDLK_w:
        return OCT_VIEW_STRETCH;
    case SDLK_s:
        return OCT_VIEW_SNAPSHOT;
    case SDLK_f:
        return OCT_VIEW_FULL_SCREEN;
    case SDLK_h:
    case SDLK_F1:
        return OCT_VIEW_HELP;
    case SDLK_q:
    case SDLK_ESCAPE:
        return OCT_VIEW_QUIT;
    default:
        return OCT_VIEW_NOTHING;
    }
}

static bool repeats(enum oct_view_action action)
{
    return action >= OCT_VIEW_LEVEL_DOWN && action <= OCT_VIEW_WINDOW_CLOSER;
}

static void toggle_full_screen(struct window *w)
{
    bool full = SDL_GetWindowFlags(w->window) & SDL_WINDOW_FULLSCREEN_DESKTOP;

    if (SDL_SetWindowFullscreen(w->window, full ? 0 : SDL_WINDOW_FULLSCREEN_DESKTOP) < 0)
        oct_view_model_say(&w->model, "full screen: %s", SDL_GetError());
}

static void on_key(struct window *w, const SDL_KeyboardEvent *key)
{
    enum oct_view_action action = action_of(key->keysym.sym);

    /* Ctrl and Alt belong to the desktop; a held key repeats only where it is a step. */
    if ((key->keysym.mod & (KMOD_CTRL | KMOD_ALT | KMOD_GUI)) || (key->repeat && !repeats(action)))
        return;
    switch (action) {
    case OCT_VIEW_SNAPSHOT:
        w->snapshot = true;
        break;
    case OCT_VIEW_FULL_SCREEN:
        toggle_full_screen(w);
        break;
    case OCT_VIEW_QUIT:
        w->quit = true;
        break;
    default:
        oct_view_model_apply(&w->model, action, key->keysym.mod & KMOD_SHIFT ? FAST_STEPS : 1);
    }
}

static void on_drag(struct window *w, const SDL_MouseMotionEvent *motion)
{
    int width, height;

    if (!(motion->state & SDL_BUTTON_LMASK))
        return;
    /* Mouse and window share their unit, which on a dense screen is not the pixel. */
    SDL_GetWindowSize(w->window, &width, &height);
    if (width > 0 && height > 0)
        oct_view_model_drag(&w->model, (double)motion->xrel / width, (double)motion->yrel / height);
}

static void on_event(struct window *w, const SDL_Event *event)
{
    if (event->type == w->news_event)
        return; /* it only ends the wait; what is new is taken once for all events */
    w->changed = true;
    switch (event->type) {
    case SDL_QUIT:
        w->quit = true;
        break;
    case SDL_KEYDOWN:
        on_key(w, &event->key);
        break;
    case SDL_MOUSEMOTION:
        on_drag(w, &event->motion);
        break;
    case SDL_RENDER_TARGETS_RESET:
    case SDL_RENDER_DEVICE_RESET:
        oct_draw_forget(w->draw);
        break;
    default:
        break;
    }
}

/* ---- the stream ---- */

/* In the subscriber's thread. SDL_PushEvent may be called from any. */
static void on_news(void *context)
{
    const struct window *w = context;
    SDL_Event event = {.type = w->news_event};

    SDL_PushEvent(&event);
}

static void take_news(struct window *w)
{
    struct oct_subscriber_report report;

    if (oct_subscriber_take(w->subscriber, &w->spare, &report)) {
        oct_view_model_offer(&w->model, &w->spare);
        w->changed = true;
    }
    oct_view_model_report(&w->model, &report.tally, report.connected);
    /* The count stands in the window; the log says once what the trouble is. */
    if (report.tally.n_bad > 0 && w->n_bad_logged == 0) {
        oct_log(OCT_LOG_WARNING, "%s: message refused: %s (later ones are only counted)",
                w->model.endpoint, report.last_bad.text);
        w->n_bad_logged = report.tally.n_bad;
    }
}

/* ---- drawing ---- */

static enum oct_err save_window(struct window *w, char *path, size_t path_bytes,
                                struct oct_error *err)
{
    int width, height;
    enum oct_err code;

    SDL_GetRendererOutputSize(w->renderer, &width, &height);
    SDL_Surface *surface =
        SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_ARGB8888);
    if (!surface)
        return oct_fail(err, OCT_E_NO_MEMORY, "snapshot: %s", SDL_GetError());
    if (SDL_RenderReadPixels(w->renderer, NULL, SDL_PIXELFORMAT_ARGB8888, surface->pixels,
                             surface->pitch) < 0)
        code = oct_fail(err, OCT_E_IO, "snapshot: %s", SDL_GetError());
    else
        code = oct_png_save_new(surface, ".", path, path_bytes, err);
    SDL_FreeSurface(surface);
    return code;
}

static enum oct_err draw_window(struct window *w, struct oct_error *err)
{
    char path[64];
    struct oct_error why;
    enum oct_err code = oct_draw_frame(w->draw, &w->model, err);

    if (code)
        return code;
    /* After drawing and before presenting, when the pixels are still there to read. */
    if (w->snapshot) {
        w->snapshot = false;
        if (save_window(w, path, sizeof(path), &why)) {
            oct_view_model_say(&w->model, "%s", why.text);
            oct_log(OCT_LOG_ERROR, "%s", why.text);
        } else {
            oct_view_model_say(&w->model, "saved %s", path);
        }
    }
    SDL_RenderPresent(w->renderer);
    return OCT_OK;
}

static enum oct_err loop(struct window *w, struct oct_error *err)
{
    uint64_t due_ns = 0, idle_ns = 0; /* when the next frame may come, when it must */
    enum oct_err code = OCT_OK;
    SDL_Event event;

    w->changed = true;
    while (!w->quit && !oct_signals_came()) {
        uint64_t now_ns = oct_view_now_ns();
        uint64_t until_ns = w->changed ? due_ns : idle_ns;
        /* Rounded up: a wait of 0 ms would spin for the rest of a millisecond. */
        int wait_ms =
            until_ns <= now_ns ? 0 : (int)((until_ns - now_ns + OCT_NS_PER_MS - 1) / OCT_NS_PER_MS);
        int came = wait_ms > 0 ? SDL_WaitEventTimeout(&event, wait_ms) : SDL_PollEvent(&event);
        for (; came; came = SDL_PollEvent(&event))
            on_event(w, &event);
        take_news(w);
        now_ns = oct_view_now_ns();
        oct_view_model_tick(&w->model, now_ns);
        if (now_ns < (w->changed ? due_ns : idle_ns))
            continue;
        if ((code = draw_window(w, err)))
            break;
        w->changed = false;
        due_ns = now_ns + FRAME_NS;
        idle_ns = now_ns + IDLE_NS;
    }
    return code;
}

/* ---- opening and closing ---- */

/* Left alone, SDL ends at a driver that shows nothing, and lets libraries write to stderr on the
 * way there. So it is told which displays there are. SDL_VIDEODRIVER in the environment wins. */
static bool has_display(void)
{
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    bool with_x11 = x11 && x11[0], with_wayland = wayland && wayland[0];

    SDL_SetHintWithPriority(SDL_HINT_VIDEODRIVER,
                            with_x11 ? with_wayland ? "x11,wayland" : "x11" : "wayland",
                            SDL_HINT_DEFAULT);
    return with_x11 || with_wayland || getenv("SDL_VIDEODRIVER");
}

static enum oct_err open_window(struct window *w, const struct oct_view_options *options,
                                struct oct_error *err)
{
    char title[256];
    uint32_t flags = SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;

    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0");
    /* Drawing on the CPU by default: it is fast enough, looks the same everywhere, and leaves the
     * GPU to the engine. SDL_RENDER_DRIVER in the environment chooses otherwise. The second hint
     * keeps SDL from carrying the finished frame through OpenGL all the same. */
    SDL_SetHintWithPriority(SDL_HINT_RENDER_DRIVER, "software", SDL_HINT_DEFAULT);
    SDL_SetHintWithPriority(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0", SDL_HINT_DEFAULT);
    if (options->full_screen)
        flags |= SDL_WINDOW_FULLSCREEN_DESKTOP;
    snprintf(title, sizeof(title), "octview %.200s", options->endpoint);
    if (!has_display())
        SDL_SetError("no display (neither DISPLAY nor WAYLAND_DISPLAY is set)");
    else if (SDL_Init(SDL_INIT_VIDEO) == 0)
        w->window = SDL_CreateWindow(title, SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED,
                                     options->width, options->height, flags);
    if (w->window)
        w->renderer = SDL_CreateRenderer(w->window, -1, 0);
    if (!w->renderer)
        return oct_fail(err, OCT_E_IO,
                        "cannot open a window: %s; without a display use --headless --frames N "
                        "--screenshot FILE.png",
                        SDL_GetError());
    SDL_SetWindowMinimumSize(w->window, 320, 240);
    w->news_event = SDL_RegisterEvents(1);
    return oct_draw_create(&w->draw, w->renderer, options->font, err);
}

static void close_window(struct window *w)
{
    oct_draw_destroy(w->draw);
    if (w->renderer)
        SDL_DestroyRenderer(w->renderer);
    if (w->window)
        SDL_DestroyWindow(w->window);
    SDL_Quit();
}

enum oct_err oct_view_window(const struct oct_view_options *options, struct oct_error *err)
{
    struct window w = {0};
    enum oct_err code;

    oct_view_model_init(&w.model, options->endpoint, options->config.pipeline.log);
    if ((code = open_window(&w, options, err)) ||
        (code = oct_subscriber_create(&w.subscriber, options->endpoint, on_news, &w, err)))
        goto done;
    code = loop(&w, err);
done:
    /* The subscriber first: its thread pushes events into SDL. */
    oct_subscriber_destroy(w.subscriber);
    close_window(&w);
    oct_view_picture_finish(&w.spare);
    oct_view_model_finish(&w.model);
    return code;
}
