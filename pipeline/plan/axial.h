/* The depth scale: micrometres of optical path in air from depth pixel to depth pixel.
 *
 * A reflector at z (one way) makes fringes cos(2 k z), and the P2 equal steps in k are one
 * period of depth pixel 1, so
 *
 *     axial = pi / (P2 dk),   dk the step in k
 *
 * With wavelengths dk is known. A k map has no unit: then a lab states the scale
 * (scan.axial_um), or the band that the camera's N samples span (scan.lambda_nm,
 * scan.bandwidth_nm), and
 *
 *     dk = |2 pi / (lambda - band/2) - 2 pi / (lambda + band/2)| / |q(N-1) - q(0)|
 *
 * where q(i) is the place of camera sample i on the steps. Where a lab states nothing, what the
 * maker of a recording says the samples span in k takes the place of that difference. */
#ifndef OCT_PIPELINE_PLAN_AXIAL_H
#define OCT_PIPELINE_PLAN_AXIAL_H

#include "pipeline/base/err.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/grid.h"

/* How far what a lab states may lie from the wavelengths, or from one another. */
#define OCT_AXIAL_TOLERANCE 0.02

/* Wavelengths win, then the stated scale, then the band, then the maker's word, which contradicts
 * nothing; *axial_um is NaN where there is none of
 * them. OCT_E_CONFIG names the keys: two of them contradict one another, a centre without a
 * bandwidth or the other way round, or a band beyond what a wavelength can be. */
enum oct_err oct_axial_find(double *axial_um, const struct oct_k_grid *grid,
                            const struct oct_geometry *g, const struct oct_calibration *cal,
                            struct oct_error *err);

#endif
