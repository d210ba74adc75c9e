/* A recording as an input of octctl export: what it says of itself, without its name, its folder
 * and its configuration's text. Private to tools/export_*. */
#ifndef OCT_TOOLS_EXPORT_INPUT_H
#define OCT_TOOLS_EXPORT_INPUT_H

#include "config/config.h"
#include "pipeline/volume/volume.h"

struct oct_export_input {
    char *path;
    struct oct_volume_reader *reader;
    const struct oct_volume_facts *facts;
    bool has_config;           /* it embeds one */
    struct oct_config *config; /* the embedded one, the user's keys over it; else the user's */
    char uid[33];              /* 32 hexadecimal digits */
};

/* *input is empty on error. Errors as oct_volume_open. */
enum oct_err oct_export_input_open(struct oct_export_input *input, const char *path,
                                   const struct oct_config *config, struct oct_error *err);
void oct_export_input_close(struct oct_export_input *input); /* an empty one too */

/* "dB", "counts^2"; "": the file has no configuration that says so. */
const char *oct_export_input_unit(const struct oct_export_input *input);

/* Mean time from B-scan to B-scan among rows first .. last - 1, by the camera's clock; NaN:
 * unknown. */
double oct_export_input_bscan_s(const struct oct_export_input *input, uint32_t first,
                                uint32_t last);

#endif
