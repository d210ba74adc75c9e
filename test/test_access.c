/* Who may come in, asked as ZeroMQ asks: connections over descriptors that are used again, passes
 * that come late, keys that go. */
#include "pipeline/access.h"
#include "test/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    oct_access_destroy(rig->access);
    for (int i = 0; i < N_CLIENTS; i++) {
        key_path(rig, i, path);
        unlink(path);
    }
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

static void remove_key(const struct rig *rig, int who)
{
    char path[400];
    uint64_t before = counts(rig).n_allowed;
    key_path(rig, who, path);
    assert_int_equal(unlink(path), 0);
    for (int ms = 0; counts(rig).n_allowed == before; ms += 10) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
