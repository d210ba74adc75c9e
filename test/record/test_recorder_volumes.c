/* Recordings that end by themselves behind so many whole volumes, and the names of files. */
#include "test/rig/recorder_rig.h"

#include <string.h>

static struct oct_record_settings settings_of(const struct rig *r, uint32_t volumes)
{
    return (struct oct_record_settings){.directory = r->directory,
                                        .spectra = true,
                                        .bscans = true,
                                        .sync_interval_s = r->sync_interval_s,
                                        .config_text = "",
                                        .eye = "OS",
                                        .pseudonym = "P 7/../x",
                                        .name_has_pseudonym = true,
                                        .refractive_index = 1.3,
                                        .volumes = volumes};
}

static void start_volumes(struct rig *r, uint32_t volumes)
{
    const struct oct_record_settings settings = settings_of(r, volumes);
    must(oct_recorder_start(r->recorder, &settings, &failure));
}

/* The recorder has seen every B-scan up to this slot. */
static void await_passed(struct rig *r, uint64_t n)
{
    struct oct_recorder_status s;
    WAIT(r, s, s.next_slot >= n);
}

static void expect_account(const struct oct_recorder_status *s, uint64_t offered, uint64_t written)
{
    uint64_t dropped = 0;
    for (int i = 0; i < OCT_N_LOSSES; i++)
        dropped += s->account.dropped[i];
    assert_int_equal(s->account.offered, offered);
    assert_int_equal(s->account.written, written);
    assert_int_equal(s->account.pending, 0);
    assert_int_equal(dropped, offered - written);
}

RIG_TEST(a_recording_of_two_volumes_has_two)
{
    struct oct_recorder_status s;
    char paths[8][256];
    start_volumes(r, 2);
    assert_int_equal(status_of(r).volumes, 2);
    put(r, 1, 0, 4 * V + 1); /* the camera goes on */
    WAIT(r, s, !s.active);
    await_passed(r, 4 * V + 1);
    s = status_of(r);
    assert_false(s.stopping || s.file_open);
    assert_int_equal(s.failure.code, OCT_OK);
    assert_true(s.files == 2 && s.files_incomplete == 0 && s.volumes == 2);
    assert_true(s.bscans_written == 2 * V && s.bscans_unsaved == 0);
    expect_account(&s, 2 * V, 2 * V);
    assert_int_equal(list_files(r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, V);
    expect_file(paths[1], 1, 1, 0, V);
    start_volumes(r, 1); /* again, while volume 4 is under way */
    put(r, 1, 4 * V + 1, 6 * V);
    WAIT(r, s, !s.active);
    assert_true(s.files == 1 && s.files_incomplete == 0 && s.volumes_written == 3);
    expect_account(&s, V, V);
}

RIG_TEST(a_volume_that_is_not_whole_does_not_count)
{
    struct oct_recorder_status s;
    start_volumes(r, 2);
    put(r, 1, 0, V - 1); /* one is missing */
    put(r, 1, V, 2 * V);
    put_raw(r, 1, 2 * V); /* one has no picture */
    put_image_of(r, 1, 2 * V, OCT_E_BACKEND);
    put(r, 1, 2 * V + 1, 3 * V);
    put(r, 1, 3 * V, 5 * V);
    WAIT(r, s, !s.active);
    assert_true(s.files == 4 && s.files_incomplete == 2);
    expect_account(&s, 4 * V, 4 * V - 2);
}

RIG_TEST(the_number_may_change_while_it_records)
{
    struct oct_recorder_status s;
    oct_recorder_set_volumes(r->recorder, 1); /* nothing is recorded: it concerns nobody */
    assert_int_equal(status_of(r).volumes, 0);
    start_volumes(r, 0);
    put(r, 1, 0, 2 * V + 2);
    await_passed(r, 2 * V + 2);
    oct_recorder_set_volumes(r->recorder, 1); /* there are two already: the third is finished */
    await_passed(r, 2 * V + 2);
    assert_true(status_of(r).active);
    put(r, 1, 2 * V + 2, 4 * V);
    WAIT(r, s, !s.active);
    assert_true(s.files == 3 && s.files_incomplete == 0);
    expect_account(&s, 3 * V, 3 * V);

    await_passed(r, 4 * V);
    start_volumes(r, 1);
    oct_recorder_set_volumes(r->recorder, 3); /* more */
    put(r, 1, 4 * V, 6 * V);
    WAIT(r, s, s.files == 2);
    assert_true(s.active);
    oct_recorder_set_volumes(r->recorder, 2); /* between two volumes, without a further B-scan */
    WAIT(r, s, !s.active);
    expect_account(&s, 2 * V, 2 * V);

    start_volumes(r, 1);
    oct_recorder_set_volumes(r->recorder, 0); /* until it is stopped */
    put(r, 1, 6 * V, 8 * V);
    WAIT(r, s, s.files == 2);
    sleep_us(50000);
    assert_true(status_of(r).active);
}

RIG_TEST(a_piece_ends_it_when_there_are_enough)
{
    struct oct_recorder_status s;
    start_volumes(r, 0);
    put(r, 1, 0, V + 2);
    await_passed(r, V + 2);
    oct_recorder_set_volumes(r->recorder, 1);
    put(r, 1, 2 * V, 2 * V + 3); /* the rest of the second is lost: the third is not begun */
    WAIT(r, s, !s.active);
    assert_true(s.files == 2 && s.files_incomplete == 1);
    expect_account(&s, 2 * V, V + 2);
}

RIG_TEST(a_stop_comes_first)
{
    struct oct_recorder_status s;
    start_volumes(r, 3);
    put(r, 1, 0, V + 2);
    oct_recorder_stop(r->recorder);
    WAIT(r, s, !s.active);
    assert_true(s.files == 2 && s.files_incomplete == 1);
    expect_account(&s, V + 2, V + 2);
    put(r, 1, V + 2, 2 * V);
    await_passed(r, 2 * V);
    start_volumes(r, 1); /* counts anew */
    put(r, 1, 2 * V, 4 * V);
    WAIT(r, s, !s.active);
    assert_true(s.files == 1 && s.files_incomplete == 0);
}

/* The file's name behind the folder's. */
static const char *name_of(const struct oct_record_settings *settings, char *path, size_t bytes)
{
    oct_record_path(settings, "v0000", path, bytes);
    return strrchr(path, '/') + 1;
}

TEST(names_have_the_pseudonym_when_they_are_told_to)
{
    char path[600], long_text[128];
    struct rig r = {.directory = "/records"};
    struct oct_record_settings s = settings_of(&r, 0);
    s.name_has_pseudonym = false;
    s.pseudonym = "P 7/..\xc3\xbc\xe6\x97\xa5-x";
    assert_memory_equal(name_of(&s, path, sizeof(path)), "OS_20", 5);
    assert_null(strstr(path, "P"));
    s.name_has_pseudonym = true;
    assert_memory_equal(name_of(&s, path, sizeof(path)), "P-7---\xc3\xbc\xe6\x97\xa5-x_OS_20", 18);
    s.eye = "";
    memset(long_text, 0, sizeof(long_text));
    for (size_t i = 0; i + 3 < sizeof(long_text); i += 3)
        memcpy(long_text + i, "\xe6\x97\xa5", 3);
    s.pseudonym = long_text;
    const char *name = name_of(&s, path, sizeof(path));
    assert_memory_equal(name, long_text, strlen(long_text));
    assert_memory_equal(name + strlen(long_text), "_20", 3);
    assert_true(strlen(name) < 255 - strlen(".part"));
}
