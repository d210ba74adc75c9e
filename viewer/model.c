#include "viewer/model.h"

#include "viewer/clock.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_NS (4 * OCT_NS_PER_S)
/* Silence is a stall after four intervals of the stream, but never sooner or later than these. */
#define STALL_LEAST_S 2.0
#define STALL_MOST_S 10.0

void oct_view_model_init(struct oct_view_model *model, const char *endpoint, bool log)
{
    memset(model, 0, sizeof(*model));
    snprintf(model->endpoint, sizeof(model->endpoint), "%s", endpoint);
    oct_view_contrast_init(&model->contrast, log);
}

void oct_view_model_finish(struct oct_view_model *model)
{
    oct_view_picture_finish(&model->shown);
    oct_view_picture_finish(&model->newest);
    model->has_picture = model->newest_waits = false;
}

static void show(struct oct_view_model *model, struct oct_view_picture *picture)
{
    oct_view_picture_swap(&model->shown, picture);
    model->has_picture = true;
    model->serial++;
    oct_view_contrast_publish(&model->contrast, model->shown.header.lo, model->shown.header.hi);
}

void oct_view_model_offer(struct oct_view_model *model, struct oct_view_picture *picture)
{
    if (model->paused && model->has_picture) {
        oct_view_picture_swap(&model->newest, picture);
        model->newest_waits = true;
    } else {
        show(model, picture);
    }
}

void oct_view_model_report(struct oct_view_model *model, const struct oct_view_tally *tally,
                           bool connected)
{
    model->tally = *tally;
    model->connected = connected;
}

void oct_view_model_tick(struct oct_view_model *model, uint64_t now_ns)
{
    model->now_ns = now_ns;
    if (now_ns >= model->message_until_ns)
        model->message[0] = '\0';
}

static void set_paused(struct oct_view_model *model, bool paused)
{
    model->paused = paused;
    if (!paused && model->newest_waits) {
        show(model, &model->newest);
        model->newest_waits = false;
    }
}

void oct_view_model_apply(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    struct oct_view_contrast *contrast = &model->contrast;
    double step = oct_view_contrast_step(contrast) * times;

    switch (action) {
    case OCT_VIEW_PAUSE:
        set_paused(model, !model->paused);
        break;
    case OCT_VIEW_AUTO_CONTRAST:
        oct_view_contrast_follow(contrast, !contrast->follows);
        break;
    case OCT_VIEW_RESET_CONTRAST:
        oct_view_contrast_follow(contrast, true);
        break;
    case OCT_VIEW_LEVEL_DOWN:
        oct_view_contrast_move(contrast, -step, 0);
        break;
    case OCT_VIEW_LEVEL_UP:
        oct_view_contrast_move(contrast, step, 0);
        break;
    case OCT_VIEW_WINDOW_WIDER:
        oct_view_contrast_move(contrast, 0, 2 * step);
        break;
    case OCT_VIEW_WINDOW_CLOSER:
        oct_view_contrast_move(contrast, 0, -2 * step);
        break;
    case OCT_VIEW_STRETCH:
        model->stretch = !model->stretch;
        break;
    case OCT_VIEW_HELP:
        model->help = !model->help;
        break;
    case OCT_VIEW_NOTHING:
    case OCT_VIEW_SNAPSHOT:
    case OCT_VIEW_FULL_SCREEN:
    case OCT_VIEW_QUIT:
        break;
    }
}

void oct_view_model_drag(struct oct_view_model *model, double across, double down)
{
    double range = model->contrast.published_hi - model->contrast.published_lo;

    if (across == 0.0 && down == 0.0)
        return;
    /* Up widens the window, as the Up key does. */
    oct_view_contrast_move(&model->contrast, across * range, -down * range);
}

void oct_view_model_say(struct oct_view_model *model, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(model->message, sizeof(model->message), format, args);
    va_end(args);
    for (char *c = model->message; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    model->message_until_ns = model->now_ns + MESSAGE_NS;
}

double oct_view_model_silence_s(const struct oct_view_model *model)
{
    /* A picture may arrive between two ticks and so be newer than `now`. */
    if (model->tally.n_received == 0 || model->now_ns <= model->tally.last_arrival_ns)
        return 0;
    return (double)(model->now_ns - model->tally.last_arrival_ns) / (double)OCT_NS_PER_S;
}

enum oct_view_state oct_view_model_state(const struct oct_view_model *model)
{
    if (model->tally.n_received == 0)
        return OCT_VIEW_WAITING;
    double rate_hz = oct_view_tally_rate_hz(&model->tally);
    double stall_s = rate_hz > 0 ? 4.0 / rate_hz : STALL_LEAST_S;
    if (stall_s < STALL_LEAST_S)
        stall_s = STALL_LEAST_S;
    if (stall_s > STALL_MOST_S)
        stall_s = STALL_MOST_S;
    return oct_view_model_silence_s(model) < stall_s ? OCT_VIEW_LIVE : OCT_VIEW_STALLED;
}
