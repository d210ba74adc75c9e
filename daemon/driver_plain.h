/* The camera driver's fault in words for whoever sits at the window: what the camera sends and what
 * is expected, in numbers, without names of fields, sockets or keys of the configuration. Those are
 * in driver.h's words, for whoever writes the driver. Pure. */
#ifndef OCT_DAEMON_DRIVER_PLAIN_H
#define OCT_DAEMON_DRIVER_PLAIN_H

#include "config/config.h"
#include "pipeline/ingest/driver_watch.h"

/* "the camera sends lines of 1000 samples, 1024 are expected"; "" for OCT_DRIVER_RIGHT. `message`:
 * the newest of the fault. */
void oct_driver_plain(unsigned fault, const struct oct_driver_message *message,
                      const struct oct_config *config, char *text, size_t n_bytes);

#endif
