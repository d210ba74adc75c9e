/* What an image is: its quantity, type and shape, so that whoever gets one (publisher, recorder,
 * viewer, another analysis) needs to know nothing else of where it came from.
 *
 * All images of one ring have one form. Only dims[0] may be smaller in a single image than the
 * form says (a table with fewer rows, or none). Arrays are row-major, the last axis fastest. */
#ifndef OCT_PIPELINE_FLOW_IMAGE_H
#define OCT_PIPELINE_FLOW_IMAGE_H

#include "pipeline/base/err.h"
#include "pipeline/plan/geometry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_IMAGE_MAX_RANK 3u
#define OCT_IMAGE_MAX_LABELS 32u
#define OCT_IMAGE_NAME_BYTES 32 /* with the NUL: lower-case letters, digits, '_'; a letter first */

/* Of u8 images: pixel p stands for lo + p / 255 * (hi - lo) of the quantity's unit. */
enum oct_quantity {
    OCT_QUANTITY_INTENSITY,    /* counts^2 */
    OCT_QUANTITY_INTENSITY_DB, /* 10 * log10(counts^2) */
    OCT_QUANTITY_LENGTH,       /* um */
    OCT_QUANTITY_NUMBERS,      /* columns; each label says what its column is, and in which unit */
    OCT_N_QUANTITIES
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
};

/* "intensity", "counts^2". */
const char *oct_quantity_name(enum oct_quantity quantity);
const char *oct_quantity_unit(enum oct_quantity quantity);

/* Bytes of the largest image of this form. The form must have been checked. */
size_t oct_image_form_bytes(const struct oct_image_form *form);

/* OCT_E_ARG: the name, the rank, a dimension, the type, the labels or the size (more than
 * OCT_MAX_BSCAN_SAMPLES values) cannot be. */
enum oct_err oct_image_form_check(const struct oct_image_form *form, struct oct_error *err);

/* Distances between neighbours; NaN: unknown. */
struct oct_spacing {
    double bscan_um, line_um, depth_um;
};

/* The form of the pictures that an engine makes: "bscan", [M][D]. */
void oct_image_form_of_bscan(struct oct_image_form *form, const struct oct_geometry *geometry,
                             bool log, const struct oct_spacing *spacing);

#endif
