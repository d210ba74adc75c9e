/* A recording as an input of octctl export: what it says of itself, without its name, its folder
 * and its configuration's text. A volume file is read by `reader`, any other one by `recording`
 * (export_recording.h). Private to tools/export_*. */
#ifndef OCT_TOOLS_EXPORT_INPUT_H
#define OCT_TOOLS_EXPORT_INPUT_H

#include "config/config.h"
#include "formats/recording.h"
#include "pipeline/base/sha256.h"
#include "pipeline/volume/volume.h"

#include <signal.h>

struct oct_export_input {
    char *path;                       /* to open; of standard input /dev/stdin */
    struct oct_volume_reader *reader; /* of a volume file; else NULL */
    struct oct_recording *recording;  /* of all others; else NULL */
    struct oct_volume_facts own;      /* of `recording`: what a volume file would say */
    const struct oct_volume_facts *facts;
    const char *scaling;       /* how samples became u16; "": they were. oct_input_facts */
    bool has_config;           /* it embeds one */
    struct oct_config *config; /* the embedded one, the user's keys over it; else the user's, and
                                  what oct_recording_open takes from the file */
    char uid[33];              /* 32 hexadecimal digits */
};

/* "-" is standard input, all of which is kept (spool.h) before it is opened; *cancel, unless NULL,
 * ends that. *input is empty on error. Errors as oct_volume_open, oct_recording_open and
 * oct_spool_stdin. */
enum oct_err oct_export_input_open(struct oct_export_input *input, const char *path,
                                   const struct oct_config *config,
                                   const volatile sig_atomic_t *cancel, struct oct_error *err);
void oct_export_input_close(struct oct_export_input *input); /* an empty one too */

/* Ends the sum and makes the uid of it. */
void oct_export_input_sign(struct oct_export_input *input, struct oct_sha256 *sum);

/* "dB", "counts^2"; "": the file has no configuration that says so. */
const char *oct_export_input_unit(const struct oct_export_input *input);

/* Mean time from B-scan to B-scan among rows first .. last - 1, by the camera's clock; NaN:
 * unknown. Of a volume file. */
double oct_export_input_bscan_s(const struct oct_export_input *input, uint32_t first,
                                uint32_t last);

#endif
