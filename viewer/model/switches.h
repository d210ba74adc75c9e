/* The keys of what octd computes and octview draws: cells, layers, a mirror. Where octd computes
 * it, a key draws it or does not. Where it does not, the key says so and offers the setting that
 * starts it, which the same key again asks octd for. */
#ifndef OCT_VIEWER_MODEL_SWITCHES_H
#define OCT_VIEWER_MODEL_SWITCHES_H

#include "viewer/model/action.h"

#include <stdbool.h>
#include <stdint.h>

/* What was offered last. */
struct oct_view_offer {
    enum oct_view_action action;
    uint64_t until_ns; /* 0: nothing was */
};

struct oct_view_model;

/* False: the action is none of these. */
bool oct_view_switches_apply(struct oct_view_model *model, enum oct_view_action action);

#endif
