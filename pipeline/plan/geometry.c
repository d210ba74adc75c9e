#include "pipeline/plan/geometry.h"

uint32_t oct_geometry_padded(uint32_t n_samples)
{
    if (n_samples < 1 || n_samples > OCT_MAX_SAMPLES)
        return 0;
    uint32_t padded = 2048;
    while (padded < n_samples)
        padded *= 2;
    return padded;
}

enum oct_err oct_geometry_init(struct oct_geometry *g, uint32_t n_samples, uint32_t n_lines,
                               uint32_t n_bscans, uint32_t crop_first, uint32_t crop_last,
                               enum oct_sample_type sample_type, struct oct_error *err)
{
    if (n_samples < OCT_MIN_SAMPLES || n_samples > OCT_MAX_SAMPLES)
        return oct_fail_key(err, OCT_E_CONFIG, "camera.samples",
                            "camera.samples is %u: it must be %u to %u", n_samples, OCT_MIN_SAMPLES,
                            OCT_MAX_SAMPLES);
    if (n_lines < 1 || n_lines > OCT_MAX_LINES)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.lines", "scan.lines is %u: it must be 1 to %u",
                            n_lines, OCT_MAX_LINES);
    if (n_bscans < 1 || n_bscans > OCT_MAX_BSCANS)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.bscans",
                            "scan.bscans is %u: it must be 1 to %u", n_bscans, OCT_MAX_BSCANS);
    uint32_t padded = oct_geometry_padded(n_samples);
    uint32_t last = crop_last ? crop_last : padded;
    if (last > padded)
        return oct_fail_key(err, OCT_E_CONFIG, "pipeline.crop_last",
                            "pipeline.crop_last is %u: %u samples give depth pixels 0 to %u, so it "
                            "must be at most %u (0: all)",
                            crop_last, n_samples, padded - 1, padded);
    if (crop_first >= last)
        return oct_fail_key(
            err, OCT_E_CONFIG, "pipeline.crop_first pipeline.crop_last",
            "pipeline.crop_first is %u: it must be less than pipeline.crop_last (%u)", crop_first,
            last);
    uint32_t depth = last - crop_first;
    uint64_t most = (uint64_t)n_lines * (n_samples > depth ? n_samples : depth);
    if (most > OCT_MAX_BSCAN_SAMPLES)
        return oct_fail_key(
            err, OCT_E_CONFIG, "scan.lines",
            "scan.lines is %u: with %u samples and %u depth pixels a B-scan would hold "
            "%llu values, more than %u",
            n_lines, n_samples, depth, (unsigned long long)most, OCT_MAX_BSCAN_SAMPLES);
    *g = (struct oct_geometry){
        .n_samples = n_samples,
        .n_lines = n_lines,
        .n_bscans = n_bscans,
        .padded = padded,
        .upsampled = 2 * padded,
        .left = (padded - n_samples) / 2,
        .crop_first = crop_first,
        .crop_last = last,
        .depth = depth,
        .sample_type = sample_type,
    };
    return OCT_OK;
}

size_t oct_geometry_spectra_bytes(const struct oct_geometry *g)
{
    return (size_t)g->n_lines * g->n_samples * sizeof(uint16_t);
}

size_t oct_geometry_complex_bytes(const struct oct_geometry *g)
{
    return (size_t)g->n_lines * g->depth * 2 * sizeof(float);
}

size_t oct_geometry_image_bytes(const struct oct_geometry *g)
{
    return (size_t)g->n_lines * g->depth * (g->sample_type == OCT_SAMPLE_F32 ? sizeof(float) : 1);
}
