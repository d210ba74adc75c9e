/* The B-scans of a volume onto those of another: jumps that are known, B-scans that have no
 * counterpart, and what cannot be aligned. */
#include "test/rig/tap.h"

#include "analysis/warp/bscans.h"
#include "kernels/device/workers.h"
#include "test/rig/torn_tissue.h"

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

/* ---- what follows from shifts ---- */

static double value_of(const float *volume, const double x[3])
{
    double sum = 0;

    for (unsigned c = 0; c < 8; c++) {
        double weight = 1;
        size_t at = 0;
        for (unsigned i = 0; i < 3; i++) {
            const double held = fmax(0, fmin(sides[i] - 1.0, x[i])),
                         low = fmin(floor(held), sides[i] - 2.0);
            weight *= c >> i & 1 ? held - low : 1 - (held - low);
            at = at * sides[i] + (size_t)low + (c >> i & 1);
        }
        sum += weight * (double)volume[at];
    }
    return sum;
}

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
    for (unsigned b = 0; b < V; b++)
        for (unsigned j = 0; j < M; j++)
            for (unsigned d = 0; d < D; d++) {
                const size_t at = ((size_t)b * M + j) * D + d;
                const double x[3] = {b - (double)u[at], j - (double)u[N + at],
                                     d - (double)u[2 * N + at]};
                assert_true(fabs((double)aligned[at] - value_of(p.volume[1], x)) < 1e-4);
            }
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
        cmocka_unit_test(aligned_volumes_are_the_moving_one_at_its_shifts),
        cmocka_unit_test(a_composed_place_is_that_of_the_nearest_bscan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
