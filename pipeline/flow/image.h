/* What an image is: its quantity, type and shape, so that whoever gets one (publisher, recorder,
 * viewer, another analysis) needs to know nothing else of where it came from.
 *
 * All images of one ring have one form. Only dims[0] may be smaller in a single image than the
 * form says (a table with fewer rows, or none). Arrays are row-major, the last axis fastest. */
#ifndef OCT_PIPELINE_FLOW_IMAGE_H
#define OCT_PIPELINE_FLOW_IMAGE_H

#include "pipeline/base/err.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_IMAGE_MAX_RANK 3u
#define OCT_IMAGE_MAX_LABELS 32u
#define OCT_IMAGE_MAX_NUMBERS 24u
#define OCT_IMAGE_MAX_OBJECT_BYTES 49152u /* of the text of an image's objects */
#define OCT_IMAGE_NAME_BYTES 32 /* with the NUL: lower-case letters, digits, '_'; a letter first */

/* Of u8 images: pixel p stands for lo + p / 255 * (hi - lo) of the quantity's unit. */
enum oct_quantity {
    OCT_QUANTITY_INTENSITY,     /* counts^2 */
    OCT_QUANTITY_INTENSITY_DB,  /* 10 * log10(counts^2) */
    OCT_QUANTITY_LENGTH,        /* um */
    OCT_QUANTITY_DEPTH,         /* depth pixels of a picture, 0 in the middle of the first one */
    OCT_QUANTITY_DECORRELATION, /* 0: still, 1: all new */
    OCT_QUANTITY_SIGNIFICANCE,  /* standard deviations */
    OCT_QUANTITY_VELOCITY,      /* mm/s, deeper is positive */
    OCT_QUANTITY_PHASE,         /* rad, the same where lengths are not known */
    OCT_QUANTITY_NUMBERS,       /* columns; each label says what its column is, and in which unit */
    OCT_N_QUANTITIES
};

/* What is said of each image beside its pixels: a member of the topic's header, a column beside the
 * dataset. Several values make an array. */
struct oct_image_number {
    const char *name;  /* lower-case letters, digits, '_'; a letter first; static storage */
    unsigned n_values; /* 1 or more */
};

/* The rows of a table are also told as objects, for readers of the topic's header alone: an array
 * under this name, of which each item is a row. All in static storage. */
struct oct_image_objects {
    const char *name;        /* as a number's */
    const char *const *keys; /* [columns] the members' names, as a number's */
    /* [columns] for the numbers 0, 1, .. of a column, as names, NULL-terminated; a NULL column
     * stays a number. What has no word is null. NULL: no column has words. */
    const char *const *const *words;
};

struct oct_image_form {
    char name[OCT_IMAGE_NAME_BYTES]; /* of the topic and of the dataset */
    enum oct_quantity quantity;
    enum oct_sample_type type;
    unsigned rank; /* 1..3 */
    uint32_t dims[OCT_IMAGE_MAX_RANK];
    double spacing_um[OCT_IMAGE_MAX_RANK]; /* of each axis; NaN: unknown, or no length */
    const char *axes[OCT_IMAGE_MAX_RANK];  /* "bscan", "line", "depth", ...; static storage */
    const char *const *labels;             /* [dims[rank - 1]] static storage; NULL: none */
    bool of_volume; /* one image a volume, each replaces the one before; else one image a B-scan */
    uint32_t bscans_an_image; /* above 1: else one image for so many neighbouring B-scans, which
                                 share a row of the dataset */
    const struct oct_image_number *numbers; /* [n_numbers] static storage */
    unsigned n_numbers; /* OCT_IMAGE_MAX_NUMBERS values in all at most: frame->numbers */
    const struct oct_image_objects *objects; /* of labelled f32 tables; NULL: none */
    uint32_t n_beside; /* f32 beside the pixels of each, for another analysis (frame->values) */
    bool at_root;      /* its dataset is also to be found as /NAME */
};

/* "intensity", "counts^2". */
const char *oct_quantity_name(enum oct_quantity quantity);
const char *oct_quantity_unit(enum oct_quantity quantity);

/* Images of this form that a volume of n_bscans has. */
uint32_t oct_image_form_rows(const struct oct_image_form *form, uint32_t n_bscans);

/* Values that frame->numbers has. */
unsigned oct_image_form_n_values(const struct oct_image_form *form);

/* Bytes of the largest image of this form. The form must have been checked. */
size_t oct_image_form_bytes(const struct oct_image_form *form);

/* OCT_E_ARG: the name, the rank, a dimension, the type, the labels, the numbers, the objects or the
 * size (more than OCT_MAX_BSCAN_SAMPLES values) cannot be. */
enum oct_err oct_image_form_check(const struct oct_image_form *form, struct oct_error *err);

/* Distances between neighbours; NaN: unknown. */
struct oct_spacing {
    double bscan_um, line_um, depth_um;
};

struct oct_plan;

/* Of a field that is width_um by height_um: width over A-lines, height over n_bscans, by the
 * pattern of the plan's scan (a circle's lines lie on its circumference; where neighbours lie at no
 * one distance it is unknown), depth of the plan's pixels in tissue of the refractive index.
 * Lengths of 0 are unknown, an index of 0 is 1. */
struct oct_spacing oct_spacing_of_field(const struct oct_plan *plan, double width_um,
                                        double height_um, uint32_t n_bscans,
                                        double refractive_index);

/* The form of the pictures that an engine makes: "bscan", [M][D]. */
void oct_image_form_of_bscan(struct oct_image_form *form, const struct oct_geometry *geometry,
                             bool log, const struct oct_spacing *spacing);

#endif
