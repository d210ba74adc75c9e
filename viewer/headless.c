
#include "formats/whole_file.h"
#include "pipeline/base/clock.h"
#include "viewer/app.h"
#include "viewer/draw/draw.h"
#include "viewer/draw/png.h"
#include "viewer/model/words.h"
#include "viewer/signals.h"

#include <SDL.h>
#include <inttypes.h>

#define SIGNAL_CHECK_NS (100 * OCT_NS_PER_MS)

static enum oct_err too_few(const struct oct_view_options *options,
                            struct oct_subscriber *subscriber, const char *why,
                            struct oct_error *err)
{
    struct oct_view_picture none = {0};
    struct oct_subscriber_report report;
    const char *advice = "is octd running and receiving lines?";

    oct_subscriber_take(subscriber, &none, &report);
    oct_view_picture_finish(&none);
    if (report.tally.n_bad > 0)
        advice = report.last_bad.text;
    return oct_fail(err, OCT_E_AGAIN,
                    "%s: %s with %" PRIu64 " of %" PRIu64 " pictures (%" PRIu64
                    " bad messages), no screenshot written: %s",
                    options->endpoint, why, report.tally.n_received, options->n_frames,
                    report.tally.n_bad, advice);
}

/* Receives n_frames pictures. Meanwhile it takes everything as a window does: what the daemon says
 * is needed to understand the pictures. */
static enum oct_err receive(const struct oct_view_options *options, struct oct_view_app *app,
                            struct oct_error *err)
{
    struct oct_subscriber *subscriber = app->subscriber;
    const uint64_t end_ns = oct_clock_ns() + (uint64_t)(options->timeout_s * (double)OCT_NS_PER_S);
    char why[64];

    while (!oct_subscriber_wait(subscriber, options->n_frames, 0)) {
        uint64_t now_ns = oct_clock_ns();
        if (now_ns >= end_ns) {
            snprintf(why, sizeof(why), "%g s are over", options->timeout_s);
            return too_few(options, subscriber, why, err);
        }
        uint64_t left_ns = end_ns - now_ns;
        oct_subscriber_wait(subscriber, options->n_frames,
                            left_ns < SIGNAL_CHECK_NS ? left_ns : SIGNAL_CHECK_NS);
        if (oct_signals_came())
            return too_few(options, subscriber, "interrupted", err);
        oct_view_app_turn(app);
    }
    return OCT_OK;
}

/* Reads all that the window would show of a recording. */
static enum oct_err read_file(const struct oct_view_options *options, struct oct_view_app *app,
                              struct oct_error *err)
{
    const uint64_t end_ns = oct_clock_ns() + (uint64_t)(options->timeout_s * (double)OCT_NS_PER_S);
    const struct oct_view_playback *playback = &app->model.playback;

    do {
        oct_view_app_turn(app);
        if (oct_play_wait_idle(app->play, SIGNAL_CHECK_NS) && !oct_view_app_turn(app) &&
            playback->active && app->model.has_picture)
            return OCT_OK;
        if (oct_signals_came())
            return oct_fail(err, OCT_E_AGAIN, "%s: interrupted, no screenshot written",
                            options->file);
    } while (oct_clock_ns() < end_ns);
    return playback->active && app->model.has_picture
               ? OCT_OK
               : oct_fail(err, OCT_E_AGAIN, "%s: no B-scan in %g s, no screenshot written",
                          options->file, options->timeout_s);
}

static enum oct_err draw_png(const struct oct_view_options *options,
                             const struct oct_view_model *model, struct oct_error *err)
{
    struct oct_draw *draw = NULL;
    SDL_Renderer *renderer = NULL;
    struct oct_view_caption caption;
    enum oct_err code;

    SDL_Surface *surface = SDL_CreateRGBSurfaceWithFormat(0, options->width, options->height, 32,
                                                          SDL_PIXELFORMAT_ARGB8888);
    if (surface)
        renderer = SDL_CreateSoftwareRenderer(surface);
    if (!renderer) {
        code = oct_fail(err, OCT_E_NO_MEMORY, "drawing %dx%d: %s", options->width, options->height,
                        SDL_GetError());
        goto done;
    }
    if ((code = oct_draw_create(&draw, renderer, options->font, err)))
        goto done;
    oct_draw_set_text(draw, options->config.view.text_pt,
                      oct_view_layout_usual_dpi(options->height));
    if ((code = oct_draw_frame(draw, model, err)))
        goto done;
    SDL_RenderFlush(renderer);
    oct_view_caption_make(&caption, model, options->config.view.snapshot_has_pseudonym, "window");
    code = oct_png_save(surface, &caption, options->screenshot, err);
done:
    oct_draw_destroy(draw);
    if (renderer)
        SDL_DestroyRenderer(renderer);
    SDL_FreeSurface(surface);
    return code;
}

/* A running daemon answers within this. An absent one must not hold up the picture for longer. */
#define ANSWER_NS (OCT_NS_PER_S * 3 / 2)

enum oct_err oct_view_headless(const struct oct_view_options *options, struct oct_error *err)
{
    struct oct_view_app app = {0};
    const char *const inputs[] = {options->file};
    enum oct_err code;

    /* At once: a picture may take its time, and a rename would replace what is no plain file. */
    if ((code = oct_whole_file_may(options->screenshot, true, inputs, 1, err)))
        return code;
    if ((code = oct_view_app_open(&app, options, NULL, NULL, err)) ||
        (code = options->file ? read_file(options, &app, err) : receive(options, &app, err)))
        goto done;
    if (app.control && !options->file)
        oct_view_control_wait(app.control, ANSWER_NS);
    oct_view_app_turn(&app);
    oct_view_model_tick(&app.model, oct_clock_ns());
    code = draw_png(options, &app.model, err);
done:
    oct_view_app_close(&app);
    return code;
}
