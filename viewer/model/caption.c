#include "viewer/model/words.h"

#include "pipeline/base/json_text.h"
#include "pipeline/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the name ---- */

static bool is_plain_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

/* Returns the number of a character of `n` bytes that oct_utf8_character found. */
static uint32_t number_of(const char *text, size_t n)
{
    const unsigned char *b = (const unsigned char *)text;

    switch (n) {
    case 2:
        return (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu);
    case 3:
        return (b[0] & 0x0fu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
    case 4:
        return (b[0] & 0x07u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
    default:
        return b[0];
    }
}

/* Whether a character outside ASCII is seen in a name: no control, no space, nothing that turns the
 * direction of what follows, no private or unused number. */
static bool is_visible(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0xa0},        {0xad, 0xad},     {0x61c, 0x61c},     {0x1680, 0x1680},
                  {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},   {0x205f, 0x206f},
                  {0x3000, 0x3000}, {0xe000, 0xf8ff}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
                  {0xfff0, 0xffff}, {0xfdd0, 0xfdef}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff}};

    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return false;
    return true;
}

void oct_view_caption_name_add(char *name, size_t n_bytes, const char *text)
{
    size_t at = strlen(name), left = strlen(text), n;

    if (left == 0 || at + 2 >= n_bytes)
        return;
    name[at++] = '-';
    for (; left > 0; text += n, left -= n) {
        n = oct_utf8_character(text, left);
        bool stays = n == 1 ? is_plain_letter(*text) : n > 1 && is_visible(number_of(text, n));
        n = n == 0 ? 1 : n;
        if (at + (stays ? n : 1) >= n_bytes)
            break;
        if (stays)
            memcpy(name + at, text, n);
        else
            name[at] = '_';
        at += stays ? n : 1;
    }
    name[at] = '\0';
}

/* ---- the line ---- */

static void append(char *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *line, const char *format, ...)
{
    size_t n = strlen(line);
    va_list args;

    va_start(args, format);
    vsnprintf(line + n, OCT_VIEW_CAPTION_LINE_BYTES - n, format, args);
    va_end(args);
}

static const char *state_of(const struct oct_view_model *model)
{
    return oct_view_show_name(oct_view_show(model));
}

static const char *unit_of(const struct oct_view_model *model)
{
    const char *unit = oct_view_model_unit(model);
    return strcmp(unit, "counts\u00b2") == 0 ? "counts^2" : unit;
}

static void make_line(char *line, const struct oct_view_model *model, const char *eye,
                      const char *pseudonym)
{
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_scale scale = oct_view_model_scale(model);
    const struct oct_view_caliper_set *set = &model->calipers.shown;
    const struct oct_view_file *file = &model->playback.file;
    char text[256];

    line[0] = '\0';
    if (!model->has_picture) {
        append(line, "no picture");
        return;
    }
    if (model->playback.active)
        append(line, "B-scan %" PRIu32 " of %" PRIu32 " of %s", model->playback.bscan,
               file->n_bscans, file->name);
    else
        append(line, "B-scan %" PRIu32 " of volume %" PRIu64 ", acquisition %s", h->bscan,
               h->volume, h->acquisition_id);
    oct_view_playback_volume_text(file, text, sizeof(text));
    if (model->playback.active && text[0])
        append(line, ", %s", text);
    append(line, ", %s", state_of(model));
    if (eye[0])
        append(line, "; %s", eye);
    if (pseudonym[0])
        append(line, "; %s", pseudonym);
    if (oct_view_proportion_known(scale.lateral_um, scale.axial_um))
        append(line, "; %.4g x %.4g \u00b5m a pixel", scale.lateral_um, scale.axial_um);
    append(line, "; black %.4g, white %.4g %s, gamma %.3g", model->contrast.lo, model->contrast.hi,
           unit_of(model), model->contrast.gamma);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++) {
        const struct oct_view_caliper *c = &set->caliper[i];
        if (!c->is_set)
            continue;
        oct_view_distance_text(c->end[0], c->end[1], scale, text, sizeof(text));
        append(line, "; %u: %s", i + 1, text);
    }
}

/* ---- the JSON text ---- */

static void add_pair(struct oct_json_text *t, const char *key, double a, double b)
{
    oct_json_key(t, key);
    oct_json_raw(t, "[");
    oct_json_double(t, a);
    oct_json_raw(t, ",");
    oct_json_double(t, b);
    oct_json_raw(t, "]");
}

static void add_picture(struct oct_json_text *t, const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_contrast *c = &model->contrast;
    const struct oct_view_scale scale = oct_view_model_scale(model);
    static const char *const ranges[] = {"published", "auto", "manual"};

    if (model->playback.active) {
        oct_json_member_string(t, "file", model->playback.file.name);
        oct_json_member_u64(t, "bscan", model->playback.bscan);
    } else {
        oct_json_member_string(t, "acquisition", h->acquisition_id);
        oct_json_member_u64(t, "volume", h->volume);
        oct_json_member_u64(t, "bscan", h->bscan);
        oct_json_member_u64(t, "frame_num", h->frame_num);
    }
    oct_json_member_u64(t, "time_ns", h->time_ns);
    oct_json_member_u64(t, "n_lines", h->n_lines);
    oct_json_member_u64(t, "depth", h->depth);
    oct_json_member_u64(t, "missing_lines", h->missing_lines);
    if (model->average.arrival_ns > 0)
        oct_json_member_double(t, "averaged", model->average.averaged);
    oct_json_key(t, "spacing_um");
    oct_json_raw(t, "{");
    oct_json_member_double(t, "line", scale.lateral_um);
    oct_json_member_double(t, "depth", scale.axial_um);
    oct_json_member_double(t, "bscan", oct_view_model_slow_um(model));
    oct_json_raw(t, "}");
    oct_json_member_string(t, "unit", unit_of(model));
    add_pair(t, "published", h->lo, h->hi);
    oct_json_key(t, "contrast");
    oct_json_raw(t, "{");
    oct_json_member_string(t, "range", ranges[c->range]);
    oct_json_member_double(t, "black", c->lo);
    oct_json_member_double(t, "white", c->hi);
    oct_json_member_double(t, "gamma", c->gamma);
    oct_json_member_string(t, "palette", oct_view_palette_names[c->palette]);
    oct_json_raw(t, "}");
}

static void add_caliper(struct oct_json_text *t, unsigned number, const struct oct_view_caliper *c,
                        struct oct_view_scale scale)
{
    struct oct_view_point a = c->end[0], b = c->end[1];

    oct_json_separate(t);
    oct_json_raw(t, "{");
    oct_json_member_u64(t, "number", number);
    add_pair(t, "from", a.line, a.depth);
    add_pair(t, "to", b.line, b.depth);
    oct_json_member_double(t, "um", oct_view_distance_um(a, b, scale));
    oct_json_member_double(t, "across_um", fabs(b.line - a.line) * scale.lateral_um);
    oct_json_member_double(t, "deep_um", fabs(b.depth - a.depth) * scale.axial_um);
    oct_json_raw(t, "}");
}

static void add_measures(struct oct_json_text *t, const struct oct_view_model *model)
{
    oct_json_key(t, "calipers");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (model->calipers.shown.caliper[i].is_set)
            add_caliper(t, i + 1, &model->calipers.shown.caliper[i], oct_view_model_scale(model));
    oct_json_raw(t, "]");
    if (!model->has_mark)
        return;
    oct_json_key(t, "mark");
    oct_json_raw(t, "{");
    add_pair(t, "at", model->mark.line, model->mark.depth);
    oct_json_member_double(t, "value", oct_view_model_mark_value(model));
    oct_json_raw(t, "}");
}

void oct_view_caption_make(struct oct_view_caption *caption, const struct oct_view_model *model,
                           bool has_pseudonym, const char *shows)
{
    const struct oct_view_file *file = model->playback.active ? &model->playback.file : NULL;
    const char *eye = file ? file->eye : model->daemon.record.eye;
    const char *pseudonym = !has_pseudonym ? ""
                            : file         ? file->pseudonym
                                           : model->daemon.record.pseudonym;
    struct oct_json_text t;

    memset(caption, 0, sizeof(*caption));
    oct_view_caption_name_add(caption->name, sizeof(caption->name), eye);
    oct_view_caption_name_add(caption->name, sizeof(caption->name), pseudonym);
    make_line(caption->line, model, eye, pseudonym);
    oct_json_begin(&t, caption->json, sizeof(caption->json));
    oct_json_raw(&t, "{");
    oct_json_member_string(&t, "shows", shows);
    oct_json_member_string(&t, "state", state_of(model));
    oct_json_member_string(&t, "eye", eye);
    if (has_pseudonym)
        oct_json_member_string(&t, "pseudonym", pseudonym);
    if (model->has_picture) {
        add_picture(&t, model);
        add_measures(&t, model);
    }
    oct_json_raw(&t, "}");
    oct_json_end(&t);
}
