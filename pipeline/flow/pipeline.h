/* The pipeline: raw ring -> engine -> image ring, and the threads between them.
 *
 *     source -> RAW RING -> feed -> engine -> collect -> IMAGE RING -> sinks
 *
 * Source (one): oct_ingest or, offline, whoever writes the raw ring. Sinks: oct_publisher,
 * oct_recorder, or any reader of the image ring. Slot s of the image ring is the picture of slot s
 * of the raw ring, always.
 *
 * | thread    | owns                  | waits on                     | is stopped by            |
 * |-----------|-----------------------|------------------------------|--------------------------|
 * | ingest    | PULL socket, assembler| zmq poll (<= 10 ms)          | oct_ingest_destroy       |
 * | feed      | raw reader, submit    | raw ring, image slot, depth  | raw ring closed and read |
 * | collect   | collect, image writer | engine (<= 100 ms)           | feed ended, none left    |
 * | workers   | the engine's own      | the engine's lock            | engine destroyed         |
 * | keeper    | kept B-scans          | image ring (<= 100 ms)       | image ring closed, read  |
 * | recorder  | the open volume file  | keeper (<= 100 ms), writer,  | keeper closed, read      |
 * |           |                       | closer                       |                          |
 * | closer    | the file before it    | the disk, the file's writer  | recorder ended           |
 * | last      | the file it saves     | writer                       | its end                  |
 * | writer    | a block of an open    | the disk; one a file         | the file's close         |
 * |           | file (volume/queue.h) |                              |                          |
 * | publisher | XPUB socket           | image ring (<= 100 ms)       | image ring closed, read  |
 * | main      | control, signals      | libuv                        | shutdown                 |
 *
 * Everything that was published into the raw ring is reconstructed and reaches every guaranteed
 * reader before oct_pipeline_drain returns. Accounting: B-scans begun = done + dropped + in
 * flight, where each B-scan in the raw ring ends as done or as dropped by the engine. */
#ifndef OCT_PIPELINE_FLOW_PIPELINE_H
#define OCT_PIPELINE_FLOW_PIPELINE_H

#include "pipeline/flow/engine.h"
#include "pipeline/flow/ring.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_pipeline;

struct oct_pipeline_setup {
    const struct oct_plan *plan; /* must outlive the pipeline */
    const struct oct_engine_ops *ops;
    struct oct_engine *engine; /* becomes the pipeline's */
    struct oct_display display;
    unsigned ring_bscans; /* slots of each ring; raised to what the engine needs */
    struct oct_spacing spacing;
    bool lends[OCT_N_LENT]; /* what of B-scans may be asked for: see oct_pipeline_ask; of complex
                               values the engine's options say the same. OCT_LENT_DEVICE: if the
                               engine has one GPU, and that has room */
};

struct oct_pipeline_counts {
    uint64_t bscans_done;           /* reconstructed and in the image ring */
    uint64_t bscans_dropped_engine; /* lost by the engine */
    uint64_t busy_ns;               /* in which the engine had B-scans, in all */
    uint64_t complex_bytes; /* of complex values that came to host memory, over the bus of a GPU */
};

/* Makes the rings and starts feed and collect. The engine is destroyed on failure too. */
enum oct_err oct_pipeline_create(struct oct_pipeline **pipeline,
                                 const struct oct_pipeline_setup *setup, struct oct_error *err);

/* For the source: no more will be published. Waits until all that was published has been
 * reconstructed; the image ring is closed then. */
void oct_pipeline_drain(struct oct_pipeline *pipeline);

/* After a drain: rings begin anew with slot 0 and the threads run again, with the same engine and
 * rings; sources and sinks of the run before are gone. The counts go on. Limits are smoothed from
 * one B-scan to the next of the same acquisition and volume: the source gives each run an
 * acquisition of its own. OCT_E_BACKEND: the engine has failed; OCT_E_NO_MEMORY, OCT_E_IO: no
 * threads. On error only oct_pipeline_destroy may follow. */
enum oct_err oct_pipeline_restart(struct oct_pipeline *pipeline, const struct oct_display *display,
                                  struct oct_error *err);

/* Drains if that was not done, ends the threads, destroys engine and rings. All sources and sinks
 * must be gone. NULL is fine. */
void oct_pipeline_destroy(struct oct_pipeline *pipeline);

struct oct_ring *oct_pipeline_raw(struct oct_pipeline *pipeline);
struct oct_ring *oct_pipeline_images(struct oct_pipeline *pipeline);
const struct oct_plan *oct_pipeline_plan(const struct oct_pipeline *pipeline);
/* "cpu" or "cuda", what computes now: the CPU may have taken over from a GPU that failed. */
const char *oct_pipeline_engine_name(const struct oct_pipeline *pipeline);
const char *oct_pipeline_engine_description(const struct oct_pipeline *pipeline);
bool oct_pipeline_is_pinned(const struct oct_pipeline *pipeline);

/* Where a raw frame's spectra may lie beside the ring: in memory that these ops have adopted; NULL:
 * anywhere. */
const struct oct_memory_ops *oct_pipeline_memory(const struct oct_pipeline *pipeline);

/* How pixels are made, from the next B-scan on. Any thread. */
void oct_pipeline_set_display(struct oct_pipeline *pipeline, const struct oct_display *display);

/* The form of the image ring's pictures. */
const struct oct_image_form *oct_pipeline_form(const struct oct_pipeline *pipeline);

/* Float values and complex values of B-scans are lent to those who ask for them, and made for no
 * other B-scan: on a GPU they are four and eight times what pixels take of the bus. An asker (at
 * most OCT_MAX_ASKERS; the number is its own) asks for the next n B-scans at a time, or with
 * UINT_MAX for all; asking again replaces what is left of the request before. Of f32 pictures
 * values always are there. Any thread. Returns false if the pipeline does not lend that, or has no
 * memory for it: an engine of the CPU takes it, M * D * 4 or 8 bytes a slot of the image ring, when
 * n > 0 is asked for first. What lies on a device is lent no more once the CPU has taken over. */
#define OCT_MAX_ASKERS 18u /* 16 analyses, the recorder, and who takes the B-scans themselves: */
#define OCT_LAST_ASKER (OCT_MAX_ASKERS - 1)
#define OCT_RECORDER_ASKER (OCT_MAX_ASKERS - 2)
bool oct_pipeline_ask(struct oct_pipeline *pipeline, enum oct_lent what, unsigned asker,
                      unsigned n);

/* B-scans that may be between the raw ring and the image ring at once: an asker that wants what is
 * lent of every B-scan asks for more than that at a time. */
unsigned oct_pipeline_depth(const struct oct_pipeline *pipeline);

/* Any thread. */
struct oct_pipeline_counts oct_pipeline_count(struct oct_pipeline *pipeline);

/* For a watchdog: whether work is there, and numbers that move: with each B-scan that leaves the
 * engine; and while the engine has nothing because a sink holds the image ring. Any thread. */
struct oct_pipeline_progress {
    uint64_t moves, sink_waits;
    uint64_t n_waiting; /* B-scans in the raw ring that have not left the engine */
};
struct oct_pipeline_progress oct_pipeline_get_progress(struct oct_pipeline *pipeline);

/* Whether the engine has failed for good (then why is filled). Any thread. */
bool oct_pipeline_has_failed(struct oct_pipeline *pipeline, struct oct_error *why);

#endif
