#include "pipeline/volume/deflate.h"

#include "pipeline/base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct oct_deflate {
    int level;
    unsigned n_threads;
    pthread_t *threads; /* [n_threads] */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t begun, done;
    struct oct_deflate_job *jobs;
    size_t n, next, n_done;
    bool ending;
};

/* Byte b of value i goes to place b * n_values + i, as H5Zshuffle.c does it; a rest that is no
 * value stays behind. */
static void shuffle(const struct oct_deflate_job *job)
{
    const size_t n_values = job->n_bytes / job->value_bytes;
    for (size_t b = 0; b < job->value_bytes; b++) {
        unsigned char *to = job->shuffled + b * n_values;
        const unsigned char *from = job->bytes + b;
        for (size_t i = 0; i < n_values; i++)
            to[i] = from[i * job->value_bytes];
    }
    const size_t done = n_values * job->value_bytes;
    memcpy(job->shuffled + done, job->bytes + done, job->n_bytes - done);
}

static void pack(struct oct_deflate_job *job, int level)
{
    uLongf n = (uLongf)oct_deflate_bound(job->n_bytes);
    job->n_packed = 0;
    job->is_zero = job->n_bytes > 0 && job->bytes[0] == 0 &&
                   memcmp(job->bytes, job->bytes + 1, job->n_bytes - 1) == 0;
    if (job->is_zero)
        return;
    if (job->value_bytes > 1)
        shuffle(job);
    const unsigned char *from = job->value_bytes > 1 ? job->shuffled : job->bytes;
    if (compress2(job->packed, &n, from, (uLong)job->n_bytes, level) == Z_OK)
        job->n_packed = (size_t)n;
}

static void *run(void *argument)
{
    struct oct_deflate *d = argument;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (d->next == d->n && !d->ending)
            pthread_cond_wait(&d->begun, &d->lock);
        if (d->next == d->n)
            break;
        struct oct_deflate_job *job = &d->jobs[d->next++];
        pthread_mutex_unlock(&d->lock);
        pack(job, d->level);
        pthread_mutex_lock(&d->lock);
        if (++d->n_done == d->n)
            pthread_cond_signal(&d->done);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

size_t oct_deflate_bound(size_t n_bytes)
{
    return (size_t)compressBound((uLong)n_bytes);
}

enum oct_err oct_deflate_create(struct oct_deflate **deflate, unsigned n_threads, unsigned level,
                                struct oct_error *err)
{
    *deflate = NULL;
    struct oct_deflate *d = calloc(1, sizeof(*d));
    pthread_t *threads = calloc(n_threads, sizeof(*threads));
    if (!d || !threads) {
        free(d);
        free(threads);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for threads that pack");
    }
    d->level = (int)level;
    d->threads = threads;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->begun, NULL);
    pthread_cond_init(&d->done, NULL);
    enum oct_err e = OCT_OK;
    for (; d->n_threads < n_threads && !e; d->n_threads += !e)
        e = oct_thread_start(&threads[d->n_threads], "octctl-pack", run, d, "thread that packs",
                             err);
    if (e)
        oct_deflate_destroy(d);
    else
        *deflate = d;
    return e;
}

void oct_deflate_start(struct oct_deflate *deflate, struct oct_deflate_job *jobs, size_t n)
{
    pthread_mutex_lock(&deflate->lock);
    deflate->jobs = jobs;
    deflate->n = n;
    deflate->next = deflate->n_done = 0;
    pthread_cond_broadcast(&deflate->begun);
    pthread_mutex_unlock(&deflate->lock);
}

void oct_deflate_wait(struct oct_deflate *deflate)
{
    pthread_mutex_lock(&deflate->lock);
    while (deflate->n_done < deflate->n)
        pthread_cond_wait(&deflate->done, &deflate->lock);
    deflate->n = deflate->next = deflate->n_done = 0;
    pthread_mutex_unlock(&deflate->lock);
}

void oct_deflate_destroy(struct oct_deflate *deflate)
{
    if (!deflate)
        return;
    oct_deflate_wait(deflate);
    pthread_mutex_lock(&deflate->lock);
    deflate->ending = true;
    pthread_cond_broadcast(&deflate->begun);
    pthread_mutex_unlock(&deflate->lock);
    for (unsigned i = 0; i < deflate->n_threads; i++)
        pthread_join(deflate->threads[i], NULL);
    pthread_mutex_destroy(&deflate->lock);
    pthread_cond_destroy(&deflate->begun);
    pthread_cond_destroy(&deflate->done);
    free(deflate->threads);
    free(deflate);
}
