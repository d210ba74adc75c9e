#include "viewer/status.h"

#include "viewer/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long a loss stays marked after the last one. */
#define LOSS_MARK_NS (10 * OCT_NS_PER_S)

struct list {
    struct oct_view_phrase *phrases;
    unsigned n;
};

__attribute__((format(printf, 3, 4))) static void add(struct list *list, enum oct_view_tone tone,
                                                      const char *format, ...)
{
    if (list->n == OCT_VIEW_MAX_PHRASES)
        return;
    struct oct_view_phrase *phrase = &list->phrases[list->n++];
    va_list args;
    va_start(args, format);
    vsnprintf(phrase->text, sizeof(phrase->text), format, args);
    va_end(args);
    phrase->tone = tone;
}

static void add_state(const struct oct_view_model *model, struct list *list)
{
    switch (oct_view_model_state(model)) {
    case OCT_VIEW_WAITING:
        add(list, OCT_VIEW_WARN, "WAITING");
        break;
    case OCT_VIEW_LIVE:
        add(list, OCT_VIEW_GOOD, "LIVE");
        break;
    case OCT_VIEW_STALLED:
        add(list, OCT_VIEW_BAD, "NO SIGNAL");
        break;
    }
    if (model->paused)
        add(list, OCT_VIEW_WARN, "PAUSED");
}

static void add_counts(const struct oct_view_model *model, struct list *list)
{
    const struct oct_view_tally *tally = &model->tally;
    bool live = oct_view_model_state(model) == OCT_VIEW_LIVE;
    double rate_hz = live ? oct_view_tally_rate_hz(tally) : 0.0;
    bool fresh_loss =
        tally->last_loss_ns != 0 && model->now_ns < tally->last_loss_ns + LOSS_MARK_NS;

    if (rate_hz > 0)
        add(list, OCT_VIEW_PLAIN, "%5.1f B-scans/s", rate_hz);
    else
        add(list, OCT_VIEW_DIM, "  --- B-scans/s");
    add(list, fresh_loss ? OCT_VIEW_WARN : OCT_VIEW_PLAIN, "lost %" PRIu64, tally->n_lost);
    if (tally->n_bad > 0)
        add(list, OCT_VIEW_WARN, "bad messages %" PRIu64, tally->n_bad);
}

static void add_picture(const struct oct_view_model *model, struct list *list)
{
    const struct oct_picture_header *header = &model->shown.header;

    if (!model->has_picture)
        return;
    add(list, OCT_VIEW_PLAIN, "volume %" PRIu64 " B-scan %3" PRIu32, header->volume, header->bscan);
    add(list, header->missing_lines > 0 ? OCT_VIEW_WARN : OCT_VIEW_PLAIN, "missing lines %" PRIu32,
        header->missing_lines);
}

static void add_contrast(const struct oct_view_contrast *contrast, struct list *list)
{
    const char *whose = contrast->follows ? "auto" : "manual";

    if (contrast->log)
        add(list, OCT_VIEW_PLAIN, "%.1f .. %.1f dB %s", contrast->lo, contrast->hi, whose);
    else
        add(list, OCT_VIEW_PLAIN, "%.4g .. %.4g counts\u00b2 %s", contrast->lo, contrast->hi,
            whose);
}

unsigned oct_view_status(const struct oct_view_model *model,
                         struct oct_view_phrase phrases[OCT_VIEW_MAX_PHRASES])
{
    struct list list = {.phrases = phrases};

    add_state(model, &list);
    add_counts(model, &list);
    add_picture(model, &list);
    if (model->has_picture)
        add_contrast(&model->contrast, &list);
    add(&list, OCT_VIEW_DIM, "F1 help");
    return list.n;
}

unsigned oct_view_notice(const struct oct_view_model *model, struct oct_view_phrase lines[2])
{
    struct list list = {.phrases = lines};

    switch (oct_view_model_state(model)) {
    case OCT_VIEW_LIVE:
        break;
    case OCT_VIEW_WAITING:
        add(&list, OCT_VIEW_PLAIN, "waiting for %.200s", model->endpoint);
        add(&list, OCT_VIEW_DIM, "%s",
            model->connected ? "octd answers, no B-scan came yet: is it started, does the camera "
                               "send?"
                             : "nothing answers there: is octd running?");
        break;
    case OCT_VIEW_STALLED:
        add(&list, OCT_VIEW_BAD, "no signal for %.0f s", floor(oct_view_model_silence_s(model)));
        add(&list, OCT_VIEW_PLAIN, "%s",
            model->connected ? "octd answers, but no B-scan comes: is the camera sending?"
                             : "the connection is gone: waiting for octd to come back");
        break;
    }
    return list.n;
}
