/* Recordings: what a browser asks of octd's folder, and those that are played. */
#include "web/server.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/json_text.h"
#include "pipeline/base/log.h"
#include "web/recordings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER_NS (500 * OCT_NS_PER_MS) /* a browser asks the folder so often at most */
#define PATIENCE_NS (3 * OCT_NS_PER_S)  /* it is told that the folder does not answer */

/* ---- playback ---- */

/* In the playback's thread, which then is gone. */
static void left(void *context)
{
    struct oct_web *web = context;
    atomic_fetch_add(&web->n_left, 1);
}

void oct_web_playback_end(struct oct_web *web, struct oct_web_browser *b)
{
    struct oct_web_playback *p = b->playback;
    b->playback = NULL;
    b->frozen = b->wants_whole = false;
    b->state_sent = b->state_waits = 0;
    memset(b->sent, 0, sizeof(b->sent));
    oct_web_pace_forget(&b->pace);
    b->goes = b->slices = false;
    if (!p)
        return;
    if (p->play) { /* a label that was just given is written */
        oct_play_turn(p->play, &p->model);
        oct_play_leave(p->play, left, web);
    } else {
        web->counts.n_playbacks--;
    }
    oct_web_view_destroy(p->view);
    oct_view_model_finish(&p->model);
    free(p);
}

void oct_web_playback_live(struct oct_web *web, struct oct_web_browser *b)
{
    b->wants_open = false;
    if (b->errand)
        b->errand->is_off = b->errand->opens;
    oct_web_playback_end(web, b);
}

/* False: it cannot, or there is no room for another one. */
static bool begin(struct oct_web *web, struct oct_web_browser *b, const char *path)
{
    struct oct_error why = {.text = "out of memory"};
    oct_web_playback_end(web, b);
    struct oct_web_playback *p =
        web->counts.n_playbacks < OCT_WEB_MOST_PLAYBACKS ? calloc(1, sizeof(*p)) : NULL;
    if (!p)
        return false;
    web->counts.n_playbacks++;
    b->playback = p;
    oct_view_model_init(&p->model, web->app->model.endpoint, web->config->pipeline.log);
    p->model.settings.layers = false; /* until they are asked for: they are searched in all of it */
    p->view = oct_web_view_create(&p->model, &web->app->model, web->encoder);
    if (!p->view || oct_play_create(&p->play, web->config, oct_web_notify, web, &why)) {
        oct_log(OCT_LOG_WARNING, "playback: %s", why.text);
        oct_web_playback_end(web, b);
        return false;
    }
    oct_view_model_tick(&p->model, oct_clock_ns());
    oct_view_playback_open(&p->model, path, 0, false);
    return true;
}

static void play_turn(struct oct_web *web, struct oct_web_browser *b, uint64_t now_ns)
{
    struct oct_web_playback *p = b->playback;
    oct_view_model_tick(&p->model, now_ns);
    if (b->goes)
        oct_view_playback_go(&p->model, b->go);
    if (b->slices)
        oct_view_playback_slice_at(&p->model, b->slice);
    b->goes = b->slices = false;
    oct_play_turn(p->play, &p->model);
    if (p->model.playback.active || p->model.playback.opens) {
        oct_web_view_refresh(p->view);
        return;
    }
    snprintf(b->refusal, sizeof(b->refusal), "%.255s", oct_play_refusal(p->play));
    oct_web_playback_end(web, b);
}

/* ---- the folder ---- */

/* In the worker: {"recordings": [...], "of": what was searched, "all": how many there are}. */
static void write_list(struct oct_web_errand *e, const char *folder)
{
    struct oct_web_recording *list = malloc(OCT_WEB_MOST_RECORDINGS * sizeof(*list));
    const size_t room = OCT_WEB_MOST_RECORDINGS * 640 + 2048;
    struct oct_json_text t;
    unsigned n_all;
    if (list && (e->list = malloc(OCT_WEB_BEFORE + room))) {
        const unsigned n = oct_web_recordings_list(folder, e->what, list, &n_all);
        oct_json_begin(&t, (char *)e->list + OCT_WEB_BEFORE, room);
        oct_json_raw(&t, "{\"recordings\":[");
        for (unsigned i = 0; i < n; i++) {
            oct_json_separate(&t);
            oct_json_raw(&t, "{");
            oct_json_member_string(&t, "name", list[i].name);
            oct_json_member_u64(&t, "bytes", list[i].bytes);
            oct_json_member_u64(&t, "time_s", list[i].time_s);
            oct_json_raw(&t, "}");
        }
        oct_json_raw(&t, "]");
        oct_json_member_string(&t, "of", e->what);
        oct_json_member_u64(&t, "all", n_all);
        oct_json_raw(&t, "}");
        e->n_list = oct_json_end(&t);
    }
    free(list);
}

static void work(struct oct_web_job *job)
{
    struct oct_web_errand *e = (struct oct_web_errand *)job;
    const char *folder = e->web->config->record.directory;
    if (e->opens)
        e->has = oct_web_recordings_has(folder, e->what);
    else
        write_list(e, folder);
}

static void answer(struct oct_web *web, struct oct_web_browser *b, struct oct_web_errand *e)
{
    char path[OCT_CONFIG_STRING_BYTES + NAME_MAX + 2];
    if (!e->opens) {
        free(b->list);
        b->list = e->list;
        b->n_list = e->n_list;
        e->list = NULL;
    } else if (!e->is_off && !e->has) {
        snprintf(b->refusal, sizeof(b->refusal), "%.150s: no closed recording of octd's folder",
                 e->what);
    } else if (!e->is_off) {
        snprintf(path, sizeof(path), "%s/%s", web->config->record.directory, e->what);
        if (!begin(web, b, path))
            snprintf(b->refusal, sizeof(b->refusal),
                     "others play as many recordings as octweb can (%u)", OCT_WEB_MOST_PLAYBACKS);
    }
}

static void done(struct oct_web_job *job)
{
    struct oct_web_errand *e = (struct oct_web_errand *)job;
    if (e->browser) {
        e->browser->errand = NULL;
        answer(e->web, e->browser, e);
    }
    free(e->list);
    free(e);
}

static void ask(struct oct_web *web, struct oct_web_browser *b, uint64_t now_ns)
{
    struct oct_web_errand *e = calloc(1, sizeof(*e));
    if (!e)
        return;
    *e = (struct oct_web_errand){.job = {.work = work, .done = done},
                                 .web = web,
                                 .browser = b,
                                 .opens = b->wants_open,
                                 .asked_ns = now_ns};
    memcpy(e->what, b->wants_open ? b->open : b->list_of, sizeof(e->what));
    if (!oct_web_worker_give(web->folder, &e->job)) {
        free(e); /* the next turn tries again */
        return;
    }
    b->errand = e;
    b->folder_due_ns = now_ns + FOLDER_NS;
    if (e->opens)
        b->wants_open = false;
    else
        b->wants_list = false;
}

void oct_web_playback_turn(struct oct_web *web, struct oct_web_browser *b, uint64_t now_ns)
{
    if (b->playback)
        play_turn(web, b, now_ns);
    if (!b->errand && (b->wants_open || b->wants_list) && now_ns >= b->folder_due_ns)
        ask(web, b, now_ns);
    if (b->errand && !b->errand->is_told && now_ns - b->errand->asked_ns > PATIENCE_NS) {
        b->errand->is_told = true;
        snprintf(b->refusal, sizeof(b->refusal),
                 "octd's folder does not answer: is its disk well?");
    }
}
