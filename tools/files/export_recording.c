#include "tools/files/export_recording.h"

#include "pipeline/plan/geometry.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spectra {
    struct oct_recording *recording;
    uint32_t first; /* B-scan of plane 0 */
    uint8_t *came;  /* [M], which reading fills */
};

static enum oct_err read_bscan(struct oct_recording *recording, uint64_t i, uint16_t *values,
                               uint8_t *came, struct oct_error *err)
{
    struct oct_raw_frame frame = {.spectra = values, .line_valid = came};
    bool valid; /* as every B-scan of what is no volume */
    return oct_recording_read(recording, i, &frame, &valid, err);
}

/* ---- the input ---- */

/* Lengths of 0 are unknown. Where nobody says how many B-scans a volume has, it is all of them. */
static void find_facts(struct oct_export_input *in)
{
    const struct oct_config *c = in->config;
    struct oct_volume_facts *f = &in->own;
    f->n_bscans = (uint32_t)oct_recording_n_bscans(in->recording);
    f->n_lines = oct_recording_n_lines(in->recording);
    f->n_samples = oct_recording_n_samples(in->recording);
    const uint32_t n_volume = oct_config_is_set(c, "scan.bscans") ? c->scan.bscans : f->n_bscans;
    f->spacing_um[0] = c->scan.height_um > 0 ? c->scan.height_um / n_volume : NAN;
    f->spacing_um[1] = c->scan.width_um > 0 ? c->scan.width_um / f->n_lines : NAN;
    f->spacing_um[2] = NAN;
    snprintf(f->eye, sizeof(f->eye), "%.7s", c->record.eye);
    snprintf(f->pseudonym, sizeof(f->pseudonym), "%.127s", c->record.pseudonym);
    snprintf(f->start_time, sizeof(f->start_time), "%s", oct_recording_start_time(in->recording));
    snprintf(f->start_time_source, sizeof(f->start_time_source), "%s",
             oct_recording_start_time_source(in->recording));
    in->facts = f;
}

/* Over when it was recorded, its size and the bytes of the first B-scan: neither its name nor
 * labels, nor when the file was changed: a copy is the same recording. */
static enum oct_err find_uid(struct oct_export_input *in, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    const uint64_t sizes[] = {f->n_bscans, f->n_lines};
    const size_t n = (size_t)f->n_lines * f->n_samples;
    struct oct_sha256 sum;
    uint16_t *values = malloc(n * sizeof(*values));
    uint8_t *came = malloc(f->n_lines);
    const enum oct_err e =
        values && came ? read_bscan(in->recording, 0, values, came, err)
                       : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for a B-scan", in->path);
    if (!e) {
        oct_sha256_init(&sum);
        const char *when =
            strcmp(f->start_time_source, OCT_TIME_RECORDED) == 0 ? f->start_time : "";
        oct_sha256_add(&sum, when, strlen(when) + 1);
        oct_sha256_add(&sum, sizes, sizeof(sizes));
        oct_sha256_add(&sum, values, n * sizeof(*values));
        oct_export_input_sign(in, &sum);
    }
    free(values);
    free(came);
    return e;
}

enum oct_err oct_export_recording_open(struct oct_export_input *in, const char *path,
                                       const struct oct_config *config, struct oct_error *err)
{
    in->config = malloc(sizeof(*in->config));
    if (!in->config)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
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

/* ---- the dataset ---- */

static enum oct_err read_plane(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct spectra *s = context;
    return read_bscan(s->recording, (uint64_t)s->first + plane, values, s->came, err);
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

enum oct_err oct_export_recording_values(struct oct_export_values *values,
                                         struct oct_export_input *in, const char *name,
                                         const struct oct_export_wish *wish, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    uint32_t first, last;
    *values = (struct oct_export_values){.what = "B-scans"}; /* .valid NULL: all are there */
    if (strcmp(name, "spectra") != 0)
        return oct_fail(err, OCT_E_ARG,
                        "%s: no volume file, it holds spectra but no %s: octctl recon makes one of "
                        "it, or --dataset spectra",
                        in->path, name);
    const enum oct_err e = oct_export_values_range(in, wish, f->n_bscans, &first, &last, err);
    if (e)
        return e;
    struct spectra *s = calloc(1, sizeof(*s));
    values->context = s;
    values->close = close_spectra;
    values->read = read_plane;
    if (s)
        *s = (struct spectra){in->recording, first, malloc(f->n_lines)};
    if (!s || !s->came)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->path);
    values->form = oct_export_values_spectra_form(in, last - first, bscan_s(in));
    return OCT_OK;
}
