#include "pipeline/plan/calibration.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More rows than any camera has pixels: a wrong file, not a calibration. */
#define MAX_ROWS (1u << 22)
#define LINE_BYTES 256

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == ',' || *text == ';')
        text++;
    return text;
}

/* Parses exactly n_columns finite numbers; false when there is anything else on the line. */
static bool parse_row(const char *text, unsigned n_columns, double *row)
{
    for (unsigned c = 0; c < n_columns; c++) {
        char *end;
        text = skip_blanks(text);
        row[c] = strtod(text, &end);
        if (end == text || !isfinite(row[c]))
            return false;
        text = end;
    }
    return *skip_blanks(text) == '\0';
}

static bool grow(double **values, size_t *capacity, size_t n_columns)
{
    size_t more = *capacity ? *capacity * 2 : 4096;
    double *bigger = realloc(*values, more * n_columns * sizeof(double));
    if (!bigger)
        return false;
    *values = bigger;
    *capacity = more;
    return true;
}

/* Reads one line without its end (LF or CRLF). OCT_E_CLOSED: there is none. */
static enum oct_err read_line(FILE *file, char *line, size_t bytes, const char *path,
                              unsigned long number, struct oct_error *err)
{
    size_t length = 0;
    int c;
    while ((c = getc(file)) != EOF && c != '\n') {
        if (c == '\0')
            return oct_fail(err, OCT_E_CONFIG, "%s:%lu: holds a zero byte", path, number);
        if (length + 1 == bytes)
            return oct_fail(err, OCT_E_CONFIG,
                            "%s:%lu: longer than %zu characters: not a table of numbers", path,
                            number, bytes - 1);
        line[length++] = (char)c;
    }
    if (c == EOF && length == 0)
        return OCT_E_CLOSED;
    if (length && line[length - 1] == '\r')
        length--;
    line[length] = '\0';
    return OCT_OK;
}

static enum oct_err read_rows(FILE *file, const char *path, unsigned n_columns, double **values,
                              size_t *n_rows, struct oct_error *err)
{
    char line[LINE_BYTES] = "";
    size_t capacity = 0;

    for (unsigned long number = 1;; number++) {
        enum oct_err end = read_line(file, line, sizeof(line), path, number, err);
        if (end == OCT_E_CLOSED)
            break;
        if (end)
            return end;
        const char *text = skip_blanks(line);
        if (*text == '\0' || *text == '#')
            continue;
        if (*n_rows == MAX_ROWS)
            return oct_fail(err, OCT_E_CONFIG, "%s:%lu: more than %u values: not a calibration",
                            path, number, MAX_ROWS);
        if (*n_rows == capacity && !grow(values, &capacity, n_columns))
            return oct_fail(err, OCT_E_NO_MEMORY, "%s:%lu: out of memory", path, number);
        if (!parse_row(text, n_columns, *values + *n_rows * n_columns))
            return oct_fail(err, OCT_E_CONFIG, "%s:%lu: '%.40s' is not %s", path, number, text,
                            n_columns == 1 ? "one number" : "two numbers \"re im\"");
        (*n_rows)++;
    }
    if (ferror(file))
        return oct_fail_errno(err, OCT_E_CONFIG, errno, "%s: cannot be read", path);
    if (*n_rows == 0)
        return oct_fail(err, OCT_E_CONFIG, "%s: holds no numbers", path);
    return OCT_OK;
}

/* Opening a FIFO of that name must not block the thread that builds a session. */
static enum oct_err open_table(FILE **file, const char *path, struct oct_error *err)
{
    struct stat about;
    enum oct_err e = OCT_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *file = NULL;
    if (fd < 0 || fstat(fd, &about) != 0)
        e = oct_fail_errno(err, OCT_E_CONFIG, errno, "%s: cannot be opened", path);
    else if (!S_ISREG(about.st_mode))
        e = oct_fail(err, OCT_E_CONFIG, "%s: is not a file: give one with a table of numbers",
                     path);
    else if (!(*file = fdopen(fd, "r")))
        e = oct_fail_errno(err, OCT_E_NO_MEMORY, errno, "%s: cannot be opened", path);
    if (e && fd >= 0)
        close(fd);
    return e;
}

enum oct_err oct_calibration_read_table(const char *path, unsigned n_columns, double **values,
                                        size_t *n_rows, struct oct_error *err)
{
    *values = NULL;
    *n_rows = 0;
    FILE *file;
    enum oct_err e = open_table(&file, path, err);
    if (e)
        return e;
    e = read_rows(file, path, n_columns, values, n_rows, err);
    fclose(file);
    if (e) {
        free(*values);
        *values = NULL;
        *n_rows = 0;
    }
    return e;
}

double oct_calibration_theta(const struct oct_calibration *cal, double t)
{
    double theta = 0;
    for (int m = OCT_MAX_DISPERSION_ORDER; m >= 2; m--)
        theta = (theta + cal->coefficient[m]) * t;
    return theta * t;
}

void oct_calibration_finish(struct oct_calibration *cal)
{
    free(cal->wavelengths_nm);
    free(cal->kmap_px);
    free(cal->dispersion);
    free(cal->background);
    free(cal->positions_um);
    *cal = (struct oct_calibration){0};
}

/* Copies n values; an empty array copies to NULL. */
static bool copy_values(double **dst, size_t *n_dst, const double *src, size_t n, size_t columns)
{
    *dst = NULL;
    *n_dst = 0;
    if (n == 0)
        return true;
    *dst = malloc(n * columns * sizeof(double));
    if (!*dst)
        return false;
    memcpy(*dst, src, n * columns * sizeof(double));
    *n_dst = n;
    return true;
}

enum oct_err oct_calibration_copy(struct oct_calibration *dst, const struct oct_calibration *src)
{
    *dst = (struct oct_calibration){0};
    memcpy(dst->coefficient, src->coefficient, sizeof(dst->coefficient));
    dst->dispersion_over = src->dispersion_over;
    dst->axial_um = src->axial_um;
    dst->lambda_nm = src->lambda_nm;
    dst->band_nm = src->band_nm;
    dst->span_per_nm = src->span_per_nm;
    if (copy_values(&dst->wavelengths_nm, &dst->n_wavelengths, src->wavelengths_nm,
                    src->n_wavelengths, 1) &&
        copy_values(&dst->kmap_px, &dst->n_kmap, src->kmap_px, src->n_kmap, 1) &&
        copy_values(&dst->dispersion, &dst->n_dispersion, src->dispersion, src->n_dispersion, 2) &&
        copy_values(&dst->background, &dst->n_background, src->background, src->n_background, 1) &&
        copy_values(&dst->positions_um, &dst->n_positions, src->positions_um, src->n_positions, 2))
        return OCT_OK;
    oct_calibration_finish(dst);
    return OCT_E_NO_MEMORY;
}
