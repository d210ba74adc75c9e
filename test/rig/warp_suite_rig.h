/* What the files of the suite share. Any error fails the test that runs. */
#ifndef OCT_TEST_RIG_WARP_SUITE_RIG_H
#define OCT_TEST_RIG_WARP_SUITE_RIG_H

#include "test/rig/warp_oracle.h"
#include "test/rig/warp_phantom.h"
#include "test/rig/warp_suite.h"

/* An engine under test and its table. */
struct oct_warp_suite_engine {
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine;
};

void oct_warp_suite_use(const struct oct_warp_suite *suite);
const struct oct_warp_suite *oct_warp_suite_now(void);
bool oct_warp_suite_has_paper(void); /* the engine has OCT_WARP_PAPER: the CPU's */

/* Zeros; free() releases them. */
void *oct_warp_suite_get(size_t n, size_t size);

/* The grid's defaults, with the workers and the deadline of the suite. */
struct oct_warp_setup oct_warp_suite_setup(const struct oct_warp_grid *grid);
struct oct_warp_grid oct_warp_suite_grid(uint32_t n_b, uint32_t n_j, uint32_t n_d);
/* One level of factor 1. */
void oct_warp_suite_one_level(struct oct_warp_params *params, unsigned iterations);

enum oct_err oct_warp_suite_create(struct oct_warp_suite_engine *e,
                                   const struct oct_warp_setup *setup, struct oct_error *err);
struct oct_warp_suite_engine oct_warp_suite_open(const struct oct_warp_setup *setup);
void oct_warp_suite_close(struct oct_warp_suite_engine *e);

/* An engine of its own solves. report: NULL: not asked for. */
void oct_warp_suite_solve(const struct oct_warp_setup *setup, const float *fixed,
                          const float *moving, const uint8_t *mask, float *displacement,
                          struct oct_warp_report *report);

/* Waves along all axes that do not end at the border, with 0.3 < J: at most `most` voxels. */
void oct_warp_suite_field(const uint32_t dims[3], double most, uint64_t seed, float *displacement);

double *oct_warp_suite_double(const float *values, size_t n);

/* An oracle of copies; the mask is lent. */
struct oct_warp_oracle oct_warp_suite_oracle(const struct oct_warp_setup *setup, const float *fixed,
                                             const float *moving, const uint8_t *mask);
void oct_warp_suite_finish(struct oct_warp_oracle *oracle);

/* The largest |a - b|. */
double oct_warp_suite_away(const float *a, const double *b, size_t n);
double oct_warp_suite_largest(const double *values, size_t n);

/* Min J by the oracle, mean and sd of log J. */
struct oct_warp_suite_change {
    double least, mean_log, sd_log;
};
struct oct_warp_suite_change oct_warp_suite_look(const uint32_t dims[3], const float *displacement);

int oct_warp_suite_run_parts(void);  /* against the oracle */
int oct_warp_suite_run_solves(void); /* against what is known */
int oct_warp_suite_run_ends(void);   /* small sides, bad input, stops */

#endif
