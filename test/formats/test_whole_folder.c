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
    must(oct_whole_folder_init(folder, path, force, MARK, ".png", &failure));
}

/* A folder of two files, as an export makes it. */
static void make(const char *path, bool force, const char *text)
{
    struct oct_whole_folder folder;
    begin(&folder, path, force);
    put(&folder, "a.png", text);
    put(&folder, MARK, text);
    must(oct_whole_folder_publish(&folder, &failure));
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
    snprintf(slashes, sizeof(slashes), "%s//", "new");
    const int n = count(".");
    begin(&folder, slashes, false);
    assert_string_equal(folder.path, "new");
    assert_int_equal(count("new"), -1);
    put(&folder, "a.png", "1");
    oct_whole_folder_discard(&folder);
    oct_whole_folder_discard(&folder); /* an empty one */
    assert_int_equal(count("."), n);
    make("new", false, "2");
    assert_int_equal(count("."), n + 1);
}

TEST(only_its_like_is_replaced)
{
    char path[512];
    const int n = count(".");
    snprintf(path, sizeof(path), "%s", "old");
    make(path, false, "1");
    must_refuse(path, false, OCT_E_IO, "exists already");
    make(path, true, "2");
    write_text("old/notes.txt", "mine");
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_true(holds(path, "notes.txt", "mine") && holds(path, "a.png", "2"));
    assert_int_equal(unlink("old/notes.txt"), 0);
    assert_int_equal(mkdir("old/b.png", 0700), 0);
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_int_equal(rmdir("old/b.png"), 0);
    assert_int_equal(symlink("a.png", "old/b.png"), 0);
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_int_equal(unlink("old/b.png"), 0);
    assert_int_equal(unlink("old/" MARK), 0);
    must_refuse(path, true, OCT_E_ARG, "other files");
    assert_int_equal(count("."), n + 1);
}

TEST(what_is_no_folder_is_refused)
{
    write_text("file", "mine");
    must_refuse("file", true, OCT_E_ARG, "is no folder");
    assert_int_equal(symlink("old", "link"), 0);
    must_refuse("link", true, OCT_E_ARG, "is no folder");
    must_refuse("absent/new", false, OCT_E_IO, "cannot be made");
    must_refuse("", false, OCT_E_ARG, "names no folder");
    assert_int_equal(mkdir("empty", 0700), 0);
    must_refuse("empty", true, OCT_E_ARG, "other files");
}

/* What comes while the files are being written stays. */
TEST(what_has_appeared_meanwhile_stays)
{
    struct oct_whole_folder folder;
    struct oct_error err = {.text = ""};
    const int n = count(".");
    begin(&folder, "late", false);
    put(&folder, "a.png", "1");
    assert_int_equal(mkdir("late", 0700), 0);
    must_fail(oct_whole_folder_publish(&folder, &failure), OCT_E_IO, "appeared meanwhile");
    assert_int_equal(count("late"), 0);
    assert_int_equal(count("."), n + 1);

    make("changed", false, "1");
    begin(&folder, "changed", true);
    put(&folder, MARK, "2");
    write_text("changed/notes.txt", "mine");
    assert_int_equal(oct_whole_folder_publish(&folder, &err), OCT_E_ARG);
    assert_true(holds("changed", "notes.txt", "mine"));
    assert_true(holds("changed", MARK, "1"));
    assert_int_equal(count("."), n + 2);
}

/* The name of the unfinished folder may be a link by then. */
TEST(what_a_link_points_at_stays)
{
    char work[512];
    struct oct_whole_folder folder;
    struct oct_error err = {.text = ""};
    snprintf(work, sizeof(work), "%s.new.%ld", "linked", (long)getpid());
    assert_int_equal(mkdir("theirs", 0700), 0);
    write_text("theirs/a.png", "mine");
    assert_int_equal(symlink("theirs", work), 0);
    assert_int_equal(oct_whole_folder_init(&folder, "linked", false, MARK, ".png", &err), OCT_E_IO);
    assert_true(holds("theirs", "a.png", "mine"));
    assert_int_equal(unlink(work), 0);
}
