/* Who may come in, asked as ZeroMQ asks: connections over descriptors that are used again, passes
 * that come late, keys that go. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "pipeline/net/access.h"
#include "pipeline/net/key_folder.h"
#include "test/rig/tap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

enum { ALICE, BOB, N_CLIENTS };
static const char *const names[N_CLIENTS] = {"alice", "bob"};

struct rig {
    struct oct_access *access;
    char folder[256], secret[300], allowed[300];
    char keys[N_CLIENTS][OCT_CURVE_KEY_BYTES];
};

/* Before the C library's: while it is set no folder can be listed. */
static atomic_bool folders_fail;

struct dirent *readdir(DIR *folder)
{
    static struct dirent *(*real)(DIR *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (!atomic_load(&folders_fail))
        return real(folder);
    errno = EIO;
    return NULL;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "metadata\ncurve\n    %s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void key_path(const struct rig *rig, int who, char path[400])
{
    snprintf(path, 400, "%s/%s.key", rig->allowed, names[who]);
}

static int make_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    const char *base = getenv("TMPDIR");
    char public[OCT_CURVE_KEY_BYTES], secret[OCT_CURVE_KEY_BYTES], path[400], line[128];
    struct oct_error err;
    atomic_store(&folders_fail, false);
    snprintf(rig->folder, sizeof(rig->folder), "%s/access-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->secret, sizeof(rig->secret), "%s/octd.key_secret", rig->folder);
    snprintf(rig->allowed, sizeof(rig->allowed), "%s/allowed", rig->folder);
    assert_int_equal(mkdir(rig->allowed, 0755), 0);
    assert_int_equal(zmq_curve_keypair(public, secret), 0);
    snprintf(line, sizeof(line), "public-key = \"%s\"\n    secret-key = \"%s\"", public, secret);
    write_file(rig->secret, line, 0600);
    for (int i = 0; i < N_CLIENTS; i++) {
        assert_int_equal(zmq_curve_keypair(rig->keys[i], secret), 0);
        snprintf(line, sizeof(line), "public-key = \"%s\"", rig->keys[i]);
        key_path(rig, i, path);
        write_file(path, line, 0644);
    }
    if (oct_access_create(&rig->access, rig->secret, rig->allowed, &err))
        fail_msg("%s", err.text);
    *state = rig;
    return 0;
}

static int drop_rig(void **state)
{
    struct rig *rig = *state;
    char path[400];
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max; /* a test may have failed without descriptors */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    oct_access_destroy(rig->access);
    for (int i = 0; i < N_CLIENTS; i++) {
        key_path(rig, i, path);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/carol.key", rig->allowed);
    unlink(path);
    unlink(rig->secret);
    rmdir(rig->allowed);
    rmdir(rig->folder);
    free(rig);
    return 0;
}

static struct oct_access_counts counts(const struct rig *rig)
{
    struct oct_access_counts c;
    oct_access_get_counts(rig->access, &c);
    return c;
}

static void wait_for_allowed(const struct rig *rig, uint64_t n)
{
    for (int ms = 0; counts(rig).n_allowed != n; ms += 5) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static void remove_key(const struct rig *rig, int who)
{
    char path[400];
    uint64_t before = counts(rig).n_allowed;
    key_path(rig, who, path);
    assert_int_equal(unlink(path), 0);
    wait_for_allowed(rig, before - 1);
}

static void write_key(const struct rig *rig, const char *name, const char *key)
{
    char path[PATH_MAX], line[128];
    snprintf(path, sizeof(path), "%s/%s.key", rig->allowed, name);
    snprintf(line, sizeof(line), "public-key = \"%s\"", key);
    write_file(path, line, 0644);
}

/* Opens, and reading it is an error of the kernel's: EIO. */
static void spoil_key(const struct rig *rig, int who)
{
    char path[400], link[400];
    key_path(rig, who, path);
    snprintf(link, sizeof(link), "%s/link", rig->folder);
    assert_int_equal(symlink("/proc/self/mem", link), 0);
    assert_int_equal(rename(link, path), 0);
}

static bool comes_in(const struct rig *rig, const char *key)
{
    char pass[OCT_PASS_BYTES];
    return oct_access_greets(rig->access, key, "a test", pass);
}

struct connection {
    int ours, theirs; /* descriptors of the two ends */
    char pass[OCT_PASS_BYTES];
};

/* A connection that stands and whose handshake has succeeded. fd >= 0: over this descriptor. */
static struct connection come_in(const struct rig *rig, int who, int fd)
{
    struct connection c;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    c.ours = pair[0];
    c.theirs = pair[1];
    if (fd >= 0 && fd != c.ours) {
        assert_int_equal(dup2(c.ours, fd), fd);
        close(c.ours);
        c.ours = fd;
    }
    oct_access_note_accepted(rig->access, c.ours);
    assert_true(oct_access_greets(rig->access, rig->keys[who], "a test", c.pass));
    return c;
}

static bool is_cut(const struct connection *c)
{
    struct pollfd look = {.fd = c->theirs, .events = POLLIN};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLHUP);
}

static void leave(struct connection *c)
{
    close(c->ours);
    close(c->theirs);
}

/* Its descriptor will be another connection's: the thread that reads the folder must not get it
 * meanwhile. */
static void leave_for_another(struct connection *c)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(null, c->ours), c->ours);
    close(null);
    close(c->theirs);
}

static void a_connection_goes_with_its_key(void **state)
{
    struct rig *rig = *state;
    struct connection a = come_in(rig, ALICE, -1), b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, a.pass, a.ours));
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    remove_key(rig, BOB);
    assert_true(is_cut(&b));
    assert_false(is_cut(&a));
    assert_int_equal(counts(rig).connections_cut, 1);
    leave(&a);
    leave(&b);
}

static void a_connection_that_said_nothing_goes_with_any_key(void **state)
{
    struct rig *rig = *state;
    struct connection a = come_in(rig, ALICE, -1), b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, a.pass, a.ours));
    remove_key(rig, BOB);
    assert_true(is_cut(&b));
    assert_false(is_cut(&a));
    leave(&a);
    leave(&b);
}

static void a_late_message_leaves_the_next_connection_its_own(void **state)
{
    struct rig *rig = *state;
    struct connection a = come_in(rig, ALICE, -1);
    assert_true(oct_access_admits(rig->access, a.pass, a.ours));
    int fd = a.ours;
    leave_for_another(&a);
    struct connection b = come_in(rig, BOB, fd);
    assert_true(oct_access_admits(rig->access, b.pass, fd));
    /* Alice's last message was still queued: it counts, and changes nothing about Bob. */
    assert_true(oct_access_admits(rig->access, a.pass, fd));
    remove_key(rig, BOB);
    assert_true(is_cut(&b));
    leave(&b);
}

static void a_late_message_before_the_first_does_not_name_the_next_connection(void **state)
{
    struct rig *rig = *state;
    struct connection a = come_in(rig, ALICE, -1);
    int fd = a.ours;
    leave_for_another(&a);
    struct connection b = come_in(rig, BOB, fd);
    assert_true(oct_access_admits(rig->access, a.pass, fd)); /* late */
    remove_key(rig, BOB);
    assert_true(is_cut(&b));
    leave(&b);
}

static void a_late_message_of_a_removed_key_cuts_nobody_else(void **state)
{
    struct rig *rig = *state;
    struct connection b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    int fd = b.ours;
    leave_for_another(&b);
    remove_key(rig, BOB);
    struct connection a = come_in(rig, ALICE, fd);
    assert_true(oct_access_admits(rig->access, a.pass, fd));
    assert_false(oct_access_admits(rig->access, b.pass, fd));
    assert_false(is_cut(&a));
    assert_int_equal(counts(rig).connections_cut, 0);
    assert_int_equal(counts(rig).messages_refused, 1);
    leave(&a);
}

static void messages_of_a_removed_key_are_refused_one_by_one(void **state)
{
    struct rig *rig = *state;
    struct connection b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    remove_key(rig, BOB);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_false(oct_access_admits(rig->access, b.pass, b.ours));
        assert_false(oct_access_admits(rig->access, b.pass, -1));
        assert_int_equal(counts(rig).messages_refused, 2 * i);
    }
    leave(&b);
}

static void a_pass_that_was_not_given_out_counts_for_nothing(void **state)
{
    struct rig *rig = *state;
    char text[3 * OCT_PASS_BYTES];
    const char *hostile[] = {NULL, "", " ", "  1", " 18446744073709551615"};
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
        assert_false(oct_access_admits(rig->access, hostile[i], -1));
    assert_false(oct_access_admits(rig->access, rig->keys[ALICE], -1)); /* a key is no pass */
    snprintf(text, sizeof(text), "%s%s 1", rig->keys[ALICE], rig->keys[BOB]);
    assert_false(oct_access_admits(rig->access, text, -1));
    assert_int_equal(counts(rig).messages_refused, 7);
}

static void a_refused_key_gets_no_pass(void **state)
{
    struct rig *rig = *state;
    char pass[OCT_PASS_BYTES] = "before", stranger[OCT_CURVE_KEY_BYTES],
         secret[OCT_CURVE_KEY_BYTES];
    assert_int_equal(zmq_curve_keypair(stranger, secret), 0);
    assert_false(oct_access_greets(rig->access, stranger, "a test", pass));
    assert_string_equal(pass, "");
    remove_key(rig, BOB);
    assert_false(oct_access_greets(rig->access, rig->keys[BOB], "a test", pass));
    assert_int_equal(counts(rig).refused[OCT_REFUSED_UNKNOWN_KEY], 1);
    assert_int_equal(counts(rig).refused[OCT_REFUSED_REVOKED_KEY], 1);
}

static void a_file_that_cannot_be_read_lets_nobody_in(void **state)
{
    struct rig *rig = *state;
    struct connection a = come_in(rig, ALICE, -1), b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, a.pass, a.ours));
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    spoil_key(rig, ALICE);
    wait_for_allowed(rig, 1);
    assert_true(is_cut(&a));
    assert_false(is_cut(&b));
    assert_false(comes_in(rig, rig->keys[ALICE]));
    assert_true(comes_in(rig, rig->keys[BOB]));
    assert_int_equal(counts(rig).n_unreadable, 1);
    write_key(rig, "carol", rig->keys[ALICE]); /* another file for the same key */
    wait_for_allowed(rig, 2);
    assert_true(comes_in(rig, rig->keys[ALICE]));
    leave(&a);
    leave(&b);
}

static void a_removed_key_is_out_while_another_file_cannot_be_read(void **state)
{
    struct rig *rig = *state;
    spoil_key(rig, ALICE);
    wait_for_allowed(rig, 1);
    struct connection b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    remove_key(rig, BOB);
    assert_true(is_cut(&b));
    assert_false(comes_in(rig, rig->keys[BOB]));
    assert_false(oct_access_admits(rig->access, b.pass, b.ours));
    leave(&b);
}

static void a_file_that_cannot_be_read_at_the_start_lets_nobody_in(void **state)
{
    struct rig *rig = *state;
    struct oct_error err;
    oct_access_destroy(rig->access);
    spoil_key(rig, ALICE);
    if (oct_access_create(&rig->access, rig->secret, rig->allowed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(counts(rig).n_allowed, 1);
    assert_int_equal(counts(rig).n_unreadable, 1);
    assert_false(comes_in(rig, rig->keys[ALICE]));
    assert_true(comes_in(rig, rig->keys[BOB]));
}

static void wait_for_incomplete(const struct rig *rig)
{
    for (int ms = 0; !counts(rig).is_incomplete; ms += 5) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

/* No new key is seen; those that are known are there, or are not. */
static void without_a_listing_known_keys_are_judged_one_by_one(void **state)
{
    struct rig *rig = *state;
    struct connection a = come_in(rig, ALICE, -1), b = come_in(rig, BOB, -1);
    assert_true(oct_access_admits(rig->access, a.pass, a.ours));
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    atomic_store(&folders_fail, true);
    wait_for_incomplete(rig); /* a look that had begun before may end with a whole listing */
    remove_key(rig, BOB);
    assert_true(counts(rig).is_incomplete);
    assert_true(is_cut(&b));
    assert_false(is_cut(&a));
    char stranger[OCT_CURVE_KEY_BYTES], secret[OCT_CURVE_KEY_BYTES];
    assert_int_equal(zmq_curve_keypair(stranger, secret), 0);
    write_key(rig, "carol", stranger);
    spoil_key(rig, ALICE); /* seen later than the new one would have been */
    wait_for_allowed(rig, 0);
    assert_true(is_cut(&a));
    assert_false(comes_in(rig, stranger));
    atomic_store(&folders_fail, false);
    wait_for_allowed(rig, 1);
    assert_true(comes_in(rig, stranger));
    assert_false(counts(rig).is_incomplete);
    leave(&a);
    leave(&b);
}

/* Nothing can be opened: what is there unchanged is allowed, what is gone or was touched is not. */
static void without_descriptors_removed_keys_are_out(void **state)
{
    struct rig *rig = *state;
    struct rlimit before, none;
    struct connection a = come_in(rig, ALICE, -1), b = come_in(rig, BOB, -1);
    char path[400];
    assert_true(oct_access_admits(rig->access, a.pass, a.ours));
    assert_true(oct_access_admits(rig->access, b.pass, b.ours));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    remove_key(rig, BOB);
    bool alice_in = comes_in(rig, rig->keys[ALICE]);
    key_path(rig, ALICE, path);
    assert_int_equal(chmod(path, 0600), 0); /* now it is another */
    wait_for_allowed(rig, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(alice_in && is_cut(&b) && is_cut(&a));
    wait_for_allowed(rig, 1);
    assert_true(comes_in(rig, rig->keys[ALICE]));
    leave(&a);
    leave(&b);
}

/* ---- many keys, long names ---- */

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

/* As many as octd takes, all of them; then one more, and more. */
static void all_keys_up_to_the_bound_count(void **state)
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
    if (oct_access_create(&rig->access, rig->secret, rig->allowed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(counts(rig).n_allowed, MOST);
    for (uint32_t i = 0; i < AT_FIRST; i++)
        assert_true(number_comes_in(rig, i));
    assert_true(comes_in(rig, rig->keys[ALICE]));
    close_access(rig);
    remove_numbered(rig, 0, AT_FIRST);
}

static void above_the_bound_removed_keys_are_out_and_no_new_one_is_taken(void **state)
{
    struct rig *rig = *state;
    struct oct_error err;
    close_access(rig);
    add_numbered(rig, 0, AT_FIRST);
    assert_int_equal(oct_access_create(&rig->access, rig->secret, rig->allowed, &err), OCT_OK);
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
static void long_names_are_names(void **state)
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
static void a_long_name_in_a_deep_folder_is_taken(void **state)
{
    struct rig *rig = *state;
    struct oct_access *deep = NULL;
    struct oct_error err;
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
    if (oct_access_create(&deep, rig->secret, path, &err))
        fail_msg("%s", err.text);
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

#define with_rig(test) cmocka_unit_test_setup_teardown(test, make_rig, drop_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_rig(a_connection_goes_with_its_key),
        with_rig(a_connection_that_said_nothing_goes_with_any_key),
        with_rig(a_late_message_leaves_the_next_connection_its_own),
        with_rig(a_late_message_before_the_first_does_not_name_the_next_connection),
        with_rig(a_late_message_of_a_removed_key_cuts_nobody_else),
        with_rig(messages_of_a_removed_key_are_refused_one_by_one),
        with_rig(a_pass_that_was_not_given_out_counts_for_nothing),
        with_rig(a_refused_key_gets_no_pass),
        with_rig(a_file_that_cannot_be_read_lets_nobody_in),
        with_rig(a_removed_key_is_out_while_another_file_cannot_be_read),
        with_rig(a_file_that_cannot_be_read_at_the_start_lets_nobody_in),
        with_rig(without_a_listing_known_keys_are_judged_one_by_one),
        with_rig(without_descriptors_removed_keys_are_out),
        with_rig(all_keys_up_to_the_bound_count),
        with_rig(above_the_bound_removed_keys_are_out_and_no_new_one_is_taken),
        with_rig(long_names_are_names),
        with_rig(a_long_name_in_a_deep_folder_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
