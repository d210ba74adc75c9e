/* octctl register: frames onto one another, and their average. Its modes (--as frames, ...) are
 * rows of a table and a file each; what they share is in register.c. */
#ifndef OCT_TOOLS_REGISTER_H
#define OCT_TOOLS_REGISTER_H

#include "analysis/align/sequence.h"
#include "formats/pictures.h"
#include "tools/analyse/job.h"
#include "tools/options.h"

#include <stdbool.h>
#include <stdint.h>

struct cJSON;
struct oct_csv;
struct oct_plot_series;
struct oct_register_mode;
struct oct_results;

/* As given; NULL, NaN and false where not. */
struct oct_register_given {
    struct oct_param_texts own; /* of the rows of oct_register_settings */
    const char *reference, *frames, *strip, *roi, *mask, *skip, *shifts, *pixel_um, *slab, *csv,
        *png;
    double invalid;
    bool shifts_only, stack, lateral;
    struct oct_job_options job;
};

struct oct_register_settings {
    int as, model, crop, domain, interpolation;
    uint32_t search, far, passes; /* search 0: a third of the side; of strips OCT_STRIP_SEARCH */
    double min_score;
};

struct oct_register {
    struct oct_job job;
    struct oct_register_given given;
    struct oct_register_settings settings;
    const struct oct_register_mode *mode;
    struct oct_pictures_options options;
    struct oct_sequence_setup setup; /* all that needs no frame: model .. as_power, backend */
    bool is_linear;                  /* --domain linear: dB is averaged as powers */
    const char *reference_path;      /* --reference FILE; NULL: none */

    /* What is registered: filled by oct_register_open. */
    struct oct_pictures *pictures;
    uint64_t n;
    uint32_t height, width; /* of the first */
    double um[2];           /* NaN: unknown */
    bool is_db;
    uint64_t *time_ns; /* [n] */
    uint8_t *is_read;  /* [n]; time_ns of the others is unknown */
    uint8_t *skip;     /* [n]; NULL: none */

    struct oct_results *h5; /* OUT.h5; NULL: there is none */
    void *own;              /* of the mode, of mode->bytes, zero at first */
};

struct oct_register_mode {
    const char *kind;    /* of OUT.h5 */
    const char *counted; /* by the progress: "frames" */
    size_t bytes;        /* of register->own */

    /* Registers; what streams into OUT.h5 is written already. */
    enum oct_err (*work)(struct oct_register *r, struct oct_error *err);
    void (*write_h5)(struct oct_register *r);

    /* Files; the context is the struct oct_register. draw_motion NULL: there is none. */
    oct_output_writer *write_csv, *draw, *draw_motion;

    void (*print)(const struct oct_register *r); /* behind "OUT.h5: " */
    void (*json)(const struct oct_register *r, struct cJSON *tree);
};

extern const struct oct_register_mode oct_register_frames, oct_register_volume, oct_register_mosaic;

/* Opens the pictures, and looks at the first one for what holds of all. */
enum oct_err oct_register_open(struct oct_register *r, struct oct_error *err);

/* As oct_pictures_read; time_ns and is_read say when. OCT_E_STATE: interrupted. */
enum oct_err oct_register_read(struct oct_register *r, uint64_t i, struct oct_picture *picture,
                               struct oct_error *err);

/* --shifts, a table as --csv writes it: columns frame, line, dy_px, dx_px are used, others may be
 * there. A frame with one row has that shift on every line, else lines between are interpolated;
 * frames without rows are not ok. *shifts: [n][height], freed by the caller. */
enum oct_err oct_register_read_shifts(const struct oct_register *r, struct oct_strip **shifts,
                                      struct oct_error *err);

/* For sources: the context is the struct oct_register. */
void oct_register_show(void *r, uint64_t done, uint64_t all);

/* --csv, as --shifts reads it: a row of a line that is moved so. sd: of dy and dx. */
#define OCT_REGISTER_CSV "frame,line,time_s,dy_px,dx_px,dy_um,dx_um,dy_sd_px,dx_sd_px,score,file"
void oct_register_put_row(const struct oct_register *r, struct oct_csv *csv, uint64_t frame,
                          uint32_t line, double dy, double dx, const double sd[2], double score);

/* A dataset f64 [n][2], px: a pair a picture, along the two axes that are named so. */
void oct_register_write_pairs(struct oct_register *r, const char *name, const char *axes,
                              void (*pair_of)(const void *own, uint64_t i, double pair[2]));

/* Begins OUT.h5, if there is to be one. */
enum oct_err oct_register_create_h5(struct oct_register *r, struct oct_error *err);

enum oct_err oct_register_draw_motion(const char *path, bool force, const char *x_label,
                                      const struct oct_plot_series *series, unsigned n_series,
                                      struct oct_error *err);

/* Shifts from the least to the most, px. */
struct oct_register_range {
    double dy[2], dx[2];
};
void oct_register_range_grow(struct oct_register_range *range, double dy, double dx);

/* The median of n scores, which are sorted; NaN: there is none. */
double oct_register_median(double *scores, size_t n);

#endif
