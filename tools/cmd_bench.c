/* octctl bench: what this machine does. Every figure stands beside a limit taken in the same run,
 * and the output is checked before anything is timed. */
#include "tools/bench/engine.h"
#include "tools/bench/part.h"
#include "tools/commands.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#define THESIS_DEPTH 1024

static const struct {
    const char *name;
    oct_bench_part *run;
} parts[] = {
    {"ingest", oct_bench_ingest},       {"shm", oct_bench_shm},
    {"recorder", oct_bench_recorder},   {"latency", oct_bench_latency},
    {"start", oct_bench_start},         {"growth", oct_bench_growth},
    {"nufft", oct_bench_nufft},         {"whole", oct_bench_whole},
    {"correlate", oct_bench_correlate}, {"register", oct_bench_register},
    {"average", oct_bench_average},     {"cells", oct_bench_cells},
    {"surfaces", oct_bench_surfaces},   {"warp", oct_bench_warp},
};
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

static void add_part_row(cJSON *array, const struct oct_bench_row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "part", row->part);
    cJSON_AddStringToObject(object, "what", row->what);
    cJSON_AddStringToObject(object, "unit", row->unit);
    cJSON_AddNumberToObject(object, "value", row->value);
    cJSON_AddStringToObject(object, "limit_is", row->limit_is);
    cJSON_AddNumberToObject(object, "limit", row->limit);
    cJSON_AddNumberToObject(object, "ratio", row->limit > 0 ? row->value / row->limit : 0);
    cJSON_AddNumberToObject(object, "goal", row->goal);
    cJSON_AddBoolToObject(object, "less_is_better", row->less_is_better);
    cJSON_AddStringToObject(object, "note", row->note);
    cJSON_AddItemToArray(array, object);
}

/* Reports the part that failed; the parts after it are measured all the same. */
static enum oct_err note_failure(cJSON *report, const char *name, enum oct_err e, bool json,
                                 struct oct_error *err)
{
    cJSON *failed = cJSON_GetObjectItemCaseSensitive(report, "failed");
    cJSON *object = cJSON_CreateObject();
    if (!failed)
        failed = cJSON_AddArrayToObject(report, "failed");
    cJSON_AddStringToObject(object, "part", name);
    cJSON_AddStringToObject(object, "why", err->text);
    cJSON_AddItemToArray(failed, object);
    fprintf(stderr, "octctl bench: %s: %s\n", name, err->text);
    if (!json)
        printf("%-9s failed\n", name);
    return e;
}

static enum oct_err bench_parts(const struct oct_config *config,
                                const struct oct_bench_options *options, const bool *wanted,
                                bool json, cJSON *report)
{
    static struct oct_bench_rows rows; /* large */
    enum oct_err worst = OCT_OK;
    cJSON *array = cJSON_AddArrayToObject(report, "parts");
    rows.n = 0;
    if (!json)
        oct_bench_print_head();
    for (unsigned p = 0; p < N_PARTS; p++) {
        unsigned before = rows.n;
        struct oct_error why;
        if (!wanted[p])
            continue;
        enum oct_err e = parts[p].run(config, options, &rows, &why);
        if (e) {
            rows.n = before;
            worst = note_failure(report, parts[p].name, e, json, &why);
        }
        for (unsigned i = before; i < rows.n; i++) {
            add_part_row(array, &rows.row[i]);
            if (!json)
                oct_bench_print_row(&rows.row[i]);
        }
    }
    return worst;
}

struct request {
    struct oct_bench_options options;
    double size_gb;
    bool json, engine, any_part, part[N_PARTS];
};

static bool read_part(struct request *r, const char *name)
{
    bool all = strcmp(name, "all") == 0, known = all;
    if (all || strcmp(name, "engine") == 0)
        known = r->engine = true;
    for (unsigned p = 0; p < N_PARTS; p++)
        if (all || strcmp(name, parts[p].name) == 0)
            known = r->part[p] = r->any_part = true;
    return known;
}

static const struct oct_option options[] = {
    {"PART", NULL,
     "engine (if none is named), ingest, shm, recorder, latency, start,\n"
     "growth, nufft, whole, correlate, register, average, cells,\n"
     "surfaces, warp or all",
     OCT_OPTION_ARGUMENT, .at = 0},
    {"--seconds", "S", "spend about S seconds on each figure (2)", OCT_OPTION_NUMBER,
     .at = offsetof(struct request, options.seconds), .least = 0.1, .most = 600,
     .needs = "a number from 0.1 to 600"},
    {"--size-gb", "G", "what recorder writes into record.directory (2)", OCT_OPTION_NUMBER,
     .at = offsetof(struct request, size_gb), .least = 0.1, .most = 1000,
     .needs = "a number from 0.1 to 1000"},
    {"--beside", "all", "latency: with all analyses and without any, in turn", OCT_OPTION_TEXT,
     .at = offsetof(struct request, options.beside), .words = "all"},
    {"--load", NULL, "latency --beside: with a busy program on each core", OCT_OPTION_FLAG,
     .at = offsetof(struct request, options.load)},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct request, json)},
    {NULL},
};

static int read_request(struct request *r, int argc, char **argv)
{
    int status = oct_options_read(&oct_command_bench, r, &argc, argv);
    const char *beside = r->options.beside;
    if (!status && beside && strcmp(beside, "all") != 0)
        status = oct_command_misuse(argv[0], "--beside: '%s' is not 'all'", beside);
    for (int i = 1; i < argc && !status; i++)
        if (!read_part(r, argv[i]))
            status = oct_command_misuse(argv[0], "'%s' is not understood", argv[i]);
    if (!status && (beside || r->options.load) && !(beside && read_part(r, "latency")))
        status = oct_command_misuse(argv[0], "--load: it goes with --beside all");
    r->engine = r->engine || !r->any_part;
    r->options.recorder_bytes = r->size_gb * 1e9;
    return status;
}

/* Unless a depth is configured, the parts run at that of the thesis, as the engine's first row
 * does. */
static void set_depth(struct oct_config *c)
{
    if (!oct_config_is_set(c, "pipeline.crop_last") && c->pipeline.crop_first < THESIS_DEPTH)
        c->pipeline.crop_last = THESIS_DEPTH;
}

static enum oct_err bench(const struct oct_config *config, const struct request *r, cJSON *report)
{
    bool cuda = strcmp(oct_config_backend_names[config->pipeline.backend], "cuda") == 0;
    enum oct_err worst = OCT_OK;
    struct oct_error err;
    if (r->engine) {
        double seconds = r->options.seconds;
        enum oct_err e = cuda ? oct_bench_gpu_table(config, seconds, r->json, report, &err)
                              : oct_bench_engine_table(config, seconds, r->json, report, &err);
        if (e)
            worst = note_failure(report, "engine", e, r->json, &err);
    }
    if (r->any_part) {
        struct oct_config c = *config;
        set_depth(&c);
        enum oct_err e = bench_parts(&c, &r->options, r->part, r->json, report);
        worst = e ? e : worst;
    }
    return worst;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct request r = {.options = {.seconds = 2, .directory = config->record.directory},
                        .size_gb = 2};
    int status = read_request(&r, argc, argv);
    if (status)
        return status;
    cJSON *report = cJSON_CreateObject();
    cJSON_AddStringToObject(report, "version", OCT_VERSION);
    enum oct_err e = bench(config, &r, report);
    char *text = r.json ? cJSON_Print(report) : NULL;
    if (text)
        puts(text);
    cJSON_free(text);
    cJSON_Delete(report);
    return oct_exit_status(e);
}

const struct oct_command oct_command_bench = {
    .name = "bench",
    .usage = "[PART...] [OPTIONS]",
    .help = "measures this machine",
    .options = options,
    .n_most = INT_MAX,
    .words =
        "engine ingest shm recorder latency start growth nufft whole correlate register average "
        "cells surfaces warp all",
    .run = run,
};
