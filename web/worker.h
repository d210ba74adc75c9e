/* A thread for what may wait for a disk: jobs, one after another, so that the thread that serves
 * browsers never does.
 *
 *     create -> { give, turn ... } -> end -> destroy
 *
 * One thread, the owner's, calls all functions; `work` alone is called in the worker's. */
#ifndef OCT_WEB_WORKER_H
#define OCT_WEB_WORKER_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_WEB_MOST_JOBS 64u

/* The first member of what is to be done. */
struct oct_web_job {
    struct oct_web_job *next;
    void (*work)(struct oct_web_job *job);
    void (*done)(struct oct_web_job *job); /* the job is the owner's again, worked or not */
};

struct oct_web_worker;

/* name: of the thread. notify: called in the thread when a job was worked; it must not block. */
enum oct_err oct_web_worker_create(struct oct_web_worker **worker, const char *name,
                                   void (*notify)(void *context), void *context,
                                   struct oct_error *err);

/* False: OCT_WEB_MOST_JOBS wait already, and the job stays the caller's. */
bool oct_web_worker_give(struct oct_web_worker *worker, struct oct_web_job *job);

/* Calls `done` of the jobs that were worked. */
void oct_web_worker_turn(struct oct_web_worker *worker);

/* Begins no other job. False: the one that it is at was not finished in time, and the worker must
 * not be destroyed. NULL is fine. */
bool oct_web_worker_end(struct oct_web_worker *worker, uint64_t timeout_ns);

/* Calls `done` of all jobs that are left. NULL is fine. */
void oct_web_worker_destroy(struct oct_web_worker *worker);

#endif
