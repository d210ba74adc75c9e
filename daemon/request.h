/* Bounds a control request before it is parsed: cJSON allocates for every value, and the main loop
 * does nothing else meanwhile. */
#ifndef OCT_DAEMON_REQUEST_H
#define OCT_DAEMON_REQUEST_H

#include "pipeline/base/err.h"

#include <stddef.h>

#define OCT_REQUEST_BYTES 8192 /* the longest value, every byte of it escaped, and its key */
#define OCT_REQUEST_VALUES 64  /* and names: what stands between commas, colons and brackets */
#define OCT_REQUEST_DEPTH 4    /* a command is an object without another in it */

/* Checks in one pass over at most OCT_REQUEST_BYTES bytes, without allocating. OCT_E_FORMAT: the
 * request is longer, wider or deeper than that, no UTF-8, or holds a zero, as a byte or as an
 * escape, behind which text would not be checked. The parser reports all other faults. */
enum oct_err oct_request_check(const char *bytes, size_t n_bytes, struct oct_error *err);

#endif
