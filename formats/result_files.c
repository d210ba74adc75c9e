#include "formats/result_files.h"

#include "formats/csv.h"
#include "formats/results.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_A_WRITE 4096u
#define NAME_BYTES 128
#define MOST_VALUES 64u /* of a list */
#define MOST_FIELDS 64u

static bool is_count(const struct oct_result_field *f)
{
    return f->type == OCT_RESULT_U8 || f->type == OCT_RESULT_U32 || f->type == OCT_RESULT_U64;
}

static uint64_t count_of(const struct oct_result_field *f, const void *data)
{
    return f->type == OCT_RESULT_U64 ? *(const uint64_t *)((const char *)data + f->at)
                                     : (uint64_t)oct_result_number(f, data, 0);
}

static bool has_text(const struct oct_result_field *f)
{
    return f->type == OCT_RESULT_TEXT || f->type == OCT_RESULT_WORD;
}

static unsigned list_values(const struct oct_result_field *f, const void *data,
                            double values[MOST_VALUES])
{
    const unsigned n = f->n < MOST_VALUES ? f->n : MOST_VALUES;
    for (unsigned i = 0; i < n; i++)
        values[i] = oct_result_number(f, data, i);
    return n;
}

/* ---- HDF5 ---- */

static const char *h5_name(const struct oct_result_field *f, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s", f->h5 ? f->h5 : f->name);
    for (char *c = name; *c; c++)
        *c = *c == '.' ? '_' : *c;
    return name;
}

void oct_result_attributes(struct oct_results *results, const char *object,
                           const struct oct_result_fields *fields, const void *data)
{
    char name[NAME_BYTES];
    double values[MOST_VALUES];
    for (unsigned i = 0; i < fields->n; i++) {
        const struct oct_result_field *f = &fields->fields[i];
        const bool is_known = oct_result_is_known(f, data);
        if (f->not_in & OCT_RESULT_H5 || (!is_known && (f->is_optional || has_text(f))))
            continue;
        h5_name(f, name);
        if (f->n > 0)
            oct_results_numbers(results, object, name, values, list_values(f, data, values));
        else if (has_text(f))
            oct_results_text(results, object, name, oct_result_text(f, data));
        else if (f->type == OCT_RESULT_BOOL)
            oct_results_text(results, object, name,
                             oct_result_number(f, data, 0) != 0 ? "yes" : "no");
        else if (is_count(f))
            oct_results_count(results, object, name, count_of(f, data));
        else
            oct_results_number(results, object, name, oct_result_number(f, data, 0));
    }
}

static enum oct_results_type h5_type(const struct oct_result_field *f)
{
    switch (f->type) {
    case OCT_RESULT_U64:
        return OCT_RESULTS_U64;
    case OCT_RESULT_U32:
        return OCT_RESULTS_U32;
    case OCT_RESULT_F32:
        return OCT_RESULTS_F32;
    case OCT_RESULT_F64:
        return OCT_RESULTS_F64;
    default:
        return OCT_RESULTS_U8;
    }
}

static size_t h5_bytes(const struct oct_result_field *f)
{
    static const size_t bytes[] = {[OCT_RESULTS_F64] = 8,
                                   [OCT_RESULTS_F32] = 4,
                                   [OCT_RESULTS_U64] = 8,
                                   [OCT_RESULTS_U32] = 4,
                                   [OCT_RESULTS_U8] = 1};
    return bytes[h5_type(f)];
}

static unsigned make_dataset(struct oct_results *results, const char *group,
                             const struct oct_result_field *f, uint64_t n)
{
    char name[NAME_BYTES], path[2 * NAME_BYTES], meaning[NAME_BYTES * 2] = "";
    snprintf(path, sizeof(path), "%s/%s", group, h5_name(f, name));
    const unsigned dataset = oct_results_dataset(results, path, h5_type(f), 1, &n, f->unit);
    for (unsigned w = 0; f->words && f->words[w]; w++)
        snprintf(meaning + strlen(meaning), sizeof(meaning) - strlen(meaning), "%s%u %s",
                 w ? ", " : "", w, f->words[w]);
    if (f->meaning || meaning[0])
        oct_results_text(results, path, "meaning", f->meaning ? f->meaning : meaning);
    return dataset;
}

/* One column of rows `first` on. */
static void write_column(struct oct_results *results, unsigned dataset,
                         const struct oct_result_field *f, const struct oct_result_rows *rows,
                         const char *part, uint64_t first, size_t n)
{
    _Alignas(8) static _Thread_local char values[ROWS_A_WRITE * 8];
    const size_t bytes = h5_bytes(f);
    for (size_t i = 0; i < n; i++) {
        const char *value = part + i * rows->row_bytes + f->at;
        if (f->type == OCT_RESULT_WORD)
            values[i] = (char)*(const int *)(const void *)value;
        else
            memcpy(values + i * bytes, value, bytes);
    }
    oct_results_write_rows(results, dataset, first, n, values);
}

void oct_result_datasets(struct oct_results *results, const char *group,
                         const struct oct_result_rows *rows)
{
    unsigned datasets[MOST_FIELDS] = {0};
    const struct oct_result_field *f = rows->fields->fields;
    const unsigned n_fields = rows->fields->n < MOST_FIELDS ? rows->fields->n : MOST_FIELDS;
    char *part = rows->fill ? malloc(ROWS_A_WRITE * rows->row_bytes) : NULL;
    for (unsigned k = 0; k < n_fields; k++)
        if (!(f[k].not_in & OCT_RESULT_H5))
            datasets[k] = make_dataset(results, group, &f[k], rows->n);
    for (uint64_t first = 0; first < rows->n && (part || !rows->fill); first += ROWS_A_WRITE) {
        const size_t n = rows->n - first < ROWS_A_WRITE ? (size_t)(rows->n - first) : ROWS_A_WRITE;
        for (size_t i = 0; rows->fill && i < n; i++)
            rows->fill(rows->context, first + i, part + i * rows->row_bytes);
        const char *at =
            part ? part : (const char *)rows->context + (size_t)first * rows->row_bytes;
        for (unsigned k = 0; k < n_fields; k++)
            if (!(f[k].not_in & OCT_RESULT_H5))
                write_column(results, datasets[k], &f[k], rows, at, first, n);
    }
    free(part);
}

/* ---- rows ---- */

/* Calls `each` for every row. False: out of memory. */
static bool for_each_row(const struct oct_result_rows *rows,
                         void (*each)(void *context, const void *row), void *context)
{
    void *own = rows->fill ? malloc(rows->row_bytes) : NULL;
    if (rows->fill && !own)
        return false;
    for (uint64_t i = 0; i < rows->n; i++) {
        if (rows->fill)
            rows->fill(rows->context, i, own);
        each(context, own ? own : (const char *)rows->context + (size_t)i * rows->row_bytes);
    }
    free(own);
    return true;
}

/* ---- CSV ---- */

struct csv_rows {
    struct oct_csv *csv;
    const struct oct_result_fields *fields;
};

static void write_csv_row(void *context, const void *row)
{
    const struct csv_rows *to = context;
    for (unsigned k = 0; k < to->fields->n; k++) {
        const struct oct_result_field *f = &to->fields->fields[k];
        if (f->not_in & OCT_RESULT_CSV)
            continue;
        if (!oct_result_is_known(f, row))
            oct_csv_text(to->csv, "");
        else if (has_text(f))
            oct_csv_text(to->csv, oct_result_text(f, row));
        else if (is_count(f) || f->type == OCT_RESULT_BOOL)
            oct_csv_count(to->csv, count_of(f, row));
        else
            oct_csv_number(to->csv, oct_result_number(f, row, 0));
    }
    oct_csv_end_row(to->csv);
}

enum oct_err oct_result_csv(const char *path, bool force, const struct oct_result_rows *rows,
                            struct oct_error *err)
{
    char header[MOST_FIELDS * 32] = "";
    struct csv_rows to = {.fields = rows->fields};
    for (unsigned k = 0; k < rows->fields->n; k++) {
        const struct oct_result_field *f = &rows->fields->fields[k];
        if (!(f->not_in & OCT_RESULT_CSV))
            snprintf(header + strlen(header), sizeof(header) - strlen(header), "%s%s",
                     header[0] ? "," : "", f->name);
    }
    const enum oct_err e = oct_csv_create(&to.csv, path, force, header, err);
    if (e)
        return e;
    if (for_each_row(rows, write_csv_row, &to))
        return oct_csv_publish(to.csv, err);
    oct_csv_discard(to.csv);
    return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
}

/* ---- JSON ---- */

static void add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

/* The object of "a.b.c" and c; objects are made where they are missing. */
static cJSON *find_object(cJSON *object, const char *name, const char **last)
{
    const char *dot;
    for (; (dot = strchr(name, '.')); name = dot + 1) {
        char part[NAME_BYTES];
        snprintf(part, sizeof(part), "%.*s", (int)(dot - name), name);
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, part);
        object = inner ? inner : cJSON_AddObjectToObject(object, part);
    }
    *last = name;
    return object;
}

static void add_field(cJSON *object, const struct oct_result_field *f, const void *data)
{
    const char *name;
    double values[MOST_VALUES];
    const bool is_known = oct_result_is_known(f, data);
    if (f->not_in & OCT_RESULT_JSON || (!is_known && f->is_optional))
        return;
    object = find_object(object, f->name, &name);
    if (!is_known) {
        cJSON_AddNullToObject(object, name);
    } else if (f->n > 0) {
        cJSON *list = cJSON_AddArrayToObject(object, name);
        const unsigned n = list_values(f, data, values);
        for (unsigned i = 0; i < n; i++)
            cJSON_AddItemToArray(list, isfinite(values[i]) ? cJSON_CreateNumber(values[i])
                                                           : cJSON_CreateNull());
    } else if (has_text(f)) {
        cJSON_AddStringToObject(object, name, oct_result_text(f, data));
    } else if (f->type == OCT_RESULT_BOOL) {
        cJSON_AddBoolToObject(object, name, oct_result_number(f, data, 0) != 0);
    } else {
        add_number(object, name, oct_result_number(f, data, 0));
    }
}

void oct_result_json(cJSON *object, const struct oct_result_fields *fields, const void *data)
{
    for (unsigned i = 0; i < fields->n; i++)
        add_field(object, &fields->fields[i], data);
}

struct json_rows {
    cJSON *list;
    const struct oct_result_fields *fields;
};

static void add_json_row(void *context, const void *row)
{
    const struct json_rows *to = context;
    cJSON *object = cJSON_CreateObject();
    oct_result_json(object, to->fields, row);
    cJSON_AddItemToArray(to->list, object);
}

void oct_result_json_rows(cJSON *object, const char *name, const struct oct_result_rows *rows)
{
    struct json_rows to = {cJSON_AddArrayToObject(object, name), rows->fields};
    for_each_row(rows, add_json_row, &to);
}
