/* The parts of a trace: the pair of paths through a coarse grid (trace_pair.c), each layer at full
 * resolution within a corridor and at its own place (trace_edge.c), the RPE by its whole profile
 * (trace_match.c), and how sure each A-line is (trace_judge.c). */
#ifndef OCT_ANALYSIS_LAYERS_FIND_TRACE_PARTS_H
#define OCT_ANALYSIS_LAYERS_FIND_TRACE_PARTS_H

#include "analysis/layers/find/trace.h"

#include <math.h>
#include <stddef.h>

/* Brightness in cells of `depth` pixels and `lines` A-lines. A border i lies above row i, in pixels
 * at i * depth - 0.5. */
struct oct_trace_grid {
    uint32_t depth, lines; /* of a cell */
    uint32_t n_rows, n_columns;
    uint32_t least, most;        /* rows between the layers */
    uint32_t step;               /* rows from column to column */
    int16_t price[OCT_N_LAYERS]; /* of a row, in 1 / OCT_TRACE_UNIT */
    /* Rows, see trace_pair.c. */
    uint32_t near, below, far, outer, inner, complex, band, beyond, deep, skip;
};
#define OCT_TRACE_UNIT 256
#define OCT_TRACE_MOST_STEP 6u /* rows from column to column */
#define OCT_TRACE_GUARD 3u     /* nodes that cannot be, on all sides of those that can */

/* The RPE's share of min_quality beneath an ILM. */
#define OCT_TRACE_RPE_BENEATH 0.6F

/* How far a layer lies below its steepest place, about: bounds are about layers, paths follow the
 * steepest places. */
#define OCT_TRACE_FLANK_UM 5.0

struct oct_trace_range {
    int first, last;
};

/* The RPE's place by its profile, see trace_match.c. Stretches of A-lines are level, or bend. */
enum { OCT_TRACE_N_BENDS = 2, OCT_TRACE_N_MOMENTS = 8 };
struct oct_trace_match {
    uint32_t above, n_profile; /* px from the profile's first to the curve, of it all */
    uint32_t shift, n_shifts;  /* px to each side */
    uint32_t n_window;         /* n_profile + 2 shift */
    uint32_t reach[OCT_TRACE_N_BENDS];
    float *weights[OCT_TRACE_N_BENDS]; /* [reach + 1] */
    float *windows;                    /* [M][n_window] */
    float *mean;                       /* [n_window] */
    float *filters;                    /* [n_profile][n_shifts] */
    float *fits, *sums;                /* [M][n_shifts], [n_shifts] */
    float *fit[2];                     /* [M] of the path as it was, and as it is */
    float *moments;                    /* [OCT_TRACE_N_MOMENTS][M] */
    float *before, *bends;             /* [M] the path as it was; 1: the layer bends there */
};

struct oct_trace {
    struct oct_trace_setup setup;
    void *memory[64]; /* of all arrays below */
    unsigned n_memory;
    bool lacks_memory;
    const float *pixels;       /* of this run, finite */
    const uint8_t *line_valid; /* or NULL */
    float *clean;              /* [M][D], where something is not finite */

    /* The pair of paths. */
    struct oct_trace_grid grid;
    float *blocks;           /* [M][n_rows] means of `depth` pixels */
    float dark, bright;      /* of the B-scan */
    float *cells;            /* [n_columns][n_rows], smoothed: 0 dark, 1 bright */
    float *sorted;           /* as large as the larger of blocks and cells */
    float *sums, *others;    /* [n_rows + 1] */
    int16_t *costs;          /* [2][n_columns][n_rows + 1 + most] */
    uint32_t n_tops, n_gaps; /* places of the ILM, distances */
    size_t n_nodes;          /* of a column, with guards */
    int16_t *totals;         /* [n_columns][n_nodes] */
    int16_t *scratch[2];     /* [n_nodes] */
    struct oct_trace_range *borders[OCT_N_LAYERS]; /* [n_columns] that are in bounds */
    struct oct_trace_range gaps;                   /* likewise, of all columns */
    uint32_t *pair[OCT_N_LAYERS];                  /* [n_columns] borders */

    /* Each layer. */
    float *path[OCT_N_LAYERS];         /* [M] px */
    float *line, *line2;               /* [M] */
    uint32_t half;                     /* of the wider corridor: 2 half + 1 places */
    uint32_t reach;                    /* of the derivative's taps */
    uint32_t line_reach[OCT_N_LAYERS]; /* of the Gaussian's along the lines */
    float *taps; /* [reach] weights of the pixels above a place, from the farthest on; below it they
                    are the same; their sum is 1 */
    float *line_taps[OCT_N_LAYERS]; /* [line_reach + 1] */
    float *window;                  /* [2 half + 2 + 2 reach] */
    float *edges[2];                /* [M][slopes, levels][2 half + 1], as they are, smoothed */
    float *scores, *leads;          /* [M][2 half + 1] */
    uint32_t n_profile;
    float *profile;        /* [n_profile] */
    uint32_t wide, narrow; /* windows, see trace_judge.c */
    float *beside;         /* [M][n_rows + 1] step measure of blocks */
    struct oct_trace_match match;
};

/* Fills blocks and cells. False: there is no contrast, and nothing to be found. */
bool oct_trace_fill_cells(struct oct_trace *trace);

/* pair from cells. */
void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

/* path from pair, then refined. */
void oct_trace_refine(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

/* Moves the steepest places to the layer's own; NaN stays NaN. */
void oct_trace_place(struct oct_trace *trace, int layer, float *position);

/* n elements, all 0, which the trace frees. NULL: lacks_memory is set. */
void *oct_trace_array(struct oct_trace *trace, size_t n, size_t bytes);

/* match's sizes, memory and weights. */
void oct_trace_match_init(struct oct_trace *trace);

/* The RPE's path drawn straight and moved to where its profile fits. */
void oct_trace_match(struct oct_trace *trace);

/* quality of path. */
void oct_trace_judge(struct oct_trace *trace, const struct oct_traced *result);

/* The k-th smallest of n values, which are reordered. */
float oct_trace_select(float *values, size_t n, size_t k);

static inline uint32_t oct_trace_rounded(double x, uint32_t least, uint32_t most)
{
    return x > most ? most : x < least ? (least < most ? least : most) : (uint32_t)lround(x);
}

static inline bool oct_trace_has_line(const struct oct_trace *trace, uint32_t line)
{
    return !trace->line_valid || trace->line_valid[line];
}

/* The pixel of an A-line at a depth, or the nearest one. */
static inline float oct_trace_pixel(const struct oct_trace *trace, uint32_t line, int depth)
{
    const int last = (int)trace->setup.depth - 1;
    const int d = depth < 0 ? 0 : depth > last ? last : depth;
    return trace->pixels[(size_t)line * trace->setup.depth + (size_t)d];
}

/* The top of the parabola through three values, in steps from the middle; 0: there is none. */
static inline float oct_trace_top(float before, float middle, float after)
{
    const float curve = before - 2 * middle + after;
    return curve < 0 ? 0.5F * (before - after) / curve : 0;
}

#endif
