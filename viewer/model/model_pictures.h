/* What the model's actions do with pictures (model.c). Included by viewer/model alone. */
#ifndef OCT_VIEWER_MODEL_MODEL_PICTURES_H
#define OCT_VIEWER_MODEL_MODEL_PICTURES_H

#include "viewer/model/model.h"

/* Freezes, or goes on with the newest picture. */
void oct_view_model_set_frozen(struct oct_view_model *model, bool frozen);

/* Shows the newest picture if one waits. */
void oct_view_model_show_newest(struct oct_view_model *model);

/* Shows a picture of a recording; the structs are swapped. whole: the contrast may follow it. */
void oct_view_model_show_recorded(struct oct_view_model *model, struct oct_view_picture *picture,
                                  bool whole);

/* Shows a B-scan, which is no average; the structs are swapped. */
void oct_view_model_show_bscan(struct oct_view_model *model, struct oct_view_picture *picture);

/* Steps through the kept pictures. */
void oct_view_model_step_back(struct oct_view_model *model, int by);

/* Moves the automatic contrast to what the shown picture asks for by `pace` of the way. */
void oct_view_model_adapt(struct oct_view_model *model, double pace);

/* After the slab comes the picture that follows layers, if octd makes one, then the mean again. */
void oct_view_model_next_projection(struct oct_view_model *model);

#endif
