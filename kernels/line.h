/* The chain for one A-line on the CPU: steps 2 to 8 of the contract (plan.h has the equations).
 *
 * A struct oct_line_chain holds what all workers share (read-only after init); a struct
 * oct_line_scratch belongs to one worker. */
#ifndef OCT_KERNELS_LINE_H
#define OCT_KERNELS_LINE_H

#include "kernels/fft.h"
#include "kernels/stages.h"

struct oct_line_chain {
    const struct oct_plan *plan; /* borrowed */
    const struct oct_stages *stages;
    struct oct_fft fft;
    struct oct_resample resample; /* base, direct, offset are owned */
};

struct oct_line_scratch {
    float *padded;   /* [P1] the line, zeros at both ends (kept) */
    float *spectrum; /* [P1 + 2] X, interleaved */
    float *odd;      /* [P1] */
    float *u;        /* [P2 + 32] */
    float *v;        /* [2 * P2] */
    float *b;        /* [2 * P2] */
};

enum oct_err oct_line_chain_init(struct oct_line_chain *chain, const struct oct_plan *plan,
                                 const struct oct_stages *stages, const char *wisdom_dir,
                                 struct oct_error *err);
void oct_line_chain_finish(struct oct_line_chain *chain);

enum oct_err oct_line_scratch_init(struct oct_line_scratch *scratch, const struct oct_plan *plan,
                                   struct oct_error *err);
void oct_line_scratch_finish(struct oct_line_scratch *scratch);

/* Reconstructs one A-line: value[d] in counts^2, or dB when log. whole/rest: the DC line as an
 * integer part and a remainder, [N] each; both NULL: none. */
void oct_line_reconstruct(const struct oct_line_chain *chain, struct oct_line_scratch *scratch,
                          const uint16_t *line, const float *whole, const float *rest, bool log,
                          float *value);

#endif
