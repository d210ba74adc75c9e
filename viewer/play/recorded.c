#include "viewer/play/recorded.h"

#include "analysis/enface/enface.h"
#include "config/config.h"
#include "formats/recording.h"
#include "pipeline/volume/array.h"
#include "pipeline/volume/label.h"
#include "pipeline/volume/volume.h"
#include "viewer/model/words.h"
#include "viewer/play/rebuild.h"
#include "viewer/play/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A-lines of so many bytes are read in one go for their means. */
#define MOST_BLOCK_BYTES ((size_t)4 << 20)
/* Rates beyond these are no rates of B-scans. */
#define LEAST_RATE_HZ 0.01
#define MOST_RATE_HZ 1e6

struct oct_play_recorded {
    struct oct_view_file file;
    struct oct_volume_reader *reader; /* NULL: it is a file of another program, or a result */
    struct oct_play_result *result;   /* a dataset of a file that is no recording; else NULL */
    struct oct_play_rebuild *rebuild; /* of a file without pictures; else NULL */
    uint32_t first;                   /* row of the volume's first B-scan */
    enum oct_sample_type type;
    double lo, hi;        /* of pictures whose limits the file does not say; both 0: unknown */
    unsigned char *block; /* room for A-lines to be looked at */
    size_t block_bytes;
    struct oct_view_picture
        whole;         /* a B-scan to be looked at, where A-lines cannot be read alone */
    uint32_t whole_is; /* B-scan whole.. */
    bool whole_valid, has_whole;
};

/* ---- opening ---- */

/* Rows of a file that are one volume. */
struct part {
    uint32_t first, n, n_valid;
    bool whole;
};

static bool is_better(const struct part *part, uint32_t number, uint32_t wanted, bool has_whole)
{
    return wanted > 0 ? number == wanted : part->whole || !has_whole;
}

/* Finds the wanted one of a file of `record last`, where the B-scans of a volume are
 * bscans_a_volume, and counts them. Rows that were not written belong to those before them. */
static struct part find_part(const struct oct_volume_reader *reader, uint32_t n_rows,
                             uint32_t bscans_a_volume, struct oct_view_file *file, uint32_t wanted)
{
    struct part found = {.n = 0}, part = {.n = 0};
    struct oct_volume_row before = {.valid = false};
    bool has_whole = false;

    file->n_volumes = 0;
    for (uint32_t v = 0; v <= n_rows; v++) {
        const struct oct_volume_row row =
            oct_volume_row(reader, v); /* behind the last: not valid */
        const bool begins = row.valid && before.valid &&
                            (row.acquisition != before.acquisition ||
                             row.number / bscans_a_volume != before.number / bscans_a_volume);
        if (begins || v == n_rows) {
            part.whole = part.n_valid == bscans_a_volume;
            if (is_better(&part, ++file->n_volumes, wanted, has_whole)) {
                found = part;
                file->volume = file->n_volumes;
            }
            has_whole |= part.whole;
            part = (struct part){.first = v};
        }
        part.n++;
        part.n_valid += row.valid;
        before = row.valid ? row : before;
    }
    return found;
}

/* The camera's clock over all B-scans. */
static double measured_rate_hz(const struct oct_volume_reader *reader, uint32_t first, uint32_t n)
{
    uint32_t last = first + n - 1;

    if (n == 0) /* a volume that is no longer there */
        return NAN;
    while (first < last && !oct_volume_row(reader, first).valid)
        first++;
    while (last > first && !oct_volume_row(reader, last).valid)
        last--;
    const uint64_t t0 = oct_volume_row(reader, first).time_ns;
    const uint64_t t1 = oct_volume_row(reader, last).time_ns;
    return t1 > t0 ? (last - first) * 1e9 / (double)(t1 - t0) : 0;
}

/* What its configuration says: whether values are dB, and B-scans a second. Returns those of a
 * volume; 0: it says nothing. */
static uint32_t read_config(struct oct_view_file *file, const char *text)
{
    struct oct_config *config = text ? malloc(sizeof(*config)) : NULL;
    uint32_t bscans = 0;

    if (!config)
        return 0;
    oct_config_init(config);
    if (oct_config_load_text(config, text, file->name, NULL) == OCT_OK) {
        file->log = config->pipeline.log;
        bscans = config->scan.bscans;
        if (oct_config_is_set(config, "scan.line_rate_hz"))
            file->rate_hz = config->scan.line_rate_hz / file->n_lines;
    }
    free(config);
    return bscans;
}

static void read_name(struct oct_view_file *file, const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(file->path, sizeof(file->path), "%s", path);
    snprintf(file->name, sizeof(file->name), "%.255s", slash ? slash + 1 : path);
    oct_view_letters_clean(file->name);
}

static void read_facts(struct oct_play_recorded *r, uint32_t volume)
{
    const struct oct_volume_facts *facts = oct_volume_facts(r->reader);
    struct oct_view_file *file = &r->file;

    struct part part = {.n = facts->n_bscans, .n_valid = (uint32_t)facts->n_valid};

    file->n_lines = facts->n_lines;
    file->depth = facts->depth;
    file->of_spectra = facts->depth == 0;
    file->slow_um = facts->spacing_um[0];
    file->lateral_um = facts->spacing_um[1];
    file->axial_um = file->of_spectra ? NAN : facts->spacing_um[2];
    snprintf(file->eye, sizeof(file->eye), "%s", facts->eye);
    snprintf(file->pseudonym, sizeof(file->pseudonym), "%s", facts->pseudonym);
    snprintf(file->start_time, sizeof(file->start_time), "%s", facts->start_time);
    const uint32_t bscans = read_config(file, oct_volume_config_text(r->reader));
    file->is_last = !facts->counted && facts->has_gaps && facts->has_number;
    if (file->is_last && bscans > 1)
        part = find_part(r->reader, facts->n_bscans, bscans, file, volume);
    r->first = part.first;
    file->n_bscans = part.n;
    file->n_valid = part.n_valid;
    const double measured_hz = measured_rate_hz(r->reader, part.first, part.n);
    if (measured_hz >= LEAST_RATE_HZ && measured_hz <= MOST_RATE_HZ)
        file->rate_hz = measured_hz;
    if (!(file->rate_hz >= LEAST_RATE_HZ && file->rate_hz <= MOST_RATE_HZ))
        file->rate_hz = 0;
    enum oct_volume_mark mark;
    if (oct_volume_mark_of(facts->mark, &mark))
        file->verdict = mark == OCT_MARK_KEEP     ? OCT_VERDICT_KEEP
                        : mark == OCT_MARK_REPEAT ? OCT_VERDICT_REPEAT
                                                  : OCT_VERDICT_NONE;
    r->type = facts->sample_type;
}

static enum oct_err open_volume(struct oct_play_recorded *r, const char *path,
                                const struct oct_config *config, uint32_t volume,
                                struct oct_error *err)
{
    const enum oct_err e = oct_volume_open(&r->reader, path, err);

    if (e)
        return e;
    read_facts(r, volume);
    if (r->file.n_bscans == 0)
        return oct_fail(err, OCT_E_ARG, "%s: there is no volume %u", r->file.name, volume);
    if (!r->file.of_spectra)
        return OCT_OK;
    return oct_play_rebuild_open(&r->rebuild, path,
                                 oct_volume_config_text(r->reader) ? NULL : config, &r->file, err);
}

/* A file of another program has spectra alone, and no label. */
static enum oct_err open_other(struct oct_play_recorded *r, const char *path,
                               const struct oct_config *config, struct oct_error *err)
{
    r->file.of_spectra = true;
    r->file.slow_um = r->file.lateral_um = r->file.axial_um = NAN;
    return oct_play_rebuild_open(&r->rebuild, path, config, &r->file, err);
}

/* What is no recording may hold pictures all the same; where it does not, it is told what it is if
 * that is known: else *err stays as it is. */
static enum oct_err open_result(struct oct_play_recorded *r, const char *path, uint32_t number,
                                struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e;

    oct_volume_reader_destroy(r->reader);
    r->reader = NULL;
    r->file.of_spectra = false;
    e = oct_play_result_open(&r->result, path, number, &r->file, &why);
    if (err && (!e || r->file.what[0]))
        *err = why; /* "": it is open after all */
    return e && !r->file.what[0] ? OCT_E_FORMAT : e;
}

enum oct_err oct_play_recorded_open(struct oct_play_recorded **recorded, const char *path,
                                    const struct oct_config *config, uint32_t volume,
                                    struct oct_error *err)
{
    struct oct_play_recorded *r = calloc(1, sizeof(*r));
    enum oct_err e;

    *recorded = NULL;
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    r->file.log = config->pipeline.log;
    r->file.volume = r->file.n_volumes = 1;
    read_name(&r->file, path);
    /* What cannot be opened is told as a volume. */
    e = oct_recording_is_other(path, config) ? open_other(r, path, config, err)
                                             : open_volume(r, path, config, volume, err);
    if (e == OCT_E_FORMAT && oct_recording_is_volume(path))
        e = open_result(r, path, volume, err);
    if (e) {
        oct_play_recorded_close(r);
        return e;
    }
    if (r->file.of_spectra || r->result)
        r->type = OCT_SAMPLE_F32;
    *recorded = r;
    return OCT_OK;
}

void oct_play_recorded_close(struct oct_play_recorded *r)
{
    if (!r)
        return;
    oct_play_rebuild_close(r->rebuild);
    oct_play_result_close(r->result);
    oct_volume_reader_destroy(r->reader);
    oct_view_picture_finish(&r->whole);
    free(r->block);
    free(r);
}

const struct oct_view_file *oct_play_recorded_file(const struct oct_play_recorded *r)
{
    return &r->file;
}

/* ---- B-scans ---- */

static void fill_empty(struct oct_view_picture *picture, size_t n_bytes)
{
    if (picture->header.sample_type == OCT_SAMPLE_U8)
        memset(picture->pixels, 0, n_bytes);
    else
        for (size_t i = 0; i < n_bytes / sizeof(float); i++)
            ((float *)picture->pixels)[i] = NAN;
}

/* All B-scans of a file of another program are there. */
static struct oct_volume_row row_of(const struct oct_play_recorded *r, uint32_t v)
{
    if (r->reader)
        return oct_volume_row(r->reader, r->first + v);
    const double s = r->file.rate_hz > 0 ? v / r->file.rate_hz : 0;
    return (struct oct_volume_row){.valid = true, .number = v, .time_ns = (uint64_t)(s * 1e9)};
}

static bool has_limits(const struct oct_volume_row *row)
{
    return isfinite(row->lo) && isfinite(row->hi) && row->lo < row->hi;
}

/* One that was not recorded takes the limits of the one before, or else after it, so that the
 * contrast stays. */
static bool limits_nearby(const struct oct_play_recorded *r, uint32_t v,
                          struct oct_picture_header *header)
{
    for (int after = 0; after < 2; after++)
        for (uint32_t i = v; i < r->file.n_bscans; i += after ? 1 : UINT32_MAX) {
            const struct oct_volume_row row = row_of(r, i);
            if (!row.valid || !has_limits(&row))
                continue;
            header->lo = row.lo;
            header->hi = row.hi;
            return true;
        }
    return false;
}

static void fill_header(const struct oct_play_recorded *r, uint32_t v,
                        struct oct_picture_header *header)
{
    const struct oct_volume_row row = row_of(r, v);

    *header = (struct oct_picture_header){
        .frame_num = row.number,
        .acquisition_id = "playback",
        .sample_type = r->type,
        .n_lines = r->file.n_lines,
        .depth = r->file.depth,
        .time_ns = row.time_ns,
        .missing_lines = row.missing_lines,
        .lo = row.lo,
        .hi = row.hi,
        .bscan = v,
    };
    if (has_limits(&row) || (!row.valid && limits_nearby(r, v, header)))
        return;
    /* Without limits u8 pixels are shown as the numbers that they are. */
    const bool is_u8 = r->type == OCT_SAMPLE_U8;
    header->lo = is_u8 ? 0 : r->lo;
    header->hi = is_u8 ? 255 : r->hi;
}

/* The first picture that has any gives the limits of all that the file says none of. */
static void find_limits(struct oct_play_recorded *r, struct oct_view_picture *picture)
{
    struct oct_picture_header *h = &picture->header;

    if (h->lo < h->hi ||
        !oct_view_picture_percentiles(picture, r->result ? 0.01 : 0.2, 0.998, &r->lo, &r->hi))
        return;
    h->lo = r->lo;
    h->hi = r->hi;
}

static enum oct_err make_room(struct oct_view_picture *picture, const char *path, size_t n_bytes,
                              struct oct_error *err)
{
    if (n_bytes <= picture->capacity_bytes)
        return OCT_OK;
    void *grown = malloc(n_bytes);
    if (!grown)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for a B-scan of %zu bytes", path,
                        n_bytes);
    free(picture->pixels);
    picture->pixels = grown;
    picture->capacity_bytes = n_bytes;
    return OCT_OK;
}

enum oct_err oct_play_recorded_read(struct oct_play_recorded *r, uint32_t v,
                                    struct oct_view_picture *picture, bool *valid,
                                    struct oct_error *err)
{
    const size_t n_bytes = (size_t)r->file.n_lines * r->file.depth *
                           (r->type == OCT_SAMPLE_U8 ? sizeof(uint8_t) : sizeof(float));
    enum oct_err e;

    *valid = false;
    if (v >= r->file.n_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: there is no B-scan %u", r->file.name, v + 1);
    if ((e = make_room(picture, r->file.name, n_bytes, err)))
        return e;
    fill_header(r, v, &picture->header);
    *valid = row_of(r, v).valid;
    bool whole = *valid;
    if (*valid && r->rebuild)
        e = oct_play_rebuild_read(r->rebuild, r->first + v, picture->pixels, &picture->header, err);
    else if (*valid && r->result)
        e = oct_play_result_read(r->result, v, picture->pixels, err);
    else if (*valid)
        e = oct_volume_read_image(r->reader, r->first + v, picture->pixels, &whole, err);
    if (!*valid || e)
        fill_empty(picture, n_bytes);
    else
        find_limits(r, picture);
    return e;
}

/* ---- A-lines ---- */

/* Turns pixels into values. */
static void to_values(const struct oct_play_recorded *r, uint32_t v, const unsigned char *pixels,
                      float *values, size_t n)
{
    struct oct_picture_header header;

    if (r->type == OCT_SAMPLE_F32) {
        memcpy(values, pixels, n * sizeof(*values));
        return;
    }
    fill_header(r, v, &header);
    const float lo = (float)header.lo, step = (float)((header.hi - header.lo) / 255);
    for (size_t i = 0; i < n; i++)
        values[i] = lo + (float)pixels[i] * step;
}

static enum oct_err need_block(struct oct_play_recorded *r, size_t n_bytes, struct oct_error *err)
{
    if (n_bytes <= r->block_bytes)
        return OCT_OK;
    free(r->block);
    r->block = malloc(n_bytes);
    r->block_bytes = r->block ? n_bytes : 0;
    if (!r->block)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", r->file.name);
    return OCT_OK;
}

static size_t line_bytes(const struct oct_play_recorded *r)
{
    return r->file.depth * (r->type == OCT_SAMPLE_U8 ? sizeof(uint8_t) : sizeof(float));
}

/* Reads A-lines as they lie in the file; NULL: the error says why. */
static const unsigned char *lines_of(struct oct_play_recorded *r, uint32_t v, uint32_t first,
                                     uint32_t n, enum oct_err *e, struct oct_error *err)
{
    if (!r->rebuild && !r->result) {
        *e = need_block(r, n * line_bytes(r), err);
        if (*e == OCT_OK)
            *e = oct_volume_read_image_lines(r->reader, r->first + v, first, n, r->block, err);
        return *e ? NULL : r->block;
    }
    *e = OCT_OK;
    if (!r->has_whole || r->whole_is != v)
        *e = oct_play_recorded_read(r, v, &r->whole, &r->whole_valid, err);
    r->has_whole = *e == OCT_OK;
    r->whole_is = v;
    return *e ? NULL : (const unsigned char *)r->whole.pixels + first * line_bytes(r);
}

static void fill_nan(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = NAN;
}

enum oct_err oct_play_recorded_line(struct oct_play_recorded *r, uint32_t v, uint32_t line,
                                    float *depths, struct oct_error *err)
{
    enum oct_err e = OCT_OK;

    fill_nan(depths, r->file.depth);
    if (v >= r->file.n_bscans || line >= r->file.n_lines)
        return oct_fail(err, OCT_E_ARG, "%s: there is no A-line %u of B-scan %u", r->file.name,
                        line, v);
    if (!row_of(r, v).valid)
        return OCT_OK;
    const unsigned char *pixels = lines_of(r, v, line, 1, &e, err);
    if (pixels)
        to_values(r, v, pixels, depths, r->file.depth);
    return e;
}

enum oct_err oct_play_recorded_means(struct oct_play_recorded *r, uint32_t v, float *means,
                                     struct oct_error *err)
{
    const uint32_t n_lines = r->file.n_lines, depth = r->file.depth;
    const size_t many = MOST_BLOCK_BYTES / line_bytes(r);
    const uint32_t block = many < 1 ? 1 : many > n_lines ? n_lines : (uint32_t)many;
    enum oct_err e = OCT_OK;

    fill_nan(means, n_lines);
    if (v >= r->file.n_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: there is no B-scan %u", r->file.name, v + 1);
    if (!row_of(r, v).valid)
        return OCT_OK;
    float *values = malloc(depth * sizeof(*values));
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", r->file.name);
    for (uint32_t first = 0; first < n_lines && e == OCT_OK; first += block) {
        const uint32_t n = n_lines - first < block ? n_lines - first : block;
        const unsigned char *pixels = lines_of(r, v, first, n, &e, err);
        for (uint32_t i = 0; pixels && i < n; i++) {
            to_values(r, v, pixels + i * line_bytes(r), values, depth);
            means[first + i] = (float)oct_enface_line(values, depth).mean;
        }
    }
    free(values);
    return e;
}

/* ---- en face ---- */

static bool holds_enface(struct oct_play_recorded *r)
{
    struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
    unsigned n = 0;
    bool holds = false;

    if (!r->reader || r->file.n_volumes > 1 || oct_volume_datasets(r->reader, datasets, &n, NULL))
        return false;
    for (unsigned i = 0; i < n; i++)
        holds |= strcmp(datasets[i].name, OCT_VIEW_TOPIC_ENFACE) == 0 && datasets[i].of_volume &&
                 datasets[i].n_valid == 1 && datasets[i].type == OCT_SAMPLE_F32 &&
                 datasets[i].rank == 2 && datasets[i].dims[1] == r->file.n_lines;
    return holds;
}

bool oct_play_recorded_enface(struct oct_play_recorded *r, struct oct_view_enface *e)
{
    struct oct_volume_array *array = NULL;
    float *row = malloc(r->file.n_lines * sizeof(*row));
    bool done = row && e->n_rows > 0 && holds_enface(r) &&
                oct_volume_array_open(&array, r->file.path, "/analysis/enface", NULL) == OCT_OK;
    const struct oct_volume_array_facts *f = done ? oct_volume_array_facts(array) : NULL;

    /* The file may be another by now than the one that was looked at. */
    done = done && f->rank == 2 && f->dims[0] > 0 && f->dims[0] <= r->file.n_bscans &&
           f->dims[1] == r->file.n_lines;
    for (uint32_t k = 0; done && k < e->n_rows; k++) {
        float *to = e->value + (size_t)k * e->n_columns;
        done = oct_volume_array_read_row(array, k * f->dims[0] / e->n_rows, row, NULL) == OCT_OK;
        for (uint32_t c = 0; c < e->n_columns; c++)
            to[c] = row[(uint64_t)c * e->n_lines / e->n_columns];
    }
    oct_volume_array_close(array);
    free(row);
    return done;
}
