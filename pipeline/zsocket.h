/* Opening a ZeroMQ socket the way octd wants it. */
#ifndef OCT_PIPELINE_ZSOCKET_H
#define OCT_PIPELINE_ZSOCKET_H

#include "pipeline/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_ENDPOINT_BYTES 1024

/* A socket of `type` with linger 0, a bounded queue (messages) in both directions and a bounded
 * message size, bound to the endpoint. `key` names the config key in messages. `bound` (of
 * OCT_ENDPOINT_BYTES) receives the endpoint as bound. NULL on error. */
void *oct_zsocket_bind(void *context, int type, const char *endpoint, const char *key, int queue,
                       int64_t max_message_bytes, char *bound, struct oct_error *err);

#endif
