#include "pipeline/wire/image_header.h"

#include "pipeline/base/json_text.h"
#include "pipeline/base/utf8.h"
#include "pipeline/wire/json_fields.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DATASETS "analysis/"
#define MOST_JSON_BYTES (2 * OCT_IMAGE_HEADER_BYTES) /* bounds the work on a hostile header */

/* Keys of the header that are no numbers of a form. */
static const char *const known[] = {
    "frame_num", "acquisition_id", "dtype",      "dsize", "dataset", "compression", "shape",
    "time_ns",   "missing_lines",  "lo",         "hi",    "volume",  "bscan",       "quantity",
    "unit",      "axes",           "spacing_um", "whole", "labels",  "values",
};

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

static size_t value_bytes_of(enum oct_sample_type type)
{
    return type == OCT_SAMPLE_F32 ? sizeof(float) : 1;
}

/* One line of UTF-8 that fits, with its NUL: what may be shown as it is. */
static bool is_line(const char *text, size_t room)
{
    char line[64];
    size_t n = strnlen(text, room);
    if (n == room || n >= sizeof(line))
        return false;
    memcpy(line, text, n + 1);
    oct_utf8_make_line(line);
    return strcmp(line, text) == 0;
}

/* ---- writing ---- */

static uint64_t n_values(const struct oct_image_frame *f)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < f->form->rank; i++)
        n *= f->dims[i];
    return n;
}

static uint32_t n_columns(const struct oct_image_frame *f)
{
    return f->dims[f->form->rank - 1];
}

static void write_dataset(struct oct_json_text *t, const char *name)
{
    char dataset[sizeof(DATASETS) + OCT_IMAGE_NAME_BYTES] = DATASETS;
    strncat(dataset, name, OCT_IMAGE_NAME_BYTES);
    oct_json_member_string(t, "dataset", dataset);
}

static void write_shape(struct oct_json_text *t, const struct oct_image_frame *f)
{
    oct_json_key(t, "shape");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < f->form->rank; i++) {
        oct_json_separate(t);
        oct_json_raw(t, "\"");
        oct_json_u64(t, f->dims[i]);
        oct_json_raw(t, "\"");
    }
    oct_json_raw(t, "]");
}

static void write_axes(struct oct_json_text *t, const struct oct_image_form *form)
{
    oct_json_key(t, "axes");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < form->rank; i++) {
        oct_json_separate(t);
        oct_json_string(t, form->axes[i]);
    }
    oct_json_raw(t, "]");
    oct_json_key(t, "spacing_um");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < form->rank; i++) {
        oct_json_separate(t);
        oct_json_double(t, form->spacing_um[i] > 0 ? form->spacing_um[i] : NAN);
    }
    oct_json_raw(t, "]");
}

static void write_labels(struct oct_json_text *t, const struct oct_image_frame *f)
{
    oct_json_key(t, "labels");
    oct_json_raw(t, "[");
    for (uint32_t i = 0; i < n_columns(f); i++) {
        oct_json_separate(t);
        oct_json_string(t, f->form->labels[i]);
    }
    oct_json_raw(t, "]");
}

static void write_values(struct oct_json_text *t, const struct oct_image_frame *f)
{
    const float *row = f->pixels;
    oct_json_key(t, "values");
    oct_json_raw(t, "{");
    for (uint32_t i = 0; i < n_columns(f); i++)
        oct_json_member_double(t, f->form->labels[i], (double)row[i]);
    oct_json_raw(t, "}");
}

static void write_numbers(struct oct_json_text *t, const struct oct_image_frame *f)
{
    const double *value = f->numbers;
    for (unsigned i = 0; i < f->form->n_numbers; i++) {
        const struct oct_image_number *number = &f->form->numbers[i];
        oct_json_key(t, number->name);
        if (number->n_values == 1) {
            oct_json_double(t, *value++);
            continue;
        }
        oct_json_raw(t, "[");
        for (unsigned k = 0; k < number->n_values; k++) {
            oct_json_separate(t);
            oct_json_double(t, *value++);
        }
        oct_json_raw(t, "]");
    }
}

static void write_word(struct oct_json_text *t, const char *const *words, float number)
{
    for (unsigned i = 0; words[i]; i++)
        if (fabsf(number - (float)i) < 0.5f) {
            oct_json_string(t, words[i]);
            return;
        }
    oct_json_raw(t, "null");
}

static void write_row(struct oct_json_text *t, const struct oct_image_form *form, const float *row)
{
    const struct oct_image_objects *o = form->objects;
    oct_json_separate(t);
    oct_json_raw(t, "{");
    for (uint32_t i = 0; i < form->dims[1]; i++) {
        const char *const *words = o->words ? o->words[i] : NULL;
        oct_json_key(t, o->keys[i]);
        if (words)
            write_word(t, words, row[i]);
        else
            oct_json_float(t, row[i]);
    }
    oct_json_raw(t, "}");
}

static void write_objects(struct oct_json_text *t, const struct oct_image_frame *f)
{
    const struct oct_image_form *form = f->form;
    const float *row = f->pixels;
    oct_json_key(t, form->objects->name);
    oct_json_raw(t, "[");
    for (uint32_t i = 0; i < f->dims[0]; i++, row += form->dims[1])
        write_row(t, form, row);
    oct_json_raw(t, "]");
}

static bool has_names_of_its_own(const struct oct_image_form *form)
{
    if (form->objects && is_known(form->objects->name))
        return false;
    for (unsigned i = 0; i < form->n_numbers; i++)
        if (is_known(form->numbers[i].name) ||
            (form->objects && strcmp(form->numbers[i].name, form->objects->name) == 0))
            return false;
    return true;
}

static void write_header(struct oct_json_text *t, const struct oct_image_frame *f,
                         const char *acquisition_id)
{
    const struct oct_image_form *form = f->form;
    oct_json_raw(t, "{");
    oct_json_member_u64(t, "frame_num", f->info.number);
    oct_json_member_string(t, "acquisition_id", acquisition_id);
    oct_json_member_string(t, "dtype", form->type == OCT_SAMPLE_F32 ? "float" : "uint8");
    oct_json_member_u64(t, "dsize", n_values(f) * value_bytes_of(form->type));
    write_dataset(t, form->name);
    oct_json_member_string(t, "compression", "none");
    write_shape(t, f);
    oct_json_member_u64(t, "time_ns", f->info.time_ns);
    oct_json_member_u64(t, "missing_lines", f->info.missing_lines);
    oct_json_member_double(t, "lo", f->lo);
    oct_json_member_double(t, "hi", f->hi);
    oct_json_member_u64(t, "volume", f->info.volume);
    oct_json_member_u64(t, "bscan", f->info.bscan);
    oct_json_member_string(t, "quantity", oct_quantity_name(form->quantity));
    oct_json_member_string(t, "unit", oct_quantity_unit(form->quantity));
    write_axes(t, form);
    oct_json_key(t, "whole");
    oct_json_raw(t, f->whole ? "true" : "false");
    if (form->labels) {
        write_labels(t, f);
        if (form->type == OCT_SAMPLE_F32 && n_values(f) == n_columns(f))
            write_values(t, f);
    }
    write_numbers(t, f);
    if (form->objects)
        write_objects(t, f);
    oct_json_raw(t, "}");
}

static bool has_lines_as_labels(const struct oct_image_frame *f)
{
    for (uint32_t i = 0; f->form->labels && i < n_columns(f); i++)
        if (!is_line(f->form->labels[i], OCT_IMAGE_LABEL_BYTES))
            return false;
    return true;
}

size_t oct_image_header_encode(const struct oct_image_frame *frame, const char *acquisition_id,
                               char *json, size_t json_bytes)
{
    struct oct_json_text t;
    oct_json_begin(&t, json, json_bytes);
    if (isfinite(frame->lo) && isfinite(frame->hi) && has_lines_as_labels(frame) &&
        has_names_of_its_own(frame->form))
        write_header(&t, frame, acquisition_id);
    return oct_json_end(&t);
}

/* ---- reading ---- */

/* Copies a text that is one line and fits. */
static enum oct_err copy_line(const struct oct_json_fields *from, const char *key, const char *text,
                              char *copy, size_t room)
{
    if (!is_line(text, room))
        return oct_fail(from->err, OCT_E_FORMAT,
                        "%s: %s: must be one line of UTF-8 of less than %zu bytes", from->what, key,
                        room);
    memcpy(copy, text, strlen(text) + 1);
    return OCT_OK;
}

static enum oct_err get_line(const struct oct_json_fields *from, const char *key, char *copy,
                             size_t room)
{
    const char *text;
    enum oct_err code = oct_json_get_string(from, key, &text);
    return code ? code : copy_line(from, key, text, copy, room);
}

static const cJSON *optional(const struct oct_json_fields *from, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(from->object, key);
}

static enum oct_err get_type(const struct oct_json_fields *from, struct oct_image_header *h)
{
    const char *dtype, *compression;
    enum oct_err code;
    if ((code = oct_json_get_string(from, "dtype", &dtype)) ||
        (code = oct_json_get_string(from, "compression", &compression)))
        return code;
    if (strcmp(dtype, "uint8") == 0)
        h->type = OCT_SAMPLE_U8;
    else if (strcmp(dtype, "float") == 0)
        h->type = OCT_SAMPLE_F32;
    else
        return oct_json_wrong(from, "dtype", "\"uint8\" or \"float\"");
    if (strcmp(compression, "none") != 0)
        return oct_json_wrong(from, "compression", "\"none\"");
    return OCT_OK;
}

/* Each partial product is bounded, so none overflows; where an extent is 0 the others count. */
static enum oct_err get_shape(const struct oct_json_fields *from, struct oct_image_header *h,
                              uint64_t *n)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(from->object, "shape");
    int rank = cJSON_IsArray(shape) ? cJSON_GetArraySize(shape) : 0;
    uint64_t n_most = 1;
    *n = 1;
    if (rank < 1 || rank > (int)OCT_IMAGE_MAX_RANK)
        return oct_json_wrong(from, "shape", "one to three strings of digits");
    h->rank = (unsigned)rank;
    for (unsigned i = 0; i < h->rank; i++) {
        int64_t extent = oct_json_extent(cJSON_GetArrayItem(shape, (int)i));
        if (extent < (i > 0))
            return oct_json_wrong(from, "shape", "strings of digits; only the first may be \"0\"");
        h->dims[i] = (uint32_t)extent;
        *n *= h->dims[i];
        n_most *= h->dims[i] ? h->dims[i] : 1;
        if (n_most > OCT_MAX_BSCAN_SAMPLES)
            return oct_fail(from->err, OCT_E_FORMAT, "%s: shape: more than %u values", from->what,
                            OCT_MAX_BSCAN_SAMPLES);
    }
    return OCT_OK;
}

/* What the values are, against their size. */
static enum oct_err get_image(const struct oct_json_fields *from, struct oct_image_header *h,
                              size_t value_bytes)
{
    enum oct_err code;
    uint64_t dsize, n = 0;
    if ((code = get_type(from, h)) || (code = get_shape(from, h, &n)) ||
        (code = oct_json_get_count(from, "dsize", UINT64_MAX, &dsize)))
        return code;
    uint64_t expected = n * value_bytes_of(h->type);
    if (dsize != expected)
        return oct_fail(from->err, OCT_E_FORMAT,
                        "%s: dsize: is %" PRIu64 ", but shape and dtype make %" PRIu64 " bytes",
                        from->what, dsize, expected);
    if (value_bytes != expected)
        return oct_fail(from->err, OCT_E_FORMAT,
                        "%s: there are %zu bytes of values, dsize says %" PRIu64, from->what,
                        value_bytes, expected);
    return OCT_OK;
}

static enum oct_err get_spacing(const struct oct_json_fields *from, struct oct_image_header *h)
{
    const cJSON *spacing = optional(from, "spacing_um");
    for (unsigned i = 0; i < OCT_IMAGE_MAX_RANK; i++)
        h->spacing_um[i] = NAN;
    if (!spacing)
        return OCT_OK;
    if (!cJSON_IsArray(spacing) || cJSON_GetArraySize(spacing) != (int)h->rank)
        return oct_json_wrong(from, "spacing_um", "an array with a number or null for each axis");
    for (unsigned i = 0; i < h->rank; i++) {
        const cJSON *item = cJSON_GetArrayItem(spacing, (int)i);
        if (cJSON_IsNull(item))
            continue;
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble) || !(item->valuedouble > 0))
            return oct_json_wrong(from, "spacing_um", "null or numbers above 0");
        h->spacing_um[i] = item->valuedouble;
    }
    return OCT_OK;
}

static enum oct_err get_labels(const struct oct_json_fields *from, struct oct_image_header *h)
{
    const cJSON *labels = optional(from, "labels");
    uint32_t n = h->dims[h->rank - 1];
    enum oct_err code = OCT_OK;
    if (!labels)
        return OCT_OK;
    if (!cJSON_IsArray(labels) || n > OCT_IMAGE_MAX_LABELS || cJSON_GetArraySize(labels) != (int)n)
        return oct_json_wrong(from, "labels", "an array of strings, one for each column");
    for (uint32_t i = 0; i < n && !code; i++) {
        const char *label = cJSON_GetStringValue(cJSON_GetArrayItem(labels, (int)i));
        if (!label)
            return oct_json_wrong(from, "labels", "strings");
        code = copy_line(from, "labels", label, h->labels[i], OCT_IMAGE_LABEL_BYTES);
    }
    h->n_labels = n;
    return code;
}

static bool add_value(struct oct_image_header_number *number, const cJSON *item)
{
    if (number->n_values == OCT_IMAGE_MAX_NUMBERS || !(cJSON_IsNumber(item) || cJSON_IsNull(item)))
        return false;
    bool is_finite = cJSON_IsNumber(item) && isfinite(item->valuedouble);
    number->values[number->n_values++] = is_finite ? item->valuedouble : NAN;
    return true;
}

/* False: the member holds anything but numbers. */
static bool get_one_number(const cJSON *member, struct oct_image_header_number *number)
{
    const cJSON *item;
    *number = (struct oct_image_header_number){.n_values = 0};
    if (is_known(member->string) || !is_line(member->string, sizeof(number->name)))
        return false;
    memcpy(number->name, member->string, strlen(member->string) + 1);
    if (!cJSON_IsArray(member))
        return add_value(number, member);
    cJSON_ArrayForEach(item, member)
    {
        if (!add_value(number, item))
            return false;
    }
    return number->n_values > 0;
}

/* Further members are anybody's: those that are no numbers are passed over. */
static void get_numbers(const struct oct_json_fields *from, struct oct_image_header *h)
{
    const cJSON *member;
    struct oct_image_header_number number;
    cJSON_ArrayForEach(member, from->object)
    {
        if (h->n_numbers < OCT_IMAGE_MAX_NUMBERS && get_one_number(member, &number))
            h->numbers[h->n_numbers++] = number;
    }
}

static enum oct_err get_extras(const struct oct_json_fields *from, struct oct_image_header *h)
{
    const cJSON *whole = optional(from, "whole");
    enum oct_err code = OCT_OK;
    if (whole && !cJSON_IsBool(whole))
        return oct_json_wrong(from, "whole", "true or false");
    h->whole = !whole || cJSON_IsTrue(whole);
    if (optional(from, "unit"))
        code = get_line(from, "unit", h->unit, sizeof(h->unit));
    if (code || (code = get_spacing(from, h)))
        return code;
    get_numbers(from, h);
    return get_labels(from, h);
}

static enum oct_err get_header(const struct oct_json_fields *from, struct oct_image_header *h,
                               size_t value_bytes)
{
    enum oct_err code;
    uint64_t missing, bscan;
    if ((code = get_image(from, h, value_bytes)) ||
        (code = get_line(from, "dataset", h->dataset, sizeof(h->dataset))) ||
        (code = get_line(from, "acquisition_id", h->acquisition_id, sizeof(h->acquisition_id))) ||
        (code = oct_json_get_count(from, "frame_num", UINT64_MAX, &h->frame_num)) ||
        (code = oct_json_get_count(from, "time_ns", UINT64_MAX, &h->time_ns)) ||
        (code = oct_json_get_count(from, "missing_lines", UINT32_MAX, &missing)) ||
        (code = oct_json_get_number(from, "lo", &h->lo)) ||
        (code = oct_json_get_number(from, "hi", &h->hi)) ||
        (code = oct_json_get_count(from, "volume", UINT64_MAX, &h->volume)) ||
        (code = oct_json_get_count(from, "bscan", OCT_MAX_BSCANS - 1, &bscan)))
        return code;
    h->missing_lines = (uint32_t)missing;
    h->bscan = (uint32_t)bscan;
    return get_extras(from, h);
}

enum oct_err oct_image_header_decode(struct oct_image_header *header, const char *json,
                                     size_t json_bytes, size_t value_bytes, struct oct_error *err)
{
    *header = (struct oct_image_header){0};
    if (json_bytes > MOST_JSON_BYTES)
        return oct_fail(err, OCT_E_FORMAT, "image header: %zu bytes, more than %d", json_bytes,
                        MOST_JSON_BYTES);
    cJSON *object = cJSON_ParseWithLength(json, json_bytes);
    const struct oct_json_fields from = {.object = object, .what = "image header", .err = err};
    enum oct_err code = cJSON_IsObject(object)
                            ? get_header(&from, header, value_bytes)
                            : oct_fail(err, OCT_E_FORMAT, "image header: not a JSON object");
    if (code)
        *header = (struct oct_image_header){0};
    cJSON_Delete(object);
    return code;
}

double oct_image_header_value(const struct oct_image_header *header, const float *row,
                              const char *label)
{
    for (unsigned i = 0; i < header->n_labels; i++)
        if (strcmp(header->labels[i], label) == 0)
            return (double)row[i];
    return NAN;
}

double oct_image_header_number(const struct oct_image_header *header, const char *name, unsigned i)
{
    for (unsigned k = 0; k < header->n_numbers; k++)
        if (strcmp(header->numbers[k].name, name) == 0)
            return i < header->numbers[k].n_values ? header->numbers[k].values[i] : NAN;
    return NAN;
}
