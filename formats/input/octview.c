/* Raw recordings of OCTview (octview_meta.h): NAME.bin, NAME_0001.bin, ... of u16 samples, frame
 * after frame, with NAME.json beside them. OCTview writes no k map: a recording of it needs
 * calibration.wavelengths or calibration.kmap. */
#include "formats/input/array.h"
#include "formats/input/beside.h"
#include "formats/input/formats.h"
#include "formats/input/octview_meta.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* "_0001" before ".bin": a recording of several files, of which the first has no number. */
static bool is_numbered(const char *path, size_t n_stem)
{
    return n_stem > 5 && path[n_stem - 5] == '_' && path[n_stem - 6] != '/' &&
           strspn(path + n_stem - 4, "0123456789") == 4;
}

static bool read_beside(const char *path, size_t n_end, struct oct_octview_meta *meta)
{
    size_t n = 0;
    char *beside = oct_beside_name(path, n_end, ".json");
    char *json = beside ? oct_beside_read(beside, OCT_OCTVIEW_MOST_META, &n) : NULL;
    free(beside);
    if (json)
        oct_octview_meta_read(meta, json, n);
    free(json);
    return json && meta->is_octview;
}

static bool find_meta(const char *path, struct oct_octview_meta *meta)
{
    static const char end[] = ".bin";
    if (!oct_beside_ends(path, end))
        return false;
    return read_beside(path, strlen(end), meta) || (is_numbered(path, strlen(path) - strlen(end)) &&
                                                    read_beside(path, strlen(end) + 5, meta));
}

static bool octview_is(const struct oct_input_probe *probe)
{
    struct oct_octview_meta meta;
    return find_meta(probe->path, &meta);
}

/* Whole frames: OCTview writes no others, and a new file begins with one. */
static enum oct_err count_bscans(const struct oct_input_probe *probe,
                                 const struct oct_octview_meta *meta, uint64_t *n_bscans,
                                 struct oct_error *err)
{
    enum oct_err e =
        oct_input_check(probe->name, meta->n_bscans, meta->n_lines, meta->n_samples, err);
    if (e)
        return e;
    const uint64_t frame_bytes = meta->n_bscans * meta->n_lines * meta->n_samples * 2;
    if (probe->size == 0 || probe->size % frame_bytes != 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %" PRIu64 " bytes are not whole frames of OCTview of %" PRIu64
                        " B-scans of %" PRIu64 " A-lines of %" PRIu64
                        " samples, as its .json says: the file was cut, or the .json belongs to "
                        "another one",
                        probe->name, probe->size, meta->n_bscans, meta->n_lines, meta->n_samples);
    *n_bscans = probe->size / frame_bytes * meta->n_bscans;
    return OCT_OK;
}

static enum oct_err check_meta(const char *name, const struct oct_octview_meta *meta,
                               struct oct_error *err)
{
    if (!meta->is_spectra)
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: holds what OCTview made of its spectra, not spectra, as its .json says "
            "(Data-type, Processed): record with Data type Raw",
            name);
    if (meta->n_lines == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: its .json lacks Spectrometer-bins, A-lines, B-lines or "
                        "Frame-size-voxels, or they contradict each other; renamed, it is not "
                        "read, and camera.samples and scan.lines count",
                        name);
    return OCT_OK;
}

static enum oct_err octview_open(struct oct_input *input, const struct oct_input_probe *probe,
                                 const struct oct_input_wish *wish, struct oct_input_facts *facts,
                                 struct oct_calibration *cal, struct oct_error *err)
{
    struct oct_octview_meta meta;
    if (!find_meta(probe->path, &meta))
        return oct_fail(err, OCT_E_FORMAT, "%s: has no .json of OCTview beside it", probe->name);
    uint64_t n[3] = {0, meta.n_lines, meta.n_samples};
    enum oct_err e = check_meta(probe->name, &meta, err);
    e = e ? e : count_bscans(probe, &meta, n, err);
    e = e ? e : oct_input_array_of_file(&input->array, probe, n, 2, wish, facts, err);
    if (e)
        return e;
    if (!wish->is_scaled)
        facts->bits = 0; /* the camera's are not said */
    facts->line_rate_hz = meta.line_rate_hz;
    facts->width_um = meta.width_um;
    facts->height_um = meta.height_um;
    facts->axial_um = meta.axial_um;
    if (isfinite(meta.band_nm[0])) {
        facts->lambda_nm = (meta.band_nm[0] + meta.band_nm[1]) / 2;
        facts->width_nm = meta.band_nm[1] - meta.band_nm[0];
        cal->span_per_nm = 2 * PI / meta.band_nm[0] - 2 * PI / meta.band_nm[1];
    }
    return OCT_OK;
}

const struct oct_input_ops oct_input_octview = {
    .name = "OCTview",
    .is = octview_is,
    .open = octview_open,
};
