/* octctl background from a recording. */
#include "formats/recording.h"
#include "pipeline/flow/background.h"
#include "tools/control/background.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where neither a file nor --set says how many bits a sample has, the recording's own configuration
 * does, unless it is damaged. */
static unsigned bits_of(const struct oct_recording *recording, const struct oct_config *config)
{
    const char *text = oct_recording_config_text(recording);
    unsigned bits = config->camera.bits;
    if (!text || oct_config_is_set(config, "camera.bits"))
        return bits;
    struct oct_config *own = calloc(1, sizeof(*own));
    if (!own)
        return bits;
    oct_config_init(own);
    if (oct_config_load_text(own, text, "the recording's configuration", NULL) == OCT_OK)
        bits = own->camera.bits;
    free(own);
    return bits;
}

/* Adds the first n_most B-scans that came. */
static enum oct_err add_bscans(struct oct_background *b, struct oct_recording *recording,
                               uint64_t n_most, struct oct_error *err)
{
    const size_t n = (size_t)b->geometry.n_lines * b->geometry.n_samples;
    struct oct_raw_frame frame = {.spectra = malloc(n * sizeof(uint16_t)),
                                  .line_valid = malloc(b->geometry.n_lines)};
    enum oct_err e = frame.spectra && frame.line_valid
                         ? OCT_OK
                         : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a B-scan");
    for (uint64_t i = 0; !e && i < oct_recording_n_bscans(recording) && b->n_bscans < n_most; i++) {
        bool valid;
        e = oct_recording_read(recording, i, &frame, &valid, err);
        if (!e && valid)
            oct_background_add(b, &frame);
    }
    free(frame.spectra);
    free(frame.line_valid);
    return e;
}

static enum oct_err take_line(struct oct_background_line *line, const struct oct_background *b,
                              struct oct_error *err)
{
    line->n = b->geometry.n_samples;
    line->n_bscans = (double)b->n_bscans;
    line->n_lines = (double)b->n_lines;
    line->n_saturated = (double)b->n_saturated;
    line->values = malloc(line->n * sizeof(*line->values));
    if (!line->values)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
    for (uint32_t i = 0; i < line->n; i++)
        line->values[i] = oct_background_at(b, i);
    return OCT_OK;
}

enum oct_err oct_background_of_recording(struct oct_background_line *line,
                                         struct oct_config *config, const char *path,
                                         const struct oct_background_options *options,
                                         struct oct_error *err)
{
    struct oct_recording *recording;
    struct oct_background b = {.sums = NULL};
    enum oct_err e = oct_recording_open(&recording, path, config, err);
    if (e)
        return e;
    snprintf(line->source, sizeof(line->source), "%s", path);
    const struct oct_geometry g = {.n_samples = oct_recording_n_samples(recording),
                                   .n_lines = oct_recording_n_lines(recording)};
    e = oct_background_init(&b, &g, bits_of(recording, config), err);
    if (!e)
        e = add_bscans(&b, recording,
                       options->n_bscans ? options->n_bscans : OCT_BACKGROUND_MOST_BSCANS, err);
    if (!e && options->n_bscans > b.n_bscans)
        e = oct_fail(err, OCT_E_STATE,
                     "%s has %" PRIu64 " B-scans with A-lines, and --bscans wants %" PRIu64, path,
                     b.n_bscans, options->n_bscans);
    if (!e)
        e = oct_background_check(&b, err);
    if (!e)
        e = take_line(line, &b, err);
    oct_background_finish(&b);
    oct_recording_close(recording);
    return e;
}
