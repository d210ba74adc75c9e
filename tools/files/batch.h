/* A batch: many recordings, each reconstructed by a task of a Slurm job array. All of it lies in
 * the folder D/octctl-batch beside the outputs:
 *
 *     manifest.json   recordings, their outputs and states; replaced as a whole
 *     octd.ini        the keys that --config and --set gave
 *     lock            held by the one octctl batch that works on it
 *     S.sbatch        the script of submission S = 1, 2, ...
 *     S-T.files       the recordings of its task T = 0, 1, ...: names, each ended by a NUL byte
 *     S-T.results     what became of them: written by the task and by octctl recon --results
 *     S-T.log         what the task printed
 *
 * Tasks write results and logs alone, so the manifest has one writer. What counts is the outputs:
 * each is whole or not there. Whether a task still runs, Slurm alone knows.
 *
 *     init or load -> { look, select, submit, save } -> finish
 *
 * One thread. */
#ifndef OCT_TOOLS_BATCH_H
#define OCT_TOOLS_BATCH_H

#include "config/config.h"
#include "pipeline/base/err.h"
#include "tools/files/recon_names.h"

#include <stdbool.h>

struct cJSON;

enum oct_batch_state {
    OCT_BATCH_TODO,    /* in no task that began */
    OCT_BATCH_QUEUED,  /* its task waits or runs */
    OCT_BATCH_DONE,    /* the output is there, and whole */
    OCT_BATCH_FAILED,  /* octctl recon said why */
    OCT_BATCH_MISSING, /* its task is gone, and left neither output nor reason: killed */
    OCT_BATCH_N_STATES
};
extern const char *const oct_batch_states[OCT_BATCH_N_STATES];

struct oct_batch_item {
    char *in, *out; /* absolute */
    enum oct_batch_state state;
    char *why;     /* failed, or missing and its task said something; else NULL */
    bool has_line; /* the result line of its newest task says done */
};

struct oct_batch_submission {
    unsigned n_tasks;
    char job[32]; /* Slurm's number; "": not submitted by octctl */
};

struct oct_batch {
    char *folder;  /* D/octctl-batch, absolute */
    char *out_dir; /* D, absolute */
    struct oct_batch_item *items;
    unsigned n;
    struct oct_batch_submission *submissions; /* number s is [s - 1] */
    unsigned n_submissions;
    char **options; /* of sbatch, [n_options] */
    unsigned n_options;
    int lock; /* -1: not held */
};

/* A new batch of these recordings: makes D and its folder, and writes octd.ini. OCT_E_STATE: D has
 * a batch already. *batch is empty on error. */
enum oct_err oct_batch_init(struct oct_batch *batch, const struct oct_recon_names *names,
                            const char *out_dir, const char *const *options,
                            const struct oct_config *config, struct oct_error *err);

/* That of D. OCT_E_IO: there is none; OCT_E_FORMAT: its manifest is damaged; OCT_E_STATE: another
 * octctl batch works on it. */
enum oct_err oct_batch_load(struct oct_batch *batch, const char *out_dir, struct oct_error *err);

/* Replaces the options of sbatch. */
enum oct_err oct_batch_set_options(struct oct_batch *batch, const char *const *options,
                                   struct oct_error *err);

/* Writes the manifest, whole or not at all. */
enum oct_err oct_batch_save(const struct oct_batch *batch, struct oct_error *err);

/* The manifest; the caller deletes it. NULL: out of memory. */
struct cJSON *oct_batch_tree(const struct oct_batch *batch);

/* Finds the state of each recording, from outputs, results and Slurm's queue. OCT_E_BACKEND: a task
 * is not known to have ended and squeue does not answer. */
enum oct_err oct_batch_look(struct oct_batch *batch, struct oct_error *err);

/* Writes the script and the shares of a new submission, of all recordings that are neither done nor
 * queued, over n_tasks tasks (at most as many as there are recordings), and removes what killed
 * tasks left beside their outputs. *script is its path, the caller's to free. OCT_E_ARG: there are
 * none. */
enum oct_err oct_batch_prepare(struct oct_batch *batch, unsigned n_tasks, char **script,
                               struct oct_error *err);

/* Submits the newest submission's script. OCT_E_BACKEND: what sbatch said. */
enum oct_err oct_batch_submit(struct oct_batch *batch, const char *script, struct oct_error *err);

/* Whether PATH has sbatch. */
bool oct_batch_has_slurm(void);

unsigned oct_batch_count(const struct oct_batch *batch, enum oct_batch_state state);

/* Of an empty one too. */
void oct_batch_finish(struct oct_batch *batch);

/* ---- for the files of a batch ---- */

/* folder/S-T.SUFFIX, malloc'd; NULL: out of memory. */
char *oct_batch_share(const struct oct_batch *batch, unsigned submission, unsigned task,
                      const char *suffix);

/* Writes a file, whole or not at all. */
enum oct_err oct_batch_write(const char *path, const char *bytes, size_t n, struct oct_error *err);

/* Tasks that wait or run, "JOB_TASK" a line each; malloc'd. OCT_E_BACKEND: squeue does not answer.
 */
enum oct_err oct_batch_queue(char **text, struct oct_error *err);

/* The script's text, malloc'd; NULL: out of memory. */
char *oct_batch_script(const struct oct_batch *batch, unsigned submission, const char *octctl);

#endif
