/* Loops over the pixels of an A-line, written so that gcc makes vector code of them. Of this folder
 * alone. Decibels: 10 * log10(intensity), intensity in counts^2 between OCT_PIXELS_LEAST and
 * OCT_PIXELS_MOST; what is beyond is cut off, what is no number counts as the least. To 0.001 dB.
 * Pointers of one call do not overlap unless they are equal. */
#ifndef OCT_ANALYSIS_AVERAGE_PIXELS_H
#define OCT_ANALYSIS_AVERAGE_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_PIXELS_LEAST 1e-12f /* -120 dB, the floor of reconstruction */
#define OCT_PIXELS_MOST 1e24f

void oct_pixels_from_db(float *intensity, const float *db, size_t n);
void oct_pixels_to_db(float *db, const float *intensity, size_t n);
void oct_pixels_bound(float *to, const float *value, size_t n, float least, float most);

/* Whether any of them is above a limit. */
bool oct_pixels_any_above(const float *value, size_t n, float limit);

/* to = a * x + b * y */
void oct_pixels_blend(float *to, const float *x, float a, const float *y, float b, size_t n);

/* sum += value */
void oct_pixels_add(double *sum, const float *value, size_t n);
/* sum += new - old; old = new */
void oct_pixels_replace(double *sum, const float *new_value, float *old_value, size_t n);
/* weight += new_part * new_weight - old_part * old_weight */
void oct_pixels_weigh(float *weight, const float *new_weight, float new_part,
                      const float *old_weight, float old_part, size_t n);
/* mean = sum / weight; NaN where there is no weight */
void oct_pixels_mean(float *mean, const double *sum, const float *weight, size_t n);

/* bins[i] += the sum of `bin` neighbouring values; n_bins * bin <= n. */
void oct_pixels_bin(float *bins, const float *value, size_t n_bins, unsigned bin);

/* round((value - lo) / (hi - lo) * 255), 0..255; NaN: 0 */
void oct_pixels_to_u8(uint8_t *pixel, const float *value, size_t n, float lo, float hi);

#endif
