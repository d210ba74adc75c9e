/* HDF5: the B-scans of recordings, and any dataset of two or three axes. */
#include "config/apply.h"
#include "formats/picture_file.h"
#include "pipeline/volume/array.h"
#include "pipeline/volume/volume.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NS 9007199254740992.0 /* 2^53, 104 days: integers up to it are exact */

struct hdf5_file {
    struct oct_picture_file file; /* its path with the dataset */
    struct oct_volume_reader *volume;
    struct oct_volume_array *array;      /* the other is NULL */
    struct oct_pictures_options options; /* mask_path is not used */
    uint64_t n_rows;                     /* of an array's first axis; of a recording V */
    uint32_t row_height, row_width;      /* of one B-scan, or one picture of an array */
    bool is_db, is_linear;
    double line_rate_hz; /* of a recording; 0: unknown */
    double circle_mm[2]; /* oct_volume_info */
    uint64_t clock_ns;   /* of the first row whose time is known */
    double *row_ns;      /* [n_rows]: since clock_ns; NULL: no times */
    uint8_t *u8;         /* [row_height][row_width] of recordings in u8 */
    uint8_t *came;       /* [row_height] */
};

static void hdf5_file_close(struct oct_picture_file *file)
{
    struct hdf5_file *f = (struct hdf5_file *)file;
    oct_volume_reader_destroy(f->volume);
    oct_volume_array_close(f->array);
    free(f->row_ns);
    free(f->u8);
    free(f->came);
}

/* ---- the configuration ---- */

/* x of a scan grows to the right of a fundus, y downwards. */
static void find_circle(struct hdf5_file *f, const struct oct_config *config)
{
    struct oct_scan scan = oct_config_way(config);
    double um[2];
    scan.n_lines = f->row_height;
    if (scan.pattern != OCT_SCAN_CIRCLE)
        return;
    oct_scan_position(&scan, 0, 0, um);
    f->circle_mm[0] = (um[0] - scan.centre_um[0]) / 1e3;
    f->circle_mm[1] = -(um[1] - scan.centre_um[1]) / 1e3;
}

/* What a recording's configuration says: what its values are, and the rate of A-lines. */
static void read_config(struct hdf5_file *f)
{
    const char *text = oct_volume_config_text(f->volume);
    struct oct_config *config = text ? calloc(1, sizeof(*config)) : NULL;
    if (!config)
        return;
    oct_config_init(config);
    if (oct_config_load_text(config, text, f->file.path, NULL) == OCT_OK) {
        f->is_db = config->pipeline.log;
        f->is_linear = !f->is_db && oct_volume_facts(f->volume)->sample_type == OCT_SAMPLE_F32;
        f->line_rate_hz = config->scan.line_rate_hz;
        find_circle(f, config);
    }
    free(config);
}

/* ---- times ---- */

static bool is_timed(const struct hdf5_file *f, uint64_t v)
{
    const struct oct_volume_row row = oct_volume_row(f->volume, (uint32_t)v);
    return row.valid && row.time_ns > 0;
}

/* Rows first .. last - 1 at even distance between known ones, or beyond them. */
static void fill_times(double *row_ns, uint64_t first, uint64_t last, uint64_t known, double step)
{
    for (uint64_t v = first; v < last; v++)
        row_ns[v] = row_ns[known] + ((double)v - (double)known) * step;
}

/* A clock that runs backwards, or months in one recording, is none. */
static void find_times(struct hdf5_file *f)
{
    uint64_t first = 0, last, newest_ns;
    while (first < f->n_rows && !is_timed(f, first))
        first++;
    if (first == f->n_rows || !(f->row_ns = malloc(f->n_rows * sizeof(*f->row_ns))))
        return;
    last = first;
    newest_ns = f->clock_ns = oct_volume_row(f->volume, (uint32_t)first).time_ns;
    f->row_ns[first] = 0;
    for (uint64_t v = first + 1; v < f->n_rows; v++) {
        const uint64_t ns = oct_volume_row(f->volume, (uint32_t)v).time_ns;
        if (!is_timed(f, v))
            continue;
        if (ns < newest_ns || (double)(ns - f->clock_ns) > MOST_NS) {
            free(f->row_ns);
            f->row_ns = NULL;
            return;
        }
        f->row_ns[v] = (double)(ns - f->clock_ns);
        fill_times(f->row_ns, last + 1, v, last,
                   (f->row_ns[v] - f->row_ns[last]) / (double)(v - last));
        last = v;
        newest_ns = ns;
    }
    const double step = last > first          ? f->row_ns[last] / (double)(last - first)
                        : f->line_rate_hz > 0 ? 1e9 / f->line_rate_hz * f->row_height
                                              : 0;
    fill_times(f->row_ns, 0, first, first, step);
    fill_times(f->row_ns, last + 1, f->n_rows, last, step);
}

/* The camera's clock at a row. */
static uint64_t clock_at(const struct hdf5_file *f, uint64_t v)
{
    const double ns = f->row_ns[v];
    if (ns < 0)
        return (double)f->clock_ns > -ns && -ns < MOST_NS ? f->clock_ns - (uint64_t)-ns : 0;
    return f->clock_ns + (uint64_t)fmin(ns, MOST_NS);
}

static void tell_times(const struct hdf5_file *f, struct oct_picture_file_facts *facts)
{
    const struct oct_span *s = &f->options.frames;
    const bool is_part = s->last > 0 && s->last <= f->n_rows;
    facts->has_clock = f->row_ns != NULL;
    if (!facts->has_clock)
        return;
    facts->first_ns = clock_at(f, is_part ? s->first : 0);
    facts->last_ns = clock_at(f, (is_part ? s->last : f->n_rows) - 1);
}

static void hdf5_file_times(const struct oct_picture_file *file, uint64_t index, uint64_t origin_ns,
                            struct oct_pictures_times *times)
{
    const struct hdf5_file *f = (const struct hdf5_file *)file;
    const double base_ns = f->clock_ns >= origin_ns ? (double)(f->clock_ns - origin_ns)
                                                    : -(double)(origin_ns - f->clock_ns);
    const double start_ns = base_ns + f->row_ns[index];
    times->start_s = start_ns / 1e9;
    if (!(f->line_rate_hz > 0))
        times->time_s = NULL;
    for (uint32_t j = 0; times->time_s && j < f->row_height; j++)
        times->time_s[j] = start_ns / 1e9 + j / f->line_rate_hz;
}

/* ---- opening a file ---- */

static enum oct_err open_volume(struct hdf5_file *f, struct oct_error *err)
{
    enum oct_err e = oct_volume_open(&f->volume, f->file.path, err);
    if (e)
        return e;
    const struct oct_volume_facts *facts = oct_volume_facts(f->volume);
    if (facts->depth == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds spectra but no pictures; octctl recon makes them", f->file.path);
    f->n_rows = facts->n_bscans;
    f->row_height = facts->n_lines;
    f->row_width = facts->depth;
    read_config(f);
    find_times(f);
    return OCT_OK;
}

static enum oct_err open_array(struct hdf5_file *f, char *colon, struct oct_error *err)
{
    *colon = '\0';
    enum oct_err e = oct_volume_array_open(&f->array, f->file.path, colon + 1, err);
    *colon = ':';
    if (e)
        return e;
    const struct oct_volume_array_facts *facts = oct_volume_array_facts(f->array);
    if (facts->rank != 2 && facts->rank != 3)
        return oct_fail(err, OCT_E_FORMAT, "%s: has %u axes; a dataset of pictures has 2 or 3",
                        f->file.path, facts->rank);
    const uint64_t *side = facts->dims + facts->rank - 2;
    f->n_rows = facts->rank == 3 ? facts->dims[0] : 1;
    if (f->n_rows == 0 || side[0] == 0 || side[1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: is empty", f->file.path);
    if (side[0] > OCT_PICTURE_MOST_SIDE || side[1] > OCT_PICTURE_MOST_SIDE)
        return oct_picture_file_check(f->file.path, side[0], side[1], err);
    f->row_height = (uint32_t)side[0];
    f->row_width = (uint32_t)side[1];
    f->is_db = strcmp(facts->unit, "dB") == 0;
    return OCT_OK;
}

static enum oct_err make_scratch(struct hdf5_file *f, struct oct_error *err)
{
    const bool is_u8 = f->volume && oct_volume_facts(f->volume)->sample_type == OCT_SAMPLE_U8;
    f->came = malloc(f->row_height);
    f->u8 = is_u8 ? malloc((size_t)f->row_height * f->row_width) : NULL;
    if (!f->came || (is_u8 && !f->u8))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
    return OCT_OK;
}

static void tell_volume(const struct hdf5_file *f, struct oct_picture_file_facts *facts)
{
    struct oct_volume_info *volume = &facts->volume;
    const unsigned n = f->array ? oct_volume_array_facts(f->array)->rank : 3;
    const double *um = f->array ? oct_volume_array_facts(f->array)->spacing_um
                                : oct_volume_facts(f->volume)->spacing_um;
    facts->n_axes = n;
    *volume = (struct oct_volume_info){
        .um = {NAN, NAN, NAN},
        .is_db = f->is_db,
        .is_linear = f->is_linear,
        .circle_mm = {f->circle_mm[0], f->circle_mm[1]},
        .is_own_circle = f->circle_mm[0] != 0 || f->circle_mm[1] != 0,
    };
    for (unsigned i = 0; i < n; i++)
        volume->um[3 - n + i] = um[i];
    if (f->volume)
        snprintf(volume->eye, sizeof(volume->eye), "%s", oct_volume_facts(f->volume)->eye);
}

static enum oct_err hdf5_file_open(struct oct_picture_file *file,
                                   const struct oct_pictures_options *options,
                                   struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct hdf5_file *f = (struct hdf5_file *)file;
    f->options = *options;
    char *colon = strstr(file->path, ":/");
    for (char *next = colon; next; next = strstr(next + 1, ":/"))
        colon = next; /* the last */
    enum oct_err e = colon ? open_array(f, colon, err) : open_volume(f, err);
    if (e)
        return e;
    *facts = (struct oct_picture_file_facts){
        .n_pictures = f->n_rows, .height = f->row_height, .width = f->row_width};
    tell_times(f, facts);
    tell_volume(f, facts);
    e = oct_picture_file_check(f->file.path, facts->height, facts->width, err);
    return e ? e : make_scratch(f, err);
}

/* ---- pixels ---- */

static void set_line(struct hdf5_file *f, float *pixels, uint32_t line, float value)
{
    float *row = pixels + (size_t)line * f->row_width;
    for (uint32_t d = 0; d < f->row_width; d++)
        row[d] = value;
}

/* A line that never came is one value throughout. */
static bool is_flat(const struct hdf5_file *f, const float *pixels, uint32_t line)
{
    const float *row = pixels + (size_t)line * f->row_width;
    for (uint32_t d = 1; d < f->row_width; d++)
        if (row[d] != row[0])
            return false;
    return true;
}

/* Makes A-lines that did not come NaN: by the mask; without one, those without any structure in a
 * B-scan that says that it misses some. */
static enum oct_err mask_lines(struct hdf5_file *f, uint32_t v, const struct oct_volume_row *row,
                               float *pixels, struct oct_error *err)
{
    bool known;
    enum oct_err e = oct_volume_read_line_valid(f->volume, v, f->came, &known, err);
    for (uint32_t j = 0; e == OCT_OK && j < f->row_height; j++)
        if (known ? !f->came[j] : row->missing_lines > 0 && is_flat(f, pixels, j))
            set_line(f, pixels, j, NAN);
    return e;
}

static enum oct_err read_bscan(struct hdf5_file *f, uint32_t v, float *pixels,
                               struct oct_error *err)
{
    const struct oct_volume_row row = oct_volume_row(f->volume, v);
    const size_t n = (size_t)f->row_height * f->row_width;
    bool valid;
    enum oct_err e =
        oct_volume_read_image(f->volume, v, f->u8 ? (void *)f->u8 : pixels, &valid, err);
    if (e)
        return e;
    /* In double and rounded once: the same number wherever it is computed. */
    const bool scaled =
        f->u8 && !f->options.raw && isfinite(row.lo) && isfinite(row.hi) && row.lo < row.hi;
    for (size_t i = 0; f->u8 && i < n; i++)
        pixels[i] = scaled ? (float)(row.lo + f->u8[i] * (row.hi - row.lo) / 255) : f->u8[i];
    if (valid)
        return mask_lines(f, v, &row, pixels, err);
    for (uint32_t j = 0; j < f->row_height; j++)
        set_line(f, pixels, j, NAN);
    return OCT_OK;
}

static enum oct_err read_row(struct hdf5_file *f, uint64_t index, float *pixels,
                             struct oct_error *err)
{
    if (f->volume)
        return read_bscan(f, (uint32_t)index, pixels, err);
    return oct_volume_array_facts(f->array)->rank == 3
               ? oct_volume_array_read_row(f->array, index, pixels, err)
               : oct_volume_array_read(f->array, pixels, err);
}

static void describe(const struct hdf5_file *f, uint64_t index, struct oct_pictures_info *info)
{
    const double *um;
    if (f->volume) {
        const struct oct_volume_facts *facts = oct_volume_facts(f->volume);
        um = facts->spacing_um + 1;
        info->bits = facts->sample_type == OCT_SAMPLE_U8 ? 8 : 32;
        info->time_ns = oct_volume_row(f->volume, (uint32_t)index).time_ns;
        info->is_db = f->is_db && !(f->options.raw && f->u8);
    } else {
        const struct oct_volume_array_facts *facts = oct_volume_array_facts(f->array);
        um = facts->spacing_um + facts->rank - 2;
        info->bits = facts->is_float || facts->value_bytes > 2 ? 32 : 8 * facts->value_bytes;
        info->is_db = f->is_db;
    }
    info->um[0] = um[0];
    info->um[1] = um[1];
}

static enum oct_err hdf5_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                   struct oct_pictures_info *info, struct oct_error *err)
{
    struct hdf5_file *f = (struct hdf5_file *)file;
    describe(f, index, info);
    return read_row(f, index, pixels, err);
}

const struct oct_picture_file_ops oct_picture_file_hdf5 = {
    .bytes = sizeof(struct hdf5_file),
    .open = hdf5_file_open,
    .close = hdf5_file_close,
    .read = hdf5_file_read,
    .times = hdf5_file_times,
};
