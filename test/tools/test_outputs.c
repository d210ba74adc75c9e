/* The files of a command: all are made or none is, and what had their names is not lost. */
#include "test/rig/tap.h"

#include "formats/results.h"
#include "tools/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N 3u

static char folder[64];

static const char *path_of(unsigned i)
{
    static char paths[N][96];
    snprintf(paths[i], sizeof(paths[i]), "%s/out%u", folder, i);
    return paths[i];
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect(unsigned i, const char *text)
{
    char held[64] = "";
    FILE *file = fopen(path_of(i), "r");
    if (!text) {
        assert_null(file);
        return;
    }
    assert_non_null(file);
    held[fread(held, 1, sizeof(held) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(held, text);
}

static unsigned n_files(void)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static enum oct_err write_new(void *context, const char *path, bool force, struct oct_error *err)
{
    (void)context;
    (void)force;
    (void)err;
    assert_int_not_equal(access(path, F_OK), 0);
    put(path, "new");
    return OCT_OK;
}

static enum oct_err write_nothing(void *context, const char *path, bool force,
                                  struct oct_error *err)
{
    (void)context;
    (void)force;
    return oct_fail_errno(err, OCT_E_IO, ENOSPC, "%s: cannot be written", path);
}

/* Where the file before is to stand a folder appears, which no rename replaces. */
static enum oct_err write_and_block(void *context, const char *path, bool force,
                                    struct oct_error *err)
{
    const char *before = context;
    unlink(before);
    assert_int_equal(mkdir(before, 0777), 0);
    return write_new(NULL, path, force, err);
}

static enum oct_err write_and_occupy(void *context, const char *path, bool force,
                                     struct oct_error *err)
{
    put(context, "another's");
    return write_new(NULL, path, force, err);
}

static enum oct_err publish_begun(void *context, const char *path, bool force,
                                  struct oct_error *err)
{
    struct oct_results **begun = context, *results = *begun;
    (void)force;
    *begun = NULL;
    return oct_results_publish_as(results, path, err);
}

static int begin(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/octd-outputs-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    for (unsigned i = 0; i < N; i++)
        if (unlink(path_of(i)) != 0)
            rmdir(path_of(i));
    return rmdir(folder);
}

/* Fails for what is left in the folder too. */
static enum oct_err write_all(const struct oct_output_file files[N], bool force,
                              unsigned n_files_after, struct oct_error *err)
{
    struct oct_outputs *outputs;
    enum oct_err e = oct_outputs_begin(&outputs, files, N, force, err);
    if (!e && outputs)
        e = oct_outputs_publish(outputs, err);
    assert_int_equal(n_files(), n_files_after);
    return e;
}

#define CASE(name) TEST_WITH(name, begin, end)

CASE(all_are_replaced_when_all_are_whole)
{
    const struct oct_output_file files[N] = {
        {path_of(0), write_new, NULL}, {NULL, NULL, NULL}, {path_of(2), write_new, NULL}};
    put(path_of(0), "old");
    must(write_all(files, true, 2, &failure));
    expect(0, "new");
    expect(2, "new");
}

CASE(what_was_there_outlives_a_later_file_that_fails)
{
    const struct oct_output_file files[N] = {{path_of(0), write_new, NULL},
                                             {path_of(1), write_new, NULL},
                                             {path_of(2), write_nothing, NULL}};
    struct oct_error err;
    char said[160];
    put(path_of(0), "old");
    assert_int_equal(write_all(files, true, 1, &err), OCT_E_NO_SPACE);
    expect(0, "old");
    snprintf(said, sizeof(said), "%s: cannot be written: No space left on device", path_of(2));
    assert_string_equal(err.text, said);
    assert_int_equal(write_all(files, true, 1, NULL), OCT_E_NO_SPACE);
}

CASE(what_was_replaced_comes_back_when_a_name_cannot_be_given)
{
    const struct oct_output_file files[N] = {
        {path_of(0), write_new, NULL},
        {path_of(1), write_new, NULL},
        {path_of(2), write_and_block, (void *)(uintptr_t)path_of(1)}};
    struct oct_error err;
    put(path_of(0), "old");
    put(path_of(2), "old too");
    assert_int_equal(write_all(files, true, 3, &err), OCT_E_IO);
    expect(0, "old");
    expect(2, "old too");
    assert_int_equal(rmdir(path_of(1)), 0);
}

CASE(a_file_that_appears_meanwhile_stays_without_force)
{
    const struct oct_output_file files[N] = {
        {path_of(0), write_new, NULL},
        {path_of(1), write_new, NULL},
        {path_of(2), write_and_occupy, (void *)(uintptr_t)path_of(1)}};
    must_fail(write_all(files, false, 1, &failure), OCT_E_IO, "has appeared meanwhile");
    expect(0, NULL);
    expect(1, "another's");
    expect(2, NULL);
}

CASE(a_file_that_was_begun_before_the_others_appears_with_them)
{
    struct oct_results *begun;
    struct oct_error err;
    const struct oct_output_file files[N] = {
        {path_of(0), publish_begun, &begun}, {path_of(1), write_new, NULL}, {NULL, NULL, NULL}};
    put(path_of(0), "old");
    assert_int_equal(oct_results_create(&begun, path_of(0), "result", true, &err), OCT_OK);
    const struct oct_output_file failing[N] = {
        {path_of(1), write_nothing, NULL}, {path_of(0), publish_begun, &begun}, {NULL, NULL, NULL}};
    assert_int_equal(write_all(failing, true, 2, &err), OCT_E_NO_SPACE);
    expect(0, "old");
    assert_non_null(begun);
    assert_int_equal(write_all(files, true, 2, &err), OCT_OK);
    FILE *made = fopen(path_of(0), "rb");
    char magic[9] = "";
    assert_non_null(made);
    assert_int_equal(fread(magic, 1, 8, made), 8);
    fclose(made);
    assert_string_equal(magic, "\x89HDF\r\n\x1a\n");
}

/* In parts: what is written early appears with the rest, or not at all. */
CASE(files_that_are_written_early_appear_with_the_others)
{
    struct oct_outputs *outputs;
    struct oct_error err;
    struct oct_output_file files[N] = {
        {path_of(0), write_new, NULL}, {NULL, NULL, NULL}, {path_of(2), write_new, NULL}};
    put(path_of(2), "old");
    for (unsigned round = 0; round < 3; round++) {
        files[0].write = round == 1 ? write_nothing : write_new;
        assert_int_equal(oct_outputs_begin(&outputs, files, N, true, &err), OCT_OK);
        assert_int_equal(oct_outputs_write_one(outputs, 2, &err), OCT_OK);
        assert_int_equal(n_files(), 2);
        expect(2, "old");
        if (round == 0)
            oct_outputs_discard(outputs);
        else
            assert_int_equal(oct_outputs_publish(outputs, &err),
                             round == 1 ? OCT_E_NO_SPACE : OCT_OK);
        expect(0, round == 2 ? "new" : NULL);
        expect(2, round == 2 ? "new" : "old");
        assert_int_equal(n_files(), round == 2 ? 2 : 1);
    }
    oct_outputs_discard(NULL);
}
