/* Who may come in, asked as ZeroMQ asks: connections over descriptors that are used again, passes
 * that come late, keys that go. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "test/rig/access_rig.h"
#include "test/rig/tap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

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

static int set_up(void **state)
{
    atomic_store(&folders_fail, false);
    return make_rig(state);
}

#define WITH_RIG(name) TEST_WITH(name, set_up, drop_rig)

WITH_RIG(a_connection_goes_with_its_key)
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

WITH_RIG(a_connection_that_said_nothing_goes_with_any_key)
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

WITH_RIG(a_late_message_leaves_the_next_connection_its_own)
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

WITH_RIG(a_late_message_before_the_first_does_not_name_the_next_connection)
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

WITH_RIG(a_late_message_of_a_removed_key_cuts_nobody_else)
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

WITH_RIG(messages_of_a_removed_key_are_refused_one_by_one)
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

WITH_RIG(a_pass_that_was_not_given_out_counts_for_nothing)
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

WITH_RIG(a_refused_key_gets_no_pass)
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

WITH_RIG(a_file_that_cannot_be_read_lets_nobody_in)
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

WITH_RIG(a_removed_key_is_out_while_another_file_cannot_be_read)
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

WITH_RIG(a_file_that_cannot_be_read_at_the_start_lets_nobody_in)
{
    struct rig *rig = *state;
    oct_access_destroy(rig->access);
    spoil_key(rig, ALICE);
    must(oct_access_create(&rig->access, rig->secret, rig->allowed, &failure));
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
WITH_RIG(without_a_listing_known_keys_are_judged_one_by_one)
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
WITH_RIG(without_descriptors_removed_keys_are_out)
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
