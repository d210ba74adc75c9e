/* Doppler: how fast what lies in a voxel moves along the beam, deeper is positive.
 *
 *     v = arg G(z exp(-i phi)) / (rad tau),  rad = 2 k n with its sign (optics.h)
 *
 * lines: z = B[j+1] conj B[j] of A-lines one after another; where a point has several of them, the
 * sum of those within it. bscans: the same of B-scans of one place, registered (bscan.h), summed
 * after each pair has lost its bulk phase. Source: Kasai 1985.
 *
 * Bulk phase phi of an A-line: the median of arg z about the phase of sum over d of z, then twice
 * the sum over those depths where the windowed phase is within 0.2 rad, so that vessels do not
 * pull it.
 *
 * Unambiguous to pi / (|rad| tau); beyond, phases wrap and are left so. Shown where the coherence
 * |G z| / G I is min_coherence or more, and isnr = n0 / (G I - n0) below 1; else NaN. The least
 * deviation of a pair's phase is sqrt((1 - g^2) / (2 Q g^2)), g = SNR / (1 + SNR) (Vakoc 2009).
 * The same bytes for any number of threads. One thread uses a velocity at a time. */
#ifndef OCT_ANALYSIS_FLOW_VELOCITY_H
#define OCT_ANALYSIS_FLOW_VELOCITY_H

#include "analysis/flow/optics.h"

struct oct_flow_velocity_setup {
    uint32_t n_lines, depth; /* M, D of B-scans */
    uint32_t line_repeats;   /* A-lines at a point, 1 or more, of `lines`; divides M */
    double sigma_lines, sigma_depth;
    double min_coherence;
    double noise;                /* n0, counts^2; 0: found in each B-scan */
    struct oct_workers *workers; /* NULL: the caller alone */
};

struct oct_flow_velocity;

/* OCT_E_NO_MEMORY; *velocity is NULL on error. */
enum oct_err oct_flow_velocity_create(struct oct_flow_velocity **velocity,
                                      const struct oct_flow_velocity_setup *setup,
                                      struct oct_error *err);
void oct_flow_velocity_destroy(struct oct_flow_velocity *velocity); /* NULL is fine */

/* mm_s per rad of a pair tau_s apart, with its sign; -1 where k is not known: then results are rad
 * of phase, turned so that rising wavelengths are assumed. NaN where tau is not known. */
double oct_flow_mm_s_per_rad(const struct oct_flow_optics *optics, double tau_s);

/* Of a B-scan; to: [M / line_repeats][D]. With one A-line a point the last has no next: NaN. */
void oct_flow_velocity_lines(struct oct_flow_velocity *velocity, const struct oct_flow_bscan *bscan,
                             double per_rad, float *to);

/* Of the repeats of a place; NULL: lost. to: [M][D]. OCT_E_NO_MEMORY. */
enum oct_err oct_flow_velocity_bscans(struct oct_flow_velocity *velocity,
                                      const struct oct_flow_bscan *const *repeats, unsigned n,
                                      double per_rad, float *to, struct oct_error *err);

#endif
