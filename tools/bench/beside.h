/* Live analyses beside the pictures of a real octd: the topic `bscan` without them and with them,
 * in turn, while a camera sends all the time, both topics are received, and the status is asked for
 * again and again. */
#ifndef OCT_TOOLS_BENCH_BESIDE_H
#define OCT_TOOLS_BENCH_BESIDE_H

#include "config/config.h"
#include "pipeline/base/err.h"

#include <cjson/cJSON.h>

#define OCT_BENCH_BESIDE_ROUNDS 6u

/* A setting, and its values without the analyses and with them. */
struct oct_bench_setting {
    const char *key, *values[2];
};

struct oct_bench_beside {
    double rate_hz;                           /* A-lines a second */
    const char *topic;                        /* of the results that are received */
    const struct oct_bench_setting *settings; /* the first key NULL: no more */
    bool restarts;   /* some may change only while octd is idle: it is stopped and started again */
    unsigned n_busy; /* programs beside it that do nothing but compute */
};

/* Of all rounds of one way: [0] without it, [1] with it. */
struct oct_bench_beside_way {
    uint64_t n_pictures;
    double p50_us, p99_us; /* from sending to reception; medians of the rounds */
    uint64_t n_results, n_lagging;
    double most_lag; /* B-scans that a result lags behind the pictures; n_lagging: by more than 2 */
    uint64_t n_missing;                 /* pictures that did not come between two that did */
    uint64_t n_replies, n_slow_replies; /* to status; slow: more than 100 ms */
    double reply_p99_us, reply_most_us; /* p99: median of the rounds */
};

struct oct_bench_beside_found {
    struct oct_bench_beside_way ways[2];
    double n_dropped; /* B-scans without pictures, since octd was started last */
    cJSON *status;    /* octd's after the last round; for cJSON_Delete, NULL after an error */
};

/* seconds: of a round. OCT_E_IO: octd sent no pictures, or refused the setting. */
enum oct_err oct_bench_beside(const struct oct_config *config,
                              const struct oct_bench_beside *beside, double seconds,
                              struct oct_bench_beside_found *found, struct oct_error *err);

#endif
