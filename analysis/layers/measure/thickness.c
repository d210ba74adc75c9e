#include "analysis/layers/measure/thickness.h"

#include "numeric/parabola.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

const char *const oct_etdrs_names[OCT_ETDRS_N_SECTORS] = {
    "centre",         "inner superior", "inner nasal",    "inner inferior", "inner temporal",
    "outer superior", "outer nasal",    "outer inferior", "outer temporal"};

uint64_t oct_thickness_map(const float *upper, const float *lower, uint64_t n, double depth_um,
                           float *thickness_um)
{
    uint64_t n_known = 0;
    for (uint64_t i = 0; i < n; i++) {
        thickness_um[i] = (float)(((double)lower[i] - (double)upper[i]) * depth_um);
        n_known += isfinite(thickness_um[i]) != 0;
        if (!isfinite(thickness_um[i]))
            thickness_um[i] = NAN;
    }
    return n_known;
}

/* ---- the ETDRS grid ---- */

const double oct_etdrs_radii_mm[OCT_ETDRS_N_CIRCLES] = {0.5, 1.5, 3};
#define CENTRE_MM oct_etdrs_radii_mm[0]
#define INNER_MM oct_etdrs_radii_mm[1]
#define OUTER_MM oct_etdrs_radii_mm[2]
#define PART_UM 20.0   /* the area of an A-line is divided into parts of this size at most, */
#define MOST_PARTS 32u /* and as many along an axis */

enum oct_etdrs_sector oct_etdrs_sector_at(double right_mm, double up_mm, bool nasal_is_right)
{
    const double radius = hypot(right_mm, up_mm);
    const bool is_nasal = nasal_is_right == (right_mm > 0);
    if (!(radius <= OUTER_MM))
        return OCT_ETDRS_N_SECTORS;
    if (radius <= CENTRE_MM)
        return OCT_ETDRS_CENTRE;
    const enum oct_etdrs_sector side =
        fabs(up_mm) >= fabs(right_mm)
            ? (up_mm > 0 ? OCT_ETDRS_INNER_SUPERIOR : OCT_ETDRS_INNER_INFERIOR)
            : (is_nasal ? OCT_ETDRS_INNER_NASAL : OCT_ETDRS_INNER_TEMPORAL);
    return radius <= INNER_MM ? side : side + (OCT_ETDRS_OUTER_SUPERIOR - OCT_ETDRS_INNER_SUPERIOR);
}

static double sector_mm2(enum oct_etdrs_sector sector)
{
    if (sector == OCT_ETDRS_CENTRE)
        return PI * CENTRE_MM * CENTRE_MM;
    if (sector < OCT_ETDRS_OUTER_SUPERIOR)
        return PI * (INNER_MM * INNER_MM - CENTRE_MM * CENTRE_MM) / 4;
    return PI * (OUTER_MM * OUTER_MM - INNER_MM * INNER_MM) / 4;
}

static unsigned parts_of(double um)
{
    const double parts = ceil(um / PART_UM);
    return parts < 1 ? 1 : parts < MOST_PARTS ? (unsigned)parts : MOST_PARTS;
}

struct sums {
    double thickness_um[OCT_ETDRS_N_SECTORS]; /* times parts */
    double n_parts[OCT_ETDRS_N_SECTORS];
};

/* The area about an A-line, which may belong to several sectors. */
static void add_line(const struct oct_etdrs_setup *s, uint32_t b, uint32_t j, double thickness_um,
                     struct sums *sums)
{
    const unsigned n_b = parts_of(s->bscan_um), n_j = parts_of(s->line_um);
    for (unsigned p = 0; p < n_b; p++)
        for (unsigned q = 0; q < n_j; q++) {
            const double down = (b + (p + 0.5) / n_b - 0.5 - s->fovea_b) * s->bscan_um / 1000;
            const double right = (j + (q + 0.5) / n_j - 0.5 - s->fovea_j) * s->line_um / 1000;
            const enum oct_etdrs_sector sector = oct_etdrs_sector_at(
                right, s->superior_is_last ? down : -down, s->has_sides ? s->nasal_is_right : true);
            if (sector == OCT_ETDRS_N_SECTORS)
                continue;
            sums->thickness_um[sector] += thickness_um;
            sums->n_parts[sector]++;
        }
}

void oct_etdrs_measure(const struct oct_etdrs_setup *setup, const float *thickness_um,
                       struct oct_etdrs *etdrs)
{
    const struct oct_etdrs_setup *s = setup;
    struct sums sums = {.n_parts = {0}};
    const double part_mm2 =
        s->bscan_um * s->line_um * 1e-6 / ((double)parts_of(s->bscan_um) * parts_of(s->line_um));
    for (uint32_t b = 0; b < s->n_bscans; b++) {
        if ((fabs(b - s->fovea_b) - 0.5) * s->bscan_um > OUTER_MM * 1000)
            continue;
        for (uint32_t j = 0; j < s->n_lines; j++) {
            const double um = (double)thickness_um[(size_t)b * s->n_lines + j];
            if (isfinite(um) && (fabs(j - s->fovea_j) - 0.5) * s->line_um <= OUTER_MM * 1000)
                add_line(s, b, j, um, &sums);
        }
    }
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        const double n = sums.n_parts[i];
        etdrs->mean_um[i] = n > 0 ? sums.thickness_um[i] / n : NAN;
        etdrs->covered[i] = fmin(1, n * part_mm2 / sector_mm2((enum oct_etdrs_sector)i));
    }
}

/* ---- the fovea ---- */

#define SIGMA_UM 50.0 /* of the Gaussian: 100 um wide */
#define CELL_UM 25.0  /* of the grid that is smoothed; A-lines further apart are a cell each */
#define REACH_UM 1000.0
#define MOST_RISE_UM 10.0 /* of the pit's sides, where they are in view */
#define LEAST_RISE_UM 4.0
#define RISE_A_UM (1.0 / 30) /* in view */
#define N_DIRECTIONS 8u
#define LEAST_CELLS 3u /* along each axis: a pit and its sides */

/* The map as means of cells, smoothed. */
struct relief {
    uint32_t n_y, n_x;
    uint32_t rows, columns; /* of the map in a cell */
    double y_um, x_um;      /* of a cell */
    double *value;          /* [n_y][n_x] um; NaN: nothing known about there */
    double *weight;         /* alike */
    double *scratch;        /* [2][n_y][n_x] */
};

static uint32_t lines_a_cell(double um, uint32_t n)
{
    const double lines = floor(CELL_UM / um);
    return lines < 1 ? 1 : lines < n ? (uint32_t)lines : n;
}

static void fill_cells(struct relief *r, const float *thickness_um, uint32_t n_bscans,
                       uint32_t n_lines)
{
    for (uint32_t b = 0; b < n_bscans; b++)
        for (uint32_t j = 0; j < n_lines; j++) {
            const double um = (double)thickness_um[(size_t)b * n_lines + j];
            const size_t at = (size_t)(b / r->rows) * r->n_x + j / r->columns;
            if (!isfinite(um))
                continue;
            r->value[at] += um;
            r->weight[at]++;
        }
}

/* One axis of the Gaussian, of sums and weights alike. n cells that are `step` apart. */
static void smooth_row(const double *from, double *to, uint32_t n, size_t step, double cell_um)
{
    const double reach = ceil(3 * SIGMA_UM / cell_um);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = (int64_t)-reach; k <= (int64_t)reach; k++) {
            const double x = (double)k * cell_um / SIGMA_UM;
            if (i + k >= 0 && i + k < n)
                sum += exp(-x * x / 2) * from[(size_t)(i + k) * step];
        }
        to[(size_t)i * step] = sum;
    }
}

static void smooth(struct relief *r)
{
    double *planes[2] = {r->value, r->weight};
    const size_t n = (size_t)r->n_y * r->n_x;
    for (unsigned i = 0; i < 2; i++) {
        double *rows = r->scratch + i * n;
        for (uint32_t y = 0; y < r->n_y; y++)
            smooth_row(planes[i] + (size_t)y * r->n_x, rows + (size_t)y * r->n_x, r->n_x, 1,
                       r->x_um);
        for (uint32_t x = 0; x < r->n_x; x++)
            smooth_row(rows + x, planes[i] + x, r->n_y, r->n_x, r->y_um);
    }
    for (size_t i = 0; i < n; i++)
        r->value[i] = r->weight[i] > 1e-3 ? r->value[i] / r->weight[i] : NAN;
}

static double value_at(const struct relief *r, int64_t y, int64_t x)
{
    if (y < 0 || x < 0 || y >= r->n_y || x >= r->n_x)
        return NAN;
    return r->value[(size_t)y * r->n_x + (size_t)x];
}

static bool is_lowest_near(const struct relief *r, int64_t y, int64_t x)
{
    const double here = value_at(r, y, x);
    bool is_lowest = isfinite(here);
    for (int64_t dy = -1; dy <= 1; dy++)
        for (int64_t dx = -1; dx <= 1; dx++)
            is_lowest = is_lowest && !(value_at(r, y + dy, x + dx) < here);
    return is_lowest;
}

/* Whether the thickness rises in one direction within reach and view. */
static bool rises(const struct relief *r, int64_t y, int64_t x, double angle)
{
    const double here = value_at(r, y, x), step = fmin(r->y_um, r->x_um);
    double um = step, most = -INFINITY;
    for (; um <= REACH_UM; um += step) {
        const int64_t to_y = y + llround(um * sin(angle) / r->y_um);
        const int64_t to_x = x + llround(um * cos(angle) / r->x_um);
        if (to_y < 0 || to_x < 0 || to_y >= r->n_y || to_x >= r->n_x)
            break;
        most = fmax(most, value_at(r, to_y, to_x));
    }
    return most - here >= fmin(MOST_RISE_UM, fmax(LEAST_RISE_UM, um * RISE_A_UM));
}

static bool is_pit(const struct relief *r, int64_t y, int64_t x)
{
    for (unsigned i = 0; i < N_DIRECTIONS; i++)
        if (!rises(r, y, x, 2 * PI * i / N_DIRECTIONS))
            return false;
    return true;
}

static bool find_pit(const struct relief *r, double *cell_y, double *cell_x)
{
    double lowest = INFINITY;
    for (int64_t y = 0; y < r->n_y; y++)
        for (int64_t x = 0; x < r->n_x; x++) {
            const double here = value_at(r, y, x);
            if (!(here < lowest) || !is_lowest_near(r, y, x) || !is_pit(r, y, x))
                continue;
            lowest = here;
            *cell_y =
                (double)y + oct_parabola_top(-value_at(r, y - 1, x), -here, -value_at(r, y + 1, x));
            *cell_x =
                (double)x + oct_parabola_top(-value_at(r, y, x - 1), -here, -value_at(r, y, x + 1));
        }
    return isfinite(lowest);
}

bool oct_thickness_fovea(const float *thickness_um, uint32_t n_bscans, uint32_t n_lines,
                         double bscan_um, double line_um, double *b, double *j)
{
    struct relief r = {.rows = lines_a_cell(bscan_um, n_bscans),
                       .columns = lines_a_cell(line_um, n_lines)};
    double cell_y = 0, cell_x = 0;
    r.n_y = (n_bscans - 1) / r.rows + 1;
    r.n_x = (n_lines - 1) / r.columns + 1;
    if (r.n_y < LEAST_CELLS || r.n_x < LEAST_CELLS)
        return false;
    r.y_um = r.rows * bscan_um;
    r.x_um = r.columns * line_um;
    r.value = calloc((size_t)r.n_y * r.n_x, 4 * sizeof(*r.value));
    if (!r.value)
        return false;
    r.weight = r.value + (size_t)r.n_y * r.n_x;
    r.scratch = r.weight + (size_t)r.n_y * r.n_x;
    fill_cells(&r, thickness_um, n_bscans, n_lines);
    smooth(&r);
    const bool found = find_pit(&r, &cell_y, &cell_x);
    if (found) {
        *b = fmin(n_bscans - 1.0, fmax(0, (cell_y + 0.5) * r.rows - 0.5));
        *j = fmin(n_lines - 1.0, fmax(0, (cell_x + 0.5) * r.columns - 0.5));
    }
    free(r.value);
    return found;
}
