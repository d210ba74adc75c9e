/* The path over B-scans against the best of all paths, and the translation that comes before it
 * where the reach alone finds nothing. */
#include "test/rig/tap.h"

#include "analysis/warp/bscans_parts.h"
#include "test/rig/torn_tissue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the translation ---- */

enum { V = 40, M = 72, D = 80 };
#define N ((size_t)V * M * D)

static void a_translation_beyond_the_reach_is_found(void **state)
{
    static const double by[3] = {7, 17, -14};
    struct oct_warp_bscans_setup setup = {
        .dims = {V, M, D}, .reach_bscans = 2, .reach_lines = 4, .reach_depth = 4};
    struct oct_warp_shift place;
    struct oct_warp_bscan bscans[V];
    double motion[2][V][3] = {{{0}}};
    float *volume[2];
    unsigned n = 0;

    for (unsigned b = 0; b < V; b++)
        for (unsigned i = 0; i < 3; i++)
            motion[1][b][i] = i == 2 ? by[i] : -by[i];
    for (unsigned v = 0; v < 2; v++) {
        const struct oct_torn_tissue tissue = {
            .dims = {V, M, D}, .seed = 5, .noise_seed = v + 1, .noise = 0.05};
        volume[v] = malloc(N * sizeof(float));
        assert_non_null(volume[v]);
        oct_torn_tissue_draw(&tissue, motion[v], volume[v]);
    }
    assert_int_equal(oct_warp_bscans_place(setup.dims, volume[0], volume[1], NULL, &place, NULL),
                     OCT_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_true(fabs(place.at[i] - by[i]) <= 1); /* half a bin of two */
    assert_int_equal(oct_warp_bscans(&setup, volume[0], volume[1], bscans, NULL), OCT_OK);
    for (unsigned b = 0; b + 8 < V; b++) {
        n += isnan(bscans[b].score) ? 0 : 1;
        for (unsigned i = 0; i < 3; i++)
            assert_true(fabs(bscans[b].shift[i] - by[i]) < 0.3);
    }
    assert_true(n > V - 12);
    free(volume[0]);
    free(volume[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_path_has_a_larger_sum),
        cmocka_unit_test(a_translation_beyond_the_reach_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
