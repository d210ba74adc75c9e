/* Light as it arrives at a spectrometer: the spectra of a mirror, from first principles.
 *
 * A mirror at z_um of optical path behind the reference gives on camera pixel i, at wave number
 * k_i = 2 pi / lambda_i, the counts S(k_i) * (1 + V cos(2 k_i z + theta)), S the Gaussian source.
 * theta, dispersion, is a polynomial in t, which runs from -1 to 1 over the k of the padded line,
 * or of the camera (contract step 5). */
#ifndef OCT_TEST_RIG_PHYSICS_H
#define OCT_TEST_RIG_PHYSICS_H

#include <stddef.h>
#include <stdint.h>

#define OCT_PHYSICS_N 832
#define OCT_PHYSICS_P2 4096
#define OCT_PHYSICS_LINES 8 /* with phases an eighth of a turn apart, so that their mean is S */

/* Wavelengths of a spectrometer that disperses evenly in lambda; nm, [OCT_PHYSICS_N]. */
void oct_physics_wavelengths(double *lambda_nm, int falling);

/* lambda at camera coordinate c, the end slopes continued, in nm. */
double oct_physics_wavelength_at(const double *lambda_nm, double c);

/* The first and last wave number of the contract's k grid, rad / nm. */
void oct_physics_k_range(const double *lambda_nm, double *k_first, double *k_last);

/* The depth pixel of a mirror: fringes cos(2 k z) have z / pi periods per rad / nm, and pixel d
 * has d periods over P2 steps of k. */
double oct_physics_pixel(const double *lambda_nm, double z_um);

struct oct_physics_mirror {
    double z_um;
    double amplitude; /* V times the largest counts of S */
    double a2, a3;    /* dispersion, radians */
    int over_camera;  /* their t runs over the camera's own k instead */
};

/* Adds the mirror's fringes to a fresh source spectrum: spectra [OCT_PHYSICS_LINES][N]. */
void oct_physics_spectra(const double *lambda_nm, const struct oct_physics_mirror *mirror,
                         uint16_t *spectra);

/* Where the largest of n values lies, between pixels (a parabola through the logs of three), and
 * how wide it is at half its height. */
struct oct_physics_peak {
    double at_px, width_px, height;
};
struct oct_physics_peak oct_physics_peak(const float *intensity, size_t n);

#endif
