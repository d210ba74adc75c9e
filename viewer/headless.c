
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

/* Receives n_frames pictures, or reads all that the window would show of a recording. Meanwhile it
 * takes everything as a window does: what the daemon says is needed to understand the pictures. */
static enum oct_err wait_for_pictures(const struct oct_view_options *options,
                                      struct oct_view_app *app, struct oct_error *err)
{
    const struct oct_view_model *model = &app->model;
    const uint64_t end_ns = oct_clock_ns() + (uint64_t)(options->timeout_s * (double)OCT_NS_PER_S);
    bool shows_file = false, interrupted = false, is_over = false;
    struct oct_view_picture none = {0};
    struct oct_subscriber_report report;
    char why[64] = "interrupted";
    while (!interrupted && !is_over) {
        const uint64_t now_ns = oct_clock_ns(), left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
        const uint64_t wait_ns = left_ns < SIGNAL_CHECK_NS ? left_ns : SIGNAL_CHECK_NS;
        oct_view_app_turn(app);
        bool is_idle =
            options->file && oct_play_wait_idle(app->play, wait_ns) && !oct_view_app_turn(app);
        shows_file = options->file && model->playback.active && model->has_picture;
        if ((is_idle && shows_file) ||
            (!options->file && oct_subscriber_wait(app->subscriber, options->n_frames, wait_ns)))
            return OCT_OK;
        interrupted = oct_signals_came();
        is_over = left_ns == 0;
    }
    if (!interrupted && shows_file)
        return OCT_OK;
    if (!interrupted)
        snprintf(why, sizeof(why), options->file ? "no B-scan in %g s" : "%g s are over",
                 options->timeout_s);
    if (options->file)
        return oct_fail(err, OCT_E_AGAIN, "%s: %s, no screenshot written", options->file, why);
    oct_subscriber_take(app->subscriber, &none, &report);
    oct_view_picture_finish(&none);
    return oct_fail(
        err, OCT_E_AGAIN,
        "%s: %s with %" PRIu64 " of %" PRIu64 " pictures (%" PRIu64
        " bad messages), no screenshot written: %s",
        options->endpoint, why, report.tally.n_received, options->n_frames, report.tally.n_bad,
        report.tally.n_bad > 0 ? report.last_bad.text
                               : "is octd running and receiving lines? octctl doctor says");
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
        (code = wait_for_pictures(options, &app, err)))
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
