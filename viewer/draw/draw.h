/* Drawing a model into an SDL renderer: the same code for the window and off-screen. */
#ifndef OCT_VIEWER_DRAW_DRAW_H
#define OCT_VIEWER_DRAW_DRAW_H

#include "pipeline/base/err.h"
#include "viewer/model/layout.h"
#include "viewer/model/model.h"

struct SDL_Renderer;
struct oct_draw;

/* Without a font everything but text is drawn and a warning says so on stderr. `font` NULL: the
 * usual places. The renderer is borrowed and must outlive the drawing. */
enum oct_err oct_draw_create(struct oct_draw **draw, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err);

/* Whether a font was found. */
bool oct_draw_has_text(const struct oct_draw *draw);

/* The size of letters, and the monitor's dots an inch; 12 points at 96 until it is called. */
void oct_draw_set_text(struct oct_draw *draw, double points, double dpi);

/* Draws everything for the renderer's present size; presenting is the caller's. The picture is
 * converted only if it or the contrast changed since the last call. */
enum oct_err oct_draw_frame(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err);

/* Darkens what oct_draw_frame drew, as the settings say; alarms stay as light as they are. A
 * picture of the window is taken before. */
void oct_draw_dim(struct oct_draw *draw, const struct oct_view_model *model);

/* Where the last oct_draw_frame put things; and the share of playback's slider at x: 0 its first
 * B-scan, 1 its last. */
const struct oct_view_layout *oct_draw_layout(const struct oct_draw *draw);
double oct_draw_slider_share(const struct oct_draw *draw, double x);

/* Call it when the renderer lost its textures: the next frame makes all of them anew. */
void oct_draw_forget(struct oct_draw *draw);

/* NULL is fine. */
void oct_draw_destroy(struct oct_draw *draw);

#endif
