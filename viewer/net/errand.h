/* octctl as a child of the window: what needs the hospital's network, names of patients or minutes
 * of computing is done by it, and read as JSON. Nothing here waits: the window looks, as often as
 * it draws.
 *
 *     zeroed -> begin -> look ... look says that it has ended -> begin ... -> end
 *
 * What it prints is bounded, and so is its time. One thread. */
#ifndef OCT_VIEWER_NET_ERRAND_H
#define OCT_VIEWER_NET_ERRAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OCT_VIEW_MOST_ERRAND_BYTES ((size_t)4 << 20)

/* Members are read once it has ended, until the next begin or end. */
struct oct_view_errand {
    bool runs;
    bool ok;            /* octctl ended with 0 */
    char *text;         /* what it printed then; NULL: nothing */
    size_t n_bytes;     /* of it */
    char why[256];      /* why not, in a line */
    pid_t pid;          /* private from here on; 0: no child */
    int out, err;       /* pipes from it */
    uint64_t until_ns;  /* then it is ended */
    size_t room, n_why; /* of text; of why, while it runs */
    const char *cut;    /* why it was ended; NULL: it was not */
};

/* Starts octctl, the one beside this program's own file, else that of PATH, with these words, up to
 * NULL, which are copied. It has most_s seconds. Where it cannot be started the next look says
 * so. Only when none runs. */
void oct_view_errand_begin(struct oct_view_errand *errand, const char *const *words, double most_s);

/* Reads what came; true once, when it has ended: ok, text and why are set then. */
bool oct_view_errand_look(struct oct_view_errand *errand);

/* Asks those that run to end, as Ctrl-C does, ends them a second later, and frees all. */
void oct_view_errand_end_all(struct oct_view_errand *errands, unsigned n);

#endif
