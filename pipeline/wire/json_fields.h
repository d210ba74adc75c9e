/* Fields of a JSON object from outside, each checked. A field that is missing or wrong is named in
 * the error ("picture header: lo: must be a number") and costs OCT_E_FORMAT; then the value is 0,
 * empty. Of this room alone. */
#ifndef OCT_PIPELINE_WIRE_JSON_FIELDS_H
#define OCT_PIPELINE_WIRE_JSON_FIELDS_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

struct oct_json_fields {
    const cJSON *object;
    const char *what; /* "picture header" */
    struct oct_error *err;
};

enum oct_err oct_json_wrong(const struct oct_json_fields *from, const char *key,
                            const char *should_be);

/* A finite number. */
enum oct_err oct_json_get_number(const struct oct_json_fields *from, const char *key,
                                 double *value);

/* A whole number 0..most. Above 2^53 it is rounded to a double. */
enum oct_err oct_json_get_count(const struct oct_json_fields *from, const char *key, uint64_t most,
                                uint64_t *value);

/* The text belongs to the object. */
enum oct_err oct_json_get_string(const struct oct_json_fields *from, const char *key,
                                 const char **text);

/* Reads an extent of a shape: a string of digits, nothing else, 0 .. OCT_MAX_BSCAN_SAMPLES; -1 for
 * anything else. */
int64_t oct_json_extent(const cJSON *item);

#endif
