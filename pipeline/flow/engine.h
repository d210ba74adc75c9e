/* The engine contract: what turns raw frames into image frames (contract section 1).
 *
 *     create -> { submit ... collect ... } -> destroy
 *
 * An engine is a table of functions and an opaque state. Threads: one thread calls submit, one
 * thread (the same or another) calls collect; any thread calls describe and running; create and
 * destroy are called while neither submit nor collect runs. Loans: the frames of a job belong to
 * the engine from a successful submit until collect returns that job; input is only read, and the
 * input slot must stay untouched meanwhile, as the DC line of a job that has one.
 * Order: collect returns jobs in the order of submission, whatever happened to them.
 * Legal states: submit fails with OCT_E_AGAIN when `depth` jobs are in flight (collect first);
 * collect with nothing in flight waits and returns OCT_E_AGAIN. destroy is legal at any time and
 * waits for work in flight to stop; jobs not collected are lost.
 * Failure: a job that could not be done is collected with out->status != OCT_OK. When the device
 * itself is gone every later submit returns OCT_E_BACKEND; collect still returns what was in
 * flight, with that status, and never hangs. */
#ifndef OCT_PIPELINE_FLOW_ENGINE_H
#define OCT_PIPELINE_FLOW_ENGINE_H

#include "pipeline/flow/frame.h"
#include "pipeline/plan/plan.h"

#include <stddef.h>

struct oct_engine;
struct oct_workers;

struct oct_engine_options {
    unsigned n_threads;     /* CPU workers; 0: one a core; of the pool below when that is given */
    unsigned max_batch;     /* most jobs one submit may bring; 0: the engine's own choice */
    const char *simd;       /* "auto", "avx512", "avx2", "plain" */
    const char *gpus;       /* "0,1": CUDA devices, NULL or "": the first that answers */
    const char *cuda;       /* "fused", "plain" kernels; NULL or "auto": fused where it can run */
    unsigned n_streams;     /* CUDA streams a GPU; 0: the engine's own choice */
    unsigned deadline_ms;   /* a GPU that shows no progress for so long is given up; 0: 2000 */
    const char *wisdom_dir; /* folder where FFT plans are kept between runs; NULL: none kept */
    bool has_complex;       /* jobs may ask for complex values; a device keeps room for them */
    struct oct_workers *workers; /* the process's pool (kernels/device/workers.h), which outlives
                                    the engine and may work for others too; NULL: a CPU engine
                                    creates and owns its own */
};

struct oct_engine_job {
    const struct oct_raw_frame *in;
    /* The engine fills status, lo, hi and pixels. Where `values` of a u8 picture is not NULL, it
     * also writes there the [M][D] floats that the pixels were made of, the same as an f32 picture
     * has; the pixels stay what they are without. Of an f32 picture values are the pixels. Where
     * `complex_values` is not NULL, it writes these too; options.has_complex said that some may be.
     * The same for `complex_device`, which lies on the engine's `gpu`.
     * Nothing else is written, and nothing at values_room when `values` is NULL, nor at
     * complex_room: then they cost nothing. */
    struct oct_image_frame *out;
    struct oct_display display;
    /* With plan->chain.dc == OCT_DC_RUNNING the line that is subtracted from every A-line, [2][N]:
     * whole counts, then the rest (running_dc.h). Read until collect returns the job. Else NULL and
     * not read. */
    const float *dc;
};

/* Memory for what is lent to an engine. alloc returns page-aligned, zeroed memory or NULL; *pinned
 * (may be NULL) tells whether the device reads it fast, which is not so where its driver refuses to
 * pin it. release may be called when all jobs were collected, whatever became of the device: memory
 * that a hanging one may still use is kept until it is done. Any thread. */
struct oct_memory_ops {
    void *(*alloc)(size_t bytes, bool *pinned);
    void (*release)(void *memory, size_t bytes);

    /* The same on a GPU, not zeroed; release takes it. NULL: there is none. */
    void *(*device_alloc)(size_t bytes, unsigned gpu);

    /* Pins a mapping of the caller's, so that jobs may lie there as in memory of alloc; release
     * unmaps it. What the device reads are the pages mapped now, whatever is mapped there later.
     * False: refused, and it is still the caller's. NULL: always. */
    bool (*adopt)(void *memory, size_t bytes);
};

struct oct_engine_ops {
    const char *name; /* "cpu", "cuda" */

    /* The plan must outlive the engine. *engine is NULL on error. */
    enum oct_err (*create)(struct oct_engine **engine, const struct oct_plan *plan,
                           const struct oct_engine_options *options, struct oct_error *err);

    /* One line on what it runs on, e.g. "2 threads, AVX-512". Valid until destroy. */
    const char *(*describe)(const struct oct_engine *engine);

    /* "cpu" or "cuda": what computes now, where that can differ from the name; NULL: the name. */
    const char *(*running)(const struct oct_engine *engine);

    /* The GPU whose memory jobs may be given; -1: none, or there are several. NULL: none. Any
     * thread. */
    int (*gpu)(const struct oct_engine *engine);

    /* Jobs that may be in flight at once, and the most that one submit takes (<= depth). */
    unsigned (*depth)(const struct oct_engine *engine);
    unsigned (*max_batch)(const struct oct_engine *engine);

    /* Takes all n jobs (1 <= n <= max_batch) as one batch, or none. Does not wait for work. The
     * array itself is copied. */
    enum oct_err (*submit)(struct oct_engine *engine, const struct oct_engine_job *jobs,
                           unsigned n);

    /* Waits up to timeout_us for the oldest job in flight; *done is its out frame. */
    enum oct_err (*collect)(struct oct_engine *engine, uint64_t timeout_us,
                            struct oct_image_frame **done);

    /* NULL is fine. */
    void (*destroy)(struct oct_engine *engine);

    /* Where rings for this engine should live; NULL: plain page-aligned memory. */
    const struct oct_memory_ops *memory;
};

#endif
