/* Folders that appear whole: what is left when something fails, and what --force replaces. */
#include "formats/whole_folder.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "mark.json"

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put(const struct oct_whole_folder *folder, const char *name, const char *text)
{
    char *path = oct_whole_folder_file(folder, name);
    assert_non_null(path);
    write_text(path, text);
    free(path);
}

/* Entries of a folder; -1: there is none. */
static int count(const char *path)
{
    DIR *folder = opendir(path);
    int n = 0;
    if (!folder)
        return -1;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n - 2;
}

static bool holds(const char *folder, const char *name, const char *text)
{
    char path[512], line[64] = "";
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const bool is_read = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    return is_read && strcmp(line, text) == 0;
}

static void begin(struct oct_whole_folder *folder, const char *path, bool force)
{
    struct oct_error err = {.text = ""};
    if (oct_whole_folder_init(folder, path, force, MARK, ".png", &err))
        fail_msg("%s", err.text);
}

/* A folder of two files, as an export makes it. */
static void make(const char *path, bool force, const char *text)
{
    struct oct_whole_folder folder;
    struct oct_error err = {.text = ""};
    begin(&folder, path, force);
    put(&folder, "a.png", text);
    put(&folder, MARK, text);
    if (oct_whole_folder_publish(&folder, &err))
        fail_msg("%s", err.text);
    assert_true(!folder.path && !folder.work);
    assert_int_equal(count(path), 2);
    assert_true(holds(path, "a.png", text) && holds(path, MARK, text));
}

static void must_refuse(const char *path, bool force, enum oct_err code, const char *says)
{
    struct oct_whole_folder folder;
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_whole_folder_may(path, force, MARK, ".png", NULL), code);
    assert_int_equal(oct_whole_folder_init(&folder, path, force, MARK, ".png", &err), code);
    assert_true(!folder.path && !folder.work);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

TEST(it_appears_when_it_is_published)
{
    struct oct_whole_folder folder;
    char slashes[512];
    snprintf(slashes, sizeof(slashes), "%s//", film_path("new"));
    const int n = count(film_path(NULL));
    begin(&folder, slashes, false);
    assert_string_equal(folder.path, film_path("new"));
    assert_int_equal(count(film_path("new")), -1);
    put(&folder, "a.png", "1");
    oct_whole_folder_discard(&folder);
    oct_whole_folder_discard(&folder); /* an empty one */
    assert_int_equal(count(film_path(NULL)), n);
    make(film_path("new"), false, "2");
    assert_int_equal(count(film_path(NULL)), n + 1);
}

TEST(only_its_like_is_replaced)
{
    char path[512];
    const int n = count(film_path(NULL));
    snprintf(path, sizeof(path), "%s", film_path("old"));
    make(path, false, "1");
    must_refuse(path, false, OCT_E_IO, "exists already");
    make(path, true, "2");
    write_text(film_path("old/notes.txt"), "mine");
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_true(holds(path, "notes.txt", "mine") && holds(path, "a.png", "2"));
    assert_int_equal(unlink(film_path("old/notes.txt")), 0);
    assert_int_equal(mkdir(film_path("old/b.png"), 0700), 0);
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_int_equal(rmdir(film_path("old/b.png")), 0);
    assert_int_equal(symlink("a.png", film_path("old/b.png")), 0);
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_int_equal(unlink(film_path("old/b.png")), 0);
    assert_int_equal(unlink(film_path("old/" MARK)), 0);
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_int_equal(count(film_path(NULL)), n + 1);
}

TEST(what_is_no_folder_is_refused)
{
    write_text(film_path("file"), "mine");
    must_refuse(film_path("file"), true, OCT_E_ARG, "is no folder");
    assert_int_equal(symlink("old", film_path("link")), 0);
    must_refuse(film_path("link"), true, OCT_E_ARG, "is no folder");
    must_refuse(film_path("absent/new"), false, OCT_E_IO, "cannot be made");
    must_refuse("", false, OCT_E_ARG, "names no folder");
    assert_int_equal(mkdir(film_path("empty"), 0700), 0);
    must_refuse(film_path("empty"), true, OCT_E_ARG, "other files");
}

/* What comes while the files are being written stays. */
TEST(what_has_appeared_meanwhile_stays)
{
    struct oct_whole_folder folder;
    struct oct_error err = {.text = ""};
    const int n = count(film_path(NULL));
    begin(&folder, film_path("late"), false);
    put(&folder, "a.png", "1");
    assert_int_equal(mkdir(film_path("late"), 0700), 0);
    assert_int_equal(oct_whole_folder_publish(&folder, &err), OCT_E_IO);
    assert_non_null(strstr(err.text, "appeared meanwhile"));
    assert_int_equal(count(film_path("late")), 0);
    assert_int_equal(count(film_path(NULL)), n + 1);

    make(film_path("changed"), false, "1");
    begin(&folder, film_path("changed"), true);
    put(&folder, MARK, "2");
    write_text(film_path("changed/notes.txt"), "mine");
    assert_int_equal(oct_whole_folder_publish(&folder, &err), OCT_E_ARG);
    assert_true(holds(film_path("changed"), "notes.txt", "mine"));
    assert_true(holds(film_path("changed"), MARK, "1"));
    assert_int_equal(count(film_path(NULL)), n + 2);
}

/* The name of the unfinished folder may be a link by then. */
TEST(what_a_link_points_at_stays)
{
    char work[512];
    struct oct_whole_folder folder;
    struct oct_error err = {.text = ""};
    snprintf(work, sizeof(work), "%s.new.%ld", film_path("linked"), (long)getpid());
    assert_int_equal(mkdir(film_path("theirs"), 0700), 0);
    write_text(film_path("theirs/a.png"), "mine");
    assert_int_equal(symlink("theirs", work), 0);
    assert_int_equal(oct_whole_folder_init(&folder, film_path("linked"), false, MARK, ".png", &err),
                     OCT_E_IO);
    assert_true(holds(film_path("theirs"), "a.png", "mine"));
    assert_int_equal(unlink(work), 0);
}

TEST_GROUP(film_folder_make, film_folder_remove);
