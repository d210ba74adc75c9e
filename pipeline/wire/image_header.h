/* Images out, of any topic (contract section 5, "B-scans out", and section 6): the JSON header
 * between the topic's name and the values. Its keys are those of the `bscan` topic, so that a
 * client of one topic reads them all, and a few that say what the image is:
 *
 *   frame_num acquisition_id dtype dsize dataset compression shape time_ns missing_lines lo hi
 *   volume bscan                          as for `bscan`; dataset is "analysis/NAME"; shape has as
 *                                         many strings as the image has axes; its first may be "0"
 *   quantity unit                         "intensity" "dB", "length" "um", "depth" "px",
 *                                         "numbers" "as labelled"
 *   axes spacing_um                       [NAME, ...], [um or null, ...]
 *   whole                                 false: of a volume that still grows
 *   labels                                [NAME, ...] of the columns; absent where there are none
 *   values                                {NAME: number or null}: the values themselves, where the
 *                                         image is one row of labelled numbers
 *   NAME                                  each number that the form has: a number or null, or an
 *                                         array of such
 *   NAME                                  the rows of a table that has objects: [{KEY: number, word
 *                                         or null, ...}, ...]; readers here take the values
 *
 * Written without allocations. No sockets here. */
#ifndef OCT_PIPELINE_WIRE_IMAGE_HEADER_H
#define OCT_PIPELINE_WIRE_IMAGE_HEADER_H

#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/flow/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_IMAGE_HEADER_BYTES 65536 /* more than any header we write */
#define OCT_IMAGE_LABEL_BYTES 32
#define OCT_IMAGE_UNIT_BYTES 24

/* A member beside those above. */
struct oct_image_header_number {
    char name[OCT_IMAGE_NAME_BYTES];
    unsigned n_values;
    double values[OCT_IMAGE_MAX_NUMBERS]; /* NaN: null */
};

/* As it came: everything is a copy, nothing is owned elsewhere. */
struct oct_image_header {
    char dataset[OCT_IMAGE_NAME_BYTES + 16]; /* "analysis/enface" */
    char acquisition_id[64];
    uint64_t frame_num, time_ns, volume;
    uint32_t bscan, missing_lines;
    enum oct_sample_type type;
    unsigned rank;
    uint32_t dims[OCT_IMAGE_MAX_RANK];
    double spacing_um[OCT_IMAGE_MAX_RANK]; /* NaN: unknown */
    char unit[OCT_IMAGE_UNIT_BYTES];       /* "": unknown */
    bool whole;
    double lo, hi;
    unsigned n_labels;
    char labels[OCT_IMAGE_MAX_LABELS][OCT_IMAGE_LABEL_BYTES];
    unsigned n_numbers;
    struct oct_image_header_number numbers[OCT_IMAGE_MAX_NUMBERS];
};

/* Writes the JSON text of a frame that has a form (NUL-terminated); returns its length. 0, and an
 * empty text: it did not fit, lo or hi is not finite, or a label is not one line of UTF-8 of less
 * than OCT_IMAGE_LABEL_BYTES, or a number has the name of a key above. acquisition_id:
 * "<session>-<acquisition>". Spacings that are not above 0 are written as null. */
size_t oct_image_header_encode(const struct oct_image_frame *frame, const char *acquisition_id,
                               char *json, size_t json_bytes);

/* Parses and checks untrusted JSON against the size of the values. OCT_E_FORMAT says what is
 * wrong. Further keys that hold numbers are kept as far as there is room, others are ignored; keys
 * beyond those of `bscan` may be absent (spacing NaN, no unit, whole, no labels). All texts are
 * one line of UTF-8; there are as many labels as the last axis is long, or none. At most
 * OCT_MAX_BSCAN_SAMPLES values. Integers above 2^53 come out rounded to a double. On failure the
 * header is all zero. */
enum oct_err oct_image_header_decode(struct oct_image_header *header, const char *json,
                                     size_t json_bytes, size_t value_bytes, struct oct_error *err);

/* The value in the column of that label, in a row of labelled f32 numbers; NaN: there is none. row
 * has as many values as there are labels. */
double oct_image_header_value(const struct oct_image_header *header, const float *row,
                              const char *label);

/* Value i of the number of that name; NaN: there is none. */
double oct_image_header_number(const struct oct_image_header *header, const char *name, unsigned i);

#endif
