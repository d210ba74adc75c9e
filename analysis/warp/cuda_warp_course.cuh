/* The course of a level on the device: so that several steps are queued at once, the device itself
 * finds out whether the next one is wanted, as descent.c does on the host with the same numbers.
 * Where a trial is not taken, or E has fallen too little, what is queued behind does nothing; the
 * host goes through the results afterwards and decides the same. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_COURSE_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_COURSE_CUH

#include "analysis/warp/cuda_warp_types.cuh"
extern "C" {
#include "analysis/warp/descent.h"
}

#define OCT_WARP_BATCH 16u /* steps queued at once, at most */

struct oct_warp_course {
    double energy, fallen[OCT_WARP_FALL_STEPS]; /* E: now, and of the newest steps */
    float least;                                /* min J */
    uint32_t number;                            /* of steps taken */
    uint32_t is_over;
    uint32_t padding;
};

/* Of one energy. */
struct oct_warp_result {
    struct oct_warp_sums sums;
    double energy;
    uint32_t is_there; /* 0: the course was over before */
    uint32_t padding;
};

/* Whether kernels of a course do anything; NULL: there is none, and they do. */
static __device__ inline bool oct_warp_is_over(const struct oct_warp_course *course)
{
    return course && course->is_over;
}

static __global__ void oct_warp_course_kernel(struct oct_warp_course from,
                                              struct oct_warp_course *course)
{
    if (threadIdx.x == 0)
        *course = from;
}

/* A trial of this energy is taken, or the course is over. */
static __device__ inline void oct_warp_decide(struct oct_warp_course *c, double energy, float least)
{
    const bool folds = (double)least < OCT_WARP_LEAST_JACOBIAN && least < c->least;
    if (!(energy <= c->energy) || folds) {
        c->is_over = 1;
        return;
    }
    double *then = c->fallen + ++c->number % OCT_WARP_FALL_STEPS;
    c->is_over =
        c->number >= OCT_WARP_FALL_STEPS && !(*then - energy >= OCT_WARP_LEAST_FALL * fabs(*then));
    *then = c->energy = energy;
    c->least = least;
}

/* parts [n]: of blocks. One block. Of a course the longest is 0 again, for the next step. */
static __global__ void oct_warp_total_kernel(const struct oct_warp_sums *parts, uint32_t n,
                                             float *longest, double lambda,
                                             struct oct_warp_course *course,
                                             struct oct_warp_result *result)
{
    struct oct_warp_sums own = oct_warp_sums_none();
    const bool is_over = oct_warp_is_over(course);
    const uint32_t end = is_over ? 0 : n;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < end; i += OCT_WARP_THREADS)
        oct_warp_sums_add(&own, parts[i]);
    own = oct_warp_sums_of_block(own);
    if (threadIdx.x > 0)
        return;
    own.longest = *longest;
    *result = {own, own.ssd / 2 + lambda * own.change, !is_over, 0};
    if (course && !is_over) {
        *longest = 0;
        oct_warp_decide(course, result->energy, own.least);
    }
}

#endif
