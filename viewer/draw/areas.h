/* The areas of the window, a function each, which oct_draw_frame (draw.c) calls in order. */
#ifndef OCT_VIEWER_DRAW_AREAS_H
#define OCT_VIEWER_DRAW_AREAS_H

#include "viewer/draw/canvas.h"

enum oct_err oct_draw_bscan(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err);
/* What lies over a picture that is not live: the frame with its word, below what is measured; the
 * hatching, which stands over another panel of live pictures too (r), and its words, above it. */
void oct_draw_veil(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_veil_panel(struct oct_draw *draw, const struct oct_view_model *model,
                         struct oct_view_rect r);
void oct_draw_veil_words(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_layers(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_marks(struct oct_draw *draw, const struct oct_view_model *model);
/* Cells on the B-scan, or on the en face picture, which lies in r; `line`: of words, below the top
 * of the picture. */
void oct_draw_cells_bscan(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_cells_enface(struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_view_rect r, int line);
void oct_draw_sharpened(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_average(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_scale_bars(struct oct_draw *draw, const struct oct_view_model *model);
/* In the corner, how far the scales of the B-scan differ. */
void oct_draw_stretch(struct oct_draw *draw, const struct oct_view_model *model);
/* The guide: how high the number beside the picture is with its words (0: it is off), what is drawn
 * over the picture, and the parts under the pointer. */
int oct_draw_guide_height(const struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_guide_lines(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_guide(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_guide_tip(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_colour_bar(struct oct_draw *draw, const struct oct_view_model *model);
enum oct_err oct_draw_enface(struct oct_draw *draw, const struct oct_view_model *model,
                             struct oct_error *err);
/* Playback: the B-scan's words, the slider in the timeline's place, the slice, and where B-scan and
 * slice lie: on the en face picture, which lies in r, and the slice on the B-scan. */
void oct_draw_playback(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_slider(struct oct_draw *draw, const struct oct_view_model *model);
enum oct_err oct_draw_slice(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err);
void oct_draw_crosshair(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_view_rect r);
void oct_draw_slice_place(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_profile(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_spectrum(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_timeline(struct oct_draw *draw, const struct oct_view_model *model);
int oct_draw_status_height(struct oct_draw *draw, const struct oct_view_model *model, int width,
                           int text_px);
void oct_draw_status(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_header(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model);
/* The height of all alarms that oct_draw_banner draws; 0: there is none. */
int oct_draw_banner_height(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_banner(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_message(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_help(struct oct_draw *draw, const struct oct_view_model *model);

#endif
