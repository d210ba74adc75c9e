/* Results of analyses, /analysis/NAME: one image a B-scan, one a block of B-scans, or one of the
 * volume. Those with a single row a B-scan make one plane of them. */
#include "analysis/flow/flow.h"
#include "pipeline/volume/array.h"
#include "tools/alloc.h"
#include "tools/files/export_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES (2 * OCT_IMAGE_NAME_BYTES)

struct result {
    struct oct_export_input *in;
    struct oct_volume_dataset dataset;
    struct oct_volume_array *array;
    char name[NAME_BYTES];  /* "analysis/NAME" */
    bool is_rows;           /* planes of the array are rows of the only plane */
    struct oct_span span;   /* rows of the array that are planes or rows */
    uint32_t n_rows, width; /* of a plane */
    float *row;             /* of u8, what lies in the file */
};

static enum oct_err find_dataset(struct result *r, const char *name, struct oct_error *err)
{
    struct oct_volume_dataset all[OCT_VOLUME_MAX_FORMS];
    char names[256] = "";
    size_t used = 0;
    unsigned n;
    const enum oct_err e = oct_volume_datasets(r->in->reader, all, &n, err);
    for (unsigned i = 0; i < n && !e; i++) {
        if (strcmp(all[i].name, name) == 0) {
            r->dataset = all[i];
            return OCT_OK;
        }
        if (used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
                                     all[i].name);
    }
    return e ? e
             : oct_fail(err, OCT_E_ARG, "%s: has no results analysis/%s; it has %s", r->in->path,
                        name, n ? names : "none");
}

/* The column "valid", "lo" or "hi" of all images, in double precision. */
static enum oct_err read_column(const struct result *r, const char *what, uint32_t n,
                                double *values, struct oct_error *err)
{
    const struct oct_volume_dataset *d = &r->dataset;
    const bool is_of_frames = !d->of_volume && d->bscans_an_image == 1;
    struct oct_volume_array *column;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%s/%s_%s", is_of_frames ? "/frames" : "/analysis", d->name, what);
    enum oct_err e = oct_volume_array_open(&column, r->in->path, name, err);
    if (e)
        return e;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(column);
    if (f->rank != 1 || f->dims[0] != n)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s must be %u numbers", r->in->path, name, n);
    e = e ? e : oct_volume_array_read_f64(column, values, err);
    oct_volume_array_close(column);
    return e;
}

/* ---- reading ---- */

/* Row i of the array; of a volume's result of one or two axes the whole. */
static enum oct_err read_array(const struct result *r, uint64_t i, float *values,
                               struct oct_error *err)
{
    if (r->dataset.of_volume && r->dataset.rank < 3)
        return oct_volume_array_read(r->array, values, err);
    return oct_volume_array_read_row(r->array, i, values, err);
}

static enum oct_err read_part(const struct result *r, uint64_t i, size_t n, void *values,
                              struct oct_error *err)
{
    const bool is_u8 = r->dataset.type == OCT_SAMPLE_U8;
    const enum oct_err e = read_array(r, i, is_u8 ? r->row : (float *)values, err);
    for (size_t k = 0; is_u8 && !e && k < n; k++)
        ((uint8_t *)values)[k] = (uint8_t)r->row[k];
    return e;
}

/* The row of the array that plane or row i is. */
static uint64_t row_of(const struct result *r, uint64_t i)
{
    return r->span.first + i * r->span.step;
}

static enum oct_err read_result(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct result *r = context;
    const size_t value_bytes = r->dataset.type == OCT_SAMPLE_U8 ? 1 : sizeof(float);
    enum oct_err e = OCT_OK;
    if (!r->is_rows)
        return read_part(r, row_of(r, plane), (size_t)r->n_rows * r->width, values, err);
    for (uint32_t i = 0; i < r->n_rows && !e; i++)
        e = read_part(r, row_of(r, i), r->width,
                      (unsigned char *)values + (size_t)i * r->width * value_bytes, err);
    return e;
}

static void close_result(void *context)
{
    struct result *r = context;
    oct_volume_array_close(r->array);
    free(r->row);
    free(r);
}

/* ---- opening ---- */

/* Of the angiogram the depths that octd was told, and how. */
static void describe_angiogram(struct oct_export_form *form, const struct result *r)
{
    const struct oct_flow_settings *s = oct_config_settings(r->in->config, "flow");
    const bool is_told = strcmp(r->dataset.name, "angiogram") == 0 && r->in->has_config;
    form->slab = is_told ? s->slab.name : "";
    form->method = is_told ? oct_flow_methods[s->method] : "";
}

/* The axes of the array behind the planes, rows and columns that they become. */
static enum oct_err lay_out(struct oct_export_form *form, struct result *r, struct oct_error *err)
{
    const struct oct_volume_array_facts *f = oct_volume_array_facts(r->array);
    if (f->rank > 3 || f->rank < 1)
        return oct_fail(err, OCT_E_ARG, "%s: %s has %u axes; at most 3 can be exported",
                        r->in->path, r->name, f->rank);
    *form = (struct oct_export_form){.dims = {1, 1, 1},
                                     .axes = {"", "", ""},
                                     .um = {NAN, NAN, NAN},
                                     .name = r->name,
                                     .quantity = r->dataset.quantity,
                                     .unit = r->dataset.unit,
                                     .plane_s = NAN};
    describe_angiogram(form, r);
    for (unsigned i = 0; i < f->rank; i++) {
        const unsigned to = 3 - f->rank + i;
        form->dims[to] =
            i == 0 && !r->dataset.of_volume ? oct_span_count(r->span) : (uint32_t)f->dims[i];
        form->axes[to] = f->axes[i];
        form->um[to] = f->spacing_um[i] * (i ? 1 : r->span.step);
    }
    r->is_rows = f->rank == 2 && !r->dataset.of_volume;
    r->n_rows = form->dims[1];
    r->width = form->dims[2];
    form->is_upright = strcmp(form->axes[2], "depth") != 0;
    form->sample = r->dataset.type == OCT_SAMPLE_U8 ? OCT_EXPORT_U8 : OCT_EXPORT_F32;
    return OCT_OK;
}

/* The column of the n_here planes or rows that are exported, malloc'd; of a volume's result they
 * all have its one. */
static enum oct_err pick_column(const struct result *r, const char *what, uint32_t n_here,
                                double **picked, struct oct_error *err)
{
    const uint32_t n = r->dataset.of_volume ? 1 : (uint32_t)r->dataset.dims[0];
    double *column = oct_alloc(n, sizeof(*column)), *values = oct_alloc(n_here, sizeof(*values));
    *picked = values;
    const enum oct_err e = read_column(r, what, n, column, err);
    for (uint32_t i = 0; i < n_here; i++)
        values[i] = column[row_of(r, r->dataset.of_volume ? 0 : i)];
    free(column);
    return e;
}

/* Which images are there, and what their greys stand for. */
static enum oct_err read_columns(struct oct_export_values *values, const struct result *r,
                                 struct oct_error *err)
{
    const uint32_t n_here = r->dataset.of_volume ? values->form.dims[0] : oct_span_count(r->span);
    double *valid;
    enum oct_err e = pick_column(r, "valid", n_here, &valid, err);
    if (!e && r->dataset.type == OCT_SAMPLE_U8) {
        e = pick_column(r, "lo", n_here, &values->lo, err);
        e = e ? e : pick_column(r, "hi", n_here, &values->hi, err);
    }
    values->valid = oct_alloc(n_here, 1);
    for (uint32_t i = 0; i < n_here; i++)
        values->valid[i] = valid[i] > 0;
    free(valid);
    return e;
}

/* The images that are wanted. */
static enum oct_err choose_images(struct result *r, const struct oct_export_wish *wish,
                                  struct oct_error *err)
{
    const uint32_t n = r->dataset.of_volume ? 1 : (uint32_t)r->dataset.dims[0];
    if (wish->frames.last > 0 && (r->dataset.of_volume || r->dataset.bscans_an_image > 1))
        return oct_fail(err, OCT_E_ARG,
                        "%s: %s has no image of each B-scan, from which --frames could choose",
                        r->in->path, r->name);
    return oct_export_values_range(r->in, wish, n, &r->span, err);
}

static enum oct_err open_result(struct oct_export_values *values, struct result *r,
                                const struct oct_export_wish *wish, struct oct_error *err)
{
    char name[NAME_BYTES + 1];
    const struct oct_span bscans = oct_span_of(wish->frames, r->in->facts->n_bscans);
    snprintf(r->name, sizeof(r->name), "%s", wish->dataset);
    snprintf(name, sizeof(name), "/%s", r->name);
    enum oct_err e = find_dataset(r, wish->dataset + strlen("analysis/"), err);
    e = e ? e : oct_volume_array_open(&r->array, r->in->path, name, err);
    e = e ? e : choose_images(r, wish, err);
    e = e ? e : lay_out(&values->form, r, err);
    e = e ? e : read_columns(values, r, err);
    if (e)
        return e;
    if (r->dataset.n_valid == 0)
        return oct_fail(err, OCT_E_ARG, "%s: %s is empty: no result was ever written", r->in->path,
                        r->name);
    values->is_rows = r->is_rows;
    values->what = r->dataset.of_volume             ? "planes"
                   : r->dataset.bscans_an_image > 1 ? "blocks"
                                                    : "B-scans";
    if (!r->dataset.of_volume && !r->is_rows)
        values->form.plane_s =
            r->dataset.bscans_an_image * oct_export_input_plane_s(r->in, &bscans);
    r->row = oct_alloc((size_t)r->n_rows * r->width, sizeof(*r->row));
    return OCT_OK;
}

enum oct_err oct_export_values_result(struct oct_export_values *values, struct oct_export_input *in,
                                      const struct oct_export_wish *wish, struct oct_error *err)
{
    struct result *r = oct_alloc(1, sizeof(*r));
    *values = (struct oct_export_values){.context = r, .read = read_result, .close = close_result};
    r->in = in;
    return open_result(values, r, wish, err);
}
