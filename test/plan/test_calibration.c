/* Calibration files: what is read, and that what is refused is named by file and line. */
#include "pipeline/plan/calibration.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_message(const struct oct_error *err, const char *where)
{
    assert_int_equal(err->code, OCT_E_CONFIG);
    if (!strstr(err->text, where))
        fail_msg("'%s' does not name %s", err->text, where);
    assert_null(strchr(err->text, '\n'));
}

/* Writes bytes to a file of the test's working folder. */
static const char *file_of(const char *bytes, size_t n)
{
    static const char name[] = "test_plan_table.txt";
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return name;
}

static void check_reads(const char *text, unsigned n_columns, const double *expected, size_t n_rows)
{
    const char *path = file_of(text, strlen(text));
    struct oct_error err = {.text = ""};
    double *values;
    size_t n;
    if (oct_calibration_read_table(path, n_columns, &values, &n, &err))
        fail_msg("'%s' refused: %s", text, err.text);
    assert_int_equal(n, n_rows);
    for (size_t i = 0; i < n_rows * n_columns; i++)
        assert_true(values[i] == expected[i]);
    free(values);
    unlink(path);
}

/* Refused with "FILE:LINE" in the message (line 0: the file only). */
static void check_refused_bytes(const char *bytes, size_t n_bytes, unsigned n_columns,
                                unsigned line)
{
    const char *path = file_of(bytes, n_bytes);
    struct oct_error err = {.text = ""};
    double *values = (double *)&err;
    size_t n = 7;
    char where[64];
    if (oct_calibration_read_table(path, n_columns, &values, &n, &err) != OCT_E_CONFIG)
        fail_msg("'%.60s' (%u a line) was accepted as %zu rows", bytes, n_columns, n);
    assert_null(values);
    assert_int_equal(n, 0);
    snprintf(where, sizeof(where), line ? "%s:%u:" : "%s:", path, line);
    check_message(&err, where);
    unlink(path);
}

static void check_refused(const char *text, unsigned n_columns, unsigned line)
{
    check_refused_bytes(text, strlen(text), n_columns, line);
}

TEST(tables_of_numbers_are_read)
{
    static const double one[] = {800, 801.5, -3e-4};
    static const double two[] = {1, 0, 0.5, -0.25};
    check_reads("800\n801.5\n-3e-4\n", 1, one, 3);
    check_reads("800\n801.5\n-3e-4", 1, one, 3);
    check_reads("800\r\n801.5\r\n-3e-4\r\n", 1, one, 3);
    check_reads("# nm\n\n  800\n\t801.5  \n   # half way\n-3e-4\n\n", 1, one, 3);
    check_reads("# nm\r\n\r\n800\r\n801.5\r\n-3e-4", 1, one, 3);
    check_reads("1 0\n0.5 -0.25\n", 2, two, 2);
    check_reads("1\t0\r\n  0.5   -0.25\r\n", 2, two, 2);
}

TEST(lines_that_are_no_numbers_are_refused_by_file_and_line)
{
    check_refused("800\nabc\n", 1, 2);
    check_refused("800\n801nm\n", 1, 2);
    check_refused("# nm\n\n800\n801,5,2\n", 1, 4);
    check_refused("800\n801 802\n", 1, 2);
    check_refused("1 0\n1\n", 2, 2);
    check_refused("1 0\r\n1 0 0\r\n", 2, 2);
    check_refused("800\nnan\n", 1, 2);
    check_refused("800\ninf\n", 1, 2);
    check_refused("800\n1e999\n", 1, 2);
    check_refused("800\n801 # comment\n", 1, 2);
    check_refused("800\n\x80\xff\n", 1, 2);
    check_refused("800\n-\n", 1, 2);
}

TEST(bytes_hidden_in_a_line_are_refused)
{
    check_refused("800\n801\r802\n803\n", 1, 2);
    check_refused_bytes("800\n801\0 802\n803\n", 17, 1, 2);
    check_refused_bytes("800\n801\0 802", 12, 1, 2);
}

TEST(a_file_without_numbers_is_refused)
{
    check_refused("", 1, 0);
    check_refused("\n\r\n", 1, 0);
    check_refused("# only words\n", 2, 0);
}

TEST(a_line_that_never_ends_is_refused)
{
    size_t n = 100000;
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, '1', n);
    memcpy(text, "800\n", 4);
    text[n] = '\0';
    check_refused(text, 1, 2);
    memset(text + 4, ' ', n - 4);
    text[n - 1] = '7';
    check_refused(text, 1, 2);
    free(text);
}

TEST(a_huge_file_is_refused_before_it_fills_the_memory)
{
    size_t n_rows = 20000000;
    char *text = malloc(2 * n_rows);
    assert_non_null(text);
    for (size_t i = 0; i < n_rows; i++)
        memcpy(text + 2 * i, "8\n", 2);
    const char *path = file_of(text, 2 * n_rows);
    free(text);
    struct oct_error err;
    double *values;
    size_t n;
    assert_int_equal(oct_calibration_read_table(path, 1, &values, &n, &err), OCT_E_CONFIG);
    assert_null(values);
    check_message(&err, path);
    unlink(path);
}

TEST(many_rows_are_read)
{
    size_t n_rows = 262144; /* the most P2 there can be */
    FILE *file = fopen("test_plan_many.txt", "w");
    assert_non_null(file);
    for (size_t i = 0; i < n_rows; i++)
        fprintf(file, "%zu %.17g\n", i, 1.0 / (double)(i + 1));
    fclose(file);
    double *values;
    size_t n;
    assert_int_equal(oct_calibration_read_table("test_plan_many.txt", 2, &values, &n, NULL),
                     OCT_OK);
    assert_int_equal(n, n_rows);
    for (size_t i = 0; i < n_rows; i++)
        assert_true(values[2 * i] == (double)i && values[2 * i + 1] == 1.0 / (double)(i + 1));
    free(values);
    unlink("test_plan_many.txt");
}

TEST(files_that_cannot_be_read_are_refused_by_name)
{
    double *values;
    size_t n;
    struct oct_error err;
    assert_int_equal(oct_calibration_read_table("no/such/file.txt", 1, &values, &n, &err),
                     OCT_E_CONFIG);
    check_message(&err, "no/such/file.txt");
    assert_null(values);
    assert_int_equal(mkdir("test_plan_folder", 0700), 0);
    assert_int_equal(oct_calibration_read_table("test_plan_folder", 1, &values, &n, &err),
                     OCT_E_CONFIG);
    check_message(&err, "test_plan_folder");
    assert_null(values);
    rmdir("test_plan_folder");
}

/* With nobody at its other end a FIFO would hold up whoever opens it, for ever. */
TEST(a_fifo_is_refused_at_once)
{
    double *values;
    size_t n;
    struct oct_error err;
    assert_int_equal(mkfifo("test_plan_fifo", 0600), 0);
    alarm(TEST_PATIENCE_MS / 1000); /* what waits there is ended */
    assert_int_equal(oct_calibration_read_table("test_plan_fifo", 1, &values, &n, &err),
                     OCT_E_CONFIG);
    alarm(0);
    check_message(&err, "test_plan_fifo: is not a file");
    assert_null(values);
    unlink("test_plan_fifo");
    assert_int_equal(oct_calibration_read_table("/dev/zero", 1, &values, &n, &err), OCT_E_CONFIG);
    check_message(&err, "/dev/zero: is not a file");
}
