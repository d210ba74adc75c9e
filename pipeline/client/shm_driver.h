/* Lines in through shared memory: the camera driver's side (shm_layout.h draws it). Knows files,
 * slots and locks; messages are the client's. Part of the camera driver's library.
 *
 * One thread uses a driver at a time. */
#ifndef OCT_PIPELINE_CLIENT_SHM_DRIVER_H
#define OCT_PIPELINE_CLIENT_SHM_DRIVER_H

#include "pipeline/base/err.h"
#include "pipeline/wire/shm_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_shm_driver;

/* Makes a driver for shm://NAME; opens nothing yet. OCT_E_ARG: the name is malformed. */
enum oct_err oct_shm_driver_create(struct oct_shm_driver **driver, const char *name,
                                   struct oct_error *err);
void oct_shm_driver_destroy(struct oct_shm_driver *driver);

/* Opens the daemon's file. OCT_E_AGAIN: no daemon serves one now; OCT_E_IO, OCT_E_FORMAT: there is
 * one that cannot be used. Fine to call when attached. */
enum oct_err oct_shm_driver_attach(struct oct_shm_driver *driver, struct oct_error *err);
bool oct_shm_driver_is_attached(const struct oct_shm_driver *driver);

/* Whether the daemon of the file that is attached lives and serves it. */
bool oct_shm_driver_is_served(const struct oct_shm_driver *driver);

/* Detaches from the file. Blocks that were posted and not taken are lost. */
void oct_shm_driver_detach(struct oct_shm_driver *driver);

/* Of the attached file. */
uint64_t oct_shm_driver_slot_bytes(const struct oct_shm_driver *driver);
uint32_t oct_shm_driver_n_slots(const struct oct_shm_driver *driver);
void *oct_shm_driver_lines(struct oct_shm_driver *driver, uint32_t slot);

/* Takes a free slot; OCT_E_AGAIN: all are on their way or another driver's. unclaim: not used after
 * all. */
enum oct_err oct_shm_driver_claim(struct oct_shm_driver *driver, uint32_t *slot);
void oct_shm_driver_unclaim(struct oct_shm_driver *driver, uint32_t slot);

/* The lines are written and the message with this tag goes out next: fills its second part. */
void oct_shm_driver_post(struct oct_shm_driver *driver, uint32_t slot, uint64_t tag,
                         uint32_t n_lines, uint8_t descriptor[OCT_SHM_DESCRIPTOR_BYTES]);
/* The message could not be sent: the slot is free again. */
void oct_shm_driver_unpost(struct oct_shm_driver *driver, uint32_t slot);

/* What was posted and the daemon has not taken yet: slots, and the lines in them. */
uint64_t oct_shm_driver_pending(const struct oct_shm_driver *driver, uint64_t *n_lines);

#endif
