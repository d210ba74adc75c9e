/* The line rate as octd measures it, from looks at messages of the test's own clocks. */
#include "daemon/line_rate.h"
#include "test/rig/tap.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)

enum { N = 8, M = 20 };

struct stand {
    struct oct_driver_watch watch;
    struct oct_line_rate rate;
    struct oct_config config;
    struct oct_lines_header h;
    uint64_t now_ns;
};

static void open_stand(struct stand *s)
{
    memset(s, 0, sizeof(*s));
    oct_driver_watch_init(&s->watch);
    oct_config_init(&s->config);
    s->now_ns = 7 * S;
    s->h = (struct oct_lines_header){.n_lines = M, .n_samples = N, .format = 2, .epoch = 3};
}

/* Messages at this rate for a while, octd's looks between. clock: of the camera over octd's; 0: it
 * stands. */
static void send_for(struct stand *s, double hz, double clock, uint64_t ns)
{
    const uint16_t lines[M * N] = {0};
    const uint64_t end_ns = s->now_ns + ns;
    while (s->now_ns < end_ns) {
        s->h.time_ns = (uint64_t)((double)s->now_ns * clock);
        oct_driver_watch_take(&s->watch, &(struct oct_driver_take){.header = &s->h,
                                                                   .payload = lines,
                                                                   .bscan_lines = M,
                                                                   .arrival_ns = s->now_ns});
        oct_line_rate_look(&s->rate, &s->watch, &s->config, s->now_ns);
        s->h.sequence++;
        s->h.first_line += M;
        s->now_ns += (uint64_t)(M * 1e9 / hz);
    }
}

static void restart(struct stand *s)
{
    s->h.epoch++;
    s->h.sequence = s->h.first_line = 0;
}

static double hz(const struct stand *s)
{
    return oct_line_rate_hz(&s->rate, &s->config);
}

TEST(a_rate_is_taken_once_two_measurements_agree)
{
    struct stand s;
    for (unsigned clock = 0; clock < 3; clock++) { /* standing, right, in microseconds */
        open_stand(&s);
        assert_string_equal(oct_line_rate_from(&s.rate, &s.config), "default");
        send_for(&s, 2000, clock == 2 ? 1e-3 : clock, S);
        assert_string_equal(oct_line_rate_from(&s.rate, &s.config), "camera");
        send_for(&s, 2000, clock == 2 ? 1e-3 : clock, 2 * S);
        assert_float_equal(hz(&s), 2000, 1);
        oct_driver_watch_finish(&s.watch);
    }
}

/* The rate of a sender that is gone holds no longer than it takes to measure the next one. */
TEST(another_sender_is_measured_anew_at_once)
{
    struct stand s;
    for (unsigned clock = 0; clock < 2; clock++) {
        open_stand(&s);
        send_for(&s, 15600, clock, 4 * S);
        assert_float_equal(hz(&s), 15600, 20);
        restart(&s);
        send_for(&s, 20400, clock, clock ? 400 * MS : 700 * MS);
        assert_float_equal(hz(&s), 20400, 30);
        s.h.flags = OCT_LINES_STARTS; /* another acquisition of the same sender */
        s.h.first_line = 0;
        send_for(&s, 9000, clock, M);
        s.h.flags = 0;
        send_for(&s, 9000, clock, clock ? 400 * MS : 700 * MS);
        assert_float_equal(hz(&s), 9000, 30);
        oct_driver_watch_finish(&s.watch);
    }
}

/* What a stall let queue up comes at any rate, by octd's clock; a pause is no rate either. */
TEST(one_wild_measurement_is_no_rate)
{
    struct stand s;
    open_stand(&s);
    send_for(&s, 2000, 0, 4 * S);
    restart(&s);
    send_for(&s, 200000, 0, 250 * MS);
    send_for(&s, 2000, 0, 150 * MS);
    assert_float_equal(hz(&s), 2000, 1);
    s.now_ns += 3 * S;
    send_for(&s, 2000, 0, 4 * S);
    assert_float_equal(hz(&s), 2000, 1);
    oct_driver_watch_finish(&s.watch);
}

/* Who never sends two messages of one acquisition cannot be measured; the one before cannot vouch
 * for it. */
TEST(what_cannot_be_measured_is_not_known)
{
    struct stand s;
    open_stand(&s);
    send_for(&s, 15600, 1, 4 * S);
    for (unsigned k = 0; k < 400; k++) {
        restart(&s);
        send_for(&s, 2000, 1, 1);
    }
    assert_string_equal(oct_line_rate_from(&s.rate, &s.config), "default");
    oct_driver_watch_finish(&s.watch);
}

TEST(a_configured_rate_stands)
{
    struct stand s;
    open_stand(&s);
    assert_int_equal(oct_config_set_assignment(&s.config, "scan.line_rate_hz=5000", NULL), OCT_OK);
    send_for(&s, 2000, 1, 4 * S);
    assert_float_equal(hz(&s), 5000, 0);
    assert_string_equal(oct_line_rate_from(&s.rate, &s.config), "config");
    oct_driver_watch_finish(&s.watch);
}
