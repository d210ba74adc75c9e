/* The chain for A-lines on the CPU: steps 2 to 8 of the contract (plan.h has the equations), two
 * lines at a time: up to k space both are real, so they travel as one complex signal, line[0] the
 * real and line[1] the imaginary part, through transforms that are linear and a filter whose
 * impulse response is real. interpolation = nufft goes another way, that of line_spread.h.
 *
 * The transforms are our own (lanes.h) where the instruction set and the length allow, else FFTW's.
 *
 * A struct oct_line_chain holds what all workers share (read-only after init); a struct
 * oct_line_scratch belongs to one worker. */
#ifndef OCT_KERNELS_RECON_LINE_H
#define OCT_KERNELS_RECON_LINE_H

#include "kernels/recon/fft.h"
#include "kernels/recon/line_spread.h"
#include "kernels/recon/stages.h"

struct oct_line_chain {
    const struct oct_plan *plan; /* borrowed */
    const struct oct_stages *stages;
    bool is_spread; /* nufft: `spread` is all that follows; else it is empty */
    struct oct_line_spread spread;
    const struct oct_lanes *lanes; /* NULL: FFTW */
    float *half_sample; /* [2 * P1] the plan's shift over all P1 bins; owned. FFTW: interleaved;
                           lanes: re, then im */
    /* FFTW */
    struct oct_fft fft;
    struct oct_resample resample; /* owned */
    /* lanes */
    struct oct_lane_fft shorter, longer; /* P1, P2 */
    struct oct_lane_taps taps;
    unsigned n_out; /* sixteenths of P2 that the crop needs, as lanes->to_depth takes them */
};

struct oct_line_scratch {
    struct oct_line_spread_scratch spread; /* nufft: all there is */
    /* lanes */
    float *even[2], *odd_line[2]; /* [P1 + 16] the padded lines, zeros at both ends (kept); odd */
    float *power[2];              /* [P2 / 2] */
    float *bins[2];               /* [2][P2 / 2] */
    float *work;
    /* FFTW */
    float *padded;   /* [2 * (P1 + span)] the pair, zeros at both ends (kept): the even samples */
    float *spectrum; /* [2 * P1] */
    float *odd;      /* [2 * (P1 + span)] the odd samples */
    float *va, *vb;  /* [2 * P2] in k space */
    float *b;        /* [2 * P2] */
};

enum oct_err oct_line_chain_init(struct oct_line_chain *chain, const struct oct_plan *plan,
                                 const struct oct_stages *stages, const char *wisdom_dir,
                                 struct oct_error *err);
void oct_line_chain_finish(struct oct_line_chain *chain);

enum oct_err oct_line_scratch_init(struct oct_line_scratch *scratch,
                                   const struct oct_line_chain *chain, struct oct_error *err);
void oct_line_scratch_finish(struct oct_line_scratch *scratch);

/* A pair of A-lines on its way: samples in, D values out (counts^2, or dB when log), and where z is
 * not NULL the complex values, [D][2] counts. line[1] may be NULL: a single line. whole, rest: the
 * DC line as an integer part and a remainder, [N] each; both NULL: none. */
struct oct_line_pair {
    const uint16_t *line[2];
    float *value[2], *z[2];
    const float *whole, *rest;
    bool log;
};

void oct_line_reconstruct(const struct oct_line_chain *chain, struct oct_line_scratch *scratch,
                          const struct oct_line_pair *pair);

#endif
