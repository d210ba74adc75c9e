/* Results (analysis/result.h) as files: each writer reads a table of fields. */
#ifndef OCT_FORMATS_RESULT_FILES_H
#define OCT_FORMATS_RESULT_FILES_H

#include "analysis/result.h"
#include "pipeline/base/err.h"

struct cJSON;
struct oct_results;

/* Attributes of the file (object NULL), of a group or of a dataset: counts as integers, flags as
 * "yes" or "no". */
void oct_result_attributes(struct oct_results *results, const char *object,
                           const struct oct_result_fields *fields, const void *data);

/* A dataset GROUP/NAME a field, [n], with unit and meaning; a flag is 0 or 1, a word its number,
 * with all words in the meaning. No lists, no texts. */
void oct_result_datasets(struct oct_results *results, const char *group,
                         const struct oct_result_rows *rows);

/* A header, then a line a row. Not known: an empty cell. */
enum oct_err oct_result_csv(const char *path, bool force, const struct oct_result_rows *rows,
                            struct oct_error *err);

/* Members of the object. Not known: null. */
void oct_result_json(struct cJSON *object, const struct oct_result_fields *fields,
                     const void *data);

/* An array NAME of objects. */
void oct_result_json_rows(struct cJSON *object, const char *name,
                          const struct oct_result_rows *rows);

#endif
