/* Reconstructs many recordings, several at a time: threads that each have an engine of their own
 * (recon_run.h), which serves all recordings of one plan, on one pool of workers. A recording that
 * fails is told in one line on stderr and stops no other.
 *
 *     main thread: starts the lanes, draws one line of progress, joins them
 *     lane 0..N-1: take the next recording, run it, book it -> ... until there are no more
 */
#ifndef OCT_TOOLS_RECON_MANY_H
#define OCT_TOOLS_RECON_MANY_H

#include "config/config.h"

#include <signal.h>
#include <stdbool.h>

/* The recordings to reconstruct and their outputs: D/NAME.h5 for .../NAME.raw. */
struct oct_recon_names {
    char **in, **out; /* [n], in the order in which they were given */
    unsigned n;
};

/* in[n] and, unless list is NULL, those of the file `list`, each of which ends with a NUL byte
 * ("-": of standard input). folder: where the outputs will be; it need not exist. OCT_E_ARG: none
 * at all, one that names no file, or two whose outputs would have one name: says which two.
 * OCT_E_IO: the list cannot be read; OCT_E_FORMAT: it has an empty name or ends within one. The
 * caller finishes *names in any case. */
enum oct_err oct_recon_names_init(struct oct_recon_names *names, const char *const *in, unsigned n,
                                  const char *list, const char *folder, struct oct_error *err);
void oct_recon_names_finish(struct oct_recon_names *names); /* of an empty one too */

/* Makes the folder, and those above it, where they are not there. OCT_E_IO. */
enum oct_err oct_recon_make_folder(const char *folder, struct oct_error *err);

struct oct_recon_many {
    const char *command; /* begins messages: "recon" */
    const struct oct_config *config;
    const struct oct_recon_names *names;
    unsigned jobs; /* recordings at a time; 0: as many as is quickest here */
    bool force;    /* replace outputs that are there, each once the new one is whole */
    bool skip;     /* leave out recordings whose output is a whole volume already */
    bool analyses; /* run those of analysis.run, too */

    /* A line is appended for each recording that came to an end, "I done", "I skipped" or "I failed
     * WHY", I counting from 0, each by one write. NULL: nobody reads it. */
    const char *results;
    const volatile sig_atomic_t *cancel;
};

struct oct_recon_counts {
    unsigned n_done, n_skipped, n_failed;
    unsigned n_engines, n_jobs;
    uint64_t n_lines; /* A-lines of those done */
    double seconds;
    bool was_cancelled;
    char engine[16]; /* "cpu" or "cuda"; "": none was needed */
};

/* counts: filled in either case. An error is one of the whole run: OCT_E_NO_MEMORY, OCT_E_IO (no
 * thread, no results). */
enum oct_err oct_recon_many_run(const struct oct_recon_many *many, struct oct_recon_counts *counts,
                                struct oct_error *err);

/* Whether `path` is a volume with B-scans, which only whole ones are under their names. */
bool oct_recon_is_there(const char *path);

#endif
