/* CUDA devices as plain C sees them: which there are, how to pin host memory for them, and what
 * those who watch a thread on a device are told. CUDA's own headers stay in .cu and .cuh files; a
 * build without CUDA has kernels/cuda_absent.c in place of cuda_device.cu.
 *
 * Any call that asks a device or the driver may block for ever when a device hangs, so nobody may
 * wait for the thread that makes it without a deadline (cuda_worker.h). */
#ifndef OCT_KERNELS_DEVICE_CUDA_DEVICE_H
#define OCT_KERNELS_DEVICE_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "pipeline/base/err.h"

/* "CUDA 13.0, sm_75 sm_80 sm_90", or NULL in a build without CUDA. */
const char *oct_cuda_built_with(void);

/* Number of devices that answer; 0 with the reason in why. */
unsigned oct_cuda_count(char *why, size_t why_bytes);

/* The name of the device, for messages. */
enum oct_err oct_cuda_name(unsigned device, char *name, size_t name_bytes, struct oct_error *err);

/* Whether the device answers and this build has code for it; the reason in err if not. */
enum oct_err oct_cuda_answers(unsigned device, struct oct_error *err);

/* What those who watch a worker and its thread tell each other; all zero at first, outlives what
 * the worker has on the device. For any thread, by the functions below. */
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

/* Nobody waits for the worker any more: it begins no more copies from or to memory it was lent. */
static inline void oct_cuda_signs_give_up(struct oct_cuda_signs *signs)
{
    __atomic_store_n(&signs->given_up, true, __ATOMIC_RELEASE);
}

static inline bool oct_cuda_signs_given_up(const struct oct_cuda_signs *signs)
{
    return __atomic_load_n(&signs->given_up, __ATOMIC_ACQUIRE);
}

/* ---- host memory that devices read fast; for cuda_memory.c, whose memory the rings take ---- */

/* Page-aligned, not zeroed; NULL when the driver refuses. */
void *oct_cuda_pin(size_t bytes);

/* Releases memory that oct_cuda_pin returned. Blocks until the device has done all that is in
 * flight. */
void oct_cuda_unpin(void *memory);

/* The same for a mapping of the caller's, which stays. False: the driver refuses. */
bool oct_cuda_register(void *memory, size_t bytes);
void oct_cuda_unregister(void *memory);

/* The same on the device. */
void *oct_cuda_take_memory(size_t bytes, unsigned device);
void oct_cuda_free_memory(void *memory, unsigned device);

/* The memory of cuda_memory.h, allocated or adopted, in which the address lies; NULL: none. */
const void *oct_cuda_memory_block(const void *at);

/* Makes later calls of oct_cuda_pin go through the device that computes: the context of another
 * device takes memory there, and that device may not work at all. */
void oct_cuda_pin_through(unsigned device);

/* ---- for the benchmark; called when no engine is at work ---- */

/* Copies one way: `bytes` at a time, from or to n_places of pinned memory in turn. Places count:
 * pictures that fit the host's cache come down faster than those that go on to its memory. */
struct oct_cuda_way {
    size_t bytes;
    unsigned n_places;
};

/* Seconds for n_rounds copies to the device and, at the same time, from it; and bytes read and
 * written a second by n_rounds copies within the device, of most_bytes or a quarter of its free
 * memory. */
enum oct_err oct_cuda_time_copies(unsigned device, struct oct_cuda_way up, struct oct_cuda_way down,
                                  unsigned n_rounds, double *seconds, struct oct_error *err);
enum oct_err oct_cuda_time_device_copy(unsigned device, size_t most_bytes, unsigned n_rounds,
                                       double *bytes_per_s, struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
