/* Exports of Heidelberg Spectralis (HEYEX), .vol, little-endian:
 *
 *     0      header of 2048 bytes, "HSF-OCT-103"
 *     2048   picture of the fundus, u8 [SizeYSlo][SizeXSlo]; not read
 *     then NumBScans times
 *            header of BScanHdrSize bytes, "HSF-BS-103"; in it where on the fundus the B-scan
 *            begins and ends, mm to the right and down (a circle: where it begins, and its
 *            centre), and from OffSeg on the layers that the device found, f32
 *            [NumSeg][SizeX], rows of the picture from 0; FLT_MAX: none
 *            f32 [SizeZ][SizeX], linear intensity; FLT_MAX: outside the picture
 *
 * The format is published by readers alone: MedVisBonn/eyepy (io/he/vol_reader.py) and the plugin
 * "Open Heyex Raw" of ImageJ. Who was recorded is in the header, and is not read. */
#include "formats/input/sample.h"
#include "formats/picture_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADER_BYTES 2048u
#define LEAST_BSCAN_HEADER 256u /* of which 64 are read */
#define MOST_SLO_SIDE 65536u
#define MOST_MM 1e3 /* from one pixel to the next */
#define CIRCLE 2u   /* of the patterns of a scan */
#define OUTSIDE 3e38F
#define EPOCH_S 11644473600 /* 1601-01-01 to 1970-01-01 */
#define MOST_S 18000000000  /* since 1970, whose ns are counted in 64 bits */

static const char *const layer_names[] = {"ilm", "bm",  "nfl", "gcl", "ipl", "inl",
                                          "opl", "onl", "elm", "ios", "opt", "cho",
                                          "vit", "ant", "pr1", "pr2", "rpe"};
#define MOST_LAYERS ((uint32_t)(sizeof(layer_names) / sizeof(layer_names[0])))

struct vol_file {
    struct oct_picture_file file;
    uint32_t n_lines, depth;
    uint64_t first_byte, header_bytes, bscan_bytes; /* of B-scans, of their headers, of both */
    double um[2];                                   /* of A-lines and depths */
    uint64_t time_ns;
    float *row; /* [n_lines] */
};

static void vol_file_close(struct oct_picture_file *file)
{
    free(((struct vol_file *)file)->row);
}

static uint32_t u32_at(const unsigned char *at)
{
    static const struct oct_sample_kind u32 = {.kind = 'u', .bytes = 4};
    return (uint32_t)oct_sample_decode(&u32, at);
}

/* mm at `at` in um; NaN: no length. */
static double um_at(const unsigned char *at)
{
    static const struct oct_sample_kind f64 = {.kind = 'f', .bytes = 8};
    const double mm = oct_sample_decode(&f64, at);
    return mm > 0 && mm < MOST_MM ? mm * 1e3 : NAN;
}

/* ---- headers ---- */

static enum oct_err read_sizes(struct vol_file *f, const unsigned char *header, uint32_t *n_claimed,
                               struct oct_error *err)
{
    const uint32_t slo_width = u32_at(header + 48), slo_height = u32_at(header + 52);
    f->n_lines = u32_at(header + 12);
    *n_claimed = u32_at(header + 16);
    f->depth = u32_at(header + 20);
    f->header_bytes = u32_at(header + 100);
    const enum oct_err e = oct_picture_file_check(f->file.path, f->depth, f->n_lines, err);
    if (e)
        return e;
    if (slo_width > MOST_SLO_SIDE || slo_height > MOST_SLO_SIDE || *n_claimed == 0 ||
        f->header_bytes < LEAST_BSCAN_HEADER)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: damaged .vol: its header claims %" PRIu32 " B-scans with headers of "
                        "%" PRIu64 " bytes behind a fundus of %" PRIu32 " x %" PRIu32,
                        f->file.path, *n_claimed, f->header_bytes, slo_width, slo_height);
    f->first_byte = HEADER_BYTES + (uint64_t)slo_width * slo_height;
    f->bscan_bytes = f->header_bytes + (uint64_t)f->n_lines * f->depth * sizeof(float);
    return OCT_OK;
}

/* Spacing, eye and time. */
static void read_facts(struct vol_file *f, const unsigned char *header,
                       struct oct_volume_info *volume)
{
    const uint32_t pattern = u32_at(header + 96);
    const bool is_even = pattern != 1 && pattern != CIRCLE && pattern != 5; /* line, star */
    const uint64_t ticks = u32_at(header + 88) | (uint64_t)u32_at(header + 92) << 32; /* FILETIME */
    const time_t s = (time_t)(ticks / 10000000) - EPOCH_S;
    struct tm utc;
    volume->um[0] = is_even ? um_at(header + 32) : NAN;
    volume->um[1] = f->um[0] = um_at(header + 24);
    volume->um[2] = f->um[1] = um_at(header + 40);
    if (memcmp(header + 84, "OD", 3) == 0 || memcmp(header + 84, "OS", 3) == 0)
        memcpy(volume->eye, header + 84, 3);
    if (s <= 0 || s > MOST_S || !gmtime_r(&s, &utc))
        return;
    f->time_ns = (uint64_t)s * 1000000000 + ticks % 10000000 * 100;
    strftime(volume->start_time, sizeof(volume->start_time), "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Where a circle begins. */
static enum oct_err read_circle(const struct vol_file *f, double mm[2], struct oct_error *err)
{
    static const struct oct_sample_kind f64 = {.kind = 'f', .bytes = 8};
    unsigned char header[LEAST_BSCAN_HEADER];
    const enum oct_err e =
        oct_picture_file_read_at(&f->file, f->first_byte, header, sizeof(header), err);
    for (int i = 0; i < 2 && !e; i++) {
        const double from_centre = oct_sample_decode(&f64, header + 16 + 8 * i) -
                                   oct_sample_decode(&f64, header + 32 + 8 * i);
        mm[i] = fabs(from_centre) < MOST_MM ? i ? -from_centre : from_centre : 0;
    }
    return e;
}

/* How many layers the header of B-scan `index` holds, and where they begin in the file. */
static enum oct_err find_layers(const struct vol_file *f, uint64_t index, uint32_t *n, uint64_t *at,
                                struct oct_error *err)
{
    unsigned char header[64];
    const uint64_t begin = f->first_byte + index * f->bscan_bytes;
    const enum oct_err e = oct_picture_file_read_at(&f->file, begin, header, sizeof(header), err);
    if (e)
        return e;
    const uint32_t offset = u32_at(header + 52);
    *n = u32_at(header + 48);
    *at = begin + offset;
    if (memcmp(header, "HSF-BS-", 7) == 0 && u32_at(header + 12) == f->header_bytes &&
        (*n == 0 || (offset >= sizeof(header) && offset <= f->header_bytes &&
                     (uint64_t)*n * f->n_lines * sizeof(float) <= f->header_bytes - offset)))
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: damaged .vol: B-scan %" PRIu64 " has no header of its own, or its layers "
                    "lie outside it",
                    f->file.path, index);
}

static enum oct_err vol_file_open(struct oct_picture_file *file,
                                  const struct oct_pictures_options *options,
                                  struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct vol_file *f = (struct vol_file *)file;
    unsigned char header[HEADER_BYTES];
    uint32_t n_claimed, n_layers;
    uint64_t at;
    (void)options;
    enum oct_err e = oct_picture_file_hold(file, err);
    e = e ? e : oct_picture_file_read_at(file, 0, header, sizeof(header), err);
    e = e ? e : read_sizes(f, header, &n_claimed, err);
    if (e)
        return e;
    const uint64_t left = file->file_bytes > f->first_byte ? file->file_bytes - f->first_byte : 0;
    const uint64_t n_whole = left / f->bscan_bytes;
    if (n_whole == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: truncated .vol: no B-scan is whole", file->path);
    if ((e = find_layers(f, 0, &n_layers, &at, err)))
        return e;
    if (!(f->row = malloc(f->n_lines * sizeof(*f->row))))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
    *facts = (struct oct_picture_file_facts){
        .n_pictures = n_whole < n_claimed ? n_whole : n_claimed,
        .height = f->n_lines,
        .width = f->depth,
        .is_cut = n_whole < n_claimed,
        .n_claimed = n_claimed,
        .n_axes = 3,
        .volume = {.format = "Spectralis .vol",
                   .sample_bits = 32,
                   .n_layers = n_layers < MOST_LAYERS ? n_layers : MOST_LAYERS,
                   .layers = layer_names},
    };
    read_facts(f, header, &facts->volume);
    return u32_at(header + 96) == CIRCLE ? read_circle(f, facts->volume.circle_mm, err) : OCT_OK;
}

/* ---- pixels and layers ---- */

/* One row of f32 from `offset` on. */
static enum oct_err read_row(const struct vol_file *f, uint64_t offset, float *row,
                             struct oct_error *err)
{
    static const struct oct_sample_kind f32 = {.kind = 'f', .bytes = 4};
    const enum oct_err e =
        oct_picture_file_read_at(&f->file, offset, row, f->n_lines * sizeof(*row), err);
    for (uint32_t x = 0; x < f->n_lines && !e; x++) /* each in its own place */
        row[x] = (float)oct_sample_decode(&f32, (const unsigned char *)&row[x]);
    return e;
}

static enum oct_err vol_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                  struct oct_pictures_info *info, struct oct_error *err)
{
    const struct vol_file *f = (struct vol_file *)file;
    const uint64_t first = f->first_byte + index * f->bscan_bytes + f->header_bytes;
    uint32_t n;
    uint64_t at;
    enum oct_err e = find_layers(f, index, &n, &at, err);
    for (uint32_t z = 0; z < f->depth && !e; z++) {
        e = read_row(f, first + (uint64_t)z * f->n_lines * sizeof(float), f->row, err);
        for (uint32_t x = 0; x < f->n_lines && !e; x++) {
            const float value = f->row[x] < OUTSIDE ? fmaxf(f->row[x], 0) : NAN;
            pixels[(size_t)x * f->depth + z] = (float)(255 * sqrt(sqrt((double)value)));
        }
    }
    info->bits = 32;
    info->time_ns = f->time_ns;
    memcpy(info->um, f->um, sizeof(f->um));
    return e;
}

static enum oct_err vol_file_layer(struct oct_picture_file *file, uint64_t index, unsigned k,
                                   float *depth_px, struct oct_error *err)
{
    const struct vol_file *f = (struct vol_file *)file;
    uint32_t n;
    uint64_t at;
    enum oct_err e = find_layers(f, index, &n, &at, err);
    if (!e && k < n)
        e = read_row(f, at + (uint64_t)k * f->n_lines * sizeof(float), depth_px, err);
    for (uint32_t x = 0; x < f->n_lines && !e; x++)
        if (k >= n || !(depth_px[x] >= 0 && depth_px[x] < (float)f->depth))
            depth_px[x] = NAN;
    return e;
}

const struct oct_picture_file_ops oct_picture_file_vol = {
    .bytes = sizeof(struct vol_file),
    .open = vol_file_open,
    .close = vol_file_close,
    .read = vol_file_read,
    .layer = vol_file_layer,
};
