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

/* The mean of the valid ones of 2 x 2 pixels each; valid where two of them are. `binned` has half
 * the sides already, and a mask where the picture has one. */
void oct_picture_bin(const struct oct_picture *picture, struct oct_picture *binned);

/* ---- the sums over an overlap that ZNCC needs beside the products, and ZNCC from them ----
 *
 *     zncc = (P - S_f S_g / N) / sqrt((S_ff - S_f^2 / N) (S_gg - S_g^2 / N))
 *
 * Of pictures without masks S_f .. S_gg are sums of boxes: those of whole columns are kept and
 * slide along with dy, those along x are differences of running sums. One thread uses an
 * overlap. */
/* Sums over rows first .. end - 1, in double. */
struct oct_column_sums {
    const struct oct_level *level;
    uint32_t first, end;
    double *sums, *squares;            /* [width] a column */
    double *running, *running_squares; /* [width + 1]: of the columns before x */
};

/* Rows y0 .. y0 + n_rows - 1 of f, against g. */
struct oct_zncc_sums {
    const struct oct_level *f, *g;
    uint32_t y0, n_rows;
    double least; /* N below which ZNCC is not defined */
    int32_t dy;
    uint32_t first, end; /* the rows of f that meet g at dy; end <= first: none */
    struct oct_column_sums f_sums, g_sums;
};

/* Scratch memory for pictures of this width. OCT_E_NO_MEMORY. */
enum oct_err oct_zncc_sums_init(struct oct_zncc_sums *overlap, uint32_t width,
                                struct oct_error *err);
void oct_zncc_sums_finish(struct oct_zncc_sums *overlap); /* of an empty one too */

/* What g holds has changed; otherwise its sums are kept from window to window. */
void oct_zncc_sums_forget(struct oct_zncc_sums *sums);

/* Begins with a window. `part`: of the window's valid pixels that must meet those of g. */
void oct_zncc_sums_begin(struct oct_zncc_sums *overlap, const struct oct_level *f,
                         const struct oct_level *g, uint32_t y0, uint32_t n_rows, double part);

/* Whether one of the two has a mask: the sums are correlations too then (struct oct_products). */
bool oct_zncc_sums_is_masked(const struct oct_zncc_sums *overlap);

/* Goes to dy. */
void oct_zncc_sums_move(struct oct_zncc_sums *overlap, int32_t dy);

/* Sums of products at one shift; with masks all of them, else only `values`. */
struct oct_products {
    double values;            /* P */
    double n, f, g, f_f, g_g; /* N, S_f, S_g, S_ff, S_gg */
};

/* ZNCC at (dy, dx), dy as of the last move; NaN: not defined. */
float oct_zncc_sums_score(const struct oct_zncc_sums *overlap, int32_t dx,
                          const struct oct_products *products);

/* The same with the products summed here: for single shifts. */
float oct_zncc_sums_score_at(struct oct_zncc_sums *overlap, int32_t dy, int32_t dx);

/* The scores at (dy - 1 .. dy + 1, dx - 1 .. dx + 1), in one pass over both pictures. */
void oct_zncc_sums_score_around(struct oct_zncc_sums *overlap, int32_t dy, int32_t dx,
                                float around[3][3]);

/* Climbs from (match->dy, match->dx), within max_dy and max_dx of 0, until no neighbour is higher
 * or after most_steps. Fills score and around. */
struct oct_match;
void oct_zncc_sums_climb(struct oct_zncc_sums *overlap, struct oct_match *match, uint32_t max_dy,
                         uint32_t max_dx, unsigned most_steps);

#endif
