/* octbench [PART...] [--seconds S] [--set KEY=VALUE] [--json]: the analyses on this machine. */
#include "config/apply.h"
#include "pipeline/base/stdio.h"
#include "test/bench/bench.h"
#include "tools/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#define DEPTH 1024 /* of B-scans, unless another one is configured */

static const struct oct_bench_entry parts[] = {
    {"correlate", bench_correlate}, {"register", bench_register}, {"average", bench_average},
    {"cells", bench_cells},         {"surfaces", bench_surfaces}, {"layers", bench_layers},
    {"flow", bench_flow},           {"warp", bench_warp},
};
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

struct request {
    double seconds;
    bool json, wanted[N_PARTS];
    const char **sets;
};

static const struct oct_option options[] = {
    {"--seconds", "S", "spend about S seconds on each figure (2)", OCT_OPTION_NUMBER,
     .at = offsetof(struct request, seconds), .least = 0.1, .most = 600},
    {"--set", "S.K=VALUE", "set a key; repeatable", OCT_OPTION_LIST,
     .at = offsetof(struct request, sets)},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct request, json)},
    {NULL},
};

static bool read_request(struct request *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *wrong = NULL;
        struct oct_option_shown shown;
        bool known = oct_option_read(options, r, argc, argv, &i, &shown, &wrong) && !wrong;
        for (unsigned p = 0; p < N_PARTS && argv[i]; p++)
            if (strcmp(argv[i], "all") == 0 || strcmp(argv[i], parts[p].name) == 0)
                known = r->wanted[p] = true;
        if (!known) {
            fprintf(stderr, "octbench: '%s' is not understood\n", wrong ? wrong : argv[i]);
            return false;
        }
    }
    return true;
}

static enum oct_err configure(struct oct_config *config, const struct request *r,
                              struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    oct_config_init(config);
    config->pipeline.crop_last = DEPTH;
    for (const char **set = r->sets; *set && !e; set++)
        e = oct_config_set_assignment(config, *set, err);
    return e ? e : oct_config_check(config, err);
}

int main(int argc, char **argv)
{
    struct request r = {.seconds = 2, .sets = calloc((size_t)argc + 1, sizeof(char *))};
    struct oct_config *config = calloc(1, sizeof(*config));
    struct oct_error err;
    int status = 2;
    oct_stdio_reserve();
    if (r.sets && config && read_request(&r, argc, argv)) {
        if (configure(config, &r, &err)) {
            fprintf(stderr, "octbench: %s\n", err.text);
        } else {
            const struct oct_bench_options how = {.seconds = r.seconds};
            cJSON *report = cJSON_CreateObject();
            const enum oct_err e =
                oct_bench_run("octbench", config, &how, parts, N_PARTS, r.wanted, r.json, report);
            status = e ? 1 : 0;
            oct_bench_print_report(report, r.json);
            cJSON_Delete(report);
        }
    }
    free(r.sets);
    free(config);
    return status;
}
