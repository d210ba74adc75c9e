/* A table as comma-separated values: a header, then a line a row. Numbers have a decimal point
 * whatever the locale; NaN is an empty cell. The file has its name only when it is whole
 * (whole_file.h).
 *
 * After the first failure every call does nothing, and oct_csv_publish says what it was. One
 * thread. */
#ifndef OCT_FORMATS_CSV_H
#define OCT_FORMATS_CSV_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_csv;

/* header: "frame,time_s,...". *csv is NULL on error; errors as those of oct_whole_file_init. */
enum oct_err oct_csv_create(struct oct_csv **csv, const char *path, bool force, const char *header,
                            struct oct_error *err);

/* The next cell of the row. */
void oct_csv_number(struct oct_csv *csv, double value); /* 9 digits */
void oct_csv_count(struct oct_csv *csv, uint64_t value);
void oct_csv_text(struct oct_csv *csv, const char *text); /* in quotes where it needs them */
void oct_csv_end_row(struct oct_csv *csv);

/* Frees csv in any case; on error there is no file. NULL is fine. */
enum oct_err oct_csv_publish(struct oct_csv *csv, struct oct_error *err);
void oct_csv_discard(struct oct_csv *csv); /* NULL is fine */

#endif
