#include "formats/recording.h"

#include "formats/plain_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "plain samples are read into memory as they lie in the file, which is little-endian"
#endif

struct oct_recording {
    struct oct_volume_reader *volume; /* NULL: plain samples in fd */
    int fd;
    char *path;
    uint32_t n_samples, n_lines, n_bscans; /* N, M, V */
    uint64_t total;                        /* B-scans in the file */
    uint64_t header_bytes;                 /* plain samples: before the first one */
    double line_rate_hz;
};

/* ---- volumes ---- */

static bool named_as_volume(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}

static bool begins_as_volume(int fd)
{
    static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char start[sizeof(signature)];
    return pread(fd, start, sizeof(start), 0) == (ssize_t)sizeof(start) &&
           memcmp(start, signature, sizeof(start)) == 0;
}

bool oct_recording_is_volume(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && (named_as_volume(path) || begins_as_volume(fd));
    if (fd >= 0)
        close(fd);
    return is;
}

bool oct_recording_names_dataset(const char *path)
{
    return strstr(path, ":/") && access(path, F_OK) != 0;
}

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
                        r->path);
    if ((code = adopt(config, r->path, "camera.samples", &config->camera.samples, facts->n_samples,
                      err)) ||
        (code = adopt(config, r->path, "scan.lines", &config->scan.lines, facts->n_lines, err)) ||
        (code = adopt(config, r->path, "scan.bscans", &config->scan.bscans, facts->n_bscans, err)))
        return code;
    struct oct_geometry geometry;
    struct oct_error why;
    if (oct_geometry_init(&geometry, facts->n_samples, facts->n_lines, facts->n_bscans, 0, 0,
                          OCT_SAMPLE_U8, &why))
        return oct_fail(err, OCT_E_FORMAT, "%s: %s", r->path, why.text);
    r->total = facts->n_bscans;
    return OCT_OK;
}

/* ---- plain samples ---- */

static enum oct_err count_bscans(struct oct_recording *r, uint64_t size, uint64_t trailer_bytes,
                                 struct oct_error *err)
{
    uint64_t bscan_bytes = (uint64_t)r->n_lines * r->n_samples * sizeof(uint16_t);
    if (r->header_bytes > size || trailer_bytes > size - r->header_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %" PRIu64 " bytes, less than file.header_bytes (%" PRIu64
                        ") and file.trailer_bytes (%" PRIu64 ") together",
                        r->path, size, r->header_bytes, trailer_bytes);
    uint64_t payload = size - r->header_bytes - trailer_bytes;
    uint64_t over = payload % bscan_bytes;
    r->total = payload / bscan_bytes;
    if (over != 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %" PRIu64
                        " bytes after header and trailer are %.7g B-scans of %" PRIu64
                        " bytes: %" PRIu64 " bytes too many (or %" PRIu64 " too few); check "
                        "camera.samples, scan.lines, file.header_bytes and file.trailer_bytes",
                        r->path, payload, (double)payload / (double)bscan_bytes, bscan_bytes, over,
                        bscan_bytes - over);
    if (r->total == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: holds no samples", r->path);
    return OCT_OK;
}

static enum oct_err open_plain(struct oct_recording *r, const struct oct_config *config,
                               struct oct_error *err)
{
    /* Checks the geometry too, so that nothing below overflows or divides by zero. */
    struct oct_geometry geometry;
    enum oct_err code = oct_geometry_init(&geometry, config->camera.samples, config->scan.lines,
                                          config->scan.bscans, 0, 0, OCT_SAMPLE_U8, err);
    if (code)
        return code;
    struct stat about;
    if (fstat(r->fd, &about))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read its size", r->path);
    r->n_samples = config->camera.samples;
    r->n_lines = config->scan.lines;
    r->header_bytes = config->file.header_bytes;
    code = count_bscans(r, (uint64_t)about.st_size, config->file.trailer_bytes, err);
    if (code == OCT_OK && config->file.check_samples)
        code =
            oct_plain_check(r->fd, r->path, r->header_bytes,
                            (uint64_t)about.st_size - r->header_bytes - config->file.trailer_bytes,
                            config->camera.bits, err);
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return code;
}

static enum oct_err read_plain(struct oct_recording *r, uint64_t i, struct oct_raw_frame *frame,
                               struct oct_error *err)
{
    size_t n_bytes = (size_t)r->n_lines * r->n_samples * sizeof(uint16_t);
    uint64_t at = r->header_bytes + i * n_bytes;
    uint8_t *out = (uint8_t *)frame->spectra;
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pread(r->fd, out + done, n_bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read B-scan %" PRIu64, r->path,
                                  i);
        if (n == 0)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: ends within B-scan %" PRIu64 ": it was cut while being read",
                            r->path, i);
        done += (size_t)n;
    }
    memset(frame->line_valid, 1, r->n_lines);
    double lines_before = (double)i * r->n_lines;
    frame->info.time_ns = (uint64_t)llround(lines_before * 1e9 / r->line_rate_hz);
    frame->info.sequence = i;
    frame->info.missing_lines = 0;
    return OCT_OK;
}

/* ---- both ---- */

static enum oct_err open_file(struct oct_recording *r, struct oct_config *config,
                              struct oct_error *err)
{
    struct stat about;
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->fd < 0 || fstat(r->fd, &about))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", r->path);
    if (!S_ISREG(about.st_mode))
        return oct_fail(err, OCT_E_IO, "%s: is not a plain file", r->path);
    enum oct_err code;
    if (named_as_volume(r->path) || begins_as_volume(r->fd)) {
        close(r->fd);
        r->fd = -1;
        code = open_volume(r, config, err);
    } else {
        code = open_plain(r, config, err);
    }
    r->n_samples = config->camera.samples;
    r->n_lines = config->scan.lines;
    r->n_bscans = config->scan.bscans;
    r->line_rate_hz = config->scan.line_rate_hz;
    return code;
}

enum oct_err oct_recording_open(struct oct_recording **recording, const char *path,
                                struct oct_config *config, struct oct_error *err)
{
    *recording = NULL;
    enum oct_err code = OCT_OK;
    struct oct_recording *r = calloc(1, sizeof(*r));
    if (r) {
        r->fd = -1;
        r->path = strdup(path);
    }
    if (!r || !r->path) {
        code = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
        goto fail;
    }
    code = open_file(r, config, err);
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
    if (recording->fd >= 0)
        close(recording->fd);
    free(recording->path);
    free(recording);
}

enum oct_err oct_recording_read(struct oct_recording *recording, uint64_t i,
                                struct oct_raw_frame *frame, bool *valid, struct oct_error *err)
{
    struct oct_recording *r = recording;
    *valid = false;
    if (i >= r->total)
        return oct_fail(err, OCT_E_ARG, "%s: has no B-scan %" PRIu64 ", only 0 to %" PRIu64,
                        r->path, i, r->total - 1);
    enum oct_err code;
    if (r->volume) {
        code = oct_volume_read_spectra(r->volume, (uint32_t)i, frame, valid, err);
    } else {
        code = read_plain(r, i, frame, err);
        *valid = code == OCT_OK;
    }
    if (code)
        return code;
    frame->info.number = i;
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
    *cal = (struct oct_calibration){0};
    return OCT_OK;
}
