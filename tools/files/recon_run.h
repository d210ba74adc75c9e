/* Reconstructs recordings, one after another, each to a volume file, through the daemon's own
 * pipeline. The engine and its rings are made for the first and kept for those that follow, as long
 * as plan and settings of the engine stay the same; else they are made anew.
 *
 *     create -> { run } -> destroy
 *
 * One thread uses a struct oct_recon at a time; several may work at once, on one pool. */
#ifndef OCT_TOOLS_RECON_RUN_H
#define OCT_TOOLS_RECON_RUN_H

#include "config/config.h"
#include "pipeline/base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct oct_image_frame;
struct oct_plan;
struct oct_recon;
struct oct_recording;
struct oct_workers;

/* workers: for engines of the CPU, outlives all; NULL: each engine has its own. */
struct oct_recon *oct_recon_create(struct oct_workers *workers);

/* Where B-scans go in place of a volume: with their complex values, and in the order of the
 * recording. An error ends the run. Both are called by the thread that runs it. */
struct oct_recon_sink {
    void *context;

    /* Before the first. All is lent until the run returns. */
    enum oct_err (*begin)(void *context, const struct oct_config *config,
                          const struct oct_plan *plan, struct oct_recording *recording,
                          struct oct_error *err);

    enum oct_err (*bscan)(void *context, const struct oct_image_frame *bscan,
                          struct oct_error *err); /* lent until it returns */

    /* Whether it takes them on the GPU, asked after begin; from then on they are there if the
     * engine's are. NULL: it does not. */
    bool (*is_on_device)(void *context);
};

struct oct_recon_job {
    const char *in, *out;              /* the recording, and the volume as the user named it */
    const struct oct_recon_sink *sink; /* NULL: `out` is written; else no file is */
    bool force;                        /* replace `out` once the new one is whole */
    bool has_complex;                  /* write the complex values, too */
    bool analyses; /* run those of analysis.run, too: each B-scan passes each of them */

    /* B-scans so far, ten times a second at most. NULL: nobody looks. */
    void (*progress)(void *context, uint64_t done, uint64_t all);
    void *progress_context;
    const volatile sig_atomic_t *cancel; /* not 0: end, and stay so. NULL: nobody does */
};

struct oct_recon_result {
    uint64_t n_bscans, n_skipped; /* written; missing in the recording */
    uint32_t n_lines, depth;      /* M, D */
    double seconds;               /* of reading, computing and writing B-scans */
};

/* The whole file appears at `out`, or nothing does. config: defaults, files and --set; the
 * recording's own settings are added to a copy. OCT_E_ARG, OCT_E_IO: the output may not be made, or
 * exists already; OCT_E_CLOSED: it was cancelled; else what opening, planning, the engine or the
 * disk said. After any error the next recording can be run. */
enum oct_err oct_recon_run(struct oct_recon *recon, const struct oct_config *config,
                           const struct oct_recon_job *job, struct oct_recon_result *result,
                           struct oct_error *err);

/* Of the engine that is there: the line that says which and why, and "cpu" or "cuda", what computes
 * now. "" before the first. */
const char *oct_recon_engine(const struct oct_recon *recon);
const char *oct_recon_engine_name(const struct oct_recon *recon);

/* Engines made so far. */
unsigned oct_recon_n_engines(const struct oct_recon *recon);

/* NULL is fine. */
void oct_recon_destroy(struct oct_recon *recon);

#endif
