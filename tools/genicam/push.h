/* Frames of a camera as A-lines into octd: from opening the camera to the end of the last
 * acquisition. The caller has blocked SIGINT and SIGTERM, which end it. */
#ifndef OCT_TOOLS_GENICAM_PUSH_H
#define OCT_TOOLS_GENICAM_PUSH_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_PUSH_MOST_SETS 64u

struct oct_push_options {
    const char *camera;                   /* NULL: the first that answers */
    const char *sets[OCT_PUSH_MOST_SETS]; /* FEATURE=VALUE, in this order */
    unsigned n_sets;
    const char *endpoint, *client_key, *server_public; /* as oct_client_connect; keys NULL: plain */
    uint32_t samples;                                  /* camera.samples of octd; 0: not known */
    uint32_t most_lines;                               /* a message; 0: a frame */
    uint64_t n_frames;                                 /* ends after so many; 0: goes on */
    double wait_s;                                     /* for octd, at the start */
    bool reconnect; /* waits for a camera that goes away, and begins anew */
};

/* OCT_OK: n_frames were sent, or a signal ended it. Prints what it does to stdout, and what is lost
 * on the way to stderr. */
enum oct_err oct_push_run(const struct oct_push_options *options, struct oct_error *err);

#endif
