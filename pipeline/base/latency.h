/* A latency histogram: constant memory, one writer thread, read by any thread at any time.
 *
 * Buckets grow with the value (32 a power of two), so that a percentile is off by at most 1/32 of
 * itself. Values in microseconds; larger ones than 2^32 fall into the last bucket. */
#ifndef OCT_PIPELINE_BASE_LATENCY_H
#define OCT_PIPELINE_BASE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

#define OCT_LATENCY_BUCKETS (32u * 28u + 64u)

struct oct_latency {
    atomic_uint_fast32_t counts[OCT_LATENCY_BUCKETS];
    atomic_uint_fast64_t max_us;
};

struct oct_latency_summary {
    uint64_t n;
    uint64_t p50_us, p99_us, max_us; /* 0 when n is 0 */
};

void oct_latency_add(struct oct_latency *latency, uint64_t value_us);
void oct_latency_reset(struct oct_latency *latency);
struct oct_latency_summary oct_latency_summarise(const struct oct_latency *latency);

#endif
