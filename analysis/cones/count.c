#include "analysis/cones/count.h"

#include "numeric/parabola.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_TOP 0.3f     /* of e, whose local standard deviation is 1 */
#define LEAST_DISTANCE 0.5 /* of s */
#define MOST_CORNER 1.5    /* of s, of a whole cell */
#define MOST_CORNERS 32u   /* of a cell */
#define MOST_MASKED 2u     /* pixels of a block of nine */
#define NONE UINT32_MAX

struct top {
    float e;
    uint32_t at; /* pixel */
};

/* Cones in square bins of side s. */
struct field {
    const struct oct_cone_picture *picture;
    double s;                     /* px of e, as all in here until the places are given */
    struct oct_cone_place *place; /* [n] */
    uint32_t n;
    uint32_t rows, columns; /* of bins */
    uint32_t *first;        /* [rows][columns]: a cone of the bin, or NONE */
    uint32_t *next;         /* [n]: another of the same bin, or NONE */
};

/* A convex polygon around a cone, relative to it. */
struct cell {
    unsigned n;
    double y[MOST_CORNERS], x[MOST_CORNERS];
    double far2; /* the square of its farthest corner's distance */
};

/* ---- tops ---- */

/* Whether a cone there would be seen: not on the border, nor beside more than a speck of a mask,
 * which is filled from around it. */
static bool is_seen(const struct oct_cone_picture *p, double y, double x)
{
    const double row = floor(y + 0.5), column = floor(x + 0.5);
    if (row < 1 || row >= p->height - 1.0 || column < 1 || column >= p->width - 1.0)
        return false;
    const size_t at = (size_t)row * p->width + (size_t)column;
    unsigned n_masked = 0;
    for (size_t first = at - p->width; p->valid && first <= at + p->width; first += p->width)
        for (size_t i = first - 1; i <= first + 1; i++)
            n_masked += !p->valid[i];
    return n_masked <= MOST_MASKED;
}

static bool is_top(const float *e, uint32_t width, size_t at)
{
    for (size_t row = at - width; row <= at + width; row += width)
        for (size_t i = row - 1; i <= row + 1; i++)
            if (e[i] > e[at] || (i < at && e[i] == e[at]))
                return false;
    return true;
}

static int compare_tops(const void *a, const void *b)
{
    const struct top *p = a, *q = b;
    return p->e != q->e ? (p->e < q->e ? 1 : -1) : (p->at > q->at) - (p->at < q->at);
}

/* Highest first. */
static uint32_t find_tops(const struct oct_cone_picture *p, struct top *tops)
{
    uint32_t n = 0;
    for (uint32_t y = 1; y + 1 < p->height; y++)
        for (uint32_t x = 1; x + 1 < p->width; x++) {
            const size_t at = (size_t)y * p->width + x;
            if (p->e[at] > LEAST_TOP && is_top(p->e, p->width, at) && is_seen(p, y, x))
                tops[n++] = (struct top){p->e[at], (uint32_t)at};
        }
    qsort(tops, n, sizeof(*tops), compare_tops);
    return n;
}

/* ---- bins ---- */

static uint32_t bin_at(double place, double s, uint32_t n)
{
    const double bin = place > 0 ? place / s : 0;
    return bin < n - 1 ? (uint32_t)bin : n - 1;
}

static uint32_t *bin_of(const struct field *f, double y, double x)
{
    return &f->first[bin_at(y, f->s, f->rows) * f->columns + bin_at(x, f->s, f->columns)];
}

/* Whether no cone is nearer than the least distance, half a bin. */
static bool is_free(const struct field *f, double y, double x)
{
    const double least = LEAST_DISTANCE * f->s;
    for (int i = 0; i < 4; i++) {
        uint32_t k = *bin_of(f, y + (i / 2 ? least : -least), x + (i % 2 ? least : -least));
        for (; k != NONE; k = f->next[k])
            if (hypot(f->place[k].y - y, f->place[k].x - x) < least)
                return false;
    }
    return true;
}

static void place_cones(struct field *f, const struct top *tops, uint32_t n_tops)
{
    const uint32_t width = f->picture->width;
    memset(f->first, 0xff, (size_t)f->rows * f->columns * sizeof(*f->first));
    for (uint32_t i = 0; i < n_tops; i++) {
        const float *top = f->picture->e + tops[i].at;
        const double middle = (double)*top;
        const double y = tops[i].at / width + oct_parabola_top((double)top[-(ptrdiff_t)width],
                                                               middle, (double)top[width]);
        const double x =
            tops[i].at % width + oct_parabola_top((double)top[-1], middle, (double)top[1]);
        if (!is_free(f, y, x))
            continue;
        uint32_t *first = bin_of(f, y, x);
        f->next[f->n] = *first;
        *first = f->n;
        f->place[f->n++] = (struct oct_cone_place){.y = y, .x = x};
    }
}

/* ---- cells ---- */

/* What is nearer to the cone than to another at (dy, dx) from it. */
static void cut(struct cell *cell, double dy, double dx)
{
    const double half = (dy * dy + dx * dx) / 2;
    struct cell left = {.n = 0};
    if (half >= 2 * cell->far2)
        return;
    for (unsigned i = 0; i < cell->n; i++) {
        const unsigned j = i + 1 < cell->n ? i + 1 : 0;
        if (left.n + 2 > MOST_CORNERS) /* cells of cones have far fewer */
            return;
        const double over = cell->y[i] * dy + cell->x[i] * dx - half;
        const double next = cell->y[j] * dy + cell->x[j] * dx - half;
        if (over <= 0) {
            left.y[left.n] = cell->y[i];
            left.x[left.n++] = cell->x[i];
        }
        if ((over <= 0) != (next <= 0)) {
            left.y[left.n] = cell->y[i] + (cell->y[j] - cell->y[i]) * over / (over - next);
            left.x[left.n++] = cell->x[i] + (cell->x[j] - cell->x[i]) * over / (over - next);
        }
    }
    for (unsigned i = 0; i < left.n; i++)
        left.far2 = fmax(left.far2, left.y[i] * left.y[i] + left.x[i] * left.x[i]);
    *cell = left;
}

static void cut_by_bin(const struct field *f, const struct oct_cone_place *cone, int64_t row,
                       int64_t column, struct cell *cell, double *nearest2)
{
    if (row < 0 || row >= f->rows || column < 0 || column >= f->columns)
        return;
    for (uint32_t k = f->first[row * f->columns + column]; k != NONE; k = f->next[k]) {
        const double dy = f->place[k].y - cone->y, dx = f->place[k].x - cone->x;
        if (&f->place[k] == cone)
            continue;
        *nearest2 = fmin(*nearest2, dy * dy + dx * dx);
        cut(cell, dy, dx);
    }
}

static bool is_whole(const struct field *f, const struct oct_cone_place *cone,
                     const struct cell *cell)
{
    bool whole = cell->far2 <= MOST_CORNER * MOST_CORNER * f->s * f->s;
    for (unsigned i = 0; i < cell->n && whole; i++)
        whole = is_seen(f->picture, cone->y + cell->y[i], cone->x + cell->x[i]) &&
                is_seen(f->picture, cone->y + 2 * cell->y[i], cone->x + 2 * cell->x[i]);
    return whole;
}

/* Cuts a square of side 4 s by the cones up to 3 s away: no others cut a cell whose corners are
 * within half of that. Bins are taken from the nearest on, until the rest is too far away. */
static void find_cell(const struct field *f, struct oct_cone_place *cone)
{
    const double wide = 2 * f->s;
    const int64_t row = bin_at(cone->y, f->s, f->rows), column = bin_at(cone->x, f->s, f->columns);
    struct cell cell = {.n = 4,
                        .y = {-wide, -wide, wide, wide},
                        .x = {-wide, wide, wide, -wide},
                        .far2 = 2 * wide * wide};
    double nearest2 = INFINITY, area2 = 0;
    for (int64_t ring = 0; ring <= 3 && 2 * sqrt(cell.far2) > (double)(ring - 1) * f->s; ring++)
        for (int64_t i = -ring; i <= ring; i++)
            for (int64_t j = -ring; j <= ring; j += i > -ring && i < ring ? 2 * ring : 1)
                cut_by_bin(f, cone, row + i, column + j, &cell, &nearest2);
    for (unsigned i = 0; i < cell.n; i++) {
        const unsigned j = i + 1 < cell.n ? i + 1 : 0;
        area2 += cell.x[i] * cell.y[j] - cell.x[j] * cell.y[i];
    }
    cone->nearest = isfinite(nearest2) ? sqrt(nearest2) : NAN;
    cone->area = is_whole(f, cone, &cell) ? fabs(area2) / 2 : NAN;
    cone->n_sides = isnan(cone->area) ? 0 : cell.n;
}

/* ---- all together ---- */

static int compare_places(const void *a, const void *b)
{
    const struct oct_cone_place *p = a, *q = b;
    return p->y != q->y ? (p->y > q->y) - (p->y < q->y) : (p->x > q->x) - (p->x < q->x);
}

static void sum_up(const struct oct_cone_place *place, uint32_t n, struct oct_cone_count *count)
{
    double area = 0, area2 = 0, nearest = 0, nearest2 = 0, n_six = 0, whole = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(place[i].area))
            continue;
        whole++;
        area += place[i].area;
        area2 += place[i].area * place[i].area;
        nearest += place[i].nearest;
        nearest2 += place[i].nearest * place[i].nearest;
        n_six += place[i].n_sides == 6;
    }
    *count = (struct oct_cone_count)OCT_CONE_COUNT_NONE;
    count->n = n;
    count->n_whole = (uint32_t)whole;
    if (whole < 1)
        return;
    area /= whole;
    count->per_px2 = 1 / area;
    count->spacing = sqrt(2 / sqrt(3) * area);
    count->nearest = nearest / whole;
    count->six_sided = n_six / whole;
    if (whole < 2)
        return;
    const double area_var = fmax(area2 - whole * area * area, 0) / (whole - 1);
    const double var = fmax(nearest2 - nearest * nearest / whole, 0) / (whole - 1);
    const double relative = sqrt(area_var / whole) / area;
    count->per_px2_se = count->per_px2 * relative;
    count->spacing_se = count->spacing * relative / 2;
    count->regularity = count->nearest / sqrt(var);
}

/* From pixels of e to those of the picture. */
static void scale(struct oct_cone_place *place, double side)
{
    place->y = (place->y + 0.5) * side - 0.5;
    place->x = (place->x + 0.5) * side - 0.5;
    place->nearest *= side;
    place->area *= side * side;
}

enum oct_err oct_cone_count_run(const struct oct_cone_picture *picture, double spacing,
                                struct oct_cone_place **places, struct oct_cone_count *count,
                                struct oct_error *err)
{
    struct field f = {.picture = picture,
                      .s = spacing,
                      .rows = (uint32_t)(picture->height / spacing) + 1,
                      .columns = (uint32_t)(picture->width / spacing) + 1};
    /* Of a block of 2 x 2 pixels one is a top. */
    const size_t n_most = (size_t)(picture->height / 2 + 1) * (picture->width / 2 + 1);
    struct top *tops = malloc(n_most * sizeof(*tops));
    const uint32_t n_tops = tops ? find_tops(picture, tops) : 0;
    f.place = malloc(((size_t)n_tops + 1) * sizeof(*f.place));
    f.next = malloc(((size_t)n_tops + 1) * sizeof(*f.next));
    f.first = malloc((size_t)f.rows * f.columns * sizeof(*f.first));
    const bool has_memory = tops && f.place && f.next && f.first;
    if (has_memory) {
        place_cones(&f, tops, n_tops);
        for (uint32_t i = 0; i < f.n; i++)
            find_cell(&f, &f.place[i]);
        for (uint32_t i = 0; i < f.n; i++)
            scale(&f.place[i], picture->side);
        qsort(f.place, f.n, sizeof(*f.place), compare_places);
    } else {
        free(f.place);
        f.place = NULL;
    }
    *places = f.place;
    sum_up(f.place, f.n, count);
    free(tops);
    free(f.next);
    free(f.first);
    return has_memory ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}
