/* A pipeline with a stage, whose analysis does what its script says, and readers of the pictures
 * and of the results: for the tests of stages. All of it fails the cmocka test unless it works. */
#ifndef OCT_TEST_RIG_STAGE_RIG_H
#define OCT_TEST_RIG_STAGE_RIG_H

#include "pipeline/flow/stage.h"
#include "test/rig/fake_engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { N = 16, M = 4, V = 8, D = 10 };

struct script {
    uint64_t push_us;
    unsigned push_one_in;   /* only the last of so many B-scans takes push_us; 0: all */
    unsigned fail_one_in;   /* pushes; 0: none */
    bool hangs;             /* push does, until `gate` opens */
    char hangs_in;          /* t, e, r, c: so does take, end, reset, configure */
    bool endless;           /* take never ends */
    uint32_t rows, columns; /* of results; 0: as the form says */
    double lo;
    bool from_the_future, of_another_acquisition;
    unsigned block; /* 0, or one result for so many B-scans, named after the first of them */
    bool refuses_settings;
    bool keeps_until_end; /* the results come at `end` */
    bool of_volume, whole_only;
    unsigned keeps; /* values of so many B-scans, the one that is pushed counted, are read anew */
};

/* What the analysis was asked for; read by the test. */
struct watch {
    atomic_uint n_pushed, n_taken, n_ended, n_reset, n_configured, n_destroyed;
    atomic_uint n_changed; /* B-scans that did not stay as they were */
    atomic_bool gate;
    int settings;
    char order[64];        /* p, e, r: push, end, reset */
    uint64_t pushed[4096]; /* numbers of the B-scans */
};

struct sink {
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    pthread_t thread;
    uint64_t pause_us;
    atomic_uint n;
    struct oct_stage *const *stage; /* not NULL: whose results are counted against its own */
    uint64_t n_uncounted;
    uint64_t longest_ns; /* between a picture's time of feeding and its arrival here */
    uint64_t number[4096];
    float first[4096];
};

struct rig {
    struct oct_plan plan;
    struct fake_watch fake;
    struct oct_pipeline *pipeline;
    struct oct_image_form form;
    struct watch watch;
    struct oct_stage *stage;
    struct sink pictures, results;
    uint64_t n_fed;
    uint32_t acquisition;
};

/* A pipeline alone, with a reader of its pictures; the stage on it and a reader of its results;
 * both. try_stage hands back what oct_stage_create did. */
void open_pipeline(struct rig *r, struct fake_script fake, bool lends);
enum oct_err try_stage(struct rig *r, const struct script *script, struct oct_stage_setup setup,
                       struct oct_error *err);
void open_stage(struct rig *r, const struct script *script, struct oct_stage_setup setup);
void open_stage_rig(struct rig *r, const struct script *script);

/* Makes the stage of the rig the input of another, which becomes the stage of `second`. */
void open_second(struct rig *r, struct rig *second, const struct script *script,
                 struct oct_stage_setup setup);

/* The first sample of a B-scan decides its pixels (fake_engine.h). */
uint16_t sample_of(uint64_t number);

/* The next n B-scans; in step: one at a time, so that a busy machine makes none late. */
void feed(struct rig *r, unsigned n, uint64_t pause_us);
void feed_in_step(struct rig *r, unsigned n);

void wait_until(const atomic_uint *n, unsigned wanted);

/* What the stage has counted, of which the sum is right. */
struct oct_stage_counts count_stage(struct rig *r);

/* Ends the stream and hands back what the stage had counted. */
struct oct_stage_counts drain_stage(struct rig *r);
void close_sink(struct sink *s);
void close_stage_rig(struct rig *r);

#endif
