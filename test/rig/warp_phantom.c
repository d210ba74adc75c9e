#include "test/rig/warp_phantom.h"

#include "test/rig/layered_eye.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_SCALES = 3,
    N_BLOBS = 5,
    MOST_HALVES = 3,
    N_MODES = MOST_HALVES * MOST_HALVES * MOST_HALVES,
    MARGIN = 12
};
#define LEAST_JACOBIAN 0.3
#define CONTRAST 0.6 /* of the logistic curve */
#define RIM 0.3      /* of a side: where the field falls */
#define STEEPNESS 2.5
#define PI 3.14159265358979323846

/* Random values at multiples of `step`, from -MARGIN on, blended by cubic B-splines. */
struct lattice {
    double step, weight;
    int n[3];
    float *values;
};

struct blob {
    double centre[3], width, weight;
};

struct picture {
    double extent[3];
    struct lattice lattice[N_SCALES];
    struct blob blob[N_BLOBS];
};

/* A part of the field and its derivative, each a product over axes: [axis][index]. */
struct mode {
    double vector[3];
    double *value[3], *slope[3];
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    assert_non_null(memory);
    return memory;
}

static double between(uint64_t *random, double least, double most)
{
    return least + (most - least) * oct_layered_uniform(random);
}

static double normal(uint64_t *random)
{
    const double radius = sqrt(-2 * log(oct_layered_uniform(random)));
    return radius * cos(2 * PI * oct_layered_uniform(random));
}

/* ---- the picture ---- */

static void make_picture(struct picture *p, const double extent[3], double grain, uint64_t seed)
{
    static const double steps[N_SCALES] = {2.5, 5, 10}, weights[N_SCALES] = {1.4, 1.2, 0.8};
    uint64_t random = seed * 7919 + 1;
    const double side = fmin(extent[0], fmin(extent[1], extent[2]));
    memcpy(p->extent, extent, sizeof(p->extent));
    for (int s = 0; s < N_SCALES; s++) {
        struct lattice *l = &p->lattice[s];
        size_t n = 1;
        *l = (struct lattice){.step = grain * steps[s], .weight = weights[s]};
        for (int i = 0; i < 3; i++)
            n *= (size_t)(l->n[i] = (int)((extent[i] + 2 * MARGIN) / l->step) + 5);
        l->values = get(n, sizeof(*l->values));
        for (size_t i = 0; i < n; i++)
            l->values[i] = (float)normal(&random);
    }
    for (int b = 0; b < N_BLOBS; b++) {
        struct blob *blob = &p->blob[b];
        for (int i = 0; i < 3; i++)
            blob->centre[i] = between(&random, 0.15, 0.85) * extent[i];
        blob->width = between(&random, 0.08, 0.16) * side;
        blob->weight = between(&random, 0.6, 1.2) * (b % 2 ? -1 : 1);
    }
}

static void finish_picture(struct picture *p)
{
    for (int s = 0; s < N_SCALES; s++)
        free(p->lattice[s].values);
}

static void cubic_weights(double t, double w[4])
{
    const double s = 1 - t;
    w[0] = s * s * s / 6;
    w[1] = (4 - 3 * t * t * (2 - t)) / 6;
    w[2] = (4 - 3 * s * s * (2 - s)) / 6;
    w[3] = t * t * t / 6;
}

static double lattice_at(const struct lattice *l, const double x[3])
{
    double w[3][4], sum = 0;
    int first[3];
    for (int i = 0; i < 3; i++) {
        const double at = fmax(0, fmin((x[i] + MARGIN) / l->step, l->n[i] - 4.001));
        first[i] = (int)at;
        cubic_weights(at - first[i], w[i]);
    }
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            const float *row =
                l->values + ((first[0] + a) * l->n[1] + first[1] + b) * l->n[2] + first[2];
            double of_row = 0;
            for (int c = 0; c < 4; c++)
                of_row += w[2][c] * (double)row[c];
            sum += w[0][a] * w[1][b] * of_row;
        }
    return sum;
}

static double picture_at(const struct picture *p, const double x[3])
{
    double sum = 0;
    for (int s = 0; s < N_SCALES; s++)
        sum += p->lattice[s].weight * 3 * lattice_at(&p->lattice[s], x);
    for (int b = 0; b < N_BLOBS; b++) {
        const struct blob *blob = &p->blob[b];
        double square = 0;
        for (int i = 0; i < 3; i++)
            square += (x[i] - blob->centre[i]) * (x[i] - blob->centre[i]);
        sum += blob->weight * exp(-square / (2 * blob->width * blob->width));
    }
    return 1 / (1 + exp(-CONTRAST * sum));
}

/* ---- the field ---- */

/* From 0 at the border to 1 over the rim, by a raised cosine. */
static void window_at(double x, double extent, double *value, double *slope)
{
    const double rim = extent * RIM, from = fmin(x, extent - x);
    *value = 1;
    *slope = 0;
    if (from < rim) {
        *value = 0.5 - 0.5 * cos(PI * from / rim);
        *slope = 0.5 * PI / rim * sin(PI * from / rim) * (x < extent / 2 ? 1 : -1);
    }
}

static void tabulate(struct mode *mode, int axis, uint32_t n, double extent, int halves,
                     double phase)
{
    const double wave = halves * PI / extent;
    mode->value[axis] = get(n, sizeof(double));
    mode->slope[axis] = get(n, sizeof(double));
    for (uint32_t i = 0; i < n; i++) {
        const double x = (i + 0.5) * extent / n;
        double window, slope;
        window_at(x, extent, &window, &slope);
        mode->value[axis][i] = cos(wave * x + phase) * window;
        mode->slope[axis][i] =
            slope * cos(wave * x + phase) - wave * sin(wave * x + phase) * window;
    }
}

/* Few half waves weigh the more, the greater the steepness. */
static void make_modes(struct mode modes[N_MODES], const struct oct_warp_grid *grid,
                       double steepness, uint64_t *random)
{
    for (int m = 0; m < N_MODES; m++) {
        const int halves[3] = {m / (MOST_HALVES * MOST_HALVES), m / MOST_HALVES % MOST_HALVES,
                               m % MOST_HALVES};
        const double square = pow(halves[0], 2) + pow(halves[1], 2) + pow(halves[2], 2);
        for (int i = 0; i < 3; i++) {
            modes[m].vector[i] = normal(random) * pow(1 + square, -steepness);
            tabulate(&modes[m], i, grid->dims[i], grid->dims[i] * grid->spacing[i], halves[i],
                     between(random, 0, 2 * PI));
        }
    }
}

static void free_modes(struct mode modes[N_MODES])
{
    for (int m = 0; m < N_MODES; m++)
        for (int i = 0; i < 3; i++) {
            free(modes[m].value[i]);
            free(modes[m].slope[i]);
        }
}

static void field_at(const struct mode modes[N_MODES], const uint32_t at[3], double u[3],
                     double slope[3][3])
{
    memset(u, 0, 3 * sizeof(*u));
    memset(slope, 0, 9 * sizeof(**slope));
    for (int m = 0; m < N_MODES; m++) {
        double value[3], along[3];
        for (int i = 0; i < 3; i++) {
            value[i] = modes[m].value[i][at[i]];
            along[i] = modes[m].slope[i][at[i]];
        }
        const double all = value[0] * value[1] * value[2];
        const double d[3] = {along[0] * value[1] * value[2], value[0] * along[1] * value[2],
                             value[0] * value[1] * along[2]};
        for (int i = 0; i < 3; i++) {
            u[i] += modes[m].vector[i] * all;
            for (int k = 0; k < 3; k++)
                slope[i][k] += modes[m].vector[i] * d[k];
        }
    }
}

static double jacobian_of(double s[3][3], double scale)
{
    double a[3][3];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            a[i][k] = (i == k) - scale * s[i][k];
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
           a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

static void place(const struct oct_warp_grid *grid, size_t voxel, uint32_t at[3])
{
    at[2] = (uint32_t)(voxel % grid->dims[2]);
    at[1] = (uint32_t)(voxel / grid->dims[2] % grid->dims[1]);
    at[0] = (uint32_t)(voxel / grid->dims[2] / grid->dims[1]);
}

static double length_of(const double u[3])
{
    return sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
}

/* Scaled to the mean length; false: J falls too low. */
static bool draw_field(const struct mode modes[N_MODES], double mean_length,
                       struct oct_warp_phantom *p)
{
    const size_t n = oct_warp_n_voxels(&p->grid);
    uint32_t at[3];
    double sum = 0, u[3], slope[3][3];
    for (size_t x = 0; x < n; x++) {
        place(&p->grid, x, at);
        field_at(modes, at, u, slope);
        sum += length_of(u);
    }
    const double scale = mean_length / (sum / (double)n);
    p->least_jacobian = INFINITY;
    p->longest = 0;
    for (size_t x = 0; x < n; x++) {
        place(&p->grid, x, at);
        field_at(modes, at, u, slope);
        p->least_jacobian = fmin(p->least_jacobian, jacobian_of(slope, scale));
        if (p->least_jacobian <= LEAST_JACOBIAN)
            return false;
        p->longest = fmax(p->longest, scale * length_of(u));
        for (int i = 0; i < 3; i++)
            p->displacement[(size_t)i * n + x] = (float)(scale * u[i] / p->grid.spacing[i]);
    }
    p->mean_length = mean_length;
    return true;
}

static void make_field(const struct oct_warp_phantom_setup *setup, struct oct_warp_phantom *p)
{
    uint64_t random = setup->seed * 104729 + 5;
    p->least_jacobian = 1;
    double steepness = STEEPNESS;
    for (bool is_made = !(setup->mean_length > 0); !is_made; steepness += 0.1) {
        struct mode modes[N_MODES];
        if (steepness > 6)
            fail_msg("no field of %g in the mean without a fold", setup->mean_length);
        make_modes(modes, &p->grid, steepness, &random);
        is_made = draw_field(modes, setup->mean_length, p);
        free_modes(modes);
    }
}

/* ---- the pair ---- */

void oct_warp_phantom_default(struct oct_warp_phantom_setup *setup, uint32_t side)
{
    *setup = (struct oct_warp_phantom_setup){.dims = {side, side, side},
                                             .mean_length = side > 64 ? 2.14 : 1.78,
                                             .noise = 0.02,
                                             .seed = 1};
}

static void draw(const struct picture *picture, const struct oct_warp_phantom *p,
                 const float *displacement, double noise, uint64_t seed, float *volume)
{
    const size_t n = oct_warp_n_voxels(&p->grid);
    uint64_t random = seed;
    for (size_t v = 0; v < n; v++) {
        uint32_t at[3];
        double x[3];
        place(&p->grid, v, at);
        for (size_t i = 0; i < 3; i++) {
            const double u = displacement ? (double)displacement[i * n + v] : 0;
            x[i] = (at[i] + 0.5 - u) * p->grid.spacing[i];
        }
        volume[v] = (float)(picture_at(picture, x) + noise * normal(&random));
    }
}

void oct_warp_phantom_make(const struct oct_warp_phantom_setup *setup, struct oct_warp_phantom *p)
{
    struct picture picture, other;
    double extent[3], least = INFINITY;
    memset(p, 0, sizeof(*p));
    for (int i = 0; i < 3; i++)
        least = fmin(least, setup->spacing[i] > 0 ? setup->spacing[i] : 1);
    for (int i = 0; i < 3; i++) {
        p->grid.dims[i] = setup->dims[i];
        p->grid.spacing[i] = (setup->spacing[i] > 0 ? setup->spacing[i] : 1) / least;
        extent[i] = setup->dims[i] * p->grid.spacing[i];
    }
    const size_t n = oct_warp_n_voxels(&p->grid);
    p->fixed = get(n, sizeof(float));
    p->moving = get(n, sizeof(float));
    p->displacement = get(3 * n, sizeof(float));
    make_field(setup, p);
    const double grain = setup->grain > 0 ? setup->grain : 1;
    make_picture(&picture, extent, grain, setup->seed);
    make_picture(&other, extent, grain, setup->other_seed ? setup->other_seed : setup->seed);
    draw(&picture, p, p->displacement, setup->noise, setup->seed * 31 + 7, p->fixed);
    draw(&other, p, NULL, setup->noise, setup->seed * 37 + 11, p->moving);
    finish_picture(&picture);
    finish_picture(&other);
}

void oct_warp_phantom_finish(struct oct_warp_phantom *p)
{
    free(p->fixed);
    free(p->moving);
    free(p->displacement);
    memset(p, 0, sizeof(*p));
}

static int ascending(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

void oct_warp_phantom_judge(const struct oct_warp_grid *grid, const float *truth,
                            const float *displacement, uint32_t margin,
                            struct oct_warp_phantom_error *error)
{
    const size_t n = oct_warp_n_voxels(grid);
    const double least = fmin(grid->spacing[0], fmin(grid->spacing[1], grid->spacing[2]));
    double *errors = get(n, sizeof(*errors)), sum = 0;
    size_t n_in = 0;
    for (size_t v = 0; v < n; v++) {
        uint32_t at[3];
        double from[3];
        bool is_in = true;
        place(grid, v, at);
        for (size_t i = 0; i < 3; i++) {
            is_in = is_in && at[i] >= margin && at[i] + margin < grid->dims[i];
            from[i] = ((double)displacement[i * n + v] - (double)truth[i * n + v]) *
                      grid->spacing[i] / least;
        }
        if (is_in)
            sum += errors[n_in++] = length_of(from);
    }
    assert_true(n_in > 0);
    qsort(errors, n_in, sizeof(*errors), ascending);
    *error = (struct oct_warp_phantom_error){sum / (double)n_in, errors[(n_in - 1) * 95 / 100],
                                             errors[n_in - 1]};
    free(errors);
}
