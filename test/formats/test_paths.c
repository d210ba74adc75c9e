/* Folders and patterns as lists of files. */
#include "formats/paths.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void make_file(const char *name)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(name, 0700), 0);
}

/* names: of the files that must come, in order; ends with NULL. */
static void must_give(const char *const *args, unsigned n_args, const char *const *names)
{
    struct oct_paths paths;
    must(oct_paths_expand(&paths, args, n_args, &failure));
    for (unsigned i = 0; i < paths.n; i++) {
        assert_non_null(names[i]);
        if (strcmp(paths.path[i], names[i]) != 0)
            fail_msg("number %u is %s, not %s", i, paths.path[i], names[i]);
    }
    assert_null(names[paths.n]);
    oct_paths_finish(&paths);
    assert_true(!paths.path && paths.n == 0);
}

static void must_refuse(const char *arg, enum oct_err code, const char *says)
{
    struct oct_paths paths;
    struct oct_error err = {.text = ""};
    const char *const args[] = {"folder/img2.png", arg};
    assert_int_equal(oct_paths_expand(&paths, args, 2, &err), code);
    assert_true(!paths.path && paths.n == 0);
    if (!strstr(err.text, says) || !strstr(err.text, arg))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static int make_files(void **state)
{
    static const char *const names[] = {
        "folder/img10.png", "folder/img2.png",  "folder/img1.TIF",       "folder/img02.tiff",
        "folder/notes.txt", "folder/.img3.png", "folder/film.avi",       "b[1].png",
        "others/b.txt",     "others/a.jpg",     "others/deep.png/x.png", "one/readme"};
    make_folder("folder");
    make_folder("others");
    make_folder("others/deep.png");
    make_folder("one");
    make_folder("empty");
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        make_file(names[i]);
    return 0;
}

TEST(names_are_in_the_order_of_their_numbers)
{
    static const char *const rising[] = {"",
                                         "A",
                                         "a",
                                         "a1",
                                         "a01b",
                                         "a2",
                                         "a2b",
                                         "a10",
                                         "a10.2",
                                         "a10.11",
                                         "a99999999999999999998",
                                         "a99999999999999999999",
                                         "a100000000000000000000",
                                         "ab"};
    enum { N = sizeof(rising) / sizeof(rising[0]) };
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++) {
            const int order = oct_paths_compare(rising[i], rising[j]);
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
    assert_true(oct_paths_compare("img01", "img1") != 0); /* are different files */
    assert_int_equal(oct_paths_compare("img01", "img1"), -oct_paths_compare("img1", "img01"));
}

TEST(folders_give_their_pictures)
{
    const char *const args[] = {"folder"};
    char with_slash[300];
    static const char *const names[] = {"folder/img1.TIF", "folder/img2.png", "folder/img02.tiff",
                                        "folder/img10.png", NULL};
    /* img02.tiff and img2.png have the same number; what follows it decides. */
    must_give(args, 1, names);
    snprintf(with_slash, sizeof(with_slash), "%s/", args[0]);
    const char *const slashed[] = {with_slash};
    must_give(slashed, 1, names);
}

TEST(patterns_give_what_matches)
{
    const char *const args[] = {"folder/img*.p?g", "folder/img[12].*", "b[1].png", "absent.png",
                                "r.h5:/a*"};
    static const char *const names[] = {
        "folder/img2.png", "folder/img10.png", "folder/img1.TIF", "folder/img2.png",
        "b[1].png",        "absent.png",       "r.h5:/a*",        NULL};
    must_give(args, 5, names);
    const char *const folders[] = {"others/*"};
    static const char *const files[] = {"others/a.jpg", "others/b.txt", NULL};
    must_give(folders, 1, files);
}

TEST(what_gives_nothing_is_refused)
{
    must_refuse("others", OCT_E_ARG, "but a.jpg and 2 more");
    must_refuse("one", OCT_E_ARG, "only readme");
    must_refuse("empty", OCT_E_ARG, "an empty folder");
    must_refuse("folder/*.bmp", OCT_E_IO, "no file matches");
    must_refuse("absent/*", OCT_E_IO, "no file matches");
}

TEST_GROUP(make_files, NULL);
