/* Shared memory as a source of lines; watches and repairs the file (shm_store.h) and the socket's
 * name.
 *
 * Every program that may open them may damage them. The damage is noticed within a second, repaired
 * at most once a second, and logged:
 *
 * | harm                                   | cure                                                |
 * |----------------------------------------|-----------------------------------------------------|
 * | the file is cut short                  | let go at once, made anew; drivers find the new one |
 * | it was removed, another has its name   | made anew; then the old one is let go               |
 * | header overwritten, size changed       | written again in place; drivers go on               |
 * | the socket's file removed or replaced  | bound again; drivers that are connected go on       |
 * | a symbolic link has the file's name    | left alone until it is gone: it may lead anywhere   |
 *
 * A file that another octd serves under the name is left alone.
 *
 * One thread calls everything but the counts. */
#ifndef OCT_PIPELINE_INGEST_SHM_SOURCE_H
#define OCT_PIPELINE_INGEST_SHM_SOURCE_H

#include "pipeline/base/err.h"
#include "pipeline/ingest/shm_store.h"
#include "pipeline/net/door.h"

struct oct_shm_source;

/* Makes the file; the options and their texts are copied. Errors as oct_shm_store_create. */
enum oct_err oct_shm_source_create(struct oct_shm_source **source,
                                   const struct oct_shm_options *options, struct oct_error *err);

/* Binds the PULL socket that brings the descriptors. The caller owns it and closes it before
 * destroy. */
enum oct_err oct_shm_source_bind(struct oct_shm_source *source, void *zmq_context,
                                 struct oct_door *door, void **socket, struct oct_error *err);

/* Removes the file and the socket's name if they are still its own. NULL is fine. */
void oct_shm_source_destroy(struct oct_shm_source *source);

/* Returns the store; NULL: there is none now. Each look and each release of a block may replace
 * it. */
struct oct_shm_store *oct_shm_source_store(struct oct_shm_source *source);

/* Call after a block was read: drops a memory that was found damaged. */
void oct_shm_source_check(struct oct_shm_source *source);

/* Many times a second. drained: no message waits. */
void oct_shm_source_look_after(struct oct_shm_source *source, bool drained);

/* Any thread. Slots taken back from drivers that died; repairs. */
uint64_t oct_shm_source_reclaimed(const struct oct_shm_source *source);
uint64_t oct_shm_source_mended(const struct oct_shm_source *source);

#endif
