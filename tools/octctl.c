/* octctl: reads the global options and runs one command. */
#include "tools/commands.h"

#include "config/version.h"
#include "pipeline/base/stdio.h"
#include "tools/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct oct_command command_reference;

static int write_reference(struct oct_config *config, int argc, char **argv)
{
    (void)config;
    int status = oct_options_read(&command_reference, NULL, &argc, argv);
    if (!status)
        oct_config_write_reference(stdout);
    return status;
}

static const struct oct_command command_reference = {
    .name = "reference",
    .usage = "",
    .help = "prints the commented configuration with all defaults",
    .run = write_reference,
};

/* In the order of --help. */
static const struct oct_command *const commands[] = {
    &oct_command_recon,
    &oct_command_analyse,
    &oct_command_batch,
    &oct_command_synth,
    &oct_command_replay,
    &oct_command_info,
    &oct_command_export,
    &oct_command_label,
    &oct_command_pack,
    &oct_command_check,
    &oct_command_correlate,
    &oct_command_cones,
    &oct_command_cells,
    &oct_command_cells_score,
    &oct_command_register,
    &oct_command_register_volumes,
    &oct_command_surfaces,
    &oct_command_flow,
    &oct_command_trace,
    &oct_command_report,
    &oct_command_calibrate,
    &oct_command_scan,
    &oct_command_background,
    &oct_command_status,
    &oct_command_doctor,
    &oct_command_start,
    &oct_command_stop,
    &oct_command_record,
    &oct_command_rescan,
    &oct_command_set,
    &oct_command_get,
    &oct_command_shutdown,
    &oct_command_snapshot,
    &oct_command_worklist,
    &oct_command_identify,
    &oct_command_archive,
    &oct_command_keygen,
    &oct_command_allow,
    &oct_command_web,
    &oct_command_bench,
    &oct_command_completion,
    &command_reference,
    NULL,
};
#define HELP_COLUMN 21
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]) - 1)

/* The command line, sorted. The arrays hold argc + 1 pointers each. */
struct call {
    bool help, version, quiet, transpose;
    const char **configs, **sets, **backends, **datasets; /* NULL-terminated */
    char **rest;                                          /* the command and its own arguments */
    int n_rest;
};

static const struct oct_option global_options[] = {
    {"--config", "FILE", "read the configuration FILE", OCT_OPTION_LIST,
     .at = offsetof(struct call, configs), .brief = "-c"},
    {"--set", "S.K=VALUE", "set a key, wins over the file; repeatable", OCT_OPTION_LIST,
     .at = offsetof(struct call, sets), .words = OCT_WORDS_SETTINGS},
    {"--backend", "NAME", "auto, cpu or cuda: short for --set pipeline.backend=NAME",
     OCT_OPTION_LIST, .at = offsetof(struct call, backends), .words = "auto cpu cuda"},
    {"--dataset", "NAME", "spectra of an HDF5 file: short for --set file.dataset=NAME",
     OCT_OPTION_LIST, .at = offsetof(struct call, datasets)},
    {"--transpose", NULL, "their axes: short for --set file.transpose=yes", OCT_OPTION_FLAG,
     .at = offsetof(struct call, transpose)},
    {"--quiet", NULL, "print errors and warnings alone: no progress, no report", OCT_OPTION_FLAG,
     .at = offsetof(struct call, quiet)},
    {"--help", NULL, "this text, or that of the command named with it", OCT_OPTION_FLAG,
     .at = offsetof(struct call, help), .brief = "-h"},
    {"--version", NULL, "version, and what it was built with", OCT_OPTION_FLAG,
     .at = offsetof(struct call, version)},
    {"--", NULL, "the end of these options", OCT_OPTION_ARGUMENT, .at = 0},
    {NULL},
};

const struct oct_command_table oct_command_table = {commands, global_options};

const struct oct_command *oct_command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* What octctl prints by itself: every command once, by what it is for. */
static const char *const overview[][3] = {
    {"run", "status, doctor", "how octd is; what the camera driver does wrong"},
    {"", "start, stop, shutdown", "accept lines, accept no more, end octd"},
    {"", "set, get", "a key of the running octd"},
    {"", "rescan", "another scan, while octd runs"},
    {"", "web", "octd's picture in a browser"},
    {"", "bench", "measure this machine"},
    {"record", "record", "record volumes, or save the last seconds"},
    {"", "background", "the spectrum without a sample, from the stream"},
    {"", "snapshot", "a picture of the viewer's window"},
    {"", "label", "eye, pseudonym and mark of recordings"},
    {"files", "synth, replay", "a synthetic retina; a recording played as a camera would"},
    {"", "recon, batch", "spectra to B-scans, here or on a Slurm cluster"},
    {"", "info, check, pack", "what a file holds, whether it is whole; make it smaller"},
    {"analyse", "surfaces", "layers of the retina, their thickness, slabs"},
    {"", "flow, trace", "blood that moves; one layer against another, in nm"},
    {"", "cells, cells-score", "cells found and followed; tracks judged by the truth"},
    {"", "cones", "photoreceptors counted, their spacing"},
    {"", "register", "frames put onto one another and averaged"},
    {"", "register-volumes", "volumes of one eye put onto one another, in 3D"},
    {"", "correlate", "pictures with themselves or others"},
    {"", "analyse", "what octd's live analyses find, offline"},
    {"calibrate", "calibrate", "k map, dispersion, lag of the mirrors, from own measurements"},
    {"", "scan", "what two mirrors are driven by, for any pattern"},
    {"share", "export", "to Fiji, napari, MATLAB, Python, 3D Slicer, a PACS"},
    {"", "report", "a recording on one page, PDF or DICOM"},
    {"", "worklist, archive", "the hospital's patients of the day; its archive"},
    {"", "identify", "who is behind a pseudonym"},
    {"", "keygen, allow", "keys, for programs on other machines"},
    {"help", "help, completion", "what a command takes; the same for bash and zsh"},
    {"", "reference", "the configuration with all keys and defaults"},
};

static void print_overview(void)
{
    printf("usage: octctl [OPTIONS] COMMAND [ARGUMENTS]\n\n");
    for (size_t i = 0; i < sizeof(overview) / sizeof(overview[0]); i++)
        printf("%-11s%-24s%s\n", overview[i][0], overview[i][1], overview[i][2]);
    printf("\noctctl help COMMAND: its options. octctl --help: those of all.\n"
           "octctl help keys [SECTION]: the configuration. octctl help conventions: numbers, "
           "depths.\n");
}

#define COMMAND_COLUMN 42
static void print_command(const char *name, const char *usage, const char *help)
{
    char head[COMMAND_COLUMN];
    snprintf(head, sizeof(head), "%*s", COMMAND_COLUMN - 1, "");
    int width = printf("  %-16s %-22s", name, usage);
    if (width > COMMAND_COLUMN - 1)
        width = printf("\n%s", head) - 1;
    oct_write_wrapped(stdout, (size_t)width, head, help);
}

static void print_help(void)
{
    printf("usage: octctl [OPTIONS] COMMAND [ARGUMENTS]\n\ncommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        print_command(commands[i]->name, commands[i]->usage, commands[i]->help);
    print_command(
        "help", "[COMMAND|conventions|keys [SECTION]]",
        "this text, that of a command, what options mean in all, or the configuration's keys");
    printf("\noptions, before or after the command:\n");
    oct_options_print(global_options, HELP_COLUMN);
}

static const char conventions[] =
    "What options mean, in all commands. Numbers count from 0.\n"
    "\n"
    "size    --pixel-um X[,Y]       of pictures, micrometres from one sample to the next\n"
    "        --pixel-um D[,L[,B]]   of volumes: depth pixel, A-line, B-scan; -: as the file says\n"
    "part    --roi X,Y,W,H          of a picture, in pixels from the upper left one, 0,0\n"
    "        --slab A:B             of the depth, from A to just before B, each a depth pixel "
    "(120),\n"
    "                               micrometres (40um), a share (30%), or, of surfaces, a border\n"
    "                               and micrometres (ilm+10)\n"
    "choice  --frames A:B[:STEP]    pictures or B-scans of each file, from A to just before B, "
    "every\n"
    "                               STEP-th; so are --lines A:B[:STEP]\n"
    "        --skip N,N-M           frames that are left out, M too\n"
    "        --mask FILE            a picture of which 0 is left out\n"
    "        --invalid VALUE        pixels of this value are left out\n"
    "count   --n-frames N           pictures; so are --bscans N, --lines N, --volumes N\n"
    "eye     --eye OD|OS            right or left, in any case\n"
    "input   IN...                  files, folders and patterns in quotes, or FILE.h5:/DATASET\n"
    "output  OUT                    the last argument; --out-dir D for those of many inputs\n"
    "        --csv, --png, ...      files beside it; all are made or none\n"
    "        --force                replace those that exist, once the new ones are whole\n"
    "        --json, --quiet        the result as JSON; no progress and no report\n"
    "\n"
    "Read for a release, with a line that says what is written now:\n"
    "        --um, --axial-um, --spacing B,L,D                --pixel-um, the fastest axis first\n"
    "        --en-face A:B, cells --slab 0.3:0.5              --slab A:B, --slab 30%:50%\n"
    "        --roi X:Y:W:H                                    --roi X,Y,W,H\n"
    "        export --bscans A:B, correlate --bscan N         --frames A:B, --frames N:N+1\n"
    "        synth, snapshot --frames N                       --n-frames N\n"
    "        calibrate dispersion --out FILE.ini              the last argument, OUT.ini\n";

/* Whether the command that is named already has this option, or a part of it: then it is no global
 * one. */
static bool is_own(const struct oct_command *command, const char *word)
{
    struct oct_option_shown shown;
    for (unsigned i = 0; command && oct_option_at(command->options, i, &shown); i++) {
        const char *const names[] = {shown.option.name, shown.option.was};
        for (unsigned k = 0; k < 2; k++) {
            const size_t n = names[k] ? strlen(names[k]) : 0;
            if (n > 2 && strncmp(names[k], "--", 2) == 0 && strncmp(word, names[k], n) == 0 &&
                (word[n] == '\0' || word[n] == '='))
                return true;
        }
    }
    for (const struct oct_command *const *part = command ? command->parts : NULL; part && *part;
         part++)
        if (is_own(*part, word))
            return true;
    return false;
}

/* Whether `word` stands among the words. */
static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

bool oct_command_reads(const struct oct_command *command, const char *option)
{
    static const char spectra[] =
        "recon analyse flow trace batch replay info export background calibrate";
    static const char engines[] =
        "recon analyse flow trace batch correlate cells register register-volumes surfaces bench";
    const char *words = strcmp(option, "--backend") == 0 ? engines
                        : strcmp(option, "--dataset") == 0 || strcmp(option, "--transpose") == 0
                            ? spectra
                            : NULL;
    char name[40];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(command->name, " "), command->name);
    return !words || name[0] == '\0' ||
           has_word(words, name); /* a command that is not known: any */
}

static void print_command_help(const struct oct_command *command)
{
    printf("usage: octctl %s%s%s [OPTIONS]\n\n%s\n", command->name, command->usage[0] ? " " : "",
           command->usage, command->help);
    for (const struct oct_command *const *part = command->parts; part && *part; part++) {
        printf("\noctctl %s %s\n  %s\n", (*part)->name, (*part)->usage, (*part)->help);
        oct_options_print((*part)->options, HELP_COLUMN);
    }
    printf("\noptions:\n");
    oct_options_print(command->options, HELP_COLUMN);
    for (const struct oct_option *o = global_options; o->name; o++)
        if (!is_own(command, o->name) && oct_command_reads(command, o->name))
            oct_options_print((const struct oct_option[]){*o, {NULL}}, HELP_COLUMN);
    if (command->help_more)
        command->help_more();
}

static enum oct_err sort_arguments(struct call *call, int argc, char **argv, struct oct_error *err)
{
    struct oct_option_shown shown;
    bool ended = false; /* by "--" */
    for (int i = 1; i < argc; i++) {
        const char *wrong = NULL;
        const bool own = call->n_rest > 0 && is_own(oct_command_find(call->rest[0]), argv[i]);
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && !own &&
                   oct_option_read(global_options, call, argc, argv, &i, &shown, &wrong)) {
            if (wrong)
                return oct_fail(err, OCT_E_ARG, "%s needs a value; see octctl --help", wrong);
        } else if (!ended && call->n_rest == 0 && argv[i][0] == '-') {
            return oct_fail(err, OCT_E_ARG, "unknown option '%s'; see octctl --help", argv[i]);
        } else {
            call->rest[call->n_rest++] = argv[i];
        }
    }
    return OCT_OK;
}

/* --set of a key of an analysis that the command does not read: it would change nothing. Files may
 * have such keys, which are octd's. */
static enum oct_err check_keys(const struct oct_config *config, const struct oct_command *command,
                               struct oct_error *err)
{
    struct oct_config_key key;
    for (size_t i = 0; command->keys && oct_config_key_at(i, &key); i++) {
        const struct oct_config_origin *origin = &config->origins[key.row];
        char name[128];
        snprintf(name, sizeof(name), "%s.%s", key.section, key.name);
        if (origin->order > 0 && origin->line == 0 && key.is_of_analyses &&
            !has_word(command->keys, name))
            return oct_fail(err, OCT_E_CONFIG,
                            "--set %s: octctl %s does not read this key, octd alone does; see "
                            "octctl %s --help",
                            name, command->name, command->name);
    }
    return OCT_OK;
}

/* Defaults, then files, then --set and its short forms. */
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
    for (const char **name = call->datasets; *name && !code; name++)
        code = oct_config_set(config, "file.dataset", *name, "--dataset", err);
    if (call->transpose && !code)
        code = oct_config_set(config, "file.transpose", "yes", "--transpose", err);
    return code ? code : oct_config_check(config, err);
}

/* Reports go to standard output; the exit status and stderr stay. */
static bool silence(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool is_silent = nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0;
    if (nowhere >= 0)
        close(nowhere);
    return is_silent;
}

static int complain(const struct oct_error *err)
{
    fprintf(stderr, "octctl: %s\n", err->text);
    return oct_exit_status(err->code);
}

/* The command that was meant, if one is spelled nearly so, or NULL. */
static const char *find_near(const char *word)
{
    const char *near = NULL;
    size_t least = SIZE_MAX, n;
    for (size_t i = 0; i < N_COMMANDS; i++)
        if ((n = oct_word_edits(word, commands[i]->name)) < least) {
            least = n;
            near = commands[i]->name;
        }
    return near;
}

static int complain_unknown(const char *word)
{
    struct oct_error err = {0};
    const char *near = find_near(word);
    oct_fail(&err, OCT_E_ARG, "unknown command '%s'; %s%s%ssee octctl --help", word,
             near ? "did you mean " : "", near ? near : "", near ? "? " : "");
    return complain(&err);
}

/* words: what help is asked of, up to NULL. */
static int run_help(char **words)
{
    struct oct_error err = {0};
    if (!words[0]) {
        print_help();
        return 0;
    }
    if (strcmp(words[0], "conventions") == 0) {
        fputs(conventions, stdout);
        return 0;
    }
    if (strcmp(words[0], "keys") == 0) {
        if (oct_config_write_help(stdout, words[1]))
            return 0;
        oct_fail(&err, OCT_E_ARG, "there is no section '%s'; see octctl help keys", words[1]);
        return complain(&err);
    }
    const struct oct_command *command = oct_command_find(words[0]);
    if (!command)
        return complain_unknown(words[0]);
    const struct oct_command *part = oct_command_part(command, words[1]);
    print_command_help(part ? part : command);
    return 0;
}

static int run_octctl(struct oct_config *config, struct call *call, int argc, char **argv)
{
    struct oct_error err = {0};
    if (sort_arguments(call, argc, argv, &err))
        return complain(&err);
    if (call->version) {
        oct_version_write(stdout, "octctl", "");
        return 0;
    }
    if (call->n_rest == 0 && call->help)
        return run_help(call->rest);
    if (argc < 2) { /* called wrongly all the same: a script's command may be empty */
        print_overview();
        return 2;
    }
    if (call->n_rest == 0) {
        oct_fail(&err, OCT_E_ARG, "no command given; see octctl --help");
        return complain(&err);
    }
    char **words = call->rest; /* `octctl help NAME` is `octctl NAME --help` */
    const bool is_help = strcmp(words[0], "help") == 0;
    if (is_help || call->help)
        return run_help(words + is_help);
    const struct oct_command *command = oct_command_find(words[0]);
    if (!command)
        return complain_unknown(words[0]);
    if (configure(config, call, &err) || check_keys(config, command, &err))
        return complain(&err);
    config->quiet = call->quiet;
    if (call->quiet && !silence()) {
        oct_fail_errno(&err, OCT_E_IO, errno, "/dev/null: --quiet cannot open it");
        return complain(&err);
    }
    return command->run(config, call->n_rest, call->rest);
}

int main(int argc, char **argv)
{
    oct_stdio_reserve();
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of the file that is written */
    size_t n = (size_t)(argc > 0 ? argc : 0) + 1;
    oct_alloc_for_json();
    struct oct_config *config = oct_alloc(1, sizeof(*config));
    struct call call = {.configs = oct_alloc(n, sizeof(char *)),
                        .sets = oct_alloc(n, sizeof(char *)),
                        .backends = oct_alloc(n, sizeof(char *)),
                        .datasets = oct_alloc(n, sizeof(char *)),
                        .rest = oct_alloc(n, sizeof(char *))};
    int status = run_octctl(config, &call, argc, argv);
    /* Writing stdout to a full disk is a failure. */
    if (fflush(stdout) && status == 0) {
        fprintf(stderr, "octctl: cannot write to standard output\n");
        status = 1;
    }
    free(call.rest);
    free(call.datasets);
    free(call.backends);
    free(call.sets);
    free(call.configs);
    free(config);
    return status;
}
