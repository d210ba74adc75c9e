/* Who is heard when several senders push: the rule for epochs of assembler.h, in the cases that are
 * drawn there and in every order in which three senders' messages can come. */
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/assembler.h"
#include "test/rig/assembler_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stddef.h>
#include <string.h>

static const uint64_t MS = 1000000;

/* One sender: whole B-scans, one a message. */
struct sender {
    uint32_t epoch;
    uint64_t sequence;
    uint64_t n_taken, n_refused;
};

static enum oct_bad send(struct assembler_rig *r, struct sender *s, uint16_t flags,
                         uint64_t arrival_ns)
{
    struct oct_lines_header h = {
        .sequence = s->sequence,
        .time_ns = s->sequence * UINT64_C(0x9e3779b97f4a7c15) * s->epoch, /* nonsense: no matter */
        .first_line = s->sequence * M,
        .n_lines = M,
        .n_samples = N,
        .format = OCT_LINES_U16,
        .flags = flags,
        .epoch = s->epoch,
    };
    uint64_t slot, before = r->counts->bscans_delivered;
    enum oct_bad bad = send_message(r, &h, arrival_ns);
    s->sequence++;
    s->n_taken += bad == OCT_BAD_NONE;
    s->n_refused += bad == OCT_BAD_EPOCH;
    assert_true(bad == OCT_BAD_NONE || bad == OCT_BAD_EPOCH);
    for (uint64_t n = r->counts->bscans_delivered - before; n > 0; n--) {
        assert_int_equal(oct_ring_read(r->reader, 0, &slot), OCT_OK);
        oct_ring_release(r->reader);
    }
    return bad;
}

/* n messages, one each step_ns, the first at *now_ns. */
static void send_many(struct assembler_rig *r, struct sender *s, unsigned n, uint64_t step_ns,
                      uint64_t *now_ns)
{
    for (; n > 0; n--, *now_ns += step_ns)
        send(r, s, 0, *now_ns);
}

/* Every message is taken or refused, every line of those taken is somewhere, every B-scan too. */
static void expect_sums(const struct assembler_rig *r, uint64_t n_sent)
{
    const struct oct_ingest_counts *c = r->counts;
    assert_int_equal(c->messages + c->messages_bad[OCT_BAD_EPOCH], n_sent);
    assert_int_equal(c->lines_received + c->lines_late + c->lines_duplicate + c->lines_dropped,
                     c->messages * M);
    assert_int_equal(c->bscans_begun, c->bscans_delivered + c->bscans_dropped);
    assert_int_equal(c->bscans_delivered * M, c->lines_received);
}

/* ---- as they were reported ---- */

TEST(one_message_of_the_sender_before_the_last_silences_nobody)
{
    struct sender first = {.epoch = 1001}, second = {.epoch = 1002}, third = {.epoch = 1003};
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &first, 20, 10 * MS, &now);
    send_many(&r, &second, 20, 10 * MS, &now);
    send_many(&r, &third, 1, 10 * MS, &now);
    send(&r, &first, 0, now);
    send_many(&r, &third, 500, 10 * MS, &now);
    assert_int_equal(first.n_refused, 1);
    assert_int_equal(third.n_refused, 0);
    assert_int_equal(r.counts->acquisitions, 3);
    expect_sums(&r, 20 + 20 + 1 + 1 + 500);
    close_assembler(&r);
}

TEST(a_camera_is_back_when_a_second_sender_was_killed)
{
    struct sender camera = {.epoch = 7}, second = {.epoch = 8};
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &camera, 100, 10 * MS, &now);
    send(&r, &second, OCT_LINES_STARTS, now - 3 * MS);
    send(&r, &second, 0, now - 2 * MS);
    send(&r, &second, 0, now - 1 * MS);
    send_many(&r, &camera, 1000, 10 * MS, &now);
    assert_int_equal(second.n_refused, 0);
    assert_int_equal(camera.n_refused, OCT_TAKEOVER_NS / (10 * MS));
    assert_int_equal(r.counts->acquisitions, 3);
    assert_int_equal(r.counts->epoch, 7);
    expect_sums(&r, 100 + 3 + 1000);
    close_assembler(&r);
}

/* What queued up meanwhile comes at one go, a message of each connection in turn. */
static void stall(const unsigned order[3])
{
    struct sender senders[3] = {{.epoch = 1001}, {.epoch = 1002}, {.epoch = 1003}};
    struct sender *third = &senders[2];
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &senders[0], 50, 10 * MS, &now);
    now += 4000 * MS;
    for (unsigned i = 0; i < 130; i++)
        for (unsigned k = 0; k < 3; k++)
            send_many(&r, &senders[order[k]], 1, MS / 20, &now);
    send_many(&r, third, 1000, 10 * MS, &now);
    assert_true(third->n_refused <= 130 + OCT_TAKEOVER_NS / (10 * MS));
    assert_true(third->n_taken >= 1000 - OCT_TAKEOVER_NS / (10 * MS));
    assert_int_equal(r.counts->epoch, 1003);
    assert_true(r.counts->acquisitions <= 4);
    expect_sums(&r, 50 + 3 * 130 + 1000);
    close_assembler(&r);
}

TEST(after_a_stall_with_two_restarts_the_last_sender_is_heard)
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++)
            if (i != j)
                stall((const unsigned[3]){i, j, 3 - i - j});
}

/* ---- the other rows of the table ---- */

TEST(of_two_that_go_on_the_one_that_began_last_is_heard)
{
    struct sender older = {.epoch = 1}, newer = {.epoch = 2};
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &older, 10, 10 * MS, &now);
    for (unsigned i = 0; i < 1000; i++) { /* either pauses at times, not both at once */
        send(&r, &newer, 0, now += i % 50 == 0 ? 150 * MS : 5 * MS);
        send(&r, &older, 0, now += i % 50 == 25 ? 150 * MS : 5 * MS);
    }
    assert_int_equal(newer.n_refused, 0);
    assert_int_equal(older.n_refused, 1000);
    assert_int_equal(r.counts->acquisitions, 2);
    expect_sums(&r, 10 + 2000);
    close_assembler(&r);
}

/* One message a second each, those of the running one up to 0.9 s late: two of the other come in a
 * row, three never do. */
TEST(two_slow_senders_do_not_take_turns)
{
    struct sender senders[2] = {{.epoch = 1}, {.epoch = 2}};
    struct dice dice = {5};
    struct assembler_rig r;
    uint64_t now = 0, next[2], two_in_a_row = 0;
    unsigned last = 1;
    open_assembler(&r, 0);
    send_many(&r, &senders[0], 10, 1000 * MS, &now);
    send(&r, &senders[1], 0, now);
    for (unsigned k = 0; k < 2; k++)
        next[k] = now + 1000 * MS + 500 * k * MS;
    for (unsigned i = 0; i < 600; i++) {
        unsigned k = next[0] > next[1];
        send(&r, &senders[k], 0, next[k]);
        two_in_a_row += k == 0 && last == 0;
        last = k;
        next[k] += 1000 * MS;
        if (k == 1) /* on time, and late */
            next[k] = now + (1000 * senders[k].sequence + 500 + dice_below(&dice, 900)) * MS;
    }
    assert_true(two_in_a_row > 20);
    assert_int_equal(senders[1].n_refused, 0);
    assert_int_equal(r.counts->acquisitions, 2);
    close_assembler(&r);
}

TEST(two_that_were_refused_do_not_keep_each_other_out)
{
    struct sender first = {.epoch = 1}, second = {.epoch = 2}, third = {.epoch = 3};
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &first, 1, MS, &now);
    send_many(&r, &second, 1, MS, &now);
    send_many(&r, &third, 1, MS, &now); /* and is killed */
    for (unsigned i = 0; i < 100; i++) {
        send_many(&r, &first, 1, 5 * MS, &now);
        send_many(&r, &second, 1, 5 * MS, &now);
    }
    assert_int_equal(first.n_refused + second.n_refused, OCT_TAKEOVER_NS / (5 * MS) + 80);
    assert_int_equal(r.counts->acquisitions, 4);
    close_assembler(&r);
}

TEST(who_says_that_it_ends_makes_room_at_once)
{
    struct sender camera = {.epoch = 1}, replay = {.epoch = 2};
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &camera, 10, MS, &now);
    send(&r, &replay, OCT_LINES_STARTS | OCT_LINES_ENDS, now);
    send_many(&r, &camera, 10, MS, &now);
    assert_int_equal(camera.n_refused, 0);
    assert_int_equal(r.counts->acquisitions, 3);
    close_assembler(&r);
}

/* A message that waits a second for room is no silence: the time between others' counts. */
TEST(a_sender_that_is_held_up_here_is_not_silent)
{
    struct sender camera = {.epoch = 2}, older = {.epoch = 1};
    struct assembler_rig r;
    uint64_t now = 0;
    open_assembler(&r, 0);
    send_many(&r, &older, 5, MS, &now);
    for (unsigned i = 0; i < 100; i++) { /* taken a second late, the older one's right behind */
        send_many(&r, &camera, 1, 1000 * MS, &now);
        send_many(&r, &older, 2, MS, &now);
    }
    assert_int_equal(camera.n_refused, 0);
    assert_int_equal(older.n_refused, 200);
    assert_int_equal(r.counts->acquisitions, 2);
    close_assembler(&r);
}

/* ---- all orders ---- */

enum { SENDERS = 3, QUEUED = 3, GOES_ON = 5, MOST = SENDERS * (1 + QUEUED + GOES_ON) };

/* How a sender's queued messages begin. */
enum beginning { HAD_BEGUN, SEQUENCE_0, STARTS, N_BEGINNINGS };

/* The rule once more, from all that was sent. */
struct story {
    struct assembler_rig *r;
    struct sender senders[SENDERS];
    struct {
        uint32_t epoch;
        uint64_t arrival_ns;
    } sent[MOST];
    unsigned n_sent;
    uint32_t running; /* epoch; 0: none yet */
    uint64_t n_refused, n_begun;
    uint64_t now;
};

static bool is_refused(const struct story *t, uint32_t epoch, bool begins)
{
    if (!t->running || epoch == t->running || begins)
        return false;
    unsigned i = t->n_sent; /* goes back to the first since the running one's last */
    while (t->sent[i - 1].epoch != t->running)
        i--;
    bool three = t->n_sent - i + 1 >= 3;
    return !three || t->now - t->sent[i].arrival_ns < 200 * MS;
}

/* Only the one count has changed. */
static void expect_one_more_refused(const struct oct_ingest_counts *now,
                                    struct oct_ingest_counts *before)
{
    before->messages_bad[OCT_BAD_EPOCH]++;
    assert_memory_equal(now, before, offsetof(struct oct_ingest_counts, over));
    assert_true(now->over == before->over);
}

/* Whether it was taken. */
static bool tell(struct story *t, struct sender *s, uint16_t flags)
{
    struct oct_ingest_counts before;
    bool begins = flags & OCT_LINES_STARTS || s->sequence == 0;
    bool refused = is_refused(t, s->epoch, begins);
    memcpy(&before, t->r->counts, sizeof(before));
    assert_int_equal(send(t->r, s, flags, t->now), refused ? OCT_BAD_EPOCH : OCT_BAD_NONE);
    if (refused)
        expect_one_more_refused(t->r->counts, &before);
    else
        t->n_begun += t->running != s->epoch || flags & OCT_LINES_STARTS;
    t->n_refused += refused;
    if (!refused)
        t->running = s->epoch;
    t->sent[t->n_sent].epoch = s->epoch;
    t->sent[t->n_sent++].arrival_ns = t->now;
    return !refused;
}

/* Each of them goes on alone for a while: it is heard in time, and then every one of it. */
static void let_each_go_on(struct story *t, uint64_t step_ns)
{
    unsigned latest = step_ns >= 100 * MS ? 2 : (unsigned)((200 * MS + step_ns - 1) / step_ns);
    for (unsigned k = 0; k < SENDERS; k++)
        for (unsigned i = 0; i < GOES_ON; i++) {
            t->now += step_ns;
            bool taken = tell(t, &t->senders[k], 0);
            assert_true(taken || i < latest);
        }
}

struct plan {
    enum beginning beginnings[SENDERS];
    uint64_t queue_step_ns, step_ns;
};

/* One order: order[i] is whose the i-th queued message is. */
static void play(struct assembler_rig *r, const struct plan *plan, const unsigned *order)
{
    struct story t = {.r = r, .senders = {{.epoch = 31}, {.epoch = 7}, {.epoch = 12}}};
    must(oct_assembler_create(&r->assembler, &r->geometry, r->ring, 0, &failure));
    r->counts = oct_assembler_counts(r->assembler);
    for (unsigned k = 0; k < SENDERS; k++)
        if (plan->beginnings[k] == HAD_BEGUN)
            tell(&t, &t.senders[k], 0);
        else if (plan->beginnings[k] == STARTS)
            t.senders[k].sequence = 5; /* it had run before, in the same epoch */
    t.now += 4000 * MS;
    unsigned n_queued[SENDERS] = {0};
    for (unsigned i = 0; i < SENDERS * QUEUED; i++) {
        unsigned k = order[i];
        bool starts = n_queued[k]++ == 0 && plan->beginnings[k] == STARTS;
        tell(&t, &t.senders[k], starts ? OCT_LINES_STARTS : 0);
        t.now += plan->queue_step_ns;
    }
    let_each_go_on(&t, plan->step_ns);
    assert_int_equal(r->counts->messages_bad[OCT_BAD_EPOCH], t.n_refused);
    assert_int_equal(r->counts->acquisitions, t.n_begun);
    expect_sums(r, t.n_sent);
    oct_assembler_destroy(r->assembler);
    r->assembler = NULL;
}

/* Every order that keeps each sender's own. */
static unsigned play_orders(struct assembler_rig *r, const struct plan *plan, unsigned *order,
                            unsigned n, unsigned left[SENDERS])
{
    unsigned n_orders = 0;
    if (n == SENDERS * QUEUED) {
        play(r, plan, order);
        return 1;
    }
    for (unsigned k = 0; k < SENDERS; k++) {
        if (left[k] == 0)
            continue;
        left[k]--;
        order[n] = k;
        n_orders += play_orders(r, plan, order, n + 1, left);
        left[k]++;
    }
    return n_orders;
}

static void play_all(uint64_t queue_step_ns, uint64_t step_ns)
{
    struct assembler_rig r;
    open_assembler(&r, 0);
    oct_assembler_destroy(r.assembler);
    for (unsigned i = 0; i < N_BEGINNINGS * N_BEGINNINGS * N_BEGINNINGS; i++) {
        unsigned order[SENDERS * QUEUED], left[SENDERS] = {QUEUED, QUEUED, QUEUED};
        const struct plan plan = {
            .beginnings = {i % N_BEGINNINGS, i / N_BEGINNINGS % N_BEGINNINGS,
                           i / N_BEGINNINGS / N_BEGINNINGS},
            .queue_step_ns = queue_step_ns,
            .step_ns = step_ns,
        };
        assert_int_equal(play_orders(&r, &plan, order, 0, left), 1680); /* 9! / 3!^3 */
    }
    r.assembler = NULL;
    close_assembler(&r);
}

TEST(in_every_order_of_a_burst_who_goes_on_is_heard_and_leftovers_change_nothing)
{
    play_all(1000, 70 * MS);
}

TEST(in_every_order_of_slow_messages_too)
{
    play_all(90 * MS, 500 * MS);
}
