/* The file of shared memory itself: its name, its owners, its slots. */
#include "pipeline/client.h"
#include "pipeline/shm_driver.h"
#include "pipeline/shm_store.h"
#include "test/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

static void names_are_one_word_and_no_path(void **state)
{
    static const char *const good[] = {"a", "lab-1_x.y", "A0"};
    static const char *const bad[] = {"", "a/b", "/a", "..", ".a", "a b", "a\n", "\xc3\xa4"};
    char most[OCT_SHM_NAME_BYTES + 1];
    (void)state;
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

static void a_stale_file_is_replaced_and_a_served_or_foreign_one_left_alone(void **state)
{
    struct rig r;
    struct oct_shm_store *store, *second;
    struct oct_error err;
    (void)state;
    name_rig(&r);
    const struct oct_shm_options shm = {
        .name = r.name, .group = "", .n_slots = SLOTS, .n_samples = N, .slot_bytes = 4096};
    int stale = shm_open(r.object, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(stale >= 0);
    assert_int_equal(oct_shm_store_create(&store, &shm, &err), OCT_OK);
    assert_int_equal(oct_shm_store_create(&second, &shm, &err), OCT_E_IO);
    assert_non_null(strstr(err.text, "another octd"));
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
        assert_int_equal(oct_shm_store_create(&store, &shm, &err), OCT_E_IO);
        assert_non_null(strstr(err.text, "another user"));
        close(fd);
        assert_int_equal(shm_unlink(r.object), 0); /* it was still there */
    }
    const struct oct_shm_options nobody = {
        .name = r.name, .group = "no-such-group", .n_slots = 1, .n_samples = N, .slot_bytes = 1};
    assert_int_equal(oct_shm_store_create(&store, &nobody, &err), OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "no-such-group"));
    assert_int_equal(shm_open(r.object, O_RDWR, 0), -1);
}

/* The recorder stalls: messages wait for seconds, and their slots are not taken for lost. */
static void slots_whose_messages_wait_are_not_taken_back(void **state)
{
    struct oct_shm_store *store;
    struct oct_shm_driver *driver;
    struct rig r;
    uint32_t slot;
    uint8_t d[OCT_SHM_DESCRIPTOR_BYTES];
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_one_word_and_no_path),
        cmocka_unit_test(a_stale_file_is_replaced_and_a_served_or_foreign_one_left_alone),
        cmocka_unit_test(slots_whose_messages_wait_are_not_taken_back),
    };
    return cmocka_run_group_tests_name("shared memory, the file", tests, NULL, NULL);
}
