/* Lines in through shared memory: the daemon's side (shm_layout.h draws it).
 *
 * Nothing in the memory is trusted: a driver may write anything anywhere in it at any time,
 * truncate the file or die. The daemon keeps its own copy of all that it needs; a driver that
 * changes lines while they are read damages only its own data. A slot whose message never arrives
 * is taken back.
 *
 * One thread calls everything (the ingest thread once it runs); slots that are kept are read by
 * others. Memory of a file that was cut short reads as zeros, in every thread; a GPU that has
 * adopted it reads what lay there. */
#ifndef OCT_PIPELINE_INGEST_SHM_STORE_H
#define OCT_PIPELINE_INGEST_SHM_STORE_H

#include "pipeline/base/err.h"
#include "pipeline/flow/engine.h"
#include "pipeline/wire/wire.h"

#include <stdatomic.h>
#include <stdbool.h>

struct oct_shm_store;

struct oct_shm_options {
    const char *name;  /* behind shm:// */
    const char *group; /* whose members may be drivers too; "": the daemon's own user alone */
    uint32_t n_slots;  /* at most OCT_SHM_MOST_SLOTS */
    uint32_t n_samples;
    uint64_t slot_bytes;                 /* rounded up to pages */
    const struct oct_memory_ops *memory; /* is to adopt it; NULL: none. Borrowed */
};

/* Makes the file and locks it. One that a dead daemon left is removed first; OCT_E_IO when a living
 * one or another user has the name, OCT_E_NO_MEMORY when /dev/shm has no room. The options are
 * copied. */
enum oct_err oct_shm_store_create(struct oct_shm_store **store,
                                  const struct oct_shm_options *options, struct oct_error *err);

/* Gives the socket that brings the descriptors the same owner and mode as the memory. */
enum oct_err oct_shm_store_share(const struct oct_shm_store *store, const char *socket_path,
                                 struct oct_error *err);

/* Removes the file and frees; the memory stays until the last slot that is kept was given back.
 * NULL is fine. */
void oct_shm_store_destroy(struct oct_shm_store *store);

/* A block found by its message. */
struct oct_shm_block {
    const void *payload;
    size_t bytes;
    bool in_slot;
    uint32_t slot;
    uint64_t tag;
};

/* Begins the look at a message's block: checks header and descriptor (the message's two parts) and
 * points to the lines. oct_shm_store_release must follow when the lines have been copied, whatever
 * the result; or, where it was good and the block is in a slot, oct_shm_store_keep. A message
 * without lines has an empty second part and no slot. */
enum oct_bad oct_shm_store_look(struct oct_shm_store *store, const void *header,
                                size_t header_bytes, const void *descriptor,
                                size_t descriptor_bytes, struct oct_shm_block *block);

/* Returns whether the file was truncated, so that reads return zeros: destroy this store and create
 * another. */
bool oct_shm_store_is_broken(const struct oct_shm_store *store);

/* Returns whether the name means another file now, or none: attached drivers go on, no other can
 * attach. Create another store, which takes the name if it is not served, then destroy this one. */
bool oct_shm_store_is_unnamed(const struct oct_shm_store *store);

/* How often header or size was repaired in place; attached drivers go on. */
uint64_t oct_shm_store_mended(const struct oct_shm_store *store);

/* Gives the block's slot back to the drivers. */
void oct_shm_store_release(struct oct_shm_store *store, const struct oct_shm_block *block);

/* Whether it was adopted, if it was to be. */
bool oct_shm_store_is_adopted(const struct oct_shm_store *store);

/* Keeps the lines where they are, to be read there until the slot is given back as often as it was
 * kept, which may be after destroy. The driver sees that its block was taken. */
void oct_shm_store_keep(struct oct_shm_store *store, const struct oct_shm_block *block);
void oct_shm_store_give_back(struct oct_shm_store *store, uint32_t slot);

/* Reports that no message waits: a message sent some time ago has arrived or never will. */
void oct_shm_store_drained(struct oct_shm_store *store);

/* Checks whether the file is still named and whole, and repairs what can be repaired. Takes back
 * slots whose message has not arrived for two seconds although none waited: their driver died
 * before sending. Does nothing if called again within one second. */
void oct_shm_store_reclaim(struct oct_shm_store *store, uint64_t now_ns);

/* Slots taken back so far. */
uint64_t oct_shm_store_reclaimed(const struct oct_shm_store *store);

#endif
