/* The chain of interpolation = nufft for a pair of A-lines on the CPU: the line, spread onto a grid
 * of P2/2 points, one transform of them, the power times the plan's gain (spread.h has the
 * equations). The two lines share the tables and nothing else: neither's rounding noise reaches the
 * other.
 *
 * As in line.h the chain is shared and read-only after init, a scratch is a worker's. */
#ifndef OCT_KERNELS_RECON_LINE_SPREAD_H
#define OCT_KERNELS_RECON_LINE_SPREAD_H

#include "kernels/recon/fft.h"
#include "kernels/recon/stages.h"

struct oct_line_pair;

struct oct_line_spread {
    const struct oct_plan *plan; /* borrowed */
    const struct oct_stages *stages;
    const struct oct_lanes *lanes; /* NULL: FFTW */
    struct oct_spread_blocks blocks;
    struct oct_fft fft; /* FFTW */
    struct oct_lane_fft lane_fft;
    unsigned n_out; /* sixteenths of the grid that the crop needs, as the lanes take them */
};

struct oct_line_spread_scratch {
    float *memory[2]; /* [n_ahead + N + OCT_SPREAD_SLACK] the lines, zeros around them */
    float *power[2];  /* lanes: [n_out * n_grid / 16]; FFTW: [D], [0] alone */
    float *plane[2];  /* lanes: [2][n_grid / 2] the transform */
    float *work;      /* lanes */
    float *grid[2];   /* FFTW: [2 * n_grid], zeros behind what is used (kept) */
    float *bins;      /* FFTW: [2 * n_grid] */
};

enum oct_err oct_line_spread_init(struct oct_line_spread *chain, const struct oct_plan *plan,
                                  const struct oct_stages *stages, const char *wisdom_dir,
                                  struct oct_error *err);
void oct_line_spread_finish(struct oct_line_spread *chain);

/* OCT_E_NO_MEMORY; finish is right after a failure too, and on zeroed memory. */
enum oct_err oct_line_spread_scratch_init(struct oct_line_spread_scratch *scratch,
                                          const struct oct_line_spread *chain);
void oct_line_spread_scratch_finish(struct oct_line_spread_scratch *scratch);

void oct_line_spread_reconstruct(const struct oct_line_spread *chain,
                                 struct oct_line_spread_scratch *scratch,
                                 const struct oct_line_pair *pair);

#endif
