/* A GenICam camera, by libaravis. Private to this room: the program's only part that knows aravis.
 *
 *     open -> { set } -> prepare -> start -> { next -> release } -> close
 *
 * Frames come by a thread of aravis; all calls are one thread's. */
#ifndef OCT_TOOLS_GENICAM_GENICAM_H
#define OCT_TOOLS_GENICAM_GENICAM_H

#include "pipeline/base/err.h"
#include "tools/genicam/unpack.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct oct_genicam;

/* What the camera sends, as it was configured at start. */
struct oct_genicam_form {
    uint32_t n_lines, n_samples; /* of a frame: height and width */
    enum oct_pixel_format format;
    bool has_wide_ids; /* USB3 Vision: frame ids of 64 bits */
    char id[128];      /* as it was asked for, else "Vendor Model", for messages */
};

/* One frame that has arrived whole. */
struct oct_genicam_frame {
    const uint8_t *bytes;
    uint32_t n_lines; /* may be fewer than those of the form */
    uint32_t row_padding;
    uint64_t id;
    uint64_t time_ns;   /* the camera's clock; 0: it has none */
    uint64_t system_ns; /* when it came */
    void *buffer;       /* aravis' */
};

/* The libraries' version, "0.8.26". */
void oct_genicam_version(char *text, size_t text_bytes);

/* Prints a line a camera that answers; returns how many. with_fake: aravis' simulated one too. */
unsigned oct_genicam_list(FILE *out, bool with_fake);

/* id: a name that list prints, an address, "Fake_1" for aravis' simulated camera; NULL: the first
 * that answers. An acquisition that it goes on with is ended. OCT_E_IO: none, or another program
 * has it. OCT_E_CLOSED, here and below: it answers no more. */
enum oct_err oct_genicam_open(struct oct_genicam **camera, const char *id, struct oct_error *err);

/* "FEATURE=VALUE", or "FEATURE" of a command, which is executed. OCT_E_CONFIG. */
enum oct_err oct_genicam_set(struct oct_genicam *camera, const char *text, struct oct_error *err);

/* Makes room for frames of the size that is set now. OCT_E_CONFIG: a pixel format that is not read
 * (names those that are). */
enum oct_err oct_genicam_prepare(struct oct_genicam *camera, struct oct_genicam_form *form,
                                 struct oct_error *err);

/* Begins the acquisition. */
enum oct_err oct_genicam_start(struct oct_genicam *camera, struct oct_error *err);

/* Waits for a whole frame up to timeout_ms. OCT_E_AGAIN: none came; OCT_E_CLOSED: the camera is
 * gone; OCT_E_FORMAT: the camera sends other frames than it said. Broken frames are counted and
 * left out. */
enum oct_err oct_genicam_next(struct oct_genicam *camera, uint32_t timeout_ms,
                              struct oct_genicam_frame *frame, struct oct_error *err);
void oct_genicam_release(struct oct_genicam *camera, const struct oct_genicam_frame *frame);

/* Frames that came in pieces, and those for which no memory was free; since start. */
void oct_genicam_counts(const struct oct_genicam *camera, uint64_t *n_broken, uint64_t *n_no_room);

void oct_genicam_close(struct oct_genicam *camera); /* NULL is fine */

#endif
