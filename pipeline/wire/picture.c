/* B-scans out: the JSON header between topic and image (contract section 5). The keys are those of
 * odin-data's live view, so that its clients can read the stream, and a few of ours. */
#include "pipeline/base/json_text.h"
#include "pipeline/wire/json_fields.h"
#include "pipeline/wire/wire.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DATASET "bscans"
#define MOST_JSON_BYTES (4 * OCT_PICTURE_HEADER_BYTES) /* bounds the work on a hostile header */

static size_t pixel_bytes(enum oct_sample_type type)
{
    return type == OCT_SAMPLE_F32 ? sizeof(float) : 1;
}

/* ---- writing ---- */

static void write_shape(struct oct_json_text *t, uint32_t n_lines, uint32_t depth)
{
    oct_json_key(t, "shape");
    oct_json_raw(t, "[\"");
    oct_json_u64(t, n_lines);
    oct_json_raw(t, "\",\"");
    oct_json_u64(t, depth);
    oct_json_raw(t, "\"]");
}

size_t oct_picture_encode(const struct oct_picture_header *header, char *json, size_t json_bytes)
{
    const struct oct_picture_header *h = header;
    struct oct_json_text t;
    oct_json_begin(&t, json, json_bytes);
    if (isfinite(h->lo) && isfinite(h->hi)) {
        oct_json_raw(&t, "{");
        oct_json_member_u64(&t, "frame_num", h->frame_num);
        oct_json_member_string(&t, "acquisition_id", h->acquisition_id);
        oct_json_member_string(&t, "dtype", h->sample_type == OCT_SAMPLE_F32 ? "float" : "uint8");
        oct_json_member_u64(&t, "dsize",
                            (uint64_t)h->n_lines * h->depth * pixel_bytes(h->sample_type));
        oct_json_member_string(&t, "dataset", DATASET);
        oct_json_member_string(&t, "compression", "none");
        write_shape(&t, h->n_lines, h->depth);
        oct_json_member_u64(&t, "time_ns", h->time_ns);
        oct_json_member_u64(&t, "missing_lines", h->missing_lines);
        oct_json_member_double(&t, "lo", h->lo);
        oct_json_member_double(&t, "hi", h->hi);
        oct_json_member_u64(&t, "volume", h->volume);
        oct_json_member_u64(&t, "bscan", h->bscan);
        oct_json_raw(&t, "}");
    }
    return oct_json_end(&t);
}

/* ---- reading ---- */

static enum oct_err get_shape(const struct oct_json_fields *from, struct oct_picture_header *h)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(from->object, "shape");
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) != 2)
        return oct_json_wrong(from, "shape", "[\"M\",\"D\"]");
    int64_t n_lines = oct_json_extent(cJSON_GetArrayItem(shape, 0));
    int64_t depth = oct_json_extent(cJSON_GetArrayItem(shape, 1));
    if (n_lines < 1 || depth < 1)
        return oct_json_wrong(from, "shape", "two strings of digits, both at least 1");
    if (n_lines * depth > OCT_MAX_BSCAN_SAMPLES)
        return oct_fail(from->err, OCT_E_FORMAT,
                        "picture header: shape: %" PRId64 " x %" PRId64 " pixels are more than %u",
                        n_lines, depth, OCT_MAX_BSCAN_SAMPLES);
    h->n_lines = (uint32_t)n_lines;
    h->depth = (uint32_t)depth;
    return OCT_OK;
}

/* What the image part is: dtype, dsize, dataset, compression, shape, against its size. */
static enum oct_err get_image(const struct oct_json_fields *from, struct oct_picture_header *h,
                              size_t image_bytes)
{
    enum oct_err code;
    const char *dtype, *dataset, *compression;
    uint64_t dsize;
    if ((code = oct_json_get_string(from, "dtype", &dtype)) ||
        (code = oct_json_get_string(from, "dataset", &dataset)) ||
        (code = oct_json_get_string(from, "compression", &compression)) ||
        (code = oct_json_get_count(from, "dsize", UINT64_MAX, &dsize)) ||
        (code = get_shape(from, h)))
        return code;
    if (strcmp(dtype, "uint8") == 0)
        h->sample_type = OCT_SAMPLE_U8;
    else if (strcmp(dtype, "float") == 0)
        h->sample_type = OCT_SAMPLE_F32;
    else
        return oct_json_wrong(from, "dtype", "\"uint8\" or \"float\"");
    if (strcmp(dataset, DATASET) != 0)
        return oct_json_wrong(from, "dataset", "\"" DATASET "\"");
    if (strcmp(compression, "none") != 0)
        return oct_json_wrong(from, "compression", "\"none\"");
    uint64_t expected = (uint64_t)h->n_lines * h->depth * pixel_bytes(h->sample_type);
    if (dsize != expected)
        return oct_fail(from->err, OCT_E_FORMAT,
                        "picture header: dsize: is %" PRIu64 ", but shape and dtype make %" PRIu64
                        " bytes",
                        dsize, expected);
    if (image_bytes != expected)
        return oct_fail(from->err, OCT_E_FORMAT,
                        "picture: the image part has %zu bytes, its header says %" PRIu64,
                        image_bytes, expected);
    return OCT_OK;
}

static enum oct_err get_header(const struct oct_json_fields *from, struct oct_picture_header *h,
                               size_t image_bytes)
{
    enum oct_err code;
    const char *id;
    uint64_t missing, bscan;
    if ((code = get_image(from, h, image_bytes)) ||
        (code = oct_json_get_string(from, "acquisition_id", &id)) ||
        (code = oct_json_get_count(from, "frame_num", UINT64_MAX, &h->frame_num)) ||
        (code = oct_json_get_count(from, "time_ns", UINT64_MAX, &h->time_ns)) ||
        (code = oct_json_get_count(from, "missing_lines", h->n_lines, &missing)) ||
        (code = oct_json_get_number(from, "lo", &h->lo)) ||
        (code = oct_json_get_number(from, "hi", &h->hi)) ||
        (code = oct_json_get_count(from, "volume", UINT64_MAX, &h->volume)) ||
        (code = oct_json_get_count(from, "bscan", OCT_MAX_BSCANS - 1, &bscan)))
        return code;
    if (strlen(id) >= sizeof(h->acquisition_id))
        return oct_json_wrong(from, "acquisition_id", "less than 64 bytes long");
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
    const struct oct_json_fields from = {.object = object, .what = "picture header", .err = err};
    enum oct_err code = cJSON_IsObject(object)
                            ? get_header(&from, header, image_bytes)
                            : oct_fail(err, OCT_E_FORMAT, "picture header: not a JSON object");
    cJSON_Delete(object);
    return code;
}
