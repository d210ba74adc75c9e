/* The stages of interpolation = nufft on the CPU against the plan's tables in double precision:
 * every way that an instruction set of this machine goes. Whether the tables are right the engine
 * tests see, by the exact sum. */
#include "kernels/recon/lanes.h"
#include "kernels/recon/stages.h"
#include "test/rig/tap.h"

#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
static const char *const sets[] = {"plain", "avx2", "avx512"};

enum map { EVEN, STEEP, FALLING };

/* STEEP: k = t^3 over the line stands nearly still at one end and runs at three times the pace at
 * the other; with padding nearly all samples meet in two blocks. All fill the grid where N = P1, so
 * that samples reach around its end. */
static const struct {
    uint32_t n_samples;
    enum map map;
    bool wraps;
    uint32_t most_taps; /* of a block */
} cases[] = {{832, EVEN, false, 10},    {1024, STEEP, false, 1024}, {2048, EVEN, true, 12},
             {2047, FALLING, true, 20}, {2048, STEEP, true, 64},    {4096, STEEP, true, 64},
             {4099, EVEN, false, 12},   {8192, FALLING, true, 20}};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

#define UNTOUCHED (-1.0f)
#define MOST_NOISE 1e-6 /* of the root mean square, as test_lanes.c has it */

static void *grab(size_t n, size_t size)
{
    size_t bytes = (n * size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return memory;
}

static float uniform(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (1u << 23) - 1;
}

/* ---- a plan, two lines of noise, and what they become ---- */

struct scene {
    struct oct_plan *plan;
    struct oct_spread_blocks blocks;
    float *memory[2];
    const float *line[2];
    fftw_complex *f[2], *bins[2]; /* [n_grid] */
    double rms[2];                /* of the bins */
};

static double kmap_at(enum map map, double t)
{
    return map == EVEN ? t : map == STEEP ? t * t * t : 1 - t * (0.6 + 0.4 * t);
}

static struct oct_plan *make_plan(uint32_t n, enum map map)
{
    enum { KNOTS = 257 };
    struct oct_error err;
    struct oct_geometry g;
    struct oct_plan *plan;
    double kmap[KNOTS], *phase;
    uint32_t seed = n;

    for (int i = 0; i < KNOTS; i++)
        kmap[i] = kmap_at(map, 0.03 + 0.97 * i / (KNOTS - 1)) * (n - 1);
    assert_int_equal(
        oct_geometry_init(&g, n, 2, 1, 0, oct_geometry_padded(n) / 2, OCT_SAMPLE_F32, &err),
        OCT_OK);
    phase = grab(2 * (size_t)g.upsampled, sizeof(double));
    for (uint32_t q = 0; q < g.upsampled; q++) {
        double angle = 2 * pi * uniform(&seed);
        phase[2 * (size_t)q] = cos(angle);
        phase[2 * (size_t)q + 1] = sin(angle);
    }
    const struct oct_calibration cal = {
        .kmap_px = kmap, .n_kmap = KNOTS, .dispersion = phase, .n_dispersion = g.upsampled};
    const struct oct_chain chain = {.dc = OCT_DC_NONE, .interpolation = OCT_INTERPOLATION_NUFFT};
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &chain, &err), OCT_OK);
    free(phase);
    return plan;
}

/* f of one line by the equation of spread.h, and its transform. */
static void expect(struct scene *s, int i)
{
    const struct oct_spread *spread = &s->plan->spread;
    uint32_t n = s->plan->geometry.n_samples, n_grid = spread->n_grid;

    s->f[i] = grab(n_grid, sizeof(fftw_complex));
    s->bins[i] = grab(n_grid, sizeof(fftw_complex));
    for (uint32_t g = 0; g < spread->n_used; g++)
        for (uint32_t t = spread->at[g]; t < spread->at[g + 1]; t++) {
            double x = s->line[i][(spread->first[g] + (t - spread->at[g])) % n];
            s->f[i][g][0] += spread->re[t] * x;
            s->f[i][g][1] += spread->im[t] * x;
        }
    fftw_plan plan =
        fftw_plan_dft_1d((int)n_grid, s->f[i], s->bins[i], FFTW_FORWARD, FFTW_ESTIMATE);
    assert_non_null(plan);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    for (uint32_t k = 0; k < n_grid; k++)
        s->rms[i] += (s->bins[i][k][0] * s->bins[i][k][0] + s->bins[i][k][1] * s->bins[i][k][1]);
    s->rms[i] = sqrt(s->rms[i] / n_grid);
}

/* Memory of no more than the header asks for: sanitizers see what is read beyond. */
static void make_scene(struct scene *s, size_t c)
{
    uint32_t n = cases[c].n_samples, seed = 3 * n;
    *s = (struct scene){.plan = make_plan(n, cases[c].map)};
    assert_int_equal(oct_spread_blocks_init(&s->blocks, &s->plan->spread, n), OCT_OK);
    assert_true(s->blocks.n_ahead % 16 == 0 && s->blocks.n_wrap <= s->blocks.n_ahead);
    assert_true(s->blocks.n_wrap <= n && (s->blocks.n_wrap > 0) == cases[c].wraps);
    for (uint32_t b = 0; b < s->blocks.n_blocks; b++)
        assert_true(s->blocks.block[b].n_taps <= cases[c].most_taps);
    for (int i = 0; i < 2; i++) {
        s->memory[i] = grab(s->blocks.n_ahead + n + OCT_SPREAD_SLACK, sizeof(float));
        float *at = s->memory[i] + s->blocks.n_ahead;
        for (uint32_t k = 0; k < n; k++)
            at[k] = uniform(&seed);
        memcpy(at - s->blocks.n_wrap, at + n - s->blocks.n_wrap, s->blocks.n_wrap * sizeof(*at));
        s->line[i] = at;
        expect(s, i);
    }
}

static void free_scene(struct scene *s)
{
    for (int i = 0; i < 2; i++) {
        free(s->memory[i]);
        free(s->f[i]);
        free(s->bins[i]);
    }
    oct_spread_blocks_finish(&s->blocks);
    oct_plan_destroy(s->plan);
}

/* ---- the grid ---- */

static double grid_noise(const struct scene *s, int i, const float *f)
{
    uint32_t n = s->blocks.n_blocks * OCT_SPREAD_BLOCK;
    double worst = 0, most = 0;
    for (uint32_t g = 0; g < n; g++) {
        double re = s->f[i][g][0], im = s->f[i][g][1];
        double off = hypot(f[2 * (size_t)g] - re, f[2 * (size_t)g + 1] - im);
        worst = off > worst || isnan(off) ? off : worst;
        most = fmax(most, hypot(re, im));
    }
    assert_true(f[2 * (size_t)n] == UNTOUCHED);
    return worst / most;
}

static void check_grid(const struct scene *s, const struct oct_stages *stages)
{
    size_t n = 2 * (size_t)s->blocks.n_blocks * OCT_SPREAD_BLOCK;
    float *f[2] = {grab(n + 1, sizeof(float)), grab(n + 1, sizeof(float))};

    f[0][n] = f[1][n] = UNTOUCHED;
    stages->spread_pair(f[0], f[1], s->line[0], s->line[1], &s->blocks);
    for (int i = 0; i < 2; i++)
        assert_true(grid_noise(s, i, f[i]) < MOST_NOISE);
    /* A line alone stands for both. */
    stages->spread_pair(f[0], f[1], s->line[1], s->line[1], &s->blocks);
    for (int i = 0; i < 2; i++)
        assert_true(grid_noise(s, 1, f[i]) < MOST_NOISE);
    free(f[0]);
    free(f[1]);
}

static void the_grid_is_the_sum_of_the_tables(void **state)
{
    for (size_t c = 0; c < N_CASES; c++) {
        struct scene s;
        make_scene(&s, c);
        for (size_t i = 0; i < 3; i++)
            if (oct_stages_select(sets[i]))
                check_grid(&s, oct_stages_select(sets[i]));
        free_scene(&s);
    }
}

/* ---- to depth ---- */

/* Worst amplitude of the first n, before the gain; those behind must be untouched. */
static double depth_noise(const struct scene *s, int i, const float *power, uint32_t n)
{
    const struct oct_spread *spread = &s->plan->spread;
    double worst = 0;
    for (uint32_t d = 0; d < spread->n_grid / 2; d++) {
        if (d >= n) {
            assert_true(power[d] == UNTOUCHED);
            continue;
        }
        double amplitude = hypot(s->bins[i][d][0], s->bins[i][d][1]);
        double off = fabs(sqrt(power[d] / (double)spread->gain[d]) - amplitude);
        worst = off > worst || isnan(off) ? off : worst;
    }
    return worst / s->rms[i];
}

static double run_depth(const struct scene *s, const struct oct_lanes *lanes,
                        const struct oct_lane_fft *fft, unsigned n_out, bool both)
{
    uint32_t n = s->plan->spread.n_grid / 2;
    float *memory[2] = {grab(n, sizeof(float)), grab(n, sizeof(float))};
    float *const power[2] = {memory[0], both ? memory[1] : NULL};
    float *work = grab(2 * oct_lane_work_floats(fft->n), sizeof(float));
    double worst = 0;

    for (uint32_t d = 0; d < n; d++)
        memory[0][d] = memory[1][d] = UNTOUCHED;
    lanes->spread_to_depth(power, (float *[2]){NULL, NULL}, s->line, &s->blocks,
                           s->plan->spread.gain, fft, n_out, work);
    for (int i = 0; i < 2; i++) {
        double noise = depth_noise(s, i, memory[i], i == 0 || both ? fft->n / 16 * n_out : 0);
        worst = noise > worst || isnan(noise) ? noise : worst;
        free(memory[i]);
    }
    free(work);
    return worst;
}

static void check_depth(const struct scene *s, const struct oct_stages *stages)
{
    static const unsigned outs[] = {1, 4, 8};
    struct oct_lane_fft fft;
    double worst = 0;

    assert_int_equal(oct_lane_fft_init(&fft, s->plan->spread.n_grid), OCT_OK);
    for (int i = 0; i < 6; i++)
        worst = fmax(worst, run_depth(s, stages->lanes, &fft, outs[i % 3], i < 3));
    printf("# %s, %u samples, %u points: %.1e\n", stages->name, s->plan->geometry.n_samples, fft.n,
           worst);
    assert_true(worst < MOST_NOISE);
    oct_lane_fft_finish(&fft);
}

static void the_depths_are_the_transform_of_the_grid(void **state)
{
    for (size_t c = 0; c < N_CASES; c++) {
        struct scene s;
        make_scene(&s, c);
        assert_true(oct_lanes_cover_grid(s.plan->spread.n_grid));
        for (size_t i = 0; i < 3; i++)
            if (oct_stages_select(sets[i]) && oct_stages_select(sets[i])->lanes)
                check_depth(&s, oct_stages_select(sets[i]));
        free_scene(&s);
    }
}

static void the_power_takes_the_gain(void **state)
{
    static const float z[] = {3, 4, 0, 0, -1, 2, 0.5f, 0, 1e10f, 1e10f};
    static const float gain[] = {2, 3, 0.5f, 4, 1}, expected[] = {50, 0, 2.5f, 1, 2e20f};
    for (size_t i = 0; i < 3; i++) {
        const struct oct_stages *stages = oct_stages_select(sets[i]);
        float value[6] = {0};
        if (!stages)
            continue;
        value[5] = UNTOUCHED;
        stages->intensity_gained(value, z, gain, 5);
        for (int d = 0; d < 5; d++)
            assert_true(fabsf(value[d] - expected[d]) <= 1e-6f * expected[d]);
        assert_true(value[5] == UNTOUCHED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grid_is_the_sum_of_the_tables),
        cmocka_unit_test(the_depths_are_the_transform_of_the_grid),
        cmocka_unit_test(the_power_takes_the_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
