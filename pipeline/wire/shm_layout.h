/* Lines in through shared memory (ingest.endpoint=shm://NAME): what daemon and driver agree on.
 *
 *     /dev/shm/octd.NAME   [ header ][ one word a slot ][ slot 0 ][ slot 1 ] ...   the daemon's
 *     /dev/shm/octd.NAME.sock   ipc: header (wire.h) + descriptor, no samples      the daemon's
 *
 * A slot is given from hand to hand, and every word has one writer at a time:
 *
 *     driver: locks the slot's byte of the file, finds the word 0, writes lines, sets the word to
 *             the message's tag, unlocks the byte, sends header and descriptor
 *     daemon: finds the tag in the word; keeps the slot as a place of the raw ring (word 2) until
 *             the last reader has done with it, or copies the lines; then sets the word to 0
 *
 * Who lives is told by locks on bytes of the file, which the system lets go of when a process dies,
 * however it dies: byte 0 is locked by the daemon as long as it serves the file, byte 1 + s by the
 * driver that writes into slot s; so a driver that dies writing leaves a free slot. A tag whose
 * message never comes is cleared by the daemon. The bytes need not exist. Locks are those of open
 * file descriptions (F_OFD_SETLK); plain fcntl locks of other processes go together with them.
 *
 * Numbers are little-endian, as everywhere on the wire. Part of the camera driver's library. */
#ifndef OCT_PIPELINE_WIRE_SHM_LAYOUT_H
#define OCT_PIPELINE_WIRE_SHM_LAYOUT_H

#include "pipeline/base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_SHM_SCHEME "shm://"
#define OCT_SHM_MAGIC "OCTSHM01" /* 8 bytes; written last */
#define OCT_SHM_NAME_BYTES 65    /* of NAME, with the NUL */
#define OCT_SHM_PATH_BYTES 128   /* of what is made of it */
#define OCT_SHM_PAGE 4096u       /* header; slots begin on such boundaries */
#define OCT_SHM_MOST_SLOTS 4096u
#define OCT_SHM_DESCRIPTOR_BYTES 16
#define OCT_SHM_KEPT 2 /* a slot's word while the daemon reads the lines there; tags are odd */
#define OCT_SHM_DAEMON_BYTE 0
#define OCT_SHM_SLOT_BYTE(slot) (1 + (uint64_t)(slot))

/* At the start of the file. */
struct oct_shm_header {
    char magic[8];
    uint64_t instance;     /* random: another one each time the daemon makes the file */
    uint32_t n_slots;      /* their words stand at byte OCT_SHM_PAGE, 8 bytes each */
    uint32_t n_samples;    /* the daemon's camera.samples */
    uint64_t slot_bytes;   /* of lines in one slot */
    uint64_t slots_offset; /* of slot 0; slot s follows after s * slot_bytes */
};

/* Where a block lies: the second part of its message, u64 instance, u32 slot, 4 zero bytes. */
struct oct_shm_descriptor {
    uint64_t instance;
    uint32_t slot;
};

/* Whether text starts with shm://. */
bool oct_shm_is_endpoint(const char *text);

/* What is wrong with the name behind shm://, as the end of a sentence, or NULL. */
const char *oct_shm_bad_name(const char *name);

/* "/octd.NAME", for shm_open, and "ipc:///dev/shm/octd.NAME.sock". Buffers of OCT_SHM_PATH_BYTES;
 * the name was checked. */
void oct_shm_object_of(const char *name, char *object);
void oct_shm_socket_of(const char *name, char *endpoint);

/* Slot 0's offset, and the file's size (0: more than a file can hold). */
uint64_t oct_shm_slots_offset(uint32_t n_slots);
uint64_t oct_shm_file_bytes(uint32_t n_slots, uint64_t slot_bytes);

/* What a slot's word holds while its lines are on their way; always odd. */
uint64_t oct_shm_tag(uint32_t epoch, uint64_t sequence);

void oct_shm_descriptor_encode(const struct oct_shm_descriptor *d,
                               uint8_t bytes[OCT_SHM_DESCRIPTOR_BYTES]);
/* False: not 16 bytes, or the last four are not zero. */
bool oct_shm_descriptor_decode(struct oct_shm_descriptor *d, const void *bytes, size_t n_bytes);

/* Takes the lock on a byte; false: another has it. */
bool oct_shm_lock(int fd, uint64_t byte);
void oct_shm_unlock(int fd, uint64_t byte);
/* Whether another open of the file holds the lock. */
bool oct_shm_is_locked(int fd, uint64_t byte);

#endif
