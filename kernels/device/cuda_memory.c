#define _GNU_SOURCE /* MAP_ANONYMOUS, pthread_timedjoin_np */
#include "kernels/device/cuda_memory.h"

#include "kernels/device/cuda_device.h"
#include "pipeline/base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define RELEASE_S 3 /* longest wait for a device that does not let go of memory */

/* Of the process, as the driver's own memory is. */
struct block {
    void *memory;
    size_t bytes;
    bool pinned, adopted; /* adopted: mapped by another */
    int gpu;              /* on which it lies; -1: the host's */
    struct block *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t let_go;
    struct block *blocks; /* that were given out */
    unsigned n_holding;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .let_go = PTHREAD_COND_INITIALIZER};

void oct_cuda_memory_hold(void)
{
    pthread_mutex_lock(&all.lock);
    all.n_holding++;
    pthread_mutex_unlock(&all.lock);
}

void oct_cuda_memory_let_go(void)
{
    pthread_mutex_lock(&all.lock);
    all.n_holding--;
    pthread_cond_broadcast(&all.let_go);
    pthread_mutex_unlock(&all.lock);
}

bool oct_cuda_memory_is_held(void)
{
    pthread_mutex_lock(&all.lock);
    bool held = all.n_holding > 0;
    pthread_mutex_unlock(&all.lock);
    return held;
}

/* A device that refuses to pin (or has failed meanwhile) still copies from plain memory. */
static bool fill_block(struct block *block, size_t bytes)
{
    *block = (struct block){.memory = oct_cuda_pin(bytes), .bytes = bytes, .gpu = -1};
    if (block->memory) {
        block->pinned = true;
        memset(block->memory, 0, bytes);
        return true;
    }
    block->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return block->memory != MAP_FAILED;
}

static void put_in(struct block *block)
{
    pthread_mutex_lock(&all.lock);
    block->next = all.blocks;
    all.blocks = block;
    pthread_mutex_unlock(&all.lock);
}

static void *alloc(size_t bytes, bool *pinned)
{
    struct block *block = malloc(sizeof(*block));
    if (!block)
        return NULL;
    if (!fill_block(block, bytes)) {
        free(block);
        return NULL;
    }
    put_in(block);
    if (pinned)
        *pinned = block->pinned;
    return block->memory;
}

static bool adopt(void *memory, size_t bytes)
{
    struct block *block = malloc(sizeof(*block));
    if (!block || !oct_cuda_register(memory, bytes)) {
        free(block);
        return false;
    }
    *block = (struct block){
        .memory = memory, .bytes = bytes, .pinned = true, .adopted = true, .gpu = -1};
    put_in(block);
    return true;
}

static void *device_alloc(size_t bytes, unsigned gpu)
{
    struct block *block = malloc(sizeof(*block));
    void *memory = block ? oct_cuda_take_memory(bytes, gpu) : NULL;
    if (!memory) {
        free(block);
        return NULL;
    }
    *block = (struct block){.memory = memory, .bytes = bytes, .gpu = (int)gpu};
    put_in(block);
    return memory;
}

const void *oct_cuda_memory_block(const void *at)
{
    const void *found = NULL;
    pthread_mutex_lock(&all.lock);
    for (const struct block *b = all.blocks; b && !found; b = b->next)
        if ((const char *)at >= (const char *)b->memory &&
            (const char *)at < (const char *)b->memory + b->bytes)
            found = b->memory;
    pthread_mutex_unlock(&all.lock);
    return found;
}

static struct block *take_out(const void *memory)
{
    pthread_mutex_lock(&all.lock);
    struct block **link = &all.blocks;
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    struct block *block = *link;
    if (block)
        *link = block->next;
    pthread_mutex_unlock(&all.lock);
    return block;
}

static void free_block(struct block *block)
{
    if (block->gpu >= 0)
        oct_cuda_free_memory(block->memory, (unsigned)block->gpu);
    else if (block->pinned && !block->adopted)
        oct_cuda_unpin(block->memory);
    else {
        if (block->adopted)
            oct_cuda_unregister(block->memory);
        munmap(block->memory, block->bytes);
    }
    free(block);
}

static void *free_unheld(void *argument)
{
    pthread_mutex_lock(&all.lock);
    while (all.n_holding > 0)
        pthread_cond_wait(&all.let_go, &all.lock);
    pthread_mutex_unlock(&all.lock);
    free_block(argument);
    return NULL;
}

static void release(void *memory, size_t bytes)
{
    struct block *block = take_out(memory);
    const bool held = oct_cuda_memory_is_held();
    struct timespec until;
    pthread_t thread;
    (void)bytes;
    if (!block)
        return;
    if (!block->pinned && block->gpu < 0 && !held) {
        free_block(block);
        return;
    }
    if (oct_thread_start(&thread, NULL, free_unheld, block, "thread that frees memory", NULL))
        return; /* the memory is never freed: this thread must not wait for the device */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += held ? 0 : RELEASE_S;
    if (pthread_timedjoin_np(thread, NULL, &until))
        pthread_detach(thread);
}

const struct oct_memory_ops oct_cuda_memory = {
    .alloc = alloc, .release = release, .device_alloc = device_alloc, .adopt = adopt};
