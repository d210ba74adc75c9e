#include "tools/bench/cells_beside.h"

#include "config/apply.h"
#include "tools/bench/beside.h"
#include "tools/bench/rig.h"

#include <stdio.h>
#include <string.h>

#define BSCANS_A_SECOND 400.0
#define BSCANS_A_VOLUME "240"

static const cJSON *find_cells(const cJSON *status)
{
    const cJSON *analysis;
    cJSON_ArrayForEach(analysis, cJSON_GetObjectItemCaseSensitive(status, "analysis"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(analysis, "name"));
        if (name && strcmp(name, "cells") == 0)
            return analysis;
    }
    return NULL;
}

static enum oct_err report(const struct oct_bench_beside_found *found, const char *source,
                           struct oct_bench_rows *rows, struct oct_error *err)
{
    const struct oct_bench_beside_way *without = &found->ways[0], *with = &found->ways[1];
    const cJSON *cells = find_cells(found->status), *reason;
    const double begun = oct_bench_number(cells, NULL, "seen");
    const double done = oct_bench_number(cells, NULL, "done");
    double skipped = 0;
    cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(cells, "skipped")) skipped +=
        cJSON_GetNumberValue(reason);
    if (!(begun > 0) || !(done + skipped >= begun && done + skipped <= begun))
        return oct_fail(err, OCT_E_STATE,
                        "cells of %s: %.0f B-scans begun, and %.0f done and %.0f skipped", source,
                        begun, done, skipped);
    struct oct_bench_row *row = oct_bench_add(rows, "cells", "p99 without them", "us", 1.05);
    row->less_is_better = true;
    row->value = with->p99_us;
    row->limit = without->p99_us;
    snprintf(row->what, sizeof(row->what), "bscan p99 beside cells, source = %s", source);
    snprintf(row->note, sizeof(row->note),
             "p50 %.0f us, without %.0f; %.0f begun = %.0f done + %.0f skipped; %.0f dropped",
             with->p50_us, without->p50_us, begun, done, skipped, found->n_dropped);
    return OCT_OK;
}

static enum oct_err bench_source(const struct oct_config *config, const char *source,
                                 double seconds, struct oct_bench_rows *rows, struct oct_error *err)
{
    const struct oct_bench_setting settings[] = {{"cells.enabled", {"no", "yes"}}, {NULL}};
    const struct oct_bench_beside beside = {
        .rate_hz = BSCANS_A_SECOND * config->scan.lines, .topic = "cells", .settings = settings};
    struct oct_bench_beside_found found;
    struct oct_config c = *config;
    enum oct_err e = oct_config_set(&c, "analysis.run", "enface,quality,cells", "bench", err);
    if (!e)
        e = oct_config_set(&c, "cells.source", source, "bench", err);
    if (!e)
        e = oct_config_set(&c, "scan.bscans", BSCANS_A_VOLUME, "bench", err);
    if (!e)
        e = oct_bench_beside(&c, &beside, seconds, &found, err);
    if (e)
        return e;
    e = report(&found, source, rows, err);
    cJSON_Delete(found.status);
    return e;
}

enum oct_err oct_bench_cells_beside(const struct oct_config *config, double seconds,
                                    struct oct_bench_rows *rows, struct oct_error *err)
{
    enum oct_err e = bench_source(config, "bscan", seconds, rows, err);
    return e ? e : bench_source(config, "enface", seconds, rows, err);
}
