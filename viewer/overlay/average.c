/* octd's live average: which picture it is, and what is said of it. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Without averages for so long, none comes. */
#define LEAST_SILENCE_S 2.0
#define MOST_SILENCE_S 60.0

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->rank == 2 && header->dims[0] > 0 && header->n_labels == 0)
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT, "average: it is no picture of A-lines and depths");
}

void oct_view_average_read(struct oct_view_average *average, const struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;
    *average = (struct oct_view_average){
        .averaged = oct_image_header_number(h, "averaged", 0),
        .score = oct_image_header_number(h, "score", 0),
        .shift_lines = oct_image_header_number(h, "shift_px", 0),
        .shift_depth = oct_image_header_number(h, "shift_px", 1),
        .arrival_ns = image->arrival_ns,
    };
}

void oct_view_image_to_picture(struct oct_view_image *image, struct oct_view_picture *picture)
{
    const struct oct_image_header *h = &image->header;
    const struct oct_view_picture kept = *picture;
    *picture = (struct oct_view_picture){
        .header = {.frame_num = h->frame_num,
                   .sample_type = h->type,
                   .n_lines = h->dims[0],
                   .depth = h->dims[1],
                   .time_ns = h->time_ns,
                   .missing_lines = h->missing_lines,
                   .lo = h->lo,
                   .hi = h->hi,
                   .volume = h->volume,
                   .bscan = h->bscan},
        .pixels = image->values,
        .capacity_bytes = image->capacity_bytes,
        .arrival_ns = image->arrival_ns,
    };
    memcpy(picture->header.acquisition_id, h->acquisition_id,
           sizeof(picture->header.acquisition_id));
    image->values = kept.pixels;
    image->capacity_bytes = kept.capacity_bytes;
}

static bool is_off(const struct oct_view_model *model)
{
    return model->daemon.known && model->daemon.average_bscans <= 1;
}

bool oct_view_average_comes(const struct oct_view_model *model)
{
    const uint64_t came_ns = model->average_came_ns;
    const double rate_hz = oct_view_tally_rate_hz(&model->tally);
    /* Blocks of a slow scanner take their time. */
    const double block_s = rate_hz > 0 ? 2 * model->daemon.average_bscans / rate_hz : 0;
    const double silence_s = fmin(fmax(block_s, LEAST_SILENCE_S), MOST_SILENCE_S);
    return came_ns > 0 && !is_off(model) &&
           (model->now_ns < came_ns ||
            (double)(model->now_ns - came_ns) < silence_s * (double)OCT_NS_PER_S);
}

bool oct_view_average_left_out(const struct oct_view_average *average)
{
    return isfinite(average->score) && isnan(average->shift_lines);
}

/* ---- what the user does ---- */

unsigned oct_view_average_wished(const struct oct_view_model *model)
{
    unsigned n = model->settings.average_of;
    return n >= OCT_VIEW_LEAST_AVERAGE && n <= OCT_VIEW_MOST_AVERAGE ? n : OCT_VIEW_AVERAGE_OF;
}

/* A recording holds each B-scan: octd changes nothing of the average meanwhile. */
static bool may_set(struct oct_view_model *model)
{
    bool records = model->daemon.reachable && model->daemon.record.active;
    if (records)
        oct_view_model_say(model, "octd is recording: how many B-scans are averaged can be changed "
                                  "afterwards");
    return !records;
}

static void set(struct oct_view_model *model, unsigned n)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", n);
    oct_view_model_wish(model, OCT_WISH_AVERAGE, text);
}

void oct_view_average_toggle(struct oct_view_model *model)
{
    if (oct_view_scan_is_busy(model)) {
        oct_view_model_say(model, "octd is at work on another scan: in a moment again");
        return;
    }
    bool on = model->settings.average = !model->settings.average;
    model->average_came_ns = 0;
    const bool moves = oct_view_scan_average(model, on);
    oct_view_model_say(model, "%s",
                       !on     ? "each B-scan"
                       : moves ? "octd's average of B-scans at this place"
                               : "octd's average of B-scans");
    if (on && model->has_control && is_off(model) && may_set(model))
        set(model, oct_view_average_wished(model));
}

void oct_view_average_next_number(struct oct_view_model *model)
{
    static const unsigned numbers[] = {2, 4, 8, 16, 32};
    const unsigned n_numbers = sizeof(numbers) / sizeof(numbers[0]);
    const double now = is_off(model) ? 0 : model->daemon.average_bscans;
    unsigned i = 0;
    if (!model->has_control || !may_set(model)) {
        if (!model->has_control)
            oct_view_model_wish(model, OCT_WISH_NONE, "");
        return;
    }
    while (i < n_numbers && numbers[i] <= now)
        i++;
    /* Where none is shown, the first press shows the number of before. */
    model->settings.average_of = model->settings.average && now > 1
                                     ? numbers[i % n_numbers]
                                     : oct_view_average_wished(model);
    if (!model->settings.average)
        model->average_came_ns = 0;
    model->settings.average = true;
    set(model, oct_view_average_wished(model));
}

/* ---- words ---- */

bool oct_view_average_text(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const struct oct_view_average *a = &model->average;
    const struct oct_view_daemon *d = &model->daemon;
    const bool is_apart = oct_view_average_left_out(a);
    const bool is_asked =
        model->asked == OCT_WISH_AVERAGE || oct_view_wishes_find(&model->wishes, OCT_WISH_AVERAGE);
    char of[16] = "", score[32] = "";
    if (model->settings.average && !model->frozen && !model->playback.active &&
        !oct_view_average_comes(model)) {
        snprintf(text, n_bytes, "AVERAGE: %s",
                 !is_off(model)              ? "none comes"
                 : is_asked                  ? "octd is asked for it"
                 : model->settings.operators ? "off"
                                             : "off (octctl set average.bscans 16)");
        return true;
    }
    if (a->arrival_ns == 0) {
        snprintf(text, n_bytes, "one B-scan, not the average");
        return true;
    }
    if (d->known && d->average_bscans > 1)
        snprintf(of, sizeof(of), " of %.0f", d->average_bscans);
    if (isfinite(a->score) && !model->settings.operators)
        snprintf(score, sizeof(score), "  %.2f", a->score);
    snprintf(text, n_bytes, "AVERAGE%s (%.0f in it%s)%s", of,
             isfinite(a->averaged) ? a->averaged : 0, is_apart ? ", the newest left out" : "",
             score);
    return is_apart;
}

static void draw_average(struct oct_draw *draw, const struct oct_view_model *model)
{
    char text[64];
    if (!model->has_picture || (!model->settings.average && model->average.arrival_ns == 0))
        return;
    bool amiss = oct_view_average_text(model, text, sizeof(text));
    oct_draw_corner(draw, text, amiss ? RGB_WARN : RGB_PLAIN);
}

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    struct oct_view_average average;
    if (!model->settings.average)
        return;
    oct_view_average_read(&average, image);
    oct_view_image_to_picture(image, &model->spare);
    model->average_came_ns = average.arrival_ns;
    oct_view_model_offer_picture(model, &model->spare, &average);
}

static bool wanted(const struct oct_view_model *model)
{
    return model->settings.average;
}

const struct oct_view_overlay oct_view_overlay_average = {
    .topic = "average",
    .check = check,
    .keep = oct_view_archive_add_average,
    .wanted = wanted,
    .take = take,
    .draw = draw_average,
};
