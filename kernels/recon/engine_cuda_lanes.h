/* The inside of the CUDA engine: what engine_cuda.c (contract, start) and engine_cuda_lanes.c (what
 * a lane's thread does, faults) share. For these files alone. */
#ifndef OCT_KERNELS_RECON_ENGINE_CUDA_LANES_H
#define OCT_KERNELS_RECON_ENGINE_CUDA_LANES_H

#include "kernels/device/cuda_choice.h"
#include "kernels/device/cuda_device.h"
#include "kernels/recon/percentile.h"

#include <pthread.h>

enum oct_lane_progress { WAITING, AT_WORK, FINISHED };

struct oct_lane_submission {
    struct oct_engine_job *jobs; /* [max_batch] */
    unsigned n, n_collected;
    unsigned gpu;
    enum oct_lane_progress progress;
    bool limits_known; /* nobody's smoothing waits for it any more */
};

struct oct_lane {
    struct oct_engine *engine;
    unsigned gpu;                 /* index into choice.devices */
    struct oct_cuda_lane *device; /* its thread's own */
    struct oct_cuda_signs signs;  /* between its thread and the others */
    bool busy;                    /* not idle, and not waiting for another lane */
    uint64_t silent_ns;           /* without progress while busy, as collect has looked */
    uint32_t n_calls;             /* of its signs, at that look */
    bool ready;
};

struct oct_engine {
    struct oct_cuda_choice choice;
    unsigned n_lanes, n_started, n_streams, max_batch, depth;
    uint64_t deadline_us;
    char description[256];
    struct oct_plan *plan; /* a copy of its own */
    char gpus[256], cuda[16];

    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    bool chosen, stopping, dead, abandoned;
    bool holds_memory;                       /* for its threads: cuda_device.h */
    unsigned n_threads;                      /* that have not ended */
    uint64_t looked_ns;                      /* at the lanes' clocks */
    struct oct_error why;                    /* of dead */
    struct oct_lane_submission *submissions; /* [depth] */
    struct oct_engine_job *jobs;             /* [depth][max_batch] */
    uint64_t first, last;                    /* submissions in flight, at % depth */
    unsigned n_jobs;                         /* in flight */
    struct oct_smoothed_range smoothed;
    struct oct_lane lanes[];
};

/* The submission of that number. Lock held, as for the next two. */
static inline struct oct_lane_submission *oct_lanes_submission(struct oct_engine *engine,
                                                               uint64_t number)
{
    return &engine->submissions[number % engine->depth];
}

/* What the engine was lent goes back to its owner while its threads may still be at work. */
void oct_lanes_leave(struct oct_engine *engine);

/* The engine ends here: everything that is not done is lost. */
void oct_lanes_give_up(struct oct_engine *engine, const struct oct_error *why);

/* Gives the engine up if a lane shows no progress for longer than the deadline. */
void oct_lanes_look(struct oct_engine *engine);

/* How long nothing has moved: no call of a lane came back, no thread has ended. What is more than a
 * moment between two looks is not counted, so that a deadline needs time and many looks. */
struct oct_lanes_patience {
    uint64_t looked_ns, silent_ns, n_moves;
};

struct oct_lanes_patience oct_lanes_begin_patience(const struct oct_engine *engine);

/* Looks once more; true when nothing has moved for longer than limit_us. */
bool oct_lanes_lose_patience(struct oct_lanes_patience *patience, const struct oct_engine *engine,
                             uint64_t limit_us);

/* A lane's thread; argument: struct oct_lane *. */
void *oct_lanes_run(void *argument);

/* The engine cannot start. */
void oct_lanes_refuse(struct oct_engine *engine, const struct oct_error *why);

/* The last act of each of the engine's threads. */
void oct_lanes_end_thread(struct oct_engine *engine);

/* All threads have ended. */
void oct_lanes_free(struct oct_engine *engine);

#endif
