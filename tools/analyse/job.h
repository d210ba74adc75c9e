/* How octctl runs an analysis of whole inputs: from the command line to its files, once.
 *
 *     options -> read -> inputs expanded -> list of outputs, checked -> workers -> work
 *             -> outputs written, all or none -> warn -> lines or JSON
 *
 * An error that begins with the command's own name loses it: messages say it already. Otherwise
 * statuses are those of oct_command_fail_at_work.
 *
 * A command is a struct that begins with a struct oct_job, and a table of functions. Memory that it
 * points at need not be freed: the struct lives as long as the program. SIGINT and SIGTERM raise
 * *cancel, which `work` looks at between pictures and gives to engines. One thread calls all of
 * it. */
#ifndef OCT_TOOLS_ANALYSE_JOB_H
#define OCT_TOOLS_ANALYSE_JOB_H

#include "config/config.h"
#include "formats/paths.h"
#include "tools/outputs.h"
#include "tools/progress.h"

#include <signal.h>

struct cJSON;
struct oct_command;
struct oct_job_ops;
struct oct_option;
struct oct_workers;

/* The options that all have, in the struct of a command's values. */
struct oct_job_options {
    bool json, force;
};
#define OCT_JOB_JSON(values, member)                                                               \
    {                                                                                              \
        "--json", NULL, "print the result as JSON", OCT_OPTION_FLAG,                               \
            .at = offsetof(values, member.json)                                                    \
    }
#define OCT_JOB_FORCE(values, member)                                                              \
    {                                                                                              \
        "--force", NULL, "replace outputs that exist, once the new ones are whole",                \
            OCT_OPTION_FLAG, .at = offsetof(values, member.force)                                  \
    }

struct oct_job {
    /* From the command line. */
    const char *name; /* of the command, for messages */
    unsigned n_words; /* of the command line, at most: room for an option that is a list */
    const struct oct_job_ops *ops; /* `read` may choose others, of the same struct */
    struct oct_config *config;     /* of the command line; `read` may set keys by options */
    struct oct_paths paths;
    const char *const *inputs; /* [n_inputs] files, patterns and folders expanded */
    unsigned n_inputs;
    const char *out; /* NULL: none */
    const char *backend, *gpus;

    /* What `list` adds. */
    struct oct_output_file *files; /* [n_files] */
    unsigned n_files;
    const char *reads[4]; /* files beside the inputs that no output may be: a mask, a table */

    /* For `work`. */
    struct oct_workers *workers;
    const volatile sig_atomic_t *cancel; /* not 0: a signal has come */
    struct oct_progress progress;
    struct oct_outputs *outputs; /* of `files`: work may write some (outputs.h) */
    bool leaves_files;           /* work has found nothing to write */
    bool says_nothing;           /* work has said what there is to say */
    double seconds;              /* that `work` took */
    int status; /* of the command, where it is not to be 0 though files were written */
};

struct oct_job_ops {
    const struct oct_command *command;
    size_t bytes;         /* of the command's struct, which begins with struct oct_job */
    size_t values;        /* where in it the values of the options are */
    size_t options;       /* where in it its struct oct_job_options is */
    bool may_lack_out;    /* the last argument is an output only if it is named *.h5 */
    bool has_no_out;      /* all arguments are inputs */
    bool takes_names;     /* inputs are files: no folders, no patterns */
    bool may_be_killed;   /* signals end it: it does not look at *cancel */
    bool strict_names;    /* names that cannot be are mistakes of the command line: status 2 */
    const char *progress; /* what is counted: "pictures" */

    void (*init)(void *job); /* defaults of options that are not 0; NULL: none */

    /* Understands the options. Returns 0, or what oct_command_misuse returned. */
    int (*read)(void *job);

    /* Calls oct_job_add for each file, and sets job->reads. */
    enum oct_err (*list)(void *job, struct oct_error *err);

    /* Does the work; the files that it has not written are written after it. */
    enum oct_err (*work)(void *job, struct oct_error *err);

    /* Writes what is no file of the list, once those are there; NULL: nothing. */
    enum oct_err (*write_more)(void *job, struct oct_error *err);

    /* What should be known, in lines on stderr; NULL: nothing. */
    void (*warn)(const void *job);

    void (*print)(const void *job);                    /* lines on stdout */
    void (*json)(const void *job, struct cJSON *tree); /* --json; NULL: it has none */
    void (*finish)(void *job); /* closes what is not memory alone; NULL: there is nothing */
};

/* Runs it; returns the exit status. For struct oct_command's run. */
int oct_job_run(const struct oct_job_ops *ops, struct oct_config *config, int argc, char **argv);

/* A file to write; path NULL: it was not asked for. */
void oct_job_add(struct oct_job *job, const char *path, oct_output_writer *write, void *context);

/* "FILE-WHAT.END" beside "FILE.END" (".png"; of another name at its end), to be freed. */
char *oct_job_beside(const char *path, const char *end, const char *what);

/* The last part of a path, for the title of a plot. */
const char *oct_job_base(const char *path);

/* OCT_E_STATE once a signal has come; else OCT_OK. */
enum oct_err oct_job_go_on(const struct oct_job *job, struct oct_error *err);

#endif
