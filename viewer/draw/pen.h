/* What all of viewer/draw and viewer/overlay draws with: colours, and rectangles, lines and text in
 * them (canvas.c); and the areas of the window, which oct_draw_frame (draw.c) draws in order. One
 * thread, SDL's; no SDL in here. */
#ifndef OCT_VIEWER_DRAW_PEN_H
#define OCT_VIEWER_DRAW_PEN_H

#include "viewer/draw/draw.h"
#include "viewer/model/words.h"

#include <stdint.h>

/* Calm colours: a dark ground that leaves the picture the brightest thing in the room. */
#define RGB_GROUND 0x12161cu
#define RGB_AREA 0x1a2028u
#define RGB_BAR 0x222a34u
#define RGB_BUTTON 0x303b49u
#define RGB_PLAIN 0xd8dee6u
#define RGB_DIM 0x8a96a4u
#define RGB_GOOD 0x7fc8a0u
#define RGB_WARN 0xe6b866u
#define RGB_BAD 0xf08a7cu
#define RGB_RECORD 0xb3261eu
#define RGB_MEASURE 0x5cc8ffu
#define RGB_PLAYBACK 0x8fb4ffu
#define RGB_MARK 0xffe14du
#define RGB_CELL 0xff9a3cu
#define RGB_ILM 0x4be0d0u
#define RGB_RPE 0xff7ac8u
#define RGB_FLOW 0xff3a30u

enum oct_text_size {
    OCT_TEXT_NORMAL,
    OCT_TEXT_LARGE,
    OCT_TEXT_HUGE, /* to be read from two metres; its height is set by itself */
    OCT_TEXT_N_SIZES
};

enum oct_draw_cut { OCT_DRAW_CUT_END, OCT_DRAW_CUT_MIDDLE, OCT_DRAW_CUT_BEGINNING };

uint32_t oct_draw_tone(enum oct_view_tone tone);
void oct_draw_fill(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb, unsigned alpha);
/* The same, opaque. */
void oct_draw_box(struct oct_draw *draw, int x, int y, int w, int h, uint32_t rgb);
/* Fills outer except inner, which lies within it and which other code draws: on a large screen,
 * writing pixels twice takes most of the time. */
void oct_draw_around(struct oct_draw *draw, struct oct_view_rect outer, struct oct_view_rect inner,
                     uint32_t rgb, unsigned alpha);
/* Stripes from the lower left to the upper right, within r: `thick` px wide, `apart` px from one to
 * the next, along the edge. */
void oct_draw_hatch(struct oct_draw *draw, struct oct_view_rect r, int thick, int apart,
                    uint32_t rgb, unsigned alpha);
void oct_draw_line(struct oct_draw *draw, double x0, double y0, double x1, double y1, uint32_t rgb,
                   unsigned alpha);
/* The same with a dark one at both sides, to be seen on any picture. */
void oct_draw_mark_line(struct oct_draw *draw, double x0, double y0, double x1, double y1,
                        uint32_t rgb);
void oct_draw_frame_of(struct oct_draw *draw, struct oct_view_rect r, uint32_t rgb);
#define OCT_DRAW_LABEL_SHADE 232 /* of 255: all inks have a contrast of 4.5 on white under it */
/* Draws letters on a shade that keeps them readable on any picture. */
void oct_draw_label(struct oct_draw *draw, int x, int y, const char *string, uint32_t rgb);
/* Words on the picture in r, below `line` lines of them. */
void oct_draw_words_below(struct oct_draw *draw, struct oct_view_rect r, int line,
                          const char *string, uint32_t rgb);
/* In the middle of a row, from its left end on; what has no room loses its end. */
void oct_draw_words_in(struct oct_draw *draw, struct oct_view_rect row, const char *words,
                       uint32_t rgb);
/* A line of words in the corner of the B-scan's panel, below those before it. */
void oct_draw_corner(struct oct_draw *draw, const char *string, uint32_t rgb);
/* The room of such a line, that wide, with its shade. */
struct oct_view_rect oct_draw_corner_room(struct oct_draw *draw, int width);
/* Without a font: 0, and nothing is drawn. */
int oct_draw_text(struct oct_draw *draw, enum oct_text_size size, int x, int y, const char *string,
                  uint32_t rgb);
int oct_draw_text_width(struct oct_draw *draw, enum oct_text_size size, const char *string);
/* The width of so many normal letters; letters of the layout without a font. */
int oct_draw_letters_width(struct oct_draw *draw, unsigned n);
int oct_draw_line_height(const struct oct_draw *draw, enum oct_text_size size);
/* Replaces letters by an ellipsis until the text is at most `most_px` wide, and returns its width.
 * The text may become "" or the ellipsis alone. */
int oct_draw_text_fit(struct oct_draw *draw, enum oct_text_size size, char *text, size_t n_bytes,
                      int most_px, enum oct_draw_cut where);
void oct_draw_clip(struct oct_draw *draw, const struct oct_view_rect *r); /* NULL: none */

/* ---- the areas ---- */

enum oct_err oct_draw_bscan(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err);
/* What lies over a picture that is not live: the frame with its word, below what is measured; the
 * hatching, which stands over another panel of live pictures too (r), and its words, above it. */
void oct_draw_veil(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_veil_panel(struct oct_draw *draw, const struct oct_view_model *model,
                         struct oct_view_rect r);
void oct_draw_veil_words(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_marks(struct oct_draw *draw, const struct oct_view_model *model);
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
/* With its words and the gaps of places that moved. */
enum oct_err oct_draw_angiogram(struct oct_draw *draw, const struct oct_view_model *model,
                                struct oct_error *err);
/* Playback, in that place: how thick the retina is. */
enum oct_err oct_draw_thickness(struct oct_draw *draw, const struct oct_view_model *model,
                                struct oct_error *err);
/* Playback: the B-scan's words, the slider in the timeline's place, the slice, and where B-scan and
 * slice lie: on the en face picture, which lies in r, and the slice on the B-scan. */
void oct_draw_playback(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_slider(struct oct_draw *draw, const struct oct_view_model *model);
enum oct_err oct_draw_slice(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err);
void oct_draw_slice_place(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_profile(struct oct_draw *draw, const struct oct_view_model *model);
/* In the place of the spectrum: how a layer moves, below the A-lines that it was seen in. */
void oct_draw_trace(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_spectrum(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_timeline(struct oct_draw *draw, const struct oct_view_model *model);
int oct_draw_status_height(struct oct_draw *draw, const struct oct_view_model *model, int width,
                           int text_px);
void oct_draw_status(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_header(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model);
/* The height of the strip of alarms, always the same. */
int oct_draw_banner_height(struct oct_draw *draw);
void oct_draw_banner(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_banner_tip(struct oct_draw *draw, const struct oct_view_model *model);
/* The day's patients; the width that they need, 0: they are not shown. */
int oct_draw_worklist_width(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_worklist(struct oct_draw *draw, const struct oct_view_model *model);
/* The site's scans, in the same place; and how wide they are. */
int oct_draw_scans_width(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_scans(struct oct_draw *draw, const struct oct_view_model *model);
/* The folder's recordings, over all panels. */
enum oct_err oct_draw_exams(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err);
/* Takes clauses away from the end until the text has room: a sentence is not cut in its middle. */
void oct_draw_leave_out_clauses(struct oct_draw *draw, enum oct_text_size size, char *text,
                                int room);
void oct_draw_message(struct oct_draw *draw, const struct oct_view_model *model);
void oct_draw_help(struct oct_draw *draw, const struct oct_view_model *model);

#endif
