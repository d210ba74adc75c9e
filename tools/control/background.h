/* The ways of octctl background to a mean spectrum: from a recording, and from a running octd. */
#ifndef OCT_TOOLS_BACKGROUND_H
#define OCT_TOOLS_BACKGROUND_H

#include "config/config.h"

#include <stdint.h>

struct oct_background_options {
    uint64_t n_bscans; /* 0: not given */
    double timeout_s;  /* live: for its B-scans */
    const char *endpoint;
    bool force;
};

/* A mean spectrum and where it is from. */
struct oct_background_line {
    char source[600]; /* the recording's path, or the daemon's endpoint */
    uint32_t n;       /* N */
    double *values;   /* [n] counts; the caller frees */
    double n_bscans, n_lines, n_saturated;
};

/* line comes in zeroed; its values are the caller's on failure too. */
enum oct_err oct_background_of_recording(struct oct_background_line *line,
                                         struct oct_config *config, const char *path,
                                         const struct oct_background_options *options,
                                         struct oct_error *err);
enum oct_err oct_background_live(struct oct_background_line *line, const struct oct_config *config,
                                 const struct oct_background_options *options,
                                 struct oct_error *err);

#endif
