/* Pictures from above of scans that are no rows: stars, spirals, Lissajous figures, positions of a
 * file (pipeline/plan/scan.h).
 *
 * An analysis gives a value an A-line, [rows][M], a row a B-scan or a place. These are put onto an
 * even grid [H][W] of square pixels over the box around all positions, of which one has the area of
 * an A-line: pitch = sqrt(area / A-lines); the pitch is the picture's resolution, beside that of
 * the scan where its lines lie farther apart. Row 0 has the smallest y.
 *   radial: between the two neighbouring spokes and their two neighbouring A-lines, bilinear in
 *     radius and angle, within the circle. Of rows at one spoke the last counts.
 *   else: moving least squares of the first order (Lancaster and Salkauskas 1981) over the twelve
 *     nearest A-lines, Gaussian of 0.6 of the farthest one's distance: a plane stays that plane.
 *     Of a spiral within its circle; of a file, pixels within two pitches of an A-line.
 * A pixel of which less than half the weight has come, or that lies outside, is NaN. */
#ifndef OCT_ANALYSIS_ENFACE_GRIDDED_H
#define OCT_ANALYSIS_ENFACE_GRIDDED_H

#include "pipeline/flow/stage.h"
#include "pipeline/plan/scan.h"

/* Whether images of this form are gridded: f32, one a volume, of axes "bscan" or "place" and
 * "line". */
bool oct_gridded_is_wanted(const struct oct_scan *scan, const struct oct_image_form *form);

/* Wraps an analysis: *analysis, *ops and *form become those of one whose images are gridded. On an
 * error the analysis is destroyed: OCT_E_NO_MEMORY; OCT_E_CONFIG: no position is known. n_bscans:
 * of the images' volume, which a recording may have cut otherwise than the scan. */
enum oct_err oct_gridded_create(struct oct_analysis **analysis, const struct oct_stage_ops **ops,
                                const struct oct_scan *scan, uint32_t n_bscans,
                                struct oct_image_form *form, struct oct_error *err);

/* The grid alone, for whoever has a whole volume. */
struct oct_grid;
enum oct_err oct_grid_create(struct oct_grid **grid, const struct oct_scan *scan, uint32_t n_bscans,
                             const struct oct_image_form *form, struct oct_error *err);
void oct_grid_destroy(struct oct_grid *grid);
void oct_grid_size(const struct oct_grid *grid, uint32_t *height, uint32_t *width,
                   double *pitch_um);

/* values: [rows][M] of the form; out: [H][W]. */
void oct_grid_apply(const struct oct_grid *grid, const float *values, float *out);

/* In um, of the middle of a pixel. */
void oct_grid_position(const struct oct_grid *grid, double y_px, double x_px, double um[2]);

#endif
