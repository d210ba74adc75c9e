/* The parts of a trace: the coarse grid and the pair of paths through it, each layer at full
 * resolution within a corridor, and how sure each A-line is. */
#ifndef OCT_ANALYSIS_SURFACE_TRACE_PARTS_H
#define OCT_ANALYSIS_SURFACE_TRACE_PARTS_H

#include "analysis/surface/trace.h"
#include "analysis/surface/trace_states.h"

#include <stddef.h>

/* Brightness in cells of `depth` pixels and `lines` A-lines. A border i lies above row i, in pixels
 * at i * depth - 0.5. */
struct oct_trace_grid {
    uint32_t depth, lines; /* of a cell */
    uint32_t n_rows, n_columns;
    uint32_t least, most;        /* rows between the layers */
    uint32_t step;               /* rows from column to column */
    int16_t price[OCT_N_LAYERS]; /* of a row, in 1 / OCT_TRACE_UNIT */
    /* Rows, see trace_coarse.c. */
    uint32_t near, below, far, outer, inner, complex, band, beyond, deep, skip;
};
#define OCT_TRACE_UNIT 256
#define OCT_TRACE_MOST_STEP 6u /* rows from column to column */
#define OCT_TRACE_GUARD 3u     /* states that cannot be, on all sides of those that can */

/* The RPE's share of min_quality beneath an ILM. */
#define OCT_TRACE_RPE_BENEATH 0.6F

/* How far a layer lies below its steepest place, about: bounds are about layers, paths follow the
 * steepest places. */
#define OCT_TRACE_FLANK_UM 5.0

/* The RPE's place by its profile, see trace_match.c. Stretches of A-lines are level, or bend. */
enum { OCT_TRACE_N_BENDS = 2, OCT_TRACE_N_MOMENTS = 8 };
struct oct_trace_match {
    uint32_t above, n_profile; /* px from the profile's first to the curve, of it all */
    uint32_t shift, n_shifts;  /* px to each side */
    uint32_t n_window;         /* n_profile + 2 shift */
    uint32_t reach[OCT_TRACE_N_BENDS];
    float *weights[OCT_TRACE_N_BENDS];   /* [reach + 1] */
    float *windows;                      /* [M][n_window] */
    float *mean;                         /* [n_window] */
    float *filters;                      /* [n_profile][n_shifts] */
    float *fits, *sums;                  /* [M][n_shifts], [n_shifts] */
    float *fit[2];                       /* [M] of the path as it was, and as it is */
    float *moments[OCT_TRACE_N_MOMENTS]; /* [M] */
    float *before, *bends;               /* [M] the path as it was; 1: the layer bends there */
};

struct oct_trace {
    struct oct_trace_setup setup;
    void *memory[64]; /* of all arrays below */
    unsigned n_memory;
    bool lacks_memory;
    struct oct_trace_grid grid;
    const float *pixels;       /* of this run, finite */
    const uint8_t *line_valid; /* or NULL */
    float *clean;              /* [M][D], where something is not finite */
    float *blocks;             /* [M][n_rows] means of `depth` pixels */
    float dark, bright;        /* of the B-scan */
    float *cells;              /* [n_columns][n_rows], smoothed: 0 dark, 1 bright */
    float *sorted;             /* as large as the larger of blocks and cells */
    float *sums, *others;      /* [n_rows + 1] */
    int16_t *costs;            /* [2][n_columns][n_rows + 1 + most] */
    const struct oct_trace_states *vectors;
    int16_t *states;              /* [n_columns][n_states] */
    int16_t *scratch[2];          /* [n_states] */
    size_t n_states;              /* with guards */
    uint32_t n_tops, n_gaps;      /* places of the ILM, distances */
    uint32_t *pair[OCT_N_LAYERS]; /* [n_columns] borders */
    float *path[OCT_N_LAYERS];    /* [M] px */
    float *line;                  /* [M] */
    float *line2;                 /* [M] */

    uint32_t half;                     /* of the wider corridor: 2 half + 1 places */
    uint32_t reach;                    /* of the derivative's taps */
    uint32_t line_reach[OCT_N_LAYERS]; /* of the Gaussian's along the lines */
    float *taps; /* [reach] weights of the pixels above a place, from the farthest on; below
                            it they are the same; their sum is 1 */
    float *line_taps[OCT_N_LAYERS];        /* [line_reach + 1] */
    float *window;                         /* [2 half + 2 + 2 reach] */
    float *slopes[2], *levels[2], *scores; /* [M][2 half + 1] */
    float *totals;                         /* [M][2 half + 1] */
    uint32_t n_profile, wide, narrow;      /* see trace_place.c and trace_judge.c */
    float *profile;                        /* [n_profile] */
    float *beside;                         /* [M][n_rows + 1] step measure of blocks */
    struct oct_trace_match match;
};

/* Fills blocks and cells. False: there is no contrast, and nothing to be found. */
bool oct_trace_grid_fill(struct oct_trace *trace);

/* pair from cells. */
void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

/* path from pair, then refined. */
void oct_trace_refine(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

/* n elements, all 0, which the trace frees. NULL: lacks_memory is set. */
void *oct_trace_array(struct oct_trace *trace, size_t n, size_t bytes);

/* match's sizes, memory and weights. */
void oct_trace_match_init(struct oct_trace *trace);

/* The RPE's path drawn straight and moved to where its profile fits. */
void oct_trace_match(struct oct_trace *trace);

/* quality of path. */
void oct_trace_judge(struct oct_trace *trace, const struct oct_traced *result);

/* Moves the steepest places to the layer's own; NaN stays NaN. */
void oct_trace_place(struct oct_trace *trace, int layer, float *position);

/* The k-th smallest of n values, which are reordered. */
float oct_trace_select(float *values, size_t n, size_t k);

static inline bool oct_trace_has_line(const struct oct_trace *trace, uint32_t line)
{
    return !trace->line_valid || trace->line_valid[line];
}

#endif
