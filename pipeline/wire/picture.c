/* B-scans out: the JSON header between topic and image (contract section 5). The keys are those of
 * odin-data's live view, so that its clients can read the stream, and a few of ours. */
#include "pipeline/wire/wire.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DATASET "bscans"
#define MOST_JSON_BYTES (4 * OCT_PICTURE_HEADER_BYTES) /* bounds the work on a hostile header */
#define TWO_TO_64 18446744073709551616.0

static size_t pixel_bytes(enum oct_sample_type type)
{
    return type == OCT_SAMPLE_F32 ? sizeof(float) : 1;
}

/* ---- writing ---- */

/* cJSON's numbers are doubles; raw text keeps all 64 bits of an integer. */
static bool add_u64(cJSON *object, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    return cJSON_AddRawToObject(object, key, digits) != NULL;
}

static bool add_shape(cJSON *object, uint32_t n_lines, uint32_t depth)
{
    char digits[2][12];
    snprintf(digits[0], sizeof(digits[0]), "%" PRIu32, n_lines);
    snprintf(digits[1], sizeof(digits[1]), "%" PRIu32, depth);
    const char *texts[2] = {digits[0], digits[1]};
    cJSON *shape = cJSON_CreateStringArray(texts, 2);
    if (shape && cJSON_AddItemToObject(object, "shape", shape))
        return true;
    cJSON_Delete(shape);
    return false;
}

static bool fill_json(cJSON *o, const struct oct_picture_header *h)
{
    const char *dtype = h->sample_type == OCT_SAMPLE_F32 ? "float" : "uint8";
    uint64_t n_bytes = (uint64_t)h->n_lines * h->depth * pixel_bytes(h->sample_type);
    return add_u64(o, "frame_num", h->frame_num) &&
           cJSON_AddStringToObject(o, "acquisition_id", h->acquisition_id) &&
           cJSON_AddStringToObject(o, "dtype", dtype) && add_u64(o, "dsize", n_bytes) &&
           cJSON_AddStringToObject(o, "dataset", DATASET) &&
           cJSON_AddStringToObject(o, "compression", "none") &&
           add_shape(o, h->n_lines, h->depth) && add_u64(o, "time_ns", h->time_ns) &&
           add_u64(o, "missing_lines", h->missing_lines) &&
           cJSON_AddNumberToObject(o, "lo", h->lo) && cJSON_AddNumberToObject(o, "hi", h->hi) &&
           add_u64(o, "volume", h->volume) && add_u64(o, "bscan", h->bscan);
}

size_t oct_picture_encode(const struct oct_picture_header *header, char *json, size_t json_bytes)
{
    if (json_bytes == 0)
        return 0;
    json[0] = '\0';
    if (!isfinite(header->lo) || !isfinite(header->hi))
        return 0;
    cJSON *object = cJSON_CreateObject();
    int room = json_bytes > INT_MAX ? INT_MAX : (int)json_bytes;
    bool written =
        object && fill_json(object, header) && cJSON_PrintPreallocated(object, json, room, false);
    cJSON_Delete(object);
    if (!written)
        json[0] = '\0';
    return strlen(json);
}

/* ---- reading ---- */

static enum oct_err wrong(struct oct_error *err, const char *key, const char *should_be)
{
    return oct_fail(err, OCT_E_FORMAT, "picture header: %s: must be %s", key, should_be);
}

static enum oct_err get_number(const cJSON *object, const char *key, double *value,
                               struct oct_error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    *value = 0;
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        return wrong(err, key, "a number");
    *value = item->valuedouble;
    return OCT_OK;
}

/* A whole number 0..most. */
static enum oct_err get_count(const cJSON *object, const char *key, uint64_t most, uint64_t *value,
                              struct oct_error *err)
{
    double number;
    *value = 0;
    enum oct_err code = get_number(object, key, &number, err);
    if (code)
        return code;
    /* The second comparison keeps the conversion defined: (double)most may round up to 2^64. */
    if (!(number >= 0 && number < TWO_TO_64) || number != floor(number) || (uint64_t)number > most)
        return oct_fail(err, OCT_E_FORMAT,
                        "picture header: %s: must be a whole number from 0 to %" PRIu64, key, most);
    *value = (uint64_t)number;
    return OCT_OK;
}

static enum oct_err get_string(const cJSON *object, const char *key, const char **text,
                               struct oct_error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    *text = "";
    if (!cJSON_IsString(item) || !item->valuestring)
        return wrong(err, key, "a string");
    *text = item->valuestring;
    return OCT_OK;
}

/* 1 to 10 digits, nothing else, 1 .. OCT_MAX_BSCAN_SAMPLES; 0 for anything else. */
static uint32_t read_extent(const cJSON *item)
{
    if (!cJSON_IsString(item) || !item->valuestring)
        return 0;
    uint64_t value = 0;
    const char *c = item->valuestring;
    for (; *c >= '0' && *c <= '9' && value <= OCT_MAX_BSCAN_SAMPLES; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    return *c == '\0' && value <= OCT_MAX_BSCAN_SAMPLES ? (uint32_t)value : 0;
}

static enum oct_err get_shape(const cJSON *object, struct oct_picture_header *h,
                              struct oct_error *err)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(object, "shape");
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) != 2)
        return wrong(err, "shape", "[\"M\",\"D\"]");
    h->n_lines = read_extent(cJSON_GetArrayItem(shape, 0));
    h->depth = read_extent(cJSON_GetArrayItem(shape, 1));
    if (h->n_lines == 0 || h->depth == 0)
        return wrong(err, "shape", "two strings of digits, both at least 1");
    if ((uint64_t)h->n_lines * h->depth > OCT_MAX_BSCAN_SAMPLES)
        return oct_fail(err, OCT_E_FORMAT,
                        "picture header: shape: %" PRIu32 " x %" PRIu32 " pixels are more than %u",
                        h->n_lines, h->depth, OCT_MAX_BSCAN_SAMPLES);
    return OCT_OK;
}

/* What the image part is: dtype, dsize, dataset, compression, shape, against its size. */
static enum oct_err get_image(const cJSON *object, struct oct_picture_header *h, size_t image_bytes,
                              struct oct_error *err)
{
    enum oct_err code;
    const char *dtype, *dataset, *compression;
    uint64_t dsize;
    if ((code = get_string(object, "dtype", &dtype, err)) ||
        (code = get_string(object, "dataset", &dataset, err)) ||
        (code = get_string(object, "compression", &compression, err)) ||
        (code = get_count(object, "dsize", UINT64_MAX, &dsize, err)) ||
        (code = get_shape(object, h, err)))
        return code;
    if (strcmp(dtype, "uint8") == 0)
        h->sample_type = OCT_SAMPLE_U8;
    else if (strcmp(dtype, "float") == 0)
        h->sample_type = OCT_SAMPLE_F32;
    else
        return wrong(err, "dtype", "\"uint8\" or \"float\"");
    if (strcmp(dataset, DATASET) != 0)
        return wrong(err, "dataset", "\"" DATASET "\"");
    if (strcmp(compression, "none") != 0)
        return wrong(err, "compression", "\"none\"");
    uint64_t expected = (uint64_t)h->n_lines * h->depth * pixel_bytes(h->sample_type);
    if (dsize != expected)
        return oct_fail(err, OCT_E_FORMAT,
                        "picture header: dsize: is %" PRIu64 ", but shape and dtype make %" PRIu64
                        " bytes",
                        dsize, expected);
    if (image_bytes != expected)
        return oct_fail(err, OCT_E_FORMAT,
                        "picture: the image part has %zu bytes, its header says %" PRIu64,
                        image_bytes, expected);
    return OCT_OK;
}

static enum oct_err get_header(const cJSON *object, struct oct_picture_header *h,
                               size_t image_bytes, struct oct_error *err)
{
    enum oct_err code;
    const char *id;
    uint64_t missing, bscan;
    if ((code = get_image(object, h, image_bytes, err)) ||
        (code = get_string(object, "acquisition_id", &id, err)) ||
        (code = get_count(object, "frame_num", UINT64_MAX, &h->frame_num, err)) ||
        (code = get_count(object, "time_ns", UINT64_MAX, &h->time_ns, err)) ||
        (code = get_count(object, "missing_lines", h->n_lines, &missing, err)) ||
        (code = get_number(object, "lo", &h->lo, err)) ||
        (code = get_number(object, "hi", &h->hi, err)) ||
        (code = get_count(object, "volume", UINT64_MAX, &h->volume, err)) ||
        (code = get_count(object, "bscan", OCT_MAX_BSCANS - 1, &bscan, err)))
        return code;
    if (strlen(id) >= sizeof(h->acquisition_id))
        return wrong(err, "acquisition_id", "less than 64 bytes long");
    memcpy(h->acquisition_id, id, strlen(id) + 1);
    h->missing_lines = (uint32_t)missing;
    h->bscan = (uint32_t)bscan;
    return OCT_OK;
}

enum oct_err oct_picture_decode(struct oct_picture_header *header, const char *json,
                                size_t json_bytes, size_t image_bytes, struct oct_error *err)
{
    *header = (struct oct_picture_header){0};
    if (json_bytes > MOST_JSON_BYTES)
        return oct_fail(err, OCT_E_FORMAT, "picture header: %zu bytes, more than %d", json_bytes,
                        MOST_JSON_BYTES);
    cJSON *object = cJSON_ParseWithLength(json, json_bytes);
    enum oct_err code = cJSON_IsObject(object)
                            ? get_header(object, header, image_bytes, err)
                            : oct_fail(err, OCT_E_FORMAT, "picture header: not a JSON object");
    cJSON_Delete(object);
    return code;
}
