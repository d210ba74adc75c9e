#include "viewer/app.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "viewer/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Ten seconds of 1024 x 1024 at 50 a second. */
#define HISTORY_BYTES ((size_t)512 << 20)
/* How long the start of the program waits for a recording to open. */
#define OPEN_NS (5 * OCT_NS_PER_S)

static void read_settings(struct oct_view_app *app, const struct oct_view_options *options)
{
    static const enum oct_view_ask_label asks[] = {
        [OCT_ASK_OPERATOR] = OCT_ASK_LABEL_OPERATOR,
        [OCT_ASK_ALWAYS] = OCT_ASK_LABEL_ALWAYS,
        [OCT_ASK_NEVER] = OCT_ASK_LABEL_NEVER,
    };
    struct oct_error why = {0};
    if (options->settings)
        snprintf(app->settings_path, sizeof(app->settings_path), "%s", options->settings);
    else if (!oct_view_settings_path(app->settings_path, sizeof(app->settings_path)))
        app->settings_path[0] = '\0';
    if (app->settings_path[0] && oct_view_settings_load(&app->model, app->settings_path, &why))
        oct_log(OCT_LOG_WARNING, "%s", why.text);
    app->model.settings.operators |= options->operators;
    app->model.patient.ask = asks[options->config.view.ask_label];
}

/* Notes on which other machine octd runs: its recordings are there. */
static void read_machine(struct oct_view_model *model, const char *control)
{
    static const char tcp[] = "tcp://";
    static const char *const here[] = {"127.", "localhost:", "[::1]:", "*:", "0.0.0.0:"};
    char name[256] = "";
    const char *host = control + strlen(tcp), *port = strrchr(control, ':');
    if (strncmp(control, tcp, strlen(tcp)) != 0 || port <= host)
        return;
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
        if (strncmp(host, here[i], strlen(here[i])) == 0)
            return;
    const size_t n = (size_t)(port - host);
    if (gethostname(name, sizeof(name) - 1) == 0 && strlen(name) == n &&
        strncasecmp(host, name, n) == 0)
        return;
    snprintf(model->elsewhere, sizeof(model->elsewhere), "%.*s", (int)n, host);
}

/* Opens the recording. A slow disk does not keep the window from opening. */
static enum oct_err open_file(struct oct_view_app *app, const struct oct_view_options *options,
                              struct oct_error *err)
{
    struct oct_view_playback *playback = &app->model.playback;
    oct_view_playback_open(&app->model, options->file, 0, false);
    oct_play_turn(app->play, &app->model);
    oct_play_wait_open(app->play, OPEN_NS);
    oct_play_turn(app->play, &app->model);
    if (oct_play_refusal(app->play)[0])
        return oct_fail(err, OCT_E_IO, "%s", oct_play_refusal(app->play));
    if (!options->screenshot || !playback->active)
        return OCT_OK;
    if (options->n_frames > playback->file.n_bscans)
        return oct_fail(err, OCT_E_ARG, "--frames %" PRIu64 ": %s has %" PRIu32 " B-scans",
                        options->n_frames, playback->file.name, playback->file.n_bscans);
    oct_view_playback_go(&app->model, (double)options->n_frames - 1);
    return OCT_OK;
}

enum oct_err oct_view_app_open(struct oct_view_app *app, const struct oct_view_options *options,
                               void (*notify)(void *context), void *context, struct oct_error *err)
{
    bool log = options->config.pipeline.log;
    enum oct_err code;
    oct_view_model_init(&app->model, options->endpoint, log);
    read_settings(app, options);
    app->archive =
        oct_view_archive_create(options->history_bytes ? options->history_bytes : HISTORY_BYTES);
    if (!app->archive)
        return oct_fail(err, OCT_E_NO_MEMORY, "octview: out of memory");
    app->model.archive = app->archive;
    const struct oct_curve_files keys = {options->config.security.client_key,
                                         options->config.security.server_public};
    if ((code = oct_subscriber_create(&app->subscriber, options->endpoint, &keys, app->archive,
                                      notify, context, err)))
        return code;
    app->model.has_control = options->control[0] != '\0';
    read_machine(&app->model, options->control);
    if (notify && !options->no_errands)
        oct_view_errands_init(&app->errands, options, &app->model);
    if (app->model.has_control && (code = oct_view_control_create(&app->control, options->control,
                                                                  &keys, notify, context, err)))
        return code;
    if ((code = oct_play_create(&app->play, &options->config, notify, context, err)))
        return code;
    return options->file ? open_file(app, options, err) : OCT_OK;
}

static bool take_control(struct oct_view_app *app)
{
    struct oct_view_daemon daemon;
    struct oct_view_answer answer;
    char text[OCT_VIEW_LABEL_BYTES];
    uint64_t before_ns = app->model.daemon.answer_ns;
    bool reachable = app->model.daemon.reachable;
    if (!app->control)
        return false;
    oct_view_control_take(app->control, &daemon, &answer);
    oct_view_model_hear(&app->model, &daemon, &answer);
    enum oct_view_wish wish = oct_view_model_take_wish(&app->model, text);
    if (wish == OCT_WISH_PATIENT)
        oct_view_errands_take_patient(&app->errands, text);
    else if (wish != OCT_WISH_NONE)
        oct_view_control_ask(app->control, wish, text);
    return daemon.answer_ns != before_ns || daemon.reachable != reachable ||
           answer.wish != OCT_WISH_NONE || wish != OCT_WISH_NONE;
}

static bool take_overlays(struct oct_view_app *app)
{
    bool changed = false;
    for (size_t i = 0; i < oct_view_n_overlays; i++) {
        const struct oct_view_overlay *o = oct_view_overlays[i];
        if (!o->topic)
            continue;
        const bool *setting = oct_view_overlay_setting(&app->model, o);
        oct_subscriber_want(app->subscriber, o->topic,
                            (!setting || *setting) && (!o->wanted || o->wanted(&app->model)));
        if (!oct_subscriber_take_image(app->subscriber, o->topic, &app->spare_image[i]))
            continue;
        oct_view_overlay_take(&app->model, o, &app->spare_image[i]);
        changed = true;
    }
    return changed;
}

bool oct_view_app_turn(struct oct_view_app *app)
{
    struct oct_subscriber_report report;
    struct oct_view_model *model = &app->model;
    oct_view_model_tick(model, oct_clock_ns());
    bool changed = oct_subscriber_take(app->subscriber, &model->spare, &report);
    if (changed)
        oct_view_model_offer(model, &model->spare);
    if (oct_subscriber_take_spectrum(app->subscriber, &app->spare_spectrum)) {
        oct_view_model_offer_spectrum(model, &app->spare_spectrum);
        changed = true;
    }
    changed |= take_overlays(app);
    changed |= report.connected != model->connected || report.tally.n_bad != model->tally.n_bad;
    if (changed)
        oct_view_model_report(model, &report.tally, report.connected);
    changed |= oct_view_errands_turn(&app->errands, model);
    changed |= take_control(app);
    changed |= oct_play_turn(app->play, model);
    /* The window shows the count; the log says once why a message was refused. */
    if (report.tally.n_bad > 0 && !app->bad_told) {
        oct_log(OCT_LOG_WARNING, "%s: message refused: %s (later ones are only counted)",
                model->endpoint, report.last_bad.text);
        app->bad_told = true;
    }
    return changed;
}

void oct_view_app_remember(struct oct_view_app *app)
{
    struct oct_error why;
    oct_play_turn(app->play, &app->model); /* a label that was corrected with the last key */
    oct_view_playback_end(&app->model);    /* a file's contrast is not the user's */
    if (app->settings_path[0] && oct_view_settings_save(&app->model, app->settings_path, &why))
        oct_log(OCT_LOG_WARNING, "%s", why.text);
}

void oct_view_app_close(struct oct_view_app *app)
{
    oct_view_errands_finish(&app->errands);
    oct_play_destroy(app->play);
    oct_subscriber_destroy(app->subscriber);
    oct_view_control_destroy(app->control);
    oct_view_spectrum_finish(&app->spare_spectrum);
    for (size_t i = 0; i < OCT_VIEW_MOST_OVERLAYS; i++)
        oct_view_image_finish(&app->spare_image[i]);
    oct_view_model_finish(&app->model);
    oct_view_archive_destroy(app->archive);
    memset(app, 0, sizeof(*app));
}
