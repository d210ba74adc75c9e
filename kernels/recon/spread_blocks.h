/* The plan's tables of nufft (spread.h) in the order in which vectors take them: 16 neighbouring
 * grid points at once, of two lines, so that the tables are read once for both. Grid point
 * g = 16 b + l is
 *
 *     f[g] = sum over t < n_taps of (re + i im)[t][l] * x[base + t + l]
 *
 * The samples of a grid point begin about one behind those of the point before it, because a line
 * of N samples reaches about N points: neighbours in the grid read neighbours in the line, and
 * nothing is gathered or permuted. Where k runs faster or slower, weights of 0 fill the blocks up:
 * right for any map, and slower only there.
 *
 * A line x lies between zeros: n_ahead before it, OCT_SPREAD_SLACK behind. The last n_wrap samples
 * stand again right before the first one: a line that fills the grid reaches around its end. */
#ifndef OCT_KERNELS_RECON_SPREAD_BLOCKS_H
#define OCT_KERNELS_RECON_SPREAD_BLOCKS_H

#include "pipeline/plan/spread.h"

#define OCT_SPREAD_BLOCK 16u
#define OCT_SPREAD_SLACK 32u /* floats behind a line, which are read but not used */

struct oct_spread_block {
    int32_t base; /* >= -n_ahead */
    uint32_t n_taps;
    size_t at; /* of its first tap in weight */
};

/* Nearly all blocks have few taps. Those have equally many, so that vector code of just so many
 * does them all. */
#define OCT_SPREAD_LEAST_USUAL 5u
#define OCT_SPREAD_MOST_USUAL 12u

struct oct_spread_blocks {
    uint32_t n_blocks;              /* that samples reach; those behind are 0 */
    uint32_t n_ahead;               /* a multiple of 16, at least n_wrap */
    uint32_t n_wrap;                /* at most N */
    uint32_t n_usual_taps;          /* within the bounds above */
    struct oct_spread_block *block; /* [n_blocks] */
    float *weight;                  /* [taps of all blocks][2][16]: re, im */
};

/* n: samples a line. OCT_E_NO_MEMORY; finish is right after a failure too, and on zeroed memory. */
enum oct_err oct_spread_blocks_init(struct oct_spread_blocks *blocks,
                                    const struct oct_spread *spread, uint32_t n);
void oct_spread_blocks_finish(struct oct_spread_blocks *blocks);

#endif
