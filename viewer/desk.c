#include "viewer/desk.h"

#include "pipeline/base/log.h"
#include "viewer/model/clock.h"
#include "viewer/settings.h"

#include <stdio.h>
#include <string.h>

/* Ten seconds of 1024 x 1024 at 50 a second. */
#define HISTORY_BYTES ((size_t)512 << 20)

static void read_settings(struct oct_view_desk *desk, const struct oct_view_options *options)
{
    struct oct_error why = {0};

    if (options->settings)
        snprintf(desk->settings_path, sizeof(desk->settings_path), "%s", options->settings);
    else if (!oct_view_settings_path(desk->settings_path, sizeof(desk->settings_path)))
        desk->settings_path[0] = '\0';
    if (desk->settings_path[0] && oct_view_settings_load(&desk->model, desk->settings_path, &why))
        oct_log(OCT_LOG_WARNING, "%s", why.text);
    desk->model.settings.operators |= options->operators;
}

enum oct_err oct_view_desk_open(struct oct_view_desk *desk, const struct oct_view_options *options,
                                void (*notify)(void *context), void *context, struct oct_error *err)
{
    bool log = options->config.pipeline.log;
    enum oct_err code;

    oct_view_model_init(&desk->model, options->endpoint, log);
    read_settings(desk, options);
    desk->archive = oct_view_archive_create(HISTORY_BYTES);
    if (!desk->archive)
        return oct_fail(err, OCT_E_NO_MEMORY, "octview: out of memory");
    oct_view_model_attach(&desk->model, desk->archive);
    const struct oct_curve_files keys = {options->config.security.client_key,
                                         options->config.security.server_public};
    if ((code = oct_subscriber_create(&desk->subscriber, options->endpoint, &keys, notify, context,
                                      err)))
        return code;
    oct_subscriber_attach(desk->subscriber, desk->archive);
    desk->model.has_control = options->control[0] != '\0';
    if (desk->model.has_control)
        return oct_view_control_create(&desk->control, options->control, &keys, notify, context,
                                       err);
    return OCT_OK;
}

static bool take_control(struct oct_view_desk *desk)
{
    struct oct_view_daemon daemon;
    struct oct_view_answer answer;
    char text[OCT_VIEW_LABEL_BYTES];
    uint64_t before_ns = desk->model.daemon.answer_ns;
    bool reachable = desk->model.daemon.reachable;

    if (!desk->control)
        return false;
    oct_view_control_take(desk->control, &daemon, &answer);
    oct_view_model_hear(&desk->model, &daemon, &answer);
    enum oct_view_wish wish = oct_view_model_take_wish(&desk->model, text);
    if (wish != OCT_VIEW_WISH_NONE)
        oct_view_control_ask(desk->control, wish, text);
    return daemon.answer_ns != before_ns || daemon.reachable != reachable ||
           answer.wish != OCT_VIEW_WISH_NONE || wish != OCT_VIEW_WISH_NONE;
}

bool oct_view_desk_turn(struct oct_view_desk *desk)
{
    struct oct_subscriber_report report;
    struct oct_view_model *model = &desk->model;

    oct_view_model_tick(model, oct_view_now_ns());
    bool changed = oct_subscriber_take(desk->subscriber, &desk->spare, &report);
    if (changed)
        oct_view_model_offer(model, &desk->spare);
    if (oct_subscriber_take_spectrum(desk->subscriber, &desk->spare_spectrum)) {
        oct_view_model_offer_spectrum(model, &desk->spare_spectrum);
        changed = true;
    }
    if (oct_subscriber_take_image(desk->subscriber, OCT_VIEW_TOPIC_ENFACE, &desk->spare_image)) {
        oct_view_model_offer_enface(model, &desk->spare_image);
        changed = true;
    }
    changed |= report.connected != model->connected || report.tally.n_bad != model->tally.n_bad;
    if (changed)
        oct_view_model_report(model, &report.tally, report.connected);
    changed |= take_control(desk);
    /* The window shows the count; the log says once why a message was refused. */
    if (report.tally.n_bad > 0 && !desk->bad_told) {
        oct_log(OCT_LOG_WARNING, "%s: message refused: %s (later ones are only counted)",
                model->endpoint, report.last_bad.text);
        desk->bad_told = true;
    }
    return changed;
}

void oct_view_desk_remember(struct oct_view_desk *desk)
{
    struct oct_error why;

    if (desk->settings_path[0] && oct_view_settings_save(&desk->model, desk->settings_path, &why))
        oct_log(OCT_LOG_WARNING, "%s", why.text);
}

void oct_view_desk_close(struct oct_view_desk *desk)
{
    oct_subscriber_destroy(desk->subscriber);
    oct_view_control_destroy(desk->control);
    oct_view_picture_finish(&desk->spare);
    oct_view_spectrum_finish(&desk->spare_spectrum);
    oct_view_image_finish(&desk->spare_image);
    oct_view_model_finish(&desk->model);
    oct_view_archive_destroy(desk->archive);
    memset(desk, 0, sizeof(*desk));
}
