/* Tables of strangers: the input is a whole file of comma-separated values. It is read row by row,
 * each cell as a number too, and then as the table of cells that octctl cells-score compares. */
#include "formats/csv_read.h"
#include "test/fuzz/fuzz.h"
#include "tools/analyse/cells_table.h"

#include <math.h>
#include <string.h>

static void check_error(enum oct_err e, const struct oct_error *err, const char *path)
{
    fuzz_must(err->code == e && strncmp(err->text, path, strlen(path)) == 0);
    fuzz_must(!strchr(err->text, '\n'));
}

static void check_row(const char *const *cells, unsigned n)
{
    size_t n_bytes = 0;
    fuzz_must(n <= OCT_CSV_MOST_CELLS);
    for (unsigned i = 0; i < n; i++) {
        double value;
        n_bytes += strlen(cells[i]) + 1;
        fuzz_must(!oct_csv_to_number(cells[i], &value) || isfinite(value));
    }
    fuzz_must(n_bytes <= OCT_CSV_MOST_BYTES);
}

static void read_rows(const char *path)
{
    struct oct_csv_reader *reader;
    struct oct_error err = {.code = OCT_OK};
    const char *const *cells;
    unsigned n = 0;
    uint64_t line = 0;
    enum oct_err e = oct_csv_open(&reader, path, &err);
    fuzz_must((e == OCT_OK) == (reader != NULL));
    while (!e && !(e = oct_csv_next(reader, &cells, &n, &err)) && n > 0) {
        check_row(cells, n);
        fuzz_must(oct_csv_line(reader) > line);
        line = oct_csv_line(reader);
    }
    if (e)
        check_error(e, &err, path);
    oct_csv_close(reader);
}

static void read_table(const char *path)
{
    struct oct_cells_table table;
    struct oct_error err = {.code = OCT_OK};
    const enum oct_err e = oct_cells_table_read(&table, path, &err);
    if (e)
        check_error(e, &err, path);
    fuzz_must(!e || (table.n == 0 && !table.cells));
    for (size_t i = 0; i < table.n; i++)
        fuzz_must(isfinite(table.cells[i].x) && isfinite(table.cells[i].y));
    oct_cells_table_finish(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_path(0, "table.csv");
    fuzz_write_file(path, data, size);
    read_rows(path);
    read_table(path);
    return 0;
}
