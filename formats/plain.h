/* Plain samples: [B][M][N] of file.sample between file.header_bytes and file.trailer_bytes, in the
 * geometry of the configuration. Private to this room. */
#ifndef OCT_FORMATS_PLAIN_H
#define OCT_FORMATS_PLAIN_H

#include "config/config.h"
#include "formats/input/array.h"

/* Fills facts->n_bscans (all of the file), bits and scaling. OCT_E_FORMAT: the size does not fit
 * (says by how much), or the samples look like others (plain_check.h). */
enum oct_err oct_plain_open(struct oct_input_array **array, const struct oct_input_probe *probe,
                            const struct oct_config *config, const struct oct_input_wish *wish,
                            struct oct_input_facts *facts, struct oct_error *err);

#endif
