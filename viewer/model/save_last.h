/* The last seconds, which octd keeps in memory, into a file: asked for, being saved, saved, or
 * not. */
#ifndef OCT_VIEWER_MODEL_SAVE_LAST_H
#define OCT_VIEWER_MODEL_SAVE_LAST_H

#include "viewer/model/daemon_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_view_save_last {
    double length_s;   /* of what is being saved, or was */
    uint64_t until_ns; /* how long it is told what became of it */
    bool is_newest;    /* the file is newer than octd's last recording */
};

struct oct_view_model;

/* Asks octd for it, or says why not. */
void oct_view_save_last(struct oct_view_model *model);

/* octd's newest status, before it replaces model->daemon: what became of it is told, whoever asked
 * for it. */
void oct_view_save_last_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon);

/* "SAVED the last 20 s: FILE", or why not, or that it is under way; false: there is nothing to
 * tell. *is_good: it is no failure, and nothing is missing. */
bool oct_view_save_last_text(const struct oct_view_model *model, char *text, size_t n_bytes,
                             bool *is_good);

#endif
