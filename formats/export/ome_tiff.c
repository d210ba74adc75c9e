#include "formats/export/ome_tiff.h"

#include "formats/tiff_fault.h"
#include "formats/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the OME-XML says that samples are little-endian"
#endif

#define DIRECTORY_BYTES 512u    /* of a plane beside its pixels, at most: 19 entries of 20 bytes */
#define MOST_PLANES 1000000u    /* libtiff takes 2^20 directories */
#define IMAGEJ_BYTES 160u       /* of its description, at most */
#define MOST_STRIP (1ull << 31) /* bytes of a plane, as most readers take them */

struct tiff_out {
    struct oct_whole_file file;
    TIFF *tiff;
    struct oct_tiff_fault fault;
    const struct oct_export_source *sources, *source; /* the one that is written */
    char *xml, imagej[IMAGEJ_BYTES];                  /* of the first plane of the first */
    uint64_t all;
};

/* ---- sizes ---- */

static uint64_t plane_bytes(const struct oct_export_form *form)
{
    return (uint64_t)form->dims[1] * form->dims[2] * oct_export_sample_bytes(form->sample);
}

uint64_t oct_ome_tiff_most_bytes(const struct oct_export_source *sources, unsigned n,
                                 size_t xml_bytes)
{
    uint64_t bytes = 16 + xml_bytes + IMAGEJ_BYTES;
    for (unsigned i = 0; i < n; i++)
        bytes += sources[i].form.dims[0] * (plane_bytes(&sources[i].form) + DIRECTORY_BYTES);
    return bytes;
}

static enum oct_err check(const char *path, const struct oct_export_source *sources, unsigned n,
                          uint64_t *n_planes, struct oct_error *err)
{
    *n_planes = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct oct_export_form *form = &sources[i].form;
        const uint64_t bytes = plane_bytes(form);
        if (bytes == 0 || form->dims[0] == 0)
            return oct_fail(err, OCT_E_ARG, "%s: %s holds nothing", path, form->name);
        if (bytes > MOST_STRIP)
            return oct_fail(err, OCT_E_ARG,
                            "%s: planes of %" PRIu64 " bytes; TIFF readers take up to 2 GiB: "
                            "export to .npy or .nii",
                            path, bytes);
        *n_planes += form->dims[0];
    }
    if (*n_planes == 0 || *n_planes > MOST_PLANES)
        return oct_fail(err, OCT_E_ARG,
                        "%s: %" PRIu64 " planes; a TIFF file takes 1 to %u: choose some by "
                        "--bscans, or export to .npy or .nii",
                        path, *n_planes, MOST_PLANES);
    return OCT_OK;
}

/* ---- directories ---- */

static enum oct_err failed(const struct tiff_out *o, int errnum, const char *what,
                           struct oct_error *err)
{
    if (errnum)
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be %s", o->file.path, what);
    return oct_fail(err, OCT_E_IO, "%s: cannot be %s%s%s", o->file.path, what,
                    o->fault.text[0] ? ": " : "", o->fault.text);
}

/* Pixels a centimetre, which programs that know no OME-XML take for the scale. */
static bool set_resolution(TIFF *tiff, const double um[2])
{
    if (!(um[0] > 0 && um[1] > 0 && isfinite(um[0]) && isfinite(um[1])))
        return true;
    return TIFFSetField(tiff, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER) &&
           TIFFSetField(tiff, TIFFTAG_XRESOLUTION, 1e4 / um[1]) &&
           TIFFSetField(tiff, TIFFTAG_YRESOLUTION, 1e4 / um[0]);
}

static bool set_form(TIFF *tiff, const struct oct_export_form *form)
{
    uint32_t height, width;
    double um[2];
    oct_export_picture_size(form, &height, &width, um);
    const bool is_float = form->sample == OCT_EXPORT_F32;
    return TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_PAGE) &&
           TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width) &&
           TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height) &&
           TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE,
                        (int)(8 * oct_export_sample_bytes(form->sample))) &&
           TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1) &&
           TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT,
                        is_float ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT) &&
           TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE) &&
           TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
           TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
           TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, height) &&
           TIFFSetField(tiff, TIFFTAG_SOFTWARE, "octd " OCT_VERSION) && set_resolution(tiff, um);
}

/* ---- for ImageJ without Bio-Formats ---- */

/* What ImageJ by itself needs beside the resolution, which it takes for micrometres if `unit` says
 * um: the distance of planes, which TIFF has no tag for. */
static void describe_for_imagej(char text[IMAGEJ_BYTES], const struct oct_export_form *form)
{
    uint32_t height, width;
    double um[2];
    oct_export_picture_size(form, &height, &width, um);
    const bool is_time = oct_ome_is_time(form);
    int n = snprintf(text, IMAGEJ_BYTES, "ImageJ=1.53t\n%s=%" PRIu32 "\n",
                     is_time ? "frames" : "slices", form->dims[0]);
    if (um[0] > 0 && um[1] > 0 && isfinite(um[0]) && isfinite(um[1]))
        n += snprintf(text + n, IMAGEJ_BYTES - (size_t)n, "unit=um\n");
    if (is_time ? form->plane_s > 0 : form->um[0] > 0 && isfinite(form->um[0]))
        snprintf(text + n, IMAGEJ_BYTES - (size_t)n, "%s=%.9g\n", is_time ? "finterval" : "spacing",
                 is_time ? form->plane_s : form->um[0]);
}

/* A directory may have two ImageDescriptions, as Micro-Manager's files have: readers of OME-XML
 * take the first, ImageJ the one that begins with its name. libtiff writes a tag once, so the
 * second is written as Make, which comes next, and is renamed in the closed file. */
static bool rename_make(const char *path)
{
    uint64_t at = 0, n = 0;
    uint16_t tag = 0, version = 0;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    bool ok = file >= 0 && pread(file, &version, 2, 2) == 2;
    const bool is_big = version == 43;
    const ssize_t offset_bytes = is_big ? 8 : 4, count_bytes = is_big ? 8 : 2;
    ok = ok && pread(file, &at, (size_t)offset_bytes, offset_bytes) == offset_bytes &&
         pread(file, &n, (size_t)count_bytes, (off_t)at) == count_bytes;
    at += (uint64_t)count_bytes;
    for (; ok && n > 0 && tag != TIFFTAG_MAKE; n--, at += is_big ? 20 : 12)
        ok = pread(file, &tag, 2, (off_t)at) == 2;
    const uint16_t wanted = TIFFTAG_IMAGEDESCRIPTION;
    ok = ok && tag == TIFFTAG_MAKE && pwrite(file, &wanted, 2, (off_t)at - (is_big ? 20 : 12)) == 2;
    return (file < 0 || close(file) == 0) && ok;
}

static bool set_descriptions(struct tiff_out *o)
{
    describe_for_imagej(o->imagej, &o->source->form);
    return TIFFSetField(o->tiff, TIFFTAG_IMAGEDESCRIPTION, o->xml) &&
           TIFFSetField(o->tiff, TIFFTAG_MAKE, o->imagej);
}

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    struct tiff_out *o = context;
    errno = 0;
    const bool ok = set_form(o->tiff, &o->source->form) &&
                    (plane > 0 || o->source > o->sources || set_descriptions(o)) &&
                    TIFFWriteEncodedStrip(o->tiff, 0, (void *)pixels, (tmsize_t)n_bytes) >= 0 &&
                    TIFFWriteDirectory(o->tiff);
    return ok ? OCT_OK : failed(o, errno, "written", err);
}

/* ---- the file ---- */

static enum oct_err begin(struct tiff_out *o, bool is_big, struct oct_error *err)
{
    TIFFOpenOptions *options = oct_tiff_fault_options(&o->fault);
    if (!options)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", o->file.path);
    errno = 0;
    o->tiff = TIFFOpenExt(o->file.work, is_big ? "w8l" : "w4l", options);
    const int errnum = errno;
    TIFFOpenOptionsFree(options);
    return o->tiff ? OCT_OK : failed(o, errnum, "made", err);
}

static enum oct_err put_all(struct tiff_out *o, const struct oct_export_source *sources, unsigned n,
                            const struct oct_export_options *options, uint64_t most_classic,
                            struct oct_error *err)
{
    uint64_t done = 0;
    enum oct_err e = oct_ome_xml_make(&o->xml, sources, n, err);
    e = e ? e : begin(o, oct_ome_tiff_most_bytes(sources, n, strlen(o->xml)) > most_classic, err);
    for (o->source = sources; o->source < sources + n && !e; o->source++) {
        e = oct_export_each_plane(o->source, true, options, done, o->all, put_plane, o, err);
        done += o->source->form.dims[0];
    }
    if (o->tiff)
        TIFFClose(o->tiff);
    if (!e && o->fault.text[0]) /* of the last bytes, which TIFFClose writes */
        e = failed(o, 0, "written", err);
    errno = 0;
    if (!e && !rename_make(o->file.work))
        e = failed(o, errno, "written", err);
    free(o->xml);
    return e;
}

enum oct_err oct_ome_tiff_write(const char *path, const struct oct_export_source *sources,
                                unsigned n, const struct oct_export_options *options,
                                uint64_t most_classic, struct oct_error *err)
{
    struct tiff_out o = {.sources = sources};
    enum oct_err e = check(path, sources, n, &o.all, err);
    e = e ? e : oct_whole_file_init(&o.file, path, options->force, err);
    return e ? e
             : oct_whole_file_end(&o.file, put_all(&o, sources, n, options, most_classic, err),
                                  err);
}

static enum oct_err write_ome_tiff(const char *path, const struct oct_export_source *sources,
                                   unsigned n, const struct oct_export_options *options,
                                   struct oct_error *err)
{
    return oct_ome_tiff_write(path, sources, n, options, OCT_OME_TIFF_MOST_CLASSIC, err);
}

const struct oct_export_format oct_export_ome_tiff = {
    .name = "ome-tiff",
    .suffixes = {".ome.tif", ".ome.tiff"},
    .meaning = "pictures for Fiji, Bio-Formats, napari, QuPath: voxel size, times, a series each",
    .many = true,
    .needs_um = true,
    .write = write_ome_tiff,
};
