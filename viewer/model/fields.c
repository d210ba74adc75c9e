#include "viewer/model/words.h"

#include "viewer/model/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long a loss stays marked after the last one. */
#define LOSS_MARK_NS (10 * OCT_NS_PER_S)

struct list {
    struct oct_view_field *fields;
    unsigned n;
};

__attribute__((format(printf, 4, 5))) static void
add(struct list *list, unsigned n_letters, enum oct_view_tone tone, const char *format, ...)
{
    struct oct_view_field *field = &list->fields[list->n++];
    va_list args;

    va_start(args, format);
    vsnprintf(field->phrase.text, sizeof(field->phrase.text), format, args);
    va_end(args);
    field->phrase.tone = tone;
    field->n_letters = n_letters;
}

/* ---- the status line ---- */

static void add_state(const struct oct_view_model *model, struct list *list)
{
    static const struct {
        const char *word;
        enum oct_view_tone tone;
    } states[OCT_N_SHOWS] = {
        [OCT_SHOW_WAITING] = {"WAITING", OCT_TONE_WARN},
        [OCT_SHOW_LIVE] = {"LIVE", OCT_TONE_GOOD},
        [OCT_SHOW_AVERAGED] = {"LIVE, AVERAGED", OCT_TONE_GOOD},
        [OCT_SHOW_FROZEN] = {"FROZEN", OCT_TONE_WARN},
        [OCT_SHOW_NO_SIGNAL] = {"NO SIGNAL", OCT_TONE_BAD},
        [OCT_SHOW_GONE] = {"OCTD IS GONE", OCT_TONE_BAD},
        [OCT_SHOW_PLAYBACK] = {"PLAYBACK", OCT_TONE_WARN},
    };
    const enum oct_view_show show = oct_view_show(model);
    const uint64_t came_ns = model->shown.arrival_ns;

    if (show == OCT_SHOW_FROZEN && came_ns < model->frozen_ns)
        add(list, 19, OCT_TONE_WARN, "FROZEN %.2f s back",
            (double)(model->frozen_ns - came_ns) / (double)OCT_NS_PER_S);
    else
        add(list, 19, states[show].tone, "%s", states[show].word);
}

/* 0: none come. */
static double pictures_hz(const struct oct_view_model *model)
{
    bool live = oct_view_model_state(model) == OCT_SIGNAL_LIVE;
    return live ? oct_view_tally_rate_hz(&model->tally) : 0;
}

/* Returns the line rate, and what is configured where the two contradict each other, else 0: more
 * lines come than are configured, or less than half of them (pauses while the scanner flies back
 * take some). */
static double line_rate(const struct oct_view_model *model, double *contradicted_hz)
{
    const struct oct_view_daemon *d = &model->daemon;
    double set_hz = d->reachable ? d->set_line_rate_hz : 0, pictures = pictures_hz(model);
    double rate_hz = d->reachable && model->line_rate.rate_hz > 0
                         ? model->line_rate.rate_hz
                         : pictures * model->shown.header.n_lines;
    bool wrong = set_hz > 0 && (rate_hz > 1.05 * set_hz || rate_hz < 0.5 * set_hz);

    *contradicted_hz = wrong ? set_hz : 0;
    return pictures > 0 && model->has_picture ? rate_hz : 0;
}

static void add_rate(const struct oct_view_model *model, struct list *list)
{
    double rate_hz = pictures_hz(model), set_hz, lines_hz = line_rate(model, &set_hz);
    bool wrong = lines_hz > 0 && set_hz > 0;

    if (rate_hz > 0)
        add(list, 16, wrong ? OCT_TONE_WARN : OCT_TONE_PLAIN, "%6.1f B-scans/s", rate_hz);
    else
        add(list, 16, OCT_TONE_DIM, "   --- B-scans/s");
}

static void add_place(const struct oct_view_model *model, struct list *list)
{
    const struct oct_picture_header *h = &model->shown.header;
    char text[64];

    if (model->playback.active) {
        oct_view_playback_text(model, text, sizeof(text));
        add(list, 23, OCT_TONE_PLAIN, "%s", text);
    } else if (model->has_picture)
        add(list, 23, OCT_TONE_PLAIN, "volume %" PRIu64 " B-scan %3" PRIu32, h->volume, h->bscan);
    else
        add(list, 23, OCT_TONE_DIM, "%s", "");
}

/* What octd lost is lost; what octd made and this window did not get is skipped here (details). */
static void add_losses(const struct oct_view_model *model, struct list *list)
{
    const struct oct_view_daemon *d = &model->daemon;
    const uint64_t n_bad = model->tally.n_bad, rose_ns = model->dropped.rose_ns;
    const bool fresh = rose_ns != 0 && model->now_ns < rose_ns + LOSS_MARK_NS;

    if (!d->reachable && n_bad > 0)
        add(list, 21, OCT_TONE_WARN, "bad %" PRIu64, n_bad);
    else if (!d->reachable)
        add(list, 21, OCT_TONE_DIM, "%s", "");
    else if (n_bad > 0)
        add(list, 21, OCT_TONE_WARN, "lost %.0f, bad %" PRIu64, d->bscans_dropped, n_bad);
    else
        add(list, 21, fresh ? OCT_TONE_WARN : OCT_TONE_PLAIN, "lost %.0f", d->bscans_dropped);
}

/* "45 s", "38 min", "5.2 h": how long the disk lasts is no time of the day. */
static void time_text(double seconds, char *text, size_t n_bytes)
{
    if (!(seconds < 3600))
        snprintf(text, n_bytes, "%.1f h", fmin(seconds / 3600, 9999));
    else if (seconds < 120)
        snprintf(text, n_bytes, "%.0f s", seconds);
    else
        snprintf(text, n_bytes, "%.0f min", floor(seconds / 60));
}

/* n_letters: too few for both: the time alone, where it is known. It is not before octd has
 * measured the camera's line rate. */
static void add_disk(const struct oct_view_model *model, unsigned n_letters, struct list *list)
{
    const struct oct_view_daemon *d = &model->daemon;
    const double left_s = d->record.disk_left_s, free_gb = d->disk_bytes_free / 1e9;
    const enum oct_view_tone tone =
        left_s < OCT_VIEW_DISK_OUT_S ? OCT_TONE_WARN : OCT_TONE_PLAIN; /* not for NaN */
    char text[32];

    time_text(left_s, text, sizeof(text));
    if (!d->reachable || isnan(d->disk_bytes_free))
        add(list, n_letters, OCT_TONE_DIM, "disk ---");
    else if (isnan(left_s))
        add(list, n_letters, OCT_TONE_PLAIN, "disk %.0f GB%s", free_gb,
            n_letters < 20 ? "" : ", time unknown");
    else if (n_letters < 20)
        add(list, n_letters, tone, "disk %s", text);
    else
        add(list, n_letters, tone, "disk %.0f GB, %s", free_gb, text);
}

static void add_mode(const struct oct_view_model *model, struct list *list)
{
    if (model->measuring)
        add(list, 12, OCT_TONE_GOOD, "%s",
            model->held == OCT_HELD_MARK ? "MARKED POINT" : "CALIPERS");
    else if (model->lens.zoom > 1)
        add(list, 12, OCT_TONE_PLAIN, "zoom %.1f", model->lens.zoom);
    else
        add(list, 12, OCT_TONE_GOOD, "%s", model->settings.operators ? "OPERATOR" : "");
}

unsigned oct_view_fields(const struct oct_view_model *model,
                         struct oct_view_field fields[OCT_VIEW_MOST_FIELDS])
{
    struct list list = {.fields = fields};

    add_state(model, &list);
    add_rate(model, &list);
    add_place(model, &list);
    add_losses(model, &list);
    add_disk(model, 14, &list);
    add_mode(model, &list);
    add(&list, 16, OCT_TONE_DIM, "F1 help  F2 more");
    return list.n;
}

/* ---- details ---- */

static void add_stream(const struct oct_view_model *model, struct list *list)
{
    const double rate_hz = pictures_hz(model);
    const enum oct_view_show stream = oct_view_show_of_stream(model);
    double set_hz, lines_hz = line_rate(model, &set_hz);

    add(list, 20, stream == OCT_SHOW_LIVE ? OCT_TONE_PLAIN : OCT_TONE_WARN, "stream %s",
        oct_view_show_name(stream));
    if (lines_hz > 0 && set_hz > 0)
        add(list, 28, OCT_TONE_WARN, "%5.1f kHz lines, set %.1f", lines_hz / 1e3, set_hz / 1e3);
    else if (lines_hz > 0)
        add(list, 28, OCT_TONE_PLAIN, "%5.1f kHz lines", lines_hz / 1e3);
    else
        add(list, 28, OCT_TONE_DIM, "  --- kHz lines");
    if (rate_hz > 0 && model->screen_hz > 0)
        add(list, 12, OCT_TONE_PLAIN, "screen %2.0f Hz", model->screen_hz);
    else
        add(list, 12, OCT_TONE_DIM, "screen --");
    if (rate_hz > 0 && model->daemon.reachable && model->screen_ms > 0)
        add(list, 15, OCT_TONE_PLAIN, "latency %.0f ms",
            model->daemon.latency_p50_us / 1e3 + model->screen_ms);
    else
        add(list, 15, OCT_TONE_DIM, "latency ---");
    add(list, 18, OCT_TONE_DIM, "skipped here %" PRIu64, model->tally.n_skipped);
    add(list, 18, model->tally.n_bad > 0 ? OCT_TONE_WARN : OCT_TONE_PLAIN, "bad messages %" PRIu64,
        model->tally.n_bad);
}

static void add_picture(const struct oct_view_model *model, struct list *list)
{
    const struct oct_picture_header *h = &model->shown.header;
    const double across = h->n_lines * oct_view_model_scale(model).lateral_um / 1e3;
    const double deep = h->depth * oct_view_model_scale(model).axial_um / 1e3;

    if (model->has_picture)
        add(list, 20, OCT_TONE_PLAIN, "%" PRIu32 " x %" PRIu32 " pixels", h->n_lines, h->depth);
    else
        add(list, 20, OCT_TONE_DIM, "%s", "");
    if (model->has_picture && isfinite(across) && isfinite(deep))
        add(list, 18, OCT_TONE_PLAIN, "%.2f x %.2f mm", across, deep);
    else
        add(list, 18, OCT_TONE_DIM, "scale not known");
    if (model->has_picture)
        add(list, 19, h->missing_lines > 0 ? OCT_TONE_WARN : OCT_TONE_PLAIN,
            "missing lines %" PRIu32, h->missing_lines);
    else
        add(list, 19, OCT_TONE_DIM, "missing lines ---");
}

static void add_contrast(const struct oct_view_model *model, struct list *list)
{
    static const char *const whose[] = {"published", "auto", "manual"};
    const struct oct_view_contrast *c = &model->contrast;

    if (!model->has_picture)
        add(list, 32, OCT_TONE_DIM, "%s", "");
    else if (c->log)
        add(list, 32, OCT_TONE_PLAIN, "%.1f .. %.1f dB %s", c->lo, c->hi, whose[c->range]);
    else
        add(list, 32, OCT_TONE_PLAIN, "%.4g .. %.4g %s %s", c->lo, c->hi,
            oct_view_model_unit(model), whose[c->range]);
    add(list, 10, OCT_TONE_PLAIN, "gamma %.2f", c->gamma);
    add(list, 9, OCT_TONE_PLAIN, "zoom %.1f", model->lens.zoom);
}

unsigned oct_view_details(const struct oct_view_model *model,
                          struct oct_view_field fields[OCT_VIEW_MOST_FIELDS])
{
    struct list list = {.fields = fields};

    add_stream(model, &list);
    add_disk(model, 27, &list);
    add_picture(model, &list);
    add_contrast(model, &list);
    add(&list, 30, OCT_TONE_DIM, "%s", model->endpoint);
    return list.n;
}
