/* A whole sequence of frames: choice of the reference, registration of every frame, the reference's
 * own motion, and the average of the moved frames. Frames are read twice a pass and never kept: to
 * be registered, and to be averaged. In memory are the reference, the average, a batch of frames,
 * and 16 bytes a strip.
 *
 *     register -> lines of any frame, render -> finish
 *
 * One thread uses a sequence at a time. */
#ifndef OCT_ANALYSIS_ALIGN_SEQUENCE_H
#define OCT_ANALYSIS_ALIGN_SEQUENCE_H

#include "analysis/align/render.h"
#include "analysis/align/strips.h"

enum oct_sequence_model {
    OCT_SEQUENCE_RIGID,  /* one shift a frame */
    OCT_SEQUENCE_STRIPS, /* motion within frames */
    OCT_SEQUENCE_NONE,   /* frames as they are */
    OCT_SEQUENCE_GIVEN,  /* a shift for every line is given */
};

/* Where frames come from. All have one size. */
struct oct_sequence_source {
    void *context;
    uint64_t n_frames;
    /* Makes *picture, which the caller finishes. */
    enum oct_err (*read)(void *context, uint64_t frame, struct oct_picture *picture,
                         struct oct_error *err);
    void (*progress)(void *context, uint64_t done, uint64_t all); /* frames read; NULL: none */
};

struct oct_sequence_setup {
    uint32_t height, width;
    enum oct_sequence_model model;
    bool masked; /* frames may have masks; found out otherwise, at some cost */
    /* The reference: a picture, or a frame's number, or chosen among all. */
    const struct oct_picture *reference;
    bool has_number;
    uint64_t number;
    uint32_t roi[4]; /* first column, first row, width, height to register by; width 0: all */
    uint32_t max_dy, max_dx; /* of a whole frame; 0: a third of the side */
    uint32_t rows, step, search, far;
    double min_score;
    unsigned n_passes;             /* 1 or 2 */
    const uint8_t *skip;           /* [n_frames], 1: leave out; NULL: none */
    const struct oct_strip *given; /* [n_frames][height], of OCT_SEQUENCE_GIVEN */
    enum oct_resampling interpolation;
    bool as_power; /* average dB as powers */
    bool common;   /* the canvas is what all used frames cover; else what any covers */
    struct oct_workers *workers;
    const char *backend, *gpus;
    unsigned deadline_ms;
};

enum oct_frame_fate {
    OCT_FRAME_USED,
    OCT_FRAME_SKIPPED,
    OCT_FRAME_NO_CONTRAST, /* blank, or less than a tenth valid */
    OCT_FRAME_LOW_SCORE,   /* rigid: below min_score */
    OCT_FRAME_FEW_STRIPS,  /* fewer than half were found */
    OCT_FRAME_NO_SHIFT,    /* none was given */
};
const char *oct_frame_fate_text(enum oct_frame_fate fate);

struct oct_sequence_frame {
    enum oct_frame_fate fate;
    float score;  /* of the frame as moved: rigid, or the median of good strips; NaN: none */
    float before; /* ZNCC with the reference unmoved */
    double sd[2]; /* px, standard deviations of the rigid shift (dy, dx); NaN: not known */
};

struct oct_sequence {
    struct oct_sequence_setup setup;
    struct oct_sequence_source source;
    uint32_t n_strips, rows, step, first_row; /* of every frame: see oct_strips_lines */
    struct oct_sequence_frame *frames;        /* [n_frames] */
    struct oct_strip *strips;                 /* [n_frames][n_strips] */
    uint64_t reference;                       /* frame; UINT64_MAX: a picture, or none */
    uint64_t n_used, n_strips_dropped;        /* dropped: of used frames */
    double *motion_y, *motion_x;              /* [height]: the reference's own; NULL: none */
    double *dy, *dx, *scratch;                /* [height] */
    struct oct_render render;
    const char *running; /* "cpu" or "cuda" */
};

/* Registers all frames. OCT_E_ARG: options that do not fit the frames; fewer than two frames
 * registered (one is enough for models that do not register). *sequence is empty on error. */
enum oct_err oct_sequence_register(struct oct_sequence *sequence,
                                   const struct oct_sequence_setup *setup,
                                   const struct oct_sequence_source *source, struct oct_error *err);

/* The shift of every line, [height] each. False: the frame is not used. */
bool oct_sequence_lines(struct oct_sequence *sequence, uint64_t frame, double *dy, double *dx);

/* Averages the used frames into sequence->render. moved (may be NULL) gets each used frame as it
 * was moved, [render.height][render.width], NaN where not covered; an error of it ends the work. */
enum oct_err oct_sequence_render(struct oct_sequence *sequence,
                                 enum oct_err (*moved)(void *context, uint64_t frame,
                                                       const float *pixels, struct oct_error *err),
                                 void *context, struct oct_error *err);

void oct_sequence_finish(struct oct_sequence *sequence); /* of an empty one too */

#endif
