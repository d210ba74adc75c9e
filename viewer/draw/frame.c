/* What stands around the pictures: header, alarms, buttons, status line, help; and the light. */
#include "viewer/draw/canvas.h"
#include "viewer/model/buttons.h"
#include "viewer/model/words.h"

#include <string.h>

/* ---- the strip at the top: whether octd records ---- */

/* What a recording waits for stands where the recording will be told, and there is told what became
 * of the last seconds while none is under way. */
void oct_draw_header(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect bar = draw->layout.header, part = draw->layout.recording;
    struct oct_view_phrase recording = {.text = ""};
    int margin = draw->layout.margin, lamp = draw->layout.large_px * 3 / 4;
    bool on = model->daemon.reachable && model->daemon.record.active &&
              !oct_view_waits_to_record(model); /* red is for what is being recorded */
    oct_view_patient_question(model, recording.text, sizeof(recording.text));
    recording.tone = OCT_TONE_WARN;
    const bool is_export = !recording.text[0] && !model->daemon.record.active &&
                           oct_view_export_text(model, &recording);
    if (!recording.text[0] &&
        (model->daemon.record.active || !oct_view_save_last_text(model, &recording)))
        oct_view_recording(model, &recording);
    oct_draw_fill(draw, bar, on ? RGB_RECORD : RGB_BAR, 255);
    uint32_t rgb = on ? 0xffffffu : oct_draw_tone(recording.tone);
    oct_draw_box(draw, part.x + margin, part.y + (part.h - lamp) / 2, lamp, lamp, rgb);
    int left = part.x + 2 * margin + lamp, room = part.x + part.w - left - 2 * margin;
    /* Long words, such as a reason, are smaller before they are cut. */
    enum oct_text_size size = oct_draw_text_width(draw, OCT_TEXT_LARGE, recording.text) <= room
                                  ? OCT_TEXT_LARGE
                                  : OCT_TEXT_NORMAL;
    if (is_export)
        oct_draw_leave_out_clauses(draw, size, recording.text, room);
    oct_draw_text_fit(draw, size, recording.text, sizeof(recording.text), room,
                      OCT_DRAW_CUT_MIDDLE);
    oct_draw_text(draw, size, left, part.y + (part.h - oct_draw_line_height(draw, size)) / 2,
                  recording.text, rgb);
}

/* ---- bands: alarms, the notice of an empty window, the message ---- */

struct band {
    struct oct_view_rect r;
    int y; /* of the next line */
};

/* Of a large line and a normal one. */
static int band_height(const struct oct_draw *draw)
{
    return draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_LARGE) +
           oct_draw_line_height(draw, OCT_TEXT_NORMAL);
}

static struct band open_band(struct oct_draw *draw, struct oct_view_rect r, enum oct_view_tone tone)
{
    oct_draw_fill(draw, r, RGB_BAR, 255);
    oct_draw_box(draw, r.x, r.y, draw->layout.margin, r.h, oct_draw_tone(tone));
    return (struct band){r, r.y + draw->layout.margin / 4};
}

void oct_draw_leave_out_clauses(struct oct_draw *draw, enum oct_text_size size, char *text,
                                int room)
{
    static const char *const ends[] = {". ", "; ", ", ", " ("};
    while (oct_draw_text_width(draw, size, text) > room) {
        char *last = NULL;
        for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
            for (char *at = text; (at = strstr(at, ends[i])); at++)
                last = at > last ? at : last;
        if (!last || last == text)
            return;
        *last = '\0';
    }
}

static void add_line(struct oct_draw *draw, struct band *band, enum oct_text_size size,
                     struct oct_view_phrase *phrase)
{
    int margin = draw->layout.margin, room = band->r.w - 3 * margin;
    /* What does not fit in large letters stands in normal ones, and loses its middle if it must: an
     * error begins with a path and ends with the reason. */
    if (oct_draw_text_width(draw, size, phrase->text) > room)
        size = OCT_TEXT_NORMAL;
    int w = oct_draw_text_fit(draw, size, phrase->text, sizeof(phrase->text), room,
                              OCT_DRAW_CUT_MIDDLE);
    int x = band->r.x + (band->r.w - w) / 2;
    x = x < band->r.x + 2 * margin ? band->r.x + 2 * margin : x;
    oct_draw_text(draw, size, x, band->y, phrase->text, oct_draw_tone(phrase->tone));
    band->y += oct_draw_line_height(draw, size);
}

static void draw_notice(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_phrase lines[2];
    struct oct_view_rect r = draw->layout.bscan;
    int height = band_height(draw);
    if (oct_view_notice(model, lines) == 0)
        return;
    struct band band = open_band(
        draw, (struct oct_view_rect){r.x, r.y + (r.h - height) / 2, r.w, height}, lines[0].tone);
    add_line(draw, &band, OCT_TEXT_LARGE, &lines[0]);
    add_line(draw, &band, OCT_TEXT_NORMAL, &lines[1]);
}

/* The strip of alarms is always there, so that the picture never changes its size. */
int oct_draw_banner_height(struct oct_draw *draw)
{
    return 2 * oct_draw_line_height(draw, OCT_TEXT_NORMAL) + draw->layout.margin / 2;
}

/* Draws one alarm, several in turn, the worst first; the quality where there is none. */
void oct_draw_banner(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    struct oct_view_alarm *alarm = &alarms[0];
    const struct oct_view_rect r = draw->layout.banner;
    unsigned which = 0;
    const unsigned n = oct_view_alarms_in_turn(model, alarms, &which);
    if (r.h > 0 && n == 0) {
        struct band band = {r, r.y + (r.h - oct_draw_line_height(draw, OCT_TEXT_NORMAL)) / 2};
        oct_view_calm_text(model, &alarm->what);
        oct_draw_fill(draw, r, RGB_BAR, 255);
        add_line(draw, &band, OCT_TEXT_NORMAL, &alarm->what);
    } else if (r.h > 0) {
        alarm = &alarms[which];
        struct band band = open_band(draw, r, alarm->what.tone);
        char more[32];
        alarm->remedy.tone = OCT_TONE_PLAIN;
        if (n > 1) { /* before the words, of which the last may be left out */
            SDL_snprintf(more, sizeof(more), "%u of %u: ", which + 1, n);
            SDL_memmove(alarm->what.text + SDL_strlen(more), alarm->what.text,
                        sizeof(alarm->what.text) - SDL_strlen(more));
            SDL_memcpy(alarm->what.text, more, SDL_strlen(more));
            alarm->what.text[sizeof(alarm->what.text) - 1] = '\0';
        }
        oct_draw_leave_out_clauses(draw, OCT_TEXT_NORMAL, alarm->what.text,
                                   r.w - 3 * draw->layout.margin);
        add_line(draw, &band, OCT_TEXT_NORMAL, &alarm->what);
        oct_draw_leave_out_clauses(draw, OCT_TEXT_NORMAL, alarm->remedy.text,
                                   r.w - 3 * draw->layout.margin);
        add_line(draw, &band, OCT_TEXT_NORMAL, &alarm->remedy);
    }
    draw_notice(draw, model);
}

/* All words of the alarm that the pointer rests on, below it. */
void oct_draw_banner_tip(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), margin = draw->layout.margin;
    const struct oct_view_rect banner = draw->layout.banner;
    unsigned which = 0;
    if (!model->points_at_banner || oct_view_alarms_in_turn(model, alarms, &which) == 0)
        return;
    const char *const texts[2] = {alarms[which].what.text, alarms[which].remedy.text};
    char lines[12][OCT_VIEW_TEXT_BYTES];
    const unsigned n_letters =
        (unsigned)((banner.w - 2 * margin) * 100 / oct_draw_letters_width(draw, 100));
    unsigned n = 0;
    for (unsigned i = 0; i < 2; i++)
        n += oct_view_wrap(texts[i], n_letters, lines + n,
                           (unsigned)(sizeof(lines) / sizeof(lines[0])) - n);
    const struct oct_view_rect r = {banner.x, banner.y + banner.h, banner.w,
                                    (int)n * line + 2 * margin};
    oct_draw_fill(draw, r, RGB_BAR, 255);
    oct_draw_frame_of(draw, r, RGB_DIM);
    for (unsigned i = 0; i < n; i++)
        oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + margin, r.y + margin + (int)i * line, lines[i],
                      RGB_PLAIN);
}

/* Draws the message over the timeline, which alone can do without its place for a while: no words
 * stand over a picture. */
void oct_draw_message(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_phrase line = {.tone = OCT_TONE_PLAIN};
    struct oct_view_rect r = draw->layout.timeline;
    int height = draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    if (!model->message[0])
        return;
    SDL_strlcpy(line.text, model->message, sizeof(line.text));
    struct band band = open_band(
        draw, (struct oct_view_rect){r.x, r.y + (r.h - height) / 2, r.w, height}, OCT_TONE_GOOD);
    add_line(draw, &band, OCT_TEXT_NORMAL, &line);
}

/* ---- buttons ---- */

static int edge_of(const struct oct_draw *draw)
{
    return draw->layout.margin / 2 + 1;
}

static int middle_of(struct oct_draw *draw, struct oct_view_rect r, enum oct_text_size size)
{
    return r.y + (r.h - oct_draw_line_height(draw, size)) / 2;
}

/* A field shows the end of what is typed; what the first letter will replace is marked. */
static void draw_field(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b,
                       const struct oct_view_model *model)
{
    const int edge = edge_of(draw), room = r.w - 2 * edge;
    const bool typing = model->typing, marked = typing && model->patient.selected;
    const bool is_empty = !typing && !oct_view_patient_pseudonym(model)[0];
    enum oct_text_size size = oct_draw_text_width(draw, OCT_TEXT_LARGE, b->label) <= room
                                  ? OCT_TEXT_LARGE
                                  : OCT_TEXT_NORMAL;
    if (!typing)
        oct_draw_leave_out_clauses(draw, size, b->label, room);
    int w = oct_draw_text_fit(draw, size, b->label, sizeof(b->label), room,
                              typing ? OCT_DRAW_CUT_BEGINNING : OCT_DRAW_CUT_END);
    int x = r.x + edge, y = middle_of(draw, r, size), h = oct_draw_line_height(draw, size);
    oct_draw_fill(draw, r, RGB_AREA, 255);
    oct_draw_frame_of(draw, r, typing ? RGB_GOOD : RGB_DIM);
    if (marked)
        oct_draw_box(draw, x, y, w, h, RGB_GOOD);
    oct_draw_text(draw, size, x, y, b->label, marked ? RGB_GROUND : is_empty ? RGB_DIM : RGB_PLAIN);
}

/* Breaks a label in two at the space that leaves the shorter longest line; *second: what follows
 * it, "" where there is no space. */
static void break_label(char *label, char **second)
{
    const size_t n = strlen(label);
    size_t at = 0, least = n;
    for (size_t i = 1; i < n; i++) {
        const size_t longest = i > n - i - 1 ? i : n - i - 1;
        if (label[i] == ' ' && longest < least) {
            least = longest;
            at = i;
        }
    }
    *second = label + (at ? at + 1 : n);
    if (at)
        label[at] = '\0';
}

/* Whether a label has room, in one line or two. */
static bool label_fits(struct oct_draw *draw, const char *label, int room)
{
    char lines[sizeof((struct oct_view_button){0}.label)], *second;
    if (oct_draw_text_width(draw, OCT_TEXT_NORMAL, label) <= room)
        return true;
    SDL_strlcpy(lines, label, sizeof(lines));
    break_label(lines, &second);
    return oct_draw_text_width(draw, OCT_TEXT_NORMAL, lines) <= room &&
           oct_draw_text_width(draw, OCT_TEXT_NORMAL, second) <= room;
}

/* Letters have one size in all states. */
static void draw_button(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b)
{
    static const uint32_t ground[] = {RGB_BUTTON, RGB_GOOD, RGB_RECORD, RGB_BAR};
    static const uint32_t ink[] = {RGB_PLAIN, RGB_GROUND, 0xffffffu, RGB_DIM};
    const int room = r.w - 4, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    char *text[2] = {b->label, NULL};
    if (!label_fits(draw, b->label, room))
        memcpy(b->label, b->brief, sizeof(b->brief));
    if (oct_draw_text_width(draw, OCT_TEXT_NORMAL, b->label) > room)
        break_label(b->label, &text[1]);
    const int n = text[1] && *text[1] ? 2 : 1;
    oct_draw_fill(draw, r, ground[b->look], 255);
    for (int i = 0; i < n; i++) {
        const int w = oct_draw_text_fit(draw, OCT_TEXT_NORMAL, text[i], strlen(text[i]) + 1, room,
                                        OCT_DRAW_CUT_END);
        oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + (r.w - w) / 2,
                      r.y + (r.h - n * line) / 2 + i * line, text[i], ink[b->look]);
    }
}

void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    const unsigned n = oct_view_buttons(model, buttons);
    oct_draw_fill(draw, draw->layout.buttons, RGB_GROUND, 255);
    for (unsigned i = 0; i < n; i++)
        if (buttons[i].look == OCT_BUTTON_FIELD)
            draw_field(draw, draw->layout.button[i], &buttons[i], model);
        else
            draw_button(draw, draw->layout.button[i], &buttons[i]);
}

/* ---- the status line and the details ---- */

struct placed {
    struct oct_view_field field[OCT_VIEW_MOST_FIELDS];
    int x[OCT_VIEW_MOST_FIELDS], width[OCT_VIEW_MOST_FIELDS];
    unsigned line[OCT_VIEW_MOST_FIELDS];
    unsigned n, n_lines;
};

static void place_details(struct oct_draw *draw, const struct oct_view_model *model, int width,
                          int text_px, struct placed *details)
{
    const int letter = oct_draw_letters_width(draw, 1);
    details->n = oct_view_details(model, details->field);
    for (unsigned i = 0; i < details->n; i++)
        details->width[i] = oct_draw_letters_width(draw, details->field[i].n_letters);
    details->n_lines = oct_view_layout_flow(details->width, details->n, width - text_px, letter,
                                            details->x, details->line);
}

int oct_draw_status_height(struct oct_draw *draw, const struct oct_view_model *model, int width,
                           int text_px)
{
    struct placed details = {.n_lines = 0};
    if (model->settings.details)
        place_details(draw, model, width, text_px, &details);
    return (int)(details.n_lines + 1) * oct_draw_line_height(draw, OCT_TEXT_NORMAL) + text_px / 3;
}

static void status_line_draw_field(struct oct_draw *draw, int x, int y, int width,
                                   struct oct_view_phrase *p)
{
    oct_draw_text_fit(draw, OCT_TEXT_NORMAL, p->text, sizeof(p->text), width, OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_NORMAL, x, y, p->text, oct_draw_tone(p->tone));
}

/* The lamp of the state, and the fields after it. One for which there is no room is left out. */
static void draw_line(struct oct_draw *draw, const struct oct_view_model *model,
                      struct oct_view_rect r)
{
    struct oct_view_field field[OCT_VIEW_MOST_FIELDS];
    const int text_px = draw->layout.text_px, lamp = text_px * 2 / 3;
    const unsigned n = oct_view_fields(model, field);
    int x = r.x + lamp + text_px / 3;
    oct_draw_box(draw, r.x, r.y + (r.h - lamp) / 2, lamp, lamp,
                 oct_draw_tone(field[0].phrase.tone));
    for (unsigned i = 0; i < n; i++) {
        const int width = oct_draw_letters_width(draw, field[i].n_letters);
        if (x + width > r.x + r.w)
            continue;
        status_line_draw_field(draw, x, r.y, width, &field[i].phrase);
        x += oct_draw_letters_width(draw, field[i].n_letters + 1);
    }
}

void oct_draw_status(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect bar = draw->layout.status;
    const int text_px = draw->layout.text_px, margin = draw->layout.margin;
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), top = bar.y + text_px / 6;
    struct placed details = {.n_lines = 0};
    oct_draw_fill(draw, bar, RGB_BAR, 255);
    if (model->settings.details)
        place_details(draw, model, bar.w, text_px, &details);
    for (unsigned i = 0; i < details.n; i++)
        status_line_draw_field(draw, bar.x + margin + details.x[i],
                               top + (int)details.line[i] * line, details.width[i],
                               &details.field[i].phrase);
    draw_line(draw, model,
              (struct oct_view_rect){bar.x + margin, top + (int)details.n_lines * line,
                                     bar.w - 2 * margin, line});
}

/* ---- the help ---- */

void oct_draw_help(struct oct_draw *draw, const struct oct_view_model *model)
{
    const int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    const int all_w = draw->layout.status.w, all_h = draw->layout.status.y + draw->layout.status.h;
    const int room_w = all_w > 2 * margin ? all_w - 2 * margin : 1;
    const int room_h = all_h > 2 * margin ? all_h - 2 * margin : 1;
    struct oct_view_help help;
    oct_view_help_arrange(&help, model,
                          (unsigned)(room_w * 100 / oct_draw_letters_width(draw, 100)),
                          (unsigned)(room_h / line));
    const int w = oct_draw_letters_width(draw, help.n_letters), h = (int)help.n_lines * line;
    const int left = (all_w - w) / 2, top = (all_h - h) / 2;
    oct_draw_fill(
        draw, (struct oct_view_rect){left - margin, top - margin, w + 2 * margin, h + 2 * margin},
        RGB_GROUND, 240);
    for (unsigned i = 0; i < help.n; i++) {
        const struct oct_view_help_text *t = &help.text[i];
        oct_draw_text(draw, OCT_TEXT_NORMAL, left + oct_draw_letters_width(draw, t->column),
                      top + (int)t->line * line, t->text, t->is_key ? RGB_GOOD : RGB_PLAIN);
    }
}

/* ---- less light ---- */

/* Light grows with the 2.2nd power of a colour's number: half the light is 0.73 of the number, a
 * quarter 0.53, and the share that is taken away is 1 less that, of 255. Words keep their contrast
 * this way: a colour and its ground are darkened by one factor. */
void oct_draw_dim(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    const struct oct_view_rect b = draw->layout.banner;
    static const unsigned taken_away[OCT_N_LIGHTS] = {
        [OCT_LIGHT_FULL] = 0, [OCT_LIGHT_HALF] = 69, [OCT_LIGHT_QUARTER] = 119};
    const unsigned alpha = taken_away[model->settings.light];
    int w, h;
    if (alpha == 0 || SDL_GetRendererOutputSize(draw->renderer, &w, &h) < 0)
        return;
    const struct oct_view_rect all = {0, 0, w, h};
    if (b.h <= 0 || oct_view_alarms(model, alarms) == 0)
        oct_draw_fill(draw, all, 0, alpha);
    else
        oct_draw_around(draw, all, b, 0, alpha);
}
