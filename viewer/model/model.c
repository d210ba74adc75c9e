#include "viewer/model/model.h"

#include "pipeline/base/clock.h"
#include "viewer/model/daemon.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- calipers, the marked point, the profile's A-line, by mouse and by key ---- */

/* Half the length of calipers that a key makes, in parts of the depth in view. */
#define HALF_CALIPER 0.15

static struct oct_view_point inside(const struct oct_view_model *model, struct oct_view_point p)
{
    double lines = model->shown.header.n_lines, depth = model->shown.header.depth;

    p.line = p.line < 0 ? 0 : p.line > lines ? lines : p.line;
    p.depth = p.depth < 0 ? 0 : p.depth > depth ? depth : p.depth;
    return p;
}

void oct_view_model_mark(struct oct_view_model *model, struct oct_view_point point)
{
    model->has_mark = model->has_picture;
    model->mark = inside(model, point);
}

double oct_view_model_mark_value(const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    return oct_view_picture_value(&model->shown, (uint32_t)fmin(model->mark.line, h->n_lines - 1.0),
                                  (uint32_t)fmin(model->mark.depth, h->depth - 1.0));
}

void oct_view_model_set_caliper(struct oct_view_model *model, struct oct_view_point from,
                                struct oct_view_point to)
{
    if (model->has_picture)
        oct_view_calipers_move(&model->calipers, inside(model, from), inside(model, to));
    model->held = OCT_HELD_TO;
}

bool oct_view_model_add_caliper(struct oct_view_model *model, struct oct_view_point from,
                                struct oct_view_point to)
{
    if (!model->has_picture)
        return false;
    if (!oct_view_calipers_add(&model->calipers, inside(model, from), inside(model, to))) {
        oct_view_model_say(model, "%u calipers are the most: X takes them away",
                           OCT_VIEW_MOST_CALIPERS);
        return false;
    }
    model->held = OCT_HELD_TO;
    return true;
}

void oct_view_model_point_at(struct oct_view_model *model, double line)
{
    double last = model->has_picture ? model->shown.header.n_lines - 1.0 : 0;

    model->cursor_line = line < 0 ? 0 : line > last ? last : line;
}

/* ---- by key ---- */

/* Returns the middle of the pixel, so that one step reaches the next pixel's middle. */
static double middle_of_pixel(double at)
{
    return floor(at) + 0.5;
}

static bool can_measure(struct oct_view_model *model)
{
    if (!model->has_picture)
        oct_view_model_say(model, "there is no picture to measure yet");
    return model->has_picture;
}

/* Those that keys make one after the other lie side by side. */
static void put_caliper(struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    double beside = 0.05 * oct_view_calipers_count(&model->calipers) / model->lens.zoom;
    double line = middle_of_pixel((model->lens.x + beside) * h->n_lines);
    double half = HALF_CALIPER / model->lens.zoom;
    double top = middle_of_pixel((model->lens.y - half) * h->depth);
    double bottom = middle_of_pixel((model->lens.y + half) * h->depth);

    oct_view_model_add_caliper(model, (struct oct_view_point){line, top},
                               (struct oct_view_point){line, bottom});
}

/* Adds calipers in the middle of the view and switches measuring on. */
static void oct_view_model_add_by_key(struct oct_view_model *model)
{
    if (!can_measure(model))
        return;
    model->measuring = true;
    put_caliper(model);
}

/* Removes the held calipers, or the marked point where it is held. */
static void oct_view_model_remove_held(struct oct_view_model *model)
{
    if (model->held == OCT_HELD_MARK) {
        model->has_mark = false;
        model->held = OCT_HELD_TO;
    } else {
        oct_view_calipers_remove(&model->calipers);
    }
}

const struct oct_view_point *oct_view_model_held_point(const struct oct_view_model *model)
{
    const struct oct_view_caliper *held = oct_view_calipers_held(&model->calipers);

    switch (model->held) {
    case OCT_HELD_MARK:
        return model->has_mark ? &model->mark : NULL;
    case OCT_HELD_FROM:
        return held ? &held->end[0] : NULL;
    default:
        return held ? &held->end[1] : NULL;
    }
}

/* Makes the next of the calipers' ends and the marked point the held one. */
static void oct_view_model_hold_next(struct oct_view_model *model)
{
    if (!model->measuring) {
        oct_view_model_say(model, "M first: Tab changes what the arrows move while measuring");
        return;
    }
    if (!can_measure(model))
        return;
    if (oct_view_calipers_count(&model->calipers) == 0) {
        put_caliper(model);
        return;
    }
    /* Both ends of each pair in turn, then the marked point. */
    if (model->held == OCT_HELD_TO)
        model->held = OCT_HELD_FROM;
    else if (model->held == OCT_HELD_MARK)
        model->held = OCT_HELD_TO;
    else
        model->held = oct_view_calipers_hold_next(&model->calipers) || !model->has_mark
                          ? OCT_HELD_TO
                          : OCT_HELD_MARK;
}

/* Makes the marked point the held one and switches measuring on. Where there is no marked point,
 * puts it on the profile's A-line, in the middle of the view. */
static void oct_view_model_mark_by_key(struct oct_view_model *model)
{
    if (!can_measure(model))
        return;
    if (!model->has_mark)
        oct_view_model_mark(model, (struct oct_view_point){
                                       middle_of_pixel(model->cursor_line),
                                       middle_of_pixel(model->lens.y * model->shown.header.depth)});
    model->measuring = true;
    model->held = OCT_HELD_MARK;
}

/* Moves the held point by whole pixels. Where there are no calipers, puts them into the middle of
 * the view first. False: the action is none of the arrow keys'. */
static bool oct_view_model_move_held(struct oct_view_model *model, enum oct_view_action action,
                                     unsigned times)
{
    /* The arrow keys' actions, as steps to the right and down. */
    int right = action == OCT_ACTION_LEVEL_UP ? 1 : action == OCT_ACTION_LEVEL_DOWN ? -1 : 0;
    int down = action == OCT_ACTION_WINDOW_CLOSER ? 1 : action == OCT_ACTION_WINDOW_WIDER ? -1 : 0;

    if (right == 0 && down == 0)
        return false;
    if (!can_measure(model))
        return true;
    if (!oct_view_model_held_point(model))
        put_caliper(model);
    struct oct_view_point to = *oct_view_model_held_point(model);
    to = inside(model, (struct oct_view_point){to.line + right * (double)times,
                                               to.depth + down * (double)times});
    if (model->held == OCT_HELD_MARK)
        model->mark = to;
    else
        model->calipers.shown.caliper[model->calipers.shown.held].end[model->held == OCT_HELD_TO] =
            to;
    return true;
}

/* ---- pictures ---- */

#define MESSAGE_NS (4 * OCT_NS_PER_S)
/* A silence is a stall after four intervals of the stream, within these bounds. */
#define STALL_LEAST_S 2.0
#define STALL_MOST_S 10.0
/* Automatic contrast: the share that is black, the share that is not white, how fast it follows. */
#define AUTO_BLACK 0.20
#define AUTO_WHITE 0.998
#define AUTO_PACE 0.1

void oct_view_model_init(struct oct_view_model *model, const char *endpoint, bool log)
{
    memset(model, 0, sizeof(*model));
    snprintf(model->endpoint, sizeof(model->endpoint), "%s", endpoint);
    oct_view_contrast_init(&model->contrast, log);
    oct_view_lens_init(&model->lens);
    model->cursor_line = -1;
    model->settings.cells = model->settings.layers = model->settings.rolloff = true;
    model->settings.guide = true;
    model->daemon.axial_um = model->daemon.lateral_um = model->daemon.slow_um = NAN;
    model->daemon.disk_bytes_free = model->daemon.record.disk_left_s = NAN;
    model->daemon.record.volumes = NAN;
}

void oct_view_model_finish(struct oct_view_model *model)
{
    oct_view_picture_finish(&model->shown);
    oct_view_picture_finish(&model->newest);
    oct_view_enface_finish(&model->enface);
    oct_view_layers_finish(&model->layers);
    oct_view_spectrum_finish(&model->spectrum);
    oct_view_playback_finish(&model->playback);
    model->has_picture = model->newest_waits = false;
}

void oct_view_model_attach(struct oct_view_model *model, struct oct_view_archive *archive)
{
    model->archive = archive;
}

/* ---- pictures ---- */

/* Moves the automatic contrast to what the shown picture asks for by `pace` of the way. */
static void oct_view_model_adapt(struct oct_view_model *model, double pace)
{
    double lo, hi;

    if (model->contrast.range == OCT_CONTRAST_AUTO && model->has_picture &&
        oct_view_picture_percentiles(&model->shown, AUTO_BLACK, AUTO_WHITE, &lo, &hi))
        oct_view_contrast_adapt(&model->contrast, lo, hi, pace);
}

/* Those of the shown picture. */
static void show_calipers(struct oct_view_model *model)
{
    const bool recorded = model->playback.active;

    oct_view_calipers_show(&model->calipers, &model->shown.header, model->frozen || recorded,
                           recorded ? model->playback.file.name
                                    : model->shown.header.acquisition_id);
}

static void show(struct oct_view_model *model, struct oct_view_picture *picture)
{
    bool first = !model->has_picture;

    oct_view_picture_swap(&model->shown, picture);
    model->has_picture = true;
    show_calipers(model);
    model->sharpened.arrival_ns = 0;
    model->first_picture_ns = first ? model->now_ns : model->first_picture_ns;
    model->serial++;
    oct_view_contrast_publish(&model->contrast, model->shown.header.lo, model->shown.header.hi);
    oct_view_model_adapt(model, first ? 1 : AUTO_PACE);
    if (model->cursor_line < 0 || model->cursor_line >= model->shown.header.n_lines)
        model->cursor_line = model->shown.header.n_lines / 2;
    oct_view_guide_see(model);
}

/* average: what is said of the picture, zeroed if it is a B-scan. */
static void offer(struct oct_view_model *model, struct oct_view_picture *picture,
                  const struct oct_view_average *average)
{
    if ((model->frozen && model->has_picture) || model->playback.active) {
        oct_view_picture_swap(&model->newest, picture);
        model->newest_average = *average;
        model->newest_waits = true;
    } else {
        show(model, picture);
        model->average = *average;
    }
}

void oct_view_model_offer(struct oct_view_model *model, struct oct_view_picture *picture)
{
    static const struct oct_view_average none;
    const bool averages = model->settings.average && oct_view_average_comes(model);
    if (!averages && !oct_view_overlay_leads(model))
        offer(model, picture, &none);
}

void oct_view_model_offer_average(struct oct_view_model *model, struct oct_view_image *image,
                                  struct oct_view_picture *spare)
{
    struct oct_view_average average;
    if (!model->settings.average)
        return;
    oct_view_average_take(&average, image, spare);
    model->average_came_ns = average.arrival_ns;
    offer(model, spare, &average);
}

void oct_view_model_set_frozen(struct oct_view_model *model, bool frozen)
{
    model->frozen = frozen;
    model->back = 0;
    model->frozen_ns = model->shown.arrival_ns;
    if (model->archive) {
        oct_view_archive_freeze(model->archive, frozen);
        model->back = oct_view_archive_since(model->archive, model->frozen_ns);
    }
    if (!frozen)
        model->sharpened.arrival_ns = 0; /* the next D asks anew */
    if (!frozen)
        oct_view_model_show_newest(model);
    if (model->has_picture)
        show_calipers(model);
}

void oct_view_model_show_newest(struct oct_view_model *model)
{
    if (!model->newest_waits)
        return;
    show(model, &model->newest);
    model->average = model->newest_average;
    model->newest_waits = false;
}

void oct_view_model_show_bscan(struct oct_view_model *model, struct oct_view_picture *picture)
{
    show(model, picture);
    model->average = (struct oct_view_average){.arrival_ns = 0};
}

void oct_view_model_show_recorded(struct oct_view_model *model, struct oct_view_picture *picture,
                                  bool whole)
{
    const bool follows = model->contrast.range == OCT_CONTRAST_AUTO && !whole;
    const struct oct_view_contrast before = model->contrast;

    oct_view_model_show_bscan(model, picture);
    if (follows)
        model->contrast = before;
}

void oct_view_model_hold_up(struct oct_view_model *model, struct oct_view_picture *picture)
{
    if (model->playback.active)
        return;
    if (model->frozen)
        oct_view_model_set_frozen(model, false);
    oct_view_model_show_bscan(model, picture);
    oct_view_model_set_frozen(model, true);
}

/* Steps through the kept pictures. */
static void oct_view_model_step_back(struct oct_view_model *model, int by)
{
    struct oct_view_picture kept = {0};
    unsigned n = model->archive ? oct_view_archive_count(model->archive) : 0;
    long long back = (long long)model->back + by;

    if (!model->frozen || n == 0) {
        oct_view_model_say(model, "%s", model->frozen ? "no B-scans are kept" : "freeze first");
        return;
    }
    back = back < 0 ? 0 : back >= n ? n - 1 : back;
    if (oct_view_archive_get(model->archive, (unsigned)back, &kept)) {
        model->back = (unsigned)back;
        if (back == 0 || kept.arrival_ns > model->frozen_ns)
            model->frozen_ns = kept.arrival_ns;
        oct_view_model_show_bscan(model, &kept);
    }
    oct_view_picture_finish(&kept);
}

void oct_view_model_report(struct oct_view_model *model, const struct oct_view_tally *tally,
                           bool connected)
{
    model->tally = *tally;
    model->connected = connected;
    if (model->archive)
        oct_view_archive_copy_quality(model->archive, &model->quality);
}

void oct_view_model_offer_spectrum(struct oct_view_model *model, struct oct_view_spectrum *spectrum)
{
    struct oct_view_spectrum kept = model->spectrum;

    model->spectrum = *spectrum;
    *spectrum = kept;
    oct_view_guide_take_spectrum(&model->guide, &model->spectrum, model->shown.header.n_lines);
}

/* ---- time and words ---- */

void oct_view_model_tick(struct oct_view_model *model, uint64_t now_ns)
{
    model->now_ns = now_ns;
    oct_view_guide_see(model);
    if (now_ns >= model->message_until_ns)
        model->message[0] = '\0';
    if (now_ns >= model->answer_until_ns)
        model->answer.wish = OCT_WISH_NONE;
    oct_view_playback_tick(model);
}

static void count_frame(struct oct_view_model *model, uint64_t now_ns)
{
    uint64_t window_ns = now_ns - model->screen_since_ns;

    model->n_screen++;
    if (window_ns < OCT_NS_PER_S)
        return;
    model->screen_hz =
        model->screen_since_ns ? (double)model->n_screen * 1e9 / (double)window_ns : 0;
    model->screen_since_ns = now_ns;
    model->n_screen = 0;
}

void oct_view_model_presented(struct oct_view_model *model, uint64_t now_ns)
{
    count_frame(model, now_ns);
    if (!model->has_picture || model->frozen || model->playback.active ||
        now_ns < model->shown.arrival_ns)
        return;
    double ms = (double)(now_ns - model->shown.arrival_ns) / 1e6;
    model->screen_ms += (ms - model->screen_ms) * (model->screen_ms > 0 ? 0.05 : 1);
}

void oct_view_model_say(struct oct_view_model *model, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(model->message, sizeof(model->message), format, args);
    va_end(args);
    oct_view_letters_clean(model->message);
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
        return OCT_SIGNAL_WAITING;
    double rate_hz = oct_view_tally_rate_hz(&model->tally);
    double stall_s = rate_hz > 0 ? 4.0 / rate_hz : STALL_LEAST_S;
    if (stall_s < STALL_LEAST_S)
        stall_s = STALL_LEAST_S;
    if (stall_s > STALL_MOST_S)
        stall_s = STALL_MOST_S;
    return oct_view_model_silence_s(model) < stall_s ? OCT_SIGNAL_LIVE : OCT_SIGNAL_STALLED;
}

bool oct_view_model_knows_proportion(const struct oct_view_model *model)
{
    const struct oct_view_scale scale = oct_view_model_scale(model);

    return oct_view_proportion_known(scale.lateral_um, scale.axial_um);
}

struct oct_view_scale oct_view_model_scale(const struct oct_view_model *model)
{
    const struct oct_view_file *file = &model->playback.file;

    if (model->playback.active)
        return (struct oct_view_scale){file->lateral_um, file->axial_um};
    return (struct oct_view_scale){model->daemon.lateral_um, model->daemon.axial_um};
}

double oct_view_model_slow_um(const struct oct_view_model *model)
{
    return model->playback.active ? model->playback.file.slow_um : model->daemon.slow_um;
}

const struct oct_view_enface *oct_view_model_enface(const struct oct_view_model *model)
{
    return model->playback.active ? &model->playback.enface : &model->enface;
}

double oct_view_model_proportion(const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_scale scale = oct_view_model_scale(model);

    return oct_view_proportion(h->n_lines, scale.lateral_um, h->depth, scale.axial_um);
}

double oct_view_model_enface_proportion(const struct oct_view_model *model)
{
    const struct oct_view_enface *e = oct_view_model_enface(model);
    double across_um = oct_view_model_scale(model).lateral_um;
    double slow_um = oct_view_model_slow_um(model);

    if (e->n_rows == 0 || !oct_view_proportion_known(across_um, slow_um))
        return NAN;
    return oct_view_proportion(e->n_lines, across_um, e->n_bscans, slow_um);
}

struct oct_view_rectf oct_view_model_place(const struct oct_view_model *model,
                                           struct oct_view_rect panel)
{
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_rect fit = panel;

    if (model->settings.fit == OCT_FIT_PIXELS)
        return oct_view_lens_place(&model->lens, panel, h->n_lines, h->depth);
    if (model->settings.fit == OCT_FIT_MICROMETRES)
        fit = oct_view_layout_fit(panel, oct_view_model_proportion(model), false);
    return oct_view_lens_place(&model->lens, panel, fit.w, fit.h);
}

const char *oct_view_model_unit(const struct oct_view_model *model)
{
    const struct oct_view_file *file = &model->playback.file;

    if (model->playback.active && file->what[0])
        return file->unit;
    return model->contrast.log ? "dB" : "counts\u00b2";
}

/* The next way in which the B-scan lies in its panel, with a word on it. */
static void oct_view_model_next_fit(struct oct_view_model *model)
{
    static const char *const names[OCT_N_FITS] = {
        [OCT_FIT_FILL] = "the B-scan fills its panel",
        [OCT_FIT_MICROMETRES] = "1:1 micrometres: the proportions of the tissue",
        [OCT_FIT_PIXELS] = "1:1 pixels: one of the B-scan is one of the screen",
    };
    enum oct_view_fit *fit = &model->settings.fit;

    *fit = (enum oct_view_fit)((*fit + 1) % OCT_N_FITS);
    oct_view_model_say(model, "%s",
                       *fit == OCT_FIT_MICROMETRES && !oct_view_model_knows_proportion(model)
                           ? "square pixels: octd does not know the scale in micrometres"
                           : names[*fit]);
}

void oct_view_model_stretch_text(const struct oct_view_model *model, struct oct_view_rectf place,
                                 char *text, size_t n_bytes)
{
    double stretch = oct_view_model_proportion(model) / (place.w / place.h);

    text[0] = '\0';
    if (!model->has_picture || !oct_view_model_knows_proportion(model) || !isfinite(stretch))
        return;
    if (stretch > 1.05)
        snprintf(text, n_bytes, "stretched %.1fx along depth", stretch);
    else if (stretch < 1 / 1.05)
        snprintf(text, n_bytes, "stretched %.1fx across", 1 / stretch);
}

/* ---- what the user asks for ---- */

static void move_slab(struct oct_view_model *model, double shift, double grow)
{
    if (oct_view_model_can_set_enface(model))
        oct_view_enface_wishes_move(&model->enface_wishes, shift, grow);
}

static bool apply_contrast(struct oct_view_contrast *c, enum oct_view_action action, unsigned times)
{
    double step = oct_view_contrast_step(c) * times;

    switch (action) {
    case OCT_ACTION_AUTO_CONTRAST:
        oct_view_contrast_set_range(c, c->range == OCT_CONTRAST_AUTO ? OCT_CONTRAST_MANUAL
                                                                     : OCT_CONTRAST_AUTO);
        return true;
    case OCT_ACTION_PUBLISHED_CONTRAST:
        oct_view_contrast_set_range(c, OCT_CONTRAST_PUBLISHED);
        return true;
    case OCT_ACTION_LEVEL_DOWN:
    case OCT_ACTION_LEVEL_UP:
        oct_view_contrast_move(c, action == OCT_ACTION_LEVEL_UP ? step : -step, 0);
        return true;
    case OCT_ACTION_WINDOW_WIDER:
    case OCT_ACTION_WINDOW_CLOSER:
        oct_view_contrast_move(c, 0, action == OCT_ACTION_WINDOW_WIDER ? 2 * step : -2 * step);
        return true;
    case OCT_ACTION_LOWER_DOWN:
    case OCT_ACTION_LOWER_UP:
        oct_view_contrast_move_lo(c, action == OCT_ACTION_LOWER_UP ? step : -step);
        return true;
    case OCT_ACTION_UPPER_DOWN:
    case OCT_ACTION_UPPER_UP:
        oct_view_contrast_move_hi(c, action == OCT_ACTION_UPPER_UP ? step : -step);
        return true;
    case OCT_ACTION_GAMMA_DOWN:
    case OCT_ACTION_GAMMA_UP:
        oct_view_contrast_set_gamma(c, c->gamma * (action == OCT_ACTION_GAMMA_UP ? 1.1 : 1 / 1.1));
        return true;
    case OCT_ACTION_PALETTE:
        c->palette = (enum oct_view_palette)((c->palette + 1) % OCT_N_PALETTES);
        return true;
    default:
        return false;
    }
}

static bool apply_view(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    struct oct_view_lens *lens = &model->lens;
    struct oct_view_settings *s = &model->settings;

    switch (action) {
    case OCT_ACTION_LAYOUT:
        s->arrangement = (enum oct_view_arrangement)((s->arrangement + 1) % OCT_N_ARRANGEMENTS);
        return true;
    case OCT_ACTION_PROJECTION:
        oct_view_model_next_projection(model);
        return true;
    case OCT_ACTION_SLAB_UP:
    case OCT_ACTION_SLAB_DOWN:
        move_slab(model, (action == OCT_ACTION_SLAB_DOWN ? 0.01 : -0.01) * times, 0);
        return true;
    case OCT_ACTION_SLAB_THINNER:
    case OCT_ACTION_SLAB_THICKER:
        move_slab(model, 0, (action == OCT_ACTION_SLAB_THICKER ? 0.005 : -0.005) * times);
        return true;
    case OCT_ACTION_ZOOM_IN:
    case OCT_ACTION_ZOOM_OUT:
        oct_view_lens_zoom(lens, pow(action == OCT_ACTION_ZOOM_IN ? 1.25 : 0.8, times), lens->x,
                           lens->y);
        return true;
    case OCT_ACTION_ZOOM_RESET:
        oct_view_lens_init(lens);
        return true;
    case OCT_ACTION_PAN_LEFT:
    case OCT_ACTION_PAN_RIGHT:
        oct_view_lens_pan(lens, (action == OCT_ACTION_PAN_RIGHT ? 0.1 : -0.1) * times, 0);
        return true;
    case OCT_ACTION_PAN_UP:
    case OCT_ACTION_PAN_DOWN:
        oct_view_lens_pan(lens, 0, (action == OCT_ACTION_PAN_DOWN ? 0.1 : -0.1) * times);
        return true;
    case OCT_ACTION_CURSOR_LEFT:
    case OCT_ACTION_CURSOR_RIGHT:
        oct_view_model_point_at(model, model->cursor_line + (action == OCT_ACTION_CURSOR_RIGHT
                                                                 ? (double)times
                                                                 : -(double)times));
        return true;
    case OCT_ACTION_FIT:
        oct_view_model_next_fit(model);
        return true;
    case OCT_ACTION_DETAILS:
        s->details = !s->details;
        return true;
    default:
        return false;
    }
}

static void toggle_guide(struct oct_view_model *model)
{
    model->settings.guide = !model->settings.guide;
    model->guide.pointed &= model->settings.guide;
    oct_view_model_say(model, "%s",
                       model->settings.guide ? "the guide: quality, where the retina should lie"
                                             : "no guide");
}

static bool apply_overlay(struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_AVERAGE:
        oct_view_average_toggle(model);
        return true;
    case OCT_ACTION_AVERAGE_OF:
        oct_view_average_next_number(model);
        return true;
    case OCT_ACTION_SHARPEN:
        oct_view_sharpened_toggle(model);
        return true;
    case OCT_ACTION_GUIDE:
        toggle_guide(model);
        return true;
    default:
        return oct_view_overlay_apply(model, action);
    }
}

static void start(struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;

    if (d->reachable && strcmp(d->state, "idle") != 0 && strcmp(d->state, "error") != 0)
        oct_view_model_say(model, "octd receives already");
    else
        oct_view_model_wish(model, OCT_WISH_START, "");
}

static bool apply_patient(struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_START:
        start(model);
        return true;
    case OCT_ACTION_RECORD:
        oct_view_patient_record(model);
        return true;
    case OCT_ACTION_SAVE_LAST:
        oct_view_save_last(model);
        return true;
    case OCT_ACTION_EYE:
        oct_view_patient_next_eye(model);
        return true;
    case OCT_ACTION_RIGHT_EYE:
    case OCT_ACTION_LEFT_EYE:
        oct_view_patient_set_eye(model, action == OCT_ACTION_RIGHT_EYE ? "OD" : "OS");
        return true;
    case OCT_ACTION_PSEUDONYM:
        oct_view_patient_type(model);
        return true;
    case OCT_ACTION_NEXT_PATIENT:
        oct_view_patient_next(model);
        return true;
    default:
        return false;
    }
}

static void next_light(struct oct_view_model *model)
{
    static const int percent[OCT_N_LIGHTS] = {100, 50, 25};
    struct oct_view_settings *s = &model->settings;

    s->light = (enum oct_view_light)((s->light + 1) % OCT_N_LIGHTS);
    oct_view_model_say(model, "the window has %d %% of its light", percent[s->light]);
}

static void toggle_sound(struct oct_view_model *model)
{
    model->settings.sound = !model->settings.sound;
    oct_view_model_say(model, "%s",
                       model->settings.sound ? "a sound for alarms and recordings" : "no sound");
}

static void toggle_profile(struct oct_view_model *model)
{
    model->settings.operators = !model->settings.operators;
    model->measuring = false;
    oct_view_model_say(
        model, "%s", model->settings.operators ? "operator profile: Ctrl+O leaves it" : "all keys");
}

static void apply_rest(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    switch (action) {
    case OCT_ACTION_VOLUMES:
        oct_view_model_next_volumes(model);
        break;
    case OCT_ACTION_FREEZE:
        oct_view_model_set_frozen(model, !model->frozen);
        break;
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
        oct_view_model_step_back(model, action == OCT_ACTION_OLDER ? (int)times : -(int)times);
        break;
    case OCT_ACTION_MEASURE:
        model->measuring = !model->measuring;
        model->held = OCT_HELD_TO;
        break;
    case OCT_ACTION_CALIPERS:
        oct_view_model_add_by_key(model);
        break;
    case OCT_ACTION_REMOVE:
        oct_view_model_remove_held(model);
        break;
    case OCT_ACTION_HOLD:
        oct_view_model_hold_next(model);
        break;
    case OCT_ACTION_MARK:
        oct_view_model_mark_by_key(model);
        break;
    case OCT_ACTION_CLEAR:
        oct_view_calipers_clear(&model->calipers);
        model->has_mark = false;
        model->held = OCT_HELD_TO;
        break;
    case OCT_ACTION_ACKNOWLEDGE:
        oct_view_recorded_note(model);
        break;
    case OCT_ACTION_LOCK:
        toggle_profile(model);
        break;
    case OCT_ACTION_DIM:
        next_light(model);
        break;
    case OCT_ACTION_SOUND:
        toggle_sound(model);
        break;
    case OCT_ACTION_HELP:
        model->help = !model->help;
        break;
    default:
        break;
    }
}

void oct_view_model_apply(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    if (model->settings.operators && !oct_view_action_is_operators(action)) {
        oct_view_model_say(model, "not in the operator profile");
        return;
    }
    if (model->measuring && oct_view_model_move_held(model, action, times))
        return;
    if (oct_view_playback_apply(model, action, times))
        return;
    if (apply_contrast(&model->contrast, action, times))
        oct_view_model_adapt(model, 1);
    else if (!apply_view(model, action, times) && !apply_overlay(model, action) &&
             !apply_patient(model, action))
        apply_rest(model, action, times);
}

void oct_view_model_drag(struct oct_view_model *model, double across, double down)
{
    double range = model->contrast.published_hi - model->contrast.published_lo;

    if (across == 0.0 && down == 0.0)
        return;
    /* Up widens the window, as the Up key does. */
    oct_view_contrast_move(&model->contrast, across * range, -down * range);
}
