/* A stage: whatever is computed from B-scans, beside the stream. A thread with an analysis in it:
 *
 *     image ring (or another stage's results) -> push -> take ... -> release -> RESULT RING
 *
 * No B-scan is copied: its slot is held while the analysis is at work. Live it is a lossy reader,
 * whose spare buffer takes the slot's place (ring.h): an analysis, however slow, never holds up a
 * picture or a recording. It skips to the newest when it is late, and its thread steps back for all
 * others (niceness). Offline it is guaranteed: every B-scan passes, and a result waits for its
 * readers.
 * Where an image is of a group (form.bscans_an_image neighbours of a volume, by their numbers) it
 * skips whole groups: what it begins it takes to its end, half of the ring behind at most, and none
 * of a group of which it missed one by its own fault. B-scans that were lost before it are absent.
 * A stage of another's results takes these one by one, and what it counts is these.
 * Accounting, at every moment: seen = done + skipped. A B-scan counts when the stage has finished
 * with it; what was not the stage's is never counted.
 *
 * The result ring's frames describe themselves (image.h); a stage knows no socket, no file and no
 * window. What an analysis returns is checked before it is published: a size that its form does
 * not allow, or limits that are no numbers, fail the B-scan.
 *
 * Faults stay in the stage: they are counted, logged (the first of each kind, and then once a
 * minute at most) and kept for the status. An analysis that never returns costs its own thread
 * alone: destroy waits `give_up_ms` for it, then leaves thread, analysis, results and the memory of
 * the ring that it reads to themselves; they are freed when it returns after all. Offline that
 * takes a cancel.
 *
 * Threads: one thread creates and destroys. Any thread configures, cancels and counts. */
#ifndef OCT_PIPELINE_FLOW_STAGE_H
#define OCT_PIPELINE_FLOW_STAGE_H

#include "pipeline/flow/frame.h"
#include "pipeline/flow/pipeline.h"
#include "pipeline/flow/ring.h"
#include "pipeline/flow/slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of an analysis: each has its own (analysis/analysis.h). */
struct oct_analysis;

/* What a stage asks of its analysis, always from the stage's thread, one call at a time. */
struct oct_stage_ops {
    /* Takes a B-scan in. The frame is lent until push returns, and what it points at too, or, where
     * the stage keeps B-scans, for longer (setup.keeps).
     * OCT_E_BACKEND: its device is gone, and every later push will say so. Any other error concerns
     * this B-scan alone. */
    enum oct_err (*push)(struct oct_analysis *analysis, const struct oct_image_frame *bscan,
                         struct oct_error *err);

    /* Fills a result, if one is ready: pixels, which has room for the form's largest image, and
     * where they differ from what is there already: info (of the B-scan just pushed), dims (the
     * form's), whole (true), lo and hi (0 and 1), and the form's numbers (NaN). Called after each
     * push until it returns OCT_E_AGAIN, and live again when nothing has come for a tenth of a
     * second. */
    enum oct_err (*take)(struct oct_analysis *analysis, struct oct_image_frame *result,
                         struct oct_error *err);

    /* No more B-scans of this acquisition come: take may now return what has not become whole.
     * NULL: nothing waits to become whole. */
    void (*end)(struct oct_analysis *analysis);

    /* Forgets all B-scans: another acquisition begins. Settings stay. */
    void (*reset)(struct oct_analysis *analysis);

    /* Other settings from the next push on; NULL: there are none. An error leaves those before. */
    enum oct_err (*configure)(struct oct_analysis *analysis, const void *settings,
                              struct oct_error *err);

    /* Whether its settings leave it nothing to do: then B-scans pass it by, uncounted, and no
     * values are asked for. Called before each push and after configure. NULL: never. */
    bool (*is_at_rest)(const struct oct_analysis *analysis);

    /* "cpu" or "cuda": what computes now. Any thread. NULL: the CPU. */
    const char *(*running)(const struct oct_analysis *analysis);

    /* NULL is fine. */
    void (*destroy)(struct oct_analysis *analysis);
};

enum oct_stage_input {
    OCT_STAGE_PICTURES, /* frame->pixels, as they are shown: form->type, lo, hi; no values */
    OCT_STAGE_VALUES,   /* frame->values: [M][D] f32, dB or counts^2, not cut off; no pixels */
    OCT_STAGE_COMPLEX,  /* frame->complex_values: [M][D][2] f32, counts; no pixels. While the
                           analysis runs on "cuda" and the engine on one GPU, instead
                           frame->complex_device */
};

/* Notes what a pipeline must lend for a stage of such input (struct oct_pipeline_setup). */
void oct_stage_note_lent(enum oct_stage_input input, bool lends[OCT_N_LENT]);

#define OCT_STAGE_MOST_KEPT 8u

struct oct_stage_setup {
    const struct oct_image_form *form; /* of the results; copied */
    const struct oct_stage_ops *ops;
    struct oct_analysis *analysis; /* becomes the stage's, on failure too */
    enum oct_stage_input input;
    struct oct_pipeline *pipeline; /* outlives the stage but for one left to itself */
    /* NULL: the pipeline's image ring; else another stage's results, with what lies beside them,
     * where input is pictures. That stage outlives this one. */
    const struct oct_image_source *in; /* copied */
    unsigned asker;                    /* of what is lent: its own number (pipeline.h) */
    bool guaranteed;                   /* offline */
    unsigned most_behind;              /* live: 0: half of the ring that it reads; where
                                                results are of groups: at the beginning of one, at
                                                most, and 0, a quarter */
    unsigned give_up_ms;               /* 0: 2000 */
    size_t settings_bytes;             /* of what oct_stage_configure takes */
    bool rests;                        /* begins at rest: oct_stage_rest */
    /* Live: so many B-scans, OCT_STAGE_MOST_KEPT at most, stay as they are: the one that is pushed
     * and those pushed before it, each by a reader of the ring, of which there are
     * OCT_RING_MOST_READERS. 0: the one that is pushed. */
    unsigned keeps;
};

enum oct_stage_skip {
    OCT_STAGE_LATE,      /* others came meanwhile */
    OCT_STAGE_LOST,      /* the engine lost its picture */
    OCT_STAGE_NO_VALUES, /* its values, or complex values, had not been asked for */
    OCT_STAGE_FAILED,    /* the analysis failed, or returned what cannot be */
    OCT_STAGE_N_SKIPS
};
extern const char *const oct_stage_skip_names[OCT_STAGE_N_SKIPS]; /* as in the status */

struct oct_stage_counts {
    uint64_t seen, done; /* seen = done + the sum of skipped */
    uint64_t skipped[OCT_STAGE_N_SKIPS];
    uint64_t results; /* published into the result ring */
    bool failing;     /* the newest B-scan that it took failed */
    uint64_t work_ns; /* at work at the B-scans done and failed, in all */
    uint64_t busy_ns; /* how long it has been at work at one B-scan; 0: it waits */
    bool at_rest;     /* sent to rest, or its settings leave it nothing to do */
    double numbers[OCT_IMAGE_MAX_NUMBERS]; /* of the newest result; NaN: there is none */
    char running[8];                       /* "cpu", "cuda" */
    struct oct_error failure;              /* of the newest fault; code OCT_OK: none so far */
};

struct oct_stage;

/* Checks the form and starts the thread. OCT_E_ARG: the form cannot be; OCT_E_NO_MEMORY;
 * OCT_E_STATE: it wants what the pipeline does not lend. */
enum oct_err oct_stage_create(struct oct_stage **stage, const struct oct_stage_setup *setup,
                              struct oct_error *err);

/* Other settings (settings_bytes of them, copied) from the next B-scan on. Never waits for the
 * analysis; one that refuses them says so as a fault of its stage. Any thread. */
void oct_stage_configure(struct oct_stage *stage, const void *settings);

/* Sends the stage to rest, or wakes it, from the next B-scan on. At rest B-scans pass by uncounted,
 * no values are asked for, and the analysis has forgotten (reset) what it had of earlier ones. A
 * stage that is awake may still be at rest by its settings (is_at_rest). Never waits. Any
 * thread. */
void oct_stage_rest(struct oct_stage *stage, bool rests);

const char *oct_stage_name(const struct oct_stage *stage);

/* Its results, for publisher, recorder or another stage. Lives as long as the stage. */
struct oct_image_source oct_stage_results(const struct oct_stage *stage);

/* Any thread. */
void oct_stage_count(struct oct_stage *stage, struct oct_stage_counts *counts);

/* The result ring is closed when the ring it reads is closed and has been read, or when that takes
 * longer than give_up_ms (guaranteed: it takes as long as it takes). The ring it reads must be
 * closed. Then readers of the results come to their end. */
/* False: the analysis was left to itself, and may go on using what create was given for ever. */
bool oct_stage_drain(struct oct_stage *stage);

/* Starts the clock of give_up_ms, as drain does itself otherwise: whoever drains several stages in
 * turn calls this for all of them first, and waits for those that hang together. */
void oct_stage_begin_drain(struct oct_stage *stage);

/* Offline: B-scans that have not been pushed pass by from now on, uncounted, and the acquisition is
 * not ended. An analysis that is still at work give_up_ms after the first call is left to itself by
 * the next call: whoever cancels calls this until the results are closed. Any thread. */
void oct_stage_cancel(struct oct_stage *stage);

/* Drains if that was not done. Readers of the results must be gone. NULL is fine. */
void oct_stage_destroy(struct oct_stage *stage);

#endif
