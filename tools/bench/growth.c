/* Measures how the engine's rate grows with the number of cores, and whether it depends on the
 * length of a B-scan. */
#include "tools/bench/part.h"

#include <stdio.h>

static enum oct_err by_cores(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    double one, all, us;
    char depth[24];
    oct_bench_depth_text(config, depth, sizeof(depth));
    unsigned n_cores = oct_bench_n_cores();
    enum oct_err e = oct_bench_engine(config, 0, 1, options->seconds, &one, &us, err);
    for (unsigned n = 2; n <= n_cores && !e; n *= 2) {
        struct oct_bench_row *row = oct_bench_add(rows, "growth", "one thread", "lines/s", 0.95);
        e = oct_bench_engine(config, 0, n, options->seconds, &all, &us, err);
        row->value = all / n;
        row->limit = one;
        snprintf(row->what, sizeof(row->what), "a core, %u threads, %s", n, depth);
    }
    return e;
}

static enum oct_err by_lines(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    static const uint32_t lines[] = {240, 10, 60, 1024, 4096}; /* the first is the measure */
    double us, rate, usual = 1;
    char depth[24];
    oct_bench_depth_text(config, depth, sizeof(depth));
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]) && !e; i++) {
        e = oct_bench_engine(config, lines[i], 0, options->seconds, &rate, &us, err);
        if (i == 0)
            usual = rate;
        if (i == 0 || e)
            continue;
        struct oct_bench_row *row =
            oct_bench_add(rows, "growth", "the same at 240 lines", "us/line", 1.1);
        row->less_is_better = true;
        row->value = 1e6 / rate;
        row->limit = 1e6 / usual;
        snprintf(row->what, sizeof(row->what), "%u lines a B-scan, %s", lines[i], depth);
    }
    return e;
}

enum oct_err oct_bench_growth(const struct oct_config *config,
                              const struct oct_bench_options *options, struct oct_bench_rows *rows,
                              struct oct_error *err)
{
    enum oct_err e = by_cores(config, options, rows, err);
    return e ? e : by_lines(config, options, rows, err);
}
