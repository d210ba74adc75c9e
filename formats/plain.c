#define _GNU_SOURCE /* posix_fadvise */
#include "formats/plain.h"

#include "formats/plain_check.h"
#include "pipeline/plan/geometry.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

enum oct_err oct_plain_open(struct oct_input_array **array, const struct oct_input_probe *probe,
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
    *array = NULL;
    /* Checks the geometry too, so that nothing below overflows or divides by zero. */
    struct oct_geometry geometry;
    enum oct_err e = oct_geometry_init(&geometry, config->camera.samples, config->scan.lines,
                                       config->scan.bscans, 0, 0, OCT_SAMPLE_U8, err);
    if (!e)
        e = count_bscans(&setup.order.n[OCT_INPUT_BSCAN], probe, config, m * n * setup.kind.bytes,
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
