#define _GNU_SOURCE /* MADV_POPULATE_WRITE, MAP_NORESERVE */
#include "pipeline/record/keeper.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/pause.h"
#include "pipeline/base/thread.h"
#include "pipeline/flow/slots.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POLL_US 100000u
#define LEAST_SLOTS 8u
#define WAIT_FOR_ROOM_US 2000u
#define NOTHING_HELD UINT64_MAX
#define PAGE ((size_t)4096)
/* Memory is mapped and unmapped in slices. While the kernel works on one large mapping, every other
 * thread of the process blocks when it allocates or touches a new page: with 5 GB in one piece,
 * control replies came 1.4 s late. */
#define SLICE ((size_t)1 << 20)
/* A recorder that has released nothing for so long waits for the disk. */
#define STUCK_NS UINT64_C(500000000)

struct oct_keeper {
    struct oct_keeper_options options;
    struct oct_ring_reader *raw_reader, *image_reader;
    uint64_t first_slot; /* both readers have all slots from here on */
    pthread_t thread;
    unsigned char *memory; /* [n_slots][slot_bytes] */
    size_t slot_bytes, pixels_at, mask_at, complex_at;
    uint64_t n_slots;
    struct oct_kept *kept; /* [n_slots] */
    uint32_t *places;      /* [n_slots], the first n_free: memory that nobody uses; NULL: history */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t news;  /* head, passed or closed has changed, or oct_keeper_wake was called */
    pthread_cond_t room;  /* next_read has grown, or a copy has ended */
    uint64_t head, next_read;
    uint64_t held, held_end; /* still to be copied: held .. held_end - 1; NOTHING_HELD */
    uint64_t held_first;     /* where the hold began */
    bool copying;            /* number `held` is being copied */
    uint64_t first_payload;  /* all from here on have it */
    uint64_t passed;         /* slots of the rings taken or dropped */
    uint64_t n_dropped, n_paused;
    struct oct_pause pause;
    uint64_t released_ns; /* when the recorder last released a B-scan, or could at the earliest */
    uint64_t n_free;
    bool wanted, draining, closed, wake;
};

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

uint64_t oct_kept_bytes(const struct oct_geometry *g, bool has_complex)
{
    return whole_pages(oct_geometry_spectra_bytes(g)) + whole_pages(oct_geometry_image_bytes(g)) +
           whole_pages(g->n_lines) + (has_complex ? whole_pages(oct_geometry_complex_bytes(g)) : 0);
}

/* ---- places ----
 *
 * With a history all memory is in use and slot n lies at place n. Without a history each B-scan
 * takes the place that was released last. So memory that is never needed is never touched, and
 * while the recorder keeps up, the few places in use stay in the processor's cache. */

static void set_place(const struct oct_keeper *k, struct oct_kept *kept, uint64_t place)
{
    unsigned char *slot = k->memory + place * k->slot_bytes;
    kept->raw.spectra = (uint16_t *)(void *)slot;
    kept->image.pixels = slot + k->pixels_at;
    kept->raw.line_valid = slot + k->mask_at;
    if (k->options.complex_of)
        kept->image.complex_values = (float *)(void *)(slot + k->complex_at);
}

/* A free place exists, since no more B-scans wait than there are slots. Lock held. */
static void take_place(struct oct_keeper *k, struct oct_kept *kept)
{
    if (k->places)
        set_place(k, kept, k->places[--k->n_free]);
}

/* Lock held. */
static void give_back_place(struct oct_keeper *k, const struct oct_kept *kept)
{
    const unsigned char *slot = (const unsigned char *)kept->raw.spectra;
    if (k->places)
        k->places[k->n_free++] = (uint32_t)((size_t)(slot - k->memory) / k->slot_bytes);
}

/* ---- putting ---- */

/* Frees the slot of number `head`. Returns false if the recorder has not read what it holds. Lock
 * held. */
static bool make_room(struct oct_keeper *k)
{
    if (k->head - k->next_read >= k->n_slots)
        return false;
    uint64_t lost = k->head - k->n_slots; /* meant only when head >= n_slots */
    while (k->head >= k->n_slots && k->held <= lost) {
        if (!k->copying)
            k->held = k->held + 1 < k->held_end ? k->held + 1 : NOTHING_HELD;
        else
            pthread_cond_wait(&k->room, &k->lock);
    }
    return true;
}

static void copy_payload(const struct oct_keeper *k, struct oct_kept *to,
                         const struct oct_raw_frame *raw, const struct oct_image_frame *image)
{
    const struct oct_geometry *g = &k->options.plan->geometry;
    to->raw.format = raw->format;
    memcpy(to->raw.spectra, raw->spectra, oct_raw_bytes(raw, g));
    memcpy(to->raw.line_valid, raw->line_valid, g->n_lines);
    if (image->status != OCT_OK)
        return;
    memcpy(to->image.pixels, image->pixels, oct_geometry_image_bytes(g));
    if (to->image.complex_values && image->complex_values)
        memcpy(to->image.complex_values, image->complex_values, oct_geometry_complex_bytes(g));
}

/* Complex values are there from some B-scans behind the request for them on. */
static bool is_whole(const struct oct_keeper *k, const struct oct_image_frame *image)
{
    return !k->options.complex_of || image->complex_values || image->status != OCT_OK;
}

/* raw NULL: the spectra had left the ring before this reader was added. Returns false if there is
 * no room. */
static bool put(struct oct_keeper *k, uint64_t slot, const struct oct_raw_frame *raw,
                const struct oct_image_frame *image)
{
    pthread_mutex_lock(&k->lock);
    bool ok = make_room(k);
    bool copy = raw && is_whole(k, image) && (k->wanted || k->options.history_bscans > 0);
    struct oct_kept *to = &k->kept[k->head % k->n_slots];
    if (ok)
        take_place(k, to);
    pthread_mutex_unlock(&k->lock);
    if (!ok)
        return false;
    /* No other thread reads this slot until head has grown. */
    to->raw.info = to->image.info = image->info;
    to->image.status = image->status;
    to->image.lo = image->lo;
    to->image.hi = image->hi;
    to->has_payload = copy;
    to->slot = slot;
    if (copy)
        copy_payload(k, to, raw, image);
    pthread_mutex_lock(&k->lock);
    k->head++;
    k->passed = slot + 1;
    if (!copy)
        k->first_payload = k->head;
    pthread_cond_broadcast(&k->news);
    pthread_mutex_unlock(&k->lock);
    return true;
}

/* Lock held. The caller reads the clock before it takes the lock, so that a thread that asks for
 * the status never waits for a system call. */
static void note_time(struct oct_keeper *k, uint64_t now_ns)
{
    if (oct_pause_look(&k->pause, now_ns))
        k->released_ns = now_ns;
}

/* Called often by the keeper's thread, which waits for 100 ms at most and never for a disk. */
static void look_for_pause(struct oct_keeper *k)
{
    uint64_t now_ns = oct_pause_clock_ns();
    pthread_mutex_lock(&k->lock);
    note_time(k, now_ns);
    pthread_mutex_unlock(&k->lock);
}

static void drop(struct oct_keeper *k, uint64_t slot, const struct oct_bscan_info *info)
{
    uint64_t n_lines = k->options.plan->geometry.n_lines, now_ns = oct_pause_clock_ns();
    pthread_mutex_lock(&k->lock);
    note_time(k, now_ns);
    bool paused = oct_pause_is_felt(&k->pause, now_ns) && now_ns < k->released_ns + STUCK_NS;
    k->n_dropped++;
    k->n_paused += paused;
    pthread_mutex_unlock(&k->lock);
    oct_loss_log_add(k->options.losses, &(struct oct_gap){
                                            .acquisition = info->acquisition,
                                            .first_line = info->number * n_lines,
                                            .n_lines = n_lines,
                                            .reason = paused ? OCT_LOSS_PAUSED : OCT_LOSS_DISK_SLOW,
                                        });
    pthread_mutex_lock(&k->lock);
    k->passed = slot + 1; /* after the loss log: who reads `passed` finds the reason there */
    pthread_cond_broadcast(&k->news);
    pthread_mutex_unlock(&k->lock);
}

/* Waits a moment for room and returns true while waiting does no harm: the image ring is less than
 * half full, or the daemon ends. */
static bool wait_for_room(struct oct_keeper *k)
{
    bool behind = oct_ring_behind(k->image_reader) * 2 >= oct_ring_n_slots(k->options.images);
    pthread_mutex_lock(&k->lock);
    bool wait = k->draining || !behind;
    if (wait && k->head - k->next_read >= k->n_slots)
        oct_condition_wait_us(&k->room, &k->lock, WAIT_FOR_ROOM_US);
    pthread_mutex_unlock(&k->lock);
    look_for_pause(k);
    return wait;
}

/* ---- the thread ---- */

/* Returns the spectra of a picture. They were published before it, so they are in the ring. */
static const struct oct_raw_frame *read_raw(struct oct_keeper *k, uint64_t slot)
{
    for (;;) {
        uint64_t raw_slot;
        while (oct_ring_read(k->raw_reader, POLL_US, &raw_slot) == OCT_E_AGAIN)
            look_for_pause(k);
        if (raw_slot == slot)
            return oct_raw_slot(k->options.raw, slot, &k->options.plan->geometry);
        oct_ring_release(k->raw_reader); /* its picture came before this reader was added */
    }
}

static void take(struct oct_keeper *k, uint64_t slot)
{
    const struct oct_image_frame *image = oct_image_slot(k->options.images, slot);
    const struct oct_raw_frame *raw = slot >= k->first_slot ? read_raw(k, slot) : NULL;
    bool kept;
    while (!(kept = put(k, slot, raw, image)) && wait_for_room(k))
        ;
    if (!kept)
        drop(k, slot, &image->info);
    if (raw)
        oct_ring_release(k->raw_reader);
}

static void *run(void *argument)
{
    struct oct_keeper *k = argument;
    for (;;) {
        uint64_t slot;
        enum oct_err e = oct_ring_read(k->image_reader, POLL_US, &slot);
        look_for_pause(k);
        if (e == OCT_E_CLOSED)
            break;
        if (e)
            continue;
        take(k, slot);
        oct_ring_release(k->image_reader);
    }
    pthread_mutex_lock(&k->lock);
    k->closed = true;
    pthread_cond_broadcast(&k->news);
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- life ---- */

/* Touches all pages, slice by slice. Returns false if the system has not so much memory. */
static bool touch(unsigned char *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SLICE) {
        size_t n = bytes - at < SLICE ? bytes - at : SLICE;
        if (madvise(memory + at, n, MADV_POPULATE_WRITE) == 0)
            continue;
        if (errno != EINVAL) /* kernels before 5.14 return EINVAL */
            return false;
        for (size_t page = 0; page < n; page += PAGE)
            *(volatile unsigned char *)(memory + at + page) = 0;
    }
    return true;
}

static void give_back_memory(struct oct_keeper *k)
{
    size_t bytes = k->slot_bytes * (size_t)k->n_slots;
    for (size_t at = 0; k->memory && at < bytes; at += SLICE)
        munmap(k->memory + at, bytes - at < SLICE ? bytes - at : SLICE);
}

static enum oct_err get_memory(struct oct_keeper *k, struct oct_error *err)
{
    const struct oct_geometry *g = &k->options.plan->geometry;
    bool history = k->options.history_bscans > 0;
    k->pixels_at = whole_pages(oct_geometry_spectra_bytes(g));
    k->mask_at = k->pixels_at + whole_pages(oct_geometry_image_bytes(g));
    k->complex_at = k->mask_at + whole_pages(g->n_lines);
    k->slot_bytes = (size_t)oct_kept_bytes(g, k->options.complex_of);
    size_t bytes = k->slot_bytes * (size_t)k->n_slots;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (history ? 0 : MAP_NORESERVE), -1, 0);
    bool is_there = memory != MAP_FAILED;
    if (is_there) {
        k->memory = memory;
        k->kept = calloc((size_t)k->n_slots, sizeof(*k->kept));
        k->places = history ? NULL : calloc((size_t)k->n_slots, sizeof(*k->places));
    }
    if (is_there && history)
        is_there = touch(memory, bytes);
    if (!is_there || !k->kept || (!history && !k->places))
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "no memory to keep %llu B-scans (%.1f MiB): lower record.last_s or "
                        "record.buffer_s",
                        (unsigned long long)k->n_slots, (double)bytes / 1048576);
    for (uint64_t i = 0; i < k->n_slots; i++)
        set_place(k, &k->kept[i], i);
    for (uint64_t i = 0; k->places && i < k->n_slots; i++)
        k->places[k->n_free++] = (uint32_t)(k->n_slots - 1 - i); /* the lowest on top */
    return OCT_OK;
}

static enum oct_err start_thread(struct oct_keeper *k, struct oct_error *err)
{
    k->raw_reader = oct_ring_reader_create(k->options.raw, true, 0);
    k->image_reader = oct_ring_reader_create(k->options.images, true, 0);
    if (!k->raw_reader || !k->image_reader)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the recorder");
    uint64_t raw = oct_ring_next(k->raw_reader), image = oct_ring_next(k->image_reader);
    k->first_slot = k->passed = raw > image ? raw : image;
    return oct_thread_start(&k->thread, "octd-keeper", run, k, "keeper thread", err);
}

static void keeper_free(struct oct_keeper *k)
{
    oct_ring_reader_destroy(k->raw_reader);
    oct_ring_reader_destroy(k->image_reader);
    give_back_memory(k);
    pthread_cond_destroy(&k->news);
    pthread_cond_destroy(&k->room);
    pthread_mutex_destroy(&k->lock);
    free(k->places);
    free(k->kept);
    free(k);
}

/* Of all B-scans while some are copied. False: there is no memory for them. */
static bool ask_complex(const struct oct_keeper *k, bool wanted)
{
    return !k->options.complex_of ||
           oct_pipeline_ask(k->options.complex_of, OCT_LENT_COMPLEX, OCT_RECORDER_ASKER,
                            wanted || k->options.history_bscans > 0 ? UINT_MAX : 0);
}

enum oct_err oct_keeper_create(struct oct_keeper **out, const struct oct_keeper_options *options,
                               struct oct_error *err)
{
    *out = NULL;
    struct oct_keeper *k = calloc(1, sizeof(*k));
    if (!k)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the recorder");
    k->options = *options;
    if (k->options.buffer_bscans < LEAST_SLOTS)
        k->options.buffer_bscans = LEAST_SLOTS;
    k->n_slots = (uint64_t)k->options.buffer_bscans + k->options.history_bscans;
    k->held = NOTHING_HELD;
    pthread_mutex_init(&k->lock, NULL);
    oct_condition_init(&k->news);
    oct_condition_init(&k->room);
    enum oct_err e = get_memory(k, err);
    if (!e && !ask_complex(k, true))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for complex values (output.sample)");
    if (!e)
        ask_complex(k, false);
    e = e ? e : start_thread(k, err);
    if (e) {
        keeper_free(k);
        return e;
    }
    *out = k;
    return OCT_OK;
}

void oct_keeper_destroy(struct oct_keeper *k)
{
    if (!k)
        return;
    pthread_join(k->thread, NULL);
    keeper_free(k);
}

void oct_keeper_want(struct oct_keeper *k, bool wanted)
{
    pthread_mutex_lock(&k->lock);
    k->wanted = wanted;
    pthread_mutex_unlock(&k->lock);
    ask_complex(k, wanted);
}

void oct_keeper_drain(struct oct_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->draining = true;
    pthread_cond_broadcast(&k->room);
    pthread_mutex_unlock(&k->lock);
}

/* ---- the recorder's side ---- */

enum oct_err oct_keeper_read(struct oct_keeper *k, uint64_t timeout_us,
                             const struct oct_kept **kept, uint64_t *passed)
{
    enum oct_err e = OCT_E_AGAIN;
    pthread_mutex_lock(&k->lock);
    if (k->next_read == k->head && !k->closed && !k->wake)
        oct_condition_wait_us(&k->news, &k->lock, timeout_us);
    k->wake = false;
    if (k->next_read < k->head) {
        *kept = &k->kept[k->next_read % k->n_slots];
        e = OCT_OK;
    } else if (k->closed) {
        e = OCT_E_CLOSED;
    }
    *passed = k->passed;
    pthread_mutex_unlock(&k->lock);
    return e;
}

void oct_keeper_release(struct oct_keeper *k)
{
    uint64_t now_ns = oct_pause_clock_ns();
    pthread_mutex_lock(&k->lock);
    give_back_place(k, &k->kept[k->next_read % k->n_slots]);
    k->next_read++;
    /* The program may have paused since the clock was read: note_time knows a later time then. */
    k->released_ns = now_ns > k->released_ns ? now_ns : k->released_ns;
    pthread_cond_broadcast(&k->room);
    pthread_mutex_unlock(&k->lock);
}

void oct_keeper_wake(struct oct_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->wake = true;
    pthread_cond_broadcast(&k->news);
    pthread_mutex_unlock(&k->lock);
}

uint64_t oct_keeper_first_slot(const struct oct_keeper *k)
{
    return k->first_slot;
}

/* ---- the saver's side ---- */

/* The oldest of the newest history_bscans. Lock held. */
static uint64_t history_start(const struct oct_keeper *k)
{
    uint64_t n = k->options.history_bscans;
    uint64_t start = k->head > n ? k->head - n : 0;
    return start > k->first_payload ? start : k->first_payload;
}

uint32_t oct_keeper_hold(struct oct_keeper *k, struct oct_bscan_info *infos, uint16_t *format)
{
    pthread_mutex_lock(&k->lock);
    uint64_t start = history_start(k), n = k->head - start;
    k->held = n ? start : NOTHING_HELD;
    k->held_first = start;
    k->held_end = k->head;
    for (uint64_t i = 0; i < n; i++) {
        const struct oct_raw_frame *raw = &k->kept[(start + i) % k->n_slots].raw;
        if (infos)
            infos[i] = raw->info;
        if (format)
            *format = i == 0 || raw->format == *format ? raw->format : OCT_LINES_U16;
    }
    pthread_mutex_unlock(&k->lock);
    return (uint32_t)n;
}

enum oct_err oct_keeper_copy(struct oct_keeper *k, struct oct_kept *kept, uint32_t *index)
{
    pthread_mutex_lock(&k->lock);
    bool some = k->held != NOTHING_HELD;
    *index = (uint32_t)((some ? k->held : k->held_end) - k->held_first);
    k->copying = some;
    const struct oct_kept *from = some ? &k->kept[k->held % k->n_slots] : NULL;
    pthread_mutex_unlock(&k->lock);
    if (!from)
        return OCT_E_CLOSED;
    struct oct_kept to = *from;
    to.raw.spectra = kept->raw.spectra;
    to.raw.line_valid = kept->raw.line_valid;
    to.image.pixels = kept->image.pixels;
    to.image.complex_values = kept->image.complex_values;
    *kept = to;
    copy_payload(k, kept, &from->raw, &from->image);
    pthread_mutex_lock(&k->lock);
    k->copying = false;
    k->held = k->held + 1 < k->held_end ? k->held + 1 : NOTHING_HELD;
    pthread_cond_broadcast(&k->room);
    pthread_mutex_unlock(&k->lock);
    return OCT_OK;
}

void oct_keeper_let_go(struct oct_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->held = NOTHING_HELD;
    pthread_cond_broadcast(&k->room);
    pthread_mutex_unlock(&k->lock);
}

void oct_keeper_get_status(struct oct_keeper *k, struct oct_keeper_status *status)
{
    uint64_t now_ns = oct_pause_clock_ns();
    pthread_mutex_lock(&k->lock);
    uint64_t start = history_start(k);
    *status = (struct oct_keeper_status){
        .buffer_bscans = k->options.buffer_bscans,
        .history_bscans = k->options.history_bscans,
        .n_waiting = (uint32_t)(k->head - k->next_read),
        .n_history = (uint32_t)(k->head - start),
        .bytes = k->slot_bytes * k->n_slots,
        .n_dropped = k->n_dropped,
        .n_paused = k->n_paused,
        .n_pauses = k->pause.n,
        .pause_ns = k->pause.length_ns,
        .catches_up = oct_pause_is_felt(&k->pause, now_ns),
        .next_slot = k->passed,
        .is_full = k->head - k->next_read >= k->n_slots,
    };
    if (k->head > start && k->options.history_bscans > 0)
        status->history_ns = k->kept[(k->head - 1) % k->n_slots].raw.info.arrival_ns -
                             k->kept[start % k->n_slots].raw.info.arrival_ns;
    pthread_mutex_unlock(&k->lock);
}
