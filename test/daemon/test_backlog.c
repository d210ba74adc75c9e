/* Whether a recording waits for its disk, as the daemon judges it from look to look. */
#include "daemon/backlog.h"
#include "pipeline/base/log.h"
#include "test/rig/tap.h"

#include <stdint.h>

#define MS UINT64_C(1000000)

enum { ROOM = 100 };

struct scene {
    struct oct_backlog backlog;
    struct oct_recorder_status recorder;
    uint64_t now_ns;
};

static struct scene recording(void)
{
    return (struct scene){
        .recorder = {.active = true, .keeper = {.buffer_bscans = ROOM}},
        .now_ns = 5000 * MS,
    };
}

/* Looks every 10 ms for so long; each time n_passed more have passed and n_dropped were dropped.
 * Returns after how many ms the judgement first changed; so many if it did not. */
static unsigned look(struct scene *s, unsigned ms, unsigned n_waiting, unsigned n_passed,
                     unsigned n_dropped)
{
    const bool before = s->backlog.disk_slow;
    unsigned changed_ms = ms;
    for (unsigned at = 10; at <= ms; at += 10) {
        s->now_ns += 10 * MS;
        s->recorder.keeper.n_waiting = n_waiting;
        s->recorder.bscans_passed += n_passed;
        s->recorder.keeper.n_dropped += n_dropped;
        oct_backlog_look(&s->backlog, &s->recorder, s->now_ns);
        if (s->backlog.disk_slow != before && changed_ms == ms)
            changed_ms = at;
    }
    return changed_ms;
}

TEST(a_disk_that_keeps_up_is_not_called_slow)
{
    struct scene s = recording();
    for (int k = 0; k < 50; k++) {
        look(&s, 200, 0, 0, 0);  /* no lines come */
        look(&s, 200, 99, 1, 0); /* much waits, and moves */
        look(&s, 700, 60, 0, 0); /* a rest such as closing a file takes */
        look(&s, 10, 100, 1, 0); /* full for a moment */
        look(&s, 200, 50, 1, 0);
        assert_false(s.backlog.disk_slow);
    }
}

TEST(full_memory_and_a_recorder_that_stands_still_are_told_within_a_second)
{
    struct scene s = recording();
    look(&s, 1000, 10, 1, 0);
    assert_in_range(look(&s, 3000, 1, 0, 0), 100, 1000); /* still, however little waits */
    assert_true(s.backlog.disk_slow);
    s = recording();
    look(&s, 1000, 10, 1, 0);
    look(&s, 10, ROOM, 1, 0);
    assert_in_range(look(&s, 3000, ROOM - 3, 1, 0), 100, 1000); /* full as good as always */
    s = recording();
    look(&s, 1000, 10, 1, 0);
    assert_int_equal(look(&s, 100, 10, 1, 1), 10); /* dropped: at once */
}

TEST(it_goes_when_the_disk_is_back_for_a_second_and_not_between_two_stalls)
{
    struct scene s = recording();
    look(&s, 2000, ROOM, 0, 1);
    for (int k = 0; k < 20; k++) {
        look(&s, 400, ROOM / 2 - 1, 1, 0);
        look(&s, 600, ROOM / 2 - 1, 0, 0);
        assert_true(s.backlog.disk_slow);
    }
    assert_in_range(look(&s, 3000, 20, 1, 0), 500, 1500);
    assert_false(s.backlog.disk_slow);
}

TEST(it_ends_with_the_recording_and_what_passes_without_one_is_nobodys_loss)
{
    struct scene s = recording();
    look(&s, 2000, ROOM, 0, 1);
    s.recorder.active = false;
    assert_int_equal(look(&s, 100, ROOM, 0, 1), 10);
    look(&s, 5000, ROOM, 0, 1);
    assert_false(s.backlog.disk_slow);
    s.recorder.active = true;
    assert_int_equal(look(&s, 100, 1, 1, 0), 100);
    s.recorder = (struct oct_recorder_status){
        .active = true, .keeper = {.buffer_bscans = ROOM}}; /* built anew: counts begin at 0 */
    assert_int_equal(look(&s, 100, 0, 0, 0), 100);
    assert_false(s.backlog.disk_slow);
}

TEST(a_daemon_that_was_not_run_for_long_blames_no_disk)
{
    struct scene s = recording();
    look(&s, 100, 1, 1, 0);
    for (int k = 0; k < 8; k++) {
        s.now_ns += 5000 * MS;
        oct_backlog_look(&s.backlog, &s.recorder, s.now_ns);
    }
    assert_false(s.backlog.disk_slow);
}

TEST(what_comes_at_once_after_a_pause_blames_no_disk)
{
    struct scene s = recording();
    look(&s, 1000, 10, 1, 0);
    s.recorder.keeper.n_pauses = 1;
    s.recorder.keeper.pause_ns = 3000 * MS;
    s.recorder.keeper.catches_up = true;
    for (int k = 0; k < 200; k++) {
        s.recorder.keeper.n_paused += 5; /* of the five that look drops */
        look(&s, 10, ROOM, 1, 5);
        assert_false(s.backlog.disk_slow);
    }
    assert_in_range(look(&s, 3000, ROOM, 0, 0), 100, 1000); /* it stands still all the same */
    s = recording();
    look(&s, 1000, 10, 1, 0);
    s.recorder.keeper.catches_up = true;
    assert_int_equal(look(&s, 100, ROOM, 1, 1), 10); /* dropped for the disk: at once */
    s = recording();
    look(&s, 1000, 10, 1, 0);
    s.recorder.keeper.catches_up = false; /* caught up, and still full */
    assert_in_range(look(&s, 3000, ROOM, 1, 0), 100, 1000);
}
