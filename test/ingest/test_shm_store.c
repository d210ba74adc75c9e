/* The file of shared memory itself: its name, its owners, its slots. */
#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "pipeline/client/shm_driver.h"
#include "pipeline/ingest/shm_store.h"
#include "test/rig/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { N = 832, SLOTS = 8 };

struct rig {
    char name[40], object[OCT_SHM_PATH_BYTES];
};

static void name_rig(struct rig *r)
{
    static unsigned n_made;
    snprintf(r->name, sizeof(r->name), "store-%d-%u", (int)getpid(), n_made++);
    oct_shm_object_of(r->name, r->object);
}

TEST(names_are_one_word_and_no_path)
{
    static const char *const good[] = {"a", "lab-1_x.y", "A0"};
    static const char *const bad[] = {"", "a/b", "/a", "..", ".a", "a b", "a\n", "\xc3\xa4"};
    char most[OCT_SHM_NAME_BYTES + 1];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_null(oct_shm_bad_name(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char endpoint[80];
        struct oct_client *client;
        assert_non_null(oct_shm_bad_name(bad[i]));
        snprintf(endpoint, sizeof(endpoint), "shm://%s", bad[i]);
        assert_int_equal(oct_client_connect(&client, endpoint, N, NULL, NULL, 0),
                         OCT_CLIENT_REFUSED);
    }
    memset(most, 'a', sizeof(most));
    most[OCT_SHM_NAME_BYTES] = '\0';
    assert_non_null(oct_shm_bad_name(most));
    most[OCT_SHM_NAME_BYTES - 1] = '\0';
    assert_null(oct_shm_bad_name(most));
}

TEST(a_stale_file_is_replaced_and_a_served_or_foreign_one_left_alone)
{
    struct rig r;
    struct oct_shm_store *store, *second;
    name_rig(&r);
    const struct oct_shm_options shm = {
        .name = r.name, .group = "", .n_slots = SLOTS, .n_samples = N, .slot_bytes = 4096};
    int stale = shm_open(r.object, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(stale >= 0);
    must(oct_shm_store_create(&store, &shm, &failure));
    must_fail(oct_shm_store_create(&second, &shm, &failure), OCT_E_IO, "another octd");
    struct stat st;
    int fd = shm_open(r.object, O_RDWR, 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close(fd);
    oct_shm_store_destroy(store);
    assert_int_equal(shm_open(r.object, O_RDWR, 0), -1);
    close(stale);
    if (geteuid() == 0) {
        fd = shm_open(r.object, O_RDWR | O_CREAT | O_EXCL, 0600);
        assert_int_equal(fchown(fd, 12345, (gid_t)-1), 0);
        must_fail(oct_shm_store_create(&store, &shm, &failure), OCT_E_IO, "another user");
        close(fd);
        assert_int_equal(shm_unlink(r.object), 0); /* it was still there */
    }
    const struct oct_shm_options nobody = {
        .name = r.name, .group = "no-such-group", .n_slots = 1, .n_samples = N, .slot_bytes = 1};
    must_fail(oct_shm_store_create(&store, &nobody, &failure), OCT_E_CONFIG, "no-such-group");
    assert_int_equal(shm_open(r.object, O_RDWR, 0), -1);
}

/* The recorder stalls: messages wait for seconds, and their slots are not taken for lost. */
TEST(slots_whose_messages_wait_are_not_taken_back)
{
    struct oct_shm_store *store;
    struct oct_shm_driver *driver;
    struct rig r;
    uint32_t slot;
    uint8_t d[OCT_SHM_DESCRIPTOR_BYTES];
    name_rig(&r);
    const struct oct_shm_options shm = {
        .name = r.name, .group = "", .n_slots = 2, .n_samples = N, .slot_bytes = 4096};
    assert_int_equal(oct_shm_store_create(&store, &shm, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_create(&driver, r.name, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_attach(driver, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_claim(driver, &slot), OCT_OK);
    oct_shm_driver_post(driver, slot, 0x101, 1, d);
    for (uint64_t s = 1; s < 100; s++) /* seconds in which nothing was ever drained */
        oct_shm_store_reclaim(store, s * 1000000000u);
    assert_int_equal(oct_shm_store_reclaimed(store), 0);
    oct_shm_store_drained(store);
    oct_shm_store_reclaim(store, 100 * UINT64_C(1000000000));
    assert_int_equal(oct_shm_store_reclaimed(store), 1);
    oct_shm_driver_destroy(driver);
    oct_shm_store_destroy(store);
}

/* A newcomer's way in: the name, the header, the size. */
static bool lets_in(const struct rig *r)
{
    struct oct_shm_driver *driver;
    assert_int_equal(oct_shm_driver_create(&driver, r->name, NULL), OCT_OK);
    bool attached = oct_shm_driver_attach(driver, NULL) == OCT_OK;
    oct_shm_driver_destroy(driver);
    return attached;
}

TEST(what_others_do_to_the_file_is_mended_or_told)
{
    struct oct_shm_store *store, *second;
    struct rig r;
    uint64_t now_ns = oct_clock_ns();
    name_rig(&r);
    const struct oct_shm_options shm = {
        .name = r.name, .group = "", .n_slots = 2, .n_samples = N, .slot_bytes = 4096};
    assert_int_equal(oct_shm_store_create(&store, &shm, NULL), OCT_OK);
    int fd = shm_open(r.object, O_RDWR, 0);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    for (unsigned k = 0; k < 4; k++) {
        if (k == 0)
            assert_int_equal(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, 0), 8);
        else if (k == 1)
            assert_int_equal(pwrite(fd, "\1\2\3\4\5\6\7", 8, 24), 8); /* bytes a slot */
        else if (k == 2)
            assert_int_equal(ftruncate(fd, st.st_size + 4096), 0);
        else
            assert_true(ftruncate(fd, 0) == 0 && ftruncate(fd, st.st_size) == 0);
        assert_false(lets_in(&r));
        oct_shm_store_reclaim(store, now_ns += UINT64_C(1000000000));
        assert_true(lets_in(&r));
        assert_int_equal(oct_shm_store_mended(store), k + 1);
        assert_false(oct_shm_store_is_broken(store) || oct_shm_store_is_unnamed(store));
    }
    struct stat grown;
    assert_int_equal(fstat(fd, &grown), 0);
    assert_true(grown.st_blocks >= st.st_blocks); /* room that was taken is taken again */
    assert_int_equal(shm_unlink(r.object), 0);
    oct_shm_store_reclaim(store, now_ns += UINT64_C(1000000000));
    assert_true(oct_shm_store_is_unnamed(store));
    assert_int_equal(oct_shm_store_create(&second, &shm, NULL), OCT_OK);
    oct_shm_store_destroy(store); /* leaves the name to who has it now */
    assert_true(lets_in(&r));
    oct_shm_store_destroy(second);
    close(fd);
}

/* Closing a file does not let go of its lock while it is mapped. */
TEST(drivers_see_that_a_store_with_kept_slots_has_gone)
{
    const struct oct_lines_header header = {
        .n_lines = 1, .n_samples = N, .format = OCT_LINES_U16, .epoch = 7};
    uint8_t bytes[OCT_LINES_HEADER_BYTES], descriptor[OCT_SHM_DESCRIPTOR_BYTES];
    struct oct_shm_store *store;
    struct oct_shm_driver *driver;
    struct oct_shm_block block;
    struct rig r;
    uint32_t slot, other;
    name_rig(&r);
    const struct oct_shm_options shm = {
        .name = r.name, .group = "", .n_slots = 2, .n_samples = N, .slot_bytes = 4096};
    assert_int_equal(oct_shm_store_create(&store, &shm, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_create(&driver, r.name, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_attach(driver, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_claim(driver, &slot), OCT_OK);
    oct_shm_driver_post(driver, slot, oct_shm_tag(7, 0), 1, descriptor);
    oct_lines_encode(&header, bytes);
    assert_int_equal(
        oct_shm_store_look(store, bytes, sizeof(bytes), descriptor, sizeof(descriptor), &block),
        OCT_BAD_NONE);
    oct_shm_store_keep(store, &block);
    assert_true(oct_shm_driver_is_served(driver));
    /* Nor is its slot given away when somebody has written over its word. */
    int fd = shm_open(r.object, O_RDWR, 0);
    assert_int_equal(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, OCT_SHM_PAGE + 8 * (off_t)slot), 8);
    close(fd);
    oct_shm_store_reclaim(store, oct_clock_ns());
    assert_int_equal(oct_shm_driver_claim(driver, &other), OCT_OK);
    assert_int_not_equal(other, slot);
    oct_shm_store_destroy(store);
    assert_false(oct_shm_driver_is_served(driver));
    oct_shm_store_give_back(store, slot);
    oct_shm_driver_destroy(driver);
}

static void on_alarm(int number)
{
    (void)number;
}

/* Nobody takes: what is more than all slots is taken in part, and the numbers say so. */
TEST(the_rest_of_a_block_beyond_all_slots_is_dropped_and_counted)
{
    enum { PER_SLOT = 4096 / (64 * 2), LINES = SLOTS * PER_SLOT + 100 };
    static const uint16_t lines[LINES * 64];
    const struct sigaction wake = {.sa_handler = on_alarm};
    const struct itimerval often = {.it_value = {1, 0}, .it_interval = {0, 20000}},
                           never = {{0, 0}, {0, 0}};
    struct oct_shm_store *store;
    struct oct_client_counters c;
    struct rig r;
    sigaction(SIGALRM, &wake, NULL);
    for (int patient = 0; patient < 2; patient++) {
        char endpoint[80];
        struct oct_client *client;
        name_rig(&r);
        const struct oct_shm_options shm = {
            .name = r.name, .group = "", .n_slots = SLOTS, .n_samples = 64, .slot_bytes = 4096};
        const struct oct_client_options options = {
            .drop_when_full = !patient, .wait_ms = 10, .linger_ms = 30};
        assert_int_equal(oct_shm_store_create(&store, &shm, NULL), OCT_OK);
        snprintf(endpoint, sizeof(endpoint), "shm://%s", r.name);
        assert_int_equal(oct_client_connect(&client, endpoint, 64, &options, NULL, 0),
                         OCT_CLIENT_OK);
        uint16_t *borrowed;
        assert_int_equal(oct_client_borrow(client, LINES, &borrowed), OCT_CLIENT_REFUSED);
        if (patient) /* a signal that finds it waiting, and the rest is given up soon */
            setitimer(ITIMER_REAL, &often, NULL);
        uint64_t begin = oct_clock_ns();
        assert_int_equal(oct_client_send(client, lines, LINES, 0), OCT_CLIENT_DROPPED);
        uint64_t took_ns = oct_clock_ns() - begin;
        setitimer(ITIMER_REAL, &never, NULL);
        assert_true(patient ? took_ns > 500000000 && took_ns < 5000000000 : took_ns < 500000000);
        assert_non_null(strstr(oct_client_error(client), "took only 256 of the 356 lines"));
        oct_client_get_counters(client, &c);
        assert_int_equal(c.messages_sent, SLOTS);
        assert_int_equal(c.lines_sent, SLOTS * PER_SLOT);
        assert_int_equal(c.lines_dropped, 100);
        assert_int_equal(oct_client_next_line(client), LINES);
        oct_client_close(client);
        oct_shm_store_destroy(store);
    }
}
