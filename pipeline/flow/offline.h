/* The offline runner: reads a source to its end, as fast as the slowest part goes, and gives every
 * picture and every result to one sink.
 *
 *     source -> RAW RING -> engine -> IMAGE RING -+-> sink.picture
 *                                                 +-> stage -> RESULT RING -> sink.result
 *
 * It knows no file and no configuration: the caller makes the pipeline and the stages on it, and
 * source and sink are functions of the caller's.
 *
 * | thread       | calls          | waits on                    | ends with                       |
 * |--------------|----------------|-----------------------------|---------------------------------|
 * | octd-source  | source.read    | raw ring, then pipeline and | the source's end or the first   |
 * |              |                | stages, which it drains     | error                           |
 * | the caller's | sink, progress | image ring, result rings    | all of these closed and read    |
 *
 * The first error ends the run, whoever found it: the source is asked for no more, the sink is
 * called no more, and all rings are read to their end, so that every thread comes to its end too.
 * Stages work through what is in the image ring by then. After a cancel, also one that follows an
 * error, they do not: an analysis may finish the B-scan that it is at, and is left to itself when
 * that takes longer than its stage's give_up_ms.
 *
 * The source's B-scans count from 0, skipped ones too: that is the index that the sink gets. */
#ifndef OCT_PIPELINE_FLOW_OFFLINE_H
#define OCT_PIPELINE_FLOW_OFFLINE_H

#include "pipeline/flow/pipeline.h"
#include "pipeline/flow/stage.h"

#include <signal.h>
#include <stdint.h>

#define OCT_OFFLINE_MAX_STAGES 16u

enum oct_offline_next {
    OCT_OFFLINE_BSCAN, /* the frame holds a B-scan */
    OCT_OFFLINE_SKIP,  /* there is none at this index; the frame's contents mean nothing */
    OCT_OFFLINE_END,   /* there are no more */
};

struct oct_offline_source {
    const char *name;  /* begins messages: the path of the recording */
    uint64_t n_bscans; /* that will come, skipped ones included: for `progress` alone */
    void *context;

    /* Fills the frame with B-scan `index`: spectra, line_valid and info but for info.id and
     * info.arrival_ns, which are the runner's; the rest of info is zero before. *next says what
     * came of it. An error ends the run. */
    enum oct_err (*read)(void *context, uint64_t index, struct oct_raw_frame *frame,
                         enum oct_offline_next *next, struct oct_error *err);
};

/* Frames are lent until the function returns. An error ends the run. Either may be NULL. */
struct oct_offline_sink {
    void *context;

    /* In the order of the source. Never a picture that the engine lost: that is an error of the
     * run. */
    enum oct_err (*picture)(void *context, uint64_t index, const struct oct_image_frame *picture,
                            struct oct_error *err);

    /* stages[stage] made it. `index` is that of the B-scan named in result->info; its picture came
     * before. A stage's results come in the order in which it made them. */
    enum oct_err (*result)(void *context, unsigned stage, uint64_t index,
                           const struct oct_image_frame *result, struct oct_error *err);
};

struct oct_offline_setup {
    struct oct_pipeline *pipeline; /* nothing was published into it yet */
    /* Guaranteed, made on this pipeline or on the results of one that stands before it. Borrowed;
     * whether each B-scan passed, the caller finds in their counts. */
    struct oct_stage *const *stages;
    unsigned n_stages;
    struct oct_offline_source source;
    struct oct_offline_sink sink;

    /* Called ten times a second at most. done: pictures so far. NULL: nobody looks. */
    void (*progress)(void *context, uint64_t done, uint64_t all);
    void *progress_context;

    const volatile sig_atomic_t *cancel; /* not 0: end the run, and stay so. NULL: nobody does */
};

struct oct_offline_counts {
    uint64_t n_pictures; /* that left the engine */
    uint64_t n_skipped;  /* by the source */
};

/* Runs until all of the source has reached the sink, or until the first error. Then the pipeline
 * and the stages are drained, and no thread of the runner is left; the caller destroys stages and
 * pipeline (a stage left to itself frees itself later; oct_stage_drain tells). counts is filled in
 * either case.
 *
 * OCT_E_CLOSED: it was cancelled. OCT_E_ARG: too many stages. OCT_E_NO_MEMORY. OCT_E_IO: no thread.
 * What the engine said of a B-scan that it lost, or what source or sink returned. */
enum oct_err oct_offline_run(const struct oct_offline_setup *setup,
                             struct oct_offline_counts *counts, struct oct_error *err);

#endif
