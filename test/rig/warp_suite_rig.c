#include "test/rig/warp_suite_rig.h"

#include "test/rig/layered_eye.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct oct_warp_suite in_use;

void oct_warp_suite_use(const struct oct_warp_suite *suite)
{
    in_use = *suite;
}

const struct oct_warp_suite *oct_warp_suite_now(void)
{
    return &in_use;
}

bool oct_warp_suite_has_paper(void)
{
    return in_use.ops == &oct_warp_cpu;
}

void *oct_warp_suite_get(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    assert_non_null(memory);
    return memory;
}

/* ---- engines ---- */

struct oct_warp_grid oct_warp_suite_grid(uint32_t n_b, uint32_t n_j, uint32_t n_d)
{
    return (struct oct_warp_grid){.dims = {n_b, n_j, n_d}, .spacing = {1, 1, 1}};
}

struct oct_warp_setup oct_warp_suite_setup(const struct oct_warp_grid *grid)
{
    struct oct_warp_setup setup = {
        .grid = *grid, .workers = in_use.workers, .deadline_ms = in_use.deadline_ms};
    oct_warp_params_default(&setup.params, OCT_WARP_OCTD, grid->dims);
    return setup;
}

void oct_warp_suite_one_level(struct oct_warp_params *params, unsigned iterations)
{
    params->n_levels = 1;
    params->factor[0] = 1;
    params->iterations[0] = iterations;
}

enum oct_err oct_warp_suite_create(struct oct_warp_suite_engine *e,
                                   const struct oct_warp_setup *setup, struct oct_error *err)
{
    e->ops = in_use.ops;
    return in_use.backend ? in_use.select(&e->ops, &e->engine, in_use.backend, setup, err)
                          : e->ops->create(&e->engine, setup, err);
}

struct oct_warp_suite_engine oct_warp_suite_open(const struct oct_warp_setup *setup)
{
    struct oct_warp_suite_engine e;
    must(oct_warp_suite_create(&e, setup, &failure));
    return e;
}

void oct_warp_suite_close(struct oct_warp_suite_engine *e)
{
    assert_string_equal(e->ops->running ? e->ops->running(e->engine) : e->ops->name,
                        in_use.ops->name);
    e->ops->destroy(e->engine);
}

void oct_warp_suite_solve(const struct oct_warp_setup *setup, const float *fixed,
                          const float *moving, const uint8_t *mask, float *displacement,
                          struct oct_warp_report *report)
{
    struct oct_warp_suite_engine e = oct_warp_suite_open(setup);
    must(e.ops->solve(e.engine, fixed, moving, mask, displacement, report, NULL, &failure));
    oct_warp_suite_close(&e);
}

/* ---- fields ---- */

static void draw_waves(const uint32_t dims[3], uint64_t seed, float *u)
{
    enum { N_WAVES = 3 };
    const size_t n =
        oct_warp_n_voxels(&(struct oct_warp_grid){{dims[0], dims[1], dims[2]}, {0}, 0});
    uint64_t random = seed * 31337 + 1;
    for (size_t i = 0; i < 3; i++) {
        double k[N_WAVES][3], phase[N_WAVES];
        for (int w = 0; w < N_WAVES; w++) {
            for (int a = 0; a < 3; a++)
                k[w][a] = 0.7 * (2 * oct_layered_uniform(&random) - 1);
            phase[w] = 6.28 * oct_layered_uniform(&random);
        }
        for (size_t v = 0; v < n; v++) {
            const size_t at[3] = {v / dims[2] / dims[1], v / dims[2] % dims[1], v % dims[2]};
            double sum = 0;
            for (int w = 0; w < N_WAVES; w++)
                sum += sin(k[w][0] * (double)at[0] + k[w][1] * (double)at[1] +
                           k[w][2] * (double)at[2] + phase[w]);
            u[i * n + v] = (float)(sum / N_WAVES);
        }
    }
}

void oct_warp_suite_field(const uint32_t dims[3], double most, uint64_t seed, float *u)
{
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    draw_waves(dims, seed, u);
    for (size_t x = 0; x < 3 * n; x++)
        u[x] *= (float)most;
    while (oct_warp_suite_look(dims, u).least <= 0.3)
        for (size_t x = 0; x < 3 * n; x++)
            u[x] *= 0.9f;
}

double *oct_warp_suite_double(const float *values, size_t n)
{
    double *copy = oct_warp_suite_get(n, sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        copy[i] = (double)values[i];
    return copy;
}

struct oct_warp_oracle oct_warp_suite_oracle(const struct oct_warp_setup *setup, const float *fixed,
                                             const float *moving, const uint8_t *mask)
{
    const size_t n = oct_warp_n_voxels(&setup->grid);
    return (struct oct_warp_oracle){.grid = setup->grid,
                                    .params = setup->params,
                                    .fixed = oct_warp_suite_double(fixed, n),
                                    .moving = oct_warp_suite_double(moving, n),
                                    .mask = mask};
}

void oct_warp_suite_finish(struct oct_warp_oracle *oracle)
{
    free((void *)(uintptr_t)oracle->fixed);
    free((void *)(uintptr_t)oracle->moving);
}

double oct_warp_suite_away(const float *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(a[i]));
        most = fmax(most, fabs((double)a[i] - b[i]));
    }
    return most;
}

double oct_warp_suite_largest(const double *values, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(values[i]));
    return most;
}

struct oct_warp_suite_change oct_warp_suite_look(const uint32_t dims[3], const float *displacement)
{
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    double *u = oct_warp_suite_double(displacement, 3 * n);
    double *jacobian = oct_warp_suite_get(n, sizeof(*jacobian)), sum = 0, squares = 0;
    struct oct_warp_suite_change change;
    change.least = oct_warp_oracle_jacobian(dims, u, jacobian);
    for (size_t v = 0; v < n; v++) {
        sum += log(jacobian[v]);
        squares += log(jacobian[v]) * log(jacobian[v]);
    }
    change.mean_log = sum / (double)n;
    change.sd_log = sqrt(squares / (double)n - change.mean_log * change.mean_log);
    free(u);
    free(jacobian);
    return change;
}
