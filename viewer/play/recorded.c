#include "viewer/play/recorded.h"

#include "analysis/enface/enface.h"
#include "config/apply.h"
#include "config/config.h"
#include "formats/contents.h"
#include "formats/recording.h"
#include "formats/recording_plan.h"
#include "kernels/recon/tables.h"
#include "pipeline/flow/even_lines.h"
#include "pipeline/flow/running_dc.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/volume/array.h"
#include "pipeline/volume/label.h"
#include "pipeline/volume/volume.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pictures of a recording that has spectra alone ----
 *
 * One at a time, with the configuration and the calibration that it carries, by the CPU engine.
 * With pipeline.dc = running each is made with the mean of its own A-lines. */

#define COLLECT_US 1000000u
/* Beside a daemon that needs the cores. */
#define N_THREADS 2u

struct oct_play_rebuild {
    struct oct_config config; /* the effective one */
    struct oct_recording *recording;
    struct oct_plan *plan;
    struct oct_engine *engine;
    struct oct_even_lines *even; /* NULL: lines lie evenly */
    struct oct_image_form form;
    struct oct_display display;
    struct oct_raw_frame frame; /* its arrays are owned */
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
};

static enum oct_err prepare(struct oct_play_rebuild *r, const char *path, struct oct_error *err)
{
    struct oct_engine_options options;
    enum oct_err e = oct_config_set_assignment(&r->config, "output.sample=f32", err);
    if (e == OCT_OK)
        e = oct_recording_open(&r->recording, path, &r->config, err);
    if (e == OCT_OK)
        e = oct_recording_plan(&r->plan, &r->config, r->recording, err);
    if (e)
        return e;
    oct_config_engine_options(&r->config, &options, r->wisdom_dir, sizeof(r->wisdom_dir));
    options.n_threads = N_THREADS;
    options.simd = "auto"; /* of this CPU: the file says what the CPU that recorded has */
    oct_config_display(&r->config, &r->display);
    if ((e = oct_engine_cpu.create(&r->engine, r->plan, &options, err)))
        return e;
    const struct oct_geometry *g = &r->plan->geometry;
    const struct oct_spacing unknown = {NAN, NAN, NAN};
    oct_image_form_of_bscan(&r->form, g, r->display.log, &unknown);
    if (oct_scan_is_uneven(&r->plan->scan) &&
        (e = oct_even_lines_create(&r->even, &r->plan->scan, g, err)))
        return e;
    r->frame.spectra = malloc(oct_geometry_spectra_bytes(g));
    r->frame.line_valid = malloc(g->n_lines);
    return r->frame.spectra && r->frame.line_valid
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

static void close_rebuild(struct oct_play_rebuild *r)
{
    if (!r)
        return;
    oct_engine_cpu.destroy(r->engine);
    oct_even_lines_destroy(r->even);
    oct_plan_destroy(r->plan);
    oct_recording_close(r->recording);
    free(r->frame.spectra);
    free(r->frame.line_valid);
    free(r);
}

static enum oct_err open_rebuild(struct oct_play_rebuild **rebuild, const char *path,
                                 const struct oct_config *config, struct oct_view_file *file,
                                 struct oct_error *err)
{
    struct oct_play_rebuild *r = calloc(1, sizeof(*r));
    struct oct_error why = {.text = ""};
    *rebuild = NULL;
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->name);
    if (config)
        r->config = *config;
    else
        oct_config_init(&r->config);
    if (prepare(r, path, &why)) {
        close_rebuild(r);
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: it holds spectra alone, and they make no pictures: %s; octview --config "
            "gives what a recording lacks",
            file->name, why.text);
    }
    const struct oct_config *c = &r->config;
    const struct oct_input_facts *input = oct_recording_input(r->recording);
    if (input) {
        file->n_bscans = file->n_valid = (uint32_t)oct_recording_n_bscans(r->recording);
        file->n_lines = oct_recording_n_lines(r->recording);
        file->rate_hz = input->line_rate_hz > 0 ? input->line_rate_hz / file->n_lines : 0;
        snprintf(file->eye, sizeof(file->eye), "%s", input->eye);
    }
    const struct oct_spacing spacing = oct_spacing_of_field(
        r->plan, c->scan.width_um, c->scan.height_um, file->n_bscans, c->scan.refractive_index);
    file->depth = r->plan->geometry.depth;
    file->log = c->pipeline.log;
    file->axial_um = spacing.depth_um;
    file->lateral_um = isfinite(file->lateral_um) ? file->lateral_um : spacing.line_um;
    file->slow_um = isfinite(file->slow_um) ? file->slow_um : spacing.bscan_um;
    *rebuild = r;
    return OCT_OK;
}

static enum oct_err read_rebuild(struct oct_play_rebuild *r, uint32_t v, float *pixels,
                                 struct oct_picture_header *header, struct oct_error *err)
{
    struct oct_image_frame out = {.form = &r->form, .pixels = pixels}, *done = NULL;
    float *dc = NULL;
    bool valid = false;
    enum oct_err e = oct_recording_read(r->recording, v, &r->frame, &valid, err);
    if (e == OCT_OK)
        e = oct_running_dc_alone(&dc, r->plan, &r->frame, err);
    if (e)
        return e;
    const struct oct_engine_job job = {
        .in = &r->frame, .out = &out, .display = r->display, .dc = dc};
    e = oct_engine_cpu.submit(r->engine, &job, 1);
    while (!e && (e = oct_engine_cpu.collect(r->engine, COLLECT_US, &done)) == OCT_E_AGAIN)
        e = OCT_OK;
    free(dc);
    e = e ? e : out.status;
    out.info.number = r->frame.info.number; /* says from which side it was scanned */
    if (!e && r->even)
        oct_even_lines_apply(r->even, &out, r->frame.line_valid);
    header->lo = out.lo;
    header->hi = out.hi;
    header->missing_lines = r->frame.info.missing_lines;
    return e ? oct_fail(err, e, "the engine lost B-scan %u", v + 1) : OCT_OK;
}

/* ---- datasets of an HDF5 file that is no recording (formats/contents.h) ----
 *
 * One of two axes is a picture, one of three a picture for each row of its first axis. A picture
 * whose last axis is the depth lies as a B-scan does; another one as it is written, row below
 * row. */

struct oct_play_result {
    struct oct_volume_array *array;
    bool is_stack;          /* of three axes */
    bool has_depth;         /* along the last one */
    uint32_t rows, columns; /* of a picture, as it lies in the file */
    float *picture;         /* [rows][columns]; NULL: it lies as it is shown */
};

static enum oct_err take_shape(struct oct_play_result *r, struct oct_view_file *file,
                               const struct oct_volume_array_facts *f, struct oct_error *err)
{
    const unsigned last = f->rank - 1;
    if ((f->rank != 2 && f->rank != 3) || f->dims[last] == 0 || f->dims[last - 1] == 0 ||
        f->dims[0] == 0 || f->dims[0] > UINT32_MAX ||
        f->dims[last] > OCT_MAX_BSCAN_SAMPLES / f->dims[last - 1])
        return oct_fail(err, OCT_E_FORMAT, "%s: %s is too large to be shown", file->name,
                        file->dataset);
    r->is_stack = f->rank == 3;
    r->has_depth = strcmp(f->axes[last], "depth") == 0;
    r->rows = (uint32_t)f->dims[last - 1];
    r->columns = (uint32_t)f->dims[last];
    file->n_bscans = file->n_valid = r->is_stack ? (uint32_t)f->dims[0] : 1;
    file->n_lines = r->has_depth ? r->rows : r->columns;
    file->depth = r->has_depth ? r->columns : r->rows;
    file->slow_um = r->is_stack ? f->spacing_um[0] : NAN;
    file->lateral_um = f->spacing_um[r->has_depth ? last - 1 : last];
    file->axial_um = f->spacing_um[r->has_depth ? last : last - 1];
    file->log = strcmp(f->unit, "dB") == 0;
    if (!r->has_depth)
        r->picture = malloc((size_t)r->rows * r->columns * sizeof(*r->picture));
    return r->has_depth || r->picture
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->name);
}

static void close_result(struct oct_play_result *r)
{
    if (!r)
        return;
    oct_volume_array_close(r->array);
    free(r->picture);
    free(r);
}

static enum oct_err open_dataset(struct oct_play_result **result, const char *path, uint32_t number,
                                 struct oct_view_file *file, struct oct_error *err)
{
    struct oct_contents contents;
    struct oct_play_result *r = calloc(1, sizeof(*r));
    enum oct_err e = oct_contents_look(&contents, path, err);
    const uint32_t i = number > 0 ? number - 1 : 0;
    *result = NULL;
    if (!e && !r)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->name);
    if (!e && contents.is_result)
        snprintf(file->what, sizeof(file->what), "%s", contents.words);
    /* Recordings are shown as such or not at all; whole numbers of another program may be spectra,
     * and what those lack has been told. */
    if (!e && (contents.n_shown == 0 ||
               !(contents.is_result || (!contents.kind[0] && contents.datasets[0].is_float))))
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s: it holds no picture to be shown", file->name,
                     contents.words);
    if (!e && i >= contents.n_shown)
        e = oct_fail(err, OCT_E_ARG, "%s: there is no dataset %u", file->name, number);
    if (!e && r) {
        const struct oct_volume_array_entry *shown = &contents.datasets[i];
        snprintf(file->dataset, sizeof(file->dataset), "%.*s", (int)sizeof(file->dataset) - 1,
                 shown->name.text);
        snprintf(file->unit, sizeof(file->unit), "%.*s", (int)sizeof(file->unit) - 1, shown->unit);
        oct_view_letters_clean(file->dataset);
        oct_view_letters_clean(file->unit);
        snprintf(file->what, sizeof(file->what), "%s", contents.words);
        file->volume = i + 1;
        file->n_volumes = contents.n_shown;
        e = oct_volume_array_open(&r->array, path, contents.datasets[i].name.text, err);
    }
    if (!e && r)
        e = take_shape(r, file, oct_volume_array_facts(r->array), err);
    oct_contents_finish(&contents);
    if (e)
        close_result(r);
    else
        *result = r;
    return e;
}

static enum oct_err read_dataset(struct oct_play_result *r, uint32_t v, float *pixels,
                                 struct oct_error *err)
{
    float *to = r->picture ? r->picture : pixels;
    const enum oct_err e = r->is_stack ? oct_volume_array_read_row(r->array, v, to, err)
                                       : oct_volume_array_read(r->array, to, err);
    if (e || !r->picture)
        return e;
    for (uint32_t x = 0; x < r->columns; x++)
        for (uint32_t y = 0; y < r->rows; y++)
            pixels[(size_t)x * r->rows + y] = r->picture[(size_t)y * r->columns + x];
    return OCT_OK;
}

/* ---- recordings ---- */

/* A-lines of so many bytes are read in one go for their means. */
#define MOST_BLOCK_BYTES ((size_t)4 << 20)
/* Rates beyond these are no rates of B-scans. */
#define LEAST_RATE_HZ 0.01
#define MOST_RATE_HZ 1e6

struct oct_play_recorded {
    struct oct_view_file file;
    struct oct_volume_reader *reader;   /* NULL: it is a file of another program, or a result */
    struct oct_play_result *result;     /* a dataset of a file that is no recording; else NULL */
    struct oct_play_rebuild *rebuild;   /* of a file without pictures; else NULL */
    struct oct_calibration calibration; /* of a volume file */
    struct oct_scan scan;               /* file.scan, with the positions of the calibration */
    uint32_t first;                     /* row of the volume's first B-scan */
    enum oct_sample_type type;
    double lo, hi; /* of pictures whose limits the file does not say; both 0: unknown */
    void *block;   /* room for A-lines to be looked at */
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
            file->n_volumes++;
            if (wanted > 0 ? file->n_volumes == wanted : part.whole || !has_whole) {
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

/* What its configuration says: whether values are dB, B-scans a second, and the way of the scan,
 * from the file's first B-scan on. Returns the B-scans of a volume; 0: it says nothing. */
static uint32_t read_config(struct oct_play_recorded *r, const char *text)
{
    struct oct_view_file *file = &r->file;
    const struct oct_volume_facts *facts = oct_volume_facts(r->reader);
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
        config->scan.lines = facts->n_lines;
        config->scan.bscans = facts->n_bscans;
        r->scan = oct_config_way_of_recording(config, &r->calibration, bscans,
                                              oct_volume_first_bscan(r->reader));
    }
    free(config);
    return bscans;
}

static void read_facts(struct oct_play_recorded *r, uint32_t volume)
{
    const struct oct_volume_facts *facts = oct_volume_facts(r->reader);
    struct oct_view_file *file = &r->file;
    struct part part = {.n = facts->n_bscans, .n_valid = (uint32_t)facts->n_valid};

    file->n_lines = facts->n_lines;
    file->depth = facts->depth;
    file->slow_um = facts->spacing_um[0];
    file->lateral_um = facts->spacing_um[1];
    file->axial_um = facts->depth == 0 ? NAN : facts->spacing_um[2];
    snprintf(file->eye, sizeof(file->eye), "%s", facts->eye);
    snprintf(file->pseudonym, sizeof(file->pseudonym), "%s", facts->pseudonym);
    oct_volume_calibration(r->reader, &r->calibration, NULL);
    const uint32_t bscans = read_config(r, oct_volume_config_text(r->reader));
    file->is_last = !facts->counted && facts->has_gaps && facts->has_number;
    if (file->is_last && bscans > 1)
        part = find_part(r->reader, facts->n_bscans, bscans, file, volume);
    r->first = part.first;
    if (r->scan.n_bscans > 0)
        r->scan.first_bscan = (r->scan.first_bscan + part.first) % r->scan.n_bscans;
    file->n_bscans = part.n;
    file->n_valid = part.n_valid;
    const double measured_hz = measured_rate_hz(r->reader, part.first, part.n);
    if (measured_hz >= LEAST_RATE_HZ && measured_hz <= MOST_RATE_HZ)
        file->rate_hz = measured_hz;
    if (!(file->rate_hz >= LEAST_RATE_HZ && file->rate_hz <= MOST_RATE_HZ))
        file->rate_hz = 0;
    oct_volume_mark_of(facts->mark, &file->verdict); /* an unknown one is none */
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
    if (r->file.depth > 0)
        return OCT_OK;
    return open_rebuild(&r->rebuild, path, oct_volume_config_text(r->reader) ? NULL : config,
                        &r->file, err);
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
    e = open_dataset(&r->result, path, number, &r->file, &why);
    if (err && (!e || r->file.what[0]))
        *err = why; /* "": it is open after all */
    return e && !r->file.what[0] ? OCT_E_FORMAT : e;
}

enum oct_err oct_play_recorded_open(struct oct_play_recorded **recorded, const char *path,
                                    const struct oct_config *config, uint32_t volume,
                                    struct oct_error *err)
{
    struct oct_play_recorded *r = calloc(1, sizeof(*r));
    const char *slash = strrchr(path, '/');
    enum oct_err e;
    *recorded = NULL;
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    r->file.log = config->pipeline.log;
    r->file.volume = r->file.n_volumes = 1;
    snprintf(r->file.path, sizeof(r->file.path), "%s", path);
    snprintf(r->file.name, sizeof(r->file.name), "%.255s", slash ? slash + 1 : path);
    oct_view_letters_clean(r->file.name);
    /* What cannot be opened is told as a volume. */
    if (oct_recording_is_other(path, config)) { /* it has spectra alone, and no label */
        r->file.slow_um = r->file.lateral_um = r->file.axial_um = NAN;
        e = open_rebuild(&r->rebuild, path, config, &r->file, err);
    } else {
        e = open_volume(r, path, config, volume, err);
    }
    if (e == OCT_E_FORMAT && oct_recording_is_volume(path))
        e = open_result(r, path, volume, err);
    if (e) {
        oct_play_recorded_close(r);
        return e;
    }
    if (r->rebuild || r->result)
        r->type = OCT_SAMPLE_F32;
    if (r->rebuild && !r->reader)
        r->scan = r->rebuild->plan->scan;
    if (r->result)
        r->scan = (struct oct_scan){.n_bscans = 0};
    r->file.scan = r->scan;
    r->file.scan.file = NULL;
    *recorded = r;
    return OCT_OK;
}

void oct_play_recorded_close(struct oct_play_recorded *r)
{
    if (!r)
        return;
    close_rebuild(r->rebuild);
    close_result(r->result);
    oct_volume_reader_destroy(r->reader);
    oct_calibration_finish(&r->calibration);
    oct_view_picture_finish(&r->whole);
    free(r->block);
    free(r);
}

const struct oct_view_file *oct_play_recorded_file(const struct oct_play_recorded *r)
{
    return &r->file;
}

const struct oct_scan *oct_play_recorded_scan(const struct oct_play_recorded *r)
{
    return &r->scan;
}

enum oct_sample_type oct_play_recorded_type(const struct oct_play_recorded *r)
{
    return r->type;
}

/* ---- B-scans ---- */

static void fill_nan(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = NAN;
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

enum oct_err oct_play_recorded_read(struct oct_play_recorded *r, uint32_t v,
                                    struct oct_view_picture *picture, bool *valid,
                                    struct oct_error *err)
{
    const size_t n_bytes = (size_t)r->file.n_lines * r->file.depth *
                           (r->type == OCT_SAMPLE_U8 ? sizeof(uint8_t) : sizeof(float));
    struct oct_picture_header *h = &picture->header;
    enum oct_err e = OCT_OK;
    *valid = false;
    if (v >= r->file.n_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: there is no B-scan %u", r->file.name, v + 1);
    if (!oct_view_make_room(&picture->pixels, &picture->capacity_bytes, n_bytes))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for a B-scan of %zu bytes",
                        r->file.name, n_bytes);
    fill_header(r, v, &picture->header);
    *valid = row_of(r, v).valid;
    bool whole = *valid;
    if (*valid && r->rebuild)
        e = read_rebuild(r->rebuild, r->first + v, picture->pixels, &picture->header, err);
    else if (*valid && r->result)
        e = read_dataset(r->result, v, picture->pixels, err);
    else if (*valid)
        e = oct_volume_read_image(r->reader, r->first + v, picture->pixels, &whole, err);
    /* The first picture that has any gives the limits of all that the file says none of. */
    if (*valid && !e && !(h->lo < h->hi) &&
        oct_view_picture_percentiles(picture, r->result ? 0.01 : 0.2, 0.998, &r->lo, &r->hi)) {
        h->lo = r->lo;
        h->hi = r->hi;
    }
    if (*valid && !e)
        return OCT_OK;
    if (r->type == OCT_SAMPLE_U8)
        memset(picture->pixels, 0, n_bytes);
    else
        fill_nan(picture->pixels, n_bytes / sizeof(float));
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

static size_t line_bytes(const struct oct_play_recorded *r)
{
    return r->file.depth * (r->type == OCT_SAMPLE_U8 ? sizeof(uint8_t) : sizeof(float));
}

/* Reads A-lines as they lie in the file; NULL: the error says why. */
static const unsigned char *lines_of(struct oct_play_recorded *r, uint32_t v, uint32_t first,
                                     uint32_t n, enum oct_err *e, struct oct_error *err)
{
    if (!r->rebuild && !r->result) {
        *e = oct_view_make_room(&r->block, &r->block_bytes, n * line_bytes(r))
                 ? oct_volume_read_image_lines(r->reader, r->first + v, first, n, r->block, err)
                 : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", r->file.name);
        return *e ? NULL : r->block;
    }
    *e = OCT_OK;
    if (!r->has_whole || r->whole_is != v)
        *e = oct_play_recorded_read(r, v, &r->whole, &r->whole_valid, err);
    r->has_whole = *e == OCT_OK;
    r->whole_is = v;
    return *e ? NULL : (const unsigned char *)r->whole.pixels + first * line_bytes(r);
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

static bool holds_enface(struct oct_play_recorded *r, const struct oct_view_enface *e)
{
    struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
    unsigned n = 0;
    bool holds = false;
    if (!r->reader || r->file.n_volumes > 1 || oct_volume_datasets(r->reader, datasets, &n, NULL))
        return false;
    for (unsigned i = 0; i < n; i++)
        holds |= strcmp(datasets[i].name, OCT_VIEW_TOPIC_ENFACE) == 0 && datasets[i].of_volume &&
                 datasets[i].n_valid == 1 && datasets[i].type == OCT_SAMPLE_F32 &&
                 datasets[i].rank == 2 && datasets[i].dims[1] == e->n_lines;
    return holds;
}

bool oct_play_recorded_enface(struct oct_play_recorded *r, struct oct_view_enface *e)
{
    struct oct_volume_array *array = NULL;
    float *row = malloc(e->n_lines * sizeof(*row));
    bool done = row && e->n_rows > 0 && holds_enface(r, e) &&
                oct_volume_array_open(&array, r->file.path, "/analysis/enface", NULL) == OCT_OK;
    const struct oct_volume_array_facts *f = done ? oct_volume_array_facts(array) : NULL;
    /* The file may be another by now than the one that was looked at. */
    done = done && f->rank == 2 && f->dims[0] > 0 && f->dims[0] <= e->n_bscans &&
           f->dims[1] == e->n_lines;
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
