/* What pictures a browser gets on links of its own: simulated, each with a rate and a way. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "web/pace.h"

#include <math.h>

#define START_NS (1000 * OCT_NS_PER_S)

static const double level_bytes[OCT_WEB_N_LEVELS] = {90e3, 60e3, 36e3, 16e3};

/* A link: bytes go one after another, and then take the way; an answer takes the way back. */
struct link {
    double rate, way_ms; /* bytes a second; one way */
    uint64_t free_ns;
};

struct on_way {
    uint32_t serial; /* 0: none */
    uint64_t answered_ns, drawn_ns, made_ns;
};

struct seen {
    double oldest_ms, per_s, levels; /* of the last 20 s; the mean level */
    unsigned n, most_waiting;
};

struct simulation {
    struct oct_web_pace pace;
    struct link link;
    struct on_way on_way[OCT_WEB_MOST_WAITING];
    uint32_t serial;
    struct seen seen;
};

static uint64_t send(struct link *l, double bytes, uint64_t now_ns)
{
    l->free_ns = (l->free_ns > now_ns ? l->free_ns : now_ns) + (uint64_t)(bytes / l->rate * 1e9);
    return l->free_ns + (uint64_t)(l->way_ms * 1e6);
}

/* What was drawn is answered for. */
static void answer(struct simulation *s, uint64_t now_ns, bool counts)
{
    unsigned n = 0;
    for (unsigned i = 0; i < OCT_WEB_MOST_WAITING; i++) {
        struct on_way *w = &s->on_way[i];
        if (w->serial && now_ns >= w->answered_ns) {
            oct_web_pace_seen(&s->pace, w->serial, now_ns);
            if (counts)
                s->seen.oldest_ms =
                    fmax(s->seen.oldest_ms, (double)(w->drawn_ns - w->made_ns) / 1e6);
            w->serial = 0;
        }
        n += w->serial != 0;
    }
    s->seen.most_waiting = n > s->seen.most_waiting ? n : s->seen.most_waiting;
}

static void offer(struct simulation *s, uint64_t now_ns, bool counts)
{
    unsigned at = 0;
    if (!oct_web_pace_has_room(&s->pace, OCT_WEB_BSCAN, now_ns))
        return;
    while (s->on_way[at].serial)
        at++;
    const unsigned level = oct_web_pace_level(&s->pace, now_ns);
    const uint64_t drawn_ns = send(&s->link, level_bytes[level], now_ns);
    const uint64_t answered_ns = drawn_ns + (uint64_t)(s->link.way_ms * 1e6);
    s->on_way[at] = (struct on_way){++s->serial, answered_ns, drawn_ns, now_ns};
    oct_web_pace_sent(&s->pace, OCT_WEB_BSCAN, s->serial, true, now_ns);
    s->seen.n += counts;
    s->seen.levels += counts ? level : 0;
}

/* 30 s of a B-scan every 33 ms, with an answer to something short every second. */
static struct seen run(struct simulation *s, double rate, double way_ms)
{
    *s = (struct simulation){.link = {rate, way_ms, 0}};
    oct_web_pace_init(&s->pace, START_NS);
    for (unsigned ms = 0; ms < 30000; ms++) {
        const uint64_t now_ns = START_NS + ms * OCT_NS_PER_MS;
        answer(s, now_ns, ms > 10000);
        if (ms % 1000 == 0)
            oct_web_pace_answered(&s->pace, 2 * way_ms + 5, now_ns);
        if (ms % 33 == 0)
            offer(s, now_ns, ms > 10000);
    }
    s->seen.per_s = s->seen.n / 20.0;
    s->seen.levels /= s->seen.n;
    return s->seen;
}

TEST(near_pictures_are_the_best)
{
    struct simulation simulation;
    const struct seen s = run(&simulation, 100e6, 0.2);
    assert_true(s.levels == 0 && s.per_s > 29 && s.oldest_ms < 10);
}

/* A long way is not a narrow one: pictures are as good as near, two at a time. */
TEST(a_long_way_is_not_a_narrow_one)
{
    struct simulation simulation;
    const struct seen s = run(&simulation, 50e6, 100);
    assert_true(s.levels == 0 && s.per_s > 8 && s.oldest_ms < 130 && s.most_waiting == 2);
}

TEST(by_a_narrow_link_they_are_small_and_young)
{
    struct simulation simulation;
    const struct seen s = run(&simulation, 125e3, 100);
    assert_true(s.oldest_ms < 1000 && s.per_s > 2 && s.levels > 2.5 && s.most_waiting <= 2);
}

/* It was narrow for a while only. */
TEST(they_become_better_again)
{
    struct simulation s;
    run(&s, 125e3, 20);
    const uint64_t then_ns = START_NS + 31 * OCT_NS_PER_S;
    oct_web_pace_forget(&s.pace);
    for (uint64_t ms = 0; ms < 90000; ms += 40) {
        const uint64_t now_ns = then_ns + ms * OCT_NS_PER_MS;
        oct_web_pace_sent(&s.pace, OCT_WEB_BSCAN, (uint32_t)ms + 1, true, now_ns);
        oct_web_pace_seen(&s.pace, (uint32_t)ms + 1, now_ns + 10 * OCT_NS_PER_MS);
    }
    assert_int_equal(s.pace.level, 0);
}

/* Who says nothing is owed two B-scans and one of each other kind, and then two in all. */
TEST(who_says_nothing_is_owed_two)
{
    struct oct_web_pace p;
    oct_web_pace_init(&p, START_NS);
    for (uint32_t i = 1; i <= 2; i++) {
        assert_true(oct_web_pace_has_room(&p, OCT_WEB_BSCAN, START_NS));
        oct_web_pace_sent(&p, OCT_WEB_BSCAN, i, true, START_NS);
    }
    assert_false(oct_web_pace_has_room(&p, OCT_WEB_BSCAN, START_NS));
    assert_true(oct_web_pace_has_room(&p, OCT_WEB_ENFACE, START_NS));
    assert_false(oct_web_pace_has_room(&p, OCT_WEB_ENFACE, START_NS + 2 * OCT_NS_PER_S));
    oct_web_pace_seen(&p, 7, START_NS + 2 * OCT_NS_PER_S); /* one that was never sent */
    oct_web_pace_seen(&p, 0, START_NS + 2 * OCT_NS_PER_S);
    assert_false(oct_web_pace_has_room(&p, OCT_WEB_BSCAN, START_NS + 2 * OCT_NS_PER_S));
    assert_int_equal(oct_web_pace_level(&p, START_NS + 2 * OCT_NS_PER_S), OCT_WEB_N_LEVELS - 1);
}

/* A whole picture is large by nature: that it takes long makes no other smaller. */
TEST(a_whole_picture_makes_none_smaller)
{
    struct oct_web_pace p;
    oct_web_pace_init(&p, START_NS);
    p.level = 0;
    oct_web_pace_answered(&p, 10, START_NS);
    oct_web_pace_sent(&p, OCT_WEB_BSCAN, 1, false, START_NS);
    assert_int_equal(oct_web_pace_level(&p, START_NS + 4 * OCT_NS_PER_S), 0);
    oct_web_pace_seen(&p, 1, START_NS + 4 * OCT_NS_PER_S);
    assert_int_equal(oct_web_pace_level(&p, START_NS + 5 * OCT_NS_PER_S), 0);
}
