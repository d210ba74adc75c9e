/* The parts of a trace: the pair of paths through a coarse grid (trace_pair.c); the light about it
 * on one scale (trace_light.c); a border in a corridor about a curve, at full resolution
 * (trace_edge.c); the borders within the retina (trace_inner.c); and how sure each A-line is
 * (trace_judge.c). */
#ifndef OCT_ANALYSIS_LAYERS_FIND_TRACE_PARTS_H
#define OCT_ANALYSIS_LAYERS_FIND_TRACE_PARTS_H

#include "analysis/layers/find/trace.h"

#include <math.h>
#include <stddef.h>

/* The pair: the ILM and the lower border of the RPE. */
enum { OCT_TRACE_TOP, OCT_TRACE_BOTTOM, OCT_TRACE_N_PAIR };
extern const enum oct_layer oct_trace_pair_layers[OCT_TRACE_N_PAIR];

/* Brightness in cells of `depth` pixels and `lines` A-lines. A border i lies above row i, in pixels
 * at i * depth - 0.5. */
struct oct_trace_grid {
    uint32_t depth, lines; /* of a cell */
    uint32_t n_rows, n_columns;
    uint32_t least, most;            /* rows between the pair */
    uint32_t step;                   /* rows from column to column */
    int16_t price[OCT_TRACE_N_PAIR]; /* of a row, in 1 / OCT_TRACE_UNIT */
    /* Rows, see trace_pair.c. */
    uint32_t near, below, far, outer, inner, complex, band, beyond, deep, skip;
};
#define OCT_TRACE_MOST_BRIGHT 1e15F /* beyond any scale of brightness: no number */
#define OCT_TRACE_UNIT 256
#define OCT_TRACE_MOST_STEP 6u /* rows from column to column */
#define OCT_TRACE_WIDE 8       /* nodes at once */
#define OCT_TRACE_PART 16      /* places of a corridor at once, of */
#define OCT_TRACE_LINES 4      /* A-lines */
#define OCT_TRACE_ROWS 16      /* of nodes at once */
#define OCT_TRACE_GUARD 3u     /* nodes that cannot be, on all sides of those that can */

struct oct_trace_range {
    int first, last;
};

/* The borders between the ILM and the ellipsoid zone, in rows that are level with the latter: see
 * trace_inner.c. */
struct oct_trace_inner {
    uint32_t depth, lines;              /* of a cell: px, A-lines */
    uint32_t n_rows, n_columns;         /* room */
    uint32_t most_inl, most_opl, steps; /* rows */
    float fibre_price;                  /* of a row from column to column, */
    uint16_t price;                     /* and in whole numbers */
    float vitreous;                     /* its light */
    float *known;                       /* levels above it by gain */
    float *gains, *weights;             /* [n_columns] */
    float *light[3];                    /* [n_columns] below the ILM, to above IPL/INL */
    float *levels;                      /* [n_columns][5] of the tissues */
    float *cells;                       /* [n_columns][n_rows] */
    float *costs;                       /* [4][n_rows + 1] of a column's borders */
    int first;                          /* row that is looked at: the highest of the ILM */
    struct oct_trace_range *bounds;     /* [4][n_columns] rows in which borders may be */
    int *ilm, *base;                    /* [n_columns] the ILM's row; px of the first row */
    uint16_t *units;                    /* [4][n_rows + 1 + 15] costs */
    uint16_t *totals;                   /* [n_columns][n_nodes] */
    uint16_t *least;                    /* [n_columns] of totals */
    uint16_t *moved[2];                 /* [n_nodes] */
    float *fibres;                      /* [n_columns][n_rows + 1] totals of the RNFL's border */
    float *scratch;                     /* [n_columns + n_rows * depth] */
    uint16_t *rows;                     /* [4][n_columns] what was found */
    size_t n_nodes;                     /* states of a column, with guards */
};

struct oct_trace {
    struct oct_trace_setup setup;
    void *memory[80]; /* of all arrays below */
    unsigned n_memory;
    bool lacks_memory;
    const uint8_t *line_valid; /* of this run; or NULL */
    float *light;              /* [M][D] see trace_light.c */
    float *table;              /* of the light by brightness */
    uint16_t *steps;           /* [D] places of an A-line in it */
    float *samples;            /* of pixels */

    /* The pair of paths. */
    struct oct_trace_grid grid;
    float *blocks;                  /* [M][n_rows] means of `depth` pixels */
    float dark, bright;             /* of the B-scan */
    float *cells;                   /* [n_columns][n_rows], smoothed: 0 dark, 1 bright */
    float *sorted;                  /* as large as the larger of blocks and cells */
    float *sums;                    /* [3 n_rows + 1], see trace_pair.c */
    float *bands[3];                /* [n_rows + beyond + 2 + deep], see trace_pair.c */
    bool had_bounds;                /* the last run; */
    struct oct_trace_range *filled; /* [n_columns] the ILM's places that have totals of it */
    int16_t *costs;                 /* [2][n_columns][n_rows + 1 + most] */
    uint32_t n_tops, n_gaps;        /* places of the ILM, distances */
    size_t stride, n_nodes;         /* of a place of the ILM, of a column, with guards */
    int16_t *totals;                /* [n_columns][n_nodes] */
    int16_t *scratch[2];            /* [n_nodes] */
    int16_t *moved[2];              /* [OCT_TRACE_ROWS][stride + GUARD] */
    int16_t *least;                 /* likewise, see trace_pair.c */
    float *shares;                  /* [4][n_rows + 1], see trace_pair.c */
    struct oct_trace_range *borders[OCT_TRACE_N_PAIR]; /* [n_columns] that are in bounds */
    struct oct_trace_range gaps;                       /* likewise, of all columns */
    uint32_t *pair[OCT_TRACE_N_PAIR];                  /* [n_columns] borders */

    /* Borders. */
    float *path[OCT_N_LAYERS]; /* [M] px */
    float *line, *line2;       /* [M] */
    uint32_t half;             /* of the widest corridor: 2 half + 1 places */
    uint32_t reach;            /* of the derivative's taps */
    uint32_t line_reach;       /* of the Gaussian's along the lines */
    float *taps;      /* [reach] weights of the pixels above a place, from the farthest on; below it
                         they are the same; their sum is 1 */
    float *line_taps; /* [-n_lines - LINES, n_lines + LINES]; 0 beyond line_reach */
    double *tap_sums; /* [n_lines] of line_taps from 0 to a place */
    float *window;    /* [2 (2 half + 1) + 1 + 2 reach] */
    float *sides[2];  /* [2 half + 2] means of what is above and below */
    float *edges[2];  /* [M][slopes, levels][2 half + 1], as they are, smoothed */
    float *scores, *leads; /* [M][2 half + 1] */
    uint32_t n_profile;
    float *profile; /* [n_profile + 1] */
    struct oct_trace_inner inner;
    uint32_t wide, narrow;     /* windows, see trace_judge.c */
    float *beside[2], *region; /* [M] light of regions; how sure it is that there is a retina */
    uint32_t n_disc;           /* A-lines that came and lie within a disc */
};

void oct_trace_pair_init(struct oct_trace *trace);

/* Fills blocks and cells. False: there is no contrast, and nothing to be found. */
bool oct_trace_fill_cells(struct oct_trace *trace);

/* pair from cells. */
void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

/* The pair as curves over the A-lines, to path. */
void oct_trace_pair_curves(struct oct_trace *trace);

/* light of the pixels. False: they are all alike, and nothing is to be found. */
void oct_trace_light_init(struct oct_trace *trace);
bool oct_trace_light(struct oct_trace *trace, const float *pixels);

/* All paths, from those of the pair. */
void oct_trace_refine_init(struct oct_trace *trace);
void oct_trace_refine(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

#define OCT_TRACE_MOST_SIGMA 48.0F /* A-lines of a window, so that time is bounded */

/* What a border is sought with. */
struct oct_trace_search {
    float half_um;     /* of the corridor about the path */
    float depth_um;    /* sigma of the derivative along the depth */
    float line_um;     /* and of the Gaussian along the path; */
    float least_lines; /* this at least */
    float price;       /* of a step of a pixel away from the curve */
    float power;       /* of the light in which; 0: in its logarithm */
};

/* Moves path[layer] to the border in a corridor about it. */
void oct_trace_edge(struct oct_trace *trace, enum oct_layer layer,
                    const struct oct_trace_search *search, const struct oct_trace_bounds *bounds);

/* Smooths a curve over the A-lines by a Gaussian of sigma lines; n values. */
void oct_trace_smooth(const float *from, float *to, uint32_t n, double sigma);

void oct_trace_inner_init(struct oct_trace *trace);

/* The paths between the ILM and the ellipsoid zone, coarsely. */
void oct_trace_inner(struct oct_trace *trace, const struct oct_trace_bounds *bounds);

/* quality of path. */
void oct_trace_judge(struct oct_trace *trace, const struct oct_traced *result);

/* n elements, all 0, which the trace frees. NULL: lacks_memory is set. */
void *oct_trace_array(struct oct_trace *trace, size_t n, size_t bytes);

/* The k-th smallest of n values, which are reordered. */
float oct_trace_select(float *values, size_t n, size_t k);
/* Both the low-th and the high-th, low <= high. */
void oct_trace_select_both(float *values, size_t n, size_t low, float *at_low, size_t high,
                           float *at_high);

static inline uint32_t oct_trace_rounded(double x, uint32_t least, uint32_t most)
{
    return x > most ? most : x < least ? (least < most ? least : most) : (uint32_t)lround(x);
}

static inline bool oct_trace_has_line(const struct oct_trace *trace, uint32_t line)
{
    return !trace->line_valid || trace->line_valid[line];
}

/* As fminf and fmaxf, but that `than` is no NaN; a NaN x is ignored. */
static inline float oct_trace_lesser(float x, float than)
{
    return x < than ? x : than;
}

static inline float oct_trace_greater(float x, float than)
{
    return x > than ? x : than;
}

/* The light of an A-line at a depth, or at the nearest one. */
static inline float oct_trace_light_at(const struct oct_trace *trace, uint32_t line, int depth)
{
    const int last = (int)trace->setup.depth - 1;
    return trace->light[(size_t)line * trace->setup.depth + (size_t)(depth < 0      ? 0
                                                                     : depth > last ? last
                                                                                    : depth)];
}

/* The light of an A-line from depth `first` on; beyond its ends that of the nearest. */
void oct_trace_copy_light(const struct oct_trace *trace, uint32_t line, int first, int n,
                          float *to);

/* The top of the parabola through three values, in steps from the middle; 0: there is none. */
static inline float oct_trace_top(float before, float middle, float after)
{
    const float curve = before - 2 * middle + after;
    return curve < 0 ? 0.5F * (before - after) / curve : 0;
}

#endif
