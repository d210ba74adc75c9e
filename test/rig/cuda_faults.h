/* The course of faults that every engine with a failover must stand on the stand-in for CUDA:
 * whatever fails or hangs, and wherever, the CPU goes on with the same numbers, in time, and
 * nothing is left on the device. It fails the cmocka test that runs. */
#ifndef OCT_TEST_RIG_CUDA_FAULTS_H
#define OCT_TEST_RIG_CUDA_FAULTS_H

#include "test/rig/cuda_rig.h"

/* An engine and what is done with it. Its own asserts fail the test. */
struct oct_cuda_course {
    void *context;

    /* Opens an engine by "auto". Returns what runs: "cpu" or "cuda". */
    const char *(*open)(void *context, unsigned deadline_ms);

    /* Every call of it, the numbers compared with those of the CPU. Returns what runs then. */
    const char *(*use)(void *context);

    void (*close)(void *context);
};

/* A machine with one device, on which the n-th call or operation from here on fails. */
void oct_cuda_course_fault(const struct oct_cuda_course *course, enum cuda_host_fault fault,
                           unsigned n);

/* No fault, then faults at every `stride`-th call and operation, rarer and rarer, and at some of
 * the last operations. */
void oct_cuda_course_run(const struct oct_cuda_course *course, unsigned stride);

/* The n-th call or operation after open does not end: the CPU goes on after the deadline. */
void oct_cuda_course_hang(const struct oct_cuda_course *course, enum cuda_host_fault fault,
                          unsigned n);

#endif
