/* The B-scans of a volume onto those of another: jumps that are known, B-scans that have no
 * counterpart, what cannot be aligned, and the path against the best of all paths. */
#include "test/rig/tap.h"

#include "analysis/warp/bscans.h"
#include "kernels/device/workers.h"
#include "test/rig/torn_tissue.h"
#include "test/rig/warp_suite_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { V = 48, M = 72, D = 80 };
#define N ((size_t)V * M * D)

static const uint32_t sides[3] = {V, M, D};

struct pair {
    double motion[2][V][3];
    float *volume[2];
    struct oct_warp_bscan bscans[V];
};

static void draw(struct pair *p)
{
    for (unsigned v = 0; v < 2; v++) {
        const struct oct_torn_tissue tissue = {
            .dims = {V, M, D}, .seed = 5, .noise_seed = v + 1, .noise = 0.05};
        p->volume[v] = malloc(N * sizeof(float));
        assert_non_null(p->volume[v]);
        oct_torn_tissue_draw(&tissue, p->motion[v], p->volume[v]);
    }
}

/* An eye that drifts in both volumes, and jumps once in the moving one. */
static void set_up(struct pair *p)
{
    memset(p, 0, sizeof(*p));
    for (unsigned v = 0; v < 2; v++)
        for (unsigned b = 0; b < V; b++) {
            const double t = b + 60.0 * v;
            p->motion[v][b][0] = 2 * sin(0.07 * t) + (v == 1 && b >= 30 ? -3.4 : 0) + 2.6 * v;
            p->motion[v][b][1] = 3 * sin(0.11 * t + 1) + (v == 1 && b >= 30 ? 5.3 : 0);
            p->motion[v][b][2] = 2 * sin(0.21 * t) + 1.4 * v;
        }
    draw(p);
}

static void finish(struct pair *p)
{
    free(p->volume[0]);
    free(p->volume[1]);
}

static enum oct_err run(struct pair *p, struct oct_workers *workers, struct oct_error *err)
{
    const struct oct_warp_bscans_setup setup = {.dims = {V, M, D}, .workers = workers};
    return oct_warp_bscans(&setup, p->volume[0], p->volume[1], p->bscans, err);
}

static void jumps_are_found_to_parts_of_a_voxel(void **state)
{
    struct pair p;
    double sum = 0, most = 0;
    unsigned n = 0;

    set_up(&p);
    assert_int_equal(run(&p, NULL, NULL), OCT_OK);
    for (unsigned b = 0; b < V; b++) {
        double truth[3], length = 0;
        if (!oct_torn_tissue_shift(V, p.motion[0], p.motion[1], b, p.bscans[b].shift[0], truth))
            continue;
        /* At its ends there is no B-scan on the other side for a parabola. */
        if (b + truth[0] < 1 || b + truth[0] > V - 2)
            continue;
        for (unsigned i = 0; i < 3; i++)
            length += pow(p.bscans[b].shift[i] - truth[i], 2);
        sum += sqrt(length);
        most = fmax(most, sqrt(length));
        n++;
        assert_true(p.bscans[b].score > 0.9);
    }
    print_message("%u B-scans, mean %.3f, most %.3f voxels\n", n, sum / n, most);
    assert_true(n >= V - 6);
    /* The jump shows some tissue twice, and once nearly: that B-scan may be off by part of one. */
    assert_true(sum / n < 0.1 && most < 0.7);
    finish(&p);
}

static void threads_do_not_change_a_number(void **state)
{
    struct oct_workers *workers;
    struct pair p;
    struct oct_warp_bscan alone[V];

    set_up(&p);
    assert_int_equal(oct_workers_create(&workers, 3, NULL), OCT_OK);
    assert_int_equal(run(&p, NULL, NULL), OCT_OK);
    memcpy(alone, p.bscans, sizeof(alone));
    assert_int_equal(run(&p, workers, NULL), OCT_OK);
    assert_memory_equal(alone, p.bscans, sizeof(alone));
    oct_workers_destroy(workers);
    finish(&p);
}

static void a_blink_has_no_counterpart_and_lies_between_its_neighbours(void **state)
{
    struct pair p;

    set_up(&p);
    for (unsigned b = 12; b < 15; b++)
        for (size_t i = 0; i < (size_t)M * D; i++)
            p.volume[0][b * (size_t)M * D + i] = 0.02F * (float)((i * 7919 + b) % 97);
    memset(p.volume[0] + (size_t)13 * M * D, 0, (size_t)M * D * sizeof(float));
    assert_int_equal(run(&p, NULL, NULL), OCT_OK);
    for (unsigned b = 12; b < 15; b++) {
        assert_true(isnan(p.bscans[b].score));
        for (unsigned i = 0; i < 3; i++) {
            const double t = (b - 11) / 4.0;
            assert_true(fabs(p.bscans[b].shift[i] - (1 - t) * p.bscans[11].shift[i] -
                             t * p.bscans[15].shift[i]) < 1e-9);
        }
    }
    assert_false(isnan(p.bscans[11].score) || isnan(p.bscans[15].score));
    finish(&p);
}

static void what_lies_beyond_the_ends_has_no_counterpart(void **state)
{
    struct pair p;

    memset(&p, 0, sizeof(p));
    for (unsigned b = 0; b < V; b++)
        p.motion[1][b][0] = -6;
    draw(&p);
    assert_int_equal(run(&p, NULL, NULL), OCT_OK);
    for (unsigned b = 0; b < V; b++) {
        if (b != V - 7 && b != V - 6) /* the last one that is seen, and the next to it */
            assert_true(isnan(p.bscans[b].score) == (b > V - 6));
        assert_true(fabs(p.bscans[b].shift[0] - 6) < 0.3);
    }
    finish(&p);
}

static void what_has_nothing_in_common_is_an_error(void **state)
{
    struct pair p;
    struct oct_error err;
    uint64_t seed = 1;

    set_up(&p);
    for (size_t i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        p.volume[1][i] = (float)(seed >> 40);
    }
    assert_int_equal(run(&p, NULL, &err), OCT_E_ARG);
    assert_non_null(
        strstr(err.text, " % of the fixed volume lies in the moving one after alignment"));
    for (size_t i = 0; i < N; i++)
        p.volume[1][i] = 3;
    assert_int_equal(run(&p, NULL, &err), OCT_E_ARG);
    assert_string_equal(err.text, "the moving volume is constant");
    finish(&p);
}

/* The reach alone finds nothing there. */
static void a_translation_beyond_the_reach_is_found(void **state)
{
    static const double by[3] = {7, 17, -14};
    const struct oct_warp_bscans_setup setup = {
        .dims = {V, M, D}, .reach_bscans = 2, .reach_lines = 4, .reach_depth = 4};
    struct oct_warp_shift place;
    struct pair p;
    unsigned n = 0;

    memset(&p, 0, sizeof(p));
    for (unsigned b = 0; b < V; b++)
        for (unsigned i = 0; i < 3; i++)
            p.motion[1][b][i] = i == 2 ? by[i] : -by[i];
    draw(&p);
    assert_int_equal(oct_warp_bscans_place(sides, p.volume[0], p.volume[1], &place, NULL), OCT_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_true(fabs(place.at[i] - by[i]) <= 1); /* half a bin of two */
    assert_int_equal(oct_warp_bscans(&setup, p.volume[0], p.volume[1], p.bscans, NULL), OCT_OK);
    for (unsigned b = 0; b + 8 < V; b++) {
        n += isnan(p.bscans[b].score) ? 0 : 1;
        for (unsigned i = 0; i < 3; i++)
            assert_true(fabs(p.bscans[b].shift[i] - by[i]) < 0.3);
    }
    assert_true(n > V - 12);
    finish(&p);
}

/* ---- the path ---- */

enum { N_BSCANS = 6, N_B = 25, N_J = 3, N_D = 5 };
#define N_STATES ((size_t)N_B * N_J * N_D)
#define PRICE 0.02
#define BIN 2

static const int32_t centre[3] = {1, -2, 3};

static double score_at(const float *score, size_t state)
{
    return isnan(score[state]) ? 0.25 : (double)score[state];
}

/* By the header's words: a B-scan costs the price, a voxel of the others a quarter. */
static double price_of(const struct oct_warp_shift *a, const struct oct_warp_shift *b)
{
    const double price = PRICE * (abs(a->at[0] - b->at[0]) +
                                  (abs(a->at[1] - b->at[1]) + abs(a->at[2] - b->at[2])) / 4.0);
    return fmin(price, OCT_WARP_DEAREST_JUMP * PRICE);
}

static struct oct_warp_shift shift_of(size_t state)
{
    const int32_t i[3] = {(int32_t)(state / (N_J * N_D)), (int32_t)(state / N_D % N_J),
                          (int32_t)(state % N_D)};
    return (struct oct_warp_shift){{centre[0] + i[0] - N_B / 2, BIN * (centre[1] + i[1] - N_J / 2),
                                    BIN * (centre[2] + i[2] - N_D / 2)}};
}

static size_t state_of(const struct oct_warp_shift *shift)
{
    const int32_t b = shift->at[0] - centre[0] + N_B / 2,
                  j = shift->at[1] / BIN - centre[1] + N_J / 2,
                  d = shift->at[2] / BIN - centre[2] + N_D / 2;
    assert_true(b >= 0 && b < N_B && j >= 0 && j < N_J && d >= 0 && d < N_D);
    return ((size_t)b * N_J + (size_t)j) * N_D + (size_t)d;
}

/* The value of the best path: each state from each one before it. */
static double best_of_all(const float *score)
{
    double value[2][N_STATES] = {{0}}, best = -INFINITY;

    for (unsigned b = 0; b < N_BSCANS; b++)
        for (size_t to = 0; to < N_STATES; to++) {
            const struct oct_warp_shift shift = shift_of(to);
            double most = b == 0 ? 0 : -INFINITY;
            for (size_t from = 0; b > 0 && from < N_STATES; from++) {
                const struct oct_warp_shift before = shift_of(from);
                most = fmax(most, value[(b + 1) % 2][from] - price_of(&before, &shift));
            }
            value[b % 2][to] = most + score_at(score + b * N_STATES, to);
        }
    for (size_t i = 0; i < N_STATES; i++)
        best = fmax(best, value[(N_BSCANS - 1) % 2][i]);
    return best;
}

static void fill(float *score, unsigned seed)
{
    uint64_t random = seed;

    for (size_t i = 0; i < N_BSCANS * N_STATES; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        score[i] = (float)(random >> 40) * 0x1p-26F;
        if (random >> 60 == 0)
            score[i] = NAN;
    }
    /* Peaks far apart: worth a jump, or not. */
    for (unsigned b = 0; b < N_BSCANS; b++)
        score[b * N_STATES + (b * (seed % 7 + 1) * 97) % N_STATES] =
            0.3F + 0.05F * (float)(seed % 5);
}

static void no_path_has_a_larger_sum(void **state)
{
    unsigned n_jumps = 0, n_dear = 0;

    for (unsigned seed = 1; seed <= 12; seed++) {
        struct oct_warp_shift path[N_BSCANS];
        struct oct_warp_scores scores = {.n_bscans = N_BSCANS,
                                         .bin = BIN,
                                         .reach = {N_B / 2, N_J / 2, N_D / 2},
                                         .n = {N_B, N_J, N_D},
                                         .unlike = 0.25F};
        const size_t n = N_BSCANS * N_STATES;
        float *kept = malloc(n * sizeof(*kept));
        memcpy(scores.centre.at, centre, sizeof(centre));
        scores.score = malloc(n * sizeof(float));
        assert_true(kept && scores.score);
        fill(kept, seed);
        memcpy(scores.score, kept, n * sizeof(*kept));
        assert_int_equal(oct_warp_bscans_path(&scores, PRICE, path, NULL), OCT_OK);
        double sum = 0;
        for (unsigned b = 0; b < N_BSCANS; b++) {
            const double price = b > 0 ? price_of(&path[b - 1], &path[b]) : 0;
            sum += score_at(kept + b * N_STATES, state_of(&path[b])) - price;
            n_jumps += price > 0;
            n_dear += price >= OCT_WARP_DEAREST_JUMP * PRICE;
        }
        assert_true(fabs(sum - best_of_all(kept)) < 1e-4);
        free(scores.score);
        free(kept);
    }
    assert_true(n_jumps > 12 && n_jumps < 12 * (N_BSCANS - 1) && n_dear > 0);
}

/* ---- what follows from shifts ---- */

static void aligned_volumes_are_the_moving_one_at_its_shifts(void **state)
{
    struct pair p;
    float *aligned = malloc(N * sizeof(float)), *u = malloc(3 * N * sizeof(float));

    assert_true(aligned && u);
    set_up(&p);
    for (unsigned b = 0; b < V; b++)
        p.bscans[b] = (struct oct_warp_bscan){
            .shift = {7.3 * sin(b), 0.37 * b - 8, b == 5 ? 2.0 * D : 9.25 * cos(2 * b)}};
    oct_warp_bscans_align(p.bscans, sides, p.volume[1], NULL, aligned);
    oct_warp_bscans_displacement(p.bscans, sides, u);
    double *exact = malloc(N * sizeof(double)), *moving = oct_warp_suite_double(p.volume[1], N);
    double *of_u = oct_warp_suite_double(u, 3 * N);
    oct_warp_oracle_warp(sides, moving, of_u, exact);
    assert_true(oct_warp_suite_away(aligned, exact, N) < 1e-4);
    free(exact);
    free(moving);
    free(of_u);
    free(aligned);
    free(u);
    finish(&p);
}

static void a_composed_place_is_that_of_the_nearest_bscan(void **state)
{
    struct oct_warp_bscan bscans[V];
    float *u = malloc(3 * N * sizeof(float)), *before = malloc(3 * N * sizeof(float));

    assert_true(u && before);
    for (unsigned b = 0; b < V; b++)
        bscans[b] = (struct oct_warp_bscan){.shift = {b, 2.0 * b + 0.5, -0.25 * b}};
    for (size_t i = 0; i < 3 * N; i++)
        before[i] = (float)(3 * sin(0.001 * (double)i));
    memcpy(u, before, 3 * N * sizeof(float));
    oct_warp_bscans_compose(bscans, sides, NULL, u);
    for (size_t at = 0; at < N; at++) {
        const double y = round((double)(at / ((size_t)M * D)) - (double)before[at]);
        const unsigned b = y < 0 ? 0 : y > V - 1 ? V - 1 : (unsigned)y;
        for (unsigned i = 0; i < 3; i++)
            assert_true(fabs((double)u[i * N + at] - (double)before[i * N + at] +
                             bscans[b].shift[i]) < 1e-4);
    }
    free(u);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jumps_are_found_to_parts_of_a_voxel),
        cmocka_unit_test(threads_do_not_change_a_number),
        cmocka_unit_test(a_blink_has_no_counterpart_and_lies_between_its_neighbours),
        cmocka_unit_test(what_lies_beyond_the_ends_has_no_counterpart),
        cmocka_unit_test(what_has_nothing_in_common_is_an_error),
        cmocka_unit_test(a_translation_beyond_the_reach_is_found),
        cmocka_unit_test(no_path_has_a_larger_sum),
        cmocka_unit_test(aligned_volumes_are_the_moving_one_at_its_shifts),
        cmocka_unit_test(a_composed_place_is_that_of_the_nearest_bscan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
