/* What model.c and model_daemon.c owe each other; nobody else includes it. */
#ifndef OCT_VIEWER_MODEL_PARTS_H
#define OCT_VIEWER_MODEL_PARTS_H

#include "viewer/model.h"

/* Wishes something of the daemon, or says why that cannot be. */
void oct_view_model_wish(struct oct_view_model *model, enum oct_view_wish wish, const char *text);

/* Wishes the next of: eye not said, OD, OS. */
void oct_view_model_next_eye(struct oct_view_model *model);

#endif
