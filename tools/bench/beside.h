/* A live analysis beside the pictures of a real octd: the topic `bscan` without it and with it, in
 * turn, while a camera sends all the time and both topics are received. */
#ifndef OCT_TOOLS_BENCH_BESIDE_H
#define OCT_TOOLS_BENCH_BESIDE_H

#include "config/config.h"
#include "pipeline/base/err.h"

#include <cjson/cJSON.h>

#define OCT_BENCH_BESIDE_ROUNDS 6u

struct oct_bench_beside {
    double rate_hz;    /* A-lines a second */
    const char *topic; /* of its results */
    const char *key;   /* a setting that changes live, and its values without it and with it */
    const char *values[2];
};

/* Of all rounds of one way: [0] without it, [1] with it. */
struct oct_bench_beside_way {
    uint64_t n_pictures;
    double p50_us, p99_us; /* from sending to reception; medians of the rounds */
    uint64_t n_results, n_lagging;
    double most_lag; /* B-scans that a result lags behind the pictures; n_lagging: by more than 2 */
};

struct oct_bench_beside_found {
    struct oct_bench_beside_way ways[2];
    double n_dropped; /* B-scans without pictures */
    cJSON *status;    /* octd's after the last round; for cJSON_Delete, NULL after an error */
};

/* seconds: of a round. OCT_E_IO: octd sent no pictures, or refused the setting. */
enum oct_err oct_bench_beside(const struct oct_config *config,
                              const struct oct_bench_beside *beside, double seconds,
                              struct oct_bench_beside_found *found, struct oct_error *err);

#endif
