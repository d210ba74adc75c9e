#include "daemon/options.h"

#include "config/version.h"
#include "pipeline/base/log.h"

#include <stdio.h>
#include <string.h>

#include <uv.h>

enum option { OPTION_CONFIG, OPTION_SET, OPTION_BACKEND, OPTION_HELP, OPTION_VERSION };

/* Not getopt, which prints its own messages, accepts abbreviations, and would make the options
 * differ from those of octctl. */
static const struct {
    const char *name;
    enum option option;
    bool has_value;
} options[] = {
    {"--config", OPTION_CONFIG, true},    {"-c", OPTION_CONFIG, true},
    {"--set", OPTION_SET, true},          {"--backend", OPTION_BACKEND, true},
    {"--help", OPTION_HELP, false},       {"-h", OPTION_HELP, false},
    {"--version", OPTION_VERSION, false},
};

static void print_help(void)
{
    printf("octd: takes OCT spectra, reconstructs them, publishes B-scans, records volumes\n\n"
           "  octd [--config FILE] [--set SECTION.KEY=VALUE]... [--backend auto|cpu|cuda]\n\n"
           "  -c, --config FILE        read this configuration (INI)\n"
           "  --set SECTION.KEY=VALUE  set one key, over the file; may be repeated\n"
           "  --backend NAME           the same as --set pipeline.backend=NAME\n"
           "  -h, --help               this text\n"
           "  --version                version, and what it was built with\n\n"
           "It runs in the foreground until SIGTERM, SIGINT or `octctl shutdown`, then finishes\n"
           "what is in flight and closes files whole. Keys:\n\n");
    oct_config_write_help(stdout);
}

static void print_version(void)
{
    char libuv[64];
    snprintf(libuv, sizeof(libuv), "libuv %d.%d.%d\n", UV_VERSION_MAJOR, UV_VERSION_MINOR,
             UV_VERSION_PATCH);
    oct_version_write(stdout, "octd", libuv);
}

/* Reads the option at argv[*i] and moves *i behind it and its value. */
static enum oct_err read_option(int argc, char **argv, int *i, enum option *option,
                                const char **value, struct oct_error *err)
{
    const char *argument = argv[(*i)++];
    *value = NULL;
    for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
        size_t n = strlen(options[k].name);
        if (strncmp(argument, options[k].name, n) != 0)
            continue;
        const char *rest = argument + n;
        bool is_short = options[k].name[1] != '-';
        *option = options[k].option;
        if (!*rest && !options[k].has_value)
            return OCT_OK;
        if (!*rest && *i >= argc)
            return oct_fail(err, OCT_E_ARG, "%s needs a value: see octd --help", argument);
        if (!*rest || (options[k].has_value && (is_short || *rest == '='))) {
            *value = *rest ? rest + !is_short : argv[(*i)++];
            return OCT_OK;
        }
        if (*rest == '=')
            return oct_fail(err, OCT_E_ARG, "%s takes no value: see octd --help", options[k].name);
    }
    if (argument[0] == '-' && argument[1])
        return oct_fail(err, OCT_E_ARG, "unknown option '%s': see octd --help", argument);
    return oct_fail(err, OCT_E_ARG, "'%s' is no option: see octd --help", argument);
}

/* Reads --help and --version first, whatever else is given; then files; then the options that
 * override them. */
enum pass { PASS_LOOK, PASS_FILES, PASS_SETS };

static enum oct_err apply(struct oct_config *config, struct oct_file_watch *watch, enum pass pass,
                          enum option option, const char *value, struct oct_error *err)
{
    if (pass == PASS_FILES && option == OPTION_CONFIG)
        oct_file_watch_add(watch, value);
    if (pass == PASS_FILES && option == OPTION_CONFIG)
        return oct_config_load(config, value, err);
    if (pass == PASS_SETS && option == OPTION_SET)
        return oct_config_set_assignment(config, value, err);
    if (pass == PASS_SETS && option == OPTION_BACKEND)
        return oct_config_set(config, "pipeline.backend", value, "--backend", err);
    return OCT_OK;
}

/* *last: set to --help or --version if one is given, else unchanged. */
static enum oct_err go_over(struct oct_config *config, struct oct_file_watch *watch, enum pass pass,
                            int argc, char **argv, enum option *last, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    bool ended = false; /* by "--" */
    for (int i = 1; i < argc && !e;) {
        enum option option = OPTION_CONFIG;
        const char *value = NULL;
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
            i++;
            continue;
        }
        if (ended)
            return oct_fail(err, OCT_E_ARG, "'%s' is no option: see octd --help", argv[i]);
        e = read_option(argc, argv, &i, &option, &value, err);
        if (!e && (option == OPTION_HELP || option == OPTION_VERSION) && *last != OPTION_VERSION)
            *last = option;
        if (!e)
            e = apply(config, watch, pass, option, value, err);
    }
    return e;
}

bool oct_daemon_options(struct oct_config *config, struct oct_file_watch *watch, int argc,
                        char **argv, int *status)
{
    struct oct_error err = {0};
    enum option last = OPTION_CONFIG;
    oct_config_init(config);
    *watch = (struct oct_file_watch){.n_files = 0};
    enum oct_err e = go_over(config, watch, PASS_LOOK, argc, argv, &last, &err);
    bool ends = !e && last != OPTION_CONFIG;
    if (ends && last == OPTION_VERSION)
        print_version();
    else if (ends)
        print_help();
    if (!e && !ends)
        e = go_over(config, watch, PASS_FILES, argc, argv, &last, &err);
    if (!e && !ends)
        e = go_over(config, watch, PASS_SETS, argc, argv, &last, &err);
    if (!e && !ends)
        e = oct_config_check(config, &err);
    if (e)
        oct_log(OCT_LOG_ERROR, "%s", err.text);
    *status = oct_exit_status(e);
    return e || ends;
}
