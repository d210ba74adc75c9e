#include "test/rig/warp_oracle.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_HALVINGS 8u
#define LEAST_J 0.1
#define GAIN 12
#define CONTRAST2 0.01
#define BARRIER 0.1 /* where J is below BARRIER_J; the paper has none */
#define BARRIER_J 0.3
#define LONGER_STEPS 5u

static double *get(size_t n)
{
    double *memory = calloc(n, sizeof(*memory));
    assert_non_null(memory);
    return memory;
}

static size_t count(const uint32_t dims[3])
{
    return (size_t)dims[0] * dims[1] * dims[2];
}

static size_t stride(const uint32_t dims[3], int axis)
{
    return axis == 0 ? (size_t)dims[1] * dims[2] : axis == 1 ? dims[2] : 1;
}

static void place(const uint32_t dims[3], size_t v, uint32_t at[3])
{
    at[2] = (uint32_t)(v % dims[2]);
    at[1] = (uint32_t)(v / dims[2] % dims[1]);
    at[0] = (uint32_t)(v / dims[2] / dims[1]);
}

/* Spacing in units of the finest. */
static void get_units(const struct oct_warp_grid *grid, double unit[3])
{
    const double least = fmin(grid->spacing[0], fmin(grid->spacing[1], grid->spacing[2]));
    for (int i = 0; i < 3; i++)
        unit[i] = grid->spacing[i] / least;
}

/* ---- values between voxels ---- */

/* Corners of the cell of y, clamped to the volume, and how far into it y lies. is_out: a move of y
 * along that axis changes nothing. */
struct cell {
    size_t low[3], high[3];
    double t[3];
    bool is_out[3];
};

static struct cell find_cell(const uint32_t dims[3], const double y[3])
{
    struct cell c;
    for (int i = 0; i < 3; i++) {
        const double last = dims[i] - 1.0, in = fmin(fmax(y[i], 0), last);
        const uint32_t first = (uint32_t)fmin(floor(in), last - 1);
        c.low[i] = first * stride(dims, i);
        c.high[i] = c.low[i] + stride(dims, i);
        c.t[i] = in - first;
        c.is_out[i] = y[i] < 0 || y[i] > last;
    }
    return c;
}

/* slope: axis along which the interpolant is derived; -1: its value. */
static double cell_value(const struct cell *c, const double *volume, int slope)
{
    double sum = 0;
    if (slope >= 0 && c->is_out[slope])
        return 0;
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        size_t at = 0;
        for (int i = 0; i < 3; i++) {
            const bool is_high = corner >> i & 1;
            at += is_high ? c->high[i] : c->low[i];
            weight *= i == slope ? (is_high ? 1 : -1) : is_high ? c->t[i] : 1 - c->t[i];
        }
        sum += weight * volume[at];
    }
    return sum;
}

static void mapped(const uint32_t dims[3], const double *displacement, size_t v, double y[3])
{
    uint32_t at[3];
    place(dims, v, at);
    for (size_t i = 0; i < 3; i++)
        y[i] = at[i] - displacement[i * count(dims) + v];
}

void oct_warp_oracle_warp(const uint32_t dims[3], const double *volume, const double *displacement,
                          double *warped)
{
    for (size_t v = 0; v < count(dims); v++) {
        double y[3];
        mapped(dims, displacement, v, y);
        const struct cell cell = find_cell(dims, y);
        warped[v] = cell_value(&cell, volume, -1);
    }
}

void oct_warp_oracle_compose(const uint32_t dims[3], const double *velocity, double scale,
                             const double *displacement, double *composed)
{
    const size_t n = count(dims);
    double *scaled = get(3 * n);
    for (size_t x = 0; x < 3 * n; x++)
        scaled[x] = scale * velocity[x];
    for (size_t i = 0; i < 3; i++) {
        oct_warp_oracle_warp(dims, displacement + i * n, scaled, composed + i * n);
        for (size_t v = 0; v < n; v++)
            composed[i * n + v] += scaled[i * n + v];
    }
    free(scaled);
}

/* ---- differences ---- */

/* Central, one-sided in the border layer, per voxel. */
static double difference(const uint32_t dims[3], const double *volume, size_t v, int axis)
{
    uint32_t at[3];
    place(dims, v, at);
    const size_t step = stride(dims, axis);
    if (at[axis] == 0)
        return volume[v + step] - volume[v];
    if (at[axis] + 1 == dims[axis])
        return volume[v] - volume[v - step];
    return (volume[v + step] - volume[v - step]) / 2;
}

/* I - Du. */
static void get_matrix(const uint32_t dims[3], const double *displacement, size_t v, double a[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            a[i][k] = (i == k) - difference(dims, displacement + (size_t)i * count(dims), v, k);
}

static double cofactor(double a[3][3], int i, int k)
{
    const int p = (i + 1) % 3, q = (i + 2) % 3, r = (k + 1) % 3, s = (k + 2) % 3;
    return a[p][r] * a[q][s] - a[p][s] * a[q][r];
}

double oct_warp_oracle_jacobian(const uint32_t dims[3], const double *displacement,
                                double *jacobian)
{
    double least = INFINITY;
    for (size_t v = 0; v < count(dims); v++) {
        double a[3][3];
        get_matrix(dims, displacement, v, a);
        jacobian[v] =
            a[0][0] * cofactor(a, 0, 0) + a[0][1] * cofactor(a, 0, 1) + a[0][2] * cofactor(a, 0, 2);
        least = fmin(least, jacobian[v]);
    }
    return least;
}

/* ---- energy and forces ---- */

static double barrier_of(const struct oct_warp_oracle *o, double j)
{
    return o->params.profile == OCT_WARP_OCTD && j < BARRIER_J ? BARRIER : 0;
}

static double residual_at(const struct oct_warp_oracle *o, const double *warped, size_t v)
{
    return o->mask && !o->mask[v] ? 0 : warped[v] - o->fixed[v];
}

double oct_warp_oracle_energy(const struct oct_warp_oracle *o, const double *displacement,
                              double *ssd)
{
    const size_t n = count(o->grid.dims);
    double *warped = get(n), *jacobian = get(n), squares = 0, distance = 0;
    oct_warp_oracle_warp(o->grid.dims, o->moving, displacement, warped);
    oct_warp_oracle_jacobian(o->grid.dims, displacement, jacobian);
    for (size_t v = 0; v < n; v++) {
        const double residual = residual_at(o, warped, v), j = jacobian[v];
        squares += residual * residual;
        const double x = j / BARRIER_J;
        distance += j > 0
                        ? o->params.lambda * (j - 1) * log(j) + barrier_of(o, j) * (x - 1 - log(x))
                        : INFINITY;
    }
    free(warped);
    free(jacobian);
    if (ssd)
        *ssd = squares;
    return squares / 2 + distance;
}

static void eulerian(const struct oct_warp_oracle *o, const double *displacement, double *force)
{
    const uint32_t *dims = o->grid.dims;
    const size_t n = count(dims);
    double *warped = get(n), *potential = get(n);
    oct_warp_oracle_warp(dims, o->moving, displacement, warped);
    oct_warp_oracle_jacobian(dims, displacement, potential);
    for (size_t v = 0; v < n; v++) {
        const double j = potential[v];
        potential[v] = o->params.lambda * (j + log(j)) + barrier_of(o, j) * log(j / BARRIER_J);
    }
    for (size_t v = 0; v < n; v++)
        for (int i = 0; i < 3; i++)
            force[(size_t)i * n + v] = residual_at(o, warped, v) * difference(dims, warped, v, i) -
                                       difference(dims, potential, v, i);
    free(warped);
    free(potential);
}

/* flux: [9][n] of cof_ik L'. */
static void get_flux(const uint32_t dims[3], const double *displacement, double *flux)
{
    const size_t n = count(dims);
    for (size_t v = 0; v < n; v++) {
        double a[3][3];
        get_matrix(dims, displacement, v, a);
        const double j =
            a[0][0] * cofactor(a, 0, 0) + a[0][1] * cofactor(a, 0, 1) + a[0][2] * cofactor(a, 0, 2);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++)
                flux[(size_t)(3 * i + k) * n + v] = cofactor(a, i, k) * (1 + log(j) - 1 / j);
    }
}

static void lagrangian_force(const struct oct_warp_oracle *o, const double *displacement,
                             double *force)
{
    const uint32_t *dims = o->grid.dims;
    const size_t n = count(dims);
    double *flux = get(9 * n);
    get_flux(dims, displacement, flux);
    for (size_t v = 0; v < n; v++) {
        double y[3];
        mapped(dims, displacement, v, y);
        const struct cell cell = find_cell(dims, y);
        const double away = cell_value(&cell, o->moving, -1) - o->fixed[v];
        const double residual = o->mask && !o->mask[v] ? 0 : away;
        for (int i = 0; i < 3; i++) {
            double sum = 0;
            for (int k = 0; k < 3; k++)
                sum += difference(dims, flux + (size_t)(3 * i + k) * n, v, k);
            force[(size_t)i * n + v] =
                residual * cell_value(&cell, o->moving, i) - o->params.lambda * sum;
        }
    }
    free(flux);
}

void oct_warp_oracle_force(const struct oct_warp_oracle *o, const double *displacement,
                           bool lagrangian, double *force)
{
    (lagrangian ? lagrangian_force : eulerian)(o, displacement, force);
}

/* ---- a step ---- */

static void smooth_along(const uint32_t dims[3], int axis, double sigma, double *volume)
{
    const int n = (int)dims[axis], reach = (int)ceil(3 * sigma);
    const size_t step = stride(dims, axis);
    double *weights = get((size_t)(2 * reach + 1)), *line = get((size_t)(n + 2 * reach)), sum = 0;
    for (int k = -reach; k <= reach; k++)
        sum += weights[k + reach] = exp(-k * k / (2 * sigma * sigma));
    for (size_t first = 0; first < count(dims); first++) {
        if (first / step % dims[axis])
            continue;
        for (int i = -reach; i < n + reach; i++)
            line[i + reach] = volume[first + (size_t)(i < 0 ? 0 : i >= n ? n - 1 : i) * step];
        for (int i = 0; i < n; i++) {
            double value = 0;
            for (int k = 0; k <= 2 * reach; k++)
                value += weights[k] * line[i + k];
            volume[first + (size_t)i * step] = value / sum;
        }
    }
    free(weights);
    free(line);
}

void oct_warp_oracle_smooth(const uint32_t dims[3], const double sigma[3], double *volume)
{
    for (int axis = 0; axis < 3; axis++)
        smooth_along(dims, axis, sigma[axis], volume);
}

/* Lengths are in units of the finest spacing until the end, which makes voxels of them. */
void oct_warp_oracle_velocity(const struct oct_warp_oracle *o, const double *displacement,
                              double *velocity)
{
    const uint32_t *dims = o->grid.dims;
    const struct oct_warp_params *p = &o->params;
    const size_t n = count(dims);
    double *warped = get(n), *jacobian = get(n), unit[3], sigma[3];
    get_units(&o->grid, unit);
    oct_warp_oracle_warp(dims, o->moving, displacement, warped);
    oct_warp_oracle_jacobian(dims, displacement, jacobian);
    oct_warp_oracle_force(o, displacement, false, velocity);
    for (size_t v = 0; v < n; v++) {
        const double residual = residual_at(o, warped, v);
        double square = 0;
        for (int i = 0; i < 3; i++)
            square += pow(difference(dims, warped, v, i) / unit[i], 2);
        const double divisor = square + p->kappa * residual * residual + 8 * p->lambda + CONTRAST2 +
                               4 * barrier_of(o, jacobian[v]);
        for (size_t i = 0; i < 3; i++)
            velocity[i * n + v] *= GAIN / (unit[i] * divisor);
    }
    for (int i = 0; i < 3; i++)
        sigma[i] = p->sigma / unit[i];
    for (size_t i = 0; i < 3; i++)
        oct_warp_oracle_smooth(dims, sigma, velocity + i * n);
    for (size_t v = 0; v < n; v++) {
        const double length =
            sqrt(pow(velocity[v], 2) + pow(velocity[n + v], 2) + pow(velocity[2 * n + v], 2));
        for (size_t i = 0; i < 3; i++)
            velocity[i * n + v] *= fmin(1, p->most_step / length) / unit[i];
    }
    free(warped);
    free(jacobian);
}

/* ---- levels ---- */

/* false: eight halvings did not help, and the displacement is as it was. A step that is taken says
 * in *scale what the next one begins with; *n_taken: those in a row. */
static bool take_step(const struct oct_warp_oracle *o, double *displacement, double *scale,
                      unsigned *n_taken, struct oct_warp_level *level)
{
    const size_t n = count(o->grid.dims);
    double *velocity = get(3 * n), *next = get(3 * n), *jacobian = get(n);
    bool is_taken = false;
    oct_warp_oracle_velocity(o, displacement, velocity);
    for (unsigned halvings = 0; halvings <= MOST_HALVINGS && !is_taken; halvings++) {
        double ssd;
        *scale /= halvings > 0 ? 2 : 1;
        *n_taken = halvings > 0 ? 0 : *n_taken;
        oct_warp_oracle_compose(o->grid.dims, velocity, *scale, displacement, next);
        const double least = oct_warp_oracle_jacobian(o->grid.dims, next, jacobian);
        const double energy = oct_warp_oracle_energy(o, next, &ssd);
        level->halvings += halvings > 0;
        is_taken = least >= LEAST_J && energy <= level->energy;
        if (is_taken) {
            level->energy = energy;
            level->ssd = ssd;
            level->least_jacobian = least;
            memcpy(displacement, next, 3 * n * sizeof(*next));
        }
    }
    if (*scale < 1 && ++*n_taken == LONGER_STEPS) {
        *scale *= 2;
        *n_taken = 0;
    }
    free(velocity);
    free(next);
    free(jacobian);
    return is_taken;
}

void oct_warp_oracle_level(const struct oct_warp_oracle *o, unsigned iterations,
                           double *displacement, struct oct_warp_level *level)
{
    double *jacobian = get(count(o->grid.dims)), before[6], scale = 1;
    unsigned n_taken = 0;
    *level = (struct oct_warp_level){.factor = 1};
    level->energy_first = level->energy =
        oct_warp_oracle_energy(o, displacement, &level->ssd_first);
    level->ssd = level->ssd_first;
    level->least_jacobian = oct_warp_oracle_jacobian(o->grid.dims, displacement, jacobian);
    for (unsigned i = 0; i < iterations; i++) {
        before[i % 6] = level->energy;
        if (i >= 5 && before[(i - 5) % 6] - level->energy < 1e-3 * before[(i - 5) % 6])
            break;
        if (!take_step(o, displacement, &scale, &n_taken, level))
            break;
        level->iterations++;
    }
    free(jacobian);
}

double *oct_warp_oracle_coarse(const uint32_t dims[3], unsigned k, const double *volume,
                               const uint8_t *mask, uint32_t coarse[3])
{
    const double sigma[3] = {0.5 * k, 0.5 * k, 0.5 * k};
    double *smooth = get(count(dims)), *weights = get(count(dims));
    for (size_t v = 0; v < count(dims); v++) {
        weights[v] = !mask || mask[v];
        smooth[v] = weights[v] * volume[v];
    }
    if (k > 1) {
        oct_warp_oracle_smooth(dims, sigma, smooth);
        oct_warp_oracle_smooth(dims, sigma, weights);
    }
    for (size_t v = 0; v < count(dims); v++)
        smooth[v] /= fmax(weights[v], 1e-9);
    for (int i = 0; i < 3; i++)
        coarse[i] = dims[i] / k;
    double *result = get(count(coarse));
    for (size_t v = 0; v < count(coarse); v++) {
        uint32_t at[3];
        double y[3];
        place(coarse, v, at);
        for (int i = 0; i < 3; i++)
            y[i] = k * at[i] + (k - 1) / 2.0;
        const struct cell cell = find_cell(dims, y);
        result[v] = cell_value(&cell, smooth, -1);
    }
    free(smooth);
    free(weights);
    return result;
}

/* Of a level of one factor for the next. */
static double *make_displacement(const uint32_t from[3], unsigned k_from, const uint32_t to[3],
                                 unsigned k_to, const double *displacement)
{
    double *result = get(3 * count(to));
    for (size_t v = 0; v < count(to); v++) {
        uint32_t at[3];
        double y[3];
        place(to, v, at);
        for (int i = 0; i < 3; i++)
            y[i] = (k_to * at[i] + (k_to - 1) / 2.0 - (k_from - 1) / 2.0) / k_from;
        const struct cell cell = find_cell(from, y);
        for (size_t i = 0; i < 3; i++)
            result[i * count(to) + v] =
                cell_value(&cell, displacement + i * count(from), -1) * k_from / k_to;
    }
    return result;
}

void oct_warp_oracle_solve(const struct oct_warp_oracle *o, double *displacement,
                           struct oct_warp_report *report)
{
    const uint32_t *dims = o->grid.dims;
    uint32_t from[3] = {dims[0], dims[1], dims[2]}, to[3] = {0};
    unsigned k_from = 1;
    double *u = get(3 * count(dims));
    *report = (struct oct_warp_report){.n_levels = o->params.n_levels};
    for (unsigned l = 0; l <= o->params.n_levels; l++) {
        const unsigned k = l < o->params.n_levels ? o->params.factor[l] : 1;
        for (int i = 0; i < 3; i++)
            to[i] = dims[i] / k;
        double *next = make_displacement(from, k_from, to, k, u);
        free(u);
        u = next;
        if (l < o->params.n_levels) {
            double *fixed = oct_warp_oracle_coarse(dims, k, o->fixed, NULL, to);
            double *moving = oct_warp_oracle_coarse(dims, k, o->moving, NULL, to);
            struct oct_warp_oracle coarse = *o;
            memcpy(coarse.grid.dims, to, sizeof(to));
            coarse.fixed = fixed;
            coarse.moving = moving;
            oct_warp_oracle_level(&coarse, o->params.iterations[l], u, &report->level[l]);
            report->level[l].factor = k;
            free(fixed);
            free(moving);
        }
        memcpy(from, to, sizeof(from));
        k_from = k;
    }
    memcpy(displacement, u, 3 * count(dims) * sizeof(*u));
    free(u);
}
