/* The device side of the CUDA engine as plain C sees it: what engine_cuda.c asks of a GPU
 * (cuda_recon.cu; kernels/cuda_absent.c in a build without CUDA).
 *
 *     create -> { take, begin, poll ..., [ end, poll ... ] } -> destroy
 *
 * A recon is a stream with buffers for one batch of B-scans, and tables. All calls for a recon come
 * from one thread, its own; any of them may block for ever when a device hangs, so nobody else may
 * wait for that thread without a deadline. What a call that comes back late may still touch is the
 * recon's own, or the pixels and samples of its batch, which oct_cuda_memory_hold keeps. */
#ifndef OCT_KERNELS_RECON_CUDA_RECON_H
#define OCT_KERNELS_RECON_CUDA_RECON_H

#include "kernels/device/cuda_device.h"
#include "pipeline/flow/engine.h"

#define OCT_CUDA_MAX_BATCH 32u /* B-scans: their parameters travel as kernel arguments */

#ifdef __cplusplus
extern "C" {
#endif

struct oct_cuda_recon;
struct oct_cuda_turn;

enum oct_cuda_kernels {
    OCT_CUDA_FUSED, /* one kernel for the whole chain of two A-lines; P1 of 2048 and 4096 */
    OCT_CUDA_PLAIN  /* one kernel a step around cuFFT; any P1; needs the cuFFT library */
};

/* Whether the device can run these kernels for this plan; the reason in err if not. */
enum oct_err oct_cuda_can_run(unsigned device, const struct oct_plan *plan,
                              enum oct_cuda_kernels kernels, struct oct_error *err);

/* Compares the device memory that n_streams streams need with what is free: OCT_E_NO_MEMORY with
 * both sizes. */
enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                   enum oct_cuda_kernels kernels, unsigned max_batch,
                                   unsigned n_streams, bool has_complex, struct oct_error *err);

/* has_complex: jobs may ask for complex values, for which there is room on the device then. The
 * plan is read during create only. *recon is NULL on error. */
enum oct_err oct_cuda_recon_create(struct oct_cuda_recon **recon, unsigned device,
                                   const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                                   unsigned max_batch, bool has_complex,
                                   struct oct_cuda_signs *signs, struct oct_error *err);

/* Before its first batch: batches of many B-scans of this recon, and of all that then share with
 * it, come up one behind the other. Called by the recon's thread, as the next is. */
enum oct_err oct_cuda_recon_open_uploads(struct oct_cuda_recon *recon, struct oct_error *err);

/* Before the first batch of recon, which is on the device of `first`, and while `first` is there.
 * Asks nothing of the device. */
void oct_cuda_recon_share_uploads(struct oct_cuda_recon *recon, struct oct_cuda_recon *first);

/* Copies what the recon needs to know of n jobs: their frames' headers and line_valid are read here
 * only, spectra and pixels until the batch is done. Asks nothing of the device, so that it never
 * waits. */
void oct_cuda_recon_take(struct oct_cuda_recon *recon, const struct oct_engine_job *jobs,
                         unsigned n);

/* Queues upload and kernels of the batch that was taken. If none of its jobs asks for percentiles,
 * it also queues limits, pictures and download; otherwise the caller must call smooth; or look, and
 * end when poll returns OCT_OK. */
enum oct_err oct_cuda_recon_begin(struct oct_cuda_recon *recon, bool *needs_end,
                                  struct oct_error *err);

/* Percentiles of B-scans that all are on one device: queues their smoothing (percentile.h) there,
 * after that of the recon that had the batch before this one, of which `before` was held (NULL:
 * none); then pixels and download. No other batch of that recon has been queued meanwhile. Takes
 * what was held, on failure too. */
enum oct_err oct_cuda_recon_smooth(struct oct_cuda_recon *recon, struct oct_cuda_turn *before,
                                   struct oct_error *err);

/* What the next batch's smoothing needs of this recon, which may go meanwhile. Any thread, while
 * the recon is there; asks nothing of the device. */
struct oct_cuda_turn *oct_cuda_recon_hold_turn(struct oct_cuda_recon *recon);

/* Percentiles of several devices are smoothed by the caller: queues the download of the own limits.
 */
enum oct_err oct_cuda_recon_look(struct oct_cuda_recon *recon, struct oct_error *err);

/* Queues pixels and download. lo, hi [n]: limits in force; used for the jobs with percentiles. */
enum oct_err oct_cuda_recon_end(struct oct_cuda_recon *recon, const double *lo, const double *hi,
                                struct oct_error *err);

/* OCT_E_AGAIN: still at work. Never waits. OCT_E_BACKEND: the device has failed. */
enum oct_err oct_cuda_recon_poll(struct oct_cuda_recon *recon, struct oct_error *err);

/* After poll said OCT_OK: job k's own limits, by its display (manual: as given), after smooth those
 * in force. */
void oct_cuda_recon_limits(const struct oct_cuda_recon *recon, unsigned k, double *lo, double *hi);

/* NULL is fine. */
void oct_cuda_recon_destroy(struct oct_cuda_recon *recon);

/* ---- for the benchmark; called when no engine is at work ---- */

/* Queues the chain's kernels n_times on what the recon's last batch uploaded, without copies. */
enum oct_err oct_cuda_recon_repeat(struct oct_cuda_recon *recon, unsigned n_times,
                                   struct oct_error *err);

#define OCT_CUDA_N_STAGES 3 /* upload; kernels; download */

/* Time of the recon's last batch by stage, seconds; after poll said OCT_OK. Only a batch without
 * percentiles is timed. */
enum oct_err oct_cuda_recon_stages(struct oct_cuda_recon *recon, double *seconds,
                                   struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
