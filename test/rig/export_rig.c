#include "test/rig/export_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct oct_export_options export_rig_options = {.force = true};

void export_rig_fill(enum oct_export_sample sample, uint64_t first, uint64_t n, void *samples)
{
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t i = first + k;
        if (sample == OCT_EXPORT_U8)
            ((uint8_t *)samples)[k] = (uint8_t)((37 * i + 11) % 251);
        else if (sample == OCT_EXPORT_U16)
            ((uint16_t *)samples)[k] = (uint16_t)((9973 * i + 7) % 65521);
        else
            ((float *)samples)[k] = i == 3 ? NAN : (float)(0.25 * (double)i - 4);
    }
}

static enum oct_err read_plane(void *context, uint32_t plane, void *pixels, struct oct_error *err)
{
    const struct export_rig *rig = context;
    const uint32_t *dims = rig->source.form.dims;
    const uint64_t n = (uint64_t)dims[1] * dims[2];
    if (plane == rig->fails_at)
        return oct_fail(err, OCT_E_IO, "the source: plane %u cannot be read", plane);
    export_rig_fill(rig->source.form.sample, plane * n, n, pixels);
    return OCT_OK;
}

void export_rig_init(struct export_rig *rig, const char *axes, const uint32_t dims[3],
                     const double um[3], enum oct_export_sample sample)
{
    struct oct_export_form form = {.sample = sample,
                                   .name = "bscans",
                                   .quantity = "intensity",
                                   .unit = "dB",
                                   .lo = NAN,
                                   .hi = NAN,
                                   .eye = "",
                                   .pseudonym = "",
                                   .start_time = "",
                                   .software = "octd 0.1.0",
                                   .engine = "cpu",
                                   .plane_s = NAN,
                                   .refractive_index = NAN,
                                   .acquisition_uid = "0123456789abcdef"};
    *rig = (struct export_rig){.fails_at = UINT32_MAX};
    sscanf(axes, "%15s %15s %15s", rig->words[0], rig->words[1], rig->words[2]);
    for (int i = 0; i < 3; i++) {
        form.dims[i] = dims[i];
        form.um[i] = um[i];
        form.axes[i] = rig->words[i];
    }
    form.is_upright = strcmp(rig->words[2], "depth") != 0;
    rig->source = (struct oct_export_source){.form = form, .context = rig, .read = read_plane};
}
