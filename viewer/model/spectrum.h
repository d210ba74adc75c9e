/* One A-line as the camera saw it: the stream's topic "spectrum" (docs/streams.md). */
#ifndef OCT_VIEWER_MODEL_SPECTRUM_H
#define OCT_VIEWER_MODEL_SPECTRUM_H

#include "pipeline/base/err.h"
#include "pipeline/flow/spectrum.h"

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is none. */
struct oct_view_spectrum {
    uint16_t *sample; /* [n_samples]; owned */
    uint32_t n_samples, capacity;
    uint32_t limit;       /* the largest sample a camera of these bits gives */
    uint64_t n_saturated; /* samples of the whole B-scan that reached it */
    uint64_t frame_num;
    uint32_t line;       /* of the B-scan */
    uint64_t arrival_ns; /* 0: none came */
};

/* Fills it from a message's header and payload, both untrusted. OCT_E_FORMAT says what is wrong;
 * then it is as it was. The caller sets arrival_ns. */
enum oct_err oct_view_spectrum_set(struct oct_view_spectrum *spectrum, const char *json,
                                   size_t json_bytes, const void *samples, size_t n_bytes,
                                   struct oct_error *err);

void oct_view_spectrum_finish(struct oct_view_spectrum *spectrum);

#endif
