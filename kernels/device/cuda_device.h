/* The device side of the CUDA engine as plain C sees it: what engine_cuda.c asks of a GPU.
 * CUDA's own headers stay behind it, in cuda_device.cu and the .cuh files that it includes; a build
 * without CUDA has cuda_absent.c in its place.
 *
 *     lane_create -> { lane_take, lane_begin, poll ..., [ lane_end, poll ... ] } -> lane_destroy
 *
 * A lane is a stream with buffers for one batch of B-scans, and tables. All calls for a lane come
 * from one thread, its own; any of them may block for ever when a device hangs, so nobody else may
 * wait for that thread without a deadline. What a call that comes back late may still touch is the
 * lane's own, or the pixels and samples of its batch, which oct_cuda_memory_hold keeps. */
#ifndef OCT_KERNELS_DEVICE_CUDA_DEVICE_H
#define OCT_KERNELS_DEVICE_CUDA_DEVICE_H

#include "pipeline/flow/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_CUDA_MAX_BATCH 32u /* B-scans: their parameters travel as kernel arguments */

#ifdef __cplusplus
extern "C" {
#endif

struct oct_cuda_lane;

enum oct_cuda_kernels {
    OCT_CUDA_FUSED, /* one kernel for the whole chain of two A-lines; P1 of 2048 and 4096 */
    OCT_CUDA_PLAIN  /* one kernel a step around cuFFT; any P1; needs the cuFFT library */
};

/* "CUDA 13.0, sm_75 sm_80 sm_90", or NULL in a build without CUDA. */
const char *oct_cuda_built_with(void);

/* Number of devices that answer; 0 with the reason in why. */
unsigned oct_cuda_count(char *why, size_t why_bytes);

/* What a person calls the device. */
enum oct_err oct_cuda_name(unsigned device, char *name, size_t name_bytes, struct oct_error *err);

/* Whether the device can run these kernels for this plan; the reason in err if not. */
enum oct_err oct_cuda_can_run(unsigned device, const struct oct_plan *plan,
                              enum oct_cuda_kernels kernels, struct oct_error *err);

/* Device memory for n_lanes lanes against what is free: OCT_E_NO_MEMORY with both sizes. */
enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                   enum oct_cuda_kernels kernels, unsigned max_batch,
                                   unsigned n_lanes, struct oct_error *err);

/* What those who watch a lane and its thread tell each other; all zero at first, outlives the lane.
 * For any thread, by the functions below. */
struct oct_cuda_signs {
    bool given_up;
    uint32_t n_calls; /* that came back from the device; with gaps, wraps around */
};

static inline void oct_cuda_signs_note_call(struct oct_cuda_signs *signs)
{
    __atomic_fetch_add(&signs->n_calls, 1, __ATOMIC_RELAXED);
}

static inline uint32_t oct_cuda_signs_n_calls(const struct oct_cuda_signs *signs)
{
    return __atomic_load_n(&signs->n_calls, __ATOMIC_RELAXED);
}

/* Nobody waits for the lane any more: it begins no more copies from or to its batch. */
static inline void oct_cuda_signs_give_up(struct oct_cuda_signs *signs)
{
    __atomic_store_n(&signs->given_up, true, __ATOMIC_RELEASE);
}

static inline bool oct_cuda_signs_given_up(const struct oct_cuda_signs *signs)
{
    return __atomic_load_n(&signs->given_up, __ATOMIC_ACQUIRE);
}

/* The plan is read here only. *lane is NULL on error. */
enum oct_err oct_cuda_lane_create(struct oct_cuda_lane **lane, unsigned device,
                                  const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                                  unsigned max_batch, struct oct_cuda_signs *signs,
                                  struct oct_error *err);

/* Copies what the lane needs to know of n jobs: their frames' headers and line_valid are read here
 * only, spectra and pixels until the batch is done. Asks nothing of the device, so that it never
 * waits. */
void oct_cuda_lane_take(struct oct_cuda_lane *lane, const struct oct_engine_job *jobs, unsigned n);

/* Queues upload and kernels of the batch taken. Unless one of its jobs asks for percentiles,
 * pictures and limits too; else lane_end must follow when poll says OCT_OK. */
enum oct_err oct_cuda_lane_begin(struct oct_cuda_lane *lane, bool *needs_end,
                                 struct oct_error *err);

/* Queues pixels and download. lo, hi [n]: limits in force; used for the jobs with percentiles. */
enum oct_err oct_cuda_lane_end(struct oct_cuda_lane *lane, const double *lo, const double *hi,
                               struct oct_error *err);

/* OCT_E_AGAIN: still at work. Never waits. OCT_E_BACKEND: the device has failed. */
enum oct_err oct_cuda_lane_poll(struct oct_cuda_lane *lane, struct oct_error *err);

/* After poll said OCT_OK: job k's own limits, by its display (manual: as given). */
void oct_cuda_lane_limits(const struct oct_cuda_lane *lane, unsigned k, double *lo, double *hi);

/* NULL is fine. */
void oct_cuda_lane_destroy(struct oct_cuda_lane *lane);

/* Pinned host memory. release waits a short while for the device, and not at all while memory is
 * held; then the memory is given back later, if ever: a device that hangs may still write there. */
extern const struct oct_memory_ops oct_cuda_memory;

/* From hold to let_go no memory is given back: threads that an engine has left to themselves may
 * still use what it was lent. Counted. Any thread. */
void oct_cuda_memory_hold(void);
void oct_cuda_memory_let_go(void);

/* ---- for the benchmark; called when no engine is at work ---- */

/* Seconds for n_rounds copies of `up` bytes to the device and, at the same time, `down` bytes from
 * it, pinned memory; and seconds a round for a copy of `bytes` within the device. */
enum oct_err oct_cuda_time_copies(unsigned device, size_t up, size_t down, unsigned n_rounds,
                                  double *seconds, struct oct_error *err);
enum oct_err oct_cuda_time_device_copy(unsigned device, size_t bytes, unsigned n_rounds,
                                       double *seconds, struct oct_error *err);

/* Queues the chain's kernels n_times on what the lane's last batch uploaded, without copies. */
enum oct_err oct_cuda_lane_repeat(struct oct_cuda_lane *lane, unsigned n_times,
                                  struct oct_error *err);

#define OCT_CUDA_N_STAGES 3 /* upload; kernels; download */

/* Time of the lane's last batch by stage, seconds; after poll said OCT_OK. Only a batch without
 * percentiles is timed. */
enum oct_err oct_cuda_lane_stages(struct oct_cuda_lane *lane, double *seconds,
                                  struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
