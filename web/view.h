/* What a model shows, as messages to browsers: each is made once, however many look.
 *
 * A state is a JSON text of octview's own words (docs/web.md lists its members), its serial `n`.
 * A picture is binary, little-endian:
 *
 *   0 "OCTP"   4 u16 version 1   6 u16 kind   8 u32 serial   12 u32 form (encode.h), 256: PNG
 *   16 u32 width   20 u32 height: as encoded   24 u32 A-lines   28 u32 depth: of the picture
 *   32 f64 lo   40 f64 hi: what black and white stand for
 *   48 u64 frame_num   56 u32 bytes of JSON   60 u32 bytes of the image
 *   64 JSON: what is drawn and said over it (pen.h), title, unit, um; then JPEG or PNG
 *
 * One thread. */
#ifndef OCT_WEB_VIEW_H
#define OCT_WEB_VIEW_H

#include "viewer/model/model.h"
#include "web/encode.h"

enum oct_web_kind {
    OCT_WEB_BSCAN,
    OCT_WEB_ENFACE,
    OCT_WEB_SECOND, /* the angiogram; in playback how thick the retina is */
    OCT_WEB_SLICE,  /* playback: across the B-scans */
    OCT_WEB_N_KINDS
};

/* From the best on: how large and how good a JPEG is. */
#define OCT_WEB_N_LEVELS 4u

#define OCT_WEB_BEFORE 32u /* bytes that are free before a message */
struct oct_web_message {
    unsigned char *memory; /* owned */
    unsigned char *bytes;  /* OCT_WEB_BEFORE behind that */
    size_t n, room;
    uint32_t serial; /* of what it shows; 0: of nothing */
};

struct oct_web_view;

/* octds: the model that octd is heard by, which says of a recording that is played what octd does
 * meanwhile. Models are borrowed; the encoder may serve several views. NULL: no memory. */
struct oct_web_view *oct_web_view_create(struct oct_view_model *model,
                                         const struct oct_view_model *octds,
                                         struct oct_web_encoder *encoder);
void oct_web_view_destroy(struct oct_web_view *view);
struct oct_view_model *oct_web_view_model(struct oct_web_view *view);

/* Looks for what is new in the model. */
void oct_web_view_refresh(struct oct_web_view *view);

/* Serials change with what there is to show; 0: nothing. */
uint32_t oct_web_view_serial(const struct oct_web_view *view, enum oct_web_kind kind);
uint32_t oct_web_view_state_serial(const struct oct_web_view *view);

/* Borrowed until the next call for the same; NULL: there is none. */
const struct oct_web_message *oct_web_view_state(struct oct_web_view *view);
const struct oct_web_message *oct_web_view_picture(struct oct_web_view *view,
                                                   enum oct_web_kind kind, unsigned level);

/* The B-scan with all of its values, as PNG: no more often than every 200 ms, and for a tenth of
 * the time at most, however many ask. has: there is one of `since` or newer, or one may be made. */
bool oct_web_view_has_whole(const struct oct_web_view *view, uint32_t since, uint64_t now_ns);
const struct oct_web_message *oct_web_view_whole(struct oct_web_view *view, uint64_t now_ns);

/* What a key of octview's table (viewer/model/action.h) does here, of live pictures or of a
 * recording that is played: for whoever operates, for all who look, or nothing: it is the browser's
 * own matter, or none of octweb's. */
enum oct_web_right { OCT_WEB_RIGHT_NONE, OCT_WEB_RIGHT_ALL, OCT_WEB_RIGHT_OPERATE };
enum oct_web_right oct_web_right_of(bool plays, enum oct_view_action action);

#endif
