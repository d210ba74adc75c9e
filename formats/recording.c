#define _GNU_SOURCE /* posix_fadvise */
#include "formats/recording.h"

#include "config/config.h"
#include "formats/contents.h"
#include "formats/input/array.h"
#include "formats/plain_check.h"
#include "formats/spool.h"
#include "pipeline/plan/geometry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Plain samples: [B][M][N] of file.sample between file.header_bytes and file.trailer_bytes, in the
 * geometry of the configuration. Private to this room. */

/* "f32be" */
static struct oct_sample_kind kind_of(const char *name)
{
    unsigned bits = 16;
    char end[3] = "";
    sscanf(name + 1, "%2u%2s", &bits, end);
    return (struct oct_sample_kind){name[0], bits / 8, strcmp(end, "be") == 0};
}

static enum oct_err count_bscans(uint64_t *n_bscans, const struct oct_input_probe *probe,
                                 const struct oct_config *config, uint64_t bscan_bytes,
                                 struct oct_error *err)
{
    const uint64_t header = config->file.header_bytes, trailer = config->file.trailer_bytes;
    if (header > probe->size || trailer > probe->size - header)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %" PRIu64 " bytes, less than file.header_bytes (%" PRIu64
                        ") and file.trailer_bytes (%" PRIu64 ") together",
                        probe->name, probe->size, header, trailer);
    const uint64_t payload = probe->size - header - trailer;
    const uint64_t over = payload % bscan_bytes;
    *n_bscans = payload / bscan_bytes;
    if (over != 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %" PRIu64
                        " bytes after header and trailer are %.7g B-scans of %" PRIu64
                        " bytes: %" PRIu64 " bytes too many (or %" PRIu64 " too few); check "
                        "camera.samples, scan.lines, file.header_bytes and file.trailer_bytes",
                        probe->name, payload, (double)payload / (double)bscan_bytes, bscan_bytes,
                        over, bscan_bytes - over);
    if (*n_bscans == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: holds no samples", probe->name);
    return OCT_OK;
}

/* Fills facts->n_bscans (all of the file), bits and scaling. OCT_E_FORMAT: the size does not fit
 * (says by how much), or the samples look like others (plain_check.h). */
static enum oct_err open_samples(struct oct_input_array **array,
                                 const struct oct_input_probe *probe,
                                 const struct oct_config *config, const struct oct_input_wish *wish,
                                 struct oct_input_facts *facts, struct oct_error *err)
{
    const uint64_t m = config->scan.lines, n = config->camera.samples;
    struct oct_input_array_setup setup = {
        .name = probe->name,
        .fd = probe->fd,
        .first_byte = config->file.header_bytes,
        .kind = kind_of(oct_config_file_sample_names[config->file.sample]),
        .order = {.n = {0, m, n}, .axes = {OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE}},
    };
    /* Checks the geometry too, so that nothing below overflows or divides by zero. */
    struct oct_geometry geometry;
    enum oct_err e = oct_geometry_init(&geometry, config->camera.samples, config->scan.lines,
                                       config->scan.bscans, 0, 0, OCT_SAMPLE_U8, err);
    e = e ? e
          : count_bscans(&setup.order.n[OCT_INPUT_BSCAN], probe, config, m * n * setup.kind.bytes,
                         err);
    const bool is_u16 = setup.kind.kind == 'u' && setup.kind.bytes == 2 && !setup.kind.big_endian;
    if (!e && config->file.check_samples && is_u16)
        e = oct_plain_check(probe->fd, probe->name, setup.first_byte,
                            probe->size - setup.first_byte - config->file.trailer_bytes,
                            config->camera.bits, err);
    if (e)
        return e;
    posix_fadvise(probe->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return oct_input_array_create(array, &setup, wish, facts, err);
}

struct oct_recording {
    /* Where the B-scans are: one of these. */
    struct oct_volume_reader *volume;
    struct oct_input input; /* of plain samples its array alone */
    int fd;
    char *name;                            /* as the user named it */
    char *path;                            /* to open; of standard input another one */
    struct oct_input_facts said;           /* by a file that is no volume */
    struct oct_calibration cal;            /* that it brought */
    uint32_t n_samples, n_lines, n_bscans; /* N, M, V */
    uint64_t first_bscan;                  /* of row 0, within its acquisition */
    uint64_t total;                        /* B-scans in the file */
    double line_rate_hz;
    uint32_t sent_lines; /* a B-scan, with those of the flyback */
    char start_time[40];
    const char *start_time_source;
};

/* ---- which format ---- */

static struct oct_input_wish wish_of(const struct oct_config *c)
{
    return (struct oct_input_wish){
        .dataset = c->file.dataset,
        .transpose = (enum oct_input_transpose)c->file.transpose,
        .is_scaled = fabs(c->file.scale) > 0,
        .scale = c->file.scale,
        .offset = c->file.offset,
        .n_samples = oct_config_is_set(c, "camera.samples") ? c->camera.samples : 0,
        .n_lines = oct_config_is_set(c, "scan.lines") ? c->scan.lines : 0,
        .n_bscans = oct_config_is_set(c, "scan.bscans") ? c->scan.bscans : 0,
    };
}

static bool named_as_volume(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}

/* Whether it is one, or a damaged one, rather than a file of another program. */
static bool is_volume(const struct oct_input_probe *probe, const struct oct_input_wish *wish)
{
    const struct oct_volume_array_entry *spectra = oct_input_array_named(probe, "/spectra");
    const struct oct_volume_array_entry *bscans = oct_input_array_named(probe, "/bscans");
    if (!spectra)
        spectra = oct_input_array_named(probe, OCT_PACKED_SPECTRA);
    const char *dataset = wish->dataset + (wish->dataset[0] == '/');
    if (!oct_input_is_hdf5(probe) || !probe->arrays)
        return named_as_volume(probe->name) || oct_input_is_hdf5(probe);
    if ((dataset[0] && strcmp(dataset, "spectra") != 0) || wish->transpose != OCT_INPUT_AS_IS)
        return false;
    if (spectra)
        return spectra->rank == 3 && !spectra->is_float && !spectra->is_signed &&
               spectra->value_bytes <= 2;
    return bscans && bscans->rank == 3 && !dataset[0];
}

bool oct_recording_is_volume(const char *path)
{
    struct oct_input_probe probe = {.path = path};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : pread(fd, probe.start, sizeof(probe.start), 0);
    probe.n_start = n > 0 ? (size_t)n : 0;
    if (fd >= 0)
        close(fd);
    return fd >= 0 && (named_as_volume(path) || oct_input_is_hdf5(&probe));
}

static bool is_as(const char *path, const struct oct_config *config, bool volume)
{
    const struct oct_input_wish wish = wish_of(config);
    struct oct_input_probe probe = {.path = path};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && oct_input_look(&probe, path, path, fd, NULL) == OCT_OK;
    if (is)
        is = is_volume(&probe, &wish) ? volume : !volume && oct_input_find(&probe) != NULL;
    oct_input_look_end(&probe);
    if (fd >= 0)
        close(fd);
    return is;
}

bool oct_recording_is_our_volume(const char *path, const struct oct_config *config)
{
    return is_as(path, config, true);
}

bool oct_recording_is_other(const char *path, const struct oct_config *config)
{
    return is_as(path, config, false);
}

bool oct_recording_names_dataset(const char *path)
{
    return strstr(path, ":/") && access(path, F_OK) != 0;
}

/* ---- volumes ---- */

/* The file's value for a key of the config, unless the user gave another one. */
static enum oct_err adopt(const struct oct_config *config, const char *path, const char *key,
                          uint32_t *value, uint32_t in_file, struct oct_error *err)
{
    if (oct_config_is_set(config, key) && *value != in_file)
        return oct_fail_key(err, OCT_E_CONFIG, key,
                            "%s: was recorded with %s = %" PRIu32
                            ", but the configuration says %" PRIu32
                            ": leave the key out or correct it",
                            path, key, in_file, *value);
    *value = in_file;
    return OCT_OK;
}

static enum oct_err open_volume(struct oct_recording *r, struct oct_config *config,
                                struct oct_error *err)
{
    enum oct_err code = oct_volume_open(&r->volume, r->path, err);
    if (code)
        return code;
    const struct oct_volume_facts *facts = oct_volume_facts(r->volume);
    if (facts->n_samples == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds pictures but no spectra (record.spectra=yes keeps them): there "
                        "is nothing to reconstruct or replay",
                        r->name);
    if ((code = adopt(config, r->name, "camera.samples", &config->camera.samples, facts->n_samples,
                      err)) ||
        (code = adopt(config, r->name, "scan.lines", &config->scan.lines, facts->n_lines, err)) ||
        (code = adopt(config, r->name, "scan.bscans", &config->scan.bscans, facts->n_bscans, err)))
        return code;
    struct oct_geometry geometry;
    struct oct_error why;
    if (oct_geometry_init(&geometry, facts->n_samples, facts->n_lines, facts->n_bscans, 0, 0,
                          OCT_SAMPLE_U8, &why))
        return oct_fail(err, OCT_E_FORMAT, "%s: %s", r->name, why.text);
    r->total = facts->n_bscans;
    return OCT_OK;
}

/* ---- files of other programs, plain samples ---- */

/* A value of the file within the key's range; others are unknown. */
static void adopt_number(const struct oct_config *config, const char *key, double *value,
                         double in_file, double least, double most)
{
    if (!oct_config_is_set(config, key) && in_file >= least && in_file <= most)
        *value = in_file;
}

static void adopt_facts(const struct oct_input_facts *f, struct oct_config *c)
{
    const bool is_eye = strcmp(f->eye, "OD") == 0 || strcmp(f->eye, "OS") == 0;
    if (f->bits >= 1 && f->bits <= 16 && !oct_config_is_set(c, "camera.bits"))
        c->camera.bits = f->bits;
    adopt_number(c, "scan.line_rate_hz", &c->scan.line_rate_hz, f->line_rate_hz, 1, 1e9);
    adopt_number(c, "scan.width_um", &c->scan.width_um, f->width_um, 0, 1e6);
    adopt_number(c, "scan.height_um", &c->scan.height_um, f->height_um, 0, 1e6);
    if (is_eye && !oct_config_is_set(c, "record.eye"))
        snprintf(c->record.eye, sizeof(c->record.eye), "%s", f->eye);
}

static enum oct_err open_input(struct oct_recording *r, const struct oct_input_ops *ops,
                               const struct oct_input_probe *probe,
                               const struct oct_input_wish *wish, struct oct_config *config,
                               struct oct_error *err)
{
    struct oct_input_facts *f = &r->said;
    enum oct_err e = oct_input_open(&r->input, ops, probe, wish, f, &r->cal, err);
    e = e ? e : oct_input_check(r->name, f->n_bscans, f->n_lines, f->n_samples, err);
    if (e ||
        (e = adopt(config, r->name, "camera.samples", &config->camera.samples, f->n_samples,
                   err)) ||
        (e = adopt(config, r->name, "scan.lines", &config->scan.lines, f->n_lines, err)))
        return e;
    if (wish->n_bscans == 0)
        config->scan.bscans = (uint32_t)f->n_bscans;
    r->total = f->n_bscans;
    adopt_facts(f, config);
    return OCT_OK;
}

static enum oct_err open_plain(struct oct_recording *r, const struct oct_input_probe *probe,
                               const struct oct_input_wish *wish, struct oct_config *config,
                               struct oct_error *err)
{
    r->said.format = "samples";
    const bool has_geometry =
        oct_config_is_set(config, "camera.samples") && oct_config_is_set(config, "scan.lines");
    if (!has_geometry && oct_input_lacks_geometry(probe))
        return oct_fail_key(err, OCT_E_CONFIG, "camera.samples",
                            "%s: the settings of OCTproZ beside it (_meta.txt) do not say width, "
                            "height and bit_depth of its system: give camera.samples, scan.lines "
                            "and file.sample",
                            r->name);
    const enum oct_err e = open_samples(&r->input.array, probe, config, wish, &r->said, err);
    if (!e) {
        r->total = r->said.n_bscans;
        adopt_facts(&r->said, config);
    }
    return e;
}

/* ---- all ---- */

static enum oct_err open_descriptor(struct oct_recording *r, const volatile sig_atomic_t *cancel,
                                    struct oct_error *err)
{
    char path[32];
    if (strcmp(r->name, "-") != 0) {
        r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        return r->fd >= 0 ? OCT_OK
                          : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", r->name);
    }
    const enum oct_err e = oct_spool_input(&r->fd, cancel, err);
    if (e)
        return e;
    free(r->name);
    free(r->path);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
    r->name = strdup("standard input");
    r->path = strdup(path);
    return r->name && r->path ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

/* A file without a name is the pipe that was kept in it. */
static void find_start_time(struct oct_recording *r)
{
    const char *own = r->volume ? oct_volume_facts(r->volume)->start_time : r->said.start_time;
    const bool is_changed = r->volume && strcmp(oct_volume_facts(r->volume)->start_time_source,
                                                OCT_TIME_FILE_MODIFIED) == 0;
    struct stat about;
    struct tm utc;
    r->start_time_source = is_changed ? OCT_TIME_FILE_MODIFIED : OCT_TIME_RECORDED;
    snprintf(r->start_time, sizeof(r->start_time), "%s", own);
    if (own[0])
        return;
    r->start_time_source = OCT_TIME_UNKNOWN;
    if (fstat(r->fd, &about) != 0 || about.st_nlink == 0 || !gmtime_r(&about.st_mtime, &utc))
        return;
    if (strftime(r->start_time, sizeof(r->start_time), "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
        r->start_time_source = OCT_TIME_FILE_MODIFIED;
}

/* Readers of HDF5 say the path that they open. */
static enum oct_err by_name(const struct oct_recording *r, enum oct_err e, struct oct_error *err)
{
    const size_t n = r->path ? strlen(r->path) : 0;
    if (e && err && n > 0 && r->name && strcmp(r->path, r->name) != 0 &&
        strncmp(err->text, r->path, n) == 0) {
        char rest[sizeof(err->text)];
        snprintf(rest, sizeof(rest), "%s", err->text + n);
        return oct_fail(err, e, "%s%s", r->name, rest);
    }
    return e;
}

/* Results of octctl are spectra only where the user says which dataset of them is. */
static enum oct_err refuse_result(const struct oct_recording *r,
                                  const struct oct_input_probe *probe,
                                  const struct oct_input_wish *wish, struct oct_error *err)
{
    struct oct_contents contents;
    enum oct_err e = OCT_OK;
    if (!probe->arrays || wish->dataset[0])
        return OCT_OK;
    if (oct_contents_look(&contents, r->path, NULL) == OCT_OK && contents.is_result)
        e = oct_fail(err, OCT_E_FORMAT, "%s: no recording, but %s: it holds no spectra", r->name,
                     contents.words);
    oct_contents_finish(&contents);
    return e;
}

static enum oct_err open_file(struct oct_recording *r, struct oct_config *config,
                              const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    const struct oct_input_wish wish = wish_of(config);
    struct oct_input_probe probe = {.arrays = NULL};
    if (!wish.is_scaled && fabs(wish.offset) > 0)
        return oct_fail_key(err, OCT_E_CONFIG, "file.offset",
                            "file.offset says nothing without file.scale (1: values as they are)");
    enum oct_err code = open_descriptor(r, cancel, err);
    code = code ? code : oct_input_look(&probe, r->path, r->name, r->fd, err);
    const bool is_of_spectra = !code && !is_volume(&probe, &wish);
    if (is_of_spectra)
        code = refuse_result(r, &probe, &wish, err);
    if (!code && !is_of_spectra)
        code = open_volume(r, config, err);
    const struct oct_input_ops *ops = !code && is_of_spectra ? oct_input_find(&probe) : NULL;
    if (ops)
        code = open_input(r, ops, &probe, &wish, config, err);
    else if (!code && is_of_spectra)
        code = open_plain(r, &probe, &wish, config, err);
    r->n_samples = config->camera.samples;
    r->n_lines = config->scan.lines;
    r->n_bscans = config->scan.bscans;
    r->line_rate_hz = config->scan.line_rate_hz;
    r->sent_lines = r->n_lines + config->scan.flyback_lines;
    r->first_bscan = r->volume ? oct_volume_first_bscan(r->volume) : 0;
    if (!code)
        find_start_time(r);
    oct_input_look_end(&probe);
    return by_name(r, code, err);
}

enum oct_err oct_recording_open(struct oct_recording **recording, const char *path,
                                struct oct_config *config, struct oct_error *err)
{
    return oct_recording_open_until(recording, path, config, NULL, err);
}

enum oct_err oct_recording_open_until(struct oct_recording **recording, const char *path,
                                      struct oct_config *config,
                                      const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    *recording = NULL;
    enum oct_err code = OCT_OK;
    struct oct_recording *r = calloc(1, sizeof(*r));
    if (r) {
        r->fd = -1;
        r->name = strdup(path);
        r->path = strdup(path);
        oct_input_facts_init(&r->said);
    }
    if (!r || !r->name || !r->path) {
        code = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
        goto fail;
    }
    code = open_file(r, config, cancel, err);
    if (code)
        goto fail;
    *recording = r;
    return OCT_OK;
fail:
    oct_recording_close(r);
    return code;
}

void oct_recording_close(struct oct_recording *recording)
{
    if (!recording)
        return;
    oct_volume_reader_destroy(recording->volume);
    oct_input_close(&recording->input);
    oct_calibration_finish(&recording->cal);
    if (recording->fd >= 0)
        close(recording->fd);
    free(recording->name);
    free(recording->path);
    free(recording);
}

/* From a file that keeps neither a clock nor a mask of lines. */
static enum oct_err read_input(struct oct_recording *r, uint64_t i, struct oct_raw_frame *frame,
                               struct oct_error *err)
{
    const double lines_before = (double)i * r->sent_lines;
    memset(frame->line_valid, 1, r->n_lines);
    frame->info.time_ns = (uint64_t)llround(lines_before * 1e9 / r->line_rate_hz);
    frame->info.sequence = i;
    frame->info.missing_lines = 0;
    return oct_input_array_read(r->input.array, i, frame->spectra, err);
}

/* Of a row, counted from the first one: a file of the last seconds may lack B-scans between
 * rows. */
static uint64_t number_of(const struct oct_recording *r, uint64_t i)
{
    const struct oct_volume_row row = r->volume ? oct_volume_row(r->volume, (uint32_t)i)
                                                : (struct oct_volume_row){.valid = false};
    return row.valid && row.number >= r->first_bscan + i ? row.number - r->first_bscan : i;
}

enum oct_err oct_recording_read(struct oct_recording *recording, uint64_t i,
                                struct oct_raw_frame *frame, bool *valid, struct oct_error *err)
{
    struct oct_recording *r = recording;
    *valid = false;
    if (i >= r->total)
        return oct_fail(err, OCT_E_ARG, "%s: has no B-scan %" PRIu64 ", only 0 to %" PRIu64,
                        r->name, i, r->total - 1);
    enum oct_err code;
    if (r->volume) {
        code = oct_volume_read_spectra(r->volume, (uint32_t)i, frame, valid, err);
    } else {
        code = read_input(r, i, frame, err);
        *valid = code == OCT_OK;
    }
    if (code)
        return by_name(r, code, err);
    frame->info.number = number_of(r, i);
    frame->info.volume = i / r->n_bscans;
    frame->info.bscan = (uint32_t)(i % r->n_bscans);
    if (!*valid) {
        memset(frame->line_valid, 0, r->n_lines);
        frame->info.missing_lines = r->n_lines;
    }
    return OCT_OK;
}

uint64_t oct_recording_n_bscans(const struct oct_recording *recording)
{
    return recording->total;
}

uint32_t oct_recording_n_samples(const struct oct_recording *recording)
{
    return recording->n_samples;
}

uint32_t oct_recording_n_lines(const struct oct_recording *recording)
{
    return recording->n_lines;
}

uint32_t oct_recording_bscans_per_volume(const struct oct_recording *recording)
{
    return recording->n_bscans;
}

uint64_t oct_recording_first_bscan(const struct oct_recording *recording)
{
    return recording->first_bscan;
}

const struct oct_volume_facts *oct_recording_facts(const struct oct_recording *recording)
{
    return recording->volume ? oct_volume_facts(recording->volume) : NULL;
}

const char *oct_recording_config_text(const struct oct_recording *recording)
{
    return recording->volume ? oct_volume_config_text(recording->volume) : NULL;
}

enum oct_err oct_recording_calibration(struct oct_recording *recording, struct oct_calibration *cal,
                                       struct oct_error *err)
{
    if (recording->volume)
        return oct_volume_calibration(recording->volume, cal, err);
    if (oct_calibration_copy(cal, &recording->cal))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", recording->name);
    return OCT_OK;
}

const struct oct_input_facts *oct_recording_input(const struct oct_recording *recording)
{
    return recording->volume ? NULL : &recording->said;
}

int oct_recording_file(const struct oct_recording *recording)
{
    return recording->fd;
}

const char *oct_recording_name(const struct oct_recording *recording)
{
    return recording->name;
}

const char *oct_recording_start_time(const struct oct_recording *recording)
{
    return recording->start_time;
}

const char *oct_recording_start_time_source(const struct oct_recording *recording)
{
    return recording->start_time_source;
}
