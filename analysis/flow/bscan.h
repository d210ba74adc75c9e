/* A B-scan of complex depth values, kept in planes as the loops of this folder take it, and how far
 * two of them are shifted against one another.
 *
 *     real, imaginary    [M][stride], A-line j from at(j) on, zeros before and behind it
 *
 * Loans: none, values are copied. One thread uses a B-scan at a time. */
#ifndef OCT_ANALYSIS_FLOW_BSCAN_H
#define OCT_ANALYSIS_FLOW_BSCAN_H

#include "analysis/flow/kernels.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct oct_workers;

#define OCT_FLOW_LINES 8u          /* A-lines of a piece of work */
#define OCT_FLOW_MOST_LINE_SHIFT 3 /* A-lines */
#define OCT_FLOW_MOST_DEPTH_SHIFT 24

struct oct_flow_bscan {
    uint32_t n_lines, depth; /* M, D */
    size_t stride;           /* a multiple of 32 */
    float *real, *imaginary;
    float *pieces;  /* [pieces][stride] sums of |B|^2 over the A-lines of a piece of work */
    float *blocks;  /* [pieces][D / OCT_FLOW_BLOCK] the same of blocks */
    float *power;   /* [M] the sum of |B|^2; 0: the line never came, or is not finite */
    bool has_lines; /* any came */
};

/* Floats from line to line, of planes and of maps of D values. */
static inline size_t oct_flow_stride(uint32_t depth)
{
    return (depth + 2 * (size_t)OCT_FLOW_MARGIN + 31) / 32 * 32;
}

static inline unsigned oct_flow_pieces(uint32_t n_lines)
{
    return (n_lines + OCT_FLOW_LINES - 1) / OCT_FLOW_LINES;
}

/* OCT_E_NO_MEMORY. finish is right after a failure too, and on zeroed memory. */
enum oct_err oct_flow_bscan_init(struct oct_flow_bscan *bscan, uint32_t n_lines, uint32_t depth,
                                 struct oct_error *err);
void oct_flow_bscan_finish(struct oct_flow_bscan *bscan);

/* values: [M][D][2] re, im, counts. An A-line of zeros never came. */
void oct_flow_bscan_put(struct oct_flow_bscan *bscan, const float *values,
                        struct oct_workers *workers);

/* Line j from depth d on; d within -OCT_FLOW_MARGIN .. D. */
static inline struct oct_flow_line oct_flow_bscan_line(const struct oct_flow_bscan *bscan,
                                                       uint32_t j, ptrdiff_t d)
{
    const ptrdiff_t at = (ptrdiff_t)(j * bscan->stride + OCT_FLOW_MARGIN) + d;
    return (struct oct_flow_line){bscan->real + at, bscan->imaginary + at};
}

/* Whether the bytes of both are the same: no camera makes such twice. */
bool oct_flow_bscan_is_same(const struct oct_flow_bscan *a, const struct oct_flow_bscan *b);

/* What moves b onto a, in A-lines and depth pixels:
 *
 *     (lines, depth) = argmax mean over j of |sum over d of a[j][d] conj b[j - lines][d - depth]|^2
 *
 * within OCT_FLOW_MOST_LINE_SHIFT and OCT_FLOW_MOST_DEPTH_SHIFT, by a parabola in both. The sum
 * over a line is coherent, lines are added as powers, so that their bulk phases do not matter. A
 * first look at few lines finds the place, of which all lines, or of more than 128 every 8th,
 * evenly spread, make the number. 0, 0 and a score of 0 where nothing has come, and where no shift
 * stands out four times above the mean of all. score: the share of the signal that agrees, 0..1. */
struct oct_flow_shift {
    double lines, depth, score;
};
enum oct_err oct_flow_shift_find(const struct oct_flow_bscan *a, const struct oct_flow_bscan *b,
                                 struct oct_workers *workers, struct oct_flow_shift *shift,
                                 struct oct_error *err);

#endif
