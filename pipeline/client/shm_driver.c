#define _GNU_SOURCE /* shm_open */
#include "pipeline/client/shm_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The driver's own record of a slot. */
struct slot {
    bool claimed;     /* its byte of the file is locked: lines are being written */
    uint64_t tag;     /* posted with this; 0: not */
    uint32_t n_lines; /* posted */
};

struct oct_shm_driver {
    char object[OCT_SHM_PATH_BYTES];
    int fd; /* -1: not attached */
    unsigned char *memory;
    size_t bytes;
    struct oct_shm_header header; /* as it was at the attaching, checked */
    struct slot *slots;           /* [n_slots] */
};

enum oct_err oct_shm_driver_create(struct oct_shm_driver **out, const char *name,
                                   struct oct_error *err)
{
    *out = NULL;
    const char *bad = oct_shm_bad_name(name);
    if (bad)
        return oct_fail(err, OCT_E_ARG, "endpoint 'shm://%s' %s", name, bad);
    struct oct_shm_driver *d = calloc(1, sizeof(*d));
    if (!d)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    d->fd = -1;
    oct_shm_object_of(name, d->object);
    *out = d;
    return OCT_OK;
}

void oct_shm_driver_destroy(struct oct_shm_driver *d)
{
    if (!d)
        return;
    oct_shm_driver_detach(d);
    free(d);
}

bool oct_shm_driver_is_attached(const struct oct_shm_driver *d)
{
    return d->memory != NULL;
}

bool oct_shm_driver_is_served(const struct oct_shm_driver *d)
{
    return d->memory && oct_shm_is_locked(d->fd, OCT_SHM_DAEMON_BYTE);
}

void oct_shm_driver_detach(struct oct_shm_driver *d)
{
    if (d->memory)
        munmap(d->memory, d->bytes);
    if (d->fd >= 0)
        close(d->fd); /* the locks go with it */
    free(d->slots);
    d->memory = NULL;
    d->slots = NULL;
    d->fd = -1;
}

/* The header must describe a file of this size: a file that is being created, or another program's,
 * does not. */
static bool header_fits(const struct oct_shm_header *h, uint64_t file_bytes)
{
    return memcmp(h->magic, OCT_SHM_MAGIC, sizeof(h->magic)) == 0 && h->n_slots > 0 &&
           h->n_slots <= OCT_SHM_MOST_SLOTS && h->slot_bytes % OCT_SHM_PAGE == 0 &&
           h->slots_offset == oct_shm_slots_offset(h->n_slots) &&
           oct_shm_file_bytes(h->n_slots, h->slot_bytes) == file_bytes && file_bytes > 0;
}

static enum oct_err map_file(struct oct_shm_driver *d, struct oct_error *err)
{
    struct stat st;
    if (fstat(d->fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "/dev/shm%s", d->object);
    if (!oct_shm_is_locked(d->fd, OCT_SHM_DAEMON_BYTE))
        return oct_fail(err, OCT_E_AGAIN, "/dev/shm%s: no daemon serves it", d->object);
    if (pread(d->fd, &d->header, sizeof(d->header), 0) != (ssize_t)sizeof(d->header) ||
        d->header.magic[0] == '\0') /* the daemon is still creating it */
        return oct_fail(err, OCT_E_AGAIN, "/dev/shm%s: no daemon serves it yet", d->object);
    if (!header_fits(&d->header, (uint64_t)st.st_size))
        return oct_fail(err, OCT_E_FORMAT,
                        "/dev/shm%s is not of this version of octd: use the library that came "
                        "with the daemon",
                        d->object);
    d->bytes = (size_t)st.st_size;
    void *memory = mmap(NULL, d->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
    if (memory == MAP_FAILED)
        return oct_fail_errno(err, OCT_E_IO, errno, "/dev/shm%s: cannot map it", d->object);
    d->slots = calloc(d->header.n_slots, sizeof(*d->slots));
    d->memory = memory;
    return d->slots ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

enum oct_err oct_shm_driver_attach(struct oct_shm_driver *d, struct oct_error *err)
{
    if (d->memory)
        return OCT_OK;
    d->fd = shm_open(d->object, O_RDWR | O_CLOEXEC, 0);
    if (d->fd < 0 && errno == ENOENT)
        return oct_fail(err, OCT_E_AGAIN, "/dev/shm%s: no daemon has made it", d->object);
    if (d->fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "/dev/shm%s: cannot open it", d->object);
    enum oct_err e = map_file(d, err);
    if (e)
        oct_shm_driver_detach(d);
    return e;
}

uint64_t oct_shm_driver_slot_bytes(const struct oct_shm_driver *d)
{
    return d->header.slot_bytes;
}

uint32_t oct_shm_driver_n_slots(const struct oct_shm_driver *d)
{
    return d->header.n_slots;
}

void *oct_shm_driver_lines(struct oct_shm_driver *d, uint32_t slot)
{
    return d->memory + d->header.slots_offset + slot * d->header.slot_bytes;
}

static _Atomic(uint64_t) *word_of(const struct oct_shm_driver *d, uint32_t slot)
{
    return (_Atomic(uint64_t) *)(void *)(d->memory + OCT_SHM_PAGE + slot * sizeof(uint64_t));
}

static bool is_empty(const struct oct_shm_driver *d, uint32_t slot)
{
    return atomic_load_explicit(word_of(d, slot), memory_order_acquire) == 0;
}

/* Takes the lowest free slot: the one used last is still in the cache. */
enum oct_err oct_shm_driver_claim(struct oct_shm_driver *d, uint32_t *slot)
{
    for (uint32_t k = 0; k < d->header.n_slots; k++) {
        if (d->slots[k].claimed || !is_empty(d, k) || !oct_shm_lock(d->fd, OCT_SHM_SLOT_BYTE(k)))
            continue;
        if (!is_empty(d, k)) { /* another driver was faster, and has posted */
            oct_shm_unlock(d->fd, OCT_SHM_SLOT_BYTE(k));
            continue;
        }
        d->slots[k] = (struct slot){.claimed = true};
        *slot = k;
        return OCT_OK;
    }
    return OCT_E_AGAIN;
}

void oct_shm_driver_unclaim(struct oct_shm_driver *d, uint32_t slot)
{
    if (d->slots[slot].claimed)
        oct_shm_unlock(d->fd, OCT_SHM_SLOT_BYTE(slot));
    d->slots[slot].claimed = false;
}

void oct_shm_driver_post(struct oct_shm_driver *d, uint32_t slot, uint64_t tag, uint32_t n_lines,
                         uint8_t descriptor[OCT_SHM_DESCRIPTOR_BYTES])
{
    const struct oct_shm_descriptor where = {.instance = d->header.instance, .slot = slot};
    oct_shm_descriptor_encode(&where, descriptor);
    d->slots[slot].tag = tag;
    d->slots[slot].n_lines = n_lines;
    atomic_store_explicit(word_of(d, slot), tag, memory_order_release);
    oct_shm_driver_unclaim(d, slot); /* from now on the slot's word keeps others away */
}

void oct_shm_driver_unpost(struct oct_shm_driver *d, uint32_t slot)
{
    d->slots[slot].tag = 0;
    atomic_store_explicit(word_of(d, slot), 0, memory_order_release);
}

uint64_t oct_shm_driver_pending(const struct oct_shm_driver *d, uint64_t *n_lines)
{
    uint64_t n = 0;
    *n_lines = 0;
    for (uint32_t k = 0; d->memory && k < d->header.n_slots; k++)
        if (d->slots[k].tag &&
            atomic_load_explicit(word_of(d, k), memory_order_acquire) == d->slots[k].tag) {
            n++;
            *n_lines += d->slots[k].n_lines;
        }
    return n;
}
