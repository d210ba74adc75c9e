#include "config/cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool read_u32(const char **text, char end, uint32_t *value)
{
    char *rest;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    const unsigned long long n = strtoull(*text, &rest, 10);
    if (errno || n > UINT32_MAX || *rest != end)
        return false;
    *value = (uint32_t)n;
    *text = rest + (end != '\0');
    return true;
}

bool oct_config_cells_roi(const char *text, struct oct_cells_roi *roi)
{
    struct oct_cells_roi r = {.width = 0};
    *roi = r;
    if (!*text)
        return true;
    if (!read_u32(&text, ',', &r.x) || !read_u32(&text, ',', &r.y) ||
        !read_u32(&text, ',', &r.width) || !read_u32(&text, '\0', &r.height) || r.width == 0 ||
        r.height == 0)
        return false;
    *roi = r;
    return true;
}

bool oct_config_cells_flow(const char *text, bool *has_flow, double *deg)
{
    char *rest;
    *has_flow = false;
    *deg = 0;
    if (!*text)
        return true;
    /* Plain decimals, as of all keys: strtod would also take hexadecimal. */
    if (strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    const double value = strtod(text, &rest);
    if (rest == text || *rest || !(value >= -360 && value <= 360))
        return false;
    *has_flow = true;
    *deg = value;
    return true;
}

void oct_config_cells(const struct oct_config *config, struct oct_cells_settings *settings)
{
    *settings = (struct oct_cells_settings){
        .enabled = config->cells.enabled,
        .source = (enum oct_cells_source)config->cells.source,
        .radius_um = config->cells.radius_um,
        .radius_px = config->cells.radius_px,
        .threshold = config->cells.threshold,
        .smooth = config->cells.smooth,
        .floor = config->cells.floor,
        .polarity = (enum oct_cells_polarity)config->cells.polarity,
        .detect_every = config->cells.detect_every,
        .memory = config->cells.memory,
        .min_frames = config->cells.min_frames,
        .max_speed_um_s = config->cells.max_speed_um_s,
        .cpu = config->pipeline.backend == OCT_BACKEND_CPU,
        .enface = {.projection = (enum oct_projection)config->analysis.enface_projection,
                   .slab_first = config->analysis.enface_slab_first,
                   .slab_last = config->analysis.enface_slab_last},
    };
    oct_config_cells_roi(config->cells.roi, &settings->roi);
    oct_config_cells_flow(config->cells.flow_deg, &settings->has_flow, &settings->flow_deg);
}
