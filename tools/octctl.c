/* octctl: everything that is neither daemon nor viewer. Global options, then one command. */
#include "tools/commands.h"

#include "config/version.h"
#include "kernels/engines.h"
#include "pipeline/base/stdio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL_OPTIONS                                                                            \
    "  --json           print the daemon's answer as it came\n"                                    \
    "  --timeout S      wait at most S seconds for the answer (5)\n"                               \
    "  --wait S         and for what it grants while nothing gets on (daemon.drain_s + 5)\n"       \
    "  --endpoint E     the daemon's control.endpoint\n"                                           \
    "  --no-wait        return when the daemon has granted it, not when it is done\n"

static int cmd_reference(struct oct_config *config, int argc, char **argv)
{
    (void)config;
    if (argc > 1)
        return oct_command_misuse(argv[0], "unexpected argument '%s'", argv[1]);
    oct_config_write_reference(stdout);
    return 0;
}

static const struct oct_command commands[] = {
    {"recon", "IN OUT.h5 [--force]", "reconstructs a recording offline",
     "  --force          replace OUT.h5 if it exists, once the new one is whole\n", oct_cmd_recon},
    {"synth", "OUT [OPTIONS]", "makes a recording of a synthetic retina",
     "  --seed N         same seed, same bytes (1)\n"
     "  --volumes N      how many volumes (1); an .h5 holds one each, a .raw all\n"
     "  --calibration D  write the calibration files into the folder D\n",
     oct_cmd_synth},
    {"replay", "IN [OPTIONS]", "plays a recording into a daemon as a camera would",
     "  --rate R         A-lines a second (scan.line_rate_hz); 0: as fast as it goes\n"
     "  --loop           start again at the end, until interrupted\n"
     "  --block LINES    A-lines a message (one B-scan)\n"
     "  --to ENDPOINT    where the daemon takes lines (ingest.endpoint)\n"
     "  --wait S         wait at most S seconds for the daemon (10)\n"
     "  --strict         exit status 1 if the rate could not be kept\n"
     "  --json           print the summary as JSON\n",
     oct_cmd_replay},
    {"info", "FILE [--json]", "what a recording or volume holds",
     "  --json           print it as JSON\n", oct_cmd_info},
    {"check", "FILE... [--json]", "whether recordings hold what was written into them",
     "  --json           print it as JSON\n", oct_cmd_check},
    {"status", "[OPTIONS]", "state and counters of the running daemon", CONTROL_OPTIONS,
     oct_cmd_status},
    {"doctor", "[OPTIONS]", "what the camera driver does right and wrong",
     "  --seconds N      watch for N seconds (5)\n"
     "  --json           as JSON\n"
     "  --timeout S      wait at most S seconds for an answer (5)\n"
     "  --endpoint E     the daemon's control.endpoint\n",
     oct_cmd_doctor},
    {"start", "[OPTIONS]", "accept lines", CONTROL_OPTIONS, oct_cmd_start},
    {"stop", "[OPTIONS]", "accept no more lines", CONTROL_OPTIONS, oct_cmd_stop},
    {"record", "start|stop|last [NAME]", "record volumes, stop, or save the last seconds",
     CONTROL_OPTIONS, oct_cmd_record},
    {"set", "KEY VALUE [OPTIONS]", "change a key of the running daemon", CONTROL_OPTIONS,
     oct_cmd_set},
    {"get", "KEY [OPTIONS]", "show a key of the running daemon", CONTROL_OPTIONS, oct_cmd_get},
    {"shutdown", "[OPTIONS]", "end the daemon", CONTROL_OPTIONS, oct_cmd_shutdown},
    {"snapshot", "OUT.png [OPTIONS]", "a picture of the viewer's window",
     "  --size WxH       of the window in pixels (1280x720)\n"
     "  --frames N       pictures to receive first (1)\n"
     "  --timeout S      wait at most S seconds for them (30)\n"
     "  --font FILE      a fixed-width font\n"
     "  --settings FILE  the viewer's settings, instead of the user's\n",
     oct_cmd_snapshot},
    {"keygen", "[NAME]", "makes a pair of keys: NAME.key and NAME.key_secret", "", oct_cmd_keygen},
    {"allow", "KEYFILE|KEY [OPTIONS]", "lets a key into the daemon (security.allowed)",
     "  --name NAME      its name in the folder (that of the file)\n"
     "  --list           the keys that are allowed in\n"
     "  --remove NAME    takes one out: its connections are cut within a second\n",
     oct_cmd_allow},
    {"bench", "[PART...] [OPTIONS]", "measures this machine",
     "  PART             engine (if none is named), ingest, shm, recorder, latency, start,\n"
     "                   growth, whole or all\n"
     "  --seconds S      spend about S seconds on each figure (2)\n"
     "  --size-gb G      what recorder writes into record.directory (2)\n"
     "  --json           as JSON\n",
     oct_cmd_bench},
    {"reference", "", "prints the commented configuration with all defaults", "", cmd_reference},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char global_options[] =
    "  -c, --config FILE  read the configuration FILE\n"
    "  --set S.K=VALUE    set a key, wins over the file; repeatable\n"
    "  --backend NAME     auto, cpu or cuda: short for --set pipeline.backend=NAME\n"
    "  -h, --help         this text, or that of the command named with it\n"
    "  --version          version, and what it was built with\n"
    "  --                 the end of these options\n";

static void print_help(void)
{
    printf("usage: octctl [OPTIONS] COMMAND [ARGUMENTS]\n\ncommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-9s %-22s %s\n", commands[i].name, commands[i].usage, commands[i].help);
    printf("\noptions, before or after the command:\n%s\nkeys of the configuration:\n",
           global_options);
    oct_config_write_help(stdout);
}

static void print_command_help(const struct oct_command *command)
{
    printf("usage: octctl %s%s%s\n\n%s\n", command->name, command->usage[0] ? " " : "",
           command->usage, command->help);
    printf("\noptions:\n%s%s", command->options, global_options);
}

/* The command line, sorted. The arrays hold argc + 1 pointers each. */
struct call {
    bool help, version;
    const char **configs, **sets, **backends; /* NULL-terminated */
    char **rest;                              /* the command and its own arguments */
    int n_rest;
};

static void append(const char **list, const char *value)
{
    while (*list)
        list++;
    *list = value;
}

static bool is_global(struct call *call, int argc, char **argv, int *i, const char **missing)
{
    const struct {
        const char *name;
        const char **list;
    } with_value[] = {
        {"--config", call->configs}, {"--set", call->sets}, {"--backend", call->backends}};
    if (strncmp(argv[*i], "-c", 2) == 0) { /* "-c FILE" and "-cFILE" */
        const char *value = argv[*i][2] ? argv[*i] + 2 : *i + 1 < argc ? argv[++*i] : NULL;
        if (!value)
            *missing = "-c";
        append(call->configs, value);
        return true;
    }
    for (size_t k = 0; k < sizeof(with_value) / sizeof(with_value[0]); k++) {
        const char *value;
        if (!oct_option_value(argc, argv, i, with_value[k].name, &value))
            continue;
        if (!value)
            *missing = with_value[k].name;
        append(with_value[k].list, value);
        return true;
    }
    call->help |= oct_option_flag(argv[*i], "--help") || oct_option_flag(argv[*i], "-h");
    call->version |= oct_option_flag(argv[*i], "--version");
    return oct_option_flag(argv[*i], "--help") || oct_option_flag(argv[*i], "-h") ||
           oct_option_flag(argv[*i], "--version");
}

static enum oct_err sort_arguments(struct call *call, int argc, char **argv, struct oct_error *err)
{
    bool ended = false; /* by "--" */
    for (int i = 1; i < argc; i++) {
        const char *missing = NULL;
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && is_global(call, argc, argv, &i, &missing)) {
            if (missing)
                return oct_fail(err, OCT_E_ARG, "%s needs a value; see octctl --help", missing);
        } else if (!ended && call->n_rest == 0 && argv[i][0] == '-') {
            return oct_fail(err, OCT_E_ARG, "unknown option '%s'; see octctl --help", argv[i]);
        } else {
            call->rest[call->n_rest++] = argv[i];
        }
    }
    return OCT_OK;
}

/* Defaults, then files, then --set and --backend. */
static enum oct_err configure(struct oct_config *config, const struct call *call,
                              struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    oct_config_init(config);
    for (const char **file = call->configs; *file && !code; file++)
        code = oct_config_load(config, *file, err);
    for (const char **set = call->sets; *set && !code; set++)
        code = oct_config_set_assignment(config, *set, err);
    for (const char **name = call->backends; *name && !code; name++)
        code = oct_config_set(config, "pipeline.backend", *name, "--backend", err);
    return code ? code : oct_config_check(config, err);
}

static const struct oct_command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int complain(const struct oct_error *err)
{
    fprintf(stderr, "octctl: %s\n", err->text);
    return oct_exit_status(err->code);
}

static int run(struct oct_config *config, struct call *call, int argc, char **argv)
{
    struct oct_error err = {0};
    if (sort_arguments(call, argc, argv, &err))
        return complain(&err);
    if (call->version) {
        oct_version_write(stdout, "octctl", "");
        return 0;
    }
    if (call->n_rest == 0 && call->help) {
        print_help();
        return 0;
    }
    if (call->n_rest == 0) {
        oct_fail(&err, OCT_E_ARG, "no command given; see octctl --help");
        return complain(&err);
    }
    const struct oct_command *command = find_command(call->rest[0]);
    if (!command) {
        oct_fail(&err, OCT_E_ARG, "unknown command '%s'; see octctl --help", call->rest[0]);
        return complain(&err);
    }
    if (call->help) {
        print_command_help(command);
        return 0;
    }
    if (configure(config, call, &err))
        return complain(&err);
    return command->run(config, call->n_rest, call->rest);
}

int main(int argc, char **argv)
{
    oct_stdio_reserve();
    size_t n = (size_t)(argc > 0 ? argc : 0) + 1;
    struct oct_config *config = calloc(1, sizeof(*config));
    struct call call = {.configs = calloc(n, sizeof(char *)),
                        .sets = calloc(n, sizeof(char *)),
                        .backends = calloc(n, sizeof(char *)),
                        .rest = calloc(n, sizeof(char *))};
    int status = 1;
    if (config && call.configs && call.sets && call.backends && call.rest)
        status = run(config, &call, argc, argv);
    else
        fprintf(stderr, "octctl: out of memory\n");
    /* A full disk behind a redirected stdout must not look like success. */
    if (fflush(stdout) && status == 0) {
        fprintf(stderr, "octctl: cannot write to standard output\n");
        status = 1;
    }
    if (oct_engine_left_hanging()) /* exit would wait for the driver of a GPU that hangs */
        _Exit(status);
    free(call.rest);
    free(call.backends);
    free(call.sets);
    free(call.configs);
    free(config);
    return status;
}
