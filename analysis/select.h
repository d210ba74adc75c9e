/* Which twin of an analysis computes, and what happens when its GPU fails.
 *
 * With backend "auto" or "cuda" the CUDA twin computes if there is one and a GPU answers, else the
 * CPU twin. When the CUDA twin says OCT_E_BACKEND it is destroyed, the CPU twin takes over with
 * that B-scan and the settings in force, and the log says so; what the CUDA twin had gathered of
 * earlier B-scans is lost. */
#ifndef OCT_ANALYSIS_SELECT_H
#define OCT_ANALYSIS_SELECT_H

#include "analysis/analyses.h"

/* The running half of an analysis, ready for a stage. */
struct oct_analysis_choice {
    const struct oct_stage_ops *ops;
    struct oct_analysis *analysis; /* the caller's, destroyed by ops->destroy */
    struct oct_image_form form;
    enum oct_stage_input input;
    size_t settings_bytes;
    unsigned most_behind; /* as ops->most_behind */
    char why[256];        /* one line for the log: which twin and why */
};

/* backend: "auto", "cpu" or "cuda". Errors as the twins' create. */
enum oct_err oct_analysis_select(struct oct_analysis_choice *choice,
                                 const struct oct_analysis_entry *entry, const char *backend,
                                 const struct oct_analysis_setup *setup, struct oct_error *err);

#endif
