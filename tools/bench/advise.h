/* What this machine can take, part by part, and what to change first. Conclusions alone: whoever
 * measures fills the parts. Pure. */
#ifndef OCT_TOOLS_BENCH_ADVISE_H
#define OCT_TOOLS_BENCH_ADVISE_H

#include <stdbool.h>
#include <stddef.h>

/* What may be the wall; the order says which of two that are as slow is named. */
enum oct_wall {
    OCT_WALL_TRANSPORT, /* tcp, ipc: messages through the kernel */
    OCT_WALL_SHM,
    OCT_WALL_MEMORY, /* one copy by one core */
    OCT_WALL_CPU,
    OCT_WALL_GPU,
    OCT_WALL_DISK,
    OCT_WALL_VIEWER, /* pictures out; too slow it costs pictures of the viewer, nothing else */
    OCT_N_WALLS
};

struct oct_advise_part {
    char name[48];
    enum oct_wall kind;
    double hz;    /* A-lines a second that it takes; 0: not measured */
    bool is_used; /* by the configuration: others are shown beside it */
};

/* What of the configuration could be changed. */
struct oct_advise_facts {
    double line_rate_hz;
    unsigned bits;        /* of a sample, as the camera has them */
    bool is_f32;          /* pictures */
    bool has_gpu;         /* one answers */
    bool few_threads;     /* pipeline.threads is less than the cores */
    bool all_depths;      /* beyond P2/4, or all up to there */
    bool records_as_sent; /* or no spectra at all */
    bool records_bscans;  /* beside spectra, from which they can be made again */
};

/* The used part that takes least, a viewer's aside; -1: none was measured. */
int oct_advise_wall(const struct oct_advise_part *parts, unsigned n);

/* One line: what to change first where this is the wall. */
void oct_advise_text(enum oct_wall wall, const struct oct_advise_facts *facts, char *text,
                     size_t text_bytes);

#endif
