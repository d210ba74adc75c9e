/* octctl bench: what this machine does. Every figure stands beside a limit taken in the same run;
 * pictures are checked before they are timed. */
#include "tools/bench/engine.h"
#include "tools/bench/part.h"
#include "tools/commands.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#define THESIS_DEPTH 1024

static const struct oct_bench_entry parts[] = {
    {"ingest", oct_bench_ingest},   {"shm", oct_bench_shm},     {"recorder", oct_bench_recorder},
    {"latency", oct_bench_latency}, {"start", oct_bench_start}, {"growth", oct_bench_growth},
    {"nufft", oct_bench_nufft},     {"whole", oct_bench_whole}, {"end", oct_bench_end},
};
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

struct request {
    struct oct_bench_options options;
    double size_gb;
    bool json, engine, advise, any_part, part[N_PARTS];
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
     "growth, nufft, whole, end or all",
     OCT_OPTION_ARGUMENT, .at = 0},
    {"--seconds", "S", "spend about S seconds on each figure", OCT_OPTION_NUMBER,
     .at = offsetof(struct request, options.seconds), .least = 0.1, .most = 600, .standard = "2"},
    {"--size-gb", "G", "what recorder writes into record.directory", OCT_OPTION_NUMBER,
     .at = offsetof(struct request, size_gb), .least = 0.1, .most = 1000, .standard = "2"},
    {"--beside", "all", "latency: with all analyses and without any, in turn", OCT_OPTION_TEXT,
     .at = offsetof(struct request, options.beside), .words = "all"},
    {"--load", NULL, "latency --beside: with a busy program on each core", OCT_OPTION_FLAG,
     .at = offsetof(struct request, options.load)},
    {"--advise", NULL, "what this machine can take, and what to change first (20 s)",
     OCT_OPTION_FLAG, .at = offsetof(struct request, advise)},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct request, json)},
    {NULL},
};

/* Parts of `make bench` alone. */
static const char *const analyses[] = {"correlate", "register", "average",
                                       "cells",     "surfaces", "warp"};
enum { N_ANALYSES = sizeof(analyses) / sizeof(analyses[0]) };

static int read_request(struct request *r, int argc, char **argv)
{
    int status = oct_options_read(&oct_command_bench, r, &argc, argv);
    const char *beside = r->options.beside;
    if (!status && beside && strcmp(beside, "all") != 0)
        status = oct_command_misuse(argv[0], "--beside: '%s' is not 'all'", beside);
    for (int i = 1; i < argc && !status; i++)
        if (!read_part(r, argv[i]))
            status = oct_command_misuse(argv[0],
                                        oct_option_word(argv[i], analyses, N_ANALYSES) >= 0
                                            ? "'%s' is measured by octbench, in octd's sources"
                                            : "'%s' is not understood",
                                        argv[i]);
    if (!status && (beside || r->options.load) && !(beside && read_part(r, "latency")))
        status = oct_command_misuse(argv[0], "--load: it goes with --beside all");
    if (!status && r->advise && (r->engine || r->any_part))
        status = oct_command_misuse(argv[0], "--advise: it measures no PART by name");
    r->engine = r->engine || (!r->any_part && !r->advise);
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
            worst = oct_bench_failed("octctl bench", report, "engine", e, r->json, &err);
    }
    if (r->advise) {
        enum oct_err e = oct_bench_advise(config, r->json, report, &err);
        if (e)
            worst = oct_bench_failed("octctl bench", report, "advise", e, r->json, &err);
    }
    if (r->any_part) {
        struct oct_config c = *config;
        set_depth(&c);
        enum oct_err e = oct_bench_run("octctl bench", &c, &r->options, parts, N_PARTS, r->part,
                                       r->json, report);
        worst = e ? e : worst;
    }
    return worst;
}

static int run_bench(struct oct_config *config, int argc, char **argv)
{
    struct request r = {.options = {.directory = config->record.directory}};
    int status = read_request(&r, argc, argv);
    if (status)
        return status;
    cJSON *report = cJSON_CreateObject();
    cJSON_AddStringToObject(report, "version", OCT_VERSION);
    enum oct_err e = bench(config, &r, report);
    oct_bench_print_report(report, r.json);
    cJSON_Delete(report);
    return oct_exit_status(e);
}

const struct oct_command oct_command_bench = {
    .name = "bench",
    .usage = "[PART...]",
    .help = "measures this machine",
    .options = options,
    .n_most = INT_MAX,
    .words = "engine ingest shm recorder latency start growth nufft whole end all",
    .run = run_bench,
};
