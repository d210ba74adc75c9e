#include "daemon/memory.h"

#include "pipeline/base/log.h"
#include "pipeline/base/memory.h"
#include "pipeline/record/keeper.h"

#include <math.h>

#define MIB 1048576.0
#define SHARE 0.8 /* of the available memory: the rest is for the page cache and other programs */

enum oct_err oct_memory_plan(const struct oct_config *config, const struct oct_geometry *g,
                             uint32_t *buffer_bscans, uint32_t *history_bscans,
                             struct oct_error *err)
{
    double per_s = config->scan.line_rate_hz / g->n_lines;
    double bytes = (double)oct_kept_bytes(g), free_bytes = oct_memory_available_bytes(NULL) * SHARE;
    double buffer = ceil(config->record.buffer_s * per_s);
    double history = ceil(config->record.last_s * per_s);
    if (history > OCT_MAX_BSCANS)
        return oct_fail_key(
            err, OCT_E_CONFIG, "record.last_s",
            "record.last_s: %g s are %.0f B-scans, a file holds at most %u: at most "
            "%g s",
            config->record.last_s, history, OCT_MAX_BSCANS, floor(OCT_MAX_BSCANS / per_s));
    if (history > 0 && (history + buffer) * bytes > free_bytes)
        return oct_fail_key(
            err, OCT_E_CONFIG, "record.last_s record.buffer_s",
            "record.last_s: %g s (and record.buffer_s: %g s) take %.0f MiB, but only "
            "%.0f MiB can be had: at most %.1f s",
            config->record.last_s, config->record.buffer_s, (history + buffer) * bytes / MIB,
            free_bytes / MIB, fmax(0, free_bytes / bytes / per_s - config->record.buffer_s));
    /* The buffer grows only as it is needed; a share of the memory bounds it. */
    buffer = fmin(buffer, floor(fmin(free_bytes / bytes, UINT32_MAX / 2)));
    *buffer_bscans = (uint32_t)buffer;
    *history_bscans = (uint32_t)history;
    return OCT_OK;
}

void oct_memory_tell(struct oct_recorder *recorder, const struct oct_config *config)
{
    const double per_s = config->scan.line_rate_hz / config->scan.lines;
    struct oct_recorder_status status;
    oct_recorder_get_status(recorder, &status);
    const struct oct_keeper_status *k = &status.keeper;
    if (k->history_bscans > 0)
        oct_log(OCT_LOG_INFO,
                "the last %g s (%u B-scans) are kept in memory for record last: with %.1f s for a "
                "slow disk %.1f MiB, all taken now",
                config->record.last_s, k->history_bscans, k->buffer_bscans / per_s,
                (double)k->bytes / MIB);
    else
        oct_log(OCT_LOG_INFO,
                "a recording survives a disk that stalls %.1f s (%u B-scans, up to %.1f MiB)",
                k->buffer_bscans / per_s, k->buffer_bscans, (double)k->bytes / MIB);
}
