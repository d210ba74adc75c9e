/* Recordings that are closed, opened so that no two programs change one at once. */
#ifndef OCT_PIPELINE_VOLUME_CLOSED_H
#define OCT_PIPELINE_VOLUME_CLOSED_H

#include "pipeline/base/err.h"

#include <stdbool.h>

/* *fd: the file, which no program writes as long as it is open; with to_change it may be written,
 * and others who change a closed recording wait, ten seconds at most. Who reads goes on reading.
 * The caller closes it, after a failure too, when it is not below 0.
 *
 * OCT_E_STATE: it is still being written (.part), another program writes it, or it was replaced
 * meanwhile. OCT_E_FORMAT: no plain file; OCT_E_IO. */
enum oct_err oct_volume_closed_open(int *fd, const char *path, bool to_change,
                                    struct oct_error *err);

#endif
