/* octctl's commands. Each stands in a file of its own with the table of its options; octctl.c lists
 * them and reads the global options. */
#ifndef OCT_TOOLS_COMMANDS_H
#define OCT_TOOLS_COMMANDS_H

#include "config/config.h"
#include "pipeline/base/err.h"
#include "tools/options.h"

#include <stdio.h>

struct oct_command {
    const char *name;
    const char *usage;       /* what follows "octctl NAME", e.g. "FILE [--json]" */
    const char *help;        /* one line */
    void (*help_more)(void); /* what more its --help prints, on stdout; NULL: nothing */

    /* For oct_options_read, by which `run` begins. */
    const struct oct_option *options; /* NULL: none */
    const char *keys; /* "section.key ..." of analyses' keys that it reads; --set of another one is
                         refused. NULL: of any, as where the whole configuration is recorded */
    int n_least, n_most;            /* plain arguments */
    const char *too_few, *too_many; /* said then; the second stands before the first too many.
                                         NULL: "unexpected argument" */
    const char *words; /* for completion: of the first plain argument, as those of an option; NULL:
                          files */
    bool (*is_plain)(const char *argument); /* of what begins with "--"; NULL: nothing is */

    /* Commands that the first argument chooses from, up to NULL; NULL: none. A part is a command of
     * its own, in a file of its own; its name is two words ("calibrate kmap"), which messages and
     * the help show, and its `run` gets them as argv[0]. "octctl calibrate --kmap" is the same as
     * "octctl calibrate kmap". */
    const struct oct_command *const *parts;

    /* Does it and returns the exit status (contract section 2). config: defaults, --config, --set
     * and --backend applied and checked; the command may change it. argv[0] is the command's name,
     * argv[1] .. argv[argc - 1] what followed it without the global options; argv[argc] is NULL.
     * Errors go to stderr as one line, by oct_command_fail. */
    int (*run)(struct oct_config *config, int argc, char **argv);
};

/* All commands in the order of --help, and the options that may stand with each. */
struct oct_command_table {
    const struct oct_command *const *commands; /* up to NULL */
    const struct oct_option *options;
};
extern const struct oct_command_table oct_command_table; /* octctl.c */

/* NULL: there is none of this name. */
const struct oct_command *oct_command_find(const char *name);

/* The part of the command that is named by `word` ("kmap", "--kmap"), NULL: none. */
const struct oct_command *oct_command_part(const struct oct_command *command, const char *word);

/* Whether the command, or a part, reads this option of oct_command_table: one that does nothing for
 * it is in no help. */
bool oct_command_reads(const struct oct_command *command, const char *option);

/* Prints "octctl NAME: text" for err on stderr; returns its exit status. */
int oct_command_fail(const char *name, const struct oct_error *err);

/* The same while working, the command line being understood: a file that does not do (OCT_E_ARG) is
 * no mistake of the command line, status 1. */
int oct_command_fail_at_work(const char *name, const struct oct_error *err);

/* The same for a mistake in the command line (status 2), printf-like, with a pointer to --help. */
int oct_command_misuse(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a file's name into a comment of a file of lines: a name may hold line ends, which would
 * end the comment. */
void oct_command_put_name(FILE *file, const char *name);

/* Prints the tree on stdout as JSON, which is UTF-8 whatever the system calls its files. False: out
 * of memory, nothing is printed; not in octctl, which ends then (oct_alloc_for_json). */
struct cJSON;
bool oct_command_print_json(const struct cJSON *tree);

/* value as printf's "%.DECIMALSf" shows it, but 0 where that would be "-0.00". */
double oct_command_shown(double value, unsigned decimals);

/* Prints "; left out: 3 (no contrast), 7-9 (low score)", of inputs from 0 that `why` gives a reason
 * for; NULL: none. Prints nothing where there is none. */
void oct_command_print_left_out(uint64_t n, const char *(*why)(const void *context, uint64_t i),
                                const void *context);

/* The same with another beginning. */
void oct_command_print_runs(const char *before, uint64_t n,
                            const char *(*why)(const void *context, uint64_t i),
                            const void *context);

/* The same as an array "left_out" of {"frame", "reason"}, or of {WHAT, "reason"}. */
void oct_command_add_reasons(struct cJSON *object, const char *what, uint64_t n,
                             const char *(*why)(const void *context, uint64_t i),
                             const void *context);
void oct_command_add_left_out(struct cJSON *object, uint64_t n,
                              const char *(*why)(const void *context, uint64_t i),
                              const void *context);

/* object[key]: whether it is true; its text, or NULL; its number, or NaN where there is none. */
bool oct_json_is_true(const struct cJSON *object, const char *key);
const char *oct_json_text(const struct cJSON *object, const char *key);
double oct_json_number(const struct cJSON *object, const char *key);

/* A number, or null where it is NaN or infinite. */
void oct_command_add_number(struct cJSON *object, const char *name, double value);

extern const struct oct_command oct_command_recon, oct_command_analyse, oct_command_batch,
    oct_command_synth, oct_command_replay, oct_command_info, oct_command_export, oct_command_label,
    oct_command_pack, oct_command_check, oct_command_correlate, oct_command_cones,
    oct_command_cells, oct_command_cells_score, oct_command_register, oct_command_register_volumes,
    oct_command_surfaces, oct_command_report, oct_command_flow, oct_command_trace,
    oct_command_calibrate, oct_command_scan, oct_command_status, oct_command_doctor,
    oct_command_start, oct_command_stop, oct_command_record, oct_command_rescan, oct_command_set,
    oct_command_get, oct_command_shutdown, oct_command_snapshot, oct_command_background,
    oct_command_keygen, oct_command_allow, oct_command_web, oct_command_bench,
    oct_command_completion, oct_command_worklist, oct_command_identify, oct_command_archive;

/* The parts of octctl archive. */
extern const struct oct_command oct_command_archive_send, oct_command_archive_exam,
    oct_command_archive_run, oct_command_archive_status, oct_command_archive_retry,
    oct_command_archive_drop;

/* The parts of octctl calibrate. */
extern const struct oct_command oct_command_calibrate_kmap, oct_command_calibrate_dispersion,
    oct_command_calibrate_report, oct_command_calibrate_scan;

#endif
