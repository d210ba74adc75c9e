#include "pipeline/base/latency.h"

#include "pipeline/base/histogram.h"

/* Below 64 a bucket a value; above, 32 buckets a power of two. */
static unsigned bucket_of(uint64_t value)
{
    if (value < 64)
        return (unsigned)value;
    if (value > UINT32_MAX)
        value = UINT32_MAX;
    unsigned top = 63 - (unsigned)__builtin_clzll(value); /* >= 6 */
    unsigned bucket = (top - 5) * 32 + (unsigned)(value >> (top - 5));
    return bucket < OCT_LATENCY_BUCKETS ? bucket : OCT_LATENCY_BUCKETS - 1;
}

/* Returns the largest value of a bucket: a percentile is never reported too small. */
static uint64_t upper_end(unsigned bucket)
{
    if (bucket < 64)
        return bucket;
    unsigned shift = bucket / 32 - 1;
    return ((uint64_t)(bucket % 32 + 32 + 1) << shift) - 1;
}

void oct_latency_add(struct oct_latency *latency, uint64_t value_us)
{
    atomic_fetch_add_explicit(&latency->counts[bucket_of(value_us)], 1, memory_order_relaxed);
    if (value_us > atomic_load_explicit(&latency->max_us, memory_order_relaxed))
        atomic_store_explicit(&latency->max_us, value_us, memory_order_relaxed);
}

void oct_latency_reset(struct oct_latency *latency)
{
    for (unsigned b = 0; b < OCT_LATENCY_BUCKETS; b++)
        atomic_store_explicit(&latency->counts[b], 0, memory_order_relaxed);
    atomic_store_explicit(&latency->max_us, 0, memory_order_relaxed);
}

static uint64_t percentile(const uint32_t *counts, double share, uint64_t max)
{
    unsigned bucket = (unsigned)oct_histogram_percentile(counts, OCT_LATENCY_BUCKETS, share);
    return upper_end(bucket) < max ? upper_end(bucket) : max;
}

struct oct_latency_summary oct_latency_summarise(const struct oct_latency *latency)
{
    uint32_t counts[OCT_LATENCY_BUCKETS];
    struct oct_latency_summary s = {0};

    for (unsigned b = 0; b < OCT_LATENCY_BUCKETS; b++) {
        counts[b] = (uint32_t)atomic_load_explicit(&latency->counts[b], memory_order_relaxed);
        s.n += counts[b];
    }
    if (s.n == 0)
        return s;
    s.max_us = atomic_load_explicit(&latency->max_us, memory_order_relaxed);
    s.p50_us = percentile(counts, 0.5, s.max_us);
    s.p99_us = percentile(counts, 0.99, s.max_us);
    return s;
}
