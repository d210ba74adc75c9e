/* octctl register: what its modes (--as frames, ...) share. A mode is a row in the table of
 * cmd_register.c and a file of its own. */
#ifndef OCT_TOOLS_REGISTER_H
#define OCT_TOOLS_REGISTER_H

#include "analysis/align/sequence.h"
#include "config/config.h"
#include "formats/pictures.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The options as given; NULL and 0 where not. */
struct oct_register_options {
    const char *as, *model, *reference, *strip, *roi, *mask, *skip, *shifts, *crop, *domain;
    const char *interpolation, *um, *en_face, *csv, *png;
    double invalid, min_score;
    uint64_t search, far, passes;
    bool shifts_only, stack, lateral, json, force;
};

/* A command line that is understood. */
struct oct_register {
    struct oct_register_options options;
    const struct oct_config *config;
    const char *const *inputs; /* [n_inputs] */
    unsigned n_inputs;
    const char *out; /* NULL: --shifts-only without a file */
    struct oct_pictures_options pictures;
    struct oct_sequence_setup setup; /* all that needs no frame: model .. as_power, backend */
    bool is_linear;                  /* --domain linear: dB is averaged as powers */
    const char *reference_path;      /* --reference FILE; NULL: none */

    const volatile sig_atomic_t *cancel; /* not 0: SIGINT or SIGTERM has come */
};

/* What an option is for: a mode, and of frames a model. */
enum oct_register_use {
    OCT_REGISTER_FRAMES = 1, /* and --as bscans */
    OCT_REGISTER_VOLUME = 2,
    OCT_REGISTER_MOSAIC = 4,
};

struct oct_register_mode {
    const char *name; /* of --as */
    enum oct_register_use use;
    /* Prints the summary and writes the files. */
    enum oct_err (*run)(const struct oct_register *r, struct oct_error *err);
};

extern const struct oct_register_mode oct_register_frames, oct_register_bscans, oct_register_volume,
    oct_register_mosaic;

/* Reads the options' texts into r->pictures and r->setup. OCT_E_CONFIG: which option is wrong, and
 * what it needs. */
enum oct_err oct_register_understand(struct oct_register *r, struct oct_error *err);

/* Of a command line that is understood: whether the mode and the model take every option that is
 * given. OCT_E_CONFIG: which one they do not. */
enum oct_err oct_register_check_options(const struct oct_register *r,
                                        const struct oct_register_mode *mode,
                                        struct oct_error *err);

/* As oct_pictures_read. OCT_E_STATE: interrupted. */
enum oct_err oct_register_read(const struct oct_register *r, struct oct_pictures *pictures,
                               uint64_t frame, struct oct_picture *picture,
                               struct oct_pictures_info *info, struct oct_error *err);

/* --skip "3,7-9" as a list for n frames; NULL text: NULL list. The caller frees *skip. */
enum oct_err oct_register_read_skip(const char *text, uint64_t n_frames, uint8_t **skip,
                                    struct oct_error *err);

/* Given shifts, from a table as --csv writes it: columns frame, line, dy_px, dx_px are used, others
 * may be there. A frame with one row has that shift on every line, else lines between are
 * interpolated; frames without rows are not ok. *shifts: [n_frames][height], freed by the
 * caller. */
enum oct_err oct_register_read_shifts(const char *path, uint64_t n_frames, uint32_t height,
                                      struct oct_strip **shifts, struct oct_error *err);

/* What is known of the frames. */
struct oct_register_frames_info {
    uint64_t n_frames;
    uint64_t *time_ns; /* [n_frames] */
    uint8_t *is_read;  /* [n_frames]; time_ns of the others is unknown */
    double um[2];      /* NaN: unknown */
    bool is_db;
    const struct oct_pictures *pictures;
};

/* The files and the summary of a registered sequence. */
enum oct_err oct_register_write(const struct oct_register *r, struct oct_sequence *sequence,
                                const struct oct_register_frames_info *info, struct oct_error *err);

#endif
