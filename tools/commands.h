/* octctl's commands. octctl.c holds the table and the global options; each command is one file. */
#ifndef OCT_TOOLS_COMMANDS_H
#define OCT_TOOLS_COMMANDS_H

#include "config/config.h"
#include "pipeline/base/err.h"

struct oct_command {
    const char *name;
    const char *usage;   /* what follows "octctl NAME", e.g. "FILE [--json]" */
    const char *help;    /* one line */
    const char *options; /* for `octctl NAME --help`: one line an option, "" for none */

    /* Does it and returns the exit status (contract section 2). config: defaults, --config, --set
     * and --backend applied and checked; the command may change it. argv[0] is the command's name,
     * argv[1] .. argv[argc - 1] what followed it without the global options; argv[argc] is NULL.
     * Errors go to stderr as one line, by oct_command_fail. */
    int (*run)(struct oct_config *config, int argc, char **argv);
};

/* Prints "octctl NAME: text" for err on stderr; returns its exit status. */
int oct_command_fail(const char *name, const struct oct_error *err);

/* The same for a mistake in the command line (status 2), printf-like, with a pointer to --help. */
int oct_command_misuse(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The least that a command needs to read its options. Both "--name VALUE" and "--name=VALUE" are
 * understood, and negative numbers pass as plain arguments, which getopt would take for options
 * (`octctl set pipeline.min_db -10`). Used as
 *
 *     for (int i = 1; i < argc; i++) {
 *         const char *value;
 *         if (oct_option_flag(argv[i], "--json"))
 *             json = true;
 *         else if (oct_option_value(argc, argv, &i, "--rate", &value))
 *             ... value is NULL when it was left out
 *         else if (argv[i][0] == '-' && argv[i][1] == '-')
 *             return oct_command_misuse(argv[0], "unknown option '%s'", argv[i]);
 *         else
 *             ... a plain argument
 *     } */
bool oct_option_flag(const char *argument, const char *name);
bool oct_option_value(int argc, char **argv, int *i, const char *name, const char **value);

/* Reads a whole number or a finite number, nothing before or behind it; false if it is none. */
bool oct_option_u64(const char *text, uint64_t *value);
bool oct_option_double(const char *text, double *value);

/* Prints the tree on stdout as JSON, which is UTF-8 whatever the system calls its files. False: out
 * of memory, nothing is printed. */
struct cJSON;
bool oct_command_print_json(const struct cJSON *tree);

/* Asks the running daemon for its status, which the caller deletes. endpoint: NULL: that of the
 * configuration. */
enum oct_err oct_control_status(const struct oct_config *config, const char *endpoint,
                                double timeout_s, struct cJSON **status, struct oct_error *err);

int oct_cmd_status(struct oct_config *config, int argc, char **argv);
int oct_cmd_start(struct oct_config *config, int argc, char **argv);
int oct_cmd_stop(struct oct_config *config, int argc, char **argv);
int oct_cmd_record(struct oct_config *config, int argc, char **argv);
int oct_cmd_set(struct oct_config *config, int argc, char **argv);
int oct_cmd_get(struct oct_config *config, int argc, char **argv);
int oct_cmd_shutdown(struct oct_config *config, int argc, char **argv);
int oct_cmd_doctor(struct oct_config *config, int argc, char **argv);
int oct_cmd_snapshot(struct oct_config *config, int argc, char **argv);
int oct_cmd_check(struct oct_config *config, int argc, char **argv);
int oct_cmd_keygen(struct oct_config *config, int argc, char **argv);
int oct_cmd_allow(struct oct_config *config, int argc, char **argv);
int oct_cmd_info(struct oct_config *config, int argc, char **argv);
int oct_cmd_replay(struct oct_config *config, int argc, char **argv);
int oct_cmd_synth(struct oct_config *config, int argc, char **argv);
int oct_cmd_recon(struct oct_config *config, int argc, char **argv);
int oct_cmd_bench(struct oct_config *config, int argc, char **argv);

#endif
