/* Thorlabs' .oct files (ThorImage OCT): a ZIP archive of Header.xml (thorlabs_header.h says what it
 * means and where that was read) and, where raw data were saved,
 *
 *     data\Spectral{n}.data    B-scan n: A-lines of samples, u8, i8, u16, i16, little-endian; those
 *                              of the apodisation first, which see no sample
 *     data\Chirp.data          f32 [N]: the place of each sample on N equal steps in k, so that a
 *                              spectrum is interp(chirp, samples) at 0 .. N-1: its inverse is the
 *                              k map
 *     data\ApodizationSpectrum.data
 *                              f32 [N], in electrons: the source; the background of files whose
 *                              B-scans bring no apodisation
 *     data\OffsetErrors.data   f32 [N], in electrons: the dark camera
 *
 * (OCTFileGetRawData.m of Thorlabs: electrons = counts * BinaryToElectronCountScaling - offset. A
 * background is subtracted from spectra with the same offset, so it drops out where there is an
 * apodisation.) file.dataset=Cam1 takes the second camera of a PS-OCT. */
#include "formats/input/archive.h"
#include "formats/input/array.h"
#include "formats/input/formats.h"
#include "formats/input/scaling.h"
#include "formats/input/thorlabs_header.h"
#include "pipeline/plan/geometry.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are read into memory as they lie in the file, which is little-endian"
#endif

#define PI 3.14159265358979323846

struct bscan {
    uint64_t number; /* of its name */
    const struct oct_thorlabs_file *file;
    struct oct_archive_entry entry;
};

struct thorlabs {
    char *name;
    const char *camera; /* "" or "_Cam1": behind the names of the files */
    struct oct_archive *archive;
    struct oct_thorlabs_header header;
    struct bscan *bscans; /* [n_bscans], rising */
    size_t n_bscans;
    struct bscan apodisation; /* a file of nothing else; file NULL: none */
    double n_steps;           /* of equal size in k that the samples span */
};

/* ---- the header ---- */

static bool begins_as(const struct oct_input_probe *probe, const char *signature)
{
    return probe->n_start >= 4 && memcmp(probe->start, signature, 4) == 0;
}

/* Any ZIP archive, one that is cut or empty too: nothing else that holds spectra is one. */
static bool thorlabs_is(const struct oct_input_probe *probe)
{
    return begins_as(probe, "PK\3\4") || begins_as(probe, "PK\5\6");
}

static enum oct_err read_header(struct thorlabs *in, struct oct_error *err)
{
    struct oct_archive_entry entry;
    bool found;
    enum oct_err e = oct_archive_find(in->archive, "Header.xml", &entry, &found, err);
    if (e)
        return e;
    if (!found)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: is a ZIP archive without Header.xml; of archives, only Thorlabs' .oct "
                        "files are read: unpack others first",
                        in->name);
    if (entry.n_bytes > OCT_THORLABS_MOST_HEADER)
        return oct_fail(err, OCT_E_FORMAT, "%s: Header.xml has %" PRIu64 " bytes, more than %zu",
                        in->name, entry.n_bytes, OCT_THORLABS_MOST_HEADER);
    char *xml = malloc(entry.n_bytes + 1);
    if (!xml)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->name);
    e = oct_archive_read(in->archive, &entry, 0, xml, entry.n_bytes, err);
    e = e ? e : oct_thorlabs_header_read(&in->header, in->name, xml, entry.n_bytes, err);
    free(xml);
    return e;
}

/* ---- B-scans ---- */

/* "Spectral12" and the camera's end: 12. */
static bool number_of(const struct thorlabs *in, const struct oct_thorlabs_file *file,
                      uint64_t *number)
{
    static const char begin[] = "Spectral";
    char *end;
    const char *digits = file->name + strlen(begin);
    if (strncmp(file->name, begin, strlen(begin)) != 0 || *digits < '0' || *digits > '9')
        return false;
    *number = strtoull(digits, &end, 10);
    return strcmp(end, in->camera) == 0 && *number <= UINT32_MAX;
}

/* Which A-lines are the scan's: those that the header says, else those behind the apodisation. */
static enum oct_err find_scan(const struct thorlabs *in, struct oct_thorlabs_file *file,
                              struct oct_error *err)
{
    if (file->has_more)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %s has several scan regions a B-scan, which are not known here",
                        in->name, file->entry);
    if (!file->has_scan) {
        file->scan_first = file->has_apo ? file->apo_end : 0;
        file->scan_end = file->n_lines;
    }
    if (file->n_lines == 0 || file->n_samples == 0 || file->scan_end > file->n_lines ||
        file->scan_first > file->scan_end || (file->has_apo && file->apo_end > file->n_lines))
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: Header.xml: %s: SizeX, SizeZ and its regions of A-lines contradict each "
            "other",
            in->name, file->entry);
    return OCT_OK;
}

static unsigned sample_bytes(const struct thorlabs *in, const struct oct_thorlabs_file *file)
{
    const double bytes = file->bytes > 0 ? (double)file->bytes : in->header.bytes;
    return bytes == 1 || bytes == 2 || bytes == 4 ? (unsigned)bytes : 0;
}

static enum oct_err look_up(struct thorlabs *in, struct bscan *b, struct oct_error *err)
{
    const struct oct_thorlabs_file *f = b->file;
    bool found;
    const unsigned bytes = sample_bytes(in, f);
    if (bytes == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: Header.xml: %s: samples of neither 1, 2 nor 4 bytes (BytesPerPixel)",
                        in->name, f->entry);
    enum oct_err e = oct_archive_find(in->archive, f->entry, &b->entry, &found, err);
    if (e)
        return e;
    if (!found)
        return oct_fail(err, OCT_E_FORMAT, "%s: lacks %s, which its Header.xml names", in->name,
                        f->entry);
    /* Counts are below 2^32: the product of two fits, and is divided instead of a third. */
    if (b->entry.n_bytes % bytes != 0 || b->entry.n_bytes / bytes != f->n_lines * f->n_samples)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %s has %" PRIu64 " bytes, but its Header.xml says %" PRIu64
                        " A-lines (SizeX) of %" PRIu64 " samples (SizeZ) of %u bytes",
                        in->name, f->entry, b->entry.n_bytes, f->n_lines, f->n_samples, bytes);
    return OCT_OK;
}

static enum oct_err add(struct thorlabs *in, struct oct_thorlabs_file *file, uint64_t number,
                        struct oct_error *err)
{
    struct bscan b = {.number = number, .file = file};
    enum oct_err e;
    if (strncmp(file->type, "Raw", 3) != 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: Header.xml: %s is of type %s; spectra are of type Raw", in->name,
                        file->entry, file->type);
    if ((e = find_scan(in, file, err)) || (e = look_up(in, &b, err)))
        return e;
    if (file->scan_first == file->scan_end)
        in->apodisation = b;
    else
        in->bscans[in->n_bscans++] = b;
    return OCT_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = ((const struct bscan *)a)->number, y = ((const struct bscan *)b)->number;
    return (x > y) - (x < y);
}

static enum oct_err refuse_empty(const struct thorlabs *in, struct oct_error *err)
{
    char picture[40];
    snprintf(picture, sizeof(picture), "Intensity%s", in->camera);
    if (oct_thorlabs_header_find(&in->header, picture))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds ThorImage's own picture (data\\%s.data) but no spectra: record "
                        "with raw data saved",
                        in->name, picture);
    return oct_fail(err, OCT_E_FORMAT, "%s: holds no spectra (data\\Spectral0%s.data, ...)",
                    in->name, in->camera);
}

/* All alike, and none missing. */
static enum oct_err check_bscans(const struct thorlabs *in, struct oct_error *err)
{
    const struct bscan *first = in->bscans;
    for (size_t i = 0; i < in->n_bscans; i++) {
        const struct bscan *b = &in->bscans[i];
        const struct oct_thorlabs_file *f = b->file, *like = first->file;
        if (b->number != first->number + i)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: Header.xml names B-scan %" PRIu64 " (data\\Spectral%" PRIu64
                            "%s.data) where %" PRIu64 " should follow",
                            in->name, b->number, b->number, in->camera, first->number + i);
        if (f->n_samples != like->n_samples || sample_bytes(in, f) != sample_bytes(in, like) ||
            f->scan_end - f->scan_first != like->scan_end - like->scan_first)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: %s and %s have A-lines of other numbers or lengths", in->name,
                            like->entry, f->entry);
    }
    return OCT_OK;
}

static enum oct_err find_bscans(struct thorlabs *in, struct oct_error *err)
{
    struct oct_thorlabs_header *h = &in->header;
    enum oct_err e = OCT_OK;
    uint64_t number;
    in->bscans = calloc(h->n_files + 1, sizeof(*in->bscans));
    if (!in->bscans)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->name);
    for (size_t i = 0; !e && i < h->n_files; i++)
        if (number_of(in, &h->files[i], &number))
            e = add(in, &h->files[i], number, err);
    if (e)
        return e;
    if (in->n_bscans == 0)
        return refuse_empty(in, err);
    qsort(in->bscans, in->n_bscans, sizeof(*in->bscans), by_number);
    return check_bscans(in, err);
}

/* The scan's A-lines of B-scans i .. i + n - 1. */
static enum oct_err read_bscans(const struct oct_input_array_setup *setup, uint64_t i, uint64_t n,
                                void *values, struct oct_error *err)
{
    const struct thorlabs *in = setup->context;
    const struct oct_thorlabs_file *like = in->bscans->file;
    const uint64_t line = like->n_samples * sample_bytes(in, like);
    const uint64_t bytes = (like->scan_end - like->scan_first) * line;
    enum oct_err e = OCT_OK;
    for (uint64_t k = 0; !e && k < n; k++) {
        const struct bscan *b = &in->bscans[i + k];
        e = oct_archive_read(in->archive, &b->entry, b->file->scan_first * line,
                             (char *)values + k * bytes, bytes, err);
    }
    return e;
}

static enum oct_err open_array(struct thorlabs *in, struct oct_input_array **array,
                               const struct oct_input_wish *wish, struct oct_input_facts *facts,
                               struct oct_error *err)
{
    const struct oct_thorlabs_file *like = in->bscans->file;
    const struct oct_input_array_setup setup = {
        .name = in->name,
        .order = {{in->n_bscans, like->scan_end - like->scan_first, like->n_samples},
                  {OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE}},
        .kind = {in->header.is_signed ? 'i' : 'u', sample_bytes(in, like), false},
        .fd = -1,
        .context = in,
        .read = read_bscans,
    };
    const uint64_t *n = setup.order.n;
    const enum oct_err e = oct_input_check(in->name, n[0], n[1], n[2], err);
    return e ? e : oct_input_array_create(array, &setup, wish, facts, err);
}

/* ---- calibration ---- */

/* data\NAME.data, or that of the second camera: n numbers, malloc'd; *values NULL: there is
 * none. */
static enum oct_err read_numbers(struct thorlabs *in, const char *name, uint64_t n, float **values,
                                 struct oct_error *err)
{
    char with_camera[40];
    struct oct_archive_entry entry;
    bool found;
    *values = NULL;
    snprintf(with_camera, sizeof(with_camera), "%s%s", name, in->camera);
    const struct oct_thorlabs_file *file = oct_thorlabs_header_find(&in->header, with_camera);
    file = file ? file : oct_thorlabs_header_find(&in->header, name);
    if (!file)
        return OCT_OK;
    enum oct_err e = oct_archive_find(in->archive, file->entry, &entry, &found, err);
    if (e || !found)
        return e;
    if (entry.n_bytes != n * sizeof(float))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %s has %" PRIu64 " bytes instead of %" PRIu64
                        " numbers of 4 bytes, one a sample",
                        in->name, file->entry, entry.n_bytes, n);
    if (!(*values = malloc(entry.n_bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->name);
    e = oct_archive_read(in->archive, &entry, 0, *values, entry.n_bytes, err);
    for (uint64_t i = 0; !e && i < n; i++)
        if (!isfinite((*values)[i]))
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s: value %" PRIu64 " is no number", in->name,
                         file->entry, i);
    return e;
}

/* The camera coordinates of n equal steps from the first to the last place of the chirp. */
static void invert(const float *chirp, uint64_t n, double *kmap)
{
    const double first = chirp[0], step = (chirp[n - 1] - first) / (double)(n - 1);
    uint64_t low = 0;
    for (uint64_t j = 0; j < n; j++) {
        const double place = first + step * (double)j;
        while (low < n - 2 && (step > 0 ? place >= chirp[low + 1] : place <= chirp[low + 1]))
            low++;
        kmap[j] = (double)low + (place - chirp[low]) / ((double)chirp[low + 1] - chirp[low]);
    }
}

static enum oct_err read_chirp(struct thorlabs *in, uint64_t n, struct oct_calibration *cal,
                               struct oct_error *err)
{
    float *chirp;
    enum oct_err e = read_numbers(in, "Chirp", n, &chirp, err);
    in->n_steps = (double)n - 1;
    if (e || !chirp)
        goto done;
    for (uint64_t i = 1; !e && i < n; i++)
        if (!((chirp[i] - chirp[i - 1]) * (chirp[1] - chirp[0]) > 0))
            e = oct_fail(err, OCT_E_FORMAT,
                         "%s: data\\Chirp.data: value %" PRIu64
                         " does not go on as those before it",
                         in->name, i);
    if (e)
        goto done;
    cal->kmap_px = malloc(n * sizeof(*cal->kmap_px));
    if (!cal->kmap_px) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->name);
        goto done;
    }
    cal->n_kmap = n;
    invert(chirp, n, cal->kmap_px);
    in->n_steps = fabs((double)chirp[n - 1] - chirp[0]);
done:
    free(chirp);
    return e;
}

/* The mean over the A-lines of the apodisation of the first file that has them, in counts. */
static enum oct_err average_apodisation(struct thorlabs *in, const struct bscan *b, double *mean,
                                        struct oct_error *err)
{
    const struct oct_thorlabs_file *f = b->file;
    const unsigned bytes = sample_bytes(in, f);
    const uint64_t n = f->n_samples, n_lines = f->apo_end - f->apo_first;
    const struct oct_sample_kind kind = {in->header.is_signed ? 'i' : 'u', bytes, false};
    enum oct_err e = oct_input_check(in->name, 1, n_lines, n, err);
    if (e)
        return e;
    unsigned char *values = bytes ? malloc(n_lines * n * bytes + 1) : NULL; /* never of 0 bytes */
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->name);
    e = oct_archive_read(in->archive, &b->entry, f->apo_first * n * bytes, values,
                         n_lines * n * bytes, err);
    for (uint64_t i = 0; !e && i < n; i++) {
        double sum = 0;
        for (uint64_t j = 0; j < n_lines; j++)
            sum += oct_sample_decode(&kind, values + (j * n + i) * bytes);
        mean[i] = sum / (double)n_lines;
    }
    free(values);
    return e;
}

/* Electrons of a file of the archive as counts; *done: there was one. */
static enum oct_err take_electrons(struct thorlabs *in, const char *name, uint64_t n,
                                   double *counts, bool *done, struct oct_error *err)
{
    float *electrons = NULL;
    enum oct_err e = OCT_OK;
    if (in->header.electrons > 0)
        e = read_numbers(in, name, n, &electrons, err);
    *done = !e && electrons;
    for (uint64_t i = 0; *done && i < n; i++)
        counts[i] = electrons[i] / in->header.electrons;
    free(electrons);
    return e;
}

/* The background in counts as the spectra are read, which `scaling` may have moved. */
static enum oct_err read_background(struct thorlabs *in, uint64_t n,
                                    const struct oct_input_wish *wish, struct oct_calibration *cal,
                                    struct oct_error *err)
{
    const struct bscan *from =
        in->bscans->file->has_apo || !in->apodisation.file ? in->bscans : &in->apodisation;
    const struct oct_sample_kind kind = {in->header.is_signed ? 'i' : 'u',
                                         sample_bytes(in, in->bscans->file), false};
    struct oct_scaling scaling;
    oct_scaling_init(&scaling, &kind, wish);
    if (scaling.needs_range)
        return OCT_OK; /* of 4 bytes: the array alone knows how they were moved */
    double *counts = calloc(n, sizeof(*counts));
    if (!counts)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", in->name);
    enum oct_err e = OCT_OK;
    bool done = from->file->has_apo && from->file->n_samples == n;
    if (done)
        e = average_apodisation(in, from, counts, err);
    if (!e && !done)
        e = take_electrons(in, "ApodizationSpectrum", n, counts, &done, err);
    if (!e && !done)
        e = take_electrons(in, "OffsetErrors", n, counts, &done, err);
    for (uint64_t i = 0; !e && done && i < n; i++)
        counts[i] = counts[i] * scaling.scale + scaling.offset;
    if (e || !done) {
        free(counts);
        return e;
    }
    cal->background = counts;
    cal->n_background = n;
    return OCT_OK;
}

/* ---- facts ---- */

static double above_0(double value)
{
    return value > 0 ? value : NAN;
}

/* The N/2 pixels of a transform of N steps reach as deep as pi / (2 step): optical path in air, um;
 * NaN: unknown. A picture with less pixels has been cut. */
static double depth_range_um(const struct oct_thorlabs_header *h, double n_pixels)
{
    const double cut = h->z_px > 0 && h->z_px < n_pixels ? n_pixels / h->z_px : 1;
    const double mm = h->z_mm > 0 ? h->z_mm * cut : h->z_spacing_mm * n_pixels;
    return above_0(mm * 1000 * h->refractive_index);
}

static void describe(const struct thorlabs *in, const struct oct_input_wish *wish,
                     struct oct_input_facts *facts, struct oct_calibration *cal)
{
    const struct oct_thorlabs_header *h = &in->header;
    const double range_um = depth_range_um(h, facts->n_samples / 2.0);
    if (isfinite(range_um))
        cal->span_per_nm = in->n_steps * PI / (2000 * range_um);
    if (!wish->is_scaled && !h->is_signed && h->bits >= 1 && h->bits <= 16)
        facts->bits = (unsigned)h->bits;
    facts->line_rate_hz = above_0(h->line_rate_hz);
    facts->width_um = above_0(h->x_mm * 1000);
    facts->height_um = above_0(h->y_mm * 1000);
    facts->axial_um = above_0(h->z_spacing_mm * 1000 * h->refractive_index);
    facts->lambda_nm = above_0(h->lambda_nm);
    facts->width_nm = above_0(h->width_nm);
    /* Within the years that four digits hold. */
    if (h->timestamp_s >= 1 && h->timestamp_s < 253402300800.0) {
        const time_t seconds = (time_t)h->timestamp_s;
        struct tm utc;
        if (gmtime_r(&seconds, &utc))
            strftime(facts->start_time, sizeof(facts->start_time), "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
}

/* ---- the table ---- */

static void thorlabs_close(void *own)
{
    struct thorlabs *in = own;
    free(in->bscans);
    oct_thorlabs_header_finish(&in->header);
    oct_archive_close(in->archive);
    free(in->name);
    free(in);
}

static enum oct_err choose_camera(struct thorlabs *in, const struct oct_input_wish *wish,
                                  struct oct_error *err)
{
    in->camera = strcmp(wish->dataset, "Cam1") == 0 ? "_Cam1" : "";
    if (wish->dataset[0] && !in->camera[0] && strcmp(wish->dataset, "Cam0") != 0)
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: file.dataset = %s: of a Thorlabs .oct file it is Cam0, the camera, or "
                        "Cam1, the second of a PS-OCT",
                        in->name, wish->dataset);
    return OCT_OK;
}

static enum oct_err thorlabs_open(struct oct_input *input, const struct oct_input_probe *probe,
                                  const struct oct_input_wish *wish, struct oct_input_facts *facts,
                                  struct oct_calibration *cal, struct oct_error *err)
{
    struct thorlabs *in = input->own = calloc(1, sizeof(*in));
    if (!in || !(in->name = strdup(probe->name)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", probe->name);
    enum oct_err e = choose_camera(in, wish, err);
    e = e ? e : oct_archive_open(&in->archive, probe->path, in->name, probe->size, err);
    e = e ? e : read_header(in, err);
    e = e ? e : find_bscans(in, err);
    e = e ? e : open_array(in, &input->array, wish, facts, err);
    e = e ? e : read_chirp(in, facts->n_samples, cal, err);
    e = e ? e : read_background(in, facts->n_samples, wish, cal, err);
    if (!e)
        describe(in, wish, facts, cal);
    return e;
}

const struct oct_input_ops oct_input_thorlabs = {
    .name = "Thorlabs .oct",
    .is = thorlabs_is,
    .open = thorlabs_open,
    .close = thorlabs_close,
};
