#include "viewer/snapshots.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"
#include "viewer/draw/png.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct job {
    SDL_Surface *surface; /* NULL: written */
    struct oct_view_caption caption;
    time_t when;
    struct oct_view_snapshot_done done;
};

struct oct_view_snapshots {
    pthread_mutex_t mutex; /* guards all that is not constant */
    pthread_cond_t changed;
    pthread_t thread;
    char *folder;
    void (*notify)(void *context);
    void *context;
    struct job job[OCT_VIEW_MOST_SNAPSHOTS]; /* n_taken <= n_written <= n_added, modulo */
    unsigned n_added, n_written, n_taken;
    bool ending;    /* nothing is added any more */
    bool ended;     /* the thread has written all */
    bool abandoned; /* nobody waits for the thread, which then frees everything itself */
};

static struct job *job_of(struct oct_view_snapshots *s, unsigned i)
{
    return &s->job[i % OCT_VIEW_MOST_SNAPSHOTS];
}

static void free_all(struct oct_view_snapshots *s)
{
    for (unsigned i = 0; i < OCT_VIEW_MOST_SNAPSHOTS; i++)
        SDL_FreeSurface(s->job[i].surface);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s->folder);
    free(s);
}

/* Called with the mutex held; releases it while the file is written. */
static void write_next(struct oct_view_snapshots *s)
{
    /* What becomes of a job's place is guarded; its picture and caption are the thread's. */
    struct job *job = job_of(s, s->n_written);
    SDL_Surface *surface = job->surface;
    struct oct_view_snapshot_done done = {0};
    struct oct_error why = {0};
    time_t when = job->when;
    job->surface = NULL;
    pthread_mutex_unlock(&s->mutex);
    done.code = oct_png_save_new(surface, &job->caption, s->folder, when, done.text,
                                 sizeof(done.text), &why);
    if (done.code)
        snprintf(done.text, sizeof(done.text), "%s", why.text);
    SDL_FreeSurface(surface);
    pthread_mutex_lock(&s->mutex);
    job->done = done;
    s->n_written++;
}

static void *run_writer(void *context)
{
    struct oct_view_snapshots *s = context;
    pthread_mutex_lock(&s->mutex);
    while (!s->abandoned && !(s->ending && s->n_written == s->n_added)) {
        if (s->n_written == s->n_added) {
            pthread_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        write_next(s);
        if (s->notify && !s->ending)
            s->notify(s->context);
    }
    bool abandoned = s->abandoned;
    s->ended = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (abandoned)
        free_all(s);
    return NULL;
}

enum oct_err oct_view_snapshots_create(struct oct_view_snapshots **snapshots, const char *folder,
                                       void (*notify)(void *context), void *context,
                                       struct oct_error *err)
{
    struct oct_view_snapshots *s = calloc(1, sizeof(*s));
    *snapshots = NULL;
    if (s)
        s->folder = strdup(folder);
    if (!s || !s->folder) {
        free(s);
        return oct_fail(err, OCT_E_NO_MEMORY, "snapshots: out of memory");
    }
    s->notify = notify;
    s->context = context;
    pthread_mutex_init(&s->mutex, NULL);
    oct_condition_init(&s->changed);
    enum oct_err code =
        oct_thread_start(&s->thread, NULL, run_writer, s, "snapshots: no thread", err);
    if (code) {
        free_all(s);
        return code;
    }
    *snapshots = s;
    return OCT_OK;
}

enum oct_err oct_view_snapshots_add(struct oct_view_snapshots *s, SDL_Surface *surface,
                                    const struct oct_view_caption *caption, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    if (!surface)
        return oct_fail(err, OCT_E_NO_MEMORY, "snapshot: out of memory");
    pthread_mutex_lock(&s->mutex);
    if (s->n_added - s->n_taken == OCT_VIEW_MOST_SNAPSHOTS) {
        code = oct_fail(err, OCT_E_AGAIN,
                        "no snapshot: %d wait to be written already, is the disk slow?",
                        OCT_VIEW_MOST_SNAPSHOTS);
        SDL_FreeSurface(surface);
    } else {
        *job_of(s, s->n_added++) =
            (struct job){.surface = surface, .caption = *caption, .when = time(NULL)};
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return code;
}

bool oct_view_snapshots_take(struct oct_view_snapshots *s, struct oct_view_snapshot_done *done)
{
    pthread_mutex_lock(&s->mutex);
    bool has_one = s->n_taken < s->n_written;
    if (has_one)
        *done = job_of(s, s->n_taken++)->done;
    pthread_mutex_unlock(&s->mutex);
    return has_one;
}

void oct_view_snapshots_destroy(struct oct_view_snapshots *s, int wait_s)
{
    struct timespec until = oct_clock_deadline((uint64_t)wait_s * 1000000);
    bool in_time = true;
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    pthread_cond_signal(&s->changed);
    while (!s->ended && in_time)
        in_time = oct_condition_wait_until(&s->changed, &s->mutex, &until);
    for (; s->n_taken < s->n_written; s->n_taken++)
        if (job_of(s, s->n_taken)->done.code)
            oct_log(OCT_LOG_ERROR, "%s", job_of(s, s->n_taken)->done.text);
    bool ended = s->ended;
    if (!ended)
        oct_log(OCT_LOG_ERROR, "%u snapshots were not written within %d s: given up",
                s->n_added - s->n_written, wait_s);
    s->abandoned = !ended;
    pthread_t thread = s->thread;
    pthread_mutex_unlock(&s->mutex);
    if (!ended) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    free_all(s);
}
