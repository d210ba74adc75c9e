/* An engine for tests of the pipeline: no reconstruction, but the whole of its contract, watched.
 *
 * A picture's pixels are all (first sample of the B-scan + display.lo) % 251; float values, where
 * they are asked for, are half of that and 1000 more from each to the next; complex values the same
 * and a quarter. Jobs are done one
 * after the other, each after its time. With a plan of dc=running the lines of the jobs are
 * compared with those of the same B-scans in the order of submission. */
#ifndef OCT_TEST_RIG_FAKE_ENGINE_H
#define OCT_TEST_RIG_FAKE_ENGINE_H

#include "pipeline/flow/engine.h"

#include <stdatomic.h>
#include <stdint.h>

struct fake_script {
    const struct oct_plan *plan;
    unsigned depth, max_batch;
    uint64_t job_us;      /* a job takes this long */
    uint64_t fail_one_in; /* every such job fails (0: none) */
    enum oct_dc dc;       /* of the plan, by who makes it */
    uint64_t dies_at;     /* job number from which on submit returns OCT_E_BACKEND; 0: never */
};

extern const struct oct_engine_ops fake_engine;

/* The caller owns what the watch points to; it outlives the engine. */
struct fake_watch {
    atomic_uint_fast64_t n_submitted, n_batches, most_in_flight;
    atomic_uint_fast64_t n_with_values, n_with_complex;
    atomic_uint_fast64_t n_wrong; /* times the caller broke the engine contract */
    struct oct_display display;   /* of the job submitted last */
};
struct oct_engine *fake_engine_create(const struct fake_script *script, struct fake_watch *watch);

uint8_t fake_pixel(uint16_t first_sample, double lo);
float fake_value(uint16_t first_sample, double lo, size_t i); /* i: index into [M][D] */

#endif
