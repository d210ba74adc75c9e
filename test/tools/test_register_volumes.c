/* Volumes of another grid, and pairs side by side: what octctl register-volumes does beside the
 * registration itself. */
#include "kernels/device/workers.h"
#include "test/rig/tap.h"
#include "tools/analyse/register_volumes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t n_of(const uint32_t dims[3])
{
    return (size_t)dims[0] * dims[1] * dims[2];
}

static struct oct_volume_info info_of(uint32_t v, uint32_t m, uint32_t d, double um)
{
    return (struct oct_volume_info){.dims = {v, m, d}, .um = {um, um, um}};
}

/* ---- grids ---- */

static enum oct_err place(const struct oct_volume_info *fixed, const struct oct_volume_info *moving,
                          struct oct_volumes_placing *placing, struct oct_error *err)
{
    return oct_volumes_place("one.h5", fixed, "two.h5", moving, placing, err);
}

TEST(volumes_of_one_grid_stay_as_they_are)
{
    struct oct_volumes_placing placing;
    const struct oct_volume_info a = info_of(8, 9, 10, 2), b = info_of(8, 9, 10, 2.001);
    const struct oct_volume_info c = info_of(8, 9, 10, NAN), d = info_of(8, 9, 10, 2.01);
    must(place(&a, &b, &placing, &failure));
    assert_true(placing.is_same && placing.scale[1] == 1 && placing.origin[2] == 0);
    must(place(&c, &c, &placing, &failure));
    assert_true(placing.is_same);
    must(place(&a, &d, &placing, &failure));
    assert_false(placing.is_same);
}

TEST(what_cannot_be_placed_is_named)
{
    struct oct_volumes_placing placing;
    const struct oct_volume_info a = info_of(8, 9, 10, 2), half = info_of(4, 18, 5, 4);
    const struct oct_volume_info side = info_of(8, 9, 21, 2), coarse = info_of(8, 9, 10, 4.1);
    const struct oct_volume_info unknown = {.dims = {8, 9, 10}, .um = {2, NAN, 2}};
    must(place(&a, &half, &placing, &failure));
    must_fail(place(&a, &side, &placing, &failure), OCT_E_FORMAT,
              "one.h5 has 8 x 9 x 10 voxels, two.h5 8 x 9 x 21");
    must_fail(place(&coarse, &a, &placing, &failure), OCT_E_FORMAT,
              "4.1 x 4.1 x 4.1 um, two.h5 of 2 x 2 x 2");
    must_fail(place(&unknown, &a, &placing, &failure), OCT_E_CONFIG,
              "of one.h5 is not known, that of two.h5 is");
    must_fail(place(&a, &unknown, &placing, &failure), OCT_E_CONFIG,
              "of two.h5 is not known, that of one.h5 is");
}

static float *resample(const float *values, const struct oct_volume_info *from,
                       const struct oct_volume_info *to, struct oct_volumes_placing *placing)
{
    float *made = malloc(n_of(from->dims) * sizeof(*made));
    assert_non_null(made);
    memcpy(made, values, n_of(from->dims) * sizeof(*made));
    must(place(to, from, placing, &failure));
    oct_volumes_resample(&made, from->dims, to->dims, placing, NULL);
    return made;
}

enum { V = 24, M = 25, D = 26 };

/* Linear interpolation and a symmetric Gaussian leave a slope what it is, but for the border. */
TEST(a_slope_is_resampled_to_the_same_slope)
{
    static const double um[] = {1, 2, 1.5, 3.7};
    const struct oct_volume_info from = {.dims = {V, M, D}, .um = {2, 2, 2}};
    float values[V * M * D];
    for (int i = 0; i < V * M * D; i++)
        values[i] = (float)(0.5 * (i / (M * D)) - 2.0 * (i / D % M) + 3.0 * (i % D));
    for (size_t k = 0; k < sizeof(um) / sizeof(um[0]); k++) {
        const struct oct_volume_info to = {.dims = {V - 6, M + 4, D - 3},
                                           .um = {um[k], um[(k + 1) % 4], um[(k + 2) % 4]}};
        struct oct_volumes_placing p;
        float *made = resample(values, &from, &to, &p);
        unsigned n_seen = 0;
        for (size_t i = 0; i < n_of(to.dims); i++) {
            const double at[3] = {p.origin[0] +
                                      p.scale[0] * (double)(i / (to.dims[1] * to.dims[2])),
                                  p.origin[1] + p.scale[1] * (double)(i / to.dims[2] % to.dims[1]),
                                  p.origin[2] + p.scale[2] * (double)(i % to.dims[2])};
            bool is_inner = true;
            for (unsigned a = 0; a < 3; a++) {
                const double reach = p.scale[a] > 1 ? 1.5 * sqrt(p.scale[a] * p.scale[a] - 1) : 0;
                is_inner = is_inner && at[a] >= reach && at[a] <= from.dims[a] - 1 - reach;
            }
            const double expected = 0.5 * at[0] - 2 * at[1] + 3 * at[2];
            n_seen += is_inner;
            if (is_inner && !(fabs((double)made[i] - expected) < 1e-4))
                fail_msg("%zu: %g is not %g", i, (double)made[i], expected);
        }
        assert_true(n_seen > 20);
        free(made);
    }
}

/* Stripes of every other voxel are grey where every other voxel is left, whether places lie between
 * voxels, where linear interpolation would do, or on them, where it would show them all. */
TEST(a_finer_volume_is_smoothed_first)
{
    static const uint32_t depths[2] = {32, 31};
    static const double origins[2] = {0.5, 0};
    const struct oct_volume_info to = {.dims = {4, 4, 16}, .um = {1, 1, 2}};
    float values[4 * 4 * 32];
    for (unsigned k = 0; k < 2; k++) {
        const struct oct_volume_info from = info_of(4, 4, depths[k], 1);
        for (unsigned i = 0; i < n_of(from.dims); i++)
            values[i] = i % depths[k] % 2 ? 1.0F : 0.0F;
        struct oct_volumes_placing p;
        float *made = resample(values, &from, &to, &p);
        assert_true(p.scale[2] == 2 && p.origin[2] == origins[k]);
        for (int d = 2; d < 14; d++)
            assert_true(fabs((double)made[d] - 0.5) < 0.05);
        free(made);
    }
}

TEST(what_is_missing_stays_missing_and_spoils_nothing)
{
    const struct oct_volume_info from = info_of(4, 4, 8, 1),
                                 to = {.dims = {4, 4, 16}, .um = {1, 1, 0.5}};
    float values[4 * 4 * 8];
    for (int i = 0; i < 4 * 4 * 8; i++)
        values[i] = i % 8 == 3 ? NAN : 5;
    struct oct_volumes_placing p;
    float *made = resample(values, &from, &to, &p);
    unsigned n_missing = 0;
    for (int d = 0; d < 16; d++)
        if (isnan(made[d]))
            n_missing++;
        else
            assert_true(made[d] == 5);
    assert_int_equal(n_missing, 2);
    assert_true(isnan(made[6]) && isnan(made[7]));
    free(made);
    assert_true(oct_volumes_resample_bytes(from.dims, to.dims) ==
                (n_of(from.dims) + n_of(to.dims)) * sizeof(float));
}

/* ---- pairs side by side ---- */

enum { N_MOVING = 5, SIDE = 20 };

struct rig {
    struct oct_volumes v; /* what `take` gets */
    unsigned n;
    float *displacement[N_MOVING];
    unsigned fails_at;
};

static char folder[64];

/* A blob that moves, and waves. */
static void write_volume(unsigned number, char path[96])
{
    char header[128];
    float values[SIDE * SIDE * SIDE];
    snprintf(path, 96, "%s/%u.npy", folder, number);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    const int n = snprintf(header + 10, sizeof(header) - 10,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }",
                           SIDE, SIDE, SIDE);
    memset(header + 10 + n, ' ', sizeof(header) - 10 - (size_t)n);
    header[127] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    for (int i = 0; i < SIDE * SIDE * SIDE; i++) {
        const double b = i / (SIDE * SIDE) - 9.5, j = i / SIDE % SIDE - 9.5 + 0.3 * number,
                     d = i % SIDE - 9.5 - 0.2 * number;
        values[i] = (float)(exp(-(b * b + j * j + d * d) / 30) + 0.2 * sin(b) * cos(j) * sin(d));
    }
    assert_int_equal(fwrite(header, 1, sizeof(header), file), sizeof(header));
    assert_int_equal(fwrite(values, sizeof(float), SIDE * SIDE * SIDE, file), SIDE * SIDE * SIDE);
    assert_int_equal(fclose(file), 0);
}

static enum oct_err take(struct oct_volumes *volumes, struct oct_error *err)
{
    struct rig *rig = (struct rig *)volumes;
    const unsigned i = rig->v.hand.i;
    const size_t bytes = 3 * SIDE * SIDE * SIDE * sizeof(float);
    assert_int_equal(i, rig->n++);
    assert_non_null(rig->displacement[i] = malloc(bytes));
    memcpy(rig->displacement[i], rig->v.hand.made->displacement, bytes);
    return i == rig->fails_at ? oct_fail(err, OCT_E_NO_SPACE, "full") : OCT_OK;
}

static enum oct_err run_lanes(struct rig *rig, const char *const *paths, unsigned n_lanes,
                              unsigned fails_at, struct oct_error *err)
{
    static const volatile sig_atomic_t never;
    *rig = (struct rig){.fails_at = fails_at};
    rig->v.job.inputs = paths;
    rig->v.job.backend = "cpu";
    rig->v.job.cancel = &never;
    rig->v.given.average = true;
    rig->v.settings = (struct oct_volumes_settings){.model = OCT_WARP_NONLINEAR,
                                                    .lambda = NAN,
                                                    .sigma = NAN,
                                                    .jump_price = NAN,
                                                    .n_iterations = 1,
                                                    .iteration = {5}};
    rig->v.n_moving = N_MOVING;
    rig->v.n_lanes = n_lanes;
    rig->v.take = take;
    assert_int_equal(oct_workers_create(&rig->v.job.workers, 2, err), OCT_OK);
    const enum oct_err e = oct_volumes_begin(&rig->v, err);
    return e ? e : oct_volumes_run(&rig->v, err);
}

static void finish(struct rig *rig)
{
    oct_workers_destroy(rig->v.job.workers);
    for (unsigned i = 0; i < N_MOVING; i++)
        free(rig->v.pairs[i].points);
    free(rig->v.pairs);
    free(rig->v.shares);
    free(rig->v.average);
    free(rig->v.fixed);
    for (unsigned i = 0; i < N_MOVING; i++)
        free(rig->displacement[i]);
}

static int begin(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/octd-volumes-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    return rmdir(folder);
}

TEST_WITH(pairs_side_by_side_are_as_one_after_another, begin, end)
{
    char names[N_MOVING + 1][96];
    const char *paths[N_MOVING + 1];
    struct rig rigs[2];
    struct oct_error err;
    const size_t bytes = SIDE * SIDE * SIDE * sizeof(float);
    for (unsigned i = 0; i <= N_MOVING; i++) {
        write_volume(i, names[i]);
        paths[i] = names[i];
    }
    for (unsigned k = 0; k < 2; k++) {
        assert_int_equal(run_lanes(&rigs[k], paths, 1 + 2 * k, N_MOVING, &err), OCT_OK);
        assert_int_equal(rigs[k].n, N_MOVING);
        assert_int_equal(rigs[k].v.n_averaged, N_MOVING + 1);
    }
    assert_true(rigs[1].v.need_bytes > rigs[0].v.need_bytes);
    assert_memory_equal(rigs[0].v.average, rigs[1].v.average, bytes);
    for (unsigned i = 0; i < N_MOVING; i++) {
        assert_memory_equal(rigs[0].displacement[i], rigs[1].displacement[i], 3 * bytes);
        assert_true(rigs[1].v.pairs[i].after.ssd < rigs[1].v.pairs[i].before.ssd);
    }
    finish(&rigs[0]);
    finish(&rigs[1]);
    for (unsigned lanes = 1; lanes <= 3; lanes++) { /* the first failure ends all */
        assert_int_equal(run_lanes(&rigs[0], paths, lanes, 1, &err), OCT_E_NO_SPACE);
        assert_int_equal(rigs[0].n, 2);
        assert_string_equal(err.text, "full");
        finish(&rigs[0]);
    }
    for (unsigned i = 0; i <= N_MOVING; i++)
        unlink(names[i]);
}
