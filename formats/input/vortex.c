/* HDF5 files of vortex (vortex-oct 0.5.1, PyPI): HDF5StackStorage keeps one dataset, /data,
 *
 *     [volume][B-scan][A-scan][sample][channel]
 *
 * little-endian, one A-scan a chunk, which grows by a volume at a time; zeros where a scan was
 * stopped (src/vortex/storage/hdf5.hpp). With the MATLAB header the file begins with a block of 512
 * bytes of MATLAB's own. Spectra are u16 (demo/volume_to_disk.py), A-scans that vortex processed
 * i8. Nothing else is written: the k map and the scan are the user's.
 *
 * file.dataset=data:1 takes the second channel of several. */
#include "formats/input/array.h"
#include "formats/input/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOLUME, BSCAN, LINE, SAMPLE, CHANNEL, N_AXES };

static const struct oct_volume_array_entry *find_data(const struct oct_input_probe *probe)
{
    const struct oct_volume_array_entry *data = oct_input_array_named(probe, "/data");
    return data && data->rank == N_AXES ? data : NULL;
}

static bool vortex_is(const struct oct_input_probe *probe)
{
    return oct_input_is_hdf5(probe) && find_data(probe) != NULL;
}

/* "", "data", "/data", "data:1" */
static enum oct_err choose_channel(uint64_t *channel, const char *name, uint64_t n_channels,
                                   const struct oct_input_wish *wish, struct oct_error *err)
{
    const char *dataset = wish->dataset + (wish->dataset[0] == '/');
    const char *colon = strchr(dataset, ':');
    const size_t n = colon ? (size_t)(colon - dataset) : strlen(dataset);
    char *end = NULL;
    if (dataset[0] && (n != strlen("data") || memcmp(dataset, "data", n) != 0))
        return oct_fail(
            err, OCT_E_CONFIG,
            "%s: file.dataset = %s: of a vortex file it is data, or data:0, data:1, ... "
            "for its channels",
            name, wish->dataset);
    if (!colon && n_channels > 1)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %" PRIu64 " channels: which are the spectra? file.dataset=data:0 "
                        "takes the first",
                        name, n_channels);
    *channel = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoull(colon + 1, &end, 10) : 0;
    if (colon && (!end || *end || *channel >= n_channels))
        return oct_fail(err, OCT_E_CONFIG, "%s: file.dataset = %s: its channels are 0 to %" PRIu64,
                        name, wish->dataset, n_channels - 1);
    return OCT_OK;
}

/* B-scans i .. i + n - 1, counted over all volumes: of each volume a box. */
static enum oct_err read_bscans(const struct oct_input_array_setup *setup, uint64_t i, uint64_t n,
                                void *values, struct oct_error *err)
{
    const struct oct_volume_array_facts *f = oct_volume_array_facts(setup->context);
    const uint64_t bscan_bytes = f->dims[LINE] * f->dims[SAMPLE] * f->memory_bytes;
    enum oct_err e = OCT_OK;
    for (uint64_t done = 0; !e && done < n;) {
        const uint64_t volume = (i + done) / f->dims[BSCAN], first = (i + done) % f->dims[BSCAN];
        const uint64_t left = f->dims[BSCAN] - first, part = n - done < left ? n - done : left;
        const uint64_t from[N_AXES] = {volume, first, 0, 0, setup->channel};
        const uint64_t count[N_AXES] = {1, part, f->dims[LINE], f->dims[SAMPLE], 1};
        e = oct_volume_array_read_box(setup->context, from, count,
                                      (char *)values + done * bscan_bytes, err);
        done += part;
    }
    return e;
}

static enum oct_err check_extents(const struct oct_input_probe *probe,
                                  const struct oct_volume_array_facts *f, uint64_t *n_bscans,
                                  struct oct_error *err)
{
    if (f->dims[VOLUME] == 0 || f->dims[CHANNEL] == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds no volume: vortex had not written one when it ended",
                        probe->name);
    /* Beyond 2^32 of either, the product is not needed to refuse it. */
    const bool is_modest = f->dims[VOLUME] <= UINT32_MAX && f->dims[BSCAN] <= UINT32_MAX;
    *n_bscans = is_modest ? f->dims[VOLUME] * f->dims[BSCAN] : UINT64_MAX;
    enum oct_err e = oct_input_check(probe->name, *n_bscans, f->dims[LINE], f->dims[SAMPLE], err);
    if (e)
        return e;
    return oct_input_check_stored(probe->name,
                                  *n_bscans * f->dims[LINE] * f->dims[SAMPLE] * f->value_bytes,
                                  f->stored_bytes, err);
}

static enum oct_err vortex_open(struct oct_input *input, const struct oct_input_probe *probe,
                                const struct oct_input_wish *wish, struct oct_input_facts *facts,
                                struct oct_calibration *cal, struct oct_error *err)
{
    (void)cal;
    uint64_t n_bscans = 0, channel = 0;
    enum oct_err e = oct_volume_array_open(&input->source, probe->path, "/data", err);
    if (e)
        return e;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(input->source);
    if (f->rank != N_AXES)
        return oct_fail(err, OCT_E_FORMAT, "%s: /data has changed while it was opened",
                        probe->name);
    if (f->is_float || f->value_bytes != 2)
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: its values of %u bytes are A-scans that vortex processed; spectra have "
            "integers of 2 bytes (HDF5StackUInt16)",
            probe->name, f->value_bytes);
    e = check_extents(probe, f, &n_bscans, err);
    e = e ? e : choose_channel(&channel, probe->name, f->dims[CHANNEL], wish, err);
    if (e)
        return e;
    const struct oct_input_array_setup setup = {
        .name = probe->name,
        .order = {{n_bscans, f->dims[LINE], f->dims[SAMPLE]},
                  {OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE}},
        .kind = {f->is_signed ? 'i' : 'u', f->memory_bytes, false},
        .fd = -1,
        .context = input->source,
        .channel = channel,
        .read = read_bscans,
    };
    return oct_input_array_create(&input->array, &setup, wish, facts, err);
}

const struct oct_input_ops oct_input_vortex = {
    .name = "vortex",
    .is = vortex_is,
    .open = vortex_open,
};
