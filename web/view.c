#include "web/view.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/crc32c.h"
#include "viewer/model/buttons.h"
#include "viewer/model/words.h"
#include "web/pen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 64u
#define LISTS_BYTES (512u << 10)
#define STATE_BYTES (64u << 10)
#define SERIAL_BYTES 32u
#define STATE_NS (100 * OCT_NS_PER_MS)
#define WHOLE_NS (200 * OCT_NS_PER_MS)
#define PNG_FLAG 256u

static const struct {
    unsigned most_side;
    int quality;
} levels[OCT_WEB_N_LEVELS] = {{1536, 85}, {1024, 75}, {640, 60}, {400, 45}};

struct shown {
    uint32_t serial;
    uint64_t of;      /* the model's own serial */
    const void *what; /* and whose */
    uint32_t sum;     /* of the lists */
    char *lists;      /* JSON members; owned */
    size_t n;
    struct oct_web_message message[OCT_WEB_N_LEVELS];
};

struct oct_web_view {
    struct oct_view_model *model;
    const struct oct_view_model *octds;
    struct oct_web_encoder *encoder;
    struct oct_draw *pen;
    struct shown shown[OCT_WEB_N_KINDS];
    uint32_t newest; /* serial of a picture */
    struct oct_web_message whole, state;
    uint32_t state_sum;
    uint64_t state_due_ns, whole_due_ns;
};

struct oct_web_view *oct_web_view_create(struct oct_view_model *model,
                                         const struct oct_view_model *octds,
                                         struct oct_web_encoder *encoder)
{
    struct oct_web_view *view = calloc(1, sizeof(*view));
    bool good = view && (view->pen = oct_web_pen_create());
    for (unsigned i = 0; good && i < OCT_WEB_N_KINDS; i++)
        good = (view->shown[i].lists = malloc(LISTS_BYTES));
    if (!good) {
        oct_web_view_destroy(view);
        return NULL;
    }
    view->model = model;
    view->octds = octds;
    view->encoder = encoder;
    return view;
}

void oct_web_view_destroy(struct oct_web_view *view)
{
    if (!view)
        return;
    for (unsigned i = 0; i < OCT_WEB_N_KINDS; i++) {
        free(view->shown[i].lists);
        for (unsigned level = 0; level < OCT_WEB_N_LEVELS; level++)
            free(view->shown[i].message[level].memory);
    }
    free(view->whole.memory);
    free(view->state.memory);
    oct_web_pen_destroy(view->pen);
    free(view);
}

struct oct_view_model *oct_web_view_model(struct oct_web_view *view)
{
    return view->model;
}

uint32_t oct_web_view_serial(const struct oct_web_view *view, enum oct_web_kind kind)
{
    return view->shown[kind].serial;
}

uint32_t oct_web_view_state_serial(const struct oct_web_view *view)
{
    return view->state.n > 0 ? view->state.serial : 0;
}

static bool make_room(struct oct_web_message *m, size_t n)
{
    if (n <= m->room)
        return true;
    unsigned char *memory = realloc(m->memory, OCT_WEB_BEFORE + n);
    if (!memory)
        return false;
    m->memory = memory;
    m->bytes = memory + OCT_WEB_BEFORE;
    m->room = n;
    return true;
}

/* ---- what there is to show ---- */

static const struct oct_view_enface *from_above(const struct oct_view_model *model,
                                                enum oct_web_kind kind)
{
    const struct oct_view_playback *p = &model->playback;
    if (kind == OCT_WEB_ENFACE)
        return oct_view_model_enface(model);
    if (p->active)
        return oct_view_playback_has_map(model) ? &p->thickness.map[oct_view_playback_map(model)]
                                                : NULL;
    return oct_view_model_has_angiogram(model) ? &model->angiogram.enface : NULL;
}

static const struct oct_view_picture *beside(const struct oct_view_model *model,
                                             enum oct_web_kind kind)
{
    if (kind == OCT_WEB_BSCAN)
        return model->has_picture ? &model->shown : NULL;
    const struct oct_view_picture *slice = &model->playback.slice;
    return model->playback.active && slice->header.n_lines > 0 ? slice : NULL;
}

static void add_pair(struct oct_json_text *t, const char *key, double a, double b)
{
    oct_json_key(t, key);
    oct_json_raw(t, "[");
    oct_json_double(t, a);
    oct_json_separate(t);
    oct_json_double(t, b);
    oct_json_raw(t, "]");
}

static void add_title(struct oct_json_text *t, const struct oct_view_phrase *phrase)
{
    oct_json_member_string(t, "title", phrase->text);
    oct_json_member_u64(t, "tone", phrase->tone);
}

static void add_above(struct oct_web_view *view, struct oct_json_text *t, enum oct_web_kind kind,
                      const struct oct_view_enface *e)
{
    const struct oct_view_model *model = view->model;
    struct oct_view_phrase lines[2] = {{.text = ""}, {.text = ""}};
    if (kind == OCT_WEB_ENFACE)
        oct_view_enface_text(model, &lines[0]);
    else if (model->playback.active)
        oct_view_thickness_text(model, &lines[0]);
    else
        oct_view_angiogram_text(model, lines);
    add_title(t, &lines[0]);
    oct_json_member_string(t, "more", lines[1].text);
    oct_json_member_string(t, "unit", e->unit);
    add_pair(t, "um", oct_view_model_scale(model).lateral_um, oct_view_model_slow_um(model));
    if (kind == OCT_WEB_ENFACE)
        oct_web_pen_enface(view->pen, model, t);
}

static void add_beside(struct oct_web_view *view, struct oct_json_text *t, enum oct_web_kind kind)
{
    const struct oct_view_model *model = view->model;
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_scale scale = oct_view_model_scale(model);
    oct_json_member_string(t, "unit", oct_view_model_unit(model));
    if (kind == OCT_WEB_SLICE) {
        oct_json_member_string(t, "title", "across the B-scans");
        add_pair(t, "um", oct_view_model_slow_um(model), scale.axial_um);
        return;
    }
    add_pair(t, "um", scale.lateral_um, scale.axial_um);
    add_pair(t, "grey", h->lo, h->hi);
    oct_json_member_u64(t, "volume", h->volume);
    oct_json_member_u64(t, "bscan", h->bscan);
    oct_web_pen_bscan(view->pen, model, t);
}

/* Notes another serial where the picture, or what is drawn over it, is another. */
static void look(struct oct_web_view *view, enum oct_web_kind kind)
{
    const struct oct_view_model *model = view->model;
    const bool is_above = kind == OCT_WEB_ENFACE || kind == OCT_WEB_SECOND;
    const struct oct_view_enface *e = is_above ? from_above(model, kind) : NULL;
    const struct oct_view_picture *p = is_above ? NULL : beside(model, kind);
    const void *what = is_above ? (const void *)e : (const void *)p;
    const uint64_t of = e                       ? e->serial
                        : kind == OCT_WEB_SLICE ? model->playback.slice_serial
                                                : model->serial + (model->flow.serial << 32);
    struct shown *s = &view->shown[kind];
    struct oct_json_text t;
    if (!what || (e && e->n_rows * e->n_columns == 0)) {
        s->serial = 0;
        return;
    }
    oct_json_begin(&t, s->lists, LISTS_BYTES);
    oct_json_raw(&t, "{");
    if (is_above)
        add_above(view, &t, kind, e);
    else
        add_beside(view, &t, kind);
    oct_json_raw(&t, "}");
    s->n = oct_json_end(&t);
    if (s->n == 0) /* they have no room: the picture comes without */
        s->n = (size_t)snprintf(s->lists, LISTS_BYTES, "{}");
    const uint32_t sum = oct_crc32c(s->lists, s->n);
    if (s->serial == 0 || s->of != of || s->what != what || s->sum != sum)
        s->serial = ++view->newest ? view->newest : ++view->newest;
    s->of = of;
    s->what = what;
    s->sum = sum;
}

/* ---- pictures ---- */

static void put(unsigned char *at, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static void put_double(unsigned char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put(at, bits, 8);
}

/* Header, lists, and the image that `level` asks for; OCT_WEB_N_LEVELS: PNG. */
static bool compose(struct oct_web_view *view, enum oct_web_kind kind, unsigned level,
                    const struct oct_web_pixels *pixels, double lo, double hi,
                    struct oct_web_message *m)
{
    static const unsigned char magic[4] = {'O', 'C', 'T', 'P'};
    const struct shown *s = &view->shown[kind];
    const struct oct_view_picture *p = beside(view->model, kind);
    const struct oct_view_enface *e = from_above(view->model, kind);
    const bool is_above = kind == OCT_WEB_ENFACE || kind == OCT_WEB_SECOND;
    const bool is_png = level == OCT_WEB_N_LEVELS;
    const size_t before = HEADER_BYTES + s->n, most = oct_web_encode_most(pixels);
    m->n = 0;
    m->serial = 0;
    if (!make_room(m, before + most))
        return false;
    unsigned char *b = m->bytes;
    const size_t n = is_png ? oct_web_encode_png(pixels, b + before, most)
                            : oct_web_encode_jpeg(view->encoder, pixels, levels[level].quality,
                                                  b + before, most);
    memcpy(b, magic, sizeof(magic));
    put(b + 4, 1, 2);
    put(b + 6, kind, 2);
    put(b + 8, s->serial, 4);
    put(b + 12, pixels->form + (is_png ? PNG_FLAG : 0), 4);
    put(b + 16, pixels->width, 4);
    put(b + 20, pixels->height, 4);
    put(b + 24, is_above ? e->n_lines : p->header.n_lines, 4);
    put(b + 28, is_above ? e->n_bscans : p->header.depth, 4);
    put_double(b + 32, lo);
    put_double(b + 40, hi);
    put(b + 48, is_above ? 0 : p->header.frame_num, 8);
    put(b + 56, s->n, 4);
    put(b + 60, n, 4);
    memcpy(b + HEADER_BYTES, s->lists, s->n);
    m->n = before + n;
    m->serial = n ? s->serial : 0;
    return n > 0;
}

const struct oct_web_message *oct_web_view_picture(struct oct_web_view *view,
                                                   enum oct_web_kind kind, unsigned level)
{
    const struct oct_view_model *model = view->model;
    struct shown *s = &view->shown[kind];
    struct oct_web_message *m = &s->message[level];
    struct oct_web_pixels pixels;
    if (s->serial == 0)
        return NULL;
    if (m->serial == s->serial)
        return m;
    const unsigned most_side = levels[level].most_side;
    const struct oct_view_enface *e = from_above(model, kind);
    if (kind == OCT_WEB_ENFACE || kind == OCT_WEB_SECOND) {
        return oct_web_pixels_of_enface(view->encoder, e, most_side, &pixels) &&
                       compose(view, kind, level, &pixels, e->lo, e->hi, m)
                   ? m
                   : NULL;
    }
    const struct oct_view_picture *p = beside(model, kind);
    const bool tints = kind == OCT_WEB_BSCAN && oct_view_model_has_flow(model);
    return oct_web_pixels_of_bscan(view->encoder, model, p, most_side, tints, &pixels) &&
                   compose(view, kind, level, &pixels, model->shown.header.lo,
                           model->shown.header.hi, m)
               ? m
               : NULL;
}

bool oct_web_view_has_whole(const struct oct_web_view *view, uint32_t since, uint64_t now_ns)
{
    const uint32_t serial = view->whole.serial;
    if (view->shown[OCT_WEB_BSCAN].serial == 0)
        return false;
    return now_ns >= view->whole_due_ns || (serial && serial - since < UINT32_MAX / 2);
}

const struct oct_web_message *oct_web_view_whole(struct oct_web_view *view, uint64_t now_ns)
{
    struct oct_web_message *m = &view->whole;
    struct oct_web_pixels pixels;
    double lo, hi;
    if (now_ns < view->whole_due_ns || m->serial == view->shown[OCT_WEB_BSCAN].serial)
        return m->serial ? m : NULL;
    const bool good = oct_web_pixels_whole(view->encoder, &view->model->shown, &lo, &hi, &pixels) &&
                      compose(view, OCT_WEB_BSCAN, OCT_WEB_N_LEVELS, &pixels, lo, hi, m);
    const uint64_t took_ns = oct_clock_ns() - now_ns;
    view->whole_due_ns = now_ns + (10 * took_ns > WHOLE_NS ? 10 * took_ns : WHOLE_NS);
    return good ? m : NULL;
}

/* ---- who may do what ---- */

enum oct_web_right oct_web_right_of(bool plays, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_START:
    case OCT_ACTION_RECORD:
    case OCT_ACTION_VOLUMES:
    case OCT_ACTION_SAVE_LAST:
    case OCT_ACTION_ACKNOWLEDGE:
    case OCT_ACTION_AVERAGE:
    case OCT_ACTION_AVERAGE_OF:
    case OCT_ACTION_FLOW:
    case OCT_ACTION_SUPERFICIAL:
    case OCT_ACTION_DEEP:
    case OCT_ACTION_AVASCULAR:
    case OCT_ACTION_CHORIOCAPILLARIS:
    case OCT_ACTION_CELLS:
    case OCT_ACTION_ROLLOFF:
    case OCT_ACTION_PROJECTION:
    case OCT_ACTION_GUIDE:
    case OCT_ACTION_NEXT_PATIENT:
    case OCT_ACTION_LEAVE: /* takes a question away */
        return plays ? OCT_WEB_RIGHT_NONE : OCT_WEB_RIGHT_OPERATE;
    case OCT_ACTION_KEEP:
    case OCT_ACTION_REPEAT:
        return plays ? OCT_WEB_RIGHT_OPERATE : OCT_WEB_RIGHT_NONE;
    case OCT_ACTION_EYE:
    case OCT_ACTION_RIGHT_EYE:
    case OCT_ACTION_LEFT_EYE:
    case OCT_ACTION_PSEUDONYM:
        return OCT_WEB_RIGHT_OPERATE;
    case OCT_ACTION_LAYERS:
        return plays ? OCT_WEB_RIGHT_ALL : OCT_WEB_RIGHT_OPERATE;
    case OCT_ACTION_FREEZE:
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
    case OCT_ACTION_CURSOR_LEFT:
    case OCT_ACTION_CURSOR_RIGHT:
        return plays ? OCT_WEB_RIGHT_ALL : OCT_WEB_RIGHT_NONE;
    default:
        return OCT_WEB_RIGHT_NONE;
    }
}

/* ---- the state ---- */

static void add_phrase(struct oct_json_text *t, const char *key,
                       const struct oct_view_phrase *phrase)
{
    if (key)
        oct_json_key(t, key);
    else
        oct_json_separate(t);
    oct_json_raw(t, "{");
    oct_json_member_string(t, "text", phrase->text);
    oct_json_member_u64(t, "tone", phrase->tone);
    oct_json_raw(t, "}");
}

static void add_bool(struct oct_json_text *t, const char *key, bool value)
{
    oct_json_key(t, key);
    oct_json_raw(t, value ? "true" : "false");
}

/* As the strip at octview's top says it. */
static void add_recording(struct oct_json_text *t, const struct oct_view_model *model)
{
    struct oct_view_phrase recording = {.tone = OCT_TONE_WARN};
    const struct oct_view_daemon *d = &model->daemon;
    oct_view_patient_question(model, recording.text, sizeof(recording.text));
    add_bool(t, "asks", recording.text[0] != '\0');
    if (!recording.text[0] && (d->record.active || !oct_view_save_last_text(model, &recording)))
        oct_view_recording(model, &recording);
    add_phrase(t, "recording", &recording);
    add_bool(t, "records", d->reachable && d->record.active && !oct_view_waits_to_record(model));
}

static void add_alarms(struct oct_json_text *t, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    struct oct_view_phrase quality;
    const unsigned n = oct_view_alarms(model, alarms);
    oct_json_key(t, "alarms");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < n; i++) {
        oct_json_separate(t);
        oct_json_raw(t, "[");
        add_phrase(t, NULL, &alarms[i].what);
        add_phrase(t, NULL, &alarms[i].remedy);
        oct_json_raw(t, "]");
    }
    oct_json_raw(t, "]");
    oct_view_quality_text(model, &quality);
    add_phrase(t, "quality", &quality);
}

static void add_notice(struct oct_json_text *t, const struct oct_view_model *model)
{
    struct oct_view_phrase lines[2];
    struct oct_view_veil veil;
    const unsigned n = oct_view_notice(model, lines);
    oct_json_key(t, "notice");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < n; i++)
        add_phrase(t, NULL, &lines[i]);
    oct_json_raw(t, "]");
    if (oct_view_show_veil(model, &veil)) {
        oct_json_key(t, "veil");
        oct_json_raw(t, "{");
        oct_json_member_string(t, "words", veil.words);
        oct_json_member_string(t, "more", veil.more);
        oct_json_member_u64(t, "tone", veil.tone);
        add_bool(t, "covers", veil.covers);
        oct_json_raw(t, "}");
    }
    oct_json_member_string(t, "message", model->message);
}

/* The first key of an action. */
static void key_of(enum oct_view_action action, char *key, size_t n_bytes)
{
    key[0] = '\0';
    for (size_t i = 0; i < oct_view_n_keys; i++)
        if (oct_view_keys[i].action == action) {
            const char *keys = oct_view_keys[i].keys;
            const size_t n = strcspn(keys, " ");
            snprintf(key, n_bytes, "%.*s", (int)n, keys);
            return;
        }
}

/* Those of octview's buttons that concern octd or the recording. */
static void add_buttons(struct oct_json_text *t, const struct oct_view_model *model)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    const unsigned n = oct_view_buttons(model, buttons);
    char key[32];
    oct_json_key(t, "buttons");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < n; i++) {
        const struct oct_view_button *b = &buttons[i];
        const enum oct_web_right right = oct_web_right_of(model->playback.active, b->action);
        if (right == OCT_WEB_RIGHT_NONE)
            continue;
        key_of(b->action, key, sizeof(key));
        oct_json_separate(t);
        oct_json_raw(t, "{");
        oct_json_member_string(t, "key", key);
        oct_json_member_string(t, "label", b->label);
        oct_json_member_u64(t, "look", b->look);
        oct_json_member_u64(t, "row", b->row);
        add_bool(t, "all", right == OCT_WEB_RIGHT_ALL);
        oct_json_raw(t, "}");
    }
    oct_json_raw(t, "]");
    oct_json_member_string(t, "eye", oct_view_patient_eye(model));
    oct_json_member_string(t, "pseudonym", oct_view_patient_pseudonym(model));
}

static void add_numbers(struct oct_json_text *t, const struct oct_view_model *model)
{
    struct oct_view_field fields[OCT_VIEW_MOST_FIELDS];
    for (int details = 0; details < 2; details++) {
        const unsigned n =
            details ? oct_view_details(model, fields) : oct_view_fields(model, fields);
        oct_json_key(t, details ? "details" : "fields");
        oct_json_raw(t, "[");
        for (unsigned i = 0; i < n; i++)
            if (fields[i].phrase.text[0])
                add_phrase(t, NULL, &fields[i].phrase);
        oct_json_raw(t, "]");
    }
}

static void add_playback(struct oct_json_text *t, const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    char text[160];
    if (!p->active)
        return;
    oct_view_playback_text(model, text, sizeof(text));
    oct_json_key(t, "playback");
    oct_json_raw(t, "{");
    oct_json_member_string(t, "text", text);
    oct_json_member_string(t, "name", p->file.name);
    oct_view_playback_volume_text(&p->file, text, sizeof(text));
    oct_json_member_string(t, "volume", text);
    oct_json_member_u64(t, "n", p->file.n_bscans);
    oct_json_member_u64(t, "at", p->wanted);
    oct_json_member_u64(t, "line", p->slice_line);
    add_bool(t, "plays", p->plays);
    oct_json_raw(t, "}");
}

/* All but its serial, which comes last. */
static bool write_state(struct oct_web_view *view)
{
    const struct oct_view_model *model = view->model;
    struct oct_web_message *m = &view->state;
    struct oct_json_text t;
    if (!make_room(m, STATE_BYTES + SERIAL_BYTES))
        return false;
    oct_json_begin(&t, (char *)m->bytes, STATE_BYTES);
    oct_json_raw(&t, "{");
    oct_json_member_u64(&t, "situation", oct_view_situation(model));
    oct_json_member_u64(&t, "show", oct_view_show(model));
    add_bool(&t, "log", model->contrast.log);
    add_recording(&t, view->octds);
    add_alarms(&t, view->octds);
    add_notice(&t, model);
    add_buttons(&t, model);
    add_numbers(&t, model);
    add_playback(&t, model);
    oct_json_key(&t, "has"); /* by kind: there is such a picture */
    oct_json_raw(&t, "[");
    for (unsigned kind = 0; kind < OCT_WEB_N_KINDS; kind++) {
        oct_json_separate(&t);
        oct_json_raw(&t, view->shown[kind].serial ? "true" : "false");
    }
    oct_json_raw(&t, "]");
    m->n = oct_json_end(&t);
    return m->n > 0;
}

const struct oct_web_message *oct_web_view_state(struct oct_web_view *view)
{
    return oct_web_view_state_serial(view) ? &view->state : NULL;
}

void oct_web_view_refresh(struct oct_web_view *view)
{
    const uint64_t now_ns = view->model->now_ns;
    for (unsigned kind = 0; kind < OCT_WEB_N_KINDS; kind++)
        look(view, (enum oct_web_kind)kind);
    if (now_ns < view->state_due_ns)
        return;
    view->state_due_ns = now_ns + STATE_NS;
    if (!write_state(view))
        return;
    const uint32_t sum = oct_crc32c(view->state.bytes, view->state.n);
    if (view->state.serial == 0 || sum != view->state_sum)
        view->state.serial++;
    view->state_sum = sum;
    view->state.n += (size_t)snprintf((char *)view->state.bytes + view->state.n, SERIAL_BYTES,
                                      ",\"n\":%" PRIu32 "}", view->state.serial);
}
