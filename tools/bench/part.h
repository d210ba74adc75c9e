/* The parts of octd beside the engine, each timed beside a limit taken in the same run. That they
 * are right is what the tests prove; here nothing may be lost on the way. */
#ifndef OCT_TOOLS_BENCH_PART_H
#define OCT_TOOLS_BENCH_PART_H

#include "config/config.h"
#include "pipeline/base/err.h"
#include "tools/bench/scene.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

/* One figure. The goal is compared with value / limit, `ratio`. */
struct oct_bench_row {
    const char *part; /* "ingest" */
    char what[64];    /* what was timed */
    const char *limit_is;
    const char *unit; /* of value and limit: "GB/s", "us", "s", "A-lines/s" */
    double value, limit;
    double goal;         /* 0: none stated */
    bool less_is_better; /* then the ratio must not exceed the goal */
    char note[96];       /* further figures; "" */
};

struct oct_bench_rows {
    struct oct_bench_row row[64];
    unsigned n;
};

struct oct_bench_options {
    double seconds;        /* about, for each figure */
    double recorder_bytes; /* to write */
    const char *directory; /* where */
    const char *beside;    /* latency: "all" analyses, against none; NULL: as it is otherwise */
    bool load; /* latency: beside a program on each core that does nothing but compute */
};

/* Adds a row and fills it with the arguments. */
struct oct_bench_row *oct_bench_add(struct oct_bench_rows *rows, const char *part,
                                    const char *limit_is, const char *unit, double goal);

/* Each adds its rows. */
typedef enum oct_err oct_bench_part(const struct oct_config *config,
                                    const struct oct_bench_options *options,
                                    struct oct_bench_rows *rows, struct oct_error *err);
oct_bench_part oct_bench_ingest, oct_bench_shm, oct_bench_recorder, oct_bench_latency,
    oct_bench_start, oct_bench_growth, oct_bench_whole, oct_bench_nufft, oct_bench_end;

struct oct_bench_entry {
    const char *name;
    oct_bench_part *run;
};

/* Measures the parts that are wanted [n], prints their rows (json: only adds them to the report);
 * where one fails, what it has measured stays, and the parts after it are measured all the same.
 * Returns the last error. */
enum oct_err oct_bench_run(const char *program, const struct oct_config *config,
                           const struct oct_bench_options *options,
                           const struct oct_bench_entry *parts, unsigned n, const bool *wanted,
                           bool json, struct cJSON *report);

/* Adds a part to the report's list of those that failed, and says why; returns e. */
enum oct_err oct_bench_failed(const char *program, struct cJSON *report, const char *part,
                              enum oct_err e, bool json, struct oct_error *err);

/* Prints the report if it is wanted as JSON. */
void oct_bench_print_report(const struct cJSON *report, bool json);

/* The cores that this process may use: as many threads as the engine starts by itself. */
unsigned oct_bench_n_cores(void);

/* Writes "D = 1024", the depth that the configuration leaves, for a row's `what`. */
void oct_bench_depth_text(const struct oct_config *config, char *text, size_t text_bytes);

/* Removes the files in the folder, except those whose names begin with a dot. */
void oct_bench_empty_folder(const char *folder);

/* Lines that come by the endpoint, one B-scan a block, into a ring that is read: A-lines a second
 * (bench/ingest.c). */
enum oct_err oct_bench_ingest_rate(const struct oct_config *config, const char *endpoint,
                                   double seconds, double *hz, struct oct_error *err);

/* Measures each part for some seconds in all, and prints which is the wall and what to change first
 * (json: adds that to the report). */
enum oct_err oct_bench_advise(const struct oct_config *config, bool json, struct cJSON *report,
                              struct oct_error *err);

/* Of the engine of the configuration with `lines` A-lines a B-scan (0: as configured) and n_threads
 * (0: as configured), verified: A-lines a second, and the time of one B-scan alone
 * (bench/engine.c). */
enum oct_err oct_bench_engine(const struct oct_config *config, uint32_t lines, unsigned n_threads,
                              double seconds, double *lines_per_s, double *bscan_us,
                              struct oct_error *err);

#endif
