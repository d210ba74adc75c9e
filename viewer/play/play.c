/* The model's side of playback. */
#include "viewer/play/play.h"

#include "analysis/enface/enface.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"
#include "viewer/play/box.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum oct_err oct_play_create(struct oct_play **play, const struct oct_config *config,
                             void (*notify_owner)(void *context), void *context,
                             struct oct_error *err)
{
    struct oct_play *p = calloc(1, sizeof(*p));

    *play = NULL;
    if (!p)
        return oct_fail(err, OCT_E_NO_MEMORY, "playback: out of memory");
    p->config = config;
    p->notify = notify_owner;
    p->context = context;
    p->idle = true;
    pthread_mutex_init(&p->lock, NULL);
    oct_condition_init(&p->asked);
    oct_condition_init(&p->answered);
    enum oct_err e =
        oct_thread_start(&p->thread, "octview-play", oct_play_read, p, "playback", err);
    if (e == OCT_OK) {
        *play = p;
        return OCT_OK;
    }
    pthread_cond_destroy(&p->asked);
    pthread_cond_destroy(&p->answered);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return e;
}

/* Whether the thread has something new to look at. Under the lock. */
static bool is_news(const struct oct_play_wants *a, const struct oct_play_wants *b)
{
    return a->number != b->number || a->bscan != b->bscan || a->slice_line != b->slice_line ||
           a->gently != b->gently;
}

/* Under the lock. */
static void wake(struct oct_play *p)
{
    p->n_asked++;
    p->idle = false;
    pthread_cond_signal(&p->asked);
}

/* Joins a correction to what the thread has not begun; one of another file than that waits in the
 * model. True: there is one. */
static bool take_relabel(struct oct_play_wants *w, struct oct_view_relabel *from)
{
    struct oct_view_relabel *to = &w->relabel;

    if (!oct_play_relabels(from) || (oct_play_relabels(to) && strcmp(to->path, from->path) != 0))
        return false;
    memcpy(to->path, from->path, sizeof(to->path));
    if (from->has_eye)
        memcpy(to->eye, from->eye, sizeof(to->eye));
    if (from->has_pseudonym)
        memcpy(to->pseudonym, from->pseudonym, sizeof(to->pseudonym));
    if (from->has_verdict)
        to->verdict = from->verdict;
    to->has_eye |= from->has_eye;
    to->has_pseudonym |= from->has_pseudonym;
    to->has_verdict |= from->has_verdict;
    *from = (struct oct_view_relabel){.has_eye = false};
    return true;
}

static void take_wants(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_view_playback *playback = &model->playback;
    struct oct_play_wants *w = &p->wants;
    const struct oct_play_wants before = *w;
    const bool file = playback->active || playback->opens;

    if (w->file && !file)
        w->number++;
    w->file = file;
    if (playback->opens && playback->request.number != p->taken_request) {
        p->taken_request = playback->request.number;
        w->number++;
        snprintf(w->path, sizeof(w->path), "%s", playback->request.path);
        w->by = playback->request.by;
        w->or_before = playback->request.or_before;
    }
    w->bscan = playback->wanted;
    w->slice_line = playback->slice_line;
    w->gently = model->daemon.reachable && model->daemon.record.active;
    if (!take_relabel(w, &playback->relabel) && !is_news(&before, w))
        return;
    wake(p);
}

/* What came of the newest request for a file. Under the lock. */
static bool give_file(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_play_box *b = &p->box;
    const bool opened = b->opened, refused = b->refused;

    if (p->opened_number != p->wants.number || (!opened && !refused))
        return false;
    b->opened = b->refused = false;
    if (opened)
        oct_view_playback_opened(model, &b->file);
    if (refused && !opened)
        oct_view_playback_refused(model, b->why_not);
    else if (refused) /* the one that was asked for before that stays open */
        oct_view_model_say(model, "%s", b->why_not);
    p->wants.seen = p->wants.number;
    wake(p); /* B-scan and A-line may be those of the file before */
    return true;
}

static bool give_label(struct oct_play *p, struct oct_view_model *model)
{
    static const enum oct_view_verdict verdicts[OCT_N_MARKS] = {
        [OCT_MARK_KEEP] = OCT_VERDICT_KEEP, [OCT_MARK_REPEAT] = OCT_VERDICT_REPEAT};
    struct oct_play_box *b = &p->box;
    const bool came = b->labelled || b->not_labelled;

    if (b->labelled)
        oct_view_playback_labelled(model, b->labelled_path, b->label.eye, b->label.pseudonym,
                                   verdicts[b->label.mark]);
    if (b->not_labelled)
        oct_view_playback_not_labelled(model, b->why_no_label);
    b->labelled = b->not_labelled = false;
    return came;
}

static void copy_slice(const struct oct_view_picture *from, struct oct_view_picture *to)
{
    const uint64_t arrival_ns = to->arrival_ns;

    if (oct_view_picture_set(to, &from->header, from->pixels, oct_view_picture_bytes(&from->header),
                             NULL) == OCT_OK)
        to->arrival_ns = arrival_ns;
}

/* Copies rows that changed since the last time. */
static void copy_enface(const struct oct_view_enface *from, struct oct_view_enface *to)
{
    const bool anew = to->n_bscans != from->n_bscans || to->n_lines != from->n_lines;
    const size_t n = from->n_columns;

    if (anew && !oct_view_enface_resize(to, from->n_bscans, from->n_lines))
        return;
    for (uint32_t row = 0; row < from->n_rows; row++) {
        if (!anew && from->row_serial[row] <= to->serial)
            continue;
        memcpy(to->value + row * n, from->value + row * n, n * sizeof(*to->value));
        to->row_serial[row] = from->row_serial[row];
    }
    to->serial = from->serial;
    memcpy(to->unit, from->unit, sizeof(to->unit));
    oct_enface_limits(to->value, to->n_rows * n, &to->lo, &to->hi);
}

/* What was read of the file that the model shows. Under the lock. */
static bool give_pictures(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_view_playback *playback = &model->playback;
    struct oct_play_box *b = &p->box;
    const bool came = b->picture_came || b->slice_came || b->enface_came;

    if (!playback->active || p->wants.seen != p->opened_number)
        return false;
    if (b->picture_came)
        oct_view_playback_offer(model, &b->picture, b->bscan, b->valid, b->why);
    if (b->slice_came) {
        copy_slice(&b->slice, &playback->slice);
        playback->slice_of = b->slice_of;
        playback->slice_share = b->slice_share;
        playback->slice_serial++;
    }
    if (b->enface_came) {
        copy_enface(&b->enface, &playback->enface);
        playback->enface_share = b->enface_share;
        playback->enface_recorded = b->enface_recorded;
    }
    b->picture_came = b->slice_came = b->enface_came = false;
    return came;
}

bool oct_play_turn(struct oct_play *p, struct oct_view_model *model)
{
    pthread_mutex_lock(&p->lock);
    take_wants(p, model);
    bool changed = give_file(p, model);
    changed |= give_label(p, model);
    changed |= give_pictures(p, model);
    take_wants(p, model); /* of the file that came now */
    pthread_mutex_unlock(&p->lock);
    return changed;
}

bool oct_play_wait_open(struct oct_play *p, uint64_t timeout_ns)
{
    const struct timespec end = oct_clock_deadline(timeout_ns / 1000);
    bool in_time = true;

    pthread_mutex_lock(&p->lock);
    while (p->opened_number != p->wants.number && in_time)
        in_time = oct_condition_wait_until(&p->answered, &p->lock, &end);
    const bool open = p->opened_number == p->wants.number;
    pthread_mutex_unlock(&p->lock);
    return open;
}

bool oct_play_wait_idle(struct oct_play *p, uint64_t timeout_ns)
{
    const struct timespec end = oct_clock_deadline(timeout_ns / 1000);
    bool in_time = true;

    pthread_mutex_lock(&p->lock);
    while (!p->idle && in_time)
        in_time = oct_condition_wait_until(&p->answered, &p->lock, &end);
    const bool idle = p->idle;
    pthread_mutex_unlock(&p->lock);
    return idle;
}

const char *oct_play_refusal(const struct oct_play *p)
{
    return p->refusal;
}

void oct_play_destroy(struct oct_play *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_signal(&p->asked);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    oct_view_enface_finish(&p->box.enface);
    pthread_cond_destroy(&p->asked);
    pthread_cond_destroy(&p->answered);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
