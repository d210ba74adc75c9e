/* Pairing: against every pairing there is, in small random cases with and without ties; crowds in
 * time; and what lies at the rims. */
#include "analysis/cells/track.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 8u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CROWD_MS 5000.0
#else
#define CROWD_MS 250.0 /* 500 tracks and 500 cells in one part: 20 to 50 ms on an idle core */
#endif

struct scene {
    struct oct_link_track tracks[MOST];
    struct oct_cell cells[MOST];
    unsigned n_tracks, n_cells;
};

/* Every pairing, track by track, the lower cell first and none last: of equal costs the first one
 * that is met stays. */
struct search {
    const struct scene *scene;
    int32_t pair[MOST], best[MOST];
    double least;
    uint32_t taken;
};

static double squared_distance(const struct oct_link_track *t, const struct oct_cell *c)
{
    return t->weight * ((t->x - c->x) * (t->x - c->x) + (t->y - c->y) * (t->y - c->y));
}

static void try_all(struct search *s, unsigned t, double so_far)
{
    if (t == s->scene->n_tracks) {
        if (so_far < s->least) {
            s->least = so_far;
            memcpy(s->best, s->pair, sizeof s->best);
        }
        return;
    }
    const struct oct_link_track *track = &s->scene->tracks[t];
    for (unsigned c = 0; c < s->scene->n_cells; c++) {
        const double d = squared_distance(track, &s->scene->cells[c]);
        if (d > track->weight * track->gate * track->gate || (s->taken >> c & 1))
            continue;
        s->taken |= 1u << c;
        s->pair[t] = (int32_t)c;
        try_all(s, t + 1, so_far + d);
        s->taken &= ~(1u << c);
    }
    s->pair[t] = -1;
    try_all(s, t + 1, so_far + track->weight * track->gate * track->gate);
}

static double cost_of(const struct scene *s, const int32_t *pair)
{
    double cost = 0;
    uint32_t taken = 0;
    for (unsigned t = 0; t < s->n_tracks; t++) {
        const double none = s->tracks[t].weight * s->tracks[t].gate * s->tracks[t].gate;
        if (pair[t] < 0) {
            cost += none;
            continue;
        }
        assert_in_range(pair[t], 0, s->n_cells - 1);
        assert_false(taken >> pair[t] & 1);
        taken |= 1u << pair[t];
        const double d = squared_distance(&s->tracks[t], &s->cells[pair[t]]);
        assert_true(d <= none);
        cost += d;
    }
    return cost;
}

/* step 0: any number; else coordinates are multiples of it, so that costs tie, exactly. */
static struct scene draw(uint64_t *random, double step)
{
    struct scene s = {.n_tracks = (unsigned)(oct_random_uniform(random) * (MOST - 1)) + 1,
                      .n_cells = (unsigned)(oct_random_uniform(random) * (MOST - 1)) + 1};
    const double side = 1 + 12 * oct_random_uniform(random);
    for (unsigned i = 0; i < 3 * MOST; i++) {
        double at[3] = {side * oct_random_uniform(random), side * oct_random_uniform(random),
                        1 + 7 * oct_random_uniform(random)};
        const double any = 0.2 + oct_random_uniform(random);
        const double weight = step > 0 ? ceil(2 * any) / 2 : any;
        for (unsigned k = 0; k < 3 && step > 0; k++)
            at[k] = step * floor(at[k] / step);
        if (i < MOST)
            s.tracks[i] = (struct oct_link_track){at[0], at[1], at[2], weight};
        else if (i < 2 * MOST)
            s.cells[i - MOST] = (struct oct_cell){.x = at[0], .y = at[1]};
    }
    return s;
}

static void link_is(const struct scene *s, int32_t pair[MOST])
{
    must(oct_cells_link(s->tracks, s->n_tracks, s->cells, s->n_cells, pair, &failure));
}

TEST(costs_are_the_least_of_all_pairings)
{
    uint64_t random = 5;
    for (unsigned i = 0; i < 800; i++) {
        struct scene s = draw(&random, 0);
        struct search search = {.scene = &s, .least = INFINITY};
        int32_t pair[MOST];
        try_all(&search, 0, 0);
        link_is(&s, pair);
        assert_true(fabs(cost_of(&s, pair) - search.least) <= 1e-9);
        assert_memory_equal(pair, search.best, s.n_tracks * sizeof *pair);
    }
}

TEST(of_equal_costs_the_first_pairing_is_taken)
{
    uint64_t random = 6;
    static const double steps[] = {0.5, 1, 2, 4};
    for (unsigned i = 0; i < 1200; i++) {
        struct scene s = draw(&random, steps[i % 4]);
        struct search search = {.scene = &s, .least = INFINITY};
        int32_t pair[MOST];
        try_all(&search, 0, 0);
        link_is(&s, pair);
        assert_true(cost_of(&s, pair) == search.least);
        for (unsigned t = 0; t < s.n_tracks; t++)
            if (pair[t] != search.best[t])
                fail_msg("scene %u: track %u has cell %d instead of %d", i, t, pair[t],
                         search.best[t]);
    }
}

/* A pair exactly at the gate costs as much as none; lower cells come first. */
TEST(a_pair_at_the_gate_is_a_pair)
{
    struct scene s = {
        .n_tracks = 1, .n_cells = 1, .tracks = {{0, 0, 5, 1}}, .cells = {{.x = 3, .y = 4}}};
    int32_t pair[MOST];
    link_is(&s, pair);
    assert_int_equal(pair[0], 0);
    s.cells[0].x = nextafter(3, 4);
    link_is(&s, pair);
    assert_int_equal(pair[0], -1);
}

/* The nearest cell of one track is the only one of another: the sum decides. */
TEST(one_track_makes_room_for_another)
{
    const struct scene s = {.n_tracks = 2,
                            .n_cells = 2,
                            .tracks = {{0, 0, 10, 1}, {-4, 0, 5, 1}},
                            .cells = {{.x = -1}, {.x = 4}}};
    int32_t pair[MOST];
    link_is(&s, pair);
    assert_int_equal(pair[0], 1);
    assert_int_equal(pair[1], 0);
}

TEST(empty_sides_have_no_pairs)
{
    const struct oct_link_track tracks[2] = {{1, 2, 3, 1}, {4, 5, 6, 1}};
    const struct oct_cell cells[2] = {{.x = 1, .y = 2}, {.x = 4, .y = 5}};
    int32_t pair[2] = {7, 7};
    assert_int_equal(oct_cells_link(tracks, 0, cells, 2, pair, NULL), OCT_OK);
    assert_int_equal(pair[0], 7);
    assert_int_equal(oct_cells_link(NULL, 0, NULL, 0, NULL, NULL), OCT_OK);
    assert_int_equal(oct_cells_link(tracks, 2, NULL, 0, pair, NULL), OCT_OK);
    assert_int_equal(pair[0], -1);
    assert_int_equal(pair[1], -1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* n tracks and n cells of one connected part; how they lie: 0: at random in a square where all are
 * near all; 1: on one line, moved by half of it; 2: many neighbours each. */
static double time_crowd(unsigned n, unsigned how, bool *all_paired)
{
    struct oct_link_track *tracks = calloc(n, sizeof *tracks);
    struct oct_cell *cells = calloc(n, sizeof *cells);
    int32_t *pair = calloc(n, sizeof *pair);
    uint64_t random = 9 + how;
    const double gate = how == 2 ? 30 : 1e4, side = how == 2 ? 4 * sqrt(n) : 1000;
    for (unsigned i = 0; i < n; i++) {
        const double line = i * side / n;
        tracks[i] = (struct oct_link_track){.gate = gate, .weight = 1};
        tracks[i].x = how == 1 ? line : side * oct_random_uniform(&random);
        tracks[i].y = how == 1 ? 0 : side * oct_random_uniform(&random);
        cells[i].x = how == 1 ? line + side / 2 : side * oct_random_uniform(&random);
        cells[i].y = how == 1 ? 1 : side * oct_random_uniform(&random);
    }
    const double start = now_ms();
    assert_int_equal(oct_cells_link(tracks, n, cells, n, pair, NULL), OCT_OK);
    const double taken = now_ms() - start;
    *all_paired = true;
    for (unsigned i = 0; i < n; i++)
        *all_paired = *all_paired && pair[i] >= 0;
    free(tracks);
    free(cells);
    free(pair);
    return taken;
}

/* One pair more than are possible, and none more. */
TEST(too_many_pairs_are_refused)
{
    enum { SIDE = 4096 };
    struct oct_link_track *tracks = calloc(SIDE + 1, sizeof *tracks);
    struct oct_cell *cells = calloc(SIDE, sizeof *cells);
    int32_t *pair = calloc(SIDE + 1, sizeof *pair);
    struct oct_error err = {.text = ""};
    for (unsigned i = 0; i <= SIDE; i++)
        tracks[i] = (struct oct_link_track){.x = i, .gate = i < SIDE ? 1e4 : 0.5, .weight = 1};
    for (unsigned i = 0; i < SIDE; i++)
        cells[i] = (struct oct_cell){.x = i};
    assert_int_equal(oct_cells_link(tracks, SIDE + 1, cells, SIDE, pair, &err), OCT_OK);
    for (int i = 0; i <= SIDE; i++)
        assert_int_equal(pair[i], i < SIDE ? i : -1);
    tracks[SIDE].gate = 1;
    assert_int_equal(oct_cells_link(tracks, SIDE + 1, cells, SIDE, pair, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "4097 tracks and 4096 cells"));
    assert_non_null(strstr(err.text, "largest speed"));
    free(tracks);
    free(cells);
    free(pair);
}

TEST(a_crowd_is_paired_in_time)
{
    static const char *const names[] = {"all near all", "one line, moved", "many neighbours"};
    for (unsigned how = 0; how < 3; how++) {
        bool all_paired;
        double least = INFINITY;
        for (unsigned i = 0; i < 3; i++)
            least = fmin(least, time_crowd(500, how, &all_paired));
        print_message("500 x 500, %s: %.1f ms\n", names[how], least);
        assert_true(all_paired || how == 2);
        assert_true(least < (how == 1 ? 10 : 1) * CROWD_MS);
    }
    bool all_paired;
    print_message("5000 x 5000, many neighbours: %.1f ms\n", time_crowd(5000, 2, &all_paired));
}
