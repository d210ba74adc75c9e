/* Opens ZeroMQ sockets with the options that octd needs. */
#ifndef OCT_PIPELINE_NET_ZSOCKET_H
#define OCT_PIPELINE_NET_ZSOCKET_H

#include "pipeline/base/err.h"
#include "pipeline/net/door.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_ENDPOINT_BYTES 1024

/* Whether only this machine can reach the endpoint: ipc, inproc, shm, 127.0.0.0/8 or ::1 as
 * numbers. The name of an interface may stand for any address and counts as reachable. */
bool oct_zsocket_is_local(const char *endpoint);

/* OCT_E_CONFIG: the endpoint `key` can be reached from other machines, but no keys are
 * configured. */
enum oct_err oct_zsocket_check(const char *endpoint, const char *key, bool guarded,
                               struct oct_error *err);

/* A socket of `type` with linger 0, a bounded queue (messages) in both directions and a bounded
 * message size, bound to the endpoint. `key` names the config key in messages. `bound` (of
 * OCT_ENDPOINT_BYTES) receives the endpoint as bound. The door guards it; with a NULL door it is
 * plain, and then only a local endpoint is bound. Returns NULL on error. */
void *oct_zsocket_bind(void *context, int type, const char *endpoint, const char *key, int queue,
                       int64_t max_message_bytes, struct oct_door *door, char *bound,
                       struct oct_error *err);

/* For an ipc endpoint that this socket is bound to and whose file is gone: creates the file again.
 * Existing connections stay open. OCT_E_IO: another program has the name. */
enum oct_err oct_zsocket_bind_again(void *socket, const char *endpoint, const char *key,
                                    struct oct_error *err);

#endif
