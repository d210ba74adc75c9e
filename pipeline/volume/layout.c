#include "pipeline/volume/layout.h"

#include "pipeline/flow/image.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/volume/file.h"
#include "pipeline/volume/hdf5_axes.h"
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/hdf5_make.h"
#include "pipeline/volume/volume.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a recording says of its axes and greys to who does not know octd. Under the lock of
 * hdf5_lock.h; files and datasets are libhdf5's hid_t, an int64_t. */

/* ---- places ---- */

struct places {
    const char *axis, *meaning;
    uint64_t n, first, block, interleave; /* block * interleave neighbours share interleave places,
                                             in turn */
    double um;
};

static bool make_places(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                        const struct places *p, struct oct_hdf5_reason *reason)
{
    if (!isfinite(p->um))
        return true;
    double *um = malloc((size_t)p->n * sizeof(*um));
    if (!um) {
        snprintf(reason->text, sizeof(reason->text), "out of memory");
        return false;
    }
    const uint64_t group = p->block * p->interleave;
    for (uint64_t i = 0; i < p->n; i++)
        um[i] = (double)(p->first + i / group * group + i % p->interleave * p->block) * p->um;
    const bool ok =
        oct_hdf5_scale_make(scales, file, properties, p->axis, p->n, um, p->um, p->meaning, reason);
    free(um);
    return ok;
}

/* Makes /bscan_um, /line_um and /depth_um, of those axes whose spacing is known: where each B-scan
 * and A-line lies in the field, from 0, and how deep each pixel of a picture, from the path
 * difference 0. A file of which the rows are no places of one field has no /bscan_um. */
static bool describe_places(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                            const struct oct_geometry *g, const struct oct_volume_about *about,
                            const struct oct_spacing *spacing, struct oct_hdf5_reason *reason)
{
    const bool is_field = about->field_bscans == 0 || about->field_bscans == g->n_bscans;
    const uint32_t repeats = about->scan.repeats > 1 ? about->scan.repeats : 1;
    const uint32_t interleave = about->scan.interleave > 1 ? about->scan.interleave : 1;
    const uint32_t line_repeats = about->scan.line_repeats > 1 ? about->scan.line_repeats : 1;
    const struct places places[] = {
        {"bscan", "place of the B-scan in the field", g->n_bscans, 0, repeats, interleave,
         is_field ? spacing->bscan_um : NAN},
        {"line", "place of the A-line in the B-scan", g->n_lines, 0, line_repeats, 1,
         spacing->line_um},
        {"depth", "depth of the pixel below zero path difference, by the refractive index",
         g->depth, g->crop_first, 1, 1, spacing->depth_um},
    };
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (!make_places(scales, file, properties, &places[i], reason))
            return false;
    return true;
}

/* Bytes of those, at most. */
static uint64_t describe_bytes(const struct oct_geometry *g)
{
    return sizeof(double) * ((uint64_t)g->n_bscans + g->n_lines + g->depth);
}

/* ---- greys ---- */

static bool put_number(int64_t object, const char *name, double value,
                       struct oct_hdf5_reason *reason)
{
    return oct_hdf5_put_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 0, &value,
                                  reason);
}

static const char *meaning_of(enum oct_sample_type type, const struct oct_volume_about *about)
{
    static const char *const u8[2] = {
        "Row v: grey 0 is /frames/lo[v] and grey 255 is /frames/hi[v], linear between, in units; "
        "what lies beyond is cut off.",
        "Grey 0 is grey_lo and grey 255 is grey_hi, linear between, in units; what lies beyond is "
        "cut off."};
    return type == OCT_SAMPLE_F32 ? "Each value is in units, not cut off."
                                  : u8[about->limits_are_common];
}

/* Attributes of /bscans: quantity, units, grey_quantity, grey_limits, grey_meaning, and grey_lo and
 * grey_hi where they are common to all B-scans. */
static bool describe_grey(int64_t bscans, enum oct_sample_type type,
                          const struct oct_volume_about *about, struct oct_hdf5_reason *reason)
{
    const enum oct_quantity quantity =
        about->is_log ? OCT_QUANTITY_INTENSITY_DB : OCT_QUANTITY_INTENSITY;
    const bool is_common = type == OCT_SAMPLE_U8 && about->limits_are_common;
    const char *limits = type == OCT_SAMPLE_F32 ? "none"
                         : is_common            ? "common"
                                                : "per B-scan: /frames/lo, /frames/hi";
    return oct_hdf5_put_text(bscans, "quantity", oct_quantity_name(quantity), reason) &&
           oct_hdf5_put_text(bscans, "units", oct_quantity_unit(quantity), reason) &&
           oct_hdf5_put_text(bscans, "grey_quantity",
                             about->is_log ? "intensity, log: 10 log10 of counts^2"
                                           : "intensity, linear: counts^2",
                             reason) &&
           oct_hdf5_put_text(bscans, "grey_limits", limits, reason) &&
           oct_hdf5_put_text(bscans, "grey_meaning", meaning_of(type, about), reason) &&
           (!is_common || (put_number(bscans, "grey_lo", about->lo, reason) &&
                           put_number(bscans, "grey_hi", about->hi, reason)));
}

/* libhdf5's handles while a file is made. After the first failure every step does nothing. */
struct builder {
    hid_t file;
    hid_t array; /* creation properties: contiguous, allocated at once, never filled */
    hid_t text;  /* of texts: what h5py reads as str */
    struct oct_hdf5_scales scales;
    bool failed;
    struct oct_hdf5_reason reason; /* of the first failure: libhdf5 forgets it at the next call */
};

static void note_failure(struct builder *b)
{
    if (!b->failed)
        oct_hdf5_reason(b->reason.text, sizeof(b->reason.text));
    b->failed = true;
}

#define ROW(member) offsetof(struct oct_volume_row, member)
const struct oct_volume_column_form oct_volume_columns[OCT_N_COLUMNS] = {
    [OCT_COLUMN_SEQUENCE] = {"/frames/sequence", 8, ROW(sequence), false},
    [OCT_COLUMN_TIME_NS] = {"/frames/time_ns", 8, ROW(time_ns), false},
    [OCT_COLUMN_MISSING_LINES] = {"/frames/missing_lines", 4, ROW(missing_lines), false},
    [OCT_COLUMN_ACQUISITION] = {"/frames/acquisition", 4, ROW(acquisition), false},
    [OCT_COLUMN_NUMBER] = {"/frames/number", 8, ROW(number), false},
    [OCT_COLUMN_SPECTRA_CRC] = {"/frames/spectra_crc32c", 4, ROW(spectra_crc32c), false},
    [OCT_COLUMN_BSCANS_CRC] = {"/frames/bscans_crc32c", 4, ROW(bscans_crc32c), false},
    [OCT_COLUMN_LO] = {"/frames/lo", 8, ROW(lo), true},
    [OCT_COLUMN_HI] = {"/frames/hi", 8, ROW(hi), true},
    [OCT_COLUMN_VALID] = {"/frames/valid", 1, ROW(valid), false},
};

const struct oct_volume_column_form oct_volume_result_columns[OCT_N_RESULT_COLUMNS] = {
    [OCT_RESULT_ROWS] = {"_rows", 4, 0, false},
    [OCT_RESULT_LO] = {"_lo", 8, 0, true},
    [OCT_RESULT_HI] = {"_hi", 8, 0, true},
    [OCT_RESULT_VALID] = {"_valid", 1, 0, false},
};

static hid_t stored_type(const struct oct_volume_column_form *column)
{
    return column->is_float     ? H5T_IEEE_F64LE
           : column->bytes == 8 ? H5T_STD_U64LE
           : column->bytes == 4 ? H5T_STD_U32LE
                                : H5T_STD_U8LE;
}

static bool has_result_column(const struct oct_image_form *form, int column)
{
    return form->type == OCT_SAMPLE_U8 || (column != OCT_RESULT_LO && column != OCT_RESULT_HI);
}

uint64_t oct_volume_form_bytes(const struct oct_image_form *form, uint32_t n_bscans)
{
    uint64_t a_row =
        oct_image_form_bytes(form) + (uint64_t)oct_image_form_n_values(form) * sizeof(double);
    for (int c = 0; c < OCT_N_RESULT_COLUMNS; c++)
        a_row += has_result_column(form, c) ? oct_volume_result_columns[c].bytes : 0;
    return oct_image_form_rows(form, n_bscans) * a_row;
}

#define MOST_POSITIONS (UINT64_C(1) << 22) /* A-lines: 32 MiB of positions */
#define RESULT_HEADER_BYTES (1u << 16) /* of one form's objects: a block each, labels, padding */

size_t oct_volume_spectra_bytes(const struct oct_geometry *g, const struct oct_volume_about *about)
{
    return g->n_lines * (size_t)oct_samples_bytes(about->spectra_format, g->n_samples);
}

/* A-lines of which the file says where they lie: none where that is unknown, or a volume has so
 * many that the file's beginning would not fit into memory. */
static uint64_t count_positions(const struct oct_plan *plan)
{
    double um[2];
    const uint64_t n = (uint64_t)plan->geometry.n_bscans * plan->geometry.n_lines;
    oct_scan_position(&plan->scan, 0, 0, um);
    return n <= MOST_POSITIONS && (plan->scan.file || isfinite(um[0] + um[1])) ? n : 0;
}

/* Adds up arrays, calibration and texts. Each array starts at a block of its own, which the first
 * term covers. */
uint64_t oct_volume_layout_estimate(const struct oct_plan *plan,
                                    const struct oct_volume_about *about, bool with_spectra,
                                    bool with_bscans)
{
    const struct oct_geometry *g = &plan->geometry;
    const struct oct_calibration *cal = &plan->calibration;
    uint64_t bytes = 1u << 20; /* headers, groups, heaps; a block an object */
    for (int c = 0; c < OCT_N_COLUMNS; c++)
        bytes += (uint64_t)g->n_bscans * oct_volume_columns[c].bytes;
    for (int c = 0; c < OCT_N_GAP_COLUMNS; c++)
        bytes += (uint64_t)oct_gap_capacity(g) * oct_gap_columns[c].bytes;
    if (with_spectra)
        bytes += (uint64_t)g->n_bscans * (oct_volume_spectra_bytes(g, about) + g->n_lines);
    if (with_bscans)
        bytes += (uint64_t)g->n_bscans * oct_geometry_image_bytes(g);
    if (about->has_complex)
        bytes += (uint64_t)g->n_bscans * oct_geometry_complex_bytes(g);
    bytes += describe_bytes(g);
    bytes += sizeof(double) * (cal->n_wavelengths + cal->n_kmap + cal->n_background);
    bytes += sizeof(double) * 2 * cal->n_positions + 2 * sizeof(float) * count_positions(plan);
    bytes += 2 * sizeof(double) * (uint64_t)g->upsampled;
    for (unsigned i = 0; i < about->n_forms; i++)
        bytes += RESULT_HEADER_BYTES + oct_volume_form_bytes(about->forms[i], g->n_bscans);
    return bytes + 2 * (about->config_text ? strlen(about->config_text) : 0);
}

/* ---- attributes ---- */

static void put_attribute(struct builder *b, hid_t object, const char *name, hid_t type,
                          size_t n /* 0: scalar */, const void *values)
{
    if (!b->failed)
        b->failed = !oct_hdf5_put_attribute(object, name, type, type, n, values, &b->reason);
}

static void put_text(struct builder *b, hid_t object, const char *name, const char *text)
{
    const char *value = text ? text : "";
    put_attribute(b, object, name, b->text, 0, &value);
}

static void put_f64(struct builder *b, hid_t object, const char *name, double value)
{
    put_attribute(b, object, name, H5T_IEEE_F64LE, 0, &value);
}

static void put_axes(struct builder *b, hid_t object, unsigned rank, const char *const *names,
                     const double *spacing_um)
{
    if (!b->failed)
        b->failed = !oct_hdf5_put_axes(object, rank, names, spacing_um, &b->reason);
}

/* Of a dataset: the scales of its axes too. */
static void put_dataset_axes(struct builder *b, hid_t dataset, unsigned rank,
                             const char *const *names, const uint64_t *dims,
                             const double *spacing_um)
{
    put_axes(b, dataset, rank, names, spacing_um);
    if (!b->failed)
        b->failed =
            !oct_hdf5_scales_attach(&b->scales, dataset, rank, names, dims, spacing_um, &b->reason);
}

/* ---- arrays ---- */

/* Returns the open dataset or a negative number. */
static hid_t make_array(struct builder *b, const char *name, hid_t type, int rank,
                        const uint64_t *dims)
{
    if (b->failed)
        return H5I_INVALID_HID;
    hid_t dataset =
        oct_hdf5_make_dataset_with(b->file, name, type, (unsigned)rank, dims, b->array, &b->reason);
    b->failed = dataset < 0;
    return dataset;
}

/* Where the array lies. It is fixed: allocated at creation, contiguous, never resized. */
static uint64_t place_of(struct builder *b, hid_t dataset)
{
    haddr_t offset = b->failed ? HADDR_UNDEF : H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF)
        note_failure(b);
    return b->failed ? 0 : (uint64_t)offset;
}

static void make_group(struct builder *b, const char *name)
{
    if (b->failed)
        return;
    hid_t group = H5Gcreate2(b->file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0 || H5Gclose(group) < 0)
        note_failure(b);
}

static void put_table(struct builder *b, const char *name, const double *values, int rank,
                      const uint64_t *dims, const char *units)
{
    hid_t dataset = make_array(b, name, H5T_IEEE_F64LE, rank, dims);
    if (!b->failed &&
        H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        note_failure(b);
    put_text(b, dataset, "units", units);
    OCT_HDF5_CLOSE(dataset);
}

static void put_list(struct builder *b, const char *name, const double *values, size_t n,
                     const char *units)
{
    uint64_t dim = n;
    if (n > 0)
        put_table(b, name, values, 1, &dim, units);
}

/* The phase of contract step 5 from its coefficients. */
static void put_coefficients(struct builder *b, const struct oct_plan *plan)
{
    uint32_t n = plan->geometry.upsampled;
    uint64_t dims[2] = {n, 2};
    double *phase = malloc(2 * sizeof(*phase) * n);
    if (!phase) {
        note_failure(b);
        return;
    }
    for (uint32_t q = 0; q < n; q++) {
        double theta = oct_plan_theta(plan, q);
        phase[2 * q] = cos(theta);
        phase[2 * q + 1] = -sin(theta);
    }
    put_table(b, "/calibration/dispersion", phase, 2, dims, "1");
    free(phase);
}

/* Where each A-line lies, [V][M] f32. */
static void put_positions(struct builder *b, const char *name, const struct oct_plan *plan,
                          unsigned axis)
{
    const struct oct_geometry *g = &plan->geometry;
    const uint64_t dims[2] = {g->n_bscans, g->n_lines};
    float *values = malloc(dims[0] * dims[1] * sizeof(*values));
    for (uint32_t v = 0; values && v < g->n_bscans; v++)
        for (uint32_t j = 0; j < g->n_lines; j++) {
            double um[2];
            oct_scan_position(&plan->scan, v, j, um);
            values[(uint64_t)v * g->n_lines + j] = (float)um[axis];
        }
    hid_t dataset = make_array(b, name, H5T_IEEE_F32LE, 2, dims);
    if (!b->failed &&
        (!values || H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0))
        note_failure(b);
    put_text(b, dataset, "units", "um");
    OCT_HDF5_CLOSE(dataset);
    free(values);
}

static void put_scan(struct builder *b, const struct oct_plan *plan)
{
    make_group(b, "/scan");
    hid_t group = b->failed ? H5I_INVALID_HID : H5Gopen2(b->file, "/scan", H5P_DEFAULT);
    put_text(b, group, "pattern", oct_scan_pattern_names[plan->scan.pattern]);
    put_attribute(b, group, "flyback_lines", H5T_NATIVE_UINT32, 0, &plan->scan.flyback_lines);
    put_f64(b, group, "trigger_delay_lines", plan->scan.delay_lines);
    put_f64(b, group, "phase_deg", plan->scan.phase_deg);
    if (group >= 0)
        H5Gclose(group);
    if (!b->failed && count_positions(plan) > 0) {
        put_positions(b, "/scan/x_um", plan, 0);
        put_positions(b, "/scan/y_um", plan, 1);
    }
}

static void put_calibration(struct builder *b, const struct oct_plan *plan)
{
    const struct oct_calibration *cal = &plan->calibration;
    make_group(b, "/calibration");
    put_list(b, "/calibration/wavelengths_nm", cal->wavelengths_nm, cal->n_wavelengths, "nm");
    put_list(b, "/calibration/kmap_px", cal->kmap_px, cal->n_kmap, "px");
    put_list(b, "/calibration/background", cal->background, cal->n_background, "counts");
    if (cal->n_positions > 0) {
        const uint64_t dims[2] = {cal->n_positions, 2};
        put_table(b, "/calibration/positions_um", cal->positions_um, 2, dims, "um");
    }
    if (cal->n_dispersion > 0) {
        uint64_t dims[2] = {cal->n_dispersion, 2};
        put_table(b, "/calibration/dispersion", cal->dispersion, 2, dims, "1");
    } else {
        put_coefficients(b, plan); /* none: all phases are 1. The array always exists */
    }
}

/* ---- forms ---- */

/* Columns have a row a B-scan; else they stand beside their dataset. */
static bool is_of_frames(const struct oct_image_form *form)
{
    return !form->of_volume && form->bscans_an_image <= 1;
}

/* Whether a dataset of `a` would have the name of one of `b`. */
static bool collide(const struct oct_image_form *a, const struct oct_image_form *b)
{
    char name[2 * OCT_IMAGE_NAME_BYTES];
    if (strcmp(a->name, b->name) == 0)
        return true;
    for (unsigned i = 0; !is_of_frames(a) && i < a->n_numbers; i++) {
        snprintf(name, sizeof(name), "%s_%s", a->name, a->numbers[i].name);
        if (strcmp(name, b->name) == 0)
            return true;
    }
    for (int c = 0; !is_of_frames(a) && c < OCT_N_RESULT_COLUMNS; c++) {
        snprintf(name, sizeof(name), "%s%s", a->name, oct_volume_result_columns[c].name);
        if (strcmp(name, b->name) == 0)
            return true;
    }
    return false;
}

static bool has_column_as_number(const struct oct_image_form *form)
{
    for (unsigned i = 0; i < form->n_numbers; i++)
        for (int c = 0; c < OCT_N_RESULT_COLUMNS; c++)
            if (strcmp(form->numbers[i].name, oct_volume_result_columns[c].name + 1) == 0)
                return true;
    return false;
}

enum oct_err oct_volume_forms_check(const struct oct_image_form *const *forms, unsigned n_forms,
                                    struct oct_error *err)
{
    if (n_forms > OCT_VOLUME_MAX_FORMS)
        return oct_fail(err, OCT_E_ARG, "%u analyses are to be recorded: at most %u are possible",
                        n_forms, OCT_VOLUME_MAX_FORMS);
    for (unsigned i = 0; i < n_forms; i++) {
        enum oct_err e = oct_image_form_check(forms[i], err);
        if (e != OCT_OK)
            return e;
        if (has_column_as_number(forms[i]))
            return oct_fail(err, OCT_E_ARG, "%s: a number of it is called as one of its columns is",
                            forms[i]->name);
        if (strcmp(forms[i]->name, "line") == 0 && !forms[i]->of_volume)
            return oct_fail(err, OCT_E_ARG,
                            "line: an analysis of this name cannot be recorded: "
                            "/frames/line_valid is the mask of lines");
        for (unsigned k = 0; k < n_forms; k++)
            if (k != i && collide(forms[i], forms[k]))
                return oct_fail(err, OCT_E_ARG,
                                "%s and %s: these analyses cannot be recorded "
                                "together: their datasets would have the same names",
                                forms[i]->name, forms[k]->name);
    }
    return OCT_OK;
}

/* ---- the whole ---- */

static void put_about(struct builder *b, const struct oct_volume_about *about)
{
    char now[40] = "";
    time_t t = time(NULL);
    struct tm utc;
    if (!about->start_time && gmtime_r(&t, &utc))
        strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &utc);
    put_text(b, b->file, "software", "octd " OCT_VERSION);
    put_text(b, b->file, "start_time", about->start_time ? about->start_time : now);
    put_text(b, b->file, "start_time_source",
             about->start_time_source ? about->start_time_source : OCT_TIME_RECORDED);
    put_text(b, b->file, "engine", about->engine);
    put_text(b, b->file, "eye", about->eye);
    put_text(b, b->file, "pseudonym", about->pseudonym);
    put_text(b, b->file, "config", about->config_text);
    put_f64(b, b->file, "refractive_index", about->refractive_index);
    if (about->counted)
        put_attribute(b, b->file, "first_bscan", H5T_STD_U64LE, 0, &about->first_bscan);
}

/* Which arrays a file has depends on what it holds. */
static bool has_column(int column, bool with_spectra, bool with_bscans)
{
    if (column == OCT_COLUMN_LO || column == OCT_COLUMN_HI || column == OCT_COLUMN_BSCANS_CRC)
        return with_bscans;
    return column != OCT_COLUMN_SPECTRA_CRC || with_spectra;
}

static void build_gaps(struct builder *b, const struct oct_geometry *g,
                       struct oct_volume_layout *layout)
{
    uint64_t dim = oct_gap_capacity(g);
    make_group(b, "/gaps");
    for (int c = 0; c < OCT_N_GAP_COLUMNS; c++) {
        const struct oct_volume_column_form *column = &oct_gap_columns[c];
        hid_t dataset = make_array(b, column->name, stored_type(column), 1, &dim);
        layout->gap_column[c] = place_of(b, dataset);
        if (c == OCT_GAP_REASON)
            put_attribute(b, dataset, "names", b->text, OCT_N_LOSSES, oct_loss_names);
        OCT_HDF5_CLOSE(dataset);
    }
}

/* NULL: a count or a flag. */
static const char *column_units(int column, const struct oct_volume_about *about)
{
    if (column == OCT_COLUMN_LO || column == OCT_COLUMN_HI)
        return oct_quantity_unit(about->is_log ? OCT_QUANTITY_INTENSITY_DB
                                               : OCT_QUANTITY_INTENSITY);
    return column == OCT_COLUMN_TIME_NS ? "ns" : NULL;
}

static void build_frames(struct builder *b, const struct oct_geometry *g,
                         const struct oct_volume_about *about, struct oct_volume_layout *layout,
                         bool with_spectra, bool with_bscans)
{
    uint64_t dims[2] = {g->n_bscans, g->n_lines};
    make_group(b, "/frames");
    for (int c = 0; c < OCT_N_COLUMNS; c++) {
        if (!has_column(c, with_spectra, with_bscans))
            continue;
        hid_t dataset =
            make_array(b, oct_volume_columns[c].name, stored_type(&oct_volume_columns[c]), 1, dims);
        layout->column[c] = place_of(b, dataset);
        if (column_units(c, about))
            put_text(b, dataset, "units", column_units(c, about));
        OCT_HDF5_CLOSE(dataset);
    }
    if (with_spectra) {
        hid_t dataset = make_array(b, "/frames/line_valid", H5T_STD_U8LE, 2, dims);
        layout->line_valid = place_of(b, dataset);
        OCT_HDF5_CLOSE(dataset);
    }
}

static void build_result_columns(struct builder *b, const struct oct_image_form *form,
                                 uint64_t n_results, struct oct_volume_result_layout *layout)
{
    static const char *const folders[2] = {"/frames", "/analysis"};
    char name[2 * OCT_IMAGE_NAME_BYTES];
    for (int c = 0; c < OCT_N_RESULT_COLUMNS; c++) {
        if (!has_result_column(form, c))
            continue;
        snprintf(name, sizeof(name), "%s/%s%s", folders[!is_of_frames(form)], form->name,
                 oct_volume_result_columns[c].name);
        hid_t dataset =
            make_array(b, name, stored_type(&oct_volume_result_columns[c]), 1, &n_results);
        layout->column[c] = place_of(b, dataset);
        OCT_HDF5_CLOSE(dataset);
    }
    for (unsigned i = 0; i < form->n_numbers; i++) {
        const uint64_t dims[2] = {n_results, form->numbers[i].n_values};
        snprintf(name, sizeof(name), "%s/%s_%s", folders[!is_of_frames(form)], form->name,
                 form->numbers[i].name);
        hid_t dataset = make_array(b, name, H5T_IEEE_F64LE, dims[1] > 1 ? 2 : 1, dims);
        layout->number[i] = place_of(b, dataset);
        OCT_HDF5_CLOSE(dataset);
    }
}

/* The same dataset under a second name; nothing is written twice. */
static void put_at_root(struct builder *b, const char *name)
{
    const char *second = strrchr(name, '/');
    if (!b->failed && H5Lcreate_hard(b->file, name, b->file, second, H5P_DEFAULT, H5P_DEFAULT) < 0)
        note_failure(b);
}

/* bscan_um: between neighbouring B-scans, for an axis of them whose form does not know it. */
static void build_result(struct builder *b, const struct oct_image_form *form, uint32_t n_bscans,
                         double bscan_um, struct oct_volume_result_layout *layout)
{
    char name[2 * OCT_IMAGE_NAME_BYTES];
    const uint32_t n_rows = oct_image_form_rows(form, n_bscans);
    const bool is_of_blocks = !form->of_volume && form->bscans_an_image > 1;
    const uint32_t n_block = is_of_blocks ? form->bscans_an_image : 1;
    uint64_t dims[OCT_IMAGE_MAX_RANK + 1] = {n_rows};
    const char *axes[OCT_IMAGE_MAX_RANK + 1] = {"bscan"};
    double spacing_um[OCT_IMAGE_MAX_RANK + 1] = {bscan_um * n_block};
    unsigned first = form->of_volume ? 0 : 1, rank = first + form->rank;
    for (unsigned i = 0; i < form->rank; i++) {
        bool is_bscan = strcmp(form->axes[i], "bscan") == 0;
        dims[first + i] = form->dims[i];
        axes[first + i] = form->axes[i];
        spacing_um[first + i] =
            is_bscan && isnan(form->spacing_um[i]) ? bscan_um : form->spacing_um[i];
    }
    build_result_columns(b, form, n_rows, layout);
    snprintf(name, sizeof(name), "/analysis/%s", form->name);
    hid_t type = form->type == OCT_SAMPLE_F32 ? H5T_IEEE_F32LE : H5T_STD_U8LE;
    hid_t dataset = make_array(b, name, type, (int)rank, dims);
    put_text(b, dataset, "quantity", oct_quantity_name(form->quantity));
    put_text(b, dataset, "units", oct_quantity_unit(form->quantity));
    put_dataset_axes(b, dataset, rank, axes, dims, spacing_um);
    if (form->labels)
        put_attribute(b, dataset, "labels", b->text, form->dims[form->rank - 1], form->labels);
    if (n_block > 1)
        put_attribute(b, dataset, "bscans_an_image", H5T_STD_U32LE, 0, &n_block);
    layout->data = place_of(b, dataset);
    OCT_HDF5_CLOSE(dataset);
    if (form->at_root)
        put_at_root(b, name);
}

static void build_results(struct builder *b, const struct oct_volume_about *about,
                          uint32_t n_bscans, double bscan_um, struct oct_volume_layout *layout)
{
    if (about->n_forms > 0)
        make_group(b, "/analysis");
    for (unsigned i = 0; i < about->n_forms; i++)
        build_result(b, about->forms[i], n_bscans, bscan_um, &layout->results[i]);
}

/* The scale of the samples where each has its wavelength. */
static void put_wavelengths(struct builder *b, hid_t spectra, const struct oct_geometry *g,
                            const struct oct_calibration *cal)
{
    static const char name[] = "/calibration/wavelengths_nm";
    if (b->failed || cal->n_wavelengths != g->n_samples)
        return;
    hid_t scale = H5Dopen2(b->file, name, H5P_DEFAULT);
    if (scale < 0)
        note_failure(b);
    else
        b->failed = !oct_hdf5_scale_use(spectra, 2, scale, "wavelengths_nm", &b->reason);
    OCT_HDF5_CLOSE(scale);
}

/* What h5py reads as complex64. */
static hid_t make_complex_type(struct builder *b)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 2 * sizeof(float));
    if (type < 0 || H5Tinsert(type, "r", 0, H5T_IEEE_F32LE) < 0 ||
        H5Tinsert(type, "i", sizeof(float), H5T_IEEE_F32LE) < 0)
        note_failure(b);
    return type;
}

/* Beside /bscans, of the same axes. */
static void build_complex(struct builder *b, const struct oct_geometry *g, const char *const *axes,
                          const double *spacing_um, struct oct_volume_layout *layout)
{
    uint64_t dims[3] = {g->n_bscans, g->n_lines, g->depth};
    hid_t type = make_complex_type(b), dataset = make_array(b, "/complex", type, 3, dims);
    put_dataset_axes(b, dataset, 3, axes, dims, spacing_um);
    put_text(b, dataset, "quantity", "complex amplitude");
    put_text(b, dataset, "units", "counts");
    put_attribute(b, dataset, "first_depth_px", H5T_NATIVE_UINT32, 0, &g->crop_first);
    layout->complex_values = place_of(b, dataset);
    OCT_HDF5_CLOSE(dataset, type);
}

static void build_spectra(struct builder *b, const struct oct_plan *plan,
                          const struct oct_volume_about *about, const double *spacing_um,
                          struct oct_volume_layout *layout)
{
    static const char *const sample_axes[3] = {"bscan", "line", "sample"};
    static const char *const byte_axes[3] = {"bscan", "line", "byte"};
    const struct oct_geometry *g = &plan->geometry;
    const uint16_t format = about->spectra_format;
    const bool is_u16 = oct_samples_bits(format) == 16;
    const double um[3] = {spacing_um[0], spacing_um[1], NAN};
    uint64_t dims[3] = {g->n_bscans, g->n_lines, g->n_samples};
    if (!is_u16)
        dims[2] = oct_samples_bytes(format, g->n_samples);
    hid_t dataset = make_array(b, is_u16 ? "/spectra" : OCT_PACKED_SPECTRA,
                               is_u16 ? H5T_STD_U16LE : H5T_STD_U8LE, 3, dims);
    put_dataset_axes(b, dataset, 3, is_u16 ? sample_axes : byte_axes, dims, um);
    put_text(b, dataset, "quantity", "camera samples");
    put_text(b, dataset, "units", is_u16 ? "counts" : "packed counts");
    if (is_u16) {
        put_wavelengths(b, dataset, g, &plan->calibration);
    } else {
        put_text(b, dataset, OCT_PACKED_FORMAT, oct_samples_name(format));
        put_attribute(b, dataset, OCT_PACKED_SAMPLES, H5T_NATIVE_UINT32, 0, &g->n_samples);
    }
    layout->spectra = place_of(b, dataset);
    OCT_HDF5_CLOSE(dataset);
}

/* Creates small arrays first, so that the metadata lies together at the start of the file. */
static void build(struct builder *b, struct oct_volume_layout *layout, const struct oct_plan *plan,
                  const struct oct_volume_about *about, bool with_spectra, bool with_bscans)
{
    static const char *const volume_axes[3] = {"bscan", "line", "depth"};
    const struct oct_geometry *g = &plan->geometry;
    const struct oct_spacing spacing = oct_spacing_of_field(
        plan, about->width_um, about->height_um,
        about->field_bscans ? about->field_bscans : g->n_bscans, about->refractive_index);
    double spacing_um[3] = {spacing.bscan_um, spacing.line_um, spacing.depth_um};

    put_about(b, about);
    put_axes(b, b->file, 3, volume_axes, spacing_um);
    if (!b->failed)
        b->failed = !describe_places(&b->scales, b->file, b->array, g, about, &spacing, &b->reason);
    put_calibration(b, plan);
    put_scan(b, plan);
    build_frames(b, g, about, layout, with_spectra, with_bscans);
    if (about->gap_map)
        build_gaps(b, g, layout);
    build_results(b, about, g->n_bscans, spacing_um[0], layout);
    if (with_bscans) {
        uint64_t dims[3] = {g->n_bscans, g->n_lines, g->depth};
        hid_t type = g->sample_type == OCT_SAMPLE_F32 ? H5T_IEEE_F32LE : H5T_STD_U8LE;
        hid_t dataset = make_array(b, "/bscans", type, 3, dims);
        put_dataset_axes(b, dataset, 3, volume_axes, dims, spacing_um);
        if (!b->failed)
            b->failed = !describe_grey(dataset, g->sample_type, about, &b->reason);
        put_attribute(b, dataset, "first_depth_px", H5T_NATIVE_UINT32, 0, &g->crop_first);
        layout->bscans = place_of(b, dataset);
        OCT_HDF5_CLOSE(dataset);
    }
    if (about->has_complex)
        build_complex(b, g, volume_axes, spacing_um, layout);
    if (with_spectra)
        build_spectra(b, plan, about, spacing_um, layout);
}

static void open_builder(struct builder *b, struct oct_hdf5_image *image)
{
    *b = (struct builder){.file = H5I_INVALID_HID};
    b->array = H5Pcreate(H5P_DATASET_CREATE);
    b->text = oct_hdf5_make_text_type(&b->reason);
    b->failed = b->text < 0;
    if (H5Pset_layout(b->array, H5D_CONTIGUOUS) < 0 ||
        H5Pset_alloc_time(b->array, H5D_ALLOC_TIME_EARLY) < 0 ||
        H5Pset_fill_time(b->array, H5D_FILL_TIME_NEVER) < 0 ||
        H5Pset_obj_track_times(b->array, 0) < 0) /* same seed, same bytes */
        note_failure(b);
    if (!b->failed)
        b->file = oct_hdf5_image_open(image, H5F_ACC_TRUNC, OCT_VOLUME_BLOCK_BYTES, b->reason.text,
                                      sizeof(b->reason.text));
    b->failed |= b->file < 0;
}

static void close_builder(struct builder *b)
{
    oct_hdf5_scales_close(&b->scales);
    OCT_HDF5_CLOSE(b->text, b->array);
    if (b->file >= 0 && H5Fclose(b->file) < 0)
        note_failure(b);
}

enum oct_err oct_volume_layout_build(struct oct_hdf5_image *image, struct oct_volume_layout *layout,
                                     const char *path, const struct oct_plan *plan,
                                     const struct oct_volume_about *about, bool with_spectra,
                                     bool with_bscans, struct oct_error *err)
{
    struct builder b;
    *layout = (struct oct_volume_layout){0};
    if (!oct_hdf5_has_memory())
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for its metadata", path);
    oct_hdf5_lock();
    open_builder(&b, image);
    if (!b.failed)
        build(&b, layout, plan, about, with_spectra, with_bscans);
    close_builder(&b);
    oct_hdf5_unlock();
    if (b.failed)
        return oct_fail(err, OCT_E_IO, "%s: libhdf5 cannot make its metadata: %s", path,
                        b.reason.text);
    layout->file_bytes = image->end;
    return OCT_OK;
}
