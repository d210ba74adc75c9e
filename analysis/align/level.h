/* Pictures made ready for sums of products: less the mean of their valid pixels, over their
 * standard deviation, 0 where masked. Then f32 sums do not cancel, whatever the offset and the
 * scale were. */
#ifndef OCT_ANALYSIS_ALIGN_LEVEL_H
#define OCT_ANALYSIS_ALIGN_LEVEL_H

#include "numeric/picture.h"

/* What is multiplied with what: values; with masks also their squares, and 1 where valid. */
enum oct_plane { OCT_PLANE_VALUES, OCT_PLANE_SQUARES, OCT_PLANE_VALID, OCT_N_PLANES };

struct oct_level {
    uint32_t height, width;
    float *planes[OCT_N_PLANES]; /* [height][width]; the last two are NULL without masks */
    bool has_contrast;           /* else the planes are not set */
    bool is_masked;              /* some pixel of this picture is not valid */
    uint64_t n_valid;
};

/* masked: room for masks. OCT_E_NO_MEMORY; *level is empty then. */
enum oct_err oct_level_init(struct oct_level *level, uint32_t height, uint32_t width, bool masked,
                            struct oct_error *err);
void oct_level_finish(struct oct_level *level); /* of an empty one too */

/* The picture has the level's size; a level without room for masks takes none. */
void oct_level_set(struct oct_level *level, const struct oct_picture *picture);

/* The mean of 2 x 2 pixels each, of size height / 2 x width / 2, as a picture; `binned` has that
 * size already, and a mask if the level has room for one: at least two of the four are valid. */
void oct_level_bin(const struct oct_level *level, struct oct_picture *binned);

#endif
