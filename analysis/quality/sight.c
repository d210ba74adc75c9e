#include "analysis/quality/sight.h"

#include "numeric/order.h"

#include <math.h>

#define MOST_LINES 64u
#define GROUPS 16u
#define MOST_BINS 128u
#define LEAST 16u /* A-lines, depths */
#define MOST_DB 300.0
#define DB_TO_E 0.23025850929940457

/* The spread of a cell of one pixel of noise alone, half of whose neighbours tell nothing new: what
 * spreads more is tissue, of which a picture can be full. */
#define PIXEL_SIGMA_DB 6.1
#define SIGMAS 5.0     /* of noise: less is no tissue */
#define OF_BRIGHT 0.25 /* of the way from the floor to the brightest cells: neither is less */
#define N_BRIGHT 8u
#define LEAST_CELLS 3u /* of a group: fewer are a line, no tissue */
/* What a group's tissue is the top and bottom of, as shares of what stands above; and of which
 * groups they are taken. */
#define TOP 0.05
#define BOTTOM 0.95
#define BELOW_DB                                                                                   \
    6.0 /* under the brightest cells: what counts for the bottom, as the choroid fades \
                        far below the retina */
#define OUTER 0.2
#define GAP 0.12   /* of the depth: what lies further apart is not one tissue */
#define AT_EDGE 2u /* bins: tissue that reaches these reaches the picture's edge */
/* Tissue that reaches the lower edge and is bright in less than this share of its upper part has
 * lost its bright lower layers beyond the edge: the choroid is not so much thicker than the
 * retina. */
#define LEAST_RETINA 0.4

struct cells {
    uint32_t n_bins;
    double mean[GROUPS][MOST_BINS]; /* dB */
    double floor_db, sigma_db, most_sigma_db;
};

/* Cut off, so that sums of what hostile pictures hold are finite. */
static double intensity_of(double value, bool log)
{
    const double most = 1e30;
    if (log)
        return (double)expf((float)(fmin(MOST_DB, fmax(-MOST_DB, value)) * DB_TO_E));
    return fmin(most, fmax(0, value));
}

/* ---- from pixels to cells ---- */

/* Adds an A-line to the sums of its group. Of floats, those that are no number are left out. */
static void add_line(const struct oct_sight_picture *picture, const double *table, uint32_t line,
                     uint32_t n_bins, double *sum, uint32_t *n)
{
    const uint32_t depth = picture->depth;
    const uint8_t *u8 = (const uint8_t *)picture->pixels + (size_t)line * depth;
    const float *f32 = (const float *)picture->pixels + (size_t)line * depth;
    for (uint32_t b = 0; b < n_bins; b++) {
        const uint32_t from = (uint32_t)((uint64_t)b * depth / n_bins);
        const uint32_t to = (uint32_t)((uint64_t)(b + 1) * depth / n_bins);
        for (uint32_t d = from; d < to; d++) {
            if (!table && isnan(f32[d]))
                continue;
            sum[b] += table ? table[u8[d]] : intensity_of((double)f32[d], picture->log);
            n[b]++;
        }
    }
}

static bool fill_cells(const struct oct_sight_picture *picture, struct cells *cells)
{
    const uint32_t n_lines = picture->n_lines < MOST_LINES ? picture->n_lines : MOST_LINES;
    const bool is_u8 = picture->type == OCT_SAMPLE_U8;
    double table[256];
    uint32_t n[GROUPS][MOST_BINS] = {{0}}, least = UINT32_MAX;
    if (!picture->pixels || picture->n_lines < LEAST || picture->depth < LEAST)
        return false;
    for (unsigned i = 0; i < 256; i++) /* what 8-bit pixels mean */
        table[i] =
            intensity_of(picture->lo + i / 255.0 * (picture->hi - picture->lo), picture->log);
    cells->n_bins = picture->depth < MOST_BINS ? picture->depth : MOST_BINS;
    for (uint32_t i = 0; i < n_lines; i++) {
        const uint32_t line = (uint32_t)((2 * (uint64_t)i + 1) * picture->n_lines / (2 * n_lines));
        const uint32_t group = i * GROUPS / n_lines;
        add_line(picture, is_u8 ? table : NULL, line, cells->n_bins, cells->mean[group], n[group]);
    }
    for (unsigned g = 0; g < GROUPS; g++)
        for (uint32_t b = 0; b < cells->n_bins; b++) {
            if (n[g][b] == 0)
                return false;
            cells->mean[g][b] = 10 * log10(fmax(cells->mean[g][b] / n[g][b], 1e-30));
            least = n[g][b] < least ? n[g][b] : least;
        }
    cells->most_sigma_db = PIXEL_SIGMA_DB / sqrt(least);
    return true;
}

/* ---- noise ---- */

static void find_noise(struct cells *cells)
{
    const uint32_t n_bins = cells->n_bins, n_dark = n_bins / 4;
    double row[MOST_BINS] = {0}, sorted[MOST_BINS] = {0}, sum = 0, squares = 0;
    uint32_t n = 0;
    for (uint32_t b = 0; b < n_bins; b++) {
        row[b] = 0;
        for (unsigned g = 0; g < GROUPS; g++)
            row[b] += cells->mean[g][b] / GROUPS;
        sorted[b] = row[b];
    }
    oct_doubles_sort(sorted, n_bins);
    for (uint32_t b = 0; b < n_bins; b++) {
        if (row[b] > sorted[n_dark - 1])
            continue;
        sum += row[b];
        n++;
        for (unsigned g = 0; g < GROUPS; g++)
            squares += (cells->mean[g][b] - row[b]) * (cells->mean[g][b] - row[b]);
    }
    cells->floor_db = sum / n;
    cells->sigma_db = fmin(sqrt(squares / ((double)n * (GROUPS - 1))), cells->most_sigma_db);
}

/* ---- tissue ---- */

struct column {
    bool found;
    double bright_db, top, bottom;
};

/* Bins first .. last - 1. */
struct run {
    uint32_t first, last, n; /* n: how many of them stand above the limit */
    double weight;           /* of all that does */
};

/* The heaviest tissue: without lines at zero delay, reflections and what floats before it. */
static struct run find_tissue(const double *above, uint32_t n_bins)
{
    const uint32_t gap = (uint32_t)ceil(GAP * n_bins);
    struct run best = {.n = 0}, run = {.n = 0};
    for (uint32_t b = 0; b < n_bins; b++) {
        if (!(above[b] > 0))
            continue;
        if (run.n == 0 || b - run.last > gap)
            run = (struct run){.first = b};
        run.last = b + 1;
        run.n++;
        run.weight += above[b];
        if (run.weight > best.weight)
            best = run;
    }
    return best;
}

/* Where `share` of what stands above the limit is reached, as a share of the depth. */
static double place_of(const double *above, const struct run *run, uint32_t n_bins, double share)
{
    double sum = 0;
    for (uint32_t b = run->first; b < run->last; b++) {
        if (above[b] > 0 && sum + above[b] >= share * run->weight)
            return (b + (share * run->weight - sum) / above[b]) / n_bins;
        sum += above[b];
    }
    return (double)run->last / n_bins;
}

/* The lower border of what stands `over` above the floor; 1: it is cut off. */
static double bottom_of(const struct cells *cells, const double *mean, struct run run, double over)
{
    double above[MOST_BINS];
    run.weight = 0;
    for (uint32_t b = run.first; b < run.last; b++) {
        above[b] = fmax(0, mean[b] - cells->floor_db - over);
        run.weight += above[b];
    }
    const double bottom = place_of(above, &run, cells->n_bins, BOTTOM);
    const double top = (double)run.first / cells->n_bins;
    const bool reaches_edge = run.last > cells->n_bins - AT_EDGE;
    return reaches_edge && bottom - top < LEAST_RETINA * (1 - top) ? 1 : bottom;
}

static struct column look_at(const struct cells *cells, const double *mean)
{
    const uint32_t n_bins = cells->n_bins, n_bright = n_bins < N_BRIGHT ? n_bins : N_BRIGHT;
    double sorted[MOST_BINS] = {0}, above[MOST_BINS], bright = 0;
    struct column column = {.found = false};
    for (uint32_t b = 0; b < n_bins; b++)
        sorted[b] = mean[b] - cells->floor_db;
    oct_doubles_sort(sorted, n_bins);
    for (uint32_t i = 0; i < n_bright; i++)
        bright += sorted[n_bins - 1 - i] / n_bright;
    const double over = fmax(SIGMAS * cells->sigma_db, OF_BRIGHT * bright);
    for (uint32_t b = 0; b < n_bins; b++)
        above[b] = fmax(0, mean[b] - cells->floor_db - over);
    const struct run run = find_tissue(above, n_bins);
    column.found = run.n >= LEAST_CELLS;
    if (column.found) {
        column.bright_db = bright;
        column.top = run.first < AT_EDGE ? 0 : place_of(above, &run, n_bins, TOP);
        column.bottom = bottom_of(cells, mean, run, fmax(over, bright - BELOW_DB));
    }
    return column;
}

bool oct_sight_of(const struct oct_sight_picture *picture, struct oct_sight *sight)
{
    struct cells cells = {.n_bins = 0};
    double top[GROUPS], bottom[GROUPS];
    unsigned n = 0;
    *sight = (struct oct_sight){.top = NAN, .bottom = NAN};
    if (!fill_cells(picture, &cells))
        return false;
    find_noise(&cells);
    for (unsigned g = 0; g < GROUPS; g++) {
        const struct column column = look_at(&cells, cells.mean[g]);
        if (!column.found)
            continue;
        sight->signal_db += column.bright_db / GROUPS;
        top[n] = column.top;
        bottom[n++] = column.bottom;
    }
    sight->covered = (double)n / GROUPS;
    if (n == 0)
        return true;
    oct_doubles_sort(top, n);
    oct_doubles_sort(bottom, n);
    sight->top = top[(unsigned)(OUTER * n)];
    sight->bottom = bottom[n - 1 - (unsigned)(OUTER * n)];
    return true;
}

/* ---- the parts ---- */

/* signal: none at the first, all from the second on. */
#define NO_SIGNAL_DB 2.0
#define FULL_SIGNAL_DB 22.0
#define OF_ROOM 0.85    /* of the way from a line to the edge: further, the tissue may be cut off */
#define LEAST_ROOM 0.02 /* of the depth */
#define LEAST_COVERED 0.10 /* with less tissue, its place is not known */

static double share(double x)
{
    return fmin(1, fmax(0, x));
}

double oct_sight_signal(const struct oct_sight *sight)
{
    return share((sight->signal_db - NO_SIGNAL_DB) / (FULL_SIGNAL_DB - NO_SIGNAL_DB));
}

struct oct_sight_place oct_sight_place(const struct oct_sight *s)
{
    const double band = OCT_SIGHT_LOWER - OCT_SIGHT_UPPER, thick = s->bottom - s->top;
    struct oct_sight_place p = {OCT_SIGHT_UPPER, OCT_SIGHT_LOWER, NAN, NAN};
    if (isnan(thick) || s->covered < LEAST_COVERED)
        return p;
    if (thick > band) {
        p.upper *= (1 - thick) / (1 - band);
        p.lower = p.upper + thick;
    }
    p.off = s->top < p.upper ? s->top - p.upper : fmax(0, s->bottom - p.lower);
    const double room = p.off < 0 ? p.upper : 1 - p.lower;
    p.part = share(1 - fabs(p.off) / fmax(OF_ROOM * room, LEAST_ROOM));
    return p;
}
