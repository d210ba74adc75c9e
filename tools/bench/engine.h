/* The engine's table: rows by geometry, threads and display range (bench/engine.c), or of a GPU
 * beside its bus (bench/gpu.c). */
#ifndef OCT_TOOLS_BENCH_ENGINE_H
#define OCT_TOOLS_BENCH_ENGINE_H

#include "config/config.h"
#include "pipeline/base/err.h"

#include <stdbool.h>

struct cJSON;

/* Prints the table unless json; adds "engine" and "engine_is" (or "cuda") to the report. The rows
 * that came before a failure stay. */
enum oct_err oct_bench_engine_table(const struct oct_config *config, double seconds, bool json,
                                    struct cJSON *report, struct oct_error *err);
enum oct_err oct_bench_gpu_table(const struct oct_config *config, double seconds, bool json,
                                 struct cJSON *report, struct oct_error *err);

#endif
