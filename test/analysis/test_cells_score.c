/* The judge of tracks: cases whose figures follow from the definitions. */
#include "analysis/cells/score.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define N 64u

struct lists {
    struct oct_score_cell truth[N], found[N];
    size_t n_true, n_found;
    struct oct_cells_score score;
};

static void add_true(struct lists *l, uint64_t frame, uint64_t track, double x, double y)
{
    l->truth[l->n_true++] = (struct oct_score_cell){frame, track, x, y};
}

static void add_found(struct lists *l, uint64_t frame, uint64_t track, double x, double y)
{
    l->found[l->n_found++] = (struct oct_score_cell){frame, track, x, y};
}

static void judge(struct lists *l)
{
    must(oct_cells_score(l->truth, l->n_true, l->found, l->n_found, 5, &l->score, &failure));
}

static void assert_counts(const struct lists *l, unsigned matches, unsigned misses,
                          unsigned n_false, unsigned switches)
{
    const struct oct_cells_score *s = &l->score;
    if (s->n_matches != matches || s->n_misses != misses || s->n_false != n_false ||
        s->n_switches != switches)
        fail_msg("%d matches, %d misses, %d false, %d switches", (int)s->n_matches,
                 (int)s->n_misses, (int)s->n_false, (int)s->n_switches);
}

TEST(the_truth_itself_has_no_fault)
{
    struct lists l = {0};
    for (unsigned f = 0; f < 10; f++)
        for (unsigned t = 1; t <= 3; t++) {
            add_true(&l, f, t, 10.0 * t + f, 7);
            add_found(&l, f, 100 - t, 10.0 * t + f, 7);
        }
    judge(&l);
    assert_counts(&l, 30, 0, 0, 0);
    assert_true(l.score.precision == 1 && l.score.recall == 1 && l.score.mota == 1);
    assert_true(l.score.rmse == 0);
}

TEST(faults_are_counted_by_their_kind)
{
    struct lists l = {0};
    for (unsigned f = 0; f < 10; f++) {
        add_true(&l, f, 1, f, 0);
        if (f != 4)                                    /* a miss */
            add_found(&l, f, f < 7 ? 8 : 9, f + 3, 4); /* 5 px off; a switch at 7 */
        if (f == 2)
            add_found(&l, f, 30, 100, 100); /* false */
    }
    add_found(&l, 50, 31, 0, 0); /* false, where there is no truth */
    judge(&l);
    assert_counts(&l, 9, 1, 2, 1);
    assert_true(fabs(l.score.precision - 9.0 / 11) < 1e-12);
    assert_true(fabs(l.score.recall - 0.9) < 1e-12);
    assert_true(fabs(l.score.mota - (1 - 4.0 / 10)) < 1e-12);
    assert_true(fabs(l.score.rmse - 5) < 1e-12);
}

/* Two cells that pass: pairs of the frame before stay, though the others are nearer. */
TEST(pairs_of_the_frame_before_come_first)
{
    struct lists l = {0};
    add_true(&l, 0, 1, 0, 0);
    add_true(&l, 0, 2, 20, 0);
    add_found(&l, 0, 11, 0, 0);
    add_found(&l, 0, 12, 20, 0);
    add_true(&l, 1, 1, 10, 0);
    add_true(&l, 1, 2, 13, 0);
    add_found(&l, 1, 11, 13, 0);
    add_found(&l, 1, 12, 10, 0);
    judge(&l);
    assert_counts(&l, 4, 0, 0, 0);
    assert_true(fabs(l.score.rmse - sqrt(18.0 / 4)) < 1e-12);
    l.truth[2].x = 9;    /* one of the kept pairs is 6 px apart: it is not kept */
    l.found[2].x = 14.5; /* nor are its ends near enough for others */
    judge(&l);
    assert_counts(&l, 3, 1, 1, 0); /* 12 - 2 is kept, 1 and 11 are 5 px apart at least */
}

/* A true track that was lost for a while and comes back with another number. */
TEST(a_switch_is_counted_after_a_gap)
{
    struct lists l = {0};
    for (unsigned f = 0; f < 6; f++)
        add_true(&l, f, 1, 0, 0);
    add_found(&l, 0, 5, 0, 0);
    add_found(&l, 3, 6, 0, 0);
    add_found(&l, 4, 5, 1, 0);
    add_found(&l, 4, 6, 2, 0); /* kept, though 5 is nearer */
    add_found(&l, 5, 0, 1, 0); /* no track: no switch */
    judge(&l);
    assert_counts(&l, 4, 2, 1, 1);
}

TEST(the_order_of_the_lists_is_free)
{
    struct lists l = {0};
    for (unsigned f = 10; f-- > 0;) {
        add_found(&l, f, 2, 50, f);
        add_true(&l, f, 1, 20, f);
        add_found(&l, f, 1, 20, f);
        add_true(&l, f, 2, 50, f);
    }
    judge(&l);
    assert_counts(&l, 20, 0, 0, 0);
}

TEST(nothing_has_no_ratios)
{
    struct lists l = {0};
    judge(&l);
    assert_true(isnan(l.score.precision) && isnan(l.score.recall) && isnan(l.score.mota) &&
                isnan(l.score.rmse));
    add_true(&l, 0, 1, 0, 0);
    judge(&l);
    assert_true(isnan(l.score.precision) && l.score.recall == 0 && l.score.mota == 0);
}

TEST(what_cannot_be_is_refused)
{
    struct lists l = {0};
    struct oct_error err;
    add_true(&l, 3, 7, 0, 0);
    add_true(&l, 3, 7, 1, 0);
    must_fail(oct_cells_score(l.truth, 2, l.found, 0, 5, &l.score, &failure), OCT_E_FORMAT,
              "track 7 is twice in frame 3");
    assert_int_equal(oct_cells_score(l.truth, 1, l.found, 0, 0, &l.score, &err), OCT_E_ARG);
    assert_int_equal(oct_cells_score(l.truth, 1, l.found, 0, NAN, &l.score, &err), OCT_E_ARG);
}
