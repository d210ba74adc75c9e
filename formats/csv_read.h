/* Tables of comma-separated values of others (RFC 4180), row by row: cells in quotes, quotes
 * doubled within them, line ends of either kind, a byte order mark before the first cell. Blank
 * lines are passed over. The text is not trusted: a row has at most OCT_CSV_MOST_BYTES and
 * OCT_CSV_MOST_CELLS.
 *
 *     open -> { next } -> close
 *
 * One thread uses a reader at a time. */
#ifndef OCT_FORMATS_CSV_READ_H
#define OCT_FORMATS_CSV_READ_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_CSV_MOST_BYTES (1u << 20)
#define OCT_CSV_MOST_CELLS 4096u

struct oct_csv_reader;

/* OCT_E_IO: there is no such file, or it is a folder. *reader is NULL on error. */
enum oct_err oct_csv_open(struct oct_csv_reader **reader, const char *path, struct oct_error *err);
void oct_csv_close(struct oct_csv_reader *reader); /* NULL is fine */

/* The next row: (*cells)[0 .. *n - 1], texts without their quotes, valid until the next call. *n 0:
 * there is none any more. OCT_E_FORMAT: no such table, with the line. OCT_E_IO, OCT_E_NO_MEMORY. */
enum oct_err oct_csv_next(struct oct_csv_reader *reader, const char *const **cells, unsigned *n,
                          struct oct_error *err);

/* Fills err with "PATH, line N: " and the text, printf-like, and returns OCT_E_FORMAT; N is the
 * line in which the row of the last oct_csv_next began. */
enum oct_err oct_csv_refuse(const struct oct_csv_reader *reader, struct oct_error *err,
                            const char *format, ...) __attribute__((format(printf, 3, 4)));

/* That line, from 1. */
uint64_t oct_csv_line(const struct oct_csv_reader *reader);

/* A finite decimal number, with or without blanks about it; false: it is none. */
bool oct_csv_to_number(const char *text, double *value);

#endif
