/* What the viewer hears: pictures, spectra, en face pictures, averages and rows of the quality and
 * of cones of a stream (JSON header, 0x1e, values) and status replies of a daemon, through the
 * parsers into archive and model, and out as the window's words; and what its en face keys make of
 * a daemon's settings, and B, the freeze and the steps back of what is shown. */
#include "test/fuzz/fuzz.h"
#include "viewer/model/archive.h"
#include "viewer/model/daemon.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 16 };

struct viewer {
    struct oct_view_model model;
    struct oct_view_archive *archive;
    struct oct_view_picture picture;
    struct oct_view_spectrum spectrum;
    struct oct_view_image image;
    struct oct_view_tally tally;
    uint64_t now_ns;
};

static void hear_picture(struct viewer *v, struct fuzz_input *in)
{
    struct oct_picture_header header;
    struct oct_error err = {0};
    char text[OCT_PICTURE_HEADER_BYTES];
    double lo, hi;
    size_t n_json, n_image;
    char *json = fuzz_piece(in, false, &n_json), *image = fuzz_piece(in, false, &n_image);
    enum oct_err e = oct_picture_decode(&header, json, n_json, n_image, &err);
    if (!e)
        e = oct_view_picture_set(&v->picture, &header, image, n_image, &err);
    fuzz_must(e == OCT_OK || err.text[0]);
    if (!e) {
        fuzz_must(oct_view_picture_bytes(&header) == n_image);
        oct_view_picture_percentiles(&v->picture, 0.3, 0.998, &lo, &hi);
        oct_view_picture_value(&v->picture, header.n_lines - 1, header.depth - 1);
        fuzz_must(isnan(oct_view_picture_value(&v->picture, header.n_lines, 0)));
        if (oct_picture_encode(&header, text, sizeof(text)))
            fuzz_must(!oct_picture_decode(&header, text, strlen(text), n_image, &err));
        v->picture.arrival_ns = v->now_ns;
        oct_view_tally_add(&v->tally, &header, v->now_ns);
        oct_view_archive_add(v->archive, &v->picture);
        oct_view_model_offer(&v->model, &v->picture);
    } else {
        v->tally.n_bad++;
    }
    oct_view_model_report(&v->model, &v->tally, true);
    free(json);
    free(image);
}

static void hear_spectrum(struct viewer *v, struct fuzz_input *in)
{
    struct oct_error err = {0};
    size_t n_json, n_samples;
    char *json = fuzz_piece(in, false, &n_json), *samples = fuzz_piece(in, false, &n_samples);
    enum oct_err e = oct_view_spectrum_set(&v->spectrum, json, n_json, samples, n_samples, &err);
    fuzz_must(e == OCT_OK || err.text[0]);
    if (!e) {
        fuzz_must(v->spectrum.n_samples * sizeof(uint16_t) == n_samples);
        v->spectrum.arrival_ns = v->now_ns;
        oct_view_model_offer_spectrum(&v->model, &v->spectrum);
    }
    free(json);
    free(samples);
}

static void look_at_enface(const struct oct_view_enface *e)
{
    fuzz_must(e->n_rows <= OCT_VIEW_ENFACE_MOST && e->n_columns <= OCT_VIEW_ENFACE_MOST);
    fuzz_must(isfinite(e->lo) && isfinite(e->hi) && e->lo < e->hi);
    fuzz_must(e->n_rows == 0 || e->newest_row < e->n_rows);
    for (uint32_t row = 0; row < e->n_rows; row++) {
        fuzz_must(e->row_serial[row] <= e->serial);
        for (uint32_t c = 0; c < e->n_columns; c++)
            fuzz_must(!isinf(oct_view_enface_row(e, row)[c]));
    }
}

static void look_at_quality(const struct oct_view_quality *q, uint64_t now_ns)
{
    const struct oct_view_moment *m = oct_view_quality_moment(q, now_ns / OCT_VIEW_TIMELINE_BIN_NS);
    fuzz_must(isfinite(q->snr_db) && isfinite(q->sharpness) && isfinite(q->level_db));
    fuzz_must(!m || (!isinf(m->snr_db) && !isinf(m->sharpness)));
}

enum topic { ENFACE, QUALITY, AVERAGE, CONES, N_TOPICS };

static enum oct_err check(enum topic topic, const struct oct_image_header *header,
                          struct oct_error *err)
{
    static const struct oct_view_overlay *const overlays[N_TOPICS] = {
        [ENFACE] = &oct_view_overlay_enface,
        [AVERAGE] = &oct_view_overlay_average,
        [CONES] = &oct_view_overlay_cones,
    };
    return overlays[topic] ? overlays[topic]->check(header, err)
                           : oct_view_quality_check(header, err);
}

static void look_at_cones(const struct oct_view_cones *c)
{
    fuzz_must(c->known && memchr(c->acquisition_id, '\0', sizeof(c->acquisition_id)));
    fuzz_must(!c->has_ring || (c->spacing_um >= 1 && c->per_mm2 > 0 && c->strength <= 1));
}

/* It is shown at once, unless a picture is frozen. */
static void hear_average(struct viewer *v, size_t n_values)
{
    const struct oct_view_picture *shown = &v->model.shown;
    double lo, hi;
    const uint64_t serial = v->model.serial;
    oct_view_overlay_take(&v->model, &oct_view_overlay_average, &v->image);
    if (v->model.serial == serial)
        return;
    fuzz_must(v->model.average.arrival_ns > 0 && !isinf(v->model.average.score));
    fuzz_must(oct_view_picture_bytes(&shown->header) == n_values);
    oct_view_picture_percentiles(shown, 0.3, 0.998, &lo, &hi);
    oct_view_picture_value(shown, shown->header.n_lines - 1, shown->header.depth - 1);
}

static void take_image(struct viewer *v, enum topic topic, size_t n_values)
{
    if (topic == ENFACE) {
        oct_view_overlay_take(&v->model, &oct_view_overlay_enface, &v->image);
        look_at_enface(&v->model.enface);
    } else if (topic == QUALITY) {
        oct_view_archive_add_quality(v->archive, &v->image);
    } else if (topic == AVERAGE) {
        hear_average(v, n_values);
    } else {
        oct_view_overlay_take(&v->model, &oct_view_overlay_cones, &v->image);
    }
    const struct oct_view_cones *cones = oct_view_overlay_state(&v->model, &oct_view_overlay_cones);
    if (cones->known)
        look_at_cones(cones);
    oct_view_model_report(&v->model, &v->tally, true);
    look_at_quality(&v->model.quality, v->now_ns);
}

/* As the subscriber takes them: decoded, checked, copied. */
static void hear_image(struct viewer *v, struct fuzz_input *in, enum topic topic)
{
    struct oct_image_header header;
    struct oct_error err = {0};
    size_t n_json, n_values;
    char *json = fuzz_piece(in, false, &n_json), *values = fuzz_piece(in, false, &n_values);
    enum oct_err e = oct_image_header_decode(&header, json, n_json, n_values, &err);
    if (!e)
        e = check(topic, &header, &err);
    if (!e)
        e = oct_view_image_set(&v->image, &header, values, n_values, &err);
    fuzz_must(e == OCT_OK || err.text[0]);
    if (!e) {
        fuzz_must(oct_view_image_bytes(&header) == n_values);
        v->image.arrival_ns = v->now_ns;
        take_image(v, topic, n_values);
    }
    free(json);
    free(values);
}

/* A key, and perhaps the daemon's answer to what came of it. */
static void press(struct viewer *v, struct fuzz_input *in)
{
    static const enum oct_view_action actions[] = {
        OCT_ACTION_PROJECTION,   OCT_ACTION_SLAB_UP, OCT_ACTION_SLAB_DOWN, OCT_ACTION_SLAB_THINNER,
        OCT_ACTION_SLAB_THICKER, OCT_ACTION_AVERAGE, OCT_ACTION_FREEZE,    OCT_ACTION_OLDER};
    const struct oct_view_daemon daemon = v->model.daemon;
    char text[OCT_VIEW_LABEL_BYTES] = "";
    const enum oct_view_action action = actions[fuzz_below(in, 8)];
    oct_view_model_apply(&v->model, action, 1 + fuzz_below(in, 200));
    enum oct_view_wish wish = oct_view_model_take_wish(&v->model, text);
    fuzz_must(wish == OCT_WISH_NONE || text[0]);
    const struct oct_view_answer answer = {.wish = v->model.asked, .ok = fuzz_below(in, 4) > 0};
    if (fuzz_below(in, 2))
        oct_view_model_hear(&v->model, &daemon, &answer);
    const struct oct_view_enface_settings *s = &v->model.enface_wishes.wanted;
    fuzz_must(s->projection < OCT_N_PROJECTIONS);
    fuzz_must(!v->model.enface_wishes.known ||
              (s->slab.first >= 0 && s->slab.first < s->slab.last && s->slab.last <= 1));
}

static void hear_status(struct viewer *v, struct fuzz_input *in)
{
    struct oct_view_daemon daemon = {.known = false};
    const struct oct_view_answer answer = {.wish = OCT_WISH_NONE};
    struct oct_error err = {0};
    size_t n;
    char *json = fuzz_piece(in, false, &n);
    enum oct_err e = oct_view_daemon_read(&daemon, json, n, &err);
    fuzz_must(e == OCT_OK ? daemon.known : err.text[0] && !daemon.known);
    daemon.reachable = true;
    daemon.answer_ns = v->now_ns;
    oct_view_model_hear(&v->model, &daemon, &answer);
    fuzz_must(daemon.record.n_lost >= 0 && oct_view_letters_are(daemon.record.lost_text));
    fuzz_must(oct_view_letters_are(daemon.last_error) &&
              oct_view_letters_are(daemon.record.pseudonym));
    free(json);
}

static void say(struct viewer *v)
{
    struct oct_view_field fields[2 * OCT_VIEW_MOST_FIELDS];
    struct oct_view_phrase phrases[2];
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    char text[64];
    unsigned n = oct_view_fields(&v->model, fields);
    n += oct_view_details(&v->model, fields + n);
    for (unsigned i = 0; i < n; i++)
        fuzz_must(memchr(fields[i].phrase.text, '\0', sizeof(fields[i].phrase.text)) != NULL);
    fuzz_must(oct_view_alarms(&v->model, alarms) <= OCT_VIEW_MAX_ALARMS);
    fuzz_must(oct_view_notice(&v->model, phrases) <= 2);
    oct_view_recording(&v->model, phrases);
    oct_view_quality_text(&v->model, phrases);
    oct_view_enface_text(&v->model, phrases);
    oct_view_cones_text(&v->model, phrases);
    oct_view_average_text(&v->model, text, sizeof(text));
    fuzz_must(memchr(text, '\0', sizeof(text)) != NULL);
    oct_view_model_scale(&v->model);
    oct_view_model_proportion(&v->model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct viewer v;
    struct fuzz_input in = {data, size};
    v = (struct viewer){.now_ns = 1000000000};
    v.archive = oct_view_archive_create(1 << 20);
    fuzz_must(v.archive != NULL);
    oct_view_model_init(&v.model, "tcp://127.0.0.1:5702", true);
    v.model.archive = v.archive;
    for (int i = 0; in.left > 0 && i < MOST_MESSAGES; i++) {
        v.now_ns += 20000000;
        oct_view_model_tick(&v.model, v.now_ns);
        switch (fuzz_take(&in, 1)) {
        case 's':
            hear_spectrum(&v, &in);
            break;
        case 'e':
            hear_image(&v, &in, ENFACE);
            break;
        case 'q':
            hear_image(&v, &in, QUALITY);
            break;
        case 'a':
            hear_image(&v, &in, AVERAGE);
            break;
        case 'c':
            hear_image(&v, &in, CONES);
            break;
        case 'k':
            press(&v, &in);
            break;
        case 'd':
            hear_status(&v, &in);
            break;
        default:
            hear_picture(&v, &in);
        }
        say(&v);
    }
    oct_view_model_finish(&v.model);
    oct_view_archive_destroy(v.archive);
    oct_view_picture_finish(&v.picture);
    oct_view_spectrum_finish(&v.spectrum);
    oct_view_image_finish(&v.image);
    return 0;
}
