/* What the model wishes of octd for the operator: recording, en face settings, the eye. The thread
 * of the model calls. Included by viewer/model alone. */
#ifndef OCT_VIEWER_MODEL_MODEL_DAEMON_H
#define OCT_VIEWER_MODEL_MODEL_DAEMON_H

#include "viewer/model/model.h"

/* Makes a wish, or says why that cannot be. */
void oct_view_model_wish(struct oct_view_model *model, enum oct_view_wish wish, const char *text);

/* Whether octd's en face settings can be changed; if not, says why. */
bool oct_view_model_can_set_enface(struct oct_view_model *model);

#endif
