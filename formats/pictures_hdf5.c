/* HDF5: the B-scans of recordings, or an en face picture made of them, and any dataset of two or
 * three axes. */
#include "config/config.h"
#include "formats/picture_file.h"
#include "pipeline/volume/array.h"
#include "pipeline/volume/volume.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct hdf5_file {
    char *path; /* as the user named it, with the dataset */
    struct oct_volume_reader *volume;
    struct oct_volume_array *array; /* the other is NULL */
    bool en_face, raw;
    uint32_t slab_first, slab_last;
    uint64_t n_rows;                /* of an array's first axis; of a recording V */
    uint32_t row_height, row_width; /* of one B-scan, or one picture of an array */
    bool is_db;
    float *row;    /* [row_height][row_width], when it is not the picture */
    uint8_t *u8;   /* the same of recordings in u8 */
    uint8_t *came; /* [row_height] */
};

static void hdf5_file_close(void *file)
{
    struct hdf5_file *f = file;
    if (!f)
        return;
    oct_volume_reader_destroy(f->volume);
    oct_volume_array_close(f->array);
    free(f->row);
    free(f->u8);
    free(f->came);
    free(f->path);
    free(f);
}

/* ---- opening ---- */

/* Whether a recording's values are dB: its configuration says so. */
static bool is_log(const struct oct_volume_reader *volume, const char *path)
{
    const char *text = oct_volume_config_text(volume);
    struct oct_config *config = text ? calloc(1, sizeof(*config)) : NULL;
    bool log = false;
    if (config) {
        oct_config_init(config);
        log = oct_config_load_text(config, text, path, NULL) == OCT_OK && config->pipeline.log;
    }
    free(config);
    return log;
}

static enum oct_err open_volume(struct hdf5_file *f, struct oct_error *err)
{
    enum oct_err e = oct_volume_open(&f->volume, f->path, err);
    if (e)
        return e;
    const struct oct_volume_facts *facts = oct_volume_facts(f->volume);
    if (facts->depth == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds spectra but no pictures; octctl recon makes them", f->path);
    f->n_rows = facts->n_bscans;
    f->row_height = facts->n_lines;
    f->row_width = facts->depth;
    f->is_db = is_log(f->volume, f->path);
    return OCT_OK;
}

static enum oct_err open_array(struct hdf5_file *f, char *colon, struct oct_error *err)
{
    *colon = '\0';
    enum oct_err e = oct_volume_array_open(&f->array, f->path, colon + 1, err);
    *colon = ':';
    if (e)
        return e;
    const struct oct_volume_array_facts *facts = oct_volume_array_facts(f->array);
    if (facts->rank != 2 && facts->rank != 3)
        return oct_fail(err, OCT_E_FORMAT, "%s: has %u axes; a dataset of pictures has 2 or 3",
                        f->path, facts->rank);
    const uint64_t *side = facts->dims + facts->rank - 2;
    f->n_rows = facts->rank == 3 ? facts->dims[0] : 1;
    if (f->n_rows == 0 || side[0] == 0 || side[1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: is empty", f->path);
    if (side[0] > OCT_PICTURE_MOST_SIDE || side[1] > OCT_PICTURE_MOST_SIDE)
        return oct_picture_file_check(f->path, side[0], side[1], err);
    f->row_height = (uint32_t)side[0];
    f->row_width = (uint32_t)side[1];
    f->is_db = strcmp(facts->unit, "dB") == 0;
    return OCT_OK;
}

static enum oct_err check_slab(const struct hdf5_file *f, struct oct_error *err)
{
    if (f->array && oct_volume_array_facts(f->array)->rank != 3)
        return oct_fail(err, OCT_E_ARG, "%s: one picture, of which there is no en face", f->path);
    if (f->slab_first >= f->slab_last || f->slab_last > f->row_width)
        return oct_fail(err, OCT_E_ARG, "%s: no slab %u:%u: its depth is 0:%u", f->path,
                        f->slab_first, f->slab_last, f->row_width);
    return OCT_OK;
}

static enum oct_err make_scratch(struct hdf5_file *f, struct oct_error *err)
{
    const size_t n = (size_t)f->row_height * f->row_width;
    const bool is_u8 = f->volume && oct_volume_facts(f->volume)->sample_type == OCT_SAMPLE_U8;
    f->came = malloc(f->row_height);
    f->row = f->en_face ? malloc(n * sizeof(*f->row)) : NULL;
    f->u8 = is_u8 ? malloc(n) : NULL;
    if (!f->came || (f->en_face && !f->row) || (is_u8 && !f->u8))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->path);
    return OCT_OK;
}

static enum oct_err open_all(struct hdf5_file *f, struct oct_picture_file_facts *facts,
                             struct oct_error *err)
{
    char *colon = strstr(f->path, ":/");
    for (char *next = colon; next; next = strstr(next + 1, ":/"))
        colon = next; /* the last */
    enum oct_err e = colon ? open_array(f, colon, err) : open_volume(f, err);
    if (e)
        return e;
    *facts = (struct oct_picture_file_facts){f->n_rows, f->row_height, f->row_width};
    if (f->en_face) {
        e = check_slab(f, err);
        if (e == OCT_OK && f->n_rows > OCT_PICTURE_MOST_SIDE)
            e = oct_picture_file_check(f->path, f->n_rows, f->row_height, err);
        *facts = (struct oct_picture_file_facts){1, (uint32_t)f->n_rows, f->row_height};
    }
    if (e == OCT_OK)
        e = oct_picture_file_check(f->path, facts->height, facts->width, err);
    return e ? e : make_scratch(f, err);
}

static enum oct_err hdf5_file_open(void **file, const char *path,
                                   const struct oct_pictures_options *options,
                                   struct oct_picture_file_facts *facts, struct oct_error *err)
{
    *file = NULL;
    struct hdf5_file *f = calloc(1, sizeof(*f));
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    f->en_face = options->what == OCT_PICTURES_EN_FACE;
    f->raw = options->raw;
    f->slab_first = options->slab_first;
    f->slab_last = options->slab_last;
    enum oct_err e = open_all(f, facts, err);
    if (e) {
        hdf5_file_close(f);
        return e;
    }
    *file = f;
    return OCT_OK;
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
    const bool scaled = f->u8 && !f->raw && isfinite(row.lo) && isfinite(row.hi) && row.lo < row.hi;
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

static enum oct_err read_en_face(struct hdf5_file *f, float *pixels, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (uint64_t v = 0; e == OCT_OK && v < f->n_rows; v++) {
        e = read_row(f, v, f->row, err);
        for (uint32_t j = 0; e == OCT_OK && j < f->row_height; j++) {
            double sum = 0;
            for (uint32_t d = f->slab_first; d < f->slab_last; d++)
                sum += f->row[(size_t)j * f->row_width + d];
            pixels[v * f->row_height + j] = (float)(sum / (f->slab_last - f->slab_first));
        }
    }
    return e;
}

static void describe(const struct hdf5_file *f, uint64_t index, struct oct_pictures_info *info)
{
    const double *um;
    if (f->volume) {
        const struct oct_volume_facts *facts = oct_volume_facts(f->volume);
        um = facts->spacing_um + (f->en_face ? 0 : 1);
        info->bits = facts->sample_type == OCT_SAMPLE_U8 ? 8 : 32;
        info->time_ns = oct_volume_row(f->volume, f->en_face ? 0 : (uint32_t)index).time_ns;
        info->is_db = f->is_db && !(f->raw && f->u8);
    } else {
        const struct oct_volume_array_facts *facts = oct_volume_array_facts(f->array);
        um = facts->spacing_um + (f->en_face ? 0 : facts->rank - 2);
        info->bits = facts->is_float || facts->value_bytes > 2 ? 32 : 8 * facts->value_bytes;
        info->is_db = f->is_db;
    }
    info->um[0] = um[0];
    info->um[1] = um[1];
}

static enum oct_err hdf5_file_read(void *file, uint64_t index, float *pixels,
                                   struct oct_pictures_info *info, struct oct_error *err)
{
    struct hdf5_file *f = file;
    describe(f, index, info);
    return f->en_face ? read_en_face(f, pixels, err) : read_row(f, index, pixels, err);
}

const struct oct_picture_file_ops oct_picture_file_hdf5 = {
    .open = hdf5_file_open,
    .close = hdf5_file_close,
    .read = hdf5_file_read,
};
