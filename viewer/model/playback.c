#include "viewer/model/playback.h"

#include "pipeline/base/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Without a rate of its own a recording plays at this many B-scans a second; faster ones are slowed
 * to what a screen shows, so that none is skipped. */
#define PLAIN_RATE_HZ 10.0
#define MOST_RATE_HZ 60.0
/* Of the recording's length that PageUp and PageDown move by. */
#define PAGE 0.1

void oct_view_playback_finish(struct oct_view_playback *p)
{
    oct_view_picture_finish(&p->slice);
    oct_view_enface_finish(&p->enface);
    oct_view_thickness_finish(&p->thickness);
    oct_view_follow_finish(&p->follow);
    p->active = p->opens = false;
}

void oct_view_follow_finish(struct oct_view_follow *follow)
{
    for (unsigned i = 0; i < OCT_N_MAPS; i++)
        oct_view_enface_finish(&follow->change[i]);
    oct_view_picture_finish(&follow->before);
    *follow = (struct oct_view_follow){.number = follow->number, .serial = follow->serial + 1};
}

void oct_view_thickness_finish(struct oct_view_thickness *thickness)
{
    for (unsigned i = 0; i < OCT_N_MAPS; i++)
        oct_view_enface_finish(&thickness->map[i]);
    *thickness = (struct oct_view_thickness){.share = 0};
}

/* ---- which file ---- */

void oct_view_playback_open(struct oct_view_model *model, const char *path, int by, bool or_before)
{
    struct oct_view_playback *p = &model->playback;
    snprintf(p->request.path, sizeof(p->request.path), "%s", path);
    p->request.by = by;
    p->request.or_before = or_before;
    p->request.number++;
    p->opens = true;
    p->plays = false;
}

static void toggle(struct oct_view_model *model)
{
    struct oct_view_playback *p = &model->playback;
    const struct oct_view_daemon *d = &model->daemon;
    const char *newest = model->save_last.is_newest ? d->last.path : d->record.path;
    if (p->active || p->opens)
        oct_view_playback_end(model);
    else if (newest[0] && model->elsewhere[0])
        oct_view_model_say(model, "octd runs on %s, and its recordings are there: octview FILE.h5",
                           model->elsewhere);
    else if (newest[0])
        oct_view_playback_open(model, newest, 0, true);
    else if (p->file.path[0])
        oct_view_playback_open(model, p->file.path, 0, false);
    else
        oct_view_model_say(model, "there is no recording yet: octview FILE.h5 shows an older one");
}

/* A point and a zoom of one picture mean nothing on another; calipers know whose they are. */
static void forget_places(struct oct_view_model *model)
{
    model->has_mark = false;
    model->held = OCT_HELD_TO;
    oct_view_lens_init(&model->lens);
}

/* Keeps the live picture as if it had come while frozen. */
static void begin_playback(struct oct_view_model *model)
{
    struct oct_view_playback *p = &model->playback;
    if (model->frozen)
        oct_view_model_set_frozen(model, false);
    if (model->has_picture) {
        oct_view_picture_swap(&model->shown, &model->newest);
        model->newest_average = model->average;
        model->newest_waits = true;
        model->has_picture = false;
    }
    p->live_contrast = model->contrast;
    p->was_alone = model->settings.arrangement == OCT_ARRANGEMENT_ALONE;
    if (p->was_alone)
        model->settings.arrangement = OCT_ARRANGEMENT_TWO;
    model->patient.asks = OCT_ASKS_NOTHING; /* there is nothing to record here */
    model->worklist.is_open = false;
    p->active = true;
}

void oct_view_playback_end(struct oct_view_model *model)
{
    struct oct_view_playback *p = &model->playback;
    p->opens = p->plays = false;
    if (!p->active)
        return;
    p->active = false;
    const struct oct_view_contrast shown = model->contrast;
    model->contrast = p->live_contrast;
    model->contrast.gamma = shown.gamma;
    model->contrast.palette = shown.palette;
    model->has_picture = false;
    if (p->was_alone && model->settings.arrangement == OCT_ARRANGEMENT_TWO)
        model->settings.arrangement = OCT_ARRANGEMENT_ALONE;
    oct_view_picture_finish(&p->slice);
    oct_view_enface_finish(&p->enface);
    oct_view_thickness_finish(&p->thickness);
    oct_view_follow_finish(&p->follow);
    oct_view_layers_finish(&model->layers);
    model->exams.is_open = false;
    forget_places(model);
    oct_view_model_show_newest(model);
    oct_view_model_say(model, "live pictures");
}

void oct_view_playback_opened(struct oct_view_model *model, const struct oct_view_file *file)
{
    struct oct_view_playback *p = &model->playback;
    const bool another = !p->active || strcmp(p->file.path, file->path) != 0 ||
                         p->file.volume != file->volume || p->file.n_bscans != file->n_bscans ||
                         p->file.n_lines != file->n_lines || p->file.depth != file->depth;
    if (!p->opens)
        return; /* live pictures were asked for meanwhile */
    /* A recording that was stopped within a volume ends with a piece; an operator wants to look at
     * a whole one. */
    if (p->request.or_before && p->request.by == 0 && file->n_valid < file->n_bscans &&
        file->place > 1 && model->recorded.n_whole > 0 && !model->save_last.is_newest) {
        oct_view_model_say(model, "the last whole volume; %s, the piece behind it, has %u of %u",
                           file->name, file->n_valid, file->n_bscans);
        oct_view_playback_open(model, file->path, -1, false);
        return;
    }
    if (!p->active)
        begin_playback(model);
    p->opens = false;
    p->file = *file;
    if (another) {
        forget_places(model);
        model->has_picture = false; /* what is shown is of the file before */
        oct_view_picture_finish(&p->slice);
        oct_view_enface_finish(&p->enface);
        oct_view_thickness_finish(&p->thickness);
        oct_view_follow_finish(&p->follow);
        oct_view_layers_finish(&model->layers);
        p->read = (struct oct_view_read){.valid = true}; /* until it is read */
        p->wanted = p->missing_lines = 0;
        p->slice_line = file->n_lines / 2;
    }
    if (model->contrast.log != file->log) {
        model->contrast.log = file->log;
        oct_view_contrast_set_range(&model->contrast, OCT_CONTRAST_PUBLISHED);
    }
}

void oct_view_playback_refused(struct oct_view_model *model, const char *why)
{
    if (model->playback.opens)
        oct_view_model_say(model, "%s", why);
    model->playback.opens = false;
}

void oct_view_playback_offer(struct oct_view_model *model, struct oct_view_picture *picture,
                             const struct oct_view_read *read)
{
    struct oct_view_playback *p = &model->playback;
    const struct oct_view_contrast before = model->contrast;
    if (!p->active)
        return;
    p->read.bscan = read->bscan;
    p->read.valid = read->valid;
    p->missing_lines = picture->header.missing_lines;
    memcpy(p->read.why, read->why, sizeof(p->read.why));
    oct_view_letters_clean(p->read.why);
    oct_view_model_show_bscan(model, picture);
    if (before.range == OCT_CONTRAST_AUTO && (!read->valid || read->why[0]))
        model->contrast = before; /* it does not follow what is not whole */
}

/* ---- its label ---- */

/* Requests that the reader has not taken yet are joined. */
void oct_view_playback_relabel(struct oct_view_model *model,
                               const struct oct_volume_label_change *change)
{
    struct oct_view_playback *p = &model->playback;
    struct oct_view_relabel *r = &p->relabel;
    if (p->file.what[0]) {
        oct_view_model_say(model, "%s is no recording: it has no label", p->file.name);
        return;
    }
    memcpy(r->path, p->file.path, sizeof(r->path));
    r->has_eye |= change->eye != NULL;
    r->has_pseudonym |= change->pseudonym != NULL;
    r->has_verdict |= change->mark != NULL;
    if (change->eye)
        snprintf(r->eye, sizeof(r->eye), "%s", change->eye);
    if (change->pseudonym)
        snprintf(r->pseudonym, sizeof(r->pseudonym), "%s", change->pseudonym);
    if (change->mark)
        r->verdict = *change->mark;
}

void oct_view_playback_labelled(struct oct_view_model *model, const char *path, const char *eye,
                                const char *pseudonym, enum oct_volume_mark verdict)
{
    static const char *const words[] = {"not marked", "marked: keep", "marked: repeat"};
    struct oct_view_file *file = &model->playback.file;
    const char *slash = strrchr(path, '/');
    if (strcmp(file->path, path) == 0) {
        snprintf(file->eye, sizeof(file->eye), "%s", eye);
        snprintf(file->pseudonym, sizeof(file->pseudonym), "%s", pseudonym);
        file->verdict = verdict;
    }
    oct_view_model_say(model, "%s: %s, %s, %s", slash ? slash + 1 : path,
                       eye[0] ? eye : "no eye said", pseudonym[0] ? pseudonym : "no pseudonym",
                       words[verdict]);
}

/* ---- moving ---- */

double oct_view_playback_rate_hz(const struct oct_view_playback *p)
{
    return fmin(p->file.rate_hz > 0 ? p->file.rate_hz : PLAIN_RATE_HZ, MOST_RATE_HZ);
}

static void move_to(struct oct_view_playback *p, double bscan)
{
    const double last = p->file.n_bscans > 0 ? p->file.n_bscans - 1.0 : 0;
    p->position = bscan > 0 ? fmin(bscan, last) : 0;
    p->wanted = (uint32_t)p->position;
}

void oct_view_playback_go(struct oct_view_model *model, double bscan)
{
    model->playback.plays = false;
    if (model->playback.active)
        move_to(&model->playback, floor(bscan));
}

void oct_view_playback_step(struct oct_view_model *model, double by)
{
    oct_view_playback_go(model, (double)model->playback.wanted + by);
}

void oct_view_playback_slice_at(struct oct_view_model *model, double line)
{
    struct oct_view_playback *p = &model->playback;
    const double last = p->file.n_lines > 0 ? p->file.n_lines - 1.0 : 0;
    if (p->active)
        p->slice_line = line > 0 ? (uint32_t)fmin(line, last) : 0;
}

void oct_view_playback_tick(struct oct_view_model *model)
{
    struct oct_view_playback *p = &model->playback;
    const double last = p->file.n_bscans > 0 ? p->file.n_bscans - 1.0 : 0;
    if (p->active && p->plays && model->now_ns > p->moved_ns) {
        const double passed_s = (double)(model->now_ns - p->moved_ns) / (double)OCT_NS_PER_S;
        const double on = passed_s * oct_view_playback_rate_hz(p);
        move_to(p, p->position + (p->file.rate_hz > MOST_RATE_HZ ? fmin(on, 1) : on));
        p->plays = p->position < last;
    }
    p->moved_ns = model->now_ns;
}

static void toggle_play(struct oct_view_model *model)
{
    struct oct_view_playback *p = &model->playback;
    p->plays = !p->plays && p->file.n_bscans > 1;
    if (p->plays && p->wanted + 1 >= p->file.n_bscans)
        move_to(p, 0); /* from the end: once more */
    else
        p->position = p->wanted;
    p->moved_ns = model->now_ns;
}

static bool apply_moves(struct oct_view_model *model, enum oct_view_action action, double times)
{
    struct oct_view_playback *p = &model->playback;
    const double page = fmax(1, round(p->file.n_bscans * PAGE)) * times;
    switch (action) {
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
        oct_view_playback_step(model, action == OCT_ACTION_NEWER ? times : -times);
        return true;
    case OCT_ACTION_SLAB_UP:
    case OCT_ACTION_SLAB_DOWN:
        oct_view_playback_step(model, action == OCT_ACTION_SLAB_DOWN ? page : -page);
        return true;
    case OCT_ACTION_SLAB_THINNER:
    case OCT_ACTION_SLAB_THICKER:
        oct_view_playback_go(model, action == OCT_ACTION_SLAB_THICKER ? p->file.n_bscans : 0);
        return true;
    case OCT_ACTION_CURSOR_LEFT:
    case OCT_ACTION_CURSOR_RIGHT:
        oct_view_playback_slice_at(model, p->slice_line +
                                              (action == OCT_ACTION_CURSOR_RIGHT ? times : -times));
        oct_view_model_point_at(model, p->slice_line);
        return true;
    default:
        return false;
    }
}

static bool is_of_recordings(enum oct_view_action action)
{
    return action == OCT_ACTION_KEEP || action == OCT_ACTION_REPEAT ||
           action == OCT_ACTION_FILE_BEFORE || action == OCT_ACTION_FILE_AFTER ||
           action == OCT_ACTION_EXPORT || action == OCT_ACTION_EXAMS || action == OCT_ACTION_REPORT;
}

bool oct_view_playback_apply(struct oct_view_model *model, enum oct_view_action action,
                             unsigned times)
{
    struct oct_view_playback *p = &model->playback;
    enum oct_volume_mark verdict = action == OCT_ACTION_KEEP ? OCT_MARK_KEEP : OCT_MARK_REPEAT;
    if (action == OCT_ACTION_PLAYBACK) {
        toggle(model);
        return true;
    }
    if (!p->active && is_of_recordings(action))
        oct_view_model_say(model, "V first: it shows the recording just made");
    if (!p->active)
        return is_of_recordings(action);
    switch (action) {
    case OCT_ACTION_FREEZE:
        toggle_play(model);
        return true;
    case OCT_ACTION_FILE_BEFORE:
    case OCT_ACTION_FILE_AFTER:
        oct_view_playback_open(model, p->file.path, action == OCT_ACTION_FILE_AFTER ? 1 : -1,
                               false);
        return true;
    case OCT_ACTION_KEEP:
    case OCT_ACTION_REPEAT:
        verdict = p->file.verdict == verdict ? OCT_MARK_NONE : verdict; /* again: taken back */
        oct_view_playback_relabel(model, &(struct oct_volume_label_change){.mark = &verdict});
        return true;
    case OCT_ACTION_EXPORT:
        oct_view_export_begin(model);
        return true;
    case OCT_ACTION_REPORT:
        oct_view_report_page_begin(model);
        return true;
    case OCT_ACTION_EXAMS:
        if (p->follow.is_on) /* a comparison ends first */
            oct_view_follow_finish(&p->follow);
        else
            oct_view_exams_toggle(model);
        return true;
    case OCT_ACTION_PROJECTION:
    case OCT_ACTION_SHARPEN:
        oct_view_model_say(model, "this is for live pictures: V ends the playback");
        return true;
    default:
        return apply_moves(model, action, times);
    }
}

/* ---- layers ---- */

bool oct_view_playback_has_layers(const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    return p->active && !p->file.what[0] && model->settings.layers;
}

bool oct_view_playback_has_map(const struct oct_view_model *model)
{
    return oct_view_playback_has_layers(model) && model->playback.thickness.any;
}

enum oct_view_map oct_view_playback_map(const struct oct_view_model *model)
{
    return model->settings.all_layers ? OCT_MAP_NERVE_FIBRES : OCT_MAP_RETINA;
}

void oct_view_thickness_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    static const char *const names[OCT_N_MAPS] = {"ILM to RPE", "nerve fibres"};
    const struct oct_view_playback *p = &model->playback;
    const struct oct_view_thickness *t = &p->thickness;
    const enum oct_view_map map = oct_view_playback_map(model);
    const struct oct_view_enface *e = oct_view_playback_shown_map(model);
    const bool is_change = e == &p->follow.change[map];
    double value = NAN;
    if (e->n_rows > 0 && p->file.n_bscans > 0 && p->file.n_lines > 0) {
        const size_t row = (size_t)((uint64_t)p->wanted * e->n_rows / p->file.n_bscans);
        const size_t column = (size_t)((uint64_t)p->slice_line * e->n_columns / p->file.n_lines);
        value = (double)e->value[row * e->n_columns + column];
    }
    if (t->share < 1)
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "%s: %.0f %% searched", names[map],
                            floor(100 * t->share));
    else if (is_change && isfinite(value))
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%+.0f %s, since %s",
                            fabs(value) < 0.5 ? 0 : value, e->unit, p->follow.begun);
    else if (is_change)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "change since %s", p->follow.begun);
    else if (isfinite(value))
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s %.0f %s", names[map], value, e->unit);
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s: not found", names[map]);
}

void oct_view_fibres_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_playback *p = &model->playback;
    const char *unit = p->thickness.map[OCT_MAP_NERVE_FIBRES].unit;
    const double here = oct_view_model_fibres(model, p->slice_line);
    double sum = 0, n = 0;
    char value[48] = "not found", mean[64] = "";
    for (uint32_t j = 0; j < p->file.n_lines; j++) {
        const double thick = oct_view_model_fibres(model, j);
        sum += isfinite(thick) ? thick : 0;
        n += isfinite(thick) ? 1 : 0;
    }
    if (isfinite(here))
        snprintf(value, sizeof(value), "%.0f %s", here, unit);
    if (n > 0)
        snprintf(mean, sizeof(mean), "; %.0f %s in the mean", sum / n, unit);
    oct_view_phrase_set(phrase, n > 0 ? OCT_TONE_PLAIN : OCT_TONE_DIM, "A-line %u: %s%s",
                        p->slice_line + 1, value, mean);
}

const struct oct_view_enface *oct_view_playback_shown_map(const struct oct_view_model *model)
{
    const struct oct_view_playback *p = &model->playback;
    const enum oct_view_map map = oct_view_playback_map(model);
    return p->follow.is_on && p->follow.state == OCT_FOLLOW_FOUND ? &p->follow.change[map]
                                                                  : &p->thickness.map[map];
}

void oct_view_follow_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_follow *f = &model->playback.follow;
    const double mean = f->mean_change[oct_view_playback_map(model)];
    char change[64] = "";
    if (isfinite(mean))
        snprintf(change, sizeof(change), "; since then %+.1f \u00b5m in the mean", mean);
    if (f->state == OCT_FOLLOW_FAILED)
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "not compared: %s", f->why);
    else if (f->state == OCT_FOLLOW_READS)
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "%s: %.0f %% read", f->begun,
                            floor(100 * f->share));
    else if (f->has_before)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s, B-scan %u%s", f->begun, f->bscan + 1,
                            change);
    else
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "%s did not reach here%s", f->begun, change);
}

/* ---- words ---- */

void oct_view_playback_volume_text(const struct oct_view_file *file, char *text, size_t n_bytes)
{
    text[0] = '\0';
    if (file->what[0] && file->n_volumes > 1)
        snprintf(text, n_bytes, "%s: %s, %u of %u", file->what, file->dataset, file->volume,
                 file->n_volumes);
    else if (file->what[0])
        snprintf(text, n_bytes, "%s: %s", file->what, file->dataset);
    else if (file->is_last && file->n_volumes > 1)
        snprintf(text, n_bytes, "volume %u of %u of the last seconds", file->volume,
                 file->n_volumes);
    else if (file->is_last)
        snprintf(text, n_bytes, "of the last seconds");
}

void oct_view_playback_text(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const struct oct_view_playback *p = &model->playback;
    const char *what = p->file.what[0] ? "picture" : "B-scan";
    char amiss[200] = "";
    if (p->read.why[0])
        snprintf(amiss, sizeof(amiss), ": it cannot be read: %s", p->read.why);
    else if (!p->read.valid)
        snprintf(amiss, sizeof(amiss), ": it was not recorded");
    else if (p->missing_lines > 0)
        snprintf(amiss, sizeof(amiss), ", %u of its A-lines are missing", p->missing_lines);
    snprintf(text, n_bytes, "%s %u of %u%s", what, p->read.bscan + 1, p->file.n_bscans, amiss);
}
