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
    const struct oct_picture_header *h = &model->shown.header;
    return (struct oct_view_point){fmin(fmax(p.line, 0), h->n_lines),
                                   fmin(fmax(p.depth, 0), h->depth)};
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
    model->cursor_line = fmin(fmax(line, 0), last);
}

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

const struct oct_view_point *oct_view_model_held_point(const struct oct_view_model *model)
{
    const struct oct_view_caliper *held = oct_view_calipers_held(&model->calipers);
    if (model->held == OCT_HELD_MARK)
        return model->has_mark ? &model->mark : NULL;
    return held ? &held->end[model->held == OCT_HELD_TO] : NULL;
}

/* Makes the next of the calipers' ends and the marked point the held one: both ends of each pair in
 * turn, then the marked point. */
static void hold_next(struct oct_view_model *model)
{
    if (!model->measuring)
        oct_view_model_say(model, "M first: Tab changes what the arrows move while measuring");
    else if (!can_measure(model))
        return;
    else if (oct_view_calipers_count(&model->calipers) == 0)
        put_caliper(model);
    else if (model->held == OCT_HELD_TO)
        model->held = OCT_HELD_FROM;
    else if (model->held == OCT_HELD_FROM && !oct_view_calipers_hold_next(&model->calipers) &&
             model->has_mark)
        model->held = OCT_HELD_MARK;
    else
        model->held = OCT_HELD_TO;
}

/* Moves the held point by whole pixels. Where there are no calipers, puts them into the middle of
 * the view first. False: the action is none of the arrow keys'. */
static bool move_held(struct oct_view_model *model, enum oct_view_action action, unsigned times)
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
    model->settings.guide = model->settings.flow = true;
    model->daemon.flow.max_bulk = NAN;
    model->daemon.axial_um = model->daemon.lateral_um = model->daemon.slow_um = NAN;
    model->daemon.disk_bytes_free = model->daemon.record.disk_left_s = NAN;
    model->daemon.record.volumes = NAN;
}

void oct_view_model_finish(struct oct_view_model *model)
{
    oct_view_picture_finish(&model->shown);
    oct_view_picture_finish(&model->newest);
    oct_view_picture_finish(&model->spare);
    oct_view_enface_finish(&model->enface);
    oct_view_layers_finish(&model->layers);
    oct_view_flow_finish(&model->flow);
    oct_view_enface_finish(&model->angiogram.enface);
    oct_view_spectrum_finish(&model->spectrum);
    oct_view_playback_finish(&model->playback);
    oct_view_worklist_finish(&model->worklist);
    oct_view_exams_finish(&model->exams);
    model->has_picture = model->newest_waits = false;
}

/* Moves the automatic contrast to what the shown picture asks for by `pace` of the way. */
static void adapt(struct oct_view_model *model, double pace)
{
    double lo, hi;
    if (model->contrast.range == OCT_CONTRAST_AUTO && model->has_picture &&
        oct_view_picture_percentiles(&model->shown, AUTO_BLACK, AUTO_WHITE, &lo, &hi))
        oct_view_contrast_adapt(&model->contrast, lo, hi, pace);
}

static void show_calipers(struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    oct_view_calipers_show(&model->calipers, &model->shown.header, model->frozen || p->active,
                           p->active ? p->file.name : model->shown.header.acquisition_id);
}

static void show_picture(struct oct_view_model *model, struct oct_view_picture *picture)
{
    bool first = !model->has_picture;
    oct_view_picture_swap(&model->shown, picture);
    model->has_picture = true;
    show_calipers(model);
    model->sharpened.arrival_ns = 0;
    model->first_picture_ns = first ? model->now_ns : model->first_picture_ns;
    model->serial++;
    oct_view_contrast_publish(&model->contrast, model->shown.header.lo, model->shown.header.hi);
    adapt(model, first ? 1 : AUTO_PACE);
    if (model->cursor_line < 0 || model->cursor_line >= model->shown.header.n_lines)
        model->cursor_line = model->shown.header.n_lines / 2;
    oct_view_guide_see(model);
}

void oct_view_model_offer_picture(struct oct_view_model *model, struct oct_view_picture *picture,
                                  const struct oct_view_average *average)
{
    if ((model->frozen && model->has_picture) || model->playback.active) {
        oct_view_picture_swap(&model->newest, picture);
        model->newest_average = *average;
        model->newest_waits = true;
    } else {
        show_picture(model, picture);
        model->average = *average;
    }
}

void oct_view_model_offer(struct oct_view_model *model, struct oct_view_picture *picture)
{
    static const struct oct_view_average none;
    const bool averages = model->settings.average && oct_view_average_comes(model);
    if (!averages && !oct_view_overlay_leads(model))
        oct_view_model_offer_picture(model, picture, &none);
}

void oct_view_model_set_frozen(struct oct_view_model *model, bool frozen)
{
    model->frozen = frozen;
    model->back = 0;
    model->frozen_ns = model->shown.arrival_ns;
    if (model->archive)
        model->back = oct_view_archive_freeze(model->archive, frozen, model->frozen_ns);
    if (!frozen) {
        model->sharpened.arrival_ns = 0; /* the next D asks anew */
        oct_view_model_show_newest(model);
    }
    if (model->has_picture)
        show_calipers(model);
}

void oct_view_model_show_newest(struct oct_view_model *model)
{
    if (!model->newest_waits)
        return;
    show_picture(model, &model->newest);
    model->average = model->newest_average;
    model->newest_waits = false;
}

void oct_view_model_show_bscan(struct oct_view_model *model, struct oct_view_picture *picture)
{
    show_picture(model, picture);
    model->average = (struct oct_view_average){.arrival_ns = 0};
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
static void step_back(struct oct_view_model *model, int by)
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

void oct_view_model_presented(struct oct_view_model *model, uint64_t now_ns)
{
    const uint64_t window_ns = now_ns - model->screen_since_ns;
    model->n_screen++;
    if (window_ns >= OCT_NS_PER_S) {
        model->screen_hz =
            model->screen_since_ns ? (double)model->n_screen * 1e9 / (double)window_ns : 0;
        model->screen_since_ns = now_ns;
        model->n_screen = 0;
    }
    if (!model->has_picture || model->frozen || model->playback.active ||
        now_ns < model->shown.arrival_ns)
        return;
    const double ms = (double)(now_ns - model->shown.arrival_ns) / 1e6;
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
    const double rate_hz = oct_view_tally_rate_hz(&model->tally);
    const double stall_s = rate_hz > 0 ? 4.0 / rate_hz : STALL_LEAST_S;
    if (model->tally.n_received == 0)
        return OCT_SIGNAL_WAITING;
    return oct_view_model_silence_s(model) < fmin(fmax(stall_s, STALL_LEAST_S), STALL_MOST_S)
               ? OCT_SIGNAL_LIVE
               : OCT_SIGNAL_STALLED;
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

bool oct_view_model_enface_is_gridded(const struct oct_view_model *model)
{
    const struct oct_scan *scan = oct_view_above_scan(model);
    return scan->n_bscans > 0 && !oct_scan_has_rows(scan);
}

double oct_view_model_enface_proportion(const struct oct_view_model *model)
{
    const struct oct_view_enface *e = oct_view_model_enface(model);
    const struct oct_view_above *above = &model->scan.above;
    const bool is_kept = oct_view_above_is_kept(model);
    const double across_um = is_kept ? above->lateral_um : oct_view_model_scale(model).lateral_um;
    const double slow_um = is_kept ? above->slow_um : oct_view_model_slow_um(model);
    if (e->n_rows > 0 && oct_view_model_enface_is_gridded(model))
        return e->n_lines / (double)e->n_bscans;
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

/* What a key switches on and off, or to the next of three; with a word on it (NULL: none). */
static const struct turn {
    enum oct_view_action action;
    bool is_enum; /* of three values, else a bool */
    size_t at;    /* in the model */
    const char *words[3];
} turns[] = {
#define AT(member) offsetof(struct oct_view_model, member)
    {OCT_ACTION_PALETTE, true, AT(contrast.palette), {NULL}},
    {OCT_ACTION_LAYOUT, true, AT(settings.arrangement), {NULL}},
    {OCT_ACTION_FIT,
     true,
     AT(settings.fit),
     {"the B-scan fills its panel", "1:1 micrometres: the proportions of the tissue",
      "1:1 pixels: one of the B-scan is one of the screen"}},
    {OCT_ACTION_DIM,
     true,
     AT(settings.light),
     {"the window has 100 % of its light", "the window has 50 % of its light",
      "the window has 25 % of its light"}},
    {OCT_ACTION_SOUND,
     false,
     AT(settings.sound),
     {"no sound", "a sound for alarms and recordings"}},
    {OCT_ACTION_GUIDE,
     false,
     AT(settings.guide),
     {"no guide", "the guide: quality, where the retina should lie"}},
    {OCT_ACTION_LOCK,
     false,
     AT(settings.operators),
     {"all keys", "operator profile: Ctrl+O leaves it"}},
    {OCT_ACTION_DETAILS, false, AT(settings.details), {NULL}},
    {OCT_ACTION_MEASURE, false, AT(measuring), {NULL}},
    {OCT_ACTION_HELP, false, AT(help), {NULL}},
};
_Static_assert((int)OCT_N_PALETTES == 3 && (int)OCT_N_ARRANGEMENTS == 3 && (int)OCT_N_FITS == 3 &&
                   (int)OCT_N_LIGHTS == 3,
               "a turn has three values");

static bool apply_turn(struct oct_view_model *model, enum oct_view_action action)
{
    const struct turn *t = turns, *end = turns + sizeof(turns) / sizeof(turns[0]);
    int value = 0;
    while (t < end && t->action != action)
        t++;
    if (t == end)
        return false;
    void *at = (char *)model + t->at;
    if (t->is_enum) { /* enums are ints */
        memcpy(&value, at, sizeof(value));
        value = (value + 1) % 3;
        memcpy(at, &value, sizeof(value));
    } else {
        value = *(bool *)at = !*(bool *)at;
    }
    const char *words = t->words[value];
    if (action == OCT_ACTION_FIT && value == OCT_FIT_MICROMETRES &&
        !oct_view_model_knows_proportion(model))
        words = "square pixels: octd does not know the scale in micrometres";
    if (words)
        oct_view_model_say(model, "%s", words);
    model->guide.pointed &= model->settings.guide;
    model->measuring &= action != OCT_ACTION_LOCK;
    model->held = action == OCT_ACTION_MEASURE ? OCT_HELD_TO : model->held;
    return true;
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
    default:
        return false;
    }
}

static bool apply_view(struct oct_view_model *model, enum oct_view_action action, double times)
{
    struct oct_view_lens *lens = &model->lens;
    switch (action) {
    case OCT_ACTION_PROJECTION:
        oct_view_model_next_projection(model);
        return true;
    case OCT_ACTION_SLAB_UP:
    case OCT_ACTION_SLAB_DOWN:
        oct_view_model_move_slab(model, (action == OCT_ACTION_SLAB_DOWN ? 0.01 : -0.01) * times, 0);
        return true;
    case OCT_ACTION_SLAB_THINNER:
    case OCT_ACTION_SLAB_THICKER:
        oct_view_model_move_slab(model, 0,
                                 (action == OCT_ACTION_SLAB_THICKER ? 0.005 : -0.005) * times);
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
        oct_view_model_point_at(model, model->cursor_line +
                                           (action == OCT_ACTION_CURSOR_RIGHT ? times : -times));
        return true;
    default:
        return false;
    }
}

static bool apply_measure(struct oct_view_model *model, enum oct_view_action action)
{
    const struct oct_view_point on_profile = {
        middle_of_pixel(model->cursor_line),
        middle_of_pixel(model->lens.y * model->shown.header.depth)};
    switch (action) {
    case OCT_ACTION_CALIPERS:
        if (can_measure(model)) {
            model->measuring = true;
            put_caliper(model);
        }
        return true;
    case OCT_ACTION_REMOVE:
        if (model->held == OCT_HELD_MARK)
            model->has_mark = false;
        else
            oct_view_calipers_remove(&model->calipers);
        model->held = model->held == OCT_HELD_MARK ? OCT_HELD_TO : model->held;
        return true;
    case OCT_ACTION_HOLD:
        hold_next(model);
        return true;
    case OCT_ACTION_MARK: /* where there is none, in the middle of the profile's A-line */
        if (can_measure(model)) {
            if (!model->has_mark)
                oct_view_model_mark(model, on_profile);
            model->measuring = true;
            model->held = OCT_HELD_MARK;
        }
        return true;
    case OCT_ACTION_CLEAR:
        oct_view_calipers_clear(&model->calipers);
        model->has_mark = false;
        model->held = OCT_HELD_TO;
        return true;
    default:
        return false;
    }
}

static void apply_rest(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    switch (action) {
    case OCT_ACTION_AVERAGE:
        oct_view_average_toggle(model);
        break;
    case OCT_ACTION_AVERAGE_OF:
        oct_view_average_next_number(model);
        break;
    case OCT_ACTION_SHARPEN:
        oct_view_sharpened_toggle(model);
        break;
    case OCT_ACTION_FREEZE:
        oct_view_model_set_frozen(model, !model->frozen);
        break;
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
        step_back(model, action == OCT_ACTION_OLDER ? (int)times : -(int)times);
        break;
    case OCT_ACTION_ACKNOWLEDGE:
        oct_view_recorded_note(model);
        break;
    default:
        if (!oct_view_angiogram_apply(model, action))
            oct_view_overlay_apply(model, action);
    }
}

void oct_view_model_apply(struct oct_view_model *model, enum oct_view_action action, unsigned times)
{
    if (model->settings.operators && !oct_view_action_is_operators(action)) {
        oct_view_model_say(model, "not in the operator profile");
        return;
    }
    if (model->measuring && move_held(model, action, times))
        return;
    if (oct_view_playback_apply(model, action, times))
        return;
    if (!apply_contrast(&model->contrast, action, times) && !apply_turn(model, action) &&
        !apply_view(model, action, times) && !apply_measure(model, action) &&
        !oct_view_daemon_apply(model, action) && !oct_view_scan_apply(model, action))
        apply_rest(model, action, times);
    if (action >= OCT_ACTION_AUTO_CONTRAST && action <= OCT_ACTION_PALETTE)
        adapt(model, 1);
}

void oct_view_model_drag(struct oct_view_model *model, double across, double down)
{
    double range = model->contrast.published_hi - model->contrast.published_lo;
    /* Up widens the window, as the Up key does. */
    if (across != 0.0 || down != 0.0)
        oct_view_contrast_move(&model->contrast, across * range, -down * range);
}
