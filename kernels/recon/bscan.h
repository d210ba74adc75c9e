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
#include "kernels/recon/percentile.h"
#include "pipeline/flow/engine.h"

struct oct_bscan_chain {
    const struct oct_plan *plan; /* borrowed */
    struct oct_line_chain line;
    float *file_whole, *file_rest; /* [N] dc=file; NULL otherwise; owned */
};

struct oct_bscan_scratch {
    struct oct_line_scratch line;
    float *pair;                            /* [2][D] lines that are mapped at once */
    struct oct_sieves sieves;               /* of a B-scan that this worker does alone */
    float *spare[2];                        /* [M * D + OCT_SIFT_SLACK] */
    struct oct_percentile_bounds bounds[2]; /* around the limits that this worker found last */
    uint16_t *room;                         /* [2][N] lines of samples that are not u16 */
};

struct oct_bscan {
    struct oct_engine_job job;
    uint32_t n_valid;    /* lines that came; since begin */
    float min, max;      /* range=auto: of the lines done so far */
    float *values;       /* [M][D] f32: scratch, or the output's: its values, its f32 pixels */
    float *scratch;      /* owned; NULL when the output is f32. Read since begin */
    float *whole, *rest; /* [N] the DC line; owned, as what follows */
    uint32_t *sums;      /* [N] */
    struct oct_sieves *sieves; /* [n_shares]; NULL when n_shares is 0 */
    unsigned n_shares;
};

/* All init functions return OCT_E_NO_MEMORY (that of the chain also what FFTW's plans return);
 * finish may be called after a failed init and on zeroed memory. */
enum oct_err oct_bscan_chain_init(struct oct_bscan_chain *chain, const struct oct_plan *plan,
                                  const struct oct_stages *stages, const char *wisdom_dir,
                                  struct oct_error *err);
void oct_bscan_chain_finish(struct oct_bscan_chain *chain);
enum oct_err oct_bscan_scratch_init(struct oct_bscan_scratch *scratch,
                                    const struct oct_bscan_chain *chain, struct oct_error *err);
void oct_bscan_scratch_finish(struct oct_bscan_scratch *scratch);
/* n_shares: how many workers sift at once, each into a share of its own; 0: one worker does the
 * B-scan alone. */
enum oct_err oct_bscan_init(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                            unsigned n_shares);
void oct_bscan_finish(struct oct_bscan *bscan);

/* Whether the pixels are made with the lines, because no limits must be found first. Values are
 * then kept only for jobs that ask for them. */
bool oct_bscan_maps_at_once(const struct oct_bscan_chain *chain, const struct oct_bscan *bscan);

/* Takes the job; quick. */
void oct_bscan_take(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                    const struct oct_engine_job *job);

/* Counts the lines that came, computes the DC line and empties the sieves: the worker's own when it
 * does the whole B-scan (alone), or the shares. */
void oct_bscan_begin(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                     struct oct_bscan_scratch *scratch, bool alone);

/* A-lines from .. to-1. range=auto: *min and *max take in the values of those that came.
 * percentile: into `sieves`, which nobody else may be using. */
void oct_bscan_lines(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                     struct oct_bscan_scratch *scratch, uint32_t from, uint32_t to,
                     struct oct_sieves *sieves, float *min, float *max);

/* Writes the B-scan's own limits to out->lo and out->hi; manual: keeps them. alone: see begin. */
void oct_bscan_limits(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                      struct oct_bscan_scratch *scratch, bool alone);

/* Pixels of lines from .. to-1 by out->lo and out->hi. */
void oct_bscan_map(struct oct_bscan *bscan, const struct oct_bscan_chain *chain, uint32_t from,
                   uint32_t to);

#endif
