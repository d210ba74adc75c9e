#include "formats/csv.h"

#include "formats/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_csv {
    struct oct_whole_file file;
    bool row_begun;
    int failure; /* errno of the first; 0: none */
};

static void put_text(struct oct_csv *c, const char *text)
{
    if (c->failure == 0 && fputs(text, c->file.stream) == EOF)
        c->failure = errno ? errno : EIO;
}

enum oct_err oct_csv_create(struct oct_csv **csv, const char *path, bool force, const char *header,
                            struct oct_error *err)
{
    *csv = NULL;
    struct oct_csv *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    const enum oct_err e = oct_whole_file_open(&c->file, path, force, err);
    if (e) {
        free(c);
        return e;
    }
    put_text(c, header);
    put_text(c, "\n");
    *csv = c;
    return OCT_OK;
}

static void cell(struct oct_csv *c, const char *text)
{
    if (c->row_begun)
        put_text(c, ",");
    c->row_begun = true;
    put_text(c, text);
}

void oct_csv_number(struct oct_csv *csv, double value)
{
    char text[40] = "";
    if (!isnan(value))
        snprintf(text, sizeof(text), "%.9g", value);
    for (char *comma = strchr(text, ','); comma; comma = strchr(comma, ','))
        *comma = '.'; /* the decimal sign of some locales */
    cell(csv, text);
}

void oct_csv_count(struct oct_csv *csv, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    cell(csv, text);
}

void oct_csv_text(struct oct_csv *csv, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        cell(csv, text);
        return;
    }
    cell(csv, "\"");
    for (; *text; text++) {
        const char character[3] = {*text, *text == '"' ? '"' : '\0', '\0'};
        put_text(csv, character);
    }
    put_text(csv, "\"");
}

void oct_csv_end_row(struct oct_csv *csv)
{
    put_text(csv, "\n");
    csv->row_begun = false;
}

enum oct_err oct_csv_publish(struct oct_csv *csv, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!csv)
        return OCT_OK;
    if (csv->failure)
        e = oct_fail_errno(err, OCT_E_IO, csv->failure, "%s: cannot be written", csv->file.path);
    e = oct_whole_file_end(&csv->file, e, err);
    free(csv);
    return e;
}

void oct_csv_discard(struct oct_csv *csv)
{
    if (!csv)
        return;
    oct_whole_file_discard(&csv->file);
    free(csv);
}
