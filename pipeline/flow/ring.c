#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "pipeline/flow/ring.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/event.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/* What readers of a ring wait for. It is on its own because others that wake them may outlive the
 * ring: each holds it, and the last to let go frees it. */
struct bell {
    atomic_uint n_holders;
    struct oct_event news;                       /* published, closed, woken */
    atomic_bool is_woken[OCT_RING_MOST_READERS]; /* each reader of its ring */
};

/* Whom a reader wakes. The publishing thread may be looking at one that a reader has no more, so
 * all that a ring ever had stay until the ring goes. */
struct wake {
    struct bell *bell;
    unsigned reader;
    struct wake *following;
};

enum kind { ABSENT, LOSSY, GUARANTEED };

struct oct_ring_reader {
    struct oct_ring *ring;
    unsigned number; /* in ring->readers */
    unsigned most_behind;
    atomic_int kind;
    atomic_uint_fast64_t next;     /* the slot that it reads next */
    atomic_uint_fast64_t released; /* guaranteed: it holds the slots released .. next - 1 */
    atomic_uint_fast64_t held;     /* lossy: the slot that it holds, plus 1; 0: none */
    atomic_uint_fast64_t skipped;
    unsigned buffer;             /* lossy: of the slot held; the reader's own */
    _Atomic(struct wake *) wake; /* NULL: nobody else is woken */
};

/* Of the writer: a buffer that is no slot's. */
struct spare {
    unsigned buffer;
    uint64_t slot; /* that it was, plus 1: a reader may hold that still; 0: none may */
};

struct owned {
    void *memory;
    size_t bytes;
    void (*release)(void *memory, size_t bytes);
};

struct oct_ring {
    atomic_uint n_holders; /* of its memory */
    unsigned n_slots;
    size_t slot_bytes; /* a multiple of the page */
    const struct oct_memory_ops *memory_ops;
    struct bell *bell;
    struct oct_event room; /* released, published, closed: the writer waits */
    atomic_bool is_closed;
    atomic_uint_fast64_t acquired, published; /* published .. acquired - 1 are being filled */
    atomic_uint_fast64_t floor;               /* lossy readers may take no slot below */
    atomic_uint_fast64_t done_below;          /* as oct_ring_done_below returned it */

    atomic_uint n_readers; /* that were ever in use at the same time */
    struct oct_ring_reader readers[OCT_RING_MOST_READERS];

    /* Buffers: those of the slots, and a spare one for each lossy reader. */
    atomic_uint *buffer_of; /* [n_slots] */
    atomic_uint n_buffers;
    unsigned char **buffers; /* [n_slots + OCT_RING_MOST_READERS] */
    unsigned n_spares;       /* the writer's own: known to it */
    struct spare spares[OCT_RING_MOST_READERS];
    atomic_uint n_owned;
    struct owned owned[OCT_RING_MOST_OWNED];

    pthread_mutex_t setup; /* of those who add and remove readers, and of nobody else; guards: */
    struct wake *wakes;
};

/* ---- memory ---- */

static void *map_memory(size_t bytes, bool *pinned)
{
    unsigned char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *pinned = false;
    if (memory == MAP_FAILED)
        return NULL;
    /* In huge pages where the system gives them, and all of it now: no B-scan waits for a page. */
    madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes; i += PAGE)
        memory[i] = 0;
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

static unsigned char *alloc_pinned(const struct oct_ring *ring, size_t bytes, bool *pinned)
{
    bool by_device;
    void *memory = ring->memory_ops->alloc(bytes, &by_device);
    *pinned = memory && (mlock(memory, bytes) == 0 || by_device);
    return memory;
}

static enum oct_err alloc_ring(struct oct_ring *ring, bool *pinned, struct oct_error *err)
{
    const size_t bytes = ring->slot_bytes * ring->n_slots;
    ring->bell = calloc(1, sizeof(*ring->bell));
    ring->buffer_of = calloc(ring->n_slots, sizeof(*ring->buffer_of));
    ring->buffers = calloc(ring->n_slots + OCT_RING_MOST_READERS, sizeof(*ring->buffers));
    if (!ring->bell || !ring->buffer_of || !ring->buffers)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a ring");
    atomic_init(&ring->bell->n_holders, 1);
    /* Without this check the kernel would grant the memory and kill a process later. */
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((double)bytes > 0.4 * there)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "a ring of %u slots of %zu bytes takes more than 40 %% of this machine's "
                        "memory; lower pipeline.ring_bscans",
                        ring->n_slots, ring->slot_bytes);
    ring->buffers[0] = alloc_pinned(ring, bytes, pinned);
    if (!ring->buffers[0])
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "out of memory for a ring of %u slots of %zu bytes; lower "
                        "pipeline.ring_bscans",
                        ring->n_slots, ring->slot_bytes);
    for (unsigned i = 0; i < ring->n_slots; i++) {
        ring->buffers[i] = ring->buffers[0] + i * ring->slot_bytes;
        atomic_init(&ring->buffer_of[i], i);
    }
    atomic_init(&ring->n_buffers, ring->n_slots);
    return OCT_OK;
}

enum oct_err oct_ring_create(struct oct_ring **out, unsigned n_slots, size_t slot_bytes,
                             const struct oct_memory_ops *memory, bool *pinned,
                             struct oct_error *err)
{
    bool is_pinned = false;
    *out = NULL;
    struct oct_ring *ring = calloc(1, sizeof(*ring));
    if (!ring)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a ring");
    pthread_mutex_init(&ring->setup, NULL);
    atomic_init(&ring->n_holders, 1);
    ring->n_slots = n_slots;
    ring->slot_bytes = (slot_bytes + PAGE - 1) / PAGE * PAGE;
    ring->memory_ops = memory ? memory : &plain_memory;
    for (unsigned i = 0; i < OCT_RING_MOST_READERS; i++) {
        ring->readers[i].ring = ring;
        ring->readers[i].number = i;
    }
    enum oct_err e = alloc_ring(ring, &is_pinned, err);
    if (e) {
        oct_ring_destroy(ring);
        return e;
    }
    if (pinned)
        *pinned = is_pinned;
    *out = ring;
    return OCT_OK;
}

static void release_bell(struct bell *bell)
{
    if (bell && atomic_fetch_sub(&bell->n_holders, 1) == 1)
        free(bell);
}

void oct_ring_hold(struct oct_ring *ring)
{
    atomic_fetch_add(&ring->n_holders, 1);
}

void oct_ring_own(struct oct_ring *ring, void *memory, size_t bytes,
                  void (*release)(void *memory, size_t bytes))
{
    ring->owned[atomic_fetch_add(&ring->n_owned, 1)] = (struct owned){memory, bytes, release};
}

void oct_ring_destroy(struct oct_ring *ring)
{
    if (!ring || atomic_fetch_sub(&ring->n_holders, 1) != 1)
        return;
    for (unsigned i = 0; i < atomic_load(&ring->n_owned); i++)
        ring->owned[i].release(ring->owned[i].memory, ring->owned[i].bytes);
    while (ring->wakes) {
        struct wake *wake = ring->wakes;
        ring->wakes = wake->following;
        release_bell(wake->bell);
        free(wake);
    }
    for (unsigned i = ring->n_slots; i < atomic_load(&ring->n_buffers); i++)
        ring->memory_ops->release(ring->buffers[i], ring->slot_bytes);
    if (ring->buffers && ring->buffers[0])
        ring->memory_ops->release(ring->buffers[0], ring->slot_bytes * ring->n_slots);
    release_bell(ring->bell);
    pthread_mutex_destroy(&ring->setup);
    free(ring->buffer_of);
    free(ring->buffers);
    free(ring);
}

size_t oct_ring_slot_bytes(const struct oct_ring *ring)
{
    return ring->slot_bytes;
}

unsigned oct_ring_n_slots(const struct oct_ring *ring)
{
    return ring->n_slots;
}

unsigned oct_ring_most_buffers(const struct oct_ring *ring)
{
    return ring->n_slots + OCT_RING_MOST_READERS;
}

unsigned oct_ring_buffer(const struct oct_ring *ring, uint64_t slot)
{
    return atomic_load(&ring->buffer_of[slot % ring->n_slots]);
}

void *oct_ring_payload(struct oct_ring *ring, uint64_t slot)
{
    return ring->buffers[oct_ring_buffer(ring, slot)];
}

void *oct_ring_held(const struct oct_ring_reader *reader)
{
    if (atomic_load(&reader->kind) == LOSSY)
        return reader->ring->buffers[reader->buffer];
    return oct_ring_payload(reader->ring, atomic_load(&reader->next) - 1);
}

/* ---- the writer ---- */

static uint64_t raise(atomic_uint_fast64_t *value, uint64_t to)
{
    uint64_t now = atomic_load(value);
    while (now < to && !atomic_compare_exchange_weak(value, &now, to))
        ;
    return now < to ? to : now;
}

static bool any_guaranteed_needs(const struct oct_ring *ring, uint64_t slot)
{
    const unsigned n = atomic_load(&ring->n_readers);
    for (unsigned i = 0; i < n; i++)
        if (atomic_load(&ring->readers[i].kind) == GUARANTEED &&
            atomic_load(&ring->readers[i].released) <= slot)
            return true;
    return false;
}

static bool any_lossy_holds(const struct oct_ring *ring, uint64_t slot)
{
    const unsigned n = atomic_load(&ring->n_readers);
    for (unsigned i = 0; i < n; i++)
        if (atomic_load(&ring->readers[i].held) == slot + 1)
            return true;
    return false;
}

/* A buffer that nobody holds: each lossy reader holds one at most, and brought one. */
static struct spare *find_spare(struct oct_ring *ring)
{
    const unsigned n = atomic_load(&ring->n_buffers) - ring->n_slots;
    for (; ring->n_spares < n; ring->n_spares++)
        ring->spares[ring->n_spares] = (struct spare){.buffer = ring->n_slots + ring->n_spares};
    for (unsigned i = 0; i < n; i++) {
        struct spare *spare = &ring->spares[i];
        if (spare->slot == 0 || !any_lossy_holds(ring, spare->slot - 1))
            return spare;
    }
    return NULL;
}

/* Takes the slot that lies where slot number `acquired` is to lie. The floor is raised before
 * readers are looked at, and a reader names what it takes before it looks at the floor: one of the
 * two always sees the other. False: a guaranteed reader needs it, or it is the newest, to which a
 * lossy reader may just be skipping, or not even published. */
static bool clear_place(struct oct_ring *ring, uint64_t acquired)
{
    if (acquired < ring->n_slots)
        return true;
    const uint64_t old = acquired - ring->n_slots;
    if (old + 1 >= atomic_load(&ring->published) || any_guaranteed_needs(ring, old))
        return false;
    raise(&ring->floor, old + 1);
    if (any_guaranteed_needs(ring, old)) /* one that came meanwhile and begins anew */
        return false;
    if (!any_lossy_holds(ring, old))
        return true;
    struct spare *spare = find_spare(ring);
    if (!spare)
        return false;
    const unsigned buffer = spare->buffer;
    *spare = (struct spare){.buffer = oct_ring_buffer(ring, old), .slot = old + 1};
    atomic_store(&ring->buffer_of[old % ring->n_slots], buffer);
    return true;
}

static enum oct_err try_acquire(struct oct_ring *ring, uint64_t *slot)
{
    const uint64_t acquired = atomic_load(&ring->acquired);
    if (atomic_load(&ring->is_closed))
        return OCT_E_CLOSED;
    if (!clear_place(ring, acquired))
        return OCT_E_AGAIN;
    *slot = acquired;
    atomic_store(&ring->acquired, acquired + 1);
    return OCT_OK;
}

enum oct_err oct_ring_acquire(struct oct_ring *ring, uint64_t timeout_us, uint64_t *slot)
{
    enum oct_err e = try_acquire(ring, slot);
    if (e != OCT_E_AGAIN || timeout_us == 0)
        return e;
    const struct timespec deadline = oct_clock_deadline(timeout_us);
    for (bool in_time = true; e == OCT_E_AGAIN && in_time;) {
        unsigned n = oct_event_prepare(&ring->room);
        e = try_acquire(ring, slot);
        if (e == OCT_E_AGAIN)
            in_time = oct_event_wait_until(&ring->room, n, &deadline);
        oct_event_end(&ring->room);
    }
    return e == OCT_E_AGAIN ? try_acquire(ring, slot) : e;
}

static void wake_reader(struct bell *bell, unsigned reader)
{
    atomic_store(&bell->is_woken[reader], true);
    oct_event_notify(&bell->news);
}

/* Wakes the ring's readers, those of other rings that want to know, and the writer. */
static void tell_all(struct oct_ring *ring)
{
    const unsigned n = atomic_load(&ring->n_readers);
    oct_event_notify(&ring->bell->news);
    for (unsigned i = 0; i < n; i++) {
        const struct wake *other = atomic_load(&ring->readers[i].wake);
        if (other)
            wake_reader(other->bell, other->reader);
    }
    oct_event_notify(&ring->room);
}

void oct_ring_publish(struct oct_ring *ring)
{
    atomic_fetch_add(&ring->published, 1);
    /* The writer too: the acquiring thread may be another one; it waits while all slots are being
     * filled. */
    tell_all(ring);
}

void oct_ring_close(struct oct_ring *ring)
{
    atomic_store(&ring->is_closed, true);
    tell_all(ring);
}

void oct_ring_reopen(struct oct_ring *ring)
{
    atomic_store(&ring->is_closed, false);
    atomic_store(&ring->acquired, 0);
    atomic_store(&ring->published, 0);
    atomic_store(&ring->floor, 0);
    atomic_store(&ring->done_below, 0);
    for (unsigned i = 0; i < ring->n_spares; i++)
        ring->spares[i].slot = 0;
    for (unsigned i = 0; i < OCT_RING_MOST_READERS; i++) {
        struct oct_ring_reader *r = &ring->readers[i];
        atomic_store(&r->released, 0);
        atomic_store(&r->next, 0);
        atomic_store(&r->held, 0);
        atomic_store(&r->skipped, 0);
        atomic_store(&ring->bell->is_woken[i], false);
    }
}

/* ---- readers come and go ---- */

/* One spare buffer for each lossy reader. Lock of set-up held. */
static bool add_spare(struct oct_ring *ring)
{
    unsigned n_lossy = 1;
    bool pinned;
    const unsigned n_buffers = atomic_load(&ring->n_buffers);
    for (unsigned i = 0; i < OCT_RING_MOST_READERS; i++)
        n_lossy += atomic_load(&ring->readers[i].kind) == LOSSY;
    if (n_buffers - ring->n_slots >= n_lossy)
        return true; /* of one that has gone */
    ring->buffers[n_buffers] = alloc_pinned(ring, ring->slot_bytes, &pinned);
    if (!ring->buffers[n_buffers])
        return false;
    atomic_store(&ring->n_buffers, n_buffers + 1);
    return true;
}

/* Lock of set-up held. */
static struct oct_ring_reader *find_absent(struct oct_ring *ring)
{
    for (unsigned i = 0; i < OCT_RING_MOST_READERS; i++)
        if (atomic_load(&ring->readers[i].kind) == ABSENT)
            return &ring->readers[i];
    return NULL;
}

/* The writer may have gone on between the two lines and not have seen the reader: then it begins
 * later. */
static void begin_at_published(struct oct_ring_reader *reader, enum kind kind)
{
    struct oct_ring *ring = reader->ring;
    uint64_t first = atomic_load(&ring->published);
    for (;;) {
        atomic_store(&reader->released, first);
        atomic_store(&reader->next, first);
        atomic_store(&reader->kind, kind);
        if (atomic_load(&ring->floor) <= first)
            break;
        first = atomic_load(&ring->published);
    }
    oct_event_notify(&ring->room);
}

struct oct_ring_reader *oct_ring_reader_create(struct oct_ring *ring, bool guaranteed,
                                               unsigned most_behind)
{
    pthread_mutex_lock(&ring->setup);
    struct oct_ring_reader *reader = find_absent(ring);
    if (reader && !guaranteed && !add_spare(ring))
        reader = NULL;
    if (reader) {
        reader->most_behind = most_behind;
        atomic_store(&reader->held, 0);
        atomic_store(&reader->skipped, 0);
        atomic_store(&ring->bell->is_woken[reader->number], false);
        if (atomic_load(&ring->n_readers) <= reader->number)
            atomic_store(&ring->n_readers, reader->number + 1);
        begin_at_published(reader, guaranteed ? GUARANTEED : LOSSY);
    }
    pthread_mutex_unlock(&ring->setup);
    return reader;
}

void oct_ring_reader_destroy(struct oct_ring_reader *reader)
{
    if (!reader)
        return;
    struct oct_ring *ring = reader->ring;
    pthread_mutex_lock(&ring->setup);
    atomic_store(&reader->wake, NULL);
    atomic_store(&reader->held, 0);
    atomic_store(&reader->kind, ABSENT);
    pthread_mutex_unlock(&ring->setup);
    oct_event_notify(&ring->room);
}

bool oct_ring_reader_wakes(struct oct_ring_reader *reader, struct oct_ring_reader *other)
{
    struct oct_ring *ring = reader->ring;
    struct wake *wake = malloc(sizeof(*wake));
    if (!wake)
        return false;
    atomic_fetch_add(&other->ring->bell->n_holders, 1);
    pthread_mutex_lock(&ring->setup);
    *wake =
        (struct wake){.bell = other->ring->bell, .reader = other->number, .following = ring->wakes};
    ring->wakes = wake;
    atomic_store(&reader->wake, wake);
    pthread_mutex_unlock(&ring->setup);
    return true;
}

/* ---- reading ---- */

static bool take_guaranteed(struct oct_ring_reader *reader, uint64_t *slot)
{
    const uint64_t next = atomic_load(&reader->next);
    if (next == atomic_load(&reader->ring->published))
        return false;
    *slot = next;
    atomic_store(&reader->next, next + 1);
    return true;
}

/* A reader that fell behind, or whose slot was overwritten, skips to the newest. Which buffer a
 * slot has is found before the floor is looked at: at that moment the slot was still there. */
static bool take_lossy(struct oct_ring_reader *reader, uint64_t *slot)
{
    struct oct_ring *ring = reader->ring;
    const uint64_t next = atomic_load(&reader->next);
    for (;;) {
        const uint64_t published = atomic_load(&ring->published);
        if (next == published)
            return false;
        const bool skips = published - next > 1 && (published - next > reader->most_behind ||
                                                    next < atomic_load(&ring->floor));
        const uint64_t taken = skips ? published - 1 : next;
        const unsigned buffer = oct_ring_buffer(ring, taken);
        atomic_store(&reader->held, taken + 1);
        if (taken < atomic_load(&ring->floor))
            continue;
        reader->buffer = buffer;
        atomic_fetch_add(&reader->skipped, taken - next);
        atomic_store(&reader->next, taken + 1);
        *slot = taken;
        return true;
    }
}

static enum oct_err try_read(struct oct_ring_reader *reader, uint64_t *slot)
{
    /* Before the slots: what was published before the end is read. */
    const bool is_closed = atomic_load(&reader->ring->is_closed);
    const bool took = atomic_load(&reader->kind) == LOSSY ? take_lossy(reader, slot)
                                                          : take_guaranteed(reader, slot);
    return took ? OCT_OK : is_closed ? OCT_E_CLOSED : OCT_E_AGAIN;
}

enum oct_err oct_ring_read(struct oct_ring_reader *reader, uint64_t timeout_us, uint64_t *slot)
{
    struct bell *bell = reader->ring->bell;
    atomic_bool *is_woken = &bell->is_woken[reader->number];
    enum oct_err e = try_read(reader, slot);
    if (e == OCT_E_AGAIN && timeout_us > 0) {
        const struct timespec deadline = oct_clock_deadline(timeout_us);
        for (bool in_time = true; e == OCT_E_AGAIN && in_time;) {
            unsigned n = oct_event_prepare(&bell->news);
            e = try_read(reader, slot);
            in_time = e == OCT_E_AGAIN && !atomic_load(is_woken) &&
                      oct_event_wait_until(&bell->news, n, &deadline);
            oct_event_end(&bell->news);
        }
        e = e == OCT_E_AGAIN ? try_read(reader, slot) : e;
    }
    atomic_store(is_woken, false);
    return e;
}

void oct_ring_release(struct oct_ring_reader *reader)
{
    if (atomic_load(&reader->kind) == LOSSY) {
        atomic_store(&reader->held, 0); /* for which no writer waits */
        return;
    }
    atomic_fetch_add(&reader->released, 1);
    oct_event_notify(&reader->ring->room);
}

void oct_ring_keep(const struct oct_ring_reader *reader, struct oct_ring_reader *keeper)
{
    assert(keeper->number > reader->number);
    keeper->buffer = reader->buffer;
    atomic_store(&keeper->held, atomic_load(&reader->held));
}

bool oct_ring_keeps(const struct oct_ring_reader *keeper)
{
    return atomic_load(&keeper->held) != 0;
}

void oct_ring_let_go(struct oct_ring_reader *reader)
{
    oct_ring_destroy(reader->ring);
}

void oct_ring_wake(struct oct_ring_reader *reader)
{
    wake_reader(reader->ring->bell, reader->number);
}

/* ---- counts ---- */

uint64_t oct_ring_next(const struct oct_ring_reader *reader)
{
    return atomic_load(&reader->next);
}

uint64_t oct_ring_behind(const struct oct_ring_reader *reader)
{
    const uint64_t next = atomic_load(&reader->next); /* first: it never passes the other */
    return atomic_load(&reader->ring->published) - next;
}

uint64_t oct_ring_skipped(const struct oct_ring_reader *reader)
{
    return atomic_load(&reader->skipped);
}

/* The oldest slot that the reader holds or may still get once the floor is there. */
static uint64_t oldest_of(const struct oct_ring_reader *r, uint64_t published)
{
    if (atomic_load(&r->kind) == GUARANTEED)
        return atomic_load(&r->released);
    const uint64_t next = atomic_load(&r->next), held = atomic_load(&r->held);
    if (held)
        return held - 1;
    const bool skips = published > next + 1 && published - next > r->most_behind;
    return skips ? published - 1 : next;
}

static uint64_t oldest(const struct oct_ring *ring, uint64_t published)
{
    const unsigned n = atomic_load(&ring->n_readers);
    uint64_t below = published;
    for (unsigned i = 0; i < n; i++) {
        const struct oct_ring_reader *r = &ring->readers[i];
        if (atomic_load(&r->kind) == ABSENT)
            continue;
        const uint64_t its = oldest_of(r, published);
        if (its < below)
            below = its;
    }
    return below;
}

/* Lossy readers are kept from what was found, as by the writer; then those that were just taking
 * something of it are seen. */
uint64_t oct_ring_done_below(struct oct_ring *ring)
{
    const uint64_t published = atomic_load(&ring->published);
    const uint64_t floor = raise(&ring->floor, oldest(ring, published));
    const uint64_t below = oldest(ring, published);
    return raise(&ring->done_below, below < floor ? below : floor);
}

uint64_t oct_ring_published(const struct oct_ring *ring)
{
    return atomic_load(&ring->published);
}
