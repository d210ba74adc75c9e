/* Products of rows by FFT, for searches of windows: the spectrum of every row is computed once a
 * picture; the sums of products of a window at one dy are then a sum of products of spectra over
 * its rows, and one inverse transform for all dx.
 *
 * Plans are shared by all threads; scratch memory is a thread's own. */
#ifndef OCT_ANALYSIS_ALIGN_ROWS_H
#define OCT_ANALYSIS_ALIGN_ROWS_H

#include "analysis/align/level.h"

struct oct_row_plan; /* the transforms of rows of one width */

/* Rows of `width` pixels, shifts of up to max_dx. OCT_E_NO_MEMORY. */
enum oct_err oct_row_plan_create(struct oct_row_plan **plan, uint32_t width, uint32_t max_dx,
                                 struct oct_error *err);
void oct_row_plan_destroy(struct oct_row_plan *plan); /* NULL is fine */

/* Scratch of a thread; free() releases it. NULL: out of memory. */
float *oct_row_scratch(const struct oct_row_plan *plan);

/* The spectra of a level's rows. */
struct oct_row_spectra {
    const struct oct_level *level;
    float *planes[OCT_N_PLANES]; /* [height]: n_bins real parts, n_bins imaginary parts */
};

enum oct_err oct_row_spectra_init(struct oct_row_spectra *spectra, const struct oct_row_plan *plan,
                                  const struct oct_level *level, struct oct_error *err);
void oct_row_spectra_finish(struct oct_row_spectra *spectra); /* of empty ones too */

/* Computes them from what the level holds now. */
void oct_row_spectra_set(struct oct_row_spectra *spectra, const struct oct_row_plan *plan,
                         float *scratch);

/* out[i] = sum over rows y = first .. end - 1 and all x of f(y, x) g(y + dy, x + dx0 + i), i < n,
 * for |dx0|, |dx0 + n - 1| <= max_dx. The rows meet: y + dy is a row of g. */
void oct_row_products(const struct oct_row_plan *plan, const struct oct_row_spectra *f,
                      enum oct_plane of_f, const struct oct_row_spectra *g, enum oct_plane of_g,
                      uint32_t first, uint32_t end, int32_t dy, int32_t dx0, uint32_t n,
                      float *scratch, float *out);

#endif
