/* The tests' hand on the stand-in for CUDA: what machine it plays and what goes wrong on it. Set
 * while no engine runs. */
#ifndef OCT_TEST_CUDA_HOST_H
#define OCT_TEST_CUDA_HOST_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_host_fault {
    CUDA_HOST_NO_FAULT,
    CUDA_HOST_CALL_FAILS,     /* the n-th call reports a launch failure; the device is lost */
    CUDA_HOST_CALL_BLOCKS,    /* the n-th call does not return before cuda_host_reset */
    CUDA_HOST_CALL_LATE,      /* the same, but then does what it was called for */
    CUDA_HOST_WORK_FAILS,     /* the n-th operation in a stream fails; the device is lost */
    CUDA_HOST_KERNEL_SKIPPED, /* the n-th launch does nothing, and nobody says so */
    CUDA_HOST_WORK_HANGS /* the n-th operation in a stream does not end before cuda_host_reset */
};

/* A machine with n_devices, each with `bytes` of memory; nothing goes wrong. Calls and operations
 * are counted from here, of questions whether an event has come the first. Lets everything go on
 * that hangs. */
void cuda_host_reset(unsigned n_devices, size_t bytes);

/* No driver: every call fails with cudaErrorInsufficientDriver. */
void cuda_host_remove_driver(void);

/* Shared memory a block may have (else 227 KiB), cuFFT's presence (else there). */
void cuda_host_set_shared_limit(size_t bytes);
void cuda_host_set_cufft(bool present);

/* Work areas of cuFFT's plans take so much more than it says beforehand (else nothing). */
void cuda_host_set_cufft_surplus(size_t bytes);

/* Whether host memory is pinned on request (else it is). */
void cuda_host_set_pinning(bool possible);

/* Every call takes at least so long (else nothing), as on a machine with too much to do. */
void cuda_host_set_pace(unsigned us_per_call);

/* From now on; n counts from 1. */
void cuda_host_set_fault(enum cuda_host_fault fault, unsigned n);

/* Since reset: API calls, stream operations, kernel launches on a device, memory in use, streams
 * and events that exist. */
unsigned cuda_host_n_calls(void);
unsigned cuda_host_n_operations(void);
unsigned cuda_host_n_launches(unsigned device);
size_t cuda_host_bytes_in_use(void);
size_t cuda_host_bytes_down(void); /* copied from devices in streams */
unsigned cuda_host_n_objects(void);

#ifdef __cplusplus
}
#endif

#endif
