/* octd as a process of its own between a camera and a viewer of the benchmark's, all in a folder of
 * its own under /tmp. One thread uses a rig; the camera is a second. */
#ifndef OCT_TOOLS_BENCH_RIG_H
#define OCT_TOOLS_BENCH_RIG_H

#include "config/config.h"
#include "tools/bench/scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#define OCT_BENCH_PATIENCE_MS 30000
#define OCT_BENCH_TCP "tcp://127.0.0.1:*" /* an ingest.endpoint for which the rig finds a port */

/* How lines come into slots of shared memory. */
enum oct_bench_filling {
    OCT_BENCH_HAND_OVER,  /* as a camera whose driver has them in memory of its own */
    OCT_BENCH_IN_PLACE,   /* as a frame grabber that writes where octd reads: a slot keeps what it
                             was filled with first, and no processor touches it */
    OCT_BENCH_FILL_PLACE, /* each slot is written anew: B-scan n is that of frame n % FRAMES */
};

struct oct_bench_rig {
    struct oct_bench_scene scene;
    char folder[64];                       /* sockets, configuration, log, octd's cache */
    char ingest[96];                       /* where the camera sends, as configured: shared memory,
                                              a port of this machine's, or a socket of the folder */
    char records[OCT_CONFIG_STRING_BYTES]; /* where octd records; "": the folder. Removed too */
    void *context, *pictures;
    pid_t octd;
    pthread_t camera;
    bool has_camera;
    atomic_bool stop, restart; /* restart: the camera begins another acquisition, once */
    double rate_hz;            /* 0: as fast as octd takes them; the camera waits for room */
    unsigned block;            /* B-scans that the camera sends at once; 0: one */
    enum oct_bench_filling filling;
    uint16_t *film; /* [block + OCT_BENCH_FRAMES] B-scans, those of the scene in turn */
    /* after the camera has ended */
    double camera_s;     /* how long it ran */
    uint64_t n_given_up; /* lines for which the camera found no room or which octd did not take */
    bool camera_failed;
};

/* Opens a rig with the configuration on endpoints of its own. The rig subscribes to pictures from
 * here on. It must be closed even after an error. */
enum oct_err oct_bench_rig_open(struct oct_bench_rig *r, const struct oct_config *config,
                                double rate_hz, struct oct_error *err);
/* failed: the end of octd's log goes to stderr before it is removed. */
void oct_bench_rig_close(struct oct_bench_rig *r, bool failed);

/* Writes the configuration again, for another r->records or other settings. */
enum oct_err oct_bench_rig_configure(const struct oct_bench_rig *r, const struct oct_config *config,
                                     struct oct_error *err);

/* Starts octd in an environment of its own: its cache lies in the folder. */
enum oct_err oct_bench_rig_start(struct oct_bench_rig *r, struct oct_error *err);
void oct_bench_rig_end(struct oct_bench_rig *r);

/* Starts a camera that sends blocks at rate_hz, each with the clock (oct_clock_ns) at its sending;
 * when octd does not follow, they are given up. With a film, B-scan n is the scene's
 * n % OCT_BENCH_FRAMES, unless it is filled in place. */
enum oct_err oct_bench_camera_start(struct oct_bench_rig *r, struct oct_error *err);
void oct_bench_camera_end(struct oct_bench_rig *r);

/* Opens a new subscriber, which no picture of an earlier octd can reach. */
enum oct_err oct_bench_pictures_open(struct oct_bench_rig *r, struct oct_error *err);
void oct_bench_pictures_close(struct oct_bench_rig *r);

/* What came: of the topic bscan, or of an analysis. */
struct oct_bench_message {
    bool is_picture;
    double number;    /* of its B-scan; -1: it does not say */
    uint64_t sent_ns; /* when its lines were sent; 0: it does not say */
    size_t bytes;     /* of its last part */
    double lo, hi;    /* limits of the picture's grey levels */
    void *pixels;     /* where a picture's go, as many as the geometry has; NULL: nowhere */
};
enum oct_err oct_bench_message_take(struct oct_bench_rig *r, struct oct_bench_message *message,
                                    struct oct_error *err);

/* Waits for a picture and checks that it has the size of the geometry's. *sent_ns may be NULL. */
enum oct_err oct_bench_picture_take(struct oct_bench_rig *r, uint64_t *sent_ns,
                                    struct oct_error *err);

/* Lays the film out for blocks of so many B-scans. */
enum oct_err oct_bench_rig_load(struct oct_bench_rig *r, unsigned block, struct oct_error *err);

/* Sends the control request once and returns the reply, for cJSON_Delete; NULL: none came within
 * OCT_BENCH_PATIENCE_MS, or it is no JSON. */
cJSON *oct_bench_rig_ask(const struct oct_bench_rig *r, const char *request);

/* The reply to "status", for cJSON_Delete. It is asked for again every second, so that an octd that
 * has ended is noticed; NULL: it has, or no reply came within OCT_BENCH_PATIENCE_MS. */
cJSON *oct_bench_rig_status(const struct oct_bench_rig *r);

/* A number of a status reply; "group" may be NULL; -1: the reply has none. */
double oct_bench_number(const cJSON *status, const char *group, const char *key);

bool oct_bench_phase_is(const cJSON *status, const char *phase);

/* Asks for the status again and again until it is as wanted, or until that has lasted longer than
 * OCT_BENCH_PATIENCE_MS: the last one that came, for cJSON_Delete, and whether it is. */
cJSON *oct_bench_rig_until(const struct oct_bench_rig *r,
                           bool (*is_wanted)(const cJSON *status, double than), double than,
                           bool *came);

/* Starts octd and returns when it takes lines; the second only waits. While octd plans or starts
 * a GPU, lines would wait in queues, arrive in a burst and make the percentiles longer than octd
 * is. */
enum oct_err oct_bench_rig_run(struct oct_bench_rig *r, struct oct_error *err);
enum oct_err oct_bench_rig_await(const struct oct_bench_rig *r, struct oct_error *err);

/* Sends the control request; OCT_E_IO: octd does not grant it. */
enum oct_err oct_bench_rig_command(const struct oct_bench_rig *r, const char *request,
                                   struct oct_error *err);

#endif
