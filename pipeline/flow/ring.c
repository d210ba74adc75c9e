#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "pipeline/flow/ring.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/* Between a reader that wakes another and the one it wakes. Each holds it, and either may be the
 * first to let go. Locks are taken in this order: the publishing ring's, the bell's, the woken
 * reader's ring's. */
struct bell {
    pthread_mutex_t lock;
    struct oct_ring_reader *sleeper; /* NULL: it has gone */
    struct bell *following;          /* of the same sleeper */
    unsigned n_holders;
};

struct oct_ring_reader {
    struct oct_ring *ring;
    struct oct_ring_reader *following;
    bool guaranteed, woken;
    unsigned most_behind;
    uint64_t released; /* slots below are given back */
    uint64_t next;     /* released <= next: slots released .. next-1 are held */
    uint64_t skipped;
    struct bell *rings; /* what is published here; NULL: nobody elsewhere is woken */
    struct bell *heard; /* those that wake this reader */
};

struct oct_ring {
    pthread_mutex_t lock;
    /* Two conditions, so that releasing a slot does not wake the readers that wait for the next. */
    pthread_cond_t news; /* published, closed, woken: readers wait */
    pthread_cond_t room; /* released, published, closed: the writer waits */
    unsigned n_slots;
    size_t slot_bytes; /* a multiple of the page */
    unsigned char *memory;
    const struct oct_memory_ops *memory_ops;
    bool closed;
    uint64_t acquired, published; /* counts: slots published .. acquired-1 are being filled */
    struct oct_ring_reader *readers;
};

static void *map_memory(size_t bytes, bool *pinned)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    *pinned = false;
    if (memory == MAP_FAILED)
        return NULL;
    /* Not for the children that look at files (hdf5_probe.h): after a fork each page that the
     * parent writes would be copied. */
    madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

static void unmap_memory(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

static const struct oct_memory_ops plain_memory = {.alloc = map_memory, .release = unmap_memory};

enum oct_err oct_ring_create(struct oct_ring **out, unsigned n_slots, size_t slot_bytes,
                             const struct oct_memory_ops *memory, bool *pinned,
                             struct oct_error *err)
{
    *out = NULL;
    struct oct_ring *ring = calloc(1, sizeof(*ring));
    if (!ring)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a ring");
    ring->n_slots = n_slots;
    ring->slot_bytes = (slot_bytes + PAGE - 1) / PAGE * PAGE;
    size_t bytes = ring->slot_bytes * n_slots;
    /* Without this check the kernel would grant the memory and kill a process later. */
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((double)bytes > 0.4 * there) {
        free(ring);
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "a ring of %u slots of %zu bytes takes more than 40 %% of this machine's "
                        "memory; lower pipeline.ring_bscans",
                        n_slots, slot_bytes);
    }
    bool by_device;
    ring->memory_ops = memory ? memory : &plain_memory;
    ring->memory = ring->memory_ops->alloc(bytes, &by_device);
    if (!ring->memory) {
        free(ring);
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "out of memory for a ring of %u slots of %zu bytes; lower "
                        "pipeline.ring_bscans",
                        n_slots, slot_bytes);
    }
    bool locked = mlock(ring->memory, bytes) == 0;
    if (pinned)
        *pinned = locked || by_device;
    pthread_mutex_init(&ring->lock, NULL);
    oct_condition_init(&ring->news);
    oct_condition_init(&ring->room);
    *out = ring;
    return OCT_OK;
}

static void let_go(struct bell *bell)
{
    if (!bell)
        return;
    pthread_mutex_lock(&bell->lock);
    bool is_last = --bell->n_holders == 0;
    pthread_mutex_unlock(&bell->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&bell->lock);
    free(bell);
}

/* It is in no ring's list any more. */
static void free_reader(struct oct_ring_reader *reader)
{
    let_go(reader->rings);
    for (struct bell *bell = reader->heard; bell;) {
        struct bell *following = bell->following;
        pthread_mutex_lock(&bell->lock); /* waits for who is waking it just now */
        bell->sleeper = NULL;
        pthread_mutex_unlock(&bell->lock);
        let_go(bell);
        bell = following;
    }
    free(reader);
}

void oct_ring_destroy(struct oct_ring *ring)
{
    if (!ring)
        return;
    for (struct oct_ring_reader *reader = ring->readers; reader;) {
        struct oct_ring_reader *following = reader->following;
        free_reader(reader);
        reader = following;
    }
    ring->memory_ops->release(ring->memory, ring->slot_bytes * ring->n_slots);
    pthread_cond_destroy(&ring->news);
    pthread_cond_destroy(&ring->room);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

unsigned oct_ring_n_slots(const struct oct_ring *ring)
{
    return ring->n_slots;
}

void *oct_ring_payload(struct oct_ring *ring, uint64_t slot)
{
    return ring->memory + slot % ring->n_slots * ring->slot_bytes;
}

/* Unlocks before the broadcast: a thread that wakes would only wait for the lock. */
static void unlock_and_tell(struct oct_ring *ring, pthread_cond_t *change)
{
    pthread_mutex_unlock(&ring->lock);
    pthread_cond_broadcast(change);
}

/* Whether any reader still needs the memory that slot number `acquired` would take. Lock held. */
static bool is_held(const struct oct_ring *ring)
{
    if (ring->acquired < ring->n_slots)
        return false;
    uint64_t old = ring->acquired - ring->n_slots;
    if (old + 1 >= ring->published)
        return true; /* still being filled, or the newest: a lossy reader may skip to it */
    for (const struct oct_ring_reader *r = ring->readers; r; r = r->following) {
        uint64_t upto = r->guaranteed ? UINT64_MAX : r->next; /* lossy: only what it reads now */
        if (r->released <= old && old < upto)
            return true;
    }
    return false;
}

enum oct_err oct_ring_acquire(struct oct_ring *ring, uint64_t timeout_us, uint64_t *slot)
{
    struct timespec deadline = oct_clock_deadline(timeout_us);
    enum oct_err e = OCT_OK;

    pthread_mutex_lock(&ring->lock);
    while (!ring->closed && is_held(ring))
        if (!oct_condition_wait_until(&ring->room, &ring->lock, &deadline)) {
            e = is_held(ring) ? OCT_E_AGAIN : OCT_OK;
            break;
        }
    if (ring->closed)
        e = OCT_E_CLOSED;
    if (e == OCT_OK)
        *slot = ring->acquired++;
    pthread_mutex_unlock(&ring->lock);
    return e;
}

/* Wakes the readers of other rings that want to know. Lock held. */
static void wake_others(const struct oct_ring *ring)
{
    for (const struct oct_ring_reader *r = ring->readers; r; r = r->following) {
        if (!r->rings)
            continue;
        pthread_mutex_lock(&r->rings->lock);
        if (r->rings->sleeper)
            oct_ring_wake(r->rings->sleeper);
        pthread_mutex_unlock(&r->rings->lock);
    }
}

void oct_ring_publish(struct oct_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->published++;
    wake_others(ring);
    /* The acquiring thread may be another one; it waits while all slots are being filled. */
    pthread_cond_broadcast(&ring->room);
    unlock_and_tell(ring, &ring->news);
}

void oct_ring_close(struct oct_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->closed = true;
    wake_others(ring);
    pthread_cond_broadcast(&ring->room);
    unlock_and_tell(ring, &ring->news);
}

void oct_ring_reopen(struct oct_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->closed = false;
    ring->acquired = ring->published = 0;
    for (struct oct_ring_reader *r = ring->readers; r; r = r->following) {
        r->released = r->next = r->skipped = 0;
        r->woken = false;
    }
    pthread_mutex_unlock(&ring->lock);
}

struct oct_ring_reader *oct_ring_reader_create(struct oct_ring *ring, bool guaranteed,
                                               unsigned most_behind)
{
    struct oct_ring_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return NULL;
    reader->ring = ring;
    reader->guaranteed = guaranteed;
    reader->most_behind = most_behind;
    pthread_mutex_lock(&ring->lock);
    reader->released = reader->next = ring->published;
    reader->following = ring->readers;
    ring->readers = reader;
    pthread_mutex_unlock(&ring->lock);
    return reader;
}

void oct_ring_reader_destroy(struct oct_ring_reader *reader)
{
    if (!reader)
        return;
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->lock);
    struct oct_ring_reader **link = &ring->readers;
    while (*link != reader)
        link = &(*link)->following;
    *link = reader->following;
    unlock_and_tell(ring, &ring->room);
    free_reader(reader);
}

/* Moves a lossy reader that fell behind, or whose slot was overwritten, to the newest slot. Not
 * while it holds a slot: then none after that can have been overwritten, and the held slot must
 * stay recorded. Lock held. */
static void skip_to_newest(struct oct_ring_reader *reader)
{
    const struct oct_ring *ring = reader->ring;
    if (reader->released != reader->next)
        return;
    uint64_t behind = ring->published - reader->next;
    bool gone = ring->acquired > reader->next + ring->n_slots;
    if (behind > 1 && (behind > reader->most_behind || gone)) {
        reader->skipped += behind - 1;
        reader->next = ring->published - 1;
        reader->released = reader->next;
    }
}

enum oct_err oct_ring_read(struct oct_ring_reader *reader, uint64_t timeout_us, uint64_t *slot)
{
    struct oct_ring *ring = reader->ring;
    struct timespec deadline = oct_clock_deadline(timeout_us);
    enum oct_err e = OCT_OK;

    pthread_mutex_lock(&ring->lock);
    while (reader->next == ring->published && !ring->closed && !reader->woken)
        if (timeout_us == 0 || !oct_condition_wait_until(&ring->news, &ring->lock, &deadline))
            break;
    if (reader->next == ring->published)
        e = ring->closed ? OCT_E_CLOSED : OCT_E_AGAIN;
    reader->woken = false;
    if (e == OCT_OK) {
        if (!reader->guaranteed)
            skip_to_newest(reader);
        *slot = reader->next++;
    }
    pthread_mutex_unlock(&ring->lock);
    return e;
}

void oct_ring_release(struct oct_ring_reader *reader)
{
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->lock);
    reader->released++;
    unlock_and_tell(ring, &ring->room);
}

void oct_ring_wake(struct oct_ring_reader *reader)
{
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->lock);
    reader->woken = true;
    unlock_and_tell(ring, &ring->news);
}

bool oct_ring_reader_wakes(struct oct_ring_reader *reader, struct oct_ring_reader *other)
{
    struct bell *bell = calloc(1, sizeof(*bell)), *before;
    if (!bell)
        return false;
    pthread_mutex_init(&bell->lock, NULL);
    bell->sleeper = other;
    bell->n_holders = 2;
    pthread_mutex_lock(&other->ring->lock);
    bell->following = other->heard;
    other->heard = bell;
    pthread_mutex_unlock(&other->ring->lock);
    pthread_mutex_lock(&reader->ring->lock);
    before = reader->rings;
    reader->rings = bell;
    pthread_mutex_unlock(&reader->ring->lock);
    let_go(before);
    return true;
}

uint64_t oct_ring_next(const struct oct_ring_reader *reader)
{
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->lock);
    uint64_t next = reader->next;
    pthread_mutex_unlock(&ring->lock);
    return next;
}

uint64_t oct_ring_behind(const struct oct_ring_reader *reader)
{
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->lock);
    uint64_t behind = ring->published - reader->next;
    pthread_mutex_unlock(&ring->lock);
    return behind;
}

uint64_t oct_ring_skipped(const struct oct_ring_reader *reader)
{
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->lock);
    uint64_t skipped = reader->skipped;
    pthread_mutex_unlock(&ring->lock);
    return skipped;
}

/* The oldest slot that the reader holds or may still get. Lock held. */
static uint64_t oldest_of(const struct oct_ring_reader *r)
{
    uint64_t newest = r->ring->published - (r->ring->published > 0);
    bool skips = !r->guaranteed && r->released == r->next && newest > r->next &&
                 r->ring->published - r->next > r->most_behind;
    return skips ? newest : r->released;
}

uint64_t oct_ring_done_below(const struct oct_ring *ring)
{
    struct oct_ring *writable = (struct oct_ring *)ring; /* the lock alone */
    pthread_mutex_lock(&writable->lock);
    uint64_t below = ring->published;
    for (const struct oct_ring_reader *r = ring->readers; r; r = r->following)
        if (oldest_of(r) < below)
            below = oldest_of(r);
    pthread_mutex_unlock(&writable->lock);
    return below;
}

uint64_t oct_ring_published(const struct oct_ring *ring)
{
    struct oct_ring *writable = (struct oct_ring *)ring; /* the lock alone */
    pthread_mutex_lock(&writable->lock);
    uint64_t published = ring->published;
    pthread_mutex_unlock(&writable->lock);
    return published;
}
