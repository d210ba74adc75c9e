/* The offline runner with a source and a sink that skip, end and fail where they are told to, on an
 * engine of scripts: for its tests. All of it fails the cmocka test unless it works. */
#ifndef OCT_TEST_RIG_OFFLINE_RIG_H
#define OCT_TEST_RIG_OFFLINE_RIG_H

#include "pipeline/flow/offline.h"
#include "test/rig/fake_engine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { N = 16, M = 4, V = 8, D = 10, RING = 6, ALL = 50, NEVER = 1000000 };

struct rig {
    struct oct_plan plan;
    struct fake_watch watch;
    struct oct_pipeline *pipeline;
    struct oct_offline_setup setup;
    struct oct_offline_counts counts;
    struct oct_error err;
    unsigned n_threads; /* before there was anything */
    volatile sig_atomic_t cancel;

    /* The source's. */
    uint64_t n_source;
    _Atomic uint64_t n_read;
    uint64_t fails_at;   /* index */
    uint64_t skip_every; /* 0: never; skips index % skip_every == 0 */
    uint64_t pause_us;
    bool
        waits; /* each for the other: the sink fails when fails_at is read, and the source only when
                   the runner knows of the sink's failure */

    /* The sink's. */
    uint64_t n_pictures, last_index;
    uint64_t picture_fails_at, cancels_at; /* counted from 0 */
    uint64_t n_results[2], result_fails_at;
    uint64_t n_after_failure;
    atomic_bool failed, told_since; /* the runner reports progress after it noted a failure */
    uint64_t sink_pause_us;

    uint64_t n_shown, shown_done;
};

/* Before any case: a sanitizer starts a thread of its own with the first of ours. */
void begin_threads(void);

void open_offline(struct rig *r, struct fake_script script);

/* The rig is their context. */
enum oct_err read_bscan(void *context, uint64_t index, struct oct_raw_frame *frame,
                        enum oct_offline_next *next, struct oct_error *err);
enum oct_err take_offline_picture(void *context, uint64_t index,
                                  const struct oct_image_frame *picture, struct oct_error *err);
enum oct_err take_result(void *context, unsigned stage, uint64_t index,
                         const struct oct_image_frame *result, struct oct_error *err);

/* Threads of this process; one that was joined may be listed for a moment more. */
void expect_threads(unsigned n);

/* Runs, and sees that nothing is left and that the counts are those of what was seen. */
enum oct_err run_offline(struct rig *r, struct oct_stage *const *stages, unsigned n_stages);
void close_offline(struct rig *r);

#endif
