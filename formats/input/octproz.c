/* Raw recordings of OCTproZ (github.com/spectralcode/OCTproZ): TIME[_NAME]_raw.raw, whole buffers
 * of unsigned little-endian samples [B-scan][A-line][sample], of 1 byte up to 8 bits, 2 up to 16,
 * else 4 (octproz/src/recorder.cpp, octalgorithmparameters.cpp updateBufferSizeInBytes); and beside
 * it TIME[_NAME]_meta.txt (octproz_meta.h), which has the geometry where OCTproZ's own virtual
 * system or one with the same keys recorded. Without it, it is a file of plain samples. */
#include "formats/input/array.h"
#include "formats/input/beside.h"
#include "formats/input/formats.h"
#include "formats/input/octproz_meta.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The settings beside the file; false: there are none of OCTproZ. */
static bool find_settings(const char *path, struct oct_octproz_meta *meta)
{
    const char *const end = oct_beside_ends(path, "_raw.raw") ? "_raw.raw" : ".raw";
    if (!oct_beside_ends(path, end))
        return false;
    size_t n = 0;
    char *beside = oct_beside_name(path, strlen(end), "_meta.txt");
    char *text = beside ? oct_beside_read(beside, OCT_OCTPROZ_MOST_META, &n) : NULL;
    free(beside);
    if (!text)
        return false;
    oct_octproz_meta_read(meta, text, n);
    free(text);
    return meta->is_octproz;
}

/* Settings with the file's geometry, or false. */
static bool find_meta(const char *path, struct oct_octproz_meta *meta)
{
    return find_settings(path, meta) && meta->bits > 0 && meta->n_samples > 0 && meta->n_lines > 0;
}

bool oct_input_lacks_geometry(const struct oct_input_probe *probe)
{
    struct oct_octproz_meta meta;
    return find_settings(probe->path, &meta) && !find_meta(probe->path, &meta);
}

static bool octproz_is(const struct oct_input_probe *probe)
{
    struct oct_octproz_meta meta;
    return find_meta(probe->path, &meta);
}

static enum oct_err count_bscans(const struct oct_input_probe *probe,
                                 const struct oct_octproz_meta *meta, unsigned sample_bytes,
                                 uint64_t *n_bscans, struct oct_error *err)
{
    enum oct_err e = oct_input_check(probe->name, 1, meta->n_lines, meta->n_samples, err);
    if (e)
        return e;
    const uint64_t bscan_bytes = meta->n_lines * meta->n_samples * sample_bytes;
    const uint64_t in_buffer = meta->n_bscans > 0 ? meta->n_bscans : 1;
    if (probe->size == 0 || probe->size % bscan_bytes != 0 ||
        probe->size / bscan_bytes % in_buffer != 0)
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: %" PRIu64 " bytes are not whole buffers of OCTproZ of %" PRIu64
            " B-scans of %" PRIu64 " A-lines of %" PRIu64 " samples of %" PRIu64
            " bits, as its _meta.txt says: the file was cut, or the settings belong to "
            "another one; renamed, they are not read, and camera.samples and scan.lines "
            "count",
            probe->name, probe->size, in_buffer, meta->n_lines, meta->n_samples, meta->bits);
    *n_bscans = probe->size / bscan_bytes;
    return OCT_OK;
}

static enum oct_err octproz_open(struct oct_input *input, const struct oct_input_probe *probe,
                                 const struct oct_input_wish *wish, struct oct_input_facts *facts,
                                 struct oct_calibration *cal, struct oct_error *err)
{
    struct oct_octproz_meta meta;
    if (!find_meta(probe->path, &meta))
        return oct_fail(err, OCT_E_FORMAT, "%s: has no settings of OCTproZ beside it (_meta.txt)",
                        probe->name);
    if (meta.bits > 32)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: its _meta.txt says samples of %" PRIu64 " bits, but there are 1 to 32",
                        probe->name, meta.bits);
    const unsigned bytes = meta.bits <= 8 ? 1 : meta.bits <= 16 ? 2 : 4;
    uint64_t n[3] = {0, meta.n_lines, meta.n_samples};
    enum oct_err e = count_bscans(probe, &meta, bytes, n, err);
    e = e ? e : oct_input_array_of_file(&input->array, probe, n, bytes, wish, facts, err);
    if (!e && meta.bits <= 16 && !wish->is_scaled)
        facts->bits = (unsigned)meta.bits;
    return e ? e : oct_octproz_meta_calibration(&meta, facts->n_samples, cal, err);
}

const struct oct_input_ops oct_input_octproz = {
    .name = "OCTproZ",
    .is = octproz_is,
    .open = octproz_open,
};
