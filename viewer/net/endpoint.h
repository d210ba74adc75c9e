/* From the endpoint a daemon binds to the one a client connects to. */
#ifndef OCT_VIEWER_NET_ENDPOINT_H
#define OCT_VIEWER_NET_ENDPOINT_H

#include <stddef.h>

#define OCT_VIEW_ADDRESS_BYTES 1200

/* "tcp://" "*" ":PORT" is where a daemon binds; a client finds it on its own machine. Any other
 * endpoint stays as it is. */
void oct_view_endpoint_connectable(const char *endpoint, char *text, size_t text_bytes);

#endif
