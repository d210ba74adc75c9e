/* Pictures of B-scans as they are shown, back to numbers, an A-line at a time. Pure but for the
 * tables, which one thread uses at a time. */
#ifndef OCT_ANALYSIS_LAYERS_FIND_PIXELS_H
#define OCT_ANALYSIS_LAYERS_FIND_PIXELS_H

#include "pipeline/flow/frame.h"

struct oct_surface_pixels {
    const struct oct_image_frame *bscan;
    enum oct_sample_type type;
    bool is_db; /* else counts^2 */
    uint32_t depth;
    float value[256], brightness[256]; /* of a u8 pixel */
};

/* input: the form of the B-scan. The B-scan is borrowed. */
void oct_surface_pixels_begin(struct oct_surface_pixels *pixels, const struct oct_image_form *input,
                              const struct oct_image_frame *bscan);

/* [depth] in the unit of the form. */
void oct_surface_pixels_values(const struct oct_surface_pixels *pixels, uint32_t line,
                               float *values);

/* [depth] in dB, in which layers are traced; of counts^2 within 0.3 dB. What is no light is not
 * finite. */
void oct_surface_pixels_brightness(const struct oct_surface_pixels *pixels, uint32_t line,
                                   float *brightness);

/* Whether the A-line came: one that did not has no light. Where info.missing_lines is 0, all
 * did. */
bool oct_surface_pixels_came(const struct oct_surface_pixels *pixels, uint32_t line);

#endif
