#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "pipeline/volume/queue.h"

#include "pipeline/base/thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct piece {
    unsigned char *block;
    size_t bytes, n_new;
    uint64_t offset;
};

struct oct_volume_queue {
    struct oct_volume_file *file;
    void *mapped;          /* one block more than n_blocks, so that they can be aligned in it */
    unsigned char *memory; /* n_blocks blocks */
    unsigned n_blocks;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t put, done;
    struct piece *pieces;       /* [n_blocks], a circle: number i lies in i % n_blocks */
    uint64_t n_put, n_done;     /* pieces n_done .. n_put - 1 are not written yet */
    unsigned char **free_block; /* [n_blocks], the first n_free */
    unsigned n_free;
    uint64_t n_bytes;
    bool ending;
    struct oct_error failure; /* the first; code OCT_OK: none */
};

static void write_piece(struct oct_volume_queue *q, const struct piece *piece)
{
    struct oct_error why = {0};
    pthread_mutex_lock(&q->lock);
    bool failed = q->failure.code != OCT_OK;
    pthread_mutex_unlock(&q->lock);
    if (!failed)
        failed = oct_volume_file_write(q->file, piece->block, piece->bytes, piece->offset, true,
                                       &why) != OCT_OK;
    pthread_mutex_lock(&q->lock);
    if (why.code != OCT_OK)
        q->failure = why;
    q->n_bytes += failed ? 0 : piece->n_new;
    q->free_block[q->n_free++] = piece->block;
    q->n_done++;
    pthread_cond_signal(&q->done);
    pthread_mutex_unlock(&q->lock);
}

static void *run(void *argument)
{
    struct oct_volume_queue *q = argument;
    for (;;) {
        pthread_mutex_lock(&q->lock);
        while (q->n_done == q->n_put && !q->ending)
            pthread_cond_wait(&q->put, &q->lock);
        bool any = q->n_done < q->n_put;
        const struct piece piece = q->pieces[q->n_done % q->n_blocks];
        pthread_mutex_unlock(&q->lock);
        if (!any)
            return NULL;
        write_piece(q, &piece);
    }
}

static size_t mapped_bytes(const struct oct_volume_queue *q)
{
    return (q->n_blocks + 1) * OCT_VOLUME_QUEUE_BYTES;
}

/* Maps the blocks instead of using malloc: with two files open in turn, malloc would keep the freed
 * memory in pieces too small for the next file's blocks. */
static void map_blocks(struct oct_volume_queue *q)
{
    void *mapped =
        mmap(NULL, mapped_bytes(q), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return;
    size_t beyond = (uintptr_t)mapped % OCT_VOLUME_QUEUE_BYTES;
    q->mapped = mapped;
    q->memory = (unsigned char *)mapped + (beyond ? OCT_VOLUME_QUEUE_BYTES - beyond : 0);
}

static enum oct_err get_memory(struct oct_volume_queue *q, struct oct_error *err)
{
    const size_t bytes = q->n_blocks * OCT_VOLUME_QUEUE_BYTES;
    q->pieces = calloc(q->n_blocks, sizeof(*q->pieces));
    q->free_block = calloc(q->n_blocks, sizeof(*q->free_block));
    map_blocks(q);
    if (!q->pieces || !q->free_block || !q->memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for %zu bytes of blocks",
                        q->file->path, bytes);
    /* Without huge pages the pages stay small, which does no harm. */
    (void)madvise(q->memory, bytes, MADV_HUGEPAGE);
    for (unsigned i = 0; i < q->n_blocks; i++)
        q->free_block[q->n_free++] = q->memory + i * OCT_VOLUME_QUEUE_BYTES;
    return OCT_OK;
}

static void free_all(struct oct_volume_queue *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->put);
    pthread_cond_destroy(&q->done);
    if (q->mapped)
        munmap(q->mapped, mapped_bytes(q));
    free(q->free_block);
    free(q->pieces);
    free(q);
}

static enum oct_err start_thread(struct oct_volume_queue *q, struct oct_error *err)
{
    char what[OCT_ERROR_TEXT_BYTES];
    snprintf(what, sizeof(what), "%s: thread that writes", q->file->path);
    return oct_thread_start(&q->thread, "octd-writer", run, q, what, err);
}

enum oct_err oct_volume_queue_create(struct oct_volume_queue **queue, struct oct_volume_file *file,
                                     unsigned n_blocks, struct oct_error *err)
{
    *queue = NULL;
    struct oct_volume_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
    q->file = file;
    q->n_blocks = n_blocks;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->put, NULL);
    pthread_cond_init(&q->done, NULL);
    enum oct_err e = get_memory(q, err);
    e = e ? e : start_thread(q, err);
    if (e) {
        free_all(q);
        return e;
    }
    *queue = q;
    return OCT_OK;
}

/* Lock held. */
static enum oct_err report(const struct oct_volume_queue *q, struct oct_error *err)
{
    if (q->failure.code != OCT_OK && err)
        *err = q->failure;
    return q->failure.code;
}

enum oct_err oct_volume_queue_take(struct oct_volume_queue *queue, unsigned char **block,
                                   struct oct_error *err)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->n_free == 0)
        pthread_cond_wait(&queue->done, &queue->lock);
    enum oct_err e = report(queue, err);
    *block = e ? NULL : queue->free_block[--queue->n_free];
    pthread_mutex_unlock(&queue->lock);
    return e;
}

void oct_volume_queue_put(struct oct_volume_queue *queue, unsigned char *block, size_t bytes,
                          uint64_t offset, size_t n_new)
{
    pthread_mutex_lock(&queue->lock);
    queue->pieces[queue->n_put++ % queue->n_blocks] =
        (struct piece){.block = block, .bytes = bytes, .n_new = n_new, .offset = offset};
    pthread_cond_signal(&queue->put);
    pthread_mutex_unlock(&queue->lock);
}

enum oct_err oct_volume_queue_wait(struct oct_volume_queue *queue, struct oct_error *err)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->n_done < queue->n_put)
        pthread_cond_wait(&queue->done, &queue->lock);
    enum oct_err e = report(queue, err);
    pthread_mutex_unlock(&queue->lock);
    return e;
}

uint64_t oct_volume_queue_bytes(struct oct_volume_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t n = queue->n_bytes;
    pthread_mutex_unlock(&queue->lock);
    return n;
}

void oct_volume_queue_destroy(struct oct_volume_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->ending = true;
    pthread_cond_signal(&queue->put);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    free_all(queue);
}
