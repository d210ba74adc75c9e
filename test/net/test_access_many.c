/* Who may come in: folders of as many keys as there may be, and names as long as there can be. */
#define _GNU_SOURCE /* O_DIRECTORY */
#include "pipeline/net/key_folder.h"
#include "test/rig/access_rig.h"
#include "test/rig/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

static void number_key(uint32_t number, char key[OCT_CURVE_KEY_BYTES])
{
    uint8_t raw[32] = {0};
    memcpy(raw + 11, &number, sizeof(number));
    assert_non_null(zmq_z85_encode(key, raw, sizeof(raw)));
}

static void add_numbered(const struct rig *rig, uint32_t first, uint32_t n)
{
    char path[400], key[OCT_CURVE_KEY_BYTES];
    for (uint32_t i = first; i < first + n; i++) {
        snprintf(path, sizeof(path), "%s/key-%u.key", rig->allowed, i);
        number_key(i, key);
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_int_equal(write(file, key, strlen(key)), strlen(key));
        close(file);
    }
}

/* Nobody looks at the folder while thousands of files come and go. */
static void close_access(struct rig *rig)
{
    oct_access_destroy(rig->access);
    rig->access = NULL;
}

static void remove_numbered(const struct rig *rig, uint32_t first, uint32_t n)
{
    char path[400];
    for (uint32_t i = first; i < first + n; i++) {
        snprintf(path, sizeof(path), "%s/key-%u.key", rig->allowed, i);
        unlink(path);
    }
}

static bool number_comes_in(const struct rig *rig, uint32_t number)
{
    char key[OCT_CURVE_KEY_BYTES];
    number_key(number, key);
    return comes_in(rig, key);
}

enum { MOST = OCT_MOST_KEY_FILES, AT_FIRST = MOST - N_CLIENTS };

#define WITH_RIG(name) TEST_WITH(name, make_rig, drop_rig)

/* As many as octd takes, all of them; then one more, and more. */
WITH_RIG(all_keys_up_to_the_bound_count)
{
    struct rig *rig = *state;
    struct oct_error err;
    close_access(rig);
    add_numbered(rig, 0, AT_FIRST + 1);
    assert_int_equal(oct_access_create(&rig->access, rig->secret, rig->allowed, &err),
                     OCT_E_CONFIG);
    assert_null(rig->access);
    assert_non_null(strstr(err.text, rig->allowed));
    assert_non_null(strstr(err.text, "more than 4096"));
    remove_numbered(rig, AT_FIRST, 1);
    must(oct_access_create(&rig->access, rig->secret, rig->allowed, &failure));
    assert_int_equal(counts(rig).n_allowed, MOST);
    for (uint32_t i = 0; i < AT_FIRST; i++)
        assert_true(number_comes_in(rig, i));
    assert_true(comes_in(rig, rig->keys[ALICE]));
    close_access(rig);
    remove_numbered(rig, 0, AT_FIRST);
}

WITH_RIG(above_the_bound_removed_keys_are_out_and_no_new_one_is_taken)
{
    struct rig *rig = *state;
    close_access(rig);
    add_numbered(rig, 0, AT_FIRST);
    must(oct_access_create(&rig->access, rig->secret, rig->allowed, &failure));
    assert_int_equal(counts(rig).n_allowed, MOST);
    struct connection b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    add_numbered(rig, AT_FIRST, 3);
    for (uint32_t i = 0; !counts(rig).is_incomplete; i++) { /* all three are there */
        assert_true(i * 5 < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    remove_key(rig, BOB); /* two too many are left */
    assert_true(is_cut(&b));
    assert_false(comes_in(rig, rig->keys[BOB]));
    assert_true(counts(rig).is_incomplete);
    for (uint32_t i = 0; i < AT_FIRST + 3; i++)
        assert_int_equal(number_comes_in(rig, i), i < AT_FIRST);
    remove_numbered(rig, 0, 2);
    for (uint32_t i = 0; !number_comes_in(rig, AT_FIRST + 2); i++) {
        assert_true(i * 5 < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(counts(rig).n_allowed, MOST);
    assert_false(counts(rig).is_incomplete);
    close_access(rig);
    remove_numbered(rig, 0, AT_FIRST + 3);
    leave(&b);
}

/* The longest that a folder holds, and one that differs in its last letter alone. */
WITH_RIG(long_names_are_names)
{
    struct rig *rig = *state;
    char name[2][NAME_MAX + 1], path[PATH_MAX], key[OCT_CURVE_KEY_BYTES];
    for (uint32_t i = 0; i < 2; i++) {
        memset(name[i], 'n', NAME_MAX);
        name[i][NAME_MAX - strlen(".key")] = '\0';
        name[i][NAME_MAX - strlen(".key") - 1] = (char)('0' + i);
        number_key(i, key);
        write_key(rig, name[i], key);
    }
    wait_for_allowed(rig, N_CLIENTS + 2);
    snprintf(path, sizeof(path), "%s/%s.key", rig->allowed, name[0]);
    assert_int_equal(unlink(path), 0);
    wait_for_allowed(rig, N_CLIENTS + 1);
    assert_false(number_comes_in(rig, 0));
    assert_true(number_comes_in(rig, 1));
    snprintf(path, sizeof(path), "%s/%s.key", rig->allowed, name[1]);
    unlink(path);
}

/* The folder's path and the name are each short enough, but not both together. */
WITH_RIG(a_long_name_in_a_deep_folder_is_taken)
{
    struct rig *rig = *state;
    struct oct_access *deep = NULL;
    char path[PATH_MAX], name[NAME_MAX + 1], key[OCT_CURVE_KEY_BYTES];
    size_t n = (size_t)snprintf(path, sizeof(path), "%s", rig->folder);
    size_t top = n;
    while (n + 100 < PATH_MAX - 50) {
        memset(path + n, 'd', 100);
        path[n] = '/';
        path[n += 100] = '\0';
        assert_int_equal(mkdir(path, 0755), 0);
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0);
    memset(name, 'n', NAME_MAX);
    memcpy(name + NAME_MAX - strlen(".key"), ".key", strlen(".key") + 1);
    number_key(7, key);
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(file, key, strlen(key)), strlen(key));
    close(file);
    must(oct_access_create(&deep, rig->secret, path, &failure));
    struct rig there = {.access = deep};
    assert_int_equal(counts(&there).n_allowed, 1);
    assert_true(number_comes_in(&there, 7));
    assert_int_equal(unlinkat(folder, name, 0), 0);
    wait_for_allowed(&there, 0);
    oct_access_destroy(deep);
    close(folder);
    for (; n > top; n -= 100) {
        path[n] = '\0';
        assert_int_equal(rmdir(path), 0);
    }
}
