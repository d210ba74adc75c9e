/* Lines in through shared memory: a driver that follows the rules, and one that writes anywhere,
 * cuts the file short and sends any header and descriptor, against the daemon's real store. */
#define _GNU_SOURCE /* shm_open */
#include "pipeline/base/crc32c.h"
#include "pipeline/client/shm_driver.h"
#include "pipeline/ingest/shm_store.h"
#include "test/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 8, SLOTS = 3, SLOT_BYTES = 4096, MOST_STEPS = 32 };
#define NS_PER_S UINT64_C(1000000000)

struct rig {
    struct oct_shm_store *store;
    struct oct_shm_driver *driver;
    int fd; /* the stranger's */
    bool cut;
    uint64_t now_ns, sum;
    struct oct_shm_block kept[SLOTS];
    unsigned n_kept;
    struct oct_lines_header header;
    uint8_t descriptor[OCT_SHM_DESCRIPTOR_BYTES];
};

static void open_rig(struct rig *r)
{
    char name[OCT_SHM_NAME_BYTES], object[OCT_SHM_PATH_BYTES];
    struct oct_error err;
    snprintf(name, sizeof(name), "fuzz.%ld", (long)getpid());
    oct_shm_object_of(name, object);
    const struct oct_shm_options options = {
        .name = name, .group = "", .n_slots = SLOTS, .n_samples = N, .slot_bytes = SLOT_BYTES};
    *r = (struct rig){.now_ns = 10 * NS_PER_S};
    fuzz_must(!oct_shm_store_create(&r->store, &options, &err));
    fuzz_must(!oct_shm_driver_create(&r->driver, name, &err));
    r->fd = shm_open(object, O_RDWR | O_CLOEXEC, 0);
    fuzz_must(r->fd >= 0);
}

/* As the raw ring does when the last reader has done with it. */
static void give_back(struct rig *r, unsigned k)
{
    const struct oct_shm_block block = r->kept[k];
    r->sum += oct_crc32c(block.payload, block.bytes);
    r->kept[k] = r->kept[--r->n_kept];
    oct_shm_store_give_back(r->store, block.slot);
}

static void close_rig(struct rig *r)
{
    oct_shm_driver_destroy(r->driver);
    oct_shm_store_destroy(r->store); /* what is kept stays */
    while (r->n_kept)
        give_back(r, 0);
    close(r->fd);
}

/* The store looks, the lines are read as the assembler would, the slot goes back or is kept. */
static bool deliver(struct rig *r, const void *header, size_t header_bytes, const void *descriptor,
                    size_t descriptor_bytes, bool keep)
{
    struct oct_shm_block block;
    enum oct_bad bad =
        oct_shm_store_look(r->store, header, header_bytes, descriptor, descriptor_bytes, &block);
    fuzz_must(bad < OCT_N_BAD);
    if (bad == OCT_BAD_NONE) {
        fuzz_must(block.bytes <= SLOT_BYTES && (!block.in_slot || block.slot < SLOTS));
        r->sum += oct_crc32c(block.payload, block.bytes);
    }
    if (keep && bad == OCT_BAD_NONE && block.in_slot) {
        for (unsigned k = 0; k < r->n_kept; k++)
            fuzz_must(r->kept[k].slot != block.slot); /* nobody is lent what another has */
        oct_shm_store_keep(r->store, &block);
        r->kept[r->n_kept++] = block;
    } else {
        oct_shm_store_release(r->store, &block);
    }
    return !oct_shm_store_is_broken(r->store);
}

/* A driver of ours; touching the memory of a file that was cut short would kill it, not octd. */
static void post(struct rig *r, struct fuzz_input *in)
{
    struct oct_error err;
    uint32_t slot;
    if (r->cut || oct_shm_driver_attach(r->driver, &err) || oct_shm_driver_claim(r->driver, &slot))
        return;
    r->header = (struct oct_lines_header){.sequence = r->header.sequence + 1,
                                          .epoch = (uint32_t)fuzz_take(in, 1),
                                          .n_lines = fuzz_below(in, 40),
                                          .n_samples = fuzz_below(in, 4) ? N : fuzz_below(in, 256),
                                          .format = OCT_LINES_U16};
    memset(oct_shm_driver_lines(r->driver, slot), 7, SLOT_BYTES);
    if (fuzz_below(in, 8))
        oct_shm_driver_post(r->driver, slot, oct_shm_tag(r->header.epoch, r->header.sequence),
                            r->header.n_lines, r->descriptor);
    else
        oct_shm_driver_unclaim(r->driver, slot);
}

static bool send(struct rig *r, struct fuzz_input *in)
{
    uint8_t header[OCT_LINES_HEADER_BYTES], descriptor[OCT_SHM_DESCRIPTOR_BYTES + 4] = {0};
    size_t n = fuzz_below(in, 8) ? sizeof(r->descriptor) : fuzz_below(in, sizeof(descriptor) + 1);
    size_t n_header = fuzz_below(in, 8) ? sizeof(header) : fuzz_below(in, sizeof(header) + 1);
    oct_lines_encode(&r->header, header);
    memcpy(descriptor, r->descriptor, sizeof(r->descriptor));
    for (uint32_t damage = fuzz_below(in, 4); damage > 1; damage--) {
        header[fuzz_below(in, sizeof(header))] = (uint8_t)fuzz_take(in, 1);
        descriptor[fuzz_below(in, sizeof(r->descriptor))] = (uint8_t)fuzz_take(in, 1);
    }
    uint8_t *exact = malloc(n ? n : 1); /* a read beyond is then seen */
    fuzz_must(exact != NULL);
    memcpy(exact, descriptor, n);
    bool stands = deliver(r, header, n_header, exact, n, fuzz_below(in, 2));
    free(exact);
    return stands;
}

static void scribble(struct rig *r, struct fuzz_input *in)
{
    uint8_t bytes[16];
    size_t n = fuzz_below(in, sizeof(bytes)) + 1;
    off_t at = fuzz_below(in, 2) ? (off_t)fuzz_take(in, 2)
                                 : (off_t)OCT_SHM_PAGE + (off_t)fuzz_below(in, 8 * SLOTS);
    fuzz_fill(in, bytes, n);
    if (!r->cut)
        fuzz_must(pwrite(r->fd, bytes, n, at) == (ssize_t)n);
}

static void cut(struct rig *r, struct fuzz_input *in)
{
    oct_shm_driver_detach(r->driver);
    r->cut = true;
    fuzz_must(ftruncate(r->fd, fuzz_below(in, 6) * (off_t)2048) == 0);
}

/* False: the store says that it is broken; the daemon makes another then. */
static bool step(struct rig *r, struct fuzz_input *in)
{
    switch (fuzz_below(in, 8)) {
    case 0:
        scribble(r, in);
        return true;
    case 1:
        if (fuzz_below(in, 4) == 0)
            cut(r, in);
        return true;
    case 2:
        oct_shm_store_drained(r->store);
        r->now_ns += fuzz_below(in, 4) * NS_PER_S;
        oct_shm_store_reclaim(r->store, r->now_ns);
        return !oct_shm_store_is_broken(r->store);
    case 3:
        if (r->n_kept)
            give_back(r, fuzz_below(in, r->n_kept));
        else
            oct_shm_driver_detach(r->driver);
        return true;
    case 4:
        return send(r, in);
    case 5:
        post(r, in);
        return true;
    default:
        post(r, in);
        return send(r, in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct rig r;
    bool stands = true;
    open_rig(&r);
    for (int i = 0; stands && in.left > 0 && i < MOST_STEPS; i++) {
        stands = step(&r, &in);
        fuzz_must(stands || r.cut);
    }
    close_rig(&r);
    return 0;
}
