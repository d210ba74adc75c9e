/* What the CPU engine does to one B-scan: the DC line, its A-lines, its display limits and its
 * pixels (contract section 1). No locks and no threads: who calls what when is engine_cpu.c's.
 *
 *     begin -> lines (all, in any pieces) -> limits -> map (all, in any pieces; u8 that was not
 *                                                          mapped with the lines)
 *
 * A struct oct_bscan_chain is shared by all workers and read-only after init; a struct
 * oct_bscan_scratch belongs to one worker; a struct oct_bscan is one place for a B-scan in flight.
 * Pieces begin at even lines and, but for the last, end at them: lines travel in pairs by their
 * numbers alone, so that no pixel depends on who did what. */
#ifndef OCT_KERNELS_RECON_BSCAN_H
#define OCT_KERNELS_RECON_BSCAN_H

#include "kernels/recon/line.h"
#include "pipeline/flow/engine.h"

struct oct_bscan_chain {
    const struct oct_plan *plan; /* borrowed */
    struct oct_line_chain line;
    float *file_whole, *file_rest; /* [N] dc=file; NULL otherwise; owned */
};

struct oct_bscan_scratch {
    struct oct_line_scratch line;
    float *pair;       /* [2][D] lines that are mapped at once */
    uint32_t *counts;  /* [OCT_HISTOGRAM_BINS] of a B-scan that this worker does alone */
    uint32_t *refined; /* [OCT_HISTOGRAM_BINS] */
};

struct oct_bscan {
    struct oct_engine_job job;
    float min, max;      /* range=auto: of the lines done so far */
    float *values;       /* [M][D] f32: scratch, or the output's: its values, its f32 pixels */
    float *scratch;      /* owned; NULL when the output is f32 */
    float *picked;       /* [M * D + OCT_PICK_SLACK]; owned, as what follows */
    float *whole, *rest; /* [N] the DC line */
    uint32_t *sums;      /* [N] */
    uint32_t *counts;    /* [n_shares][OCT_HISTOGRAM_BINS]; NULL when n_shares is 0 */
    unsigned n_shares;
};

/* All init: OCT_E_NO_MEMORY (chain: what FFTW's plans may say too), finish is right afterwards and
 * on zeroed memory. */
enum oct_err oct_bscan_chain_init(struct oct_bscan_chain *chain, const struct oct_plan *plan,
                                  const struct oct_stages *stages, const char *wisdom_dir,
                                  struct oct_error *err);
void oct_bscan_chain_finish(struct oct_bscan_chain *chain);
enum oct_err oct_bscan_scratch_init(struct oct_bscan_scratch *scratch,
                                    const struct oct_bscan_chain *chain, struct oct_error *err);
void oct_bscan_scratch_finish(struct oct_bscan_scratch *scratch);
/* n_shares: how many count at once, each in a share of its own; 0: only whoever does it alone. */
enum oct_err oct_bscan_init(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                            unsigned n_shares);
void oct_bscan_finish(struct oct_bscan *bscan);

/* The B-scan's pixels come with its lines: no limits are looked for. Its values are then kept for
 * those who asked for them only. */
bool oct_bscan_maps_at_once(const struct oct_bscan_chain *chain, const struct oct_bscan *bscan);

/* Takes the job; quick. */
void oct_bscan_take(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                    const struct oct_engine_job *job);

/* The DC line, and histograms emptied: `counts` for one who does all of it alone, NULL: shares. */
void oct_bscan_begin(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                     uint32_t *counts);

/* A-lines from .. to-1. range=auto: *min and *max take their values in. percentile: counted in
 * `counts`, which nobody else may be using. */
void oct_bscan_lines(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                     struct oct_bscan_scratch *scratch, uint32_t from, uint32_t to,
                     uint32_t *counts, float *min, float *max);

/* The B-scan's own limits into out->lo and out->hi; manual: as they are. counts as for begin. */
void oct_bscan_limits(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                      struct oct_bscan_scratch *scratch, uint32_t *counts);

/* Pixels of lines from .. to-1 by out->lo and out->hi. */
void oct_bscan_map(struct oct_bscan *bscan, const struct oct_bscan_chain *chain, uint32_t from,
                   uint32_t to);

#endif
