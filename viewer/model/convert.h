/* From a picture as it lies on the wire to what a screen shows: upright, ARGB. No SDL. */
#ifndef OCT_VIEWER_MODEL_CONVERT_H
#define OCT_VIEWER_MODEL_CONVERT_H

#include "viewer/model/contrast.h"
#include "viewer/model/picture.h"

#include <stddef.h>
#include <stdint.h>

/* A picture with sides beyond this is thinned out (every step-th line, every step-th pixel):
 * no screen shows more, and many renderers hold no larger texture. */
#define OCT_VIEW_MAX_SIDE_PX 4096u

/* The upright picture: n_columns A-lines side by side, n_rows depths, depth downward. */
struct oct_view_upright {
    unsigned n_columns, n_rows;
    unsigned column_step, row_step; /* 1 unless thinned out */
};

struct oct_view_upright oct_view_upright_of(const struct oct_picture_header *header);

/* Transposes [n_lines][depth] into argb [n_rows][n_columns], rows `pitch_px` pixels apart. The
 * contrast must have been told the picture's limits (oct_view_contrast_publish). */
void oct_view_convert(const struct oct_view_picture *picture,
                      const struct oct_view_contrast *contrast, uint32_t *argb, size_t pitch_px);

/* The same for a part, magnified: screen pixel (x, y) of width x height shows the pixel of A-line
 * line0 + (x + 1/2) * lines_px and depth depth0 + (y + 1/2) * depth_px, none of them thinned out.
 * What lies beyond the picture's edges shows its edge. */
struct oct_view_part {
    int width, height;
    double line0, lines_px, depth0, depth_px;
};
void oct_view_convert_part(const struct oct_view_picture *picture,
                           const struct oct_view_contrast *contrast,
                           const struct oct_view_part *part, uint32_t *argb, size_t pitch_px);

#endif
