#include "pipeline/base/histogram.h"

double oct_histogram_percentile(const uint32_t *counts, uint32_t n_bins, double share)
{
    uint64_t total = 0, seen = 0;
    for (uint32_t i = 0; i < n_bins; i++)
        total += counts[i];
    if (total == 0)
        return 0;
    for (uint32_t i = 0; i < n_bins; i++) {
        seen += counts[i];
        if (seen > 0 && (double)seen >= share * (double)total)
            return i;
    }
    return n_bins - 1;
}
