#include "tools/files/export_input.h"

#include "formats/spool.h"
#include "tools/files/export_recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_u64(struct oct_sha256 *sum, uint64_t value)
{
    oct_sha256_add(sum, &value, sizeof(value));
}

/* Bytes of one B-scan, for files that say little else. */
static enum oct_err add_bscan(struct oct_sha256 *sum, const struct oct_export_input *in, uint32_t v,
                              struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    const size_t n_line = f->depth ? f->depth * (f->sample_type == OCT_SAMPLE_U8 ? 1u : 4u)
                                   : f->n_samples * sizeof(uint16_t);
    unsigned char *bytes = malloc(f->n_lines * n_line), *came = malloc(f->n_lines);
    bool valid;
    enum oct_err e = OCT_OK;
    if (!bytes || !came) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for a B-scan", in->path);
    } else if (f->depth) {
        e = oct_volume_read_image(in->reader, v, bytes, &valid, err);
    } else {
        struct oct_raw_frame frame = {.spectra = (uint16_t *)(void *)bytes, .line_valid = came};
        e = oct_volume_read_spectra(in->reader, v, &frame, &valid, err);
    }
    if (!e)
        oct_sha256_add(sum, bytes, f->n_lines * n_line);
    free(bytes);
    free(came);
    return e;
}

void oct_export_input_sign(struct oct_export_input *input, struct oct_sha256 *sum)
{
    unsigned char digest[OCT_SHA256_BYTES];
    oct_sha256_end(sum, digest);
    for (size_t i = 0; i < sizeof(input->uid) / 2; i++)
        snprintf(input->uid + 2 * i, 3, "%02x", digest[i]);
}

/* Of what was measured and when; never of labels, which may be corrected, nor of the file's
 * name. */
static enum oct_err find_uid(struct oct_export_input *in, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    struct oct_sha256 sum;
    enum oct_err e = OCT_OK;
    bool has_bscan = false;
    oct_sha256_init(&sum);
    oct_sha256_add(&sum, f->start_time, strlen(f->start_time) + 1);
    add_u64(&sum, f->n_bscans);
    add_u64(&sum, f->n_lines);
    for (uint32_t v = 0; v < f->n_bscans && !e; v++) {
        const struct oct_volume_row row = oct_volume_row(in->reader, v);
        const uint64_t numbers[] = {row.valid,  row.acquisition,    row.sequence,     row.time_ns,
                                    row.number, row.spectra_crc32c, row.bscans_crc32c};
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
            add_u64(&sum, numbers[i]);
        if (row.valid && !has_bscan) {
            e = add_bscan(&sum, in, v, err);
            has_bscan = true;
        }
    }
    oct_export_input_sign(in, &sum);
    return e;
}

static enum oct_err read_config(struct oct_export_input *in, const struct oct_config *user,
                                struct oct_error *err)
{
    const char *text = oct_volume_config_text(in->reader);
    in->config = malloc(sizeof(*in->config));
    if (!in->config)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->path);
    oct_config_init(in->config);
    in->has_config = text && oct_config_load_text(in->config, text, in->path, NULL) == OCT_OK;
    if (text && !in->has_config)
        oct_config_init(in->config);
    oct_config_overlay(in->config, user);
    return OCT_OK;
}

static enum oct_err open_volume(struct oct_export_input *in, const struct oct_config *user,
                                struct oct_error *err)
{
    enum oct_err e = oct_volume_open(&in->reader, in->path, err);
    if (e)
        return e;
    in->facts = oct_volume_facts(in->reader);
    e = read_config(in, user, err);
    return e ? e : find_uid(in, err);
}

enum oct_err oct_export_input_open(struct oct_export_input *input, const char *path,
                                   const struct oct_config *config,
                                   const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    const bool is_pipe = strcmp(path, "-") == 0;
    *input =
        (struct oct_export_input){.path = strdup(is_pipe ? "/dev/stdin" : path), .scaling = ""};
    if (!input->path)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = is_pipe ? oct_spool_stdin(cancel, err) : OCT_OK;
    if (!e)
        e = oct_recording_is_our_volume(input->path, config)
                ? open_volume(input, config, err)
                : oct_export_recording_open(input, path, config, err);
    if (e)
        oct_export_input_close(input);
    return e;
}

void oct_export_input_close(struct oct_export_input *input)
{
    oct_volume_reader_destroy(input->reader);
    oct_recording_close(input->recording);
    free(input->config);
    free(input->path);
    *input = (struct oct_export_input){0};
}

const char *oct_export_input_unit(const struct oct_export_input *input)
{
    if (!input->has_config)
        return "";
    return input->config->pipeline.log ? "dB" : "counts^2";
}

double oct_export_input_bscan_s(const struct oct_export_input *input, uint32_t first, uint32_t last)
{
    uint64_t first_ns = 0, last_ns = 0;
    uint32_t from = 0, to = 0;
    for (uint32_t v = first; v < last; v++) {
        const struct oct_volume_row row = oct_volume_row(input->reader, v);
        if (!row.valid || row.time_ns == 0)
            continue;
        if (row.time_ns < last_ns) /* the clock ran backwards: another acquisition */
            return NAN;
        if (first_ns == 0) {
            first_ns = row.time_ns;
            from = v;
        }
        last_ns = row.time_ns;
        to = v;
    }
    return to > from && last_ns > first_ns ? (double)(last_ns - first_ns) * 1e-9 / (to - from)
                                           : NAN;
}
