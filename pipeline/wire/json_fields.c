#include "pipeline/wire/json_fields.h"

#include "pipeline/plan/geometry.h"

#include <inttypes.h>
#include <math.h>

#define TWO_TO_64 18446744073709551616.0

enum oct_err oct_json_wrong(const struct oct_json_fields *from, const char *key,
                            const char *should_be)
{
    return oct_fail(from->err, OCT_E_FORMAT, "%s: %s: must be %s", from->what, key, should_be);
}

enum oct_err oct_json_get_number(const struct oct_json_fields *from, const char *key, double *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from->object, key);
    *value = 0;
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        return oct_json_wrong(from, key, "a number");
    *value = item->valuedouble;
    return OCT_OK;
}

enum oct_err oct_json_get_count(const struct oct_json_fields *from, const char *key, uint64_t most,
                                uint64_t *value)
{
    double number;
    *value = 0;
    enum oct_err code = oct_json_get_number(from, key, &number);
    if (code)
        return code;
    /* The second comparison keeps the conversion defined: (double)most may round up to 2^64. */
    if (!(number >= 0 && number < TWO_TO_64) || number != floor(number) || (uint64_t)number > most)
        return oct_fail(from->err, OCT_E_FORMAT,
                        "%s: %s: must be a whole number from 0 to %" PRIu64, from->what, key, most);
    *value = (uint64_t)number;
    return OCT_OK;
}

enum oct_err oct_json_get_string(const struct oct_json_fields *from, const char *key,
                                 const char **text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from->object, key);
    *text = "";
    if (!cJSON_IsString(item) || !item->valuestring)
        return oct_json_wrong(from, key, "a string");
    *text = item->valuestring;
    return OCT_OK;
}

int64_t oct_json_extent(const cJSON *item)
{
    if (!cJSON_IsString(item) || !item->valuestring || !item->valuestring[0])
        return -1;
    int64_t value = 0;
    const char *c = item->valuestring;
    for (; *c >= '0' && *c <= '9' && value <= OCT_MAX_BSCAN_SAMPLES; c++)
        value = value * 10 + (*c - '0');
    return *c == '\0' && value <= OCT_MAX_BSCAN_SAMPLES ? value : -1;
}
