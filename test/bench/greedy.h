/* greedy (P. Yushkevich, github.com/pyushkevich/greedy) on the same pair of volumes: what others
 * register with, when it is there. */
#ifndef OCT_TEST_BENCH_GREEDY_H
#define OCT_TEST_BENCH_GREEDY_H

#include "pipeline/base/err.h"

#include <stdint.h>

struct bench_greedy {
    double
        seconds;  /* of its iterations by its own clock, without reading, smoothing, writing; 0: it
                       is not there */
    double cpu_s; /* CPU time of the whole process */
};

/* `greedy` of PATH, or Python's module picsl_greedy: iterations of 100 at factor 4, 30 at 2, 10 at
 * 1. fixed, moving: [side]^3; they go through NIfTI files. displacement: [3][side]^3, as
 * analysis/warp/solver.h has it; not touched where greedy is not there. OCT_E_IO: no file can be
 * written; OCT_E_STATE: it is there and fails. */
enum oct_err bench_greedy(const float *fixed, const float *moving, uint32_t side,
                          unsigned n_threads, float *displacement, struct bench_greedy *greedy,
                          struct oct_error *err);

#endif
