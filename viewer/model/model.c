#include "viewer/model/model.h"

#include "viewer/model/clock.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

void oct_view_model_adapt(struct oct_view_model *model, double pace)
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

void oct_view_model_offer_cells(struct oct_view_model *model, const struct oct_view_image *table)
{
    const struct oct_image_header *h = &table->header;
    const bool is_bscan = oct_image_header_number(h, "is_bscan", 0) > 0;

    if (!model->settings.cells || (is_bscan && !oct_view_overlay_takes(model, h)))
        return;
    oct_view_cells_set(&model->cells, table);
    if (is_bscan)
        oct_view_overlay_lead(model, OCT_OVERLAY_CELLS, h, table->arrival_ns);
}

bool oct_view_model_has_cells(const struct oct_view_model *model)
{
    const struct oct_view_cells *c = &model->cells;

    if (!model->settings.cells || !model->has_picture || c->width == 0)
        return false;
    if (c->is_bscan)
        return oct_view_overlay_is_drawn(model, c->acquisition_id, c->frame_num);
    return strcmp(c->acquisition_id, model->shown.header.acquisition_id) == 0 &&
           oct_view_cells_are_new(c, model->now_ns);
}

void oct_view_model_offer_layers(struct oct_view_model *model, const struct oct_view_image *image)
{
    if (!model->settings.layers || !oct_view_overlay_takes(model, &image->header))
        return;
    oct_view_layers_set(&model->layers, image);
    oct_view_overlay_lead(model, OCT_OVERLAY_LAYERS, &image->header, image->arrival_ns);
}

bool oct_view_model_has_layers(const struct oct_view_model *model)
{
    const struct oct_view_layers *l = &model->layers;
    return model->settings.layers && l->n_lines > 0 &&
           oct_view_overlay_is_drawn(model, l->acquisition_id, l->frame_num);
}

void oct_view_model_offer_rolloff(struct oct_view_model *model, const struct oct_view_image *table)
{
    if (!model->settings.rolloff || !oct_view_overlay_takes(model, &table->header))
        return;
    oct_view_rolloff_set(&model->rolloff, table);
    oct_view_overlay_lead(model, OCT_OVERLAY_ROLLOFF, &table->header, table->arrival_ns);
}

bool oct_view_model_has_rolloff(const struct oct_view_model *model)
{
    const struct oct_view_rolloff *r = &model->rolloff;
    return model->settings.rolloff &&
           oct_view_overlay_is_drawn(model, r->acquisition_id, r->frame_num);
}

void oct_view_model_thickness_text(const struct oct_view_model *model, double line_a, double line_b,
                                   char *text, size_t n_bytes)
{
    const double um = model->daemon.axial_um;
    const struct oct_view_layers *l = &model->layers;
    double px = NAN, lines, depth;

    if (oct_view_model_has_layers(model) && l->n_lines == model->shown.header.n_lines &&
        oct_view_overlay_belongs(model, l->acquisition_id, l->frame_num, &lines, &depth))
        px = oct_view_layers_thickness(l, line_a - lines, line_b - lines, NULL);
    if (isnan(px))
        snprintf(text, n_bytes, "%s", "");
    else if (isfinite(um))
        snprintf(text, n_bytes, "; ILM to RPE %.1f \u00b5m", px * um);
    else
        snprintf(text, n_bytes, "; ILM to RPE %.1f pixels", px);
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
void oct_view_model_step_back(struct oct_view_model *model, int by)
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

/* No image of the topic `slab` for this long: octd makes none any more. */
#define SLAB_LATE_NS (5 * OCT_NS_PER_S)

static bool slab_comes(const struct oct_view_model *model)
{
    return model->slab_came_ns > 0 && (model->now_ns < model->slab_came_ns ||
                                       model->now_ns - model->slab_came_ns < SLAB_LATE_NS);
}

static void follow_layers(struct oct_view_model *model, bool follows)
{
    if (model->enface_follows_layers != follows)
        oct_view_enface_forget(&model->enface);
    model->enface_follows_layers = follows;
}

void oct_view_model_offer_enface(struct oct_view_model *model, const struct oct_view_image *image)
{
    if (model->enface_follows_layers && slab_comes(model))
        return;
    follow_layers(model, false);
    oct_view_enface_set(&model->enface, image);
}

void oct_view_model_offer_slab(struct oct_view_model *model, const struct oct_view_image *image)
{
    model->slab_came_ns = image->arrival_ns;
    if (model->enface_follows_layers)
        oct_view_enface_set(&model->enface, image);
}

/* After the slab comes the picture that follows layers, if octd makes one, then the mean again. */
void oct_view_model_next_projection(struct oct_view_model *model)
{
    const bool is_last = model->enface_wishes.wanted.projection == OCT_N_PROJECTIONS - 1;

    if (!model->enface_follows_layers && slab_comes(model) &&
        (is_last || !oct_view_model_can_set_enface(model))) {
        follow_layers(model, true);
        return;
    }
    follow_layers(model, false);
    if (oct_view_model_can_set_enface(model))
        oct_view_enface_wishes_next(&model->enface_wishes);
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

void oct_view_model_next_fit(struct oct_view_model *model)
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
