/* The recording that octctl export reads: a volume file; B-scans that another device exported; or
 * another one (plain samples, a file of another program), whose spectra are all it has. */
#include "config/apply.h"
#include "formats/spool.h"
#include "formats/volumes.h"
#include "pipeline/base/sha256.h"
#include "pipeline/plan/geometry.h"
#include "tools/alloc.h"
#include "tools/files/export_values.h"

#include <inttypes.h>
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
    unsigned char *bytes = oct_alloc(f->n_lines, n_line), *came = oct_alloc(f->n_lines, 1);
    bool valid;
    enum oct_err e = OCT_OK;
    if (f->depth) {
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

/* Ends the sum and makes the uid of it. */
static void end_uid(struct oct_export_input *input, struct oct_sha256 *sum)
{
    unsigned char digest[OCT_SHA256_BYTES];
    oct_sha256_end(sum, digest);
    for (size_t i = 0; i < sizeof(input->uid) / 2; i++)
        snprintf(input->uid + 2 * i, 3, "%02x", digest[i]);
}

/* Of what was measured and when; never of labels, which may be corrected, nor of the file's
 * name. */
static enum oct_err find_uid_of_volume(struct oct_export_input *in, struct oct_error *err)
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
    end_uid(in, &sum);
    return e;
}

/* scan_bscans: of a volume of the scan, as the file says; 0: it does not. */
static void find_way(struct oct_export_input *in, uint32_t scan_bscans, uint64_t first_bscan)
{
    struct oct_config *its = oct_alloc(1, sizeof(*its));
    *its = *in->config;
    its->scan.lines = in->facts->n_lines;
    its->scan.bscans = in->facts->n_bscans;
    in->scan = oct_config_way_of_recording(its, &in->calibration, scan_bscans, first_bscan);
    free(its);
}

static void read_config(struct oct_export_input *in, const struct oct_config *user)
{
    const char *text = oct_volume_config_text(in->reader);
    in->config = oct_alloc(1, sizeof(*in->config));
    oct_config_init(in->config);
    in->has_config = text && oct_config_load_text(in->config, text, in->path, NULL) == OCT_OK;
    if (text && !in->has_config)
        oct_config_init(in->config);
    oct_config_overlay(in->config, user);
}

static enum oct_err open_volume(struct oct_export_input *in, const struct oct_config *user,
                                struct oct_error *err)
{
    const enum oct_err e = oct_volume_open(&in->reader, in->path, err);
    if (e)
        return e;
    in->facts = oct_volume_facts(in->reader);
    read_config(in, user);
    oct_volume_calibration(in->reader, &in->calibration, NULL);
    find_way(in, in->has_config ? in->config->scan.bscans : 0, oct_volume_first_bscan(in->reader));
    return find_uid_of_volume(in, err);
}

/* ---- a recording that is no volume file ---- */

static enum oct_err read_bscan(struct oct_recording *recording, uint64_t i, uint16_t *values,
                               uint8_t *came, struct oct_error *err)
{
    struct oct_raw_frame frame = {.spectra = values, .line_valid = came};
    bool valid; /* as every B-scan of what is no volume */
    return oct_recording_read(recording, i, &frame, &valid, err);
}

static void find_labels(struct oct_export_input *in, const char *eye)
{
    const struct oct_config *c = in->config;
    struct oct_volume_facts *f = &in->own;
    snprintf(f->eye, sizeof(f->eye), "%.7s", eye);
    snprintf(f->pseudonym, sizeof(f->pseudonym), "%.127s", c->record.pseudonym);
}

/* Lengths of 0 are unknown. Where nobody says how many B-scans a volume has, it is all of them. */
static void find_facts(struct oct_export_input *in)
{
    const struct oct_config *c = in->config;
    struct oct_volume_facts *f = &in->own;
    f->n_bscans = (uint32_t)oct_recording_n_bscans(in->recording);
    f->n_lines = oct_recording_n_lines(in->recording);
    f->n_samples = oct_recording_n_samples(in->recording);
    in->facts = f;
    find_way(in, oct_config_is_set(c, "scan.bscans") ? c->scan.bscans : 0, 0);
    const bool has_rows = oct_scan_is_raster(&in->scan) && c->scan.height_um > 0;
    const double length_um = oct_scan_length_um(in->scan.pattern, c->scan.width_um);
    f->spacing_um[0] = has_rows ? c->scan.height_um / in->scan.n_bscans : NAN;
    f->spacing_um[1] = length_um > 0 ? length_um / f->n_lines : NAN;
    f->spacing_um[2] = NAN;
    snprintf(f->start_time, sizeof(f->start_time), "%s", oct_recording_start_time(in->recording));
    snprintf(f->start_time_source, sizeof(f->start_time_source), "%s",
             oct_recording_start_time_source(in->recording));
    find_labels(in, c->record.eye);
}

/* Over when it was recorded, its size and the bytes of the first B-scan: neither its name nor
 * labels, nor when the file was changed: a copy is the same recording. */
static enum oct_err find_uid(struct oct_export_input *in, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    const uint64_t sizes[] = {f->n_bscans, f->n_lines};
    const size_t n = (size_t)f->n_lines * f->n_samples;
    struct oct_sha256 sum;
    uint16_t *values = oct_alloc(n, sizeof(*values));
    uint8_t *came = oct_alloc(f->n_lines, 1);
    const enum oct_err e = read_bscan(in->recording, 0, values, came, err);
    if (!e) {
        oct_sha256_init(&sum);
        const char *when =
            strcmp(f->start_time_source, OCT_TIME_RECORDED) == 0 ? f->start_time : "";
        oct_sha256_add(&sum, when, strlen(when) + 1);
        oct_sha256_add(&sum, sizes, sizeof(sizes));
        oct_sha256_add(&sum, values, n * sizeof(*values));
        end_uid(in, &sum);
    }
    free(values);
    free(came);
    return e;
}

static enum oct_err open_recording(struct oct_export_input *in, const char *path,
                                   const struct oct_config *config, struct oct_error *err)
{
    in->config = oct_alloc(1, sizeof(*in->config));
    *in->config = *config;
    const enum oct_err e = oct_recording_open(&in->recording, path, in->config, err);
    if (e)
        return e;
    const struct oct_input_facts *said = oct_recording_input(in->recording);
    const uint64_t n = oct_recording_n_bscans(in->recording);
    if (!said) /* it was none when it was looked at */
        return oct_fail(err, OCT_E_FORMAT, "%s: is being changed; try again", in->path);
    if (n > OCT_MAX_BSCANS)
        return oct_fail(err, OCT_E_FORMAT, "%s: has %" PRIu64 " B-scans, more than %u", in->path, n,
                        OCT_MAX_BSCANS);
    in->scaling = said->scaling;
    find_facts(in);
    return find_uid(in, err);
}

/* ---- what another device exported, or octctl flow ---- */

static enum oct_err open_device(struct oct_export_input *in, const struct oct_config *config,
                                struct oct_error *err)
{
    const struct oct_pictures_options options = {.any_side = true};
    const char *path = in->path;
    struct oct_volume_info info;
    struct oct_volume_facts *f = &in->own;
    struct oct_picture first;
    struct oct_sha256 sum;
    in->config = oct_alloc(1, sizeof(*in->config));
    *in->config = *config;
    enum oct_err e = oct_volume_look(path, &info, err);
    e = e ? e : oct_pictures_open(&in->device, &path, 1, &options, err);
    e = e ? e : oct_pictures_read(in->device, 0, &first, NULL, err);
    if (e)
        return e;
    f->n_bscans = info.dims[0];
    f->n_lines = info.dims[1];
    f->depth = info.dims[2];
    f->sample_type = info.sample_bits == 8 ? OCT_SAMPLE_U8 : OCT_SAMPLE_F32;
    in->facts = f;
    memcpy(f->spacing_um, info.um, sizeof(f->spacing_um));
    snprintf(f->start_time, sizeof(f->start_time), "%s", info.start_time);
    snprintf(f->start_time_source, sizeof(f->start_time_source), "%s",
             info.start_time[0] ? OCT_TIME_RECORDED : OCT_TIME_UNKNOWN);
    find_labels(in, oct_config_is_set(config, "record.eye") ? config->record.eye : info.eye);
    oct_sha256_init(&sum);
    oct_sha256_add(&sum, f->start_time, strlen(f->start_time) + 1);
    oct_sha256_add(&sum, info.dims, sizeof(info.dims));
    oct_sha256_add(&sum, first.pixels, (size_t)first.height * first.width * sizeof(*first.pixels));
    end_uid(in, &sum);
    oct_picture_finish(&first);
    return OCT_OK;
}

static enum oct_err open_flow(struct oct_export_input *in, const struct oct_config *config,
                              struct oct_error *err)
{
    struct oct_sha256 sum;
    in->config = oct_alloc(1, sizeof(*in->config));
    *in->config = *config;
    in->facts = &in->own;
    find_labels(in, config->record.eye);
    const enum oct_err e = oct_export_input_open_flow(in, &sum, err);
    if (!e)
        end_uid(in, &sum);
    return e;
}

/* ---- any ---- */

enum oct_err oct_export_input_open(struct oct_export_input *input, const char *path,
                                   const struct oct_config *config,
                                   const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    const bool is_pipe = strcmp(path, "-") == 0;
    *input = (struct oct_export_input){.path = oct_alloc_text("%s", is_pipe ? "/dev/stdin" : path),
                                       .scaling = ""};
    enum oct_err e = is_pipe ? oct_spool_stdin(cancel, err) : OCT_OK;
    if (!e)
        e = oct_recording_is_our_volume(input->path, config) ? open_volume(input, config, err)
            : oct_pictures_are_of_device(input->path)        ? open_device(input, config, err)
            : oct_export_input_is_flow(input->path)          ? open_flow(input, config, err)
                                                    : open_recording(input, path, config, err);
    if (e)
        oct_export_input_close(input);
    return e;
}

void oct_export_input_close(struct oct_export_input *input)
{
    oct_volume_reader_destroy(input->reader);
    oct_pictures_close(input->device);
    oct_recording_close(input->recording);
    oct_calibration_finish(&input->calibration);
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

double oct_export_input_plane_s(const struct oct_export_input *input, const struct oct_span *span)
{
    uint64_t first_ns = 0, last_ns = 0;
    uint32_t from = 0, to = 0;
    for (uint32_t v = 0; v < oct_span_count(*span); v++) {
        const struct oct_volume_row row =
            oct_volume_row(input->reader, span->first + v * span->step);
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

/* ---- the spectra of a recording that is no volume file ---- */

struct spectra {
    struct oct_recording *recording;
    struct oct_span span;
    uint8_t *came; /* [M], which reading fills */
};

static enum oct_err read_plane(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct spectra *s = context;
    return read_bscan(s->recording, s->span.first + plane * s->span.step, values, s->came, err);
}

static void close_spectra(void *context)
{
    struct spectra *s = context;
    free(s->came);
    free(s);
}

/* By the line rate, where the user or the file says it; its default says nothing. */
static double bscan_s(const struct oct_export_input *in)
{
    const struct oct_config *c = in->config;
    const double said_hz = oct_recording_input(in->recording)->line_rate_hz;
    const double hz = oct_config_is_set(c, "scan.line_rate_hz") ? c->scan.line_rate_hz : said_hz;
    return hz > 0 ? in->facts->n_lines / hz : NAN;
}

enum oct_err oct_export_values_recording(struct oct_export_values *values,
                                         struct oct_export_input *in, const char *name,
                                         const struct oct_export_wish *wish, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    struct oct_span span;
    *values = (struct oct_export_values){.what = "B-scans"}; /* .valid NULL: all are there */
    if (strcmp(name, "spectra") != 0)
        return oct_fail(err, OCT_E_ARG,
                        "%s: no volume file, it holds spectra but no %s: octctl recon makes one of "
                        "it, or --dataset spectra",
                        in->path, name);
    const enum oct_err e = oct_export_values_range(in, wish, f->n_bscans, &span, err);
    if (e)
        return e;
    struct spectra *s = oct_alloc(1, sizeof(*s));
    *s = (struct spectra){in->recording, span, oct_alloc(f->n_lines, 1)};
    values->context = s;
    values->close = close_spectra;
    values->read = read_plane;
    values->form = oct_export_values_spectra_form(in, &span, bscan_s(in) * span.step);
    return OCT_OK;
}
