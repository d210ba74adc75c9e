/* The command line of octview. */
#ifndef OCT_VIEWER_OPTIONS_H
#define OCT_VIEWER_OPTIONS_H

#include "config/config.h"
#include "config/options.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_view_task { OCT_TASK_WINDOW, OCT_TASK_HEADLESS, OCT_TASK_HELP, OCT_TASK_VERSION };

/* Strings are borrowed from argv or from config; the list is owned. */
struct oct_view_options {
    enum oct_view_task task;
    struct oct_config config;
    const char *config_path;               /* --config; NULL: none */
    const char **sets;                     /* --set, up to NULL */
    const char *endpoint;                  /* --connect, else publish.endpoint */
    char control[OCT_CONFIG_STRING_BYTES]; /* where commands go; "": nowhere */
    const char *settings;   /* the file of remembered settings; NULL: the usual one, "": none */
    bool operators;         /* start with the operator profile */
    const char *file;       /* the recording to be shown; NULL: live pictures */
    const char *screenshot; /* headless: where to */
    const char *font;       /* NULL: look for one */
    uint64_t n_frames;      /* headless: pictures to receive; of a file: the B-scan, from 1 */
    double timeout_s;       /* headless */
    int width, height;      /* of the window; headless, or when has_size */
    bool has_size;          /* else the window is as large as the screen lets it be */
    bool full_screen;
    bool no_errands;      /* octctl is asked for nothing: no patients' names, no export */
    size_t history_bytes; /* of the last ten seconds' pictures; 0: the standard */
};

extern const struct oct_option oct_view_option_table[]; /* for the help */

/* Reads the command line and the configuration. OCT_E_CONFIG or OCT_E_ARG say what is wrong. */
enum oct_err oct_view_options_read(struct oct_view_options *options, int argc, char **argv,
                                   struct oct_error *err);

void oct_view_options_finish(struct oct_view_options *options);

#endif
