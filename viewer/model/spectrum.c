#include "viewer/model/picture.h"

#include <stdlib.h>
#include <string.h>

enum oct_err oct_view_spectrum_set(struct oct_view_spectrum *spectrum, const char *json,
                                   size_t json_bytes, const void *samples, size_t n_bytes,
                                   struct oct_error *err)
{
    struct oct_spectrum_header header;
    enum oct_err code = oct_spectrum_decode(&header, json, json_bytes, n_bytes, err);

    if (code)
        return code;
    if (header.n_samples > spectrum->capacity) {
        uint16_t *grown = malloc(n_bytes);
        if (!grown)
            return oct_fail(err, OCT_E_NO_MEMORY, "spectrum: out of memory");
        free(spectrum->sample);
        spectrum->sample = grown;
        spectrum->capacity = header.n_samples;
    }
    memcpy(spectrum->sample, samples, n_bytes);
    spectrum->n_samples = header.n_samples;
    spectrum->limit = header.limit;
    spectrum->n_saturated = header.n_saturated;
    spectrum->frame_num = header.frame_num;
    spectrum->line = header.line;
    return OCT_OK;
}

void oct_view_spectrum_finish(struct oct_view_spectrum *spectrum)
{
    free(spectrum->sample);
    memset(spectrum, 0, sizeof(*spectrum));
}
