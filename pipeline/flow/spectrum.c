#include "pipeline/flow/spectrum.h"

#include "pipeline/plan/geometry.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_JSON_BYTES (4 * OCT_SPECTRUM_HEADER_BYTES)
#define EXACT 9007199254740992.0 /* 2^53: larger integers are not whole in a double */

size_t oct_spectrum_encode(const struct oct_spectrum_header *h, char *json, size_t json_bytes)
{
    int n = snprintf(json, json_bytes,
                     "{\"frame_num\":%" PRIu64 ",\"line\":%" PRIu32 ",\"dtype\":\"uint16\","
                     "\"shape\":[\"%" PRIu32 "\"],\"dsize\":%" PRIu64
                     ",\"dataset\":\"spectra\",\"compression\":\"none\",\"limit\":%" PRIu32
                     ",\"saturated\":%" PRIu64 "}",
                     h->frame_num, h->line, h->n_samples, (uint64_t)h->n_samples * 2, h->limit,
                     h->n_saturated);
    return n > 0 && (size_t)n < json_bytes ? (size_t)n : 0;
}

static bool whole(const cJSON *object, const char *key, double most, double *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > most ||
        item->valuedouble != (double)(uint64_t)item->valuedouble)
        return false;
    *value = item->valuedouble;
    return true;
}

static bool shape_of(const cJSON *object, double *n_samples)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(object, "shape");
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(shape, 0));
    char *end;

    if (!text || cJSON_GetArraySize(shape) != 1 || text[0] < '0' || text[0] > '9')
        return false;
    *n_samples = (double)strtoul(text, &end, 10);
    return *end == '\0' && *n_samples >= 1 && *n_samples <= OCT_MAX_SAMPLES;
}

static enum oct_err read_header(struct oct_spectrum_header *header, const cJSON *o,
                                size_t payload_bytes, struct oct_error *err)
{
    double frame_num, line, limit, n_saturated, n_samples;
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "dtype"));

    if (!whole(o, "frame_num", EXACT, &frame_num) || !whole(o, "line", OCT_MAX_LINES, &line) ||
        !whole(o, "limit", UINT16_MAX, &limit) || !whole(o, "saturated", EXACT, &n_saturated))
        return oct_fail(err, OCT_E_FORMAT, "spectrum: a count is missing or no whole number");
    if (!type || strcmp(type, "uint16") != 0)
        return oct_fail(err, OCT_E_FORMAT, "spectrum: dtype is not uint16");
    if (!shape_of(o, &n_samples) || (double)payload_bytes != 2 * n_samples)
        return oct_fail(err, OCT_E_FORMAT, "spectrum: %zu bytes do not fit its shape",
                        payload_bytes);
    *header = (struct oct_spectrum_header){
        .frame_num = (uint64_t)frame_num,
        .line = (uint32_t)line,
        .n_samples = (uint32_t)n_samples,
        .limit = (uint32_t)limit,
        .n_saturated = (uint64_t)n_saturated,
    };
    return OCT_OK;
}

enum oct_err oct_spectrum_decode(struct oct_spectrum_header *header, const char *json,
                                 size_t json_bytes, size_t payload_bytes, struct oct_error *err)
{
    cJSON *object = json_bytes <= MOST_JSON_BYTES ? cJSON_ParseWithLength(json, json_bytes) : NULL;
    enum oct_err code;

    if (cJSON_IsObject(object))
        code = read_header(header, object, payload_bytes, err);
    else
        code = oct_fail(err, OCT_E_FORMAT, "spectrum: the header is no JSON object");
    cJSON_Delete(object);
    return code;
}
