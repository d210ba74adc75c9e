/* Recordings that are nothing but samples [B-scan][A-line][sample], little-endian, whose geometry
 * another file has. One thread uses one at a time. */
#ifndef OCT_FORMATS_INPUT_FRAMED_H
#define OCT_FORMATS_INPUT_FRAMED_H

#include "formats/input/input.h"

struct oct_framed;

/* n: V, M, N, which the caller has compared with probe->size; sample_bytes: 1, 2, 4, unsigned.
 * Fills n_samples, n_lines, n_bscans, bits and scaling of *facts. *framed is NULL on error. */
enum oct_err oct_framed_open(struct oct_framed **framed, const struct oct_input_probe *probe,
                             const uint64_t n[3], unsigned sample_bytes,
                             const struct oct_input_wish *wish, struct oct_input_facts *facts,
                             struct oct_error *err);
enum oct_err oct_framed_read(struct oct_framed *framed, uint64_t i, uint16_t *spectra,
                             struct oct_error *err);
void oct_framed_close(struct oct_framed *framed); /* NULL is fine */

#endif
