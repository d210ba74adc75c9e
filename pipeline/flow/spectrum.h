/* Spectra out (topic "spectrum"): one A-line of a B-scan as the camera saw it, a few times a
 * second, so that a viewer can show whether the camera is well lit. Three parts as for pictures:
 * topic, JSON header, samples (u16, little-endian). No sockets here. */
#ifndef OCT_PIPELINE_FLOW_SPECTRUM_H
#define OCT_PIPELINE_FLOW_SPECTRUM_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_TOPIC_SPECTRUM "spectrum"
#define OCT_SPECTRUM_HEADER_BYTES 512 /* more than any header we write */

struct oct_spectrum_header {
    uint64_t frame_num;   /* of the B-scan, within the acquisition */
    uint32_t line;        /* of the B-scan */
    uint32_t n_samples;   /* N */
    uint32_t limit;       /* the largest sample there can be: 2^bits - 1 */
    uint64_t n_saturated; /* samples of the B-scan at the limit */
};

/* Writes the JSON text (NUL-terminated); returns its length, 0 if it did not fit. */
size_t oct_spectrum_encode(const struct oct_spectrum_header *header, char *json, size_t json_bytes);

/* Parses and checks untrusted JSON against the size of the payload. OCT_E_FORMAT says what is
 * wrong. Unknown keys are ignored. */
enum oct_err oct_spectrum_decode(struct oct_spectrum_header *header, const char *json,
                                 size_t json_bytes, size_t payload_bytes, struct oct_error *err);

#endif
