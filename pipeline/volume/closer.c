#include "pipeline/volume/closer.h"

#include "pipeline/base/thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct oct_volume_closer {
    struct oct_volume_closer_calls calls;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t put, done;
    struct oct_volume_writer *writer; /* being closed, or next; NULL: none */
    bool ending;
};

static void close_one(struct oct_volume_closer *c, struct oct_volume_writer *writer)
{
    struct oct_error err;
    enum oct_err s = oct_volume_sync(writer, &err);
    c->calls.synced(c->calls.owner, oct_volume_written(writer), oct_volume_bytes(writer));
    enum oct_err e = oct_volume_close(writer, s ? NULL : &err);
    c->calls.closed(c->calls.owner, s || e ? &err : NULL);
}

static void *run(void *argument)
{
    struct oct_volume_closer *c = argument;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (!c->writer && !c->ending)
            pthread_cond_wait(&c->put, &c->lock);
        struct oct_volume_writer *writer = c->writer;
        pthread_mutex_unlock(&c->lock);
        if (!writer)
            return NULL;
        close_one(c, writer);
        pthread_mutex_lock(&c->lock);
        c->writer = NULL;
        pthread_cond_signal(&c->done);
        pthread_mutex_unlock(&c->lock);
    }
}

static void free_all(struct oct_volume_closer *c)
{
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->put);
    pthread_cond_destroy(&c->done);
    free(c);
}

enum oct_err oct_volume_closer_create(struct oct_volume_closer **closer,
                                      const struct oct_volume_closer_calls *calls,
                                      struct oct_error *err)
{
    *closer = NULL;
    struct oct_volume_closer *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for closing recordings");
    c->calls = *calls;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->put, NULL);
    pthread_cond_init(&c->done, NULL);
    enum oct_err e =
        oct_thread_start(&c->thread, "octd-closer", run, c, "thread that closes recordings", err);
    if (e) {
        free_all(c);
        return e;
    }
    *closer = c;
    return OCT_OK;
}

/* Lock held. */
static void await_none(struct oct_volume_closer *c)
{
    while (c->writer)
        pthread_cond_wait(&c->done, &c->lock);
}

void oct_volume_closer_put(struct oct_volume_closer *closer, struct oct_volume_writer *writer)
{
    pthread_mutex_lock(&closer->lock);
    await_none(closer);
    closer->writer = writer;
    pthread_cond_signal(&closer->put);
    pthread_mutex_unlock(&closer->lock);
}

void oct_volume_closer_wait(struct oct_volume_closer *closer)
{
    pthread_mutex_lock(&closer->lock);
    await_none(closer);
    pthread_mutex_unlock(&closer->lock);
}

void oct_volume_closer_destroy(struct oct_volume_closer *closer)
{
    if (!closer)
        return;
    pthread_mutex_lock(&closer->lock);
    closer->ending = true;
    pthread_cond_signal(&closer->put);
    pthread_mutex_unlock(&closer->lock);
    pthread_join(closer->thread, NULL);
    free_all(closer);
}
